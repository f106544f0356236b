"""The optimised ESC: bins and thresholds, words with and without room for a product's number, every shape of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from platforms import PLATFORMS
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py import csr_array, describe, spgemm
from clsparse_py._build import programs
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins, Setting
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.esc_local import EscGroup, EscItem, EscTeam, esc_bins, esc_local
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import bins_for
from clsparse_py._operations.spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS, Semiring, plus_times
from clsparse_py._run.launch import Chain

DOUBLE = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")


def make_plan(
    queue: cl.CommandQueue, bins: tuple[Bin, ...], A: sp.csr_array, B: sp.csr_array, semiring: Semiring = plus_times
) -> SpgemmPlan:
    """Return the plan of a product by bins, after comparing what it makes."""
    request = Request("esc-local", semiring, bins=Bins((EMPTY, *bins)))
    plan = SpgemmPlan(device_matrix(queue, A), device_matrix(queue, B), request)
    assert_product(plan(), A, B, semiring)
    assert_product(plan(), A, B, semiring)
    return plan


def only(accumulator: EscGroup | EscItem | EscTeam) -> tuple[Bin, ...]:
    return (Bin("esc-local", accumulator),)


@pytest.mark.parametrize("columns", [None, 1 << 33, 1 << 20])
@pytest.mark.parametrize("products", [1, 2, 3, 8, 16, 17, 32])
def test_items(queue: cl.CommandQueue, products: int, columns: int | None) -> None:
    rng = np.random.default_rng(products)
    A, B = rows_of(rng.integers(0, products + 1, 100), 300, rng, np.float32), rows_of(np.arange(300) % 2, 8, rng, np.float32)
    make_plan(queue, only(EscItem(products, columns=columns)), A, B)
    # Few rows of B, and long ones.
    A, B = rows_of(rng.integers(0, 2, 100), 300, rng, np.float32), rows_of(np.arange(300) % (products + 1), 99, rng, np.float32)
    make_plan(queue, only(EscItem(products, columns=columns)), A, B)


@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_work_groups(queue: cl.CommandQueue, work_group: int) -> None:
    rng = np.random.default_rng(1)
    A, B = rows_of(rng.integers(0, 9, 100), 50, rng, np.float32), rows_of(rng.integers(0, 5, 50), 90, rng, np.float32)
    make_plan(queue, only(EscItem(32, work_group)), A, B)
    make_plan(queue, only(EscTeam(100, work_group)), A, B)


@pytest.mark.parametrize("columns", [None, 1 << 20])
@pytest.mark.parametrize("lanes", [1, 8, 32, 256])
def test_teams(queue: cl.CommandQueue, lanes: int, columns: int | None) -> None:
    rng = np.random.default_rng(lanes)
    lengths = np.concatenate((rng.integers(0, 60, 30), (1, 0, 300, 299, 2)))
    A, B = rows_of(lengths, 300, rng, np.float32), rows_of(np.arange(300) % 6, 40, rng, np.float32)
    make_plan(queue, only(EscTeam(750, lanes=lanes, columns=columns)), A, B)
    # One entry of C alone, whose products all lanes hold.
    B = rows_of(np.ones(300, int), 1, rng, np.float32)
    make_plan(queue, only(EscTeam(750, lanes=lanes, columns=columns)), A, B)


@pytest.mark.parametrize("width", [1, 2])
def test_narrow_lanes(queue: cl.CommandQueue, width: int, narrow_lanes: Callable[[int], None]) -> None:
    narrow_lanes(width)
    rng = np.random.default_rng(2)
    A, B = random_matrix((60, 50), 8, rng, np.float32), random_matrix((50, 70), 8, rng, np.float32)
    make_plan(queue, only(EscTeam(736)), A, B)


@pytest.mark.parametrize("columns", [None, 1 << 20])
@pytest.mark.parametrize("work_group", [1, 64, 256, 1 << 20])
def test_groups_in_global_memory(
    queue: cl.CommandQueue, take_as: Callable[..., None], work_group: int, columns: int | None
) -> None:
    if "Portable" in queue.device.platform.name and work_group > 1:
        pytest.skip("quirk 4: on CPU devices the work-items that meet in loops of any length are one")
    take_as(type="gpu")
    rng = np.random.default_rng(work_group)
    # More rows than work-groups, so that these take several; rows without products, or of one entry of A, among them.
    lengths = np.concatenate((rng.integers(0, 30, 200), (1, 0, 300, 299, 2)))
    A, B = rows_of(lengths, 300, rng, np.float32), rows_of(np.arange(300) % 6, 40, rng, np.float32)
    make_plan(queue, only(EscGroup(750, work_group, columns=columns, entries=300)), A, B)
    # One entry of C alone, whose products all lanes hold.
    B = rows_of(np.ones(300, int), 1, rng, np.float32)
    make_plan(queue, only(EscGroup(300, work_group, columns=columns, entries=300)), A, B)


def test_groups_take_what_local_memory_does_not_hold(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(6)
    A, B = rows_of((3, 900, 0, 10), 1000, rng, np.float32), rows_of(np.full(1000, 12), 5000, rng, np.float32)
    device = replace(describe(queue.device), local_memory=48 << 10)
    *_, group, last = esc_local(Setting(device, DOUBLE, limits()))
    assert isinstance(group.accumulator, EscGroup)
    assert last.takes_all
    plan = make_plan(queue, (*esc_local(Setting(device, DOUBLE, limits()))[:2], group, last), A, B)
    assert [bin_.n_rows for bin_ in plan.explain().bins if "global memory, a work-group" in bin_.parameters] == [1]
    # Where the workspace has no room for one work-group's, others take such a row.
    named = [bin_.accumulator for bin_ in bins_for("esc-local", device, DOUBLE, 5000, group.min_bytes - 1)]
    assert not any(isinstance(name, EscGroup) for name in named)


def test_rows_in_global_memory_are_made_beside_others(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_as(type="gpu")
    # Quirk 4.
    work_group = 1 if "Portable" in queue.device.platform.name else 64
    asked: list[bool] = []
    side_queue = Chain.side_queue

    def recorded(chain: Chain, wanted: bool = True) -> Any:
        asked.append(wanted)
        return side_queue(chain, wanted)

    monkeypatch.setattr(Chain, "side_queue", recorded)
    rng = np.random.default_rng(11)
    lengths = np.concatenate((rng.integers(0, 5, 500), (200, 150, 200)))
    A, B = rows_of(lengths, 300, rng, np.float32), rows_of(np.full(300, 4), 2000, rng, np.float32)
    esc = esc_local(Setting(describe(queue.device), DOUBLE, limits()))[-1]
    bins = (Bin("esc-local", EscItem(32), 32, 32), Bin("esc-local", EscGroup(1000, work_group, entries=300), 1000, 300), esc)
    make_plan(queue, bins, A, B)
    # The symbolic and the numeric phase, and that of other values.
    assert asked == [True] * 3


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(("bits", "k"), [(50, 8000), (51, 8000), (60, 20)])
def test_columns_that_leave_no_room_for_numbers(
    queue: cl.CommandQueue, bits: int, k: int, device: str, take_as: Callable[..., None]
) -> None:
    # Bins for GPUs have limits of spans, and these are wider than 32 bits.
    take_as(type=device)
    width = 1 << bits
    columns = np.where(np.arange(k) % 2, width - 1, width // 2 - 1).astype(np.int64)
    A = sp.csr_array((np.ones(k, np.float32), np.arange(k), np.array([0, k])), shape=(1, k))
    B = sp.csr_array((np.ones(k, np.float32), columns, np.arange(k + 1, dtype=np.int64)), shape=(k, width))
    for method in ("esc-local", "reg-sort"):
        C = spgemm(csr_array(A, queue=queue), csr_array(B, queue=queue), method=method).get()
        np.testing.assert_array_equal(C.indices, [width // 2 - 1, width - 1])
        np.testing.assert_array_equal(C.data, [k / 2, k / 2])


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_semirings(queue: cl.CommandQueue, semiring: str) -> None:
    rng = np.random.default_rng(3)
    # Items have all semirings among the axes of their method, whose rows are short.
    A, B = random_matrix((60, 500), 50, rng, np.float32), random_matrix((500, 30), 2, rng, np.float32)
    make_plan(queue, only(EscTeam(736)), A, B, SEMIRINGS[semiring])


def limits(of_item: int = 32, of_team: int = 736, of_group: int = 6144) -> Thresholds:
    """Thresholds with these bins."""
    result = thresholds_of(describe(next(iter(PLATFORMS.values()))), DOUBLE)
    return replace(result, esc_item_products=of_item, esc_team_products=of_team, esc_group_products=of_group)


@pytest.mark.parametrize("thresholds", [(1, 2, 3), (32, 736, 6144), (32, 5000, 60000)])
def test_thresholds(queue: cl.CommandQueue, thresholds: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(4)
    lengths = (0, 1, 2, 3, 4, 5, 10, 16, 17, 32, 33, 150, 400, 900)
    A, B = rows_of(lengths, 1000, rng, np.float32), rows_of(np.arange(1000) % 20, 1000, rng, np.float32)
    device = describe(queue.device)
    plan = make_plan(queue, esc_local(Setting(device, DOUBLE, limits(*thresholds))), A, B)
    products = np.diff(B.indptr)[A.indices]
    products = np.add.reduceat(np.append(products, 0), A.indptr[:-1]) * (np.diff(A.indptr) > 0)
    for bin_ in plan.explain().bins:
        assert bin_.method == "esc-local"
        limit = bin_.max_products
        assert limit is None or bin_.n_rows <= np.count_nonzero(products <= limit)
    assert sum(bin_.n_rows for bin_ in plan.explain().bins) == np.count_nonzero(products)


def test_bins_follow_the_thresholds(queue: cl.CommandQueue) -> None:
    device = replace(describe(queue.device), local_memory=48 << 10)
    bins = esc_bins(device, DOUBLE, limits(30, 700, 900))
    assert [type(bin_) for bin_ in bins][:2] == [EscItem, EscTeam]
    assert bins[0].products == 30
    assert {700, 900} <= {bin_.products for bin_ in bins}
    # No more than local memory holds, with as many columns as there may be.
    *_, widest, packed, group = esc_bins(device, DOUBLE, limits(32, 736, 60_000))
    assert isinstance(group, EscGroup)
    assert group.record(device, DOUBLE, listed=True).row_bytes <= device.local_memory
    assert widest.max_columns(device, DOUBLE) > 1 << 50
    assert widest.record(device, DOUBLE, listed=True).row_bytes <= device.local_memory
    most = packed.max_columns(device, DOUBLE)
    assert most is not None
    assert replace(packed, columns=most).record(device, DOUBLE, listed=True).row_bytes <= device.local_memory
    assert packed.products > widest.products
    assert esc_bins(device, replace(DOUBLE, wide=True), limits(32, 736, 60_000))[-2] == widest
    largest = [bins_for("esc-local", device, DOUBLE, columns)[-3].max_products for columns in (most, most + 1)]
    assert largest == [packed.products, widest.products]
    for wrong in ((0, 10, 20), (33, 100, 200), (32, 32, 100), (4, 3, 10), (1, 2, 1 << 16)):
        with pytest.raises(ValueError, match=r"^esc_\w+.*: must "):
            limits(*wrong)


def test_rows_are_not_reordered_where_all_are_short(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(5)
    # Rows without products among them.
    A, B = rows_of(rng.integers(0, 5, 100), 50, rng, np.float32), rows_of(rng.integers(0, 8, 50), 90, rng, np.float32)
    with programs.recording() as built:
        make_plan(queue, esc_local(Setting(describe(queue.device), DOUBLE, limits())), A, B)
    of_rows = [program.parameters for program in built if program.parameters.template == "spgemm/esc_item"]
    assert of_rows
    assert not any(kernel.listed for kernel in of_rows)
    assert not any("radix" in program.parameters.template for program in built)


def test_words_hold_numbers_where_columns_leave_room(queue: cl.CommandQueue) -> None:
    device = describe(queue.device)
    for columns, word_bytes in ((1 << 22, 4), ((1 << 22) + 1, 8), (None, 8)):
        assert EscTeam(736, columns=columns).record(device, DOUBLE, listed=True).word_bytes == word_bytes
    assert EscTeam(736).record(device, DOUBLE.of("symbolic"), listed=True).word_bytes == 4
