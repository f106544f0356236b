"""Row patterns in place of columns: taken behind some products, with results the same bit by bit, and left where rows differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import check, expected_product, host, random_values
from platforms import make_queue
from pyopencl import array as cl_array
from supposed import suppose

from clsparse_py import csr_array, min_plus, plus_times, spmv, spmv_plan
from clsparse_py._operations.spmv.choose import KernelChoice, Thresholds
from clsparse_py._operations.spmv.kernels import Chunked, FindPatterns
from clsparse_py._operations.spmv.plan import SpmvPlan

pytestmark = pytest.mark.any_platform
STAGED = KernelChoice("narrow", 64, items=4)


@pytest.fixture(autouse=True)
def small_ones_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row patterns are looked for, in few rows and entries, too."""
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, min_patterned_rows=1, max_patterned_row=64))
    monkeypatch.setattr(Chunked, "NARROW_FROM", 0)


def from_patterns(
    patterns: list[list[int]], rows: Any, n_cols: int, dtype: str = "float32", index: Any = np.int32
) -> sp.csr_array:
    """Return a matrix whose row i has ``patterns[rows[i]]``, as far as its columns go: it is empty if any lies outside."""
    inside = [[row + offset for offset in patterns[number]] for row, number in enumerate(rows)]
    columns = [row if all(0 <= column < n_cols for column in row) else [] for row in inside]
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in columns]))).astype(index)
    values = random_values(dtype, int(indptr[-1]), np.random.default_rng(3))
    indices = np.array([column for row in columns for column in row], index)
    return sp.csr_array((values, indices, indptr), shape=(len(columns), n_cols))


def on_device(matrix: sp.csr_array, queue: cl.CommandQueue) -> csr_array:
    """Return a matrix on the device, its entries in the order in which they are stored."""
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)


def settle(A: csr_array, x: cl_array.Array, kernel: Any, semiring: Any = plus_times) -> tuple[SpmvPlan, np.ndarray, np.ndarray]:
    """Return a plan, its first product, and a product after all upgrades."""
    plan = spmv_plan(A, kernel=kernel)
    first = spmv(A, x, plan=plan, semiring=semiring).get()
    plan._upgrade(now=True)
    return plan, first, spmv(A, x, plan=plan, semiring=semiring).get()


def is_patterned(plan: SpmvPlan) -> bool:
    """Return whether a plan says that its product takes row patterns."""
    share = plan.explain().shares[0]
    assert ("row patterns" in share.why) == ("patterned" in share.built)
    return "row patterns" in share.why


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("kernel", ["narrow", "serial", "subvector8"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int8", "int64", "bool"])
def test_products_are_the_same_bit_by_bit(
    queue: cl.CommandQueue, dtype: str, kernel: str, real: np.dtype, take_as: Callable[..., None]
) -> None:
    """Rows are unsorted, with duplicates, empty at the margins, and the matrix is wider than high."""
    if real == np.float32 and dtype in ("float64", "complex128"):
        pytest.skip("the device has no double precision")
    take_as(type="gpu")
    rng = np.random.default_rng(4)
    patterns = [rng.integers(-40, 90, rng.integers(0, 12)).tolist() for _ in range(50)]
    matrix = from_patterns(patterns, rng.integers(0, 50, 700), 731, dtype, (np.int32, np.int64)[len(dtype) % 2])
    A, x = on_device(matrix, queue), random_values(dtype, 731, rng)
    plan, first, second = settle(A, cl_array.to_device(queue, x), STAGED if kernel == "narrow" else kernel)
    assert is_patterned(plan)
    check(first, expected_product(host(matrix), x))
    same_bits(first, second)
    same_bits(first, plan.bind(A, cl_array.to_device(queue, x), cl_array.zeros(queue, 700, first.dtype))().get())


@pytest.mark.parametrize("length", [7, 27, 64])
def test_several_lanes_share_a_row(queue: cl.CommandQueue, length: int) -> None:
    """Most rows are long, so that lanes share them: four to eight, or as many as work-groups allow."""
    matrix = from_patterns([list(range(length)), [0, 3], []], [0, 0, 0, 1, 0, 0, 2, 0, 0] * 60, 610)
    A, x = on_device(matrix, queue), cl_array.to_device(queue, random_values("float32", 610, np.random.default_rng(6)))
    plan, first, second = settle(A, x, STAGED)
    assert is_patterned(plan)
    check(first, expected_product(host(matrix), x.get()))
    same_bits(first, second)
    y = cl_array.to_device(queue, np.ones(540, np.float32))
    scaled = [spmv(A, x, alpha=2, beta=-1, out=y.copy(), plan=plan).get()]
    plan._upgrade(now=True)
    same_bits(scaled[0], spmv(A, x, alpha=2, beta=-1, out=y.copy(), plan=plan).get())
    _, first, second = settle(A, x, STAGED, min_plus)
    same_bits(first, second)


@pytest.mark.parametrize("n_patterns", [256, 257])
def test_there_are_at_most_256(queue: cl.CommandQueue, n_patterns: int) -> None:
    rng = np.random.default_rng(n_patterns)
    patterns = [[-(i % 16), i // 16] for i in range(n_patterns)]
    rows = rng.permutation(np.concatenate((np.arange(n_patterns).repeat(3), np.zeros(16, int))))
    rows[:16] = 0
    matrix = from_patterns(patterns, rows, rows.size + 20)
    A, x = on_device(matrix, queue), cl_array.to_device(queue, random_values("float32", rows.size + 20, rng))
    plan, first, second = settle(A, x, STAGED)
    offsets = np.split(matrix.indices - np.repeat(np.arange(rows.size), np.diff(matrix.indptr)), matrix.indptr[1:-1])
    assert len(set(map(tuple, offsets))) == n_patterns
    assert is_patterned(plan) == (n_patterns == 256)
    check(first, expected_product(host(matrix), x.get()))
    same_bits(first, second)


def slot_of(pattern: list[int]) -> int:
    """Return the slot where the search for a pattern begins, as find_patterns.mako has it."""
    hashed = len(pattern)
    for offset in pattern:
        hashed = (hashed ^ (offset & 0xFFFFFFFF)) * 2654435769 & 0xFFFFFFFF
        hashed ^= hashed >> 15
    return hashed % FindPatterns.MAX_PATTERNS


def test_patterns_of_one_hash_are_told_apart(queue: cl.CommandQueue) -> None:
    """The search for all patterns begins in the last slot, from where it goes on in the first."""
    rng = np.random.default_rng(1)
    drawn = (rng.integers(0, 60, 3).tolist() for _ in range(100_000))
    patterns = list({tuple(pattern): pattern for pattern in drawn if slot_of(pattern) == FindPatterns.MAX_PATTERNS - 1}.values())
    patterns = patterns[:200]
    assert len(patterns) == 200
    matrix = from_patterns(patterns, rng.integers(0, 200, 1500), 1560)
    A, x = on_device(matrix, queue), cl_array.to_device(queue, random_values("float32", 1560, rng))
    plan, first, second = settle(A, x, STAGED)
    assert is_patterned(plan)
    check(first, expected_product(host(matrix), x.get()))
    same_bits(first, second)


def test_other_rows_keep_their_columns(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are too long, too few, or far longer than most, a matrix without entries, and thresholds as they are declared."""
    x = cl_array.to_device(queue, np.ones(300, np.float32))
    for patterns, rows in (
        ([list(range(65))], np.zeros(200, int)),
        ([[0], list(range(60))], [int(row == 9) for row in range(200)]),
        ([[]], np.zeros(200, int)),
    ):
        A = on_device(from_patterns(patterns, rows, 300), queue)
        plan, first, second = settle(A, x, STAGED)
        assert not is_patterned(plan)
        same_bits(first, second)
    A = on_device(from_patterns([[0, 1]], np.zeros(200, int), 300), queue)
    assert is_patterned(settle(A, x, STAGED)[0])
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, min_patterned_rows=201))
    assert not is_patterned(settle(A, x, STAGED)[0])
    monkeypatch.undo()
    assert not is_patterned(settle(A, x, STAGED)[0])


def test_new_values_keep_them(queue: cl.CommandQueue) -> None:
    matrix = from_patterns([[0, 1, 5], [-1, 0]], np.arange(400) % 2, 410)
    A, x = on_device(matrix, queue), random_values("float32", 410, np.random.default_rng(2))
    operand = cl_array.to_device(queue, x)
    plan, *_ = settle(A, operand, STAGED)
    matrix.data = random_values("float32", matrix.nnz, np.random.default_rng(8))
    A.data[:] = cl_array.to_device(queue, matrix.data)
    check(spmv(A, operand, plan=plan).get(), expected_product(host(matrix), x))
    A.data = cl_array.to_device(queue, 2 * matrix.data)
    check(spmv(A, operand, plan=plan).get() / 2, expected_product(host(matrix), x))
    assert is_patterned(plan)


def test_products_on_two_queues_take_them_after_some_calls(queue: cl.CommandQueue) -> None:
    """Calls alternate between two queues; those behind the 32nd take row patterns, as soon as these are found."""
    other = make_queue(queue, 0)
    matrix = from_patterns([[0, 1, 5], [-1, 0]], np.arange(3000) % 2, 3010)
    A, x = on_device(matrix, queue), random_values("float32", 3010, np.random.default_rng(2))
    operands, plan = [cl_array.to_device(on, x) for on in (queue, other)], spmv_plan(A, kernel=STAGED)
    results = []
    for i in range(80):
        results.append(spmv(A, operands[i % 2], plan=plan).get())
        A.queue.finish()
    assert is_patterned(plan)
    for result in results:
        same_bits(results[0], result)
    check(results[0], expected_product(host(matrix), x))
