"""Preconditioners made of parts of a matrix."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
import scipy.sparse.linalg as of_scipy

import clsparse_py
from clsparse_py import linalg
from clsparse_py._device.device import describe
from clsparse_py._memory import pool
from clsparse_py._operations.preconditioning import has_regular_diagonal, inverses
from clsparse_py._operations.triangular import level_sets
from clsparse_py._operations.triangular.choose import Thresholds
from tests.supposed import suppose

pytestmark = pytest.mark.any_platform


@pytest.fixture
def wide(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A queue of a device with double precision."""
    if not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return queue


def grid(n: int = 12) -> scipy.sparse.csr_array:
    """Return the Laplacian of a grid of n x n points."""
    step = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return scipy.sparse.csr_array(scipy.sparse.kronsum(step, step))


def test_preconditioners_of_parts(wide: cl.CommandQueue) -> None:
    host, b = grid(), np.arange(144) % 7 - 2.5
    A = clsparse_py.csr_array(host, queue=wide)

    def iterations(solver: Any, matrix: Any, M: Any) -> int:
        seen: list[None] = []
        x, info = solver(matrix, b, M=M, rtol=1e-8, callback=lambda _: seen.append(None))
        assert info == 0
        assert np.linalg.norm(b - host @ x) < 1e-6 * np.linalg.norm(b)
        return len(seen)

    alone = iterations(linalg.bicgstab, A, None)
    for name, most in (("ilu0", 0.7), ("ic0", 0.7), ("isai", 0.7), ("block_jacobi", 1.1)):
        M = getattr(linalg, name)(A)
        made = iterations(linalg.bicgstab, A, M)
        assert made <= most * alone
        assert abs(made - iterations(of_scipy.bicgstab, host, M)) <= 1
        # The same from SciPy's arrays, and in the precision of the system.
        again = getattr(linalg, name)(host.tocsc())
        np.testing.assert_allclose(again @ b, M @ b, rtol=1e-9, atol=1e-12)
        single = clsparse_py.csr_array(host.astype(np.float32), queue=wide)
        x, info = linalg.bicgstab(single, b.astype(np.float32), M=M)
        assert info == 0
        assert x.dtype == np.float32
    assert iterations(linalg.cg, A, linalg.ic0(A)) < 0.8 * iterations(linalg.cg, A, None)
    dense = host.toarray()
    inverse = linalg.block_jacobi(A, block_size=10).matrix.toarray()
    for begin in range(0, 144, 10):
        some = slice(begin, min(begin + 10, 144))
        np.testing.assert_allclose(inverse[some, some] @ dense[some, some], np.eye(144)[some, some], atol=1e-9)
    # The product with A is the identity in A's pattern.
    product = linalg.isai(A).matrix.toarray() @ dense
    np.testing.assert_allclose(product[dense != 0], np.eye(144)[dense != 0], atol=1e-9)
    np.testing.assert_allclose(linalg.isai(A).H @ b, linalg.isai(A).matrix.toarray().T @ b, rtol=1e-9, atol=1e-12)


def test_sweeps_end_at_the_factors(wide: cl.CommandQueue) -> None:
    host = grid(8)
    turn = scipy.sparse.diags_array(np.exp(1j * np.arange(64)))
    for matrix in (host, (turn @ host @ turn.conj()).tocsr()):
        A, pattern = clsparse_py.csr_array(matrix, queue=wide), matrix.toarray() != 0
        both = linalg.ilu0(A, sweeps=40).factors[0].toarray()
        product = (np.tril(both, -1) + np.eye(64)) @ np.triu(both)
        np.testing.assert_allclose(product[pattern], matrix.toarray()[pattern], atol=1e-12)
        lower, upper = (factor.toarray() for factor in linalg.ic0(A, sweeps=40).factors)
        np.testing.assert_array_equal(lower.conj().T, upper)
        np.testing.assert_allclose((lower @ upper)[pattern], matrix.toarray()[pattern], atol=1e-12)


def test_elimination_is_exact_by_rows_and_by_levels(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_sets, "_WIDE_ON_CPU", 3)
    rng, n = np.random.default_rng(3), 90
    wide = ("float64", "complex128") if describe(queue.device).fp64 else ()
    for dtype, index in itertools.product(("float32", "complex64", *wide), (np.int32, np.int64)):
        host = scipy.sparse.random_array((n, n), density=0.05, rng=rng)
        host = scipy.sparse.csr_array((host + host.T) * (1 + 0.2j if dtype.startswith("c") else 1))
        host = scipy.sparse.csr_array(host + host.conj().T + 9 * scipy.sparse.eye_array(n)).astype(dtype)
        parts = host.data, host.indices.astype(index), host.indptr.astype(index)
        A, dense = clsparse_py.csr_array(parts, shape=(n, n), queue=queue), host.toarray()
        near = 1e-4 if dtype in ("float32", "complex64") else 1e-12
        results = []
        for max_serial in (1000, 0):
            monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_serial=max_serial))
            (both,), (lower, upper) = linalg.ilu0(A).factors, linalg.ic0(A).factors
            results.append([part.data.get().tobytes() for part in (both, lower, upper)])
            both, lower, upper = (part.toarray() for part in (both, lower, upper))
            product = (np.tril(both, -1) + np.eye(n)) @ np.triu(both)
            np.testing.assert_allclose(product[dense != 0], dense[dense != 0], rtol=near, atol=near)
            np.testing.assert_array_equal(lower.conj().T, upper)
            np.testing.assert_allclose((lower @ upper)[dense != 0], dense[dense != 0], rtol=near, atol=near)
            np.testing.assert_array_equal(both != 0, dense != 0)
        assert results[0] == results[1]


def test_matrices_without_such_parts(wide: cl.CommandQueue) -> None:
    A = clsparse_py.csr_array(grid(4), queue=wide)
    hollow = A - clsparse_py.diags_array(np.r_[4.0, np.zeros(15)], queue=wide)
    zeros = clsparse_py.csr_array(np.ones((4, 4)), queue=wide)
    for name, message, of, options in (
        *((name, "A: must be square", A[:5], {}) for name in ("ilu0", "ic0", "isai", "block_jacobi")),
        *((name, "zeros on its diagonal, has 1, the first in row 0", hollow, {}) for name in ("ilu0", "ic0", "isai")),
        *((name, "sweeps: must be at least 1", A, {"sweeps": 0}) for name in ("ilu0", "ic0")),
        ("ic0", "has no such factors", -1 * A, {}),
        ("ilu0", "has no such factors", zeros, {}),
        ("isai", "singular matrix", zeros, {}),
        ("block_jacobi", "singular block", zeros, {"block_size": 2}),
        ("block_jacobi", "block_size: must be at least 1", A, {"block_size": 0}),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(linalg, name)(of, **options)


def test_set_ups_read_a_few_numbers_alone(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    A, copy = clsparse_py.csr_array(grid(80).astype(np.float32), queue=queue), cl.enqueue_copy
    read: list[int] = []

    def noted(on: cl.CommandQueue, to: Any, *operands: Any, **options: Any) -> cl.Event:
        if isinstance(to, np.ndarray):
            read.append(to.nbytes)
        return copy(on, to, *operands, **options)

    monkeypatch.setattr(cl, "enqueue_copy", noted)
    for name in ("ic0", "ilu0"):
        read.clear()
        getattr(linalg, name)(A.copy(), 2, solve="isai")
        assert 0 < len(read) <= 5
        assert max(read) <= 64


def test_factors_share_the_pattern_of_a_canonical_matrix(queue: cl.CommandQueue) -> None:
    A = clsparse_py.csr_array(grid(6).astype(np.float32), queue=queue)
    M, before = linalg.ilu0(A), A.data.get()
    assert M.factors[0].structure is A.structure
    np.testing.assert_array_equal(A.data.get(), before)
    product = M @ np.ones(36, np.float32)
    A.data = A.data * 2
    np.testing.assert_array_equal(M @ np.ones(36, np.float32), product)


def test_diagonals_by_which_nothing_is_divided(queue: cl.CommandQueue) -> None:
    for dtype, index in itertools.product((np.float32, np.complex64), (np.int32, np.int64)):
        for values, is_regular in (([2, 1j, 3], True), ([2, 0, 3], False), ([np.inf, 1, 1], False), ([1, 1, np.nan], False)):
            diagonal = np.array(values).astype(dtype) if dtype is np.complex64 else np.abs(values).astype(dtype)
            host = scipy.sparse.csr_array(scipy.sparse.tril(np.ones((3, 3), dtype), -1)) + scipy.sparse.diags_array(diagonal)
            parts = host.data, host.indices.astype(index), host.indptr.astype(index)
            A = clsparse_py.csr_array(parts, shape=(3, 3), queue=queue)
            A.sum_duplicates()
            assert has_regular_diagonal(A) is is_regular
    hollow = clsparse_py.csr_array(np.array([[1, 1], [1, 0]], np.float32), queue=queue)
    assert not has_regular_diagonal(hollow)
    assert has_regular_diagonal(clsparse_py.csr_array((0, 0), dtype=np.float32, queue=queue))
    # The value is finite, and its magnitude overflows.
    vast = np.full((1, 1), 3e38 + 3e38j, np.complex64)
    assert linalg.ilu0(clsparse_py.csr_array(vast, queue=queue)).factors[0].nnz == 1


@pytest.mark.parametrize("short", [32, 2])
def test_approximate_inverses_are_numpys(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, short: int) -> None:
    monkeypatch.setattr(inverses, "_SHORT", short)
    rng, n = np.random.default_rng(5), 120
    wide = ("float64", "complex128") if describe(queue.device).fp64 else ()
    for dtype, index in itertools.product(("float32", "complex64", *wide), (np.int32, np.int64)):
        coordinates = rng.integers(0, n, (2, 500))
        # Rows and columns of one entry, and of more than one launch takes; duplicates; no row is sorted.
        rows = np.r_[coordinates[0], np.arange(n), np.full(n, 7), np.arange(n), np.arange(n)]
        columns = np.r_[coordinates[1], np.arange(n), np.arange(n), np.full(n, 9), np.arange(n)]
        keep = (rows != 3) | (columns == 3)
        rows, columns = rows[keep], columns[keep]
        values = rng.standard_normal(rows.size) + (1j * rng.standard_normal(rows.size) if dtype.startswith("c") else 0)
        values = (values + 9 * (rows == columns)).astype(dtype)
        order = np.argsort(rows, kind="stable")
        indptr = np.searchsorted(rows[order], np.arange(n + 1)).astype(index)
        A = clsparse_py.csr_array((values[order], columns[order].astype(index), indptr), shape=(n, n), queue=queue)
        host = scipy.sparse.csr_array((values, (rows, columns)), shape=(n, n))
        host.sum_duplicates()
        dense, expected = host.toarray(), host.copy()
        for row in range(n):
            entries = slice(host.indptr[row], host.indptr[row + 1])
            pattern = host.indices[entries]
            expected.data[entries] = np.linalg.solve(dense[np.ix_(pattern, pattern)].T, (pattern == row).astype(dtype))
        near = 2e-4 if dtype in ("float32", "complex64") else 1e-11
        M = linalg.isai(A)
        assert (M.dtype, M.matrix.indices.dtype) == (np.dtype(dtype), index)
        np.testing.assert_array_equal(M.matrix.indices.get(), expected.indices)
        np.testing.assert_allclose(M.matrix.data.get(), expected.data, rtol=near, atol=near * np.abs(expected.data).max())


def test_approximate_inverses_of_small_singular_and_pivoted_matrices(queue: cl.CommandQueue) -> None:
    one = clsparse_py.csr_array(np.full((1, 1), 4, np.float32), queue=queue)
    np.testing.assert_array_equal(linalg.isai(one) @ np.ones(1, np.float32), [0.25])
    none = clsparse_py.csr_array((0, 0), dtype=np.float32, queue=queue)
    assert (linalg.isai(none) @ np.ones(0, np.float32)).shape == (0,)
    # Without pivoting the first pivot would lose all others' digits.
    host = np.array([[1e-9, 2, 3], [4, 5, 6], [7, 8, 1]], np.float32)
    found = linalg.isai(clsparse_py.csr_array(host, queue=queue)).matrix.toarray()
    np.testing.assert_allclose(found, np.linalg.inv(host.astype(np.float64)), rtol=1e-4, atol=1e-5)
    for dtype in (np.float32, np.complex64):
        block = np.array([[1, 2, 0], [2, 4, 0], [0, 0, 1]], dtype)
        with pytest.raises(ValueError, match="A: has a singular matrix in the pattern of a row"):
            linalg.isai(clsparse_py.csr_array(block, queue=queue))


def test_rows_too_long_for_the_memory_are_named(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    host = scipy.sparse.lil_array(scipy.sparse.eye_array(600, dtype=np.float32))
    host[5] = 1
    A = clsparse_py.csr_array(host.tocsr(), queue=queue)
    create = pool._create

    def create_within(context: cl.Context, n_bytes: int, *more: Any) -> cl.Buffer:
        if n_bytes > 1 << 20:
            code = cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE
            raise cl.MemoryError(cl._cl._ErrorRecord(msg="too large", code=code, routine="clCreateBuffer"))
        return create(context, n_bytes, *more)

    clsparse_py.free_memory()
    with monkeypatch.context() as patch:
        patch.setattr(pool, "_create", create_within)
        with pytest.raises(MemoryError, match=r"^dense systems of rows of \d+ entries: .* need"):
            linalg.isai(A)
    np.testing.assert_allclose(linalg.isai(A).matrix.toarray(), 2 * np.eye(600) - host.toarray(), atol=1e-6)
