"""Every method of SpGEMM against brute force: each method is tested alone, with the axes that its kernels have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pairs import combinations
from platforms import PLATFORMS, has_fp64, queue_on
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py._build import programs
from clsparse_py._operations.spgemm import METHODS, spgemm, spgemm_plan
from clsparse_py._precision.semiring import SEMIRINGS

ALL = ("auto", *METHODS)
DTYPES = ("float32", "float64", "complex128", "uint8", "bool")
#: Rows of A and B such that there are rows of C with 0 to thousands of products, at the limits of bins and one beside them.
LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 130)


AXES = {
    "method": ALL,
    "dtype": DTYPES,
    "platform": list(PLATFORMS),
    "index": ["int32", "int64"],
    "semiring": list(SEMIRINGS),
}


def legal(case: dict[str, Any]) -> bool:
    """Whether a device can compute with a dtype, and a semiring is defined on it."""
    if case["dtype"] in ("float64", "complex128") and not has_fp64(case["platform"]):
        return False
    return not (case["dtype"].startswith("complex") and SEMIRINGS[case["semiring"]].ordered)


@pytest.mark.parametrize("case", combinations(AXES, legal), ids=str)
def test_axes(case: dict[str, Any]) -> None:
    queue, dtype, semiring = queue_on(case["platform"]), case["dtype"], SEMIRINGS[case["semiring"]]
    rng = np.random.default_rng(1)
    # Rows of one length: each bin of a method has kernels of its own to be built.
    A, B = rows_of([0] * 5 + [4] * 50 + [0] * 5, 50, rng, dtype), rows_of([6] * 50, 70, rng, dtype)
    left, right = (device_matrix(queue, matrix, case["index"]) for matrix in (A, B))
    assert_product(spgemm(left, right, method=case["method"], semiring=semiring), A, B, semiring)


@pytest.mark.parametrize("method", ALL)
def test_row_lengths(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(2)
    A = rows_of(rng.permutation(np.tile(LENGTHS, 3)), 200, rng, np.float32)
    B = rows_of(rng.choice(np.array(LENGTHS), 200), 300, rng, np.float32)
    assert_product(spgemm(device_matrix(queue, A), device_matrix(queue, B), method=method), A, B)


@pytest.mark.parametrize("method", ALL)
def test_new_values(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(3)
    A, B = random_matrix((80, 60), 5, rng, np.float32), random_matrix((60, 90), 5, rng, np.float32)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method=method)
    first = plan()
    assert_product(first, A, B)
    a, b = (rng.integers(-4, 5, matrix.nnz).astype(np.float32) for matrix in (A, B))
    again = plan(cl.array.to_device(queue, a), cl.array.to_device(queue, b))
    A2, B2 = sp.csr_array((a, A.indices, A.indptr), shape=A.shape), sp.csr_array((b, B.indices, B.indptr), shape=B.shape)
    assert_product(again, A2, B2)
    assert plan(a, b, out=first) is first
    assert_product(first, A2, B2)


@pytest.mark.parametrize("method", ALL)
def test_deterministic(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(4)
    A, B = random_matrix((100, 80), 20, rng, np.float32), random_matrix((80, 90), 20, rng, np.float32)
    for matrix in (A, B):
        matrix.data[:] = rng.standard_normal(matrix.nnz)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    first = spgemm(left, right, method=method).data.get()
    for _ in range(3):
        np.testing.assert_array_equal(spgemm(left, right, method=method).data.get(), first)
    loose = spgemm(left, right, method=method, deterministic=False).data.get()
    np.testing.assert_allclose(loose, first, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_what_was_named_ran(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(5)
    # Rows of at most 8 products, which every method takes; some rows of A and of B are empty.
    A, B = rows_of(rng.integers(0, 3, 60), 50, rng, np.float32), rows_of(rng.integers(0, 5, 50), 70, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    with programs.recording() as built:
        plan = spgemm_plan(left, right, method=method)
    assert {bin_.method for bin_ in plan.explain().bins} == {method}
    assert sum(bin_.n_rows for bin_ in plan.explain().bins) == np.count_nonzero(np.diff(A.indptr) > 0) - _without_products(A, B)
    assert any(program.parameters.template.startswith("spgemm/") for program in built)


def _without_products(A: sp.csr_array, B: sp.csr_array) -> int:
    """How many nonempty rows of A name empty rows of B alone."""
    lengths = np.diff(B.indptr)
    return sum(
        end > begin and not lengths[A.indices[begin:end]].any() for begin, end in zip(A.indptr, A.indptr[1:], strict=False)
    )


@pytest.mark.parametrize("method", ALL)
def test_second_call_builds_nothing(queue: cl.CommandQueue, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    A, B = random_matrix((60, 50), 3, rng, np.float32), random_matrix((50, 70), 3, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    spgemm(left, right, method=method)
    monkeypatch.setattr(programs, "render", None)
    spgemm(left, right, method=method)


@pytest.mark.parametrize("method", ALL)
def test_columns_that_need_64_bits(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(7)
    A, B = rows_of([0, 5] * 30, 50, rng, np.float32), rows_of([8] * 50, 90, rng, np.float32)
    # SciPy's product takes memory for each column: it is made of columns nearer to one another.
    wanted = sp.csr_array(A @ B)
    wanted.sort_indices()
    far = sp.csr_array((B.data, B.indices.astype(np.int64) << 33, B.indptr.astype(np.int64)), shape=(50, 90 << 33))
    C = spgemm(device_matrix(queue, A, np.int64), device_matrix(queue, far, np.int64), method=method)
    np.testing.assert_array_equal(C.indptr.get(), wanted.indptr)
    np.testing.assert_array_equal(C.indices.get(), wanted.indices.astype(np.int64) << 33)
    np.testing.assert_array_equal(C.data.get(), wanted.data)
