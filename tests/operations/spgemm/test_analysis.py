"""The analysis and the guess, as CPU devices and as GPUs run them, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, rows_of

from clsparse_py._build import programs
from clsparse_py._operations.spgemm import analysis, spgemm, spgemm_plan
from clsparse_py._operations.spgemm.analysis import analyse
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.kernels import Analysis
from clsparse_py._operations.transpose import transpose
from clsparse_py._run.launch import Chain

BINS = Bins(
    (
        EMPTY,
        Bin("few", None, max_products=6),
        Bin("narrow", None, max_span=64),
        Bin("short", None, max_length=9),
        Bin("", None),
    )
)


def work_and_bins(A: sp.csr_array, B: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Products of each row, the bin that takes it, and min(products, columns, span); "few" takes rows whatever their span is."""
    lengths, products, bins, bounds = np.diff(B.indptr), [], [], []
    for row in range(A.shape[0]):
        of_a = A.indices[A.indptr[row] : A.indptr[row + 1]]
        columns = np.concatenate([B.indices[B.indptr[k] : B.indptr[k + 1]] for k in of_a] or [np.zeros(0, np.int32)])
        n = int(lengths[of_a].sum())
        span = int(columns.max() - columns.min() // 32 * 32) + 1 if n else 0
        limits = zip((n, len(of_a), span), zip(*(bin_.limits for bin_ in BINS), strict=True), strict=True)
        holds = np.all([[most < 0 or value <= most for most in of_bins] for value, of_bins in limits], axis=0)
        products.append(n)
        bins.append(int(np.argmax(holds)))
        bounds.append(min(n, B.shape[1], span if n > 6 else n))
    return np.array(products), np.array(bins), np.array(bounds)


@pytest.mark.parametrize("device_type", ["cpu", "gpu"])
@pytest.mark.parametrize("work_group", [1, 48, 128])
@pytest.mark.parametrize("long_row", [0, 3, 700])
def test_analysis(queue: cl.CommandQueue, take_as: Callable[..., None], device_type: str, work_group: int, long_row: int) -> None:
    rng = np.random.default_rng(long_row)
    lengths = rng.integers(0, 12, 300)
    lengths[[17, 250]] = long_row
    A, B = rows_of(lengths, 800, rng, np.float32), rows_of(rng.integers(0, 7, 800), 500, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    take_as(type=device_type)
    structure = left.indptr, left.indices, right.indptr, right.indices
    result = analyse(Chain(queue, *structure), (300, 500), A.nnz, structure, BINS, work_group)
    products, bins, bounds = work_and_bins(A, B)
    np.testing.assert_array_equal(result.products.get()[:300], products)
    np.testing.assert_array_equal(result.bin.get()[:300], bins)
    work = result.work
    assert (work.n_products, work.max_products) == (products.sum(), products.max())
    assert (work.longest_row, work.bound) == (lengths.max(), bounds.sum())
    assert work.taken == tuple(np.bincount(bins, minlength=len(BINS)))
    assert 1 <= work.compression <= 12


def test_one_kernel_serves_all_rules(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    A = rows_of(rng.integers(0, 12, 300), 300, rng, np.float32)
    left = device_matrix(queue, A)
    structure = left.indptr, left.indices, left.indptr, left.indices
    copied: list[Any] = []
    constants = analysis.constants

    def counted(queue: cl.CommandQueue, host: np.ndarray) -> cl.Buffer:
        copied.append(host)
        return constants(queue, host)

    monkeypatch.setattr(analysis, "constants", counted)
    few, many = Bins((EMPTY, Bin("", None))), range(1, Analysis.MAX_BINS - 1)
    most = Bins((EMPTY, *(Bin("", None, max_products=n) for n in many), Bin("", None)))
    with programs.recording() as asked:
        results = [analyse(Chain(queue, *structure), (300, 300), A.nnz, structure, bins) for bins in (few, most, few, most)]
    taken = [result.work.taken for result in results]
    assert len({program for program in asked if isinstance(program.parameters, Analysis)}) == 1
    # The limits of bins are copied once, not in each call.
    assert len(copied) == 2
    products = np.diff(A.indptr)[A.indices]
    of_rows = np.add.reduceat(np.append(products, 0), A.indptr[:-1]) * (np.diff(A.indptr) > 0)
    assert taken[0] == taken[2] == (sum(of_rows == 0), sum(of_rows > 0))
    assert taken[1] == taken[3] == tuple(np.bincount(np.minimum(of_rows, len(most) - 1), minlength=len(most)))


@pytest.mark.parametrize("copies", [1, 4])
def test_a_sample_tells_how_much_compresses(queue: cl.CommandQueue, take_as: Callable[..., None], copies: int) -> None:
    rng = np.random.default_rng(1)
    # Rows of A name rows of B that are alike, so that each column is met as often as there are such rows.
    A = sp.csr_array(sp.kron(sp.eye_array(100), np.ones((1, copies))), dtype=np.float32)
    B = sp.csr_array(sp.kron(rows_of(np.full(100, 5), 900, rng, np.float32), np.ones((copies, 1))), dtype=np.float32)
    left, right = (device_matrix(queue, sp.csr_array(matrix)) for matrix in (A, B))
    take_as(type="gpu")
    structure = left.indptr, left.indices, right.indptr, right.indices
    assert analyse(Chain(queue, *structure), (100, 900), A.nnz, structure, BINS).work.compression == copies


@pytest.mark.parametrize("wrong", ["nothing", "a long row of A", "a long row of B", "many products"])
def test_a_guess_knows_whether_it_was_right(queue: cl.CommandQueue, take_as: Callable[..., None], wrong: str) -> None:
    # Of what was transposed the longest row is not known.
    rng = np.random.default_rng(2)
    lengths, of_b = rng.integers(3, 6, 5000), rng.integers(0, 6, 4000)
    if wrong == "a long row of A":
        lengths[4321] = 40
    if wrong == "a long row of B":
        of_b[7] = 300
    if wrong == "many products":
        of_b[:] = 90
    A, B = rows_of(lengths, 4000, rng, np.float32), rows_of(of_b, 3000, rng, np.float32)
    if wrong == "a long row of B":
        A.indices[A.indptr[4321]] = 7
        A.sum_duplicates()
    left, right = (transpose(device_matrix(queue, sp.csr_array(matrix.T))) for matrix in (A, B))
    take_as(type="gpu")
    plan = spgemm_plan(left, right)
    assert_product(plan(), A, B)
    assert plan.n_products == np.diff(B.indptr)[A.indices].sum()
    assert (plan.explain().rule == "rows of A are short or alike: made as they come, with no analysis") == (wrong == "nothing")


@pytest.mark.parametrize(("copies", "compresses"), [(4, True), (1, False)])
def test_rows_that_are_alike_need_no_analysis(
    queue: cl.CommandQueue, take_as: Callable[..., None], copies: int, compresses: bool
) -> None:
    rng = np.random.default_rng(3)
    # Rows of 16 to 20 entries in fours of neighbours, which name as many rows of B, `copies` of which are alike.
    A = sp.csr_array(sp.kron(rows_of(rng.integers(4, 6, 1000), 1000, rng), np.ones((1, 4))), dtype=np.float32)
    B = sp.csr_array(sp.kron(rows_of(np.full(4000 // copies, 10), 3000, rng), np.ones((copies, 1))), dtype=np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    take_as(type="gpu")
    plan = spgemm_plan(left, right)
    assert_product(plan(), A, B)
    assert plan.n_products == np.diff(B.indptr)[A.indices].sum()
    # What does not compress is analysed after all.
    assert (plan.explain().rule == "rows of A are short or alike: made as they come, with no analysis") == compresses


@pytest.mark.parametrize("m", [7679, 7680, 11519, 11520, 11521])
@pytest.mark.parametrize("copies", [1, 4])
def test_a_guess_counts_what_tells_where_rows_begin(
    queue: cl.CommandQueue, take_as: Callable[..., None], m: int, copies: int
) -> None:
    rng = np.random.default_rng(4)
    # By one work-item to a row, or by several, of which a few rows make a work-group.
    A = sp.csr_array(sp.kron(rows_of(rng.integers(0, 4, m) + copies - 1, 600, rng), np.ones((1, copies))), dtype=np.float32)
    B = sp.csr_array(sp.kron(rows_of(np.full(600, 2), 500, rng), np.ones((copies, 1))), dtype=np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    take_as(type="gpu")
    with programs.recording() as built:
        C = spgemm(left, right)
    names = {type(program.parameters).__name__ for program in built}
    assert "Analysis" not in names
    assert "TileSums" not in names
    assert_product(C, A, B)
