"""Products of every shape: sizes of zero, identity and permutation, dense rows and columns, those that the papers measure."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, random_matrix, rows_of

from bench.generators.aggregation import prolongator
from clsparse_py import csr_array, spgemm, spgemm_plan
from clsparse_py._operations.spgemm import METHODS

Operands = tuple[sp.csr_array, sp.csr_array]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def grid(n: int) -> sp.csr_array:
    """Return the 5-point Laplacian of an n x n grid."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kronsum(line, line))


def ones(rows: int, columns: int) -> sp.csr_array:
    return sp.csr_array(np.ones((rows, columns)))


def identity() -> Operands:
    return sp.eye_array(70, format="csr"), random_matrix((70, 50), 4, rng())


def permutation() -> Operands:
    return sp.eye_array(70, format="csr")[rng().permutation(70)], random_matrix((70, 50), 4, rng())


def dense_row() -> Operands:
    A = sp.eye_array(900, format="lil")
    A[450, :] = 1
    return sp.csr_array(A), random_matrix((900, 1200), 3, rng())


def dense_column() -> Operands:
    A = sp.eye_array(900, format="lil")
    A[:, 450] = 1
    B = random_matrix((900, 1200), 3, rng()).tolil()
    B[450, :] = 2
    return sp.csr_array(A), sp.csr_array(B)


def square_of_dense_row() -> Operands:
    A = dense_row()[0]
    return A, A


def multiply_transposed() -> Operands:
    A = random_matrix((200, 60), 5, rng())
    return A.T.tocsr(), A


def times_transposed() -> Operands:
    A = random_matrix((60, 200), 5, rng())
    return A, A.T.tocsr()


def outer() -> Operands:
    return ones(70, 1), ones(1, 130)


def inner() -> Operands:
    return ones(1, 700), ones(700, 1)


def rectangular() -> Operands:
    return random_matrix((300, 20), 3, rng()), random_matrix((20, 500), 30, rng())


def full() -> Operands:
    return ones(40, 50), ones(50, 33)


def compressing() -> Operands:
    """Each entry of C is the sum of a hundred products, and more."""
    return rows_of([150] * 30, 200, rng()), rows_of([3] * 200, 5, rng())


def power_law() -> Operands:
    lengths = np.minimum((300 / np.arange(1, 400)).astype(int), 399)
    A = rows_of(rng().permutation(lengths), 399, rng())
    return A, A


def smooth() -> Operands:
    A = grid(24)
    return whole(A), whole(prolongator(A, rng()))


def galerkin() -> Operands:
    A, P = smooth()
    return P.T.tocsr(), whole(sp.csr_array(abs(A) @ abs(P)))


def whole(matrix: sp.csr_array) -> sp.csr_array:
    """Return the pattern with small whole numbers, whose sums are exact in any order."""
    return sp.csr_array((rng().integers(1, 5, matrix.nnz).astype(float), matrix.indices, matrix.indptr), shape=matrix.shape)


def empty_rows_at_both_ends() -> Operands:
    between = random_matrix((10, 40), 4, rng())
    A = sp.vstack([sp.csr_array((1 << 17, 40)), between, sp.csr_array((1 << 17, 40))], format="csr")
    return A, random_matrix((40, 60), 4, rng())


def no_entries() -> Operands:
    return sp.csr_array((30, 20)), random_matrix((20, 40), 3, rng())


def nothing_met() -> Operands:
    """Rows of A name empty rows of B alone."""
    A = sp.csr_array(([1.0, 2.0], ([0, 3], [5, 6])), shape=(4, 10))
    B = sp.csr_array(([1.0], ([2], [2])), shape=(10, 5))
    return A, B


SHAPES: dict[str, Callable[[], Operands]] = {
    build.__name__: build
    for build in (
        identity, permutation, dense_row, dense_column, square_of_dense_row, multiply_transposed, times_transposed, outer, inner,
        rectangular, full, compressing, power_law, smooth, galerkin, no_entries, nothing_met,
    )
}  # fmt: skip


@functools.cache
def make_operands(shape: str, dtype: str) -> Operands:
    A, B = SHAPES[shape]()
    return A.astype(dtype), B.astype(dtype)


def check(queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array, method: str = "auto") -> None:
    plan = spgemm_plan(csr_array(A, queue=queue), csr_array(B, queue=queue), method=method)
    for C in (spgemm(csr_array(A, queue=queue), csr_array(B, queue=queue), method=method), plan()):
        assert_product(C, A, B)
        assert C.has_canonical_format


@pytest.mark.parametrize("shape", SHAPES)
def test_auto(queue: cl.CommandQueue, real: np.dtype, shape: str) -> None:
    check(queue, *make_operands(shape, real.name))


@pytest.mark.parametrize("method", METHODS)
def test_every_method(queue: cl.CommandQueue, method: str) -> None:
    """On every second shape: `auto` takes all of them."""
    for shape in list(SHAPES)[list(METHODS).index(method) // 2 % 2 :: 2]:
        check(queue, *make_operands(shape, "float32"), method=method)


def test_empty_rows_at_both_ends(queue: cl.CommandQueue, real: np.dtype) -> None:
    A, B = empty_rows_at_both_ends()
    check(queue, A.astype(real), B.astype(real))


@pytest.mark.parametrize(("m", "k", "n"), list(itertools.product((0, 3), repeat=3)), ids=str)
def test_sizes_of_zero(queue: cl.CommandQueue, m: int, k: int, n: int) -> None:
    A, B = ones(m, k).astype(np.float32), ones(k, n).astype(np.float32)
    for method in ("auto", *METHODS):
        check(queue, A, B, method)
    C = csr_array(A, queue=queue) @ csr_array(B, queue=queue)
    assert C.shape == (m, n)
    assert C.nnz == (m * n if k else 0)


def test_triple_product(queue: cl.CommandQueue, real: np.dtype) -> None:
    A = grid(24).astype(real)
    P = prolongator(grid(24), rng()).astype(real)
    on_device, prolongation = csr_array(A, queue=queue), csr_array(P, queue=queue)
    coarse = prolongation.T @ (on_device @ prolongation)
    wanted = (P.T @ (A @ P)).toarray()
    np.testing.assert_allclose(coarse.toarray(), wanted, atol=1e3 * np.finfo(real).eps * np.abs(wanted).max())


def test_a_column_count_past_32_bits(queue: cl.CommandQueue) -> None:
    """Columns of B need 64 bits, and so do C's."""
    wide = 1 << 33
    A = sp.csr_array(np.array([[1, 0, 2], [0, 3, 0]], np.float32))
    B = sp.csr_array(
        (np.array([1, 2, 3, 4], np.float32), np.array([5, wide - 1, 7, wide - 1]), np.array([0, 2, 3, 4])), shape=(3, wide)
    )
    C = csr_array(A, queue=queue) @ csr_array(B, queue=queue)
    assert C.shape == (2, wide)
    assert C.indices.dtype == np.int64
    np.testing.assert_array_equal(C.indices.get(), [5, wide - 1, 7])
    np.testing.assert_array_equal(C.data.get(), [1, 10, 9])
