"""Decisions before rows are analysed, on made-up features: no device is used."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_products import PLENTY, TYPES, device, kind_on, limits, square

from clsparse_py._build.plain import explain_plain, plainly
from clsparse_py._device.device import Portability
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.decide import Decision, decide, is_uneven, speculation_for, staged_entries
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import PLAIN, parse

GRID = square(10**6, 5, 5, adjacent=0.4)


def decide_grid(request: Request, on: str = "gpu", budget: Budget = PLENTY) -> Decision:
    """Return the decision for a grid on a made-up device."""
    return decide(kind_on(on), GRID, request, budget)


def test_bins_that_are_given_are_the_bins() -> None:
    bins = Bins((EMPTY, Bin("mine", Esc())))
    result = decide_grid(Request(bins=bins))
    assert (result.bins, str(result.reason)) == (bins, "the bins were given")
    assert (result.is_auto, result.may_skip_counting, result.is_uneven) == (False, False, False)
    assert str(decide_grid(Request(bins=bins, why="for a reason")).reason) == "for a reason"


def test_a_named_method_has_its_bins_first() -> None:
    result = decide_grid(Request("hash"))
    assert (result.bins[1].method, str(result.reason)) == ("hash", "the method was named")
    assert (result.is_auto, result.may_skip_counting) == (False, False)


def test_the_profile_or_a_strategy_gives_the_bins_of_auto() -> None:
    result, given = decide_grid(Request()), decide_grid(Request(strategy=parse("esc-local")))
    assert result.reason.ruling is not None
    assert {bin_.method for bin_ in result.bins[1:]} <= {
        entry.method.removesuffix("-span") for entry in result.reason.ruling.value.entries
    }
    assert ({bin_.method for bin_ in given.bins[1:]}, str(given.reason)) == ({"esc-local"}, "the strategy was given")
    for decision in (result, given):
        assert decision.is_auto
        assert decision.may_skip_counting


def test_rows_are_counted_if_someone_asks_for_their_number() -> None:
    assert not decide_grid(Request(max_nnz=10)).may_skip_counting
    assert not decide_grid(Request(values_later=True)).may_skip_counting


def test_an_accumulator_as_wide_as_b_has_to_fit() -> None:
    assert [bin_.method for bin_ in decide_grid(Request(), on="cpu").bins[1:]] == ["dense"]
    for budget in (Budget(1 << 40, 1 << 20), Budget(1 << 20, 1 << 40)):
        assert "dense" not in {bin_.method for bin_ in decide_grid(Request(), on="cpu", budget=budget).bins}


@pytest.mark.parametrize("on", ["cpu", "gpu"])
def test_plain_kernels_make_all_rows_whatever_is_asked_for(on: str) -> None:
    assert speculation_for(kind_on("gpu"), GRID) is not None
    kind = Kind(plainly(device(on)), TYPES)
    assert speculation_for(kind, GRID) is None
    for request in (Request(), Request("hash"), Request(strategy=parse("esc-local"))):
        result = decide(kind, GRID, request, PLENTY)
        assert (result.bins, str(result.reason)) == (PLAIN, explain_plain(request.method))
        assert (result.is_auto, result.may_skip_counting, result.is_uneven) == (False, False, False)
    given = Bins((EMPTY, Bin("mine", Esc())))
    assert decide(kind, GRID, Request(bins=given), PLENTY).bins is given


@pytest.mark.parametrize(
    ("kind", "adjacent", "inputs"), [("gpu", 0.4, 512), ("gpu", 0.2, 0), ("gpu", 0.0, 0), ("cpu", 0.4, 0), ("gpu", None, 0)]
)
def test_rows_of_b_are_staged_where_neighbours_share_them(kind: str, adjacent: float | None, inputs: int) -> None:
    known = None if adjacent is None else Facts(5000, True, True, 5, int(adjacent * 5000))
    features = Features((1000, 1000, 1000), (5000, 5000), known)
    # Three lines of a grid: of 32 rows of A, 32 of B each, and two beside.
    assert staged_entries(kind_on(kind), features) == inputs
    local = replace(device(kind), portability=Portability())
    assert staged_entries(Kind(local, TYPES), features) == 0


@pytest.mark.parametrize(
    ("kind", "n_rows", "mean_row", "mean_products", "longest", "adjacent", "capacity"),
    [
        ("gpu", 10**6, 5, 25, None, 0, 8),
        ("gpu", 10**6, 5, 25, (5, 5), 0, 5),
        ("gpu", 10**6, 9, 81, None, 0, None),
        ("gpu", 10**6, 9, 81, (9, 9), 0, 9),
        ("gpu", 10**6, 5, 25, (5, 300), 0, None),
        # A row of A names rows of B with more products than a work-item merges by itself.
        ("gpu", 10**6, 5, 500, (5, 120), 0, None),
        ("gpu", 10**4, 14, 500, (15, 40), 0.8, 32),
        # So many heads are compared for a row of 16 entries that one of 13 is another matter, unless rows of C compress.
        ("gpu", 10**6, 5, 25, (13, 30), 0, 13),
        ("gpu", 10**6, 12, 120, (16, 30), 0, None),
        ("gpu", 10**6, 12, 240, (12, 30), 0, None),
        ("gpu", 10**6, 12, 240, (12, 30), 0.8, 12),
        # A team merges rows that are alike, with columns that are neighbours, and not too many products.
        ("gpu", 10**4, 36, 1296, (36, 36), 0.8, 64),
        ("gpu", 10**4, 36, 1296, (36, 36), 0.1, None),
        ("gpu", 10**4, 36, 1296, (100, 36), 0.8, None),
        ("gpu", 10**6, 36, 1296, (36, 36), 0.8, None),
        ("gpu", 10**4, 36, 1296, None, 0, None),
        ("gpu", 10**4, 200, 2000, (300, 10), 0.8, 512),
        ("gpu", 10**4, 400, 800, (600, 4), 0.8, None),
        ("cpu", 10**6, 5, 25, None, 0, None),
        ("cpu", 10**6, 5, 25, (5, 5), 0.8, None),
        ("gpu", 100, 9, 81, None, 0, 32),
        ("cpu", 100, 4, 16, None, 0, 16),
        ("cpu", 100, 4, 16, (7, 7), 0, 8),
    ],
)
def test_guesses(
    kind: str,
    n_rows: int,
    mean_row: int,
    mean_products: int,
    longest: tuple[int, int] | None,
    adjacent: float,
    capacity: int | None,
) -> None:
    shape, nnz = (n_rows, n_rows, n_rows), (n_rows * mean_row, n_rows * mean_products // mean_row)
    known = (Facts(nnz[0], True, True, length, int(adjacent * nnz[0])) for length in longest or (None, None))
    result = speculation_for(kind_on(kind), Features(shape, nnz, *known))
    assert (result and result.accumulator.length) == capacity
    assert result is None or result.max_products == (limits(kind).max_small_products if n_rows == 100 else None)
    assert result == speculation_for(kind_on(kind), Features(shape, nnz)) or longest


def test_a_device_with_work_items_left_gives_rows_more_lanes() -> None:
    gpu = replace(device("gpu"), compute_units=10)  # 20480 work-items
    shapes = []
    for n_rows, longest in [(10_000, 30), (1000, 30), (200, 100), (200, 1000)]:
        result = speculation_for(Kind(gpu, TYPES), square(n_rows, 20, longest, adjacent=1, longest_of_b=40))
        merging = result and result.accumulator
        shapes.append(merging and (merging.lanes, merging.items))
    # Rows as long as 100 are not uniform, but all are made at a time.
    assert shapes == [(4, 8), (8, 4), (32, 4), None]


@pytest.mark.parametrize(("longest", "uneven"), [(10, False), (11, True), (None, False)])
def test_rows_that_differ_are_listed_while_the_host_waits(longest: int | None, uneven: bool) -> None:
    features = square(100, 5, longest)
    assert is_uneven(limits(), features) == uneven
    assert not is_uneven(limits("cpu"), features)
    assert not is_uneven(limits(), features._replace(A=None))
