"""Decisions by the work of rows, on made-up work and products: no device is used."""

from __future__ import annotations

from typing import cast

import pytest
from made_up_products import PLENTY, TYPES, device, kind_on, limits, square
from pyopencl import array as cl_array

from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.decide import Decision, Reason, Speculation, decide, single_item_bin, small_product_bin
from clsparse_py._operations.spgemm.features import Features
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.methods.sort import Sort
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.row_partition import are_long, numeric_bin, partition_of, refine, suits_upper_bound
from clsparse_py._operations.spgemm.speculation import Speculated
from clsparse_py._operations.spgemm.strategy import bins_for, parse


@pytest.mark.parametrize(("longest", "most", "heads"), [(5, 25, 5), (2, 3, 2), (12, 1024, 12), (13, 30, None), (3, 1025, None)])
def test_short_rows_are_merged_in_their_order(longest: int, most: int, heads: int | None) -> None:
    result = single_item_bin(limits(), longest, most, 512)
    assert (result and result.accumulator) == (heads and Merge(1, heads, staged_b=512))


@pytest.mark.parametrize(
    ("kind", "longest", "length"), [("gpu", 5, 8), ("gpu", 30, 32), ("gpu", 65, None), ("cpu", 9, 16), ("cpu", 17, None)]
)
def test_small_products_take_one_launch(kind: str, longest: int, length: int | None) -> None:
    result = small_product_bin(kind_on(kind), limits(kind), longest)
    assert (result and result.max_length) == length
    assert result is None or result.method == "reg-merge"


def test_few_long_rows_are_made_beside_others() -> None:
    gpu = device("gpu")
    *_, group, last = bins_for("esc-local", gpu, TYPES, 10**6)
    few, many = 4 * gpu.compute_units, 4 * gpu.compute_units + 1
    assert [are_long(kind_on("gpu"), group, n, 10**6) for n in (few, many)] == [True, False]
    # There are no others; a method that needs no work-group for each row; a device whose cores are busy.
    assert not are_long(kind_on("gpu"), group, few, few)
    assert not are_long(kind_on("gpu"), last, few, 10**6)
    assert not are_long(kind_on("cpu"), group, few, 10**6)


@pytest.mark.parametrize(
    ("heads", "n_products", "merged"), [(1, 10**6, True), (8, 10**6, False), (8, 3 * 10**6, True), (8, 10**4, True)]
)
def test_what_a_guess_found_settles_the_numeric_phase(heads: int, n_products: int, merged: bool) -> None:
    # As many entries as products, or a million of them.
    accumulator = Merge(heads, 8)
    guess = Speculated(cast("cl_array.Array", None), min(n_products, 10**6), n_products, 8, 0)
    result = numeric_bin(limits(), Speculation(accumulator, Bin("reg-merge", accumulator), None), guess, 0)
    assert (result.method if result else None) == ("reg-merge" if merged else None)


def work(taken: dict[int, int], n_bins: int, n_products: int, most: int, compression: float = 1.0) -> Work:
    """A made-up result of the analysis."""
    return Work(n_products, most, 100, n_products, compression, tuple(taken.get(i, 0) for i in range(n_bins)))


def product(nnz: int, n_columns: int) -> Features:
    """Return the features of a product with rows of A too long for a work-item."""
    return Features((10**5, 10**5, n_columns), (nnz, 10**9))


def in_the_end(bins: Bins, result: Work, of: Features, *, is_auto: bool = True) -> dict[str, int]:
    """Rows of each accumulator that has some."""
    decision = Decision(bins, Reason("made up"), is_auto)
    shares = refine(kind_on("gpu"), of, decision, result, PLENTY).shares
    return {f"{bin_.method} {bin_.max_products}": n for bin_, n in shares if n}


def test_one_bin_takes_all_rows_of_a_small_product() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 100)
    result = work({0: 10, 3: 40, 5: 50}, len(bins), 1000, 30)
    result = result._replace(longest_row=6)
    (empty, n_empty), (bin_, n) = refine(kind_on("gpu"), square(100, 3), Decision(bins, Reason(""), True), result, PLENTY).shares
    assert (empty, n_empty, n) == (EMPTY, 10, 90)
    assert bin_.accumulator == Merge(1, 8)
    assert bin_.takes_empty


def test_a_named_method_keeps_its_bins_unless_rows_are_short_and_merged() -> None:
    for method, short in (("hash", False), ("reg-merge", True)):
        bins = bins_for(method, device("gpu"), TYPES, 10**6)
        result = work({1: 10, 2: 90}, len(bins), 10**6, 200)
        result = result._replace(longest_row=5)
        found_shares = refine(kind_on("gpu"), square(100, 3), Decision(bins, Reason("")), result, PLENTY).shares
        shares = [(bin_, n) for bin_, n in found_shares if n]
        merged = single_item_bin(limits(), 5, 200, 0)
        assert shares == ([(merged, 100)] if short else [(bins[1], 10), (bins[2], 90)])


@pytest.mark.parametrize(
    ("compression", "n_products", "accumulator", "suits"),
    [
        (1.0, 1000, Sort(4, 4), True),
        (9.0, 1000, Sort(4, 4), False),
        (1.0, 0, Sort(4, 4), False),
        (1.0, 10**6, Sort(4, 4), False),
        (1.0, 1000, Esc(), False),
    ],
)
def test_c_is_allocated_by_its_upper_bound_if_little_contracts(
    compression: float, n_products: int, accumulator: Sort | Esc, suits: bool
) -> None:
    bins = [Bin("any", accumulator)]
    assert suits_upper_bound(limits(), 100, work({}, 2, n_products, 16, compression), bins) == suits


def test_few_rows_go_with_the_next_bin_of_their_method() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**6)
    sorted_bins = [i for i, bin_ in enumerate(bins) if bin_.method == "reg-sort"]
    result = work({0: 7, sorted_bins[0]: 10, sorted_bins[1]: 20, sorted_bins[3]: 10**5}, len(bins), 10**6, 16)
    assert in_the_end(bins, result, product(10**5, 10**6)) == {" 0": 7, "reg-sort 16": 10**5 + 30}


def test_sorted_rows_go_with_a_larger_bin_where_that_costs_less_than_a_launch() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**6)
    first = next(i for i, bin_ in enumerate(bins) if bin_.method == "reg-sort")
    # Places for products that are sorted in vain: 2 x 10^6, then 4 x 1.1 x 10^6, then 64 x 10^4.
    rows = {first: 10**6, first + 1: 10**5, first + 2: 10**4, first + 5: 10**4, first + 6: 10}
    assert in_the_end(bins, work(rows, len(bins), 10**7, 200), product(10**6, 10**6)) == {
        "reg-sort 4": 1100000,
        "reg-sort 128": 20010,
    }


def test_few_rows_stay_with_an_accumulator_that_needs_less_memory() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**6, strategy=parse("reg-sort dense-span esc-local"))
    group = next(i for i, bin_ in enumerate(bins) if bin_.min_bytes)
    result = work({group: 5, len(bins) - 1: 1}, len(bins), 10**5, 16_000)
    assert in_the_end(bins, result, product(10**5, 10**6)) == {"esc-local 16384": 5, "esc-local None": 1}


def test_uneven_rows_are_not_merged() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**6)
    merged, last = next(i for i, bin_ in enumerate(bins) if bin_.even), len(bins) - 1
    even = work({merged: 10**5, last: 10}, len(bins), 10**8, 10**4)
    assert in_the_end(bins, even, product(10**7, 10**6)) == {"reg-merge 1024": 10**5, "esc None": 10}
    uneven = work({merged: 10**5, last: 10}, len(bins), 10**8, 10**6)
    assert in_the_end(bins, uneven, product(10**7, 10**6)) == {"esc None": 10**5 + 10}


def test_what_compresses_is_merged() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**6)
    first = next(i for i, bin_ in enumerate(bins) if bin_.method == "reg-sort")
    rows = {first: 10**5, first + 5: 10**5}
    assert in_the_end(bins, work(rows, len(bins), 10**7, 100), product(10**6, 10**6)) == {
        "reg-sort 2": 10**5,
        "reg-sort 64": 10**5,
    }
    merged = in_the_end(bins, work(rows, len(bins), 10**7, 100, compression=4.0), product(10**6, 10**6))
    assert merged == {"reg-merge 65536": 2 * 10**5}


def test_windows_take_what_is_dense_in_them() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**4)
    result = work({len(bins) - 1: 10**4}, len(bins), 10**8, 10**6)
    assert in_the_end(bins, result, product(10**6, 10**4)) == {"dense None": 10**4}
    assert in_the_end(bins, result, product(10**6, 10**6)) == {"esc None": 10**4}


def test_rows_are_listed_if_several_bins_have_some() -> None:
    kind, of = kind_on("gpu"), square(10**5, 40)
    decision = decide(kind, of, Request(), PLENTY)
    bins, last = decision.bins, len(decision.bins) - 1
    few, many = (work({0: 10**5 - n, 1: n}, last + 1, 10**6, 512) for n in (10**4, 10**5))
    listed, whole = (partition_of(kind, of, decision, rows, PLENTY) for rows in (few, many))
    assert listed.is_listed
    assert [(step.bin, step.rows.n, step.rows.first) for step in listed.steps] == [(bins[1], 10**4, 10**5 - 10**4)]
    assert not whole.is_listed
    assert [step.rows.n for step in whole.steps] == [10**5]
