"""ESC in global memory: slices, budgets, the kept order of products, and every shape of its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, random_matrix, rows_of
from scratch import count_buffers

from clsparse_py._build import programs
from clsparse_py._operations.spgemm import spgemm, spgemm_plan
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.methods.slices import Slice, cut_into_slices
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._precision.semiring import SEMIRINGS, Semiring, plus_times


def make_plan(
    queue: cl.CommandQueue, accumulator: Esc, A: sp.csr_array, B: sp.csr_array, limit: Any = None, semiring: Semiring = plus_times
) -> SpgemmPlan:
    """Return the plan of a product that one accumulator makes."""
    bins = Bins((EMPTY, Bin("esc", accumulator)))
    request = Request("esc", semiring, memory_limit=limit, bins=bins)
    return SpgemmPlan(device_matrix(queue, A), device_matrix(queue, B), request)


def slices_of(plan: SpgemmPlan) -> tuple[Slice, ...]:
    """Return the slices of the one step of a plan."""
    (step,) = plan._steps
    result: tuple[Slice, ...] = step.state.slices
    return result


@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_work_groups(queue: cl.CommandQueue, work_group: int) -> None:
    rng = np.random.default_rng(1)
    A, B = random_matrix((60, 50), 8, rng, np.float32), random_matrix((50, 70), 8, rng, np.float32)
    plan = make_plan(queue, Esc(work_group), A, B)
    assert_product(plan(), A, B)
    assert_product(plan(), A, B)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
def test_slices(queue: cl.CommandQueue, semiring: str, listed: bool) -> None:
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 30, 300) * (rng.random(300) < 0.9 if listed else 1)
    A, B = rows_of(lengths, 100, rng, np.float32), rows_of(rng.integers(1, 60, 100), 5000, rng, np.float32)
    whole = make_plan(queue, Esc(), A, B, semiring=SEMIRINGS[semiring])
    assert len(slices_of(whole)) == 1
    limit = 1 << 19
    plan = make_plan(queue, Esc(), A, B, limit, SEMIRINGS[semiring])
    parts = slices_of(plan)
    assert len(parts) > 3
    assert [part.begin for part in parts] == list(np.cumsum([0, *(part.n_rows for part in parts)])[:-1])
    assert sum(part.n for part in parts) == plan.n_products
    for C in (whole(), whole(), plan(), plan()):
        assert_product(C, A, B, SEMIRINGS[semiring])


def test_slices_stay_within_the_budget(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    A, B = rows_of(rng.integers(1, 30, 2000), 1000, rng, np.float32), rows_of(rng.integers(1, 60, 1000), 5000, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    for limit in (3 << 20, 10 << 20, 1 << 30):
        with count_buffers(monkeypatch) as allocations:
            C = spgemm(left, right, method="esc", memory_limit=limit)
        assert limit // 4 < allocations.peak(C) <= limit or limit == 1 << 30
        assert_product(C, A, B)


def test_slices_are_as_large_as_fits() -> None:
    products = np.concatenate(([0], np.cumsum([5, 5, 5, 100, 1, 1, 1])))
    entries = np.arange(8)
    result = list(cut_into_slices(entries, products, 10, lambda part: part.n, 100, 100))
    assert [(part.begin, part.n_rows, part.n_entries, part.n) for part in result] == [(0, 3, 3, 15), (3, 1, 1, 100), (4, 3, 3, 3)]
    with pytest.raises(
        MemoryError, match="100 intermediate products, whose expansion needs 100 bytes; the workspace may have 99"
    ):
        list(cut_into_slices(entries, products, 10, lambda part: part.n, 99, 99))
    # Row and column have to fit in 64 bits, and products in 31.
    assert [part.n_rows for part in cut_into_slices(entries, products, 62, lambda _: 0, 1, 1)] == [4, 3]
    with pytest.raises(MemoryError, match="and a slice 2,147,483,647 products"):
        list(cut_into_slices(entries, products << 30, 10, lambda _: 0, 1, 1))


def test_kept_order_is_not_made_again(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(5)
    A, B = random_matrix((200, 100), 8, rng, np.float32), random_matrix((100, 300), 8, rng, np.float32)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method="esc")
    with programs.recording() as built:
        C = plan()
    assert_product(C, A, B)
    assert {program.parameters.template for program in built} <= {
        f"spgemm/esc_{name}" for name in ("expand", "contract", "carry")
    }


@pytest.mark.parametrize("columns", [1, 40, 1 << 20])
def test_long_sums(queue: cl.CommandQueue, columns: int) -> None:
    # Entries of C with more products than tiles have, and one that ends where a tile does.
    rng = np.random.default_rng(6)
    A = rows_of([20_000, 1, 128 * 15, 0, 9000], 20_000, rng, np.float32)
    B = rows_of(np.ones(20_000, int), columns, rng, np.float32)
    if columns > 40:
        B.indices[:] = rng.choice((0, 5, columns - 1), B.nnz)
    for limit in (None, 2 << 20):
        plan = make_plan(queue, Esc(), A, B, limit)
        assert_product(plan(), A, B)
        assert_product(plan(), A, B)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "complex64"])
def test_values_of_any_size(queue: cl.CommandQueue, dtype: str) -> None:
    rng = np.random.default_rng(7)
    A, B = random_matrix((60, 500), 200, rng, dtype), random_matrix((500, 30), 12, rng, dtype)
    plan = make_plan(queue, Esc(), A, B)
    assert_product(plan(), A, B)
    assert_product(plan(), A, B)
