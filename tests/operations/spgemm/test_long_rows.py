"""Long rows by segmented merge: slices, budgets, rows with many sub-segments and with long ones."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from problems import assert_product, device_matrix, random_matrix, rows_of
from scratch import count_buffers
from test_esc import make_plan, slices_of

from clsparse_py._build import programs
from clsparse_py._operations.spgemm import spgemm_plan
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._precision.semiring import SEMIRINGS


@pytest.mark.parametrize("work_group", [1, 7, 48, 1 << 20])
def test_work_groups(queue: cl.CommandQueue, work_group: int) -> None:
    rng = np.random.default_rng(1)
    A, B = random_matrix((60, 50), 8, rng, np.float32), random_matrix((50, 70), 8, rng, np.float32)
    plan = make_plan(queue, Esc(work_group, merges=True), A, B)
    assert_product(plan(), A, B)
    assert_product(plan(), A, B)


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("limit", [None, 2 << 20])
def test_long_rows(queue: cl.CommandQueue, semiring: str, limit: int | None) -> None:
    # Rows of 20,000 products: of many short rows of B, of few long ones, and of empty ones between.
    rng = np.random.default_rng(2)
    B = rows_of([5000] * 4 + [0, 3, 10, 0, 8] * 1000, 9000, rng, np.float32)
    A = rows_of([4, 2800, 5004, 1, 700], 5004, rng, np.float32)
    A.indices[:4] = np.arange(4)
    plan = make_plan(queue, Esc(merges=True), A, B, limit, SEMIRINGS[semiring])
    assert (len(slices_of(plan)) > 1) == (limit is not None)
    assert_product(plan(), A, B, SEMIRINGS[semiring])
    assert_product(plan(), A, B, SEMIRINGS[semiring])


def test_merged_and_not_sorted(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    A, B = random_matrix((200, 100), 8, rng, np.float32), random_matrix((100, 300), 8, rng, np.float32)
    with programs.recording() as built:
        plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method="long-rows")
    assert not any(program.parameters.name.startswith("radix_scatter_words") for program in built)
    with programs.recording() as built:
        C = plan()
    assert_product(C, A, B)
    assert {program.parameters.template for program in built} <= {
        f"spgemm/esc_{name}" for name in ("expand", "contract", "carry")
    }


def test_memory_is_spared(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    A, B = rows_of(rng.integers(1, 60, 2000), 1000, rng, np.float32), rows_of(rng.integers(1, 90, 1000), 5000, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    most = {}
    for accumulator in (Esc(), Esc(bounded=True), Esc(bounded=True, merges=True)):
        with count_buffers(monkeypatch) as allocations:
            C = make_plan(queue, accumulator, A, B)()
        assert_product(C, A, B)
        most[accumulator] = allocations.peak(C)
    arrays = sum(part.nbytes for matrix in (left, right, C) for part in (matrix.data, matrix.indices, matrix.indptr))
    reference, *spared = most.values()
    assert max(spared) <= 2 * arrays < reference


def test_order_is_kept_where_memory_allows(queue: cl.CommandQueue) -> None:
    # Slices are sized by A and B; what is kept of them, by C too.
    rng = np.random.default_rng(6)
    A, B = rows_of(rng.integers(1, 60, 3000), 1000, rng, np.float32), rows_of(rng.integers(1, 90, 1000), 9000, rng, np.float32)
    plan = make_plan(queue, Esc(bounded=True, merges=True), A, B)
    assert len(slices_of(plan)) > 2
    plan()
    with programs.recording() as built:
        C = plan()
    assert_product(C, A, B)
    assert {program.parameters.template for program in built} == {
        f"spgemm/esc_{name}" for name in ("expand", "contract", "carry")
    }
