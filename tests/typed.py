"""Types of the public functions, for type checkers.

mypy checks each `assert_type` (`test_types` runs it), and the same test runs these functions with `assert_type` looking at what
came. A comment ``type: ignore`` stands where mypy has to object: one that is not needed is an error under ``--strict``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pyopencl import array as cl_array
from typing_extensions import assert_type

from clsparse_py import (
    block_array,
    coo_array,
    csc_array,
    csr_array,
    default_queue,
    diags_array,
    eye_array,
    hstack,
    kron,
    linalg,
    min_plus,
    primitives,
    random_array,
    spgemm,
    spgemm_estimate,
    spgemm_plan,
    spmm,
    spmv,
    spmv_plan,
    transpose,
    transpose_plan,
    vstack,
)
from clsparse_py._operations.spgemm import Estimate, SpgemmPlan
from clsparse_py._operations.spgemm.masked_plan import MaskedPlan
from clsparse_py._operations.spmv import KernelChoice, Scheme, SpmvPlan
from clsparse_py._operations.transpose import TransposePlan
from clsparse_py._precision.semiring import Semiring

Host = npt.NDArray[Any]
Pair = tuple[cl_array.Array, cl_array.Array]


def products(A: csr_array, x: cl_array.Array, X: cl_array.Array, host: npt.NDArray[np.float32]) -> None:
    """Products of a 3 x 3 matrix with dense operands: what is on the device stays there."""
    for dense in (x, X):
        assert_type(A @ dense, cl_array.Array)
    assert_type(x @ A, cl_array.Array)
    assert_type(A @ host, Host)
    assert_type(host @ A, Host)
    assert_type(A @ [1.0, 2.0, 3.0], Host)
    assert_type(spmv(A, x), cl_array.Array)
    assert_type(spmv(A, x, alpha=2, beta=np.float32(1), out=x.copy()), cl_array.Array)
    assert_type(spmv(A, host, semiring=min_plus), Host)
    assert_type(spmv(A, host, out=host.copy()), Host)
    assert_type(spmm(A, X, work_group=32), cl_array.Array)
    assert_type(spmm(A, np.stack([host, host], axis=1)), Host)


def products_of_other_formats(A: csr_array, x: cl_array.Array, host: npt.NDArray[np.float32]) -> None:
    """Products of a 3 x 3 matrix in CSC and COO form with dense operands."""
    assert_type(A.T @ x, cl_array.Array)
    assert_type(x @ A.T, cl_array.Array)
    assert_type(A.tocoo() @ host, Host)
    assert_type(A.tocoo() @ [1.0, 2.0, 3.0], Host)
    assert_type(A @ A.T, csr_array)


def sparse_products(A: csr_array, profile: bool) -> None:
    """Products of sparse matrices."""
    assert_type(A @ A, csr_array)
    assert_type(spgemm(A, A), csr_array)
    assert_type(spgemm(A, A, method="esc", profile=False), csr_array)
    assert_type(spgemm(A, A, profile=True), tuple[csr_array, dict[str, float]])
    assert_type(spgemm(A, A, profile=profile), csr_array | tuple[csr_array, dict[str, float]])
    assert_type(spgemm_estimate(A, A, exact=True), Estimate)
    plan = spgemm_plan(A, A)
    assert_type(plan, SpgemmPlan[csr_array])
    assert_type(plan(), csr_array)
    assert_type(plan(A.data, A.data.get(), out=plan()), csr_array)
    masked = spgemm_plan(A, A, mask=A, accum="plus")
    assert_type(masked, MaskedPlan[csr_array])
    assert_type(masked(A.data, out=masked()), csr_array)


def matrices(A: csr_array) -> None:
    """A matrix and its parts."""
    assert_type(A.T, csc_array)
    assert_type(A.T.T, csr_array)
    assert_type(A.tocsc(), csc_array)
    assert_type(A.tocoo(), coo_array)
    assert_type(A.tocoo().tocsr(), csr_array)
    assert_type(A.transpose(copy=True), csc_array)
    assert_type(A.astype(np.float32), csr_array)
    assert_type(A.data, cl_array.Array)
    assert_type(A.data.get(), Host)
    assert_type(A.toarray(), Host)
    assert_type(A.shape, tuple[int, int])
    assert_type(transpose(A, method="binned"), csr_array)
    plan = transpose_plan(A)
    assert_type(plan, TransposePlan[csr_array])
    assert_type(plan(A.data), csr_array)
    assert_type(A.spmv_plan(), SpmvPlan)
    assert_type(spmv_plan(A, scheme="fine", kernel="subvector8"), SpmvPlan)
    assert_type(spmv_plan(A, scheme=Scheme("coarse", 50), kernel=KernelChoice("serial")), SpmvPlan)
    assert_type(min_plus, Semiring)
    assert_type(Semiring("plus_first"), Semiring)
    assert_type(Semiring("lor_land"), Semiring)


def entries(A: csr_array, X: cl_array.Array, x: cl_array.Array, host: npt.NDArray[np.float32]) -> None:
    """Operations entry by entry of a 3 x 3 matrix, of float32, and parts of it."""
    for result in (A + A, A - A.T, A * A, A * 2, A.multiply(A), A / np.float32(2), A > 1, A.maximum(A), -A, abs(A), A**2):
        assert_type(result, csr_array)
    assert_type(A[1:], csr_array)
    assert_type(A[::2, 1:], csr_array)
    assert_type(A + X, cl_array.Array)
    assert_type(A - X, cl_array.Array)
    assert_type(A.copy(), csr_array)
    assert_type(csr_array(A), csr_array)
    assert_type(linalg.spsolve(A, x), cl_array.Array)
    assert_type(linalg.spsolve(A, host), Host)
    assert_type(linalg.splu(A), linalg.SuperLU)


def parts(A: csr_array, x: cl_array.Array, host: npt.NDArray[np.float32]) -> None:
    """Rows, entries and reductions of a 3 x 3 matrix of float32, in each format."""
    assert_type(A[0], coo_array | Any)
    assert_type(A[0, :], coo_array)
    assert_type(A.tocsc()[1:, 2], coo_array)
    assert_type(A.tocsc()[1:], csc_array)
    for matrix in (A, A.tocsc(), A.tocoo(), A.tobsr()):
        assert_type(matrix[0, 1], np.number[Any])
        assert_type(matrix.sum(), np.number[Any])
        assert_type(matrix.mean(), np.number[Any])
        assert_type(matrix.max(), np.number[Any])
        assert_type(matrix.min(), np.number[Any])
        assert_type(matrix.sum(axis=0), Host)
        assert_type(matrix.mean(axis=1), Host)
        assert_type(matrix.max(axis=0), coo_array)
        assert_type(matrix.sum(axis=1, like=x), cl_array.Array)
        assert_type(matrix.dot(x), cl_array.Array)
        assert_type(matrix.dot(host), Host)
        assert_type(linalg.norm(matrix), np.number[Any])
    assert_type(A.reshape(1, 9), coo_array | csr_array)
    assert_type(A.tocoo().reshape(9, 1), coo_array)


def of_other_formats(A: csr_array) -> None:
    """Operators of matrices in CSC and COO form, by numbers and by each other."""
    C, O = A.tocsc(), A.tocoo()  # noqa: E741
    for rows in (A != A, A != A.T, 2 * A, A.dot(A), A.dot(2), O + O, O - A, O.multiply(O), O @ O, O.dot(A), O * C):
        assert_type(rows, csr_array)
    for columns in (C + C, C - A, C.multiply(C), C * 2, 2 * C, C @ A, C.dot(C)):
        assert_type(columns, csc_array)
    for entries in (O * 2, 2 * O, O.multiply(2), O.T, O.dot(2)):
        assert_type(entries, coo_array)
    assert_type(C != C, csr_array | csc_array)


def systems(A: csr_array, b: cl_array.Array, host: npt.NDArray[np.float32]) -> None:
    """Solutions for a diagonal 3 x 3 matrix are where b is."""
    for on_device in (linalg.cg(A, b), linalg.gmres(A, b, restart=2), linalg.bicgstab(A, b), linalg.minres(A, b, rtol=1e-3)):
        assert_type(on_device, tuple[cl_array.Array, int])
    for on_host in (linalg.cg(A, host), linalg.gmres(A, host), linalg.bicgstab(A, host), linalg.minres(A, host)):
        assert_type(on_host, tuple[Host, int])
    assert_type(linalg.cg(A=A, b=host, rtol=1e-3), tuple[Host, int])
    assert_type(linalg.spsolve_triangular(A, b), cl_array.Array)
    assert_type(linalg.spsolve_triangular(A, host, lower=False), Host)
    assert_type(linalg.eigsh(A, k=1)[0], Host | Any)


def check_constructions(A: csr_array) -> None:
    """Matrices that functions make."""
    for result in (eye_array(3), diags_array([1.0, 2.0])):
        assert_type(result, csr_array | Any)
    for stacked in (vstack([A, A]), hstack([A, A.T], "csr"), block_array([[A, None], [None, A]])):
        assert_type(stacked, csr_array | Any)
    assert_type(kron(A, A), csr_array | coo_array | Any)
    assert_type(random_array((3, 3)), coo_array | Any)


def arrays(ptr: cl_array.Array, keys: cl_array.Array) -> None:
    """Primitives: keys alone, or with values. ``ptr`` is 0, 1, ..., as many as there are keys."""
    assert_type(primitives.exclusive_scan(keys), cl_array.Array)
    assert_type(primitives.reduce_by_key(keys, keys), Pair)
    assert_type(primitives.radix_sort(keys), cl_array.Array)
    assert_type(primitives.radix_sort(keys, keys, bits=(0, 8)), Pair)
    assert_type(primitives.segmented_sort(ptr, keys), cl_array.Array)
    assert_type(primitives.segmented_sort(ptr, keys, keys), Pair)
    assert_type(primitives.segmented_merge(ptr, ptr, keys), cl_array.Array)
    assert_type(primitives.segmented_merge(ptr, ptr, keys, keys, algorithm="serial"), Pair)


def mistakes() -> None:
    """Calls that mypy objects to; not to be run."""
    A = csr_array((3, 3), queue=default_queue())
    x = cl_array.zeros(A.queue, 3, np.float32)
    A @ object()  # type: ignore[operator]
    spmv(A, x, out=np.zeros(3))  # type: ignore[call-overload]
    spgemm(A, A, method="fast")  # type: ignore[call-overload]
    spgemm_plan(A, A, method="fast")  # type: ignore[call-overload]
    transpose(A, method="fast")  # type: ignore[arg-type]
    spmv_plan(A, scheme="fast")  # type: ignore[call-overload]
    spmv_plan(A, kernel="subvector3")  # type: ignore[call-overload]
    linalg.cg(A, x, rtoll=1)  # type: ignore[call-overload]
    KernelChoice("subvector3")  # type: ignore[arg-type]
    Semiring(3)  # type: ignore[arg-type]
    Semiring("best_plus")  # type: ignore[arg-type]
    primitives.segmented_merge(x, x, x, algorithm="fast")  # type: ignore[call-overload]
