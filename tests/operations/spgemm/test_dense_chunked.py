"""Dense accumulators of CPU devices: words and groups of bits, short rows, rows like others, chunks, workers, listed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py._operations.spgemm import spgemm, spgemm_plan
from clsparse_py._operations.spgemm.arguments import types_of
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.methods import dense_chunked
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.request import Request


def make_plan(queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array, *bins: Bin, limit: int | None = None) -> SpgemmPlan:
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    return SpgemmPlan(left, right, Request(memory_limit=limit, bins=Bins((EMPTY, *bins))))


def whole(workers: int | None = None) -> Bin:
    return Bin("dense", DenseChunked(workers), takes_empty=True)


def check(queue: cl.CommandQueue, A: Any, B: Any, *bins: Bin) -> None:
    """Check a product, and one with the values of the plan."""
    A, B = (sp.csr_array(matrix).astype(np.float32) for matrix in (A, B))
    plan = make_plan(queue, A, B, *(bins or (whole(),)))
    assert_product(plan(), A, B)
    assert_product(plan(), A, B)


@pytest.mark.parametrize("column", [0, 63, 64, 4095, 4096, 262_143, 262_144])
def test_words_and_groups(queue: cl.CommandQueue, column: int) -> None:
    columns = np.unique(np.clip([0, column - 64, column - 1, column, column + 1, column + 64], 0, 262_145 + 64))
    for repeat in (1, 9):  # listed products, and bits
        B = sp.csr_array((np.ones(columns.size), (np.zeros(columns.size, int), columns)), shape=(1, 262_145 + 65))
        check(queue, np.ones((2, repeat)), sp.vstack([B] * repeat))


@pytest.mark.parametrize("products", [15, 16, 17, 31, 32, 33, 64])
def test_short_rows(queue: cl.CommandQueue, products: int) -> None:
    rng = np.random.default_rng(products)
    for distinct in (products // 2, 40, 5000):
        lengths = rng.multinomial(products, np.full(6, 1 / 6))
        B = rows_of(np.minimum(lengths, distinct), distinct, rng)
        check(queue, np.ones((30, 6)) * rng.integers(1, 4, (30, 6)), B)


def test_rows_like_the_one_before(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    line = sp.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 1], shape=(30, 30))
    grid = sp.csr_array(sp.kronsum(line, line))
    nodes = sp.csr_array(sp.kron(random_matrix((20, 20), 4, rng), np.ones((3, 3))))
    wide = sp.csr_array(sp.kron(random_matrix((20, 20), 4, rng), np.ones((5, 5))))
    for matrix in (grid, nodes, wide):
        matrix.data[:] = rng.integers(1, 5, matrix.nnz)
        check(queue, matrix, matrix)
    # Columns that follow those of the row before, where rows of B do not.
    check(queue, grid, random_matrix((900, 100), 3, rng))


def test_dense_rows_and_columns(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    check(queue, np.ones((3, 200)), random_matrix((200, 5000), 40, rng))
    check(queue, np.ones((200, 1)), random_matrix((1, 5000), 4000, rng))
    check(queue, random_matrix((300, 300), 90, rng), random_matrix((300, 4), 2, rng))


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("chunks", [1, 3, 1000])
def test_workers_and_chunks(queue: cl.CommandQueue, workers: int, chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_chunked, "_CHUNKS", chunks)
    rng = np.random.default_rng(0)
    A, B = random_matrix((150, 120), 8, rng), random_matrix((120, 300), 6, rng)
    check(queue, A, B, whole(workers))
    check(queue, A[:1], B, whole(workers))


def test_listed_rows(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    A, B = random_matrix((200, 100), 4, rng), random_matrix((100, 300), 7, rng)
    check(queue, A, B, Bin("short", DenseChunked(1), max_products=20), Bin("middle", DenseChunked(), max_products=40), whole(3))
    ones = sp.csr_array(np.ones((60, 10)))
    check(queue, sp.vstack([ones, sp.eye_array(10), ones]), B[:10], Bin("short", DenseChunked(), max_products=20), whole())


def test_room_for_fewer_workers(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(0)
    A, B = random_matrix((60, 40), 4, rng, np.float32), random_matrix((40, 64 * 100), 20, rng, np.float32)
    one = (64 * 100 + 40) * 4 + 8 * 102 + 8 * 40 + 4
    for limit, made in ((one, "chunks of rows"), (one - 1, "windows of columns")):
        plan = make_plan(queue, A, B, whole(), limit=limit)
        assert_product(plan(), A, B)
        assert plan.explain().bins[0].parameters.startswith(made)


def test_many_columns_make_no_gigabytes(queue: cl.CommandQueue) -> None:
    """More columns than there is room for: the rows are made by what needs none for each."""
    rng = np.random.default_rng(0)
    A = random_matrix((20, 30), 3, rng, np.float32)
    narrow = random_matrix((30, 50), 3, rng, np.float32)
    B = sp.csr_array((narrow.data, narrow.indices * 400_000, narrow.indptr), shape=(30, 20_000_000))
    C = spgemm(device_matrix(queue, A), device_matrix(queue, B), memory_limit=1 << 26)
    assert_product(C, A, B)


def test_names_of_columns_that_need_64_bits(queue: cl.CommandQueue) -> None:
    """Short rows are listed in 32 bits: not where columns need more, whatever they are."""
    A = device_matrix(queue, sp.csr_array(np.ones((2, 2), np.float32)), np.int64)
    types = types_of(A, A)
    assert not dense_chunked.DenseChunkedKernel(1, types.__class__("symbolic", "int64", wide=True), False).arguments()["short"]
    assert dense_chunked.DenseChunkedKernel(1, types.of("symbolic"), False).arguments()["short"]
    plan = spgemm_plan(A, A, method="dense")
    assert plan.nnz == 4
