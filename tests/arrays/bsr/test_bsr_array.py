"""`bsr_array` against SciPy's: what it is made of, conversions, products, operations and errors."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from oracle import random_structure
from pyopencl import array as cl_array

import clsparse_py as sp
from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.bsr import bsr_array

#: A dtype, an index type, the size of blocks, and whether rows are unsorted, with duplicates.
CASES = (
    ("float32", np.int32, (2, 2), True), ("complex64", np.int64, (2, 3), True), ("float32", np.int64, (3, 3), False),
    ("int32", np.int32, (6, 6), True), ("bool", np.int32, (1, 1), True), ("float32", np.int32, (10, 9), True),
    ("float64", np.int32, (3, 6), False),
)  # fmt: skip


def host(dtype: str, index: type, size: tuple[int, int], ragged: bool, n: tuple[int, int] = (9, 7)) -> Any:
    """Return blocks of small whole numbers of SciPy: some rows empty, some blocks of zeros alone."""
    rng = np.random.default_rng(size[0])
    indices, indptr = random_structure(rng.integers(0, 6, n[0]) * (rng.random(n[0]) < 0.8), n[1], rng, index)
    data = rng.integers(-3, 4, (indices.size, *size)) * (rng.random((indices.size, 1, 1)) < 0.8)
    data = data + 1j * rng.integers(-3, 4, data.shape) if dtype == "complex64" else data
    made = scipy.sparse.bsr_array((data.astype(dtype), indices, indptr), shape=(n[0] * size[0], n[1] * size[1]))
    if not ragged:
        made.sum_duplicates()
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def make_operands(case: Any, queue: cl.CommandQueue) -> tuple[Any, bsr_array]:
    """Return SciPy's matrix of a case, and ours."""
    A = host(*case)
    if case[0] == "float64" and not sp.describe(queue.device).fp64:
        pytest.skip("no double precision")
    return A, sp.bsr_array(A, queue=queue)


def same(result: Any, wanted: Any) -> None:
    """Check that a result is SciPy's: class, format, size of blocks, dtype and values."""
    if scipy.sparse.issparse(wanted):
        assert isinstance(result, SparseArray)
        assert result.format == wanted.format
        assert getattr(result, "blocksize", None) == getattr(wanted, "blocksize", None)
        assert result.shape == wanted.shape
        result.check_format() if result.format != "coo" else None
        assert result.get().has_canonical_format == result.has_canonical_format
        result, wanted = result.toarray(), wanted.toarray()
    result = result.get() if isinstance(result, cl_array.Array) else result
    np.testing.assert_array_equal(result, wanted, strict=True)


def dense(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype("float32" if dtype == "bool" else dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conversions(queue: cl.CommandQueue, case: Any) -> None:
    A, ours = make_operands(case, queue)
    size = case[2]
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(ours, name).get(), getattr(A, name))
        assert getattr(ours, name).dtype == getattr(A, name).dtype
    assert (ours.blocksize, ours.nnz, ours.dtype, ours.shape, ours.format) == (size, A.nnz, A.dtype, A.shape, "bsr")
    assert (ours.has_sorted_indices, ours.has_canonical_format) == (A.has_sorted_indices, A.has_canonical_format)
    assert str(ours) == str(A)
    for result, wanted in (
        (ours, A), (ours.get(), A), (ours.copy(), A), (ours.tocsr(), A.tocsr()), (ours.tocsc(), A.tocsc()),
        (ours.tocoo(), A.tocoo()), (ours.T, A.T), (ours.tobsr(size), A), (ours.tocsr().tobsr(size), A.tocsr().tobsr(size)),
        (pickle.loads(pickle.dumps(ours)), A),
        (sp.csc_array(A, queue=queue).tobsr(size), A), (sp.bsr_array(A.toarray(), blocksize=size, queue=queue), A),
        (sp.bsr_array(ours.tocoo(), blocksize=(1, 1)), A.tobsr((1, 1))),
    ):  # fmt: skip
        np.testing.assert_array_equal(result.toarray(), wanted.toarray(), strict=True)
        assert getattr(result, "blocksize", None) == getattr(wanted, "blocksize", None)
        assert result.format == wanted.format
    np.testing.assert_array_equal(ours.tocsr().indices.get(), A.tocsr().indices)
    for method in ("sort_indices", "sum_duplicates", "eliminate_zeros"):
        wanted, result = A.copy(), ours.copy()
        if method == "eliminate_zeros":
            wanted.sum_duplicates()  # SciPy's own leaves out wrong blocks else
            result.sum_duplicates()
        getattr(wanted, method)()
        getattr(result, method)()
        assert (result.nnz, result.has_sorted_indices) == (wanted.nnz, True)
        np.testing.assert_array_equal(result.indptr.get(), wanted.indptr)
        np.testing.assert_array_equal(result.toarray(), A.toarray(), strict=True)
        assert result.has_canonical_format or method == "sort_indices"


@pytest.mark.parametrize(
    ("case", "device_type"), [*((case, "cpu") for case in (CASES[0], CASES[1], CASES[3], CASES[5])), (CASES[2], "gpu")], ids=str
)
def test_products(queue: cl.CommandQueue, case: Any, device_type: str, take_as: Callable[..., None]) -> None:
    A, ours = make_operands(case, queue)
    take_as(type=device_type)
    x, X = dense(case[0], A.shape[1]), dense(case[0], A.shape[1], 5)
    y, Y = dense(case[0], A.shape[0]), dense(case[0], 3, A.shape[0])
    wide = np.repeat(x, 2)
    for result, wanted in (
        (ours @ x, A @ x), (ours @ X, A @ X), (ours @ np.asfortranarray(X), A @ X), (ours @ wide[::2], A @ x), (y @ ours, y @ A),
        (Y @ ours, Y @ A), (ours @ cl_array.to_device(queue, X), A @ X), (ours @ cl_array.to_device(queue, wide)[::2], A @ x),
        (ours @ X[:, :1], A @ X[:, :1]), (ours @ X.astype("complex64"), A @ X.astype("complex64")), (ours.dot(2), A * 2),
        (ours @ x[:, None], A @ x[:, None]),
    ):  # fmt: skip
        same(result, wanted)
    B = sp.csr_array(A.T.tocsr(), queue=queue)
    for result, wanted in (
        (ours @ ours.T, A @ A.T), (ours.T @ ours, A.T @ A), (ours @ B, A @ A.T.tocsr()), (B @ ours, A.T.tocsr() @ A),
        (ours @ A.T, A @ A.T), (A.T.tocsr() @ ours, A.T.tocsr() @ A), (ours @ B.tocsc(), A @ A.T.tocsc()),
    ):  # fmt: skip
        assert (result.format, getattr(result, "blocksize", 0)) == (wanted.format, getattr(wanted, "blocksize", 0))
        np.testing.assert_array_equal(result.toarray(), wanted.toarray(), strict=True)


def test_operations(queue: cl.CommandQueue) -> None:
    A, a = make_operands(CASES[2], queue)
    B, C = A.tocsr() * 2, A.tocsr().tobsr((1, 1))
    b, c = sp.csr_array(B, queue=queue), sp.bsr_array(C, queue=queue)
    D = A.toarray()
    expressions = (
        "A + B", "A + C", "B + A", "A - C", "A.multiply(B)", "A * C", "A * D", "A * 2", "2 * A", "A / 2", "-A", "abs(A)",
        "A ** 2", "A.conj()", "A.sum()", "A.sum(axis=0)", "A.count_nonzero()", "A != B", "A + D", "A + 0", "A.diagonal(-2)",
        "A.astype('complex64')",
    )  # fmt: skip
    for expression in expressions:
        wanted, result = (
            eval(expression, {"A": of_A, "B": of_B, "C": of_C, "D": D}) for of_A, of_B, of_C in ((A, B, C), (a, b, c))
        )
        if scipy.sparse.issparse(wanted):
            assert (result.format, getattr(result, "blocksize", 0)) == (wanted.format, getattr(wanted, "blocksize", 0)), (
                expression
            )
            result, wanted = result.toarray(), wanted.toarray()
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6, err_msg=expression)
        assert np.asarray(result).dtype == np.asarray(wanted).dtype, expression
    np.testing.assert_array_equal(a[1:5, ::2].toarray(), D[1:5, ::2])
    with pytest.warns(scipy.sparse.SparseEfficiencyWarning) if A.tocsr()[0, 8] == 0 else contextlib.nullcontext():
        a[0, 8] = D[0, 8] = 5
    assert a[0, 8] == 5
    a.data = a.data.get() * 2
    a *= 2
    np.testing.assert_array_equal(a.toarray(), D * 4)
    a.resize(A.shape[0] - 3, A.shape[1])
    assert (a.format, a.shape) == ("bsr", (A.shape[0] - 3, A.shape[1]))
    np.testing.assert_array_equal(a @ D[0], (D * 4)[:-3] @ D[0])
    assert a.explain().bytes >= a.data.nbytes


def test_likely_sizes_are_scipys(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 6):
        for part in (0.75, 0.9, 1):
            pattern = scipy.sparse.random_array((48 // n, 36 // n), density=0.1, rng=rng)
            A = scipy.sparse.kron(pattern, np.ones((n, n)), format="csr").astype(np.float32)
            A = A.multiply(rng.random(A.shape) < part).tocsr()
            assert sp.csr_array(A, queue=queue).tobsr().blocksize == A.tobsr().blocksize
    assert sp.csr_array((6, 6), dtype=np.float32, queue=queue).tobsr().blocksize == (1, 1)


def test_without_blocks_or_rows(queue: cl.CommandQueue) -> None:
    for shape, size in (((0, 6), (2, 3)), ((6, 0), (3, 2)), ((4, 6), (2, 2)), ((0, 0), (1, 1)), ((4, 6), (1, 1))):
        A, ours = (
            of.bsr_array(shape, dtype=np.float32, blocksize=size, **named)
            for of, named in ((scipy.sparse, {}), (sp, {"queue": queue}))
        )
        x = np.ones(shape[1], np.float32)
        for result, wanted in (
            (ours, A),
            (ours.T, A.T),
            (ours @ x, A @ x),
            (ours @ ours.T, A @ A.T),
            (ours + ours, A + A),
            (ours.tocsr(), A.tocsr()),
        ):
            same(result, wanted)
        ours.sum_duplicates()
        ours.eliminate_zeros()
        assert ours.tocsr().tobsr(size).blocksize == size


def test_parts(queue: cl.CommandQueue) -> None:
    A = host("float32", np.int32, (2, 3), True)
    parts = A.data, A.indices, A.indptr
    on_device = tuple(cl_array.to_device(queue, part) for part in parts)
    shared, own = sp.bsr_array(on_device, shape=A.shape), sp.bsr_array(on_device, shape=A.shape, copy=True)
    on_device[0].fill(1)
    assert (shared.data.get() == 1).all()
    np.testing.assert_array_equal(own.toarray(), A.toarray())
    assert sp.bsr_array(own).data is own.data
    assert sp.bsr_array(own, dtype="complex64").dtype == np.complex64
    longer = np.concatenate((A.data, A.data[:2])), np.append(A.indices, [99, 99]), A.indptr
    np.testing.assert_array_equal(sp.bsr_array(longer, shape=A.shape, queue=queue).toarray(), A.toarray())
    coordinates = np.array([1.0, 2, 3], np.float32), ([0, 0, 3], [1, 1, 2])
    same(
        sp.bsr_array(coordinates, shape=(4, 4), blocksize=(2, 2), queue=queue),
        scipy.sparse.bsr_array(coordinates, shape=(4, 4), blocksize=(2, 2)),
    )
    data = np.ones((2, 2, 2), np.float32)
    for arguments, named, error, words in (
        ((data[0], [0], [0, 1]), {}, ValueError, "^data: BSR data must be 3-dim"),
        ((data, [0, 1], [0, 1, 2]), {"blocksize": (3, 3)}, ValueError, "^blocksize: mismatching blocksize"),
        ((data, [0, 1], [0, 1, 2]), {"shape": (5, 5)}, ValueError, "^blocksize: .*multiple"),
        ((data, [0, 1], [0, 2]), {"shape": (4, 4)}, ValueError, "^indptr: must have"),
        ((data, [0, 1, 1], [0, 1, 2]), {}, ValueError, "^data: must have as many blocks"),
        ((data, [0, 2], [0, 1, 2]), {"shape": (4, 4)}, ValueError, "^indices: must lie in"),
        ((data, [0.5, 1], [0, 1, 2]), {}, TypeError, "^indices: must be integers"),
        ((4, 4), {"blocksize": (3, 2)}, ValueError, "^blocksize: invalid"),
        ((4, 4), {"blocksize": 2}, TypeError, "^blocksize: must be two"),
        ((4, 4), {"blocksize": (0, 2)}, ValueError, "^blocksize: must be positive"),
        (np.ones(4, np.float32), {}, ValueError, "^arg1: .*1D input"),
        (A, {"shape": (4, 4)}, ValueError, "^shape: .*inconsistent"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            sp.bsr_array(arguments, queue=queue, **named)
    B = sp.bsr_array(A, queue=queue)
    with pytest.raises(ValueError, match=r"^blocksize: invalid"):
        B.tobsr((4, 4))
    with pytest.raises(ValueError, match=r"^x: must have 21 rows"):
        B @ np.ones(20, np.float32)
    with pytest.raises(ValueError, match=r"^data: must have shape"):
        B.data = data
    with pytest.raises(ValueError, match=r"^blocksize: invalid"):
        B.resize(5, 6)
    with pytest.raises(ValueError, match=r"^axes: "):
        B.transpose((0, 1))


def test_solvers_multiply_by_blocks(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    line = scipy.sparse.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(2100, 2100))
    host = scipy.sparse.kron(line, [[2.0, 1.0], [1.0, 2.0]]).tobsr((2, 2)).astype(np.float32)
    A, b = sp.bsr_array(host, queue=queue), np.ones(4200, np.float32)
    ml = sp.amg.smoothed_aggregation_solver(A)
    assert ml.levels[0].blocksize == 2
    M = ml.aspreconditioner()
    monkeypatch.setattr(bsr_array, "_as_csr", None)
    x, info = sp.linalg.cg(A, b, rtol=1e-5, M=M)
    assert info == 0
    np.testing.assert_allclose(host @ x, b, atol=1e-2)


@pytest.mark.any_platform
def test_attributes_are_set_and_copies_share_nothing(queue: cl.CommandQueue) -> None:
    H = host("float32", np.int32, (2, 2), True)
    A = bsr_array(H, queue=queue)
    x = np.arange(A.shape[1], dtype=np.float32)
    before = A @ x
    A.indices, A.indptr, A.data = H.indices[::-1].copy(), H.indptr, H.data
    other = scipy.sparse.bsr_array((H.data, H.indices[::-1].copy(), H.indptr), shape=H.shape)
    np.testing.assert_allclose(A @ x, other @ x, rtol=1e-5)
    assert A.has_sorted_indices == other.has_sorted_indices
    A.indices = cl_array.to_device(queue, H.indices.astype(np.int64))
    np.testing.assert_array_equal(A @ x, before)
    for wrong in (H.indices[:-1], H.indices + A.shape[1]):
        B = bsr_array(H, queue=queue)
        B.indices = wrong
        for use in (lambda: B @ x, B.tocsr, lambda: B.nnz, lambda: B.has_canonical_format):  # noqa: B023 - called at once
            with pytest.raises(ValueError, match=r"^(data|indices|indptr): "):
                use()
    with pytest.raises(ValueError, match=r"^indptr: must have 10 entries, has 3$"):
        A.indptr = H.indptr[:3]
    # Who sets facts is believed.
    A.sum_duplicates()
    A.has_canonical_format = False
    assert A.has_sorted_indices
    assert not A.has_canonical_format
    A.has_sorted_indices = A.has_canonical_format = True
    assert A.has_canonical_format
    single = host("float32", np.int32, (1, 1), False)
    for of in (sp.csr_array(single.tocsr(), queue=queue), bsr_array(single, queue=queue)):
        for made in (bsr_array(of, blocksize=(1, 1), copy=True), of.tobsr((1, 1), copy=True)):
            for name in ("data", "indices", "indptr"):
                assert getattr(made, name).base_data is not getattr(of, name).base_data
            np.testing.assert_array_equal(made.toarray(), single.toarray())


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_larger_values_than_a_scalar_have_scipys_formats(queue: cl.CommandQueue) -> None:
    H = host("float32", np.int32, (2, 3), False)
    A = bsr_array(H, queue=queue)
    for name, scalar in (("maximum", 1), ("minimum", -1), ("maximum", -1), ("minimum", 1), ("maximum", 0)):
        wanted, result = getattr(H, name)(scalar), getattr(A, name)(scalar)
        assert result.format == wanted.format
        np.testing.assert_array_equal(result.toarray(), wanted.toarray())
