"""Which bins methods give, on made-up devices: no device is asked."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from platforms import PLATFORMS
from pyopencl import array as cl_array

from clsparse_py._spgemm.analysis import Work
from clsparse_py._spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._spgemm.decide import (
    METHODS,
    Speculation,
    alone,
    are_long,
    bins_for,
    is_uneven,
    numeric_bin,
    parse,
    refined,
    small,
    speculation_for,
    staged_entries,
)
from clsparse_py._spgemm.kernels import KernelTypes
from clsparse_py._spgemm.kind import Kind
from clsparse_py._spgemm.methods.base import Product
from clsparse_py._spgemm.methods.merge import Merge
from clsparse_py._spgemm.speculation import Speculated
from clsparse_py._spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device, Portability, describe
from clsparse_py.structure import Facts

TYPES = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")


def device(kind: str) -> Device:
    """A device of a type, with 32 lanes that exchange values where it is a GPU."""
    found = replace(describe(next(iter(PLATFORMS.values()))), type=kind, local_memory=48 << 10, max_work_group=1024)
    return replace(found, portability=Portability("ptx", 32)) if kind == "gpu" else found


def limits(kind: str = "gpu") -> Thresholds:
    """The thresholds of the generic profile for a type of device."""
    return thresholds_of(device(kind), TYPES)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_the_last_rule_takes_all(method: str, kind: str) -> None:
    bins = bins_for(method, device(kind), TYPES, 1000)
    assert bins[0] == EMPTY
    assert bins[-1].takes_all
    assert not any(bin_.takes_all for bin_ in bins[:-1])


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_named_comes_before_what_auto_chooses(method: str, kind: str) -> None:
    methods = [bin_.method for bin_ in bins_for(method, device(kind), TYPES, 1000)[1:]]
    assert methods[0] == method
    assert method not in methods[methods.count(method) :] or methods.count(method) == len(methods)


def test_gpus_mix_methods_and_cpu_devices_do_not() -> None:
    assert {bin_.method for bin_ in bins_for("auto", device("cpu"), TYPES, 1000)[1:]} == {"dense"}
    assert {"reg-merge", "reg-sort", "dense", "esc"} <= {bin_.method for bin_ in bins_for("auto", device("gpu"), TYPES, 1000)[1:]}


def test_no_room_for_dense_accumulators() -> None:
    bins = bins_for("auto", device("cpu"), TYPES, 1 << 20, 1 << 20)
    assert "dense" not in {bin_.method for bin_ in bins}
    assert bins[-1].takes_all


@pytest.mark.parametrize(("longest", "most", "heads"), [(5, 25, 5), (2, 3, 2), (12, 1024, 12), (13, 30, None), (3, 1025, None)])
def test_short_rows_are_merged_in_their_order(longest: int, most: int, heads: int | None) -> None:
    found = alone(limits(), longest, most, 512)
    assert (found and found.accumulator) == (heads and Merge(1, heads, staged_b=512))


@pytest.mark.parametrize(
    ("kind", "adjacent", "inputs"), [("gpu", 0.4, 512), ("gpu", 0.2, 0), ("gpu", 0.0, 0), ("cpu", 0.4, 0), ("gpu", None, 0)]
)
def test_rows_of_b_are_staged_where_neighbours_share_them(kind: str, adjacent: float | None, inputs: int) -> None:
    known = None if adjacent is None else Facts(5000, True, True, 5, int(adjacent * 5000))
    # Three lines of a grid: of 32 rows of A, 32 of B each, and two beside.
    assert staged_entries(Kind(device(kind), TYPES), 1000, known, 5.0) == inputs
    local = replace(device(kind), portability=Portability())
    assert staged_entries(Kind(local, TYPES), 1000, known, 5.0) == 0


@pytest.mark.parametrize(
    ("kind", "longest", "length"), [("gpu", 5, 8), ("gpu", 30, 32), ("gpu", 65, None), ("cpu", 9, 16), ("cpu", 17, None)]
)
def test_small_products_take_one_launch(kind: str, longest: int, length: int | None) -> None:
    found = small(Kind(device(kind), TYPES), limits(kind), longest)
    assert (found and found.max_length) == length
    assert found is None or found.method == "reg-merge"


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
    nnz = n_rows * mean_row
    known = (Facts(nnz, True, True, each, int(adjacent * nnz)) for each in longest or (None, None))
    found = speculation_for(Kind(device(kind), TYPES), n_rows, mean_row, mean_products, *known)
    assert (found and found.accumulator.length) == capacity
    assert found is None or found.max_products == (1 << 15 if n_rows == 100 else None)
    assert found == speculation_for(Kind(device(kind), TYPES), n_rows, mean_row, mean_products, None, None) or longest


def test_a_device_with_work_items_left_gives_rows_more_lanes() -> None:
    gpu = replace(device("gpu"), compute_units=10)  # 20480 work-items
    shapes = []
    for n_rows, longest in [(10_000, 30), (1000, 30), (200, 100), (200, 1000)]:
        facts = Facts(20 * n_rows, True, True, longest, 20 * n_rows)
        found = speculation_for(Kind(gpu, TYPES), n_rows, 20, 400, facts, replace(facts, longest=40))
        merging = found and found.accumulator
        shapes.append(merging and (merging.lanes, merging.items))
    # Rows as long as 100 are not uniform, but all are made at a time.
    assert shapes == [(4, 8), (8, 4), (32, 4), None]


def test_few_long_rows_are_made_beside_others() -> None:
    gpu = device("gpu")
    *_, group, last = bins_for("esc-local", gpu, TYPES, 10**6)
    few, many = 4 * gpu.compute_units, 4 * gpu.compute_units + 1
    assert [are_long(Kind(gpu, TYPES), group, n, 10**6) for n in (few, many)] == [True, False]
    # There are no others; a method that needs no work-group for each row; a device whose cores are busy.
    assert not are_long(Kind(gpu, TYPES), group, few, few)
    assert not are_long(Kind(gpu, TYPES), last, few, 10**6)
    assert not are_long(Kind(device("cpu"), TYPES), group, few, 10**6)


@pytest.mark.parametrize(("longest", "uneven"), [(10, False), (11, True), (None, False)])
def test_rows_that_differ_are_listed_while_the_host_waits(longest: int | None, uneven: bool) -> None:
    known = Facts(500, True, True, longest)
    assert is_uneven(limits(), 100, known) == uneven
    assert not is_uneven(limits("cpu"), 100, known)
    assert not is_uneven(limits(), 100, None)


@pytest.mark.parametrize(
    ("heads", "n_products", "merged"), [(1, 10**6, True), (8, 10**6, False), (8, 3 * 10**6, True), (8, 10**4, True)]
)
def test_what_a_guess_found_settles_the_numeric_phase(heads: int, n_products: int, merged: bool) -> None:
    # As many entries as products, or a million of them.
    accumulator = Merge(heads, 8)
    guess = Speculated(cast("cl_array.Array", None), min(n_products, 10**6), n_products, 8, 0)
    found = numeric_bin(limits(), Speculation(accumulator, Bin("reg-merge", accumulator), None), guess, 0)
    assert (found.method if found else None) == ("reg-merge" if merged else None)


def work(taken: dict[int, int], n_bins: int, n_products: int, most: int, compression: float = 1.0) -> Work:
    """What an analysis would have found."""
    nothing = cast("cl_array.Array", None)
    return Work(nothing, nothing, n_products, most, 100, n_products, compression, tuple(taken.get(i, 0) for i in range(n_bins)))


def product(nnz: int, n_columns: int) -> Product:
    """A product of which only its size is known."""
    sized = SimpleNamespace(
        a_indices=SimpleNamespace(size=nnz), shape=(10**5, n_columns), types=TYPES, kind=Kind(device("gpu"), TYPES)
    )
    return cast("Product", sized)


def in_the_end(bins: Bins, found: Work, of: Product) -> dict[str, int]:
    """Rows of each accumulator that has some."""
    return {f"{bin_.method} {bin_.max_products}": n for bin_, n in refined(bins, found, of) if n}


def test_few_rows_go_with_the_next_bin_of_their_method() -> None:
    bins = bins_for("auto", device("gpu"), TYPES, 10**6)
    sorted_bins = [i for i, bin_ in enumerate(bins) if bin_.method == "reg-sort"]
    found = work({0: 7, sorted_bins[0]: 10, sorted_bins[1]: 20, sorted_bins[3]: 10**5}, len(bins), 10**6, 16)
    assert in_the_end(bins, found, product(10**5, 10**6)) == {" 0": 7, "reg-sort 16": 10**5 + 30}


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
    found = work({group: 5, len(bins) - 1: 1}, len(bins), 10**5, 16_000)
    assert in_the_end(bins, found, product(10**5, 10**6)) == {"esc-local 16384": 5, "esc-local None": 1}


@pytest.mark.parametrize("method", ["sort", "reg-sort", "esc-local"])
def test_sorted_words_hold_a_column_and_the_number_of_a_product(method: str) -> None:
    # Of so many columns, as many as fit beside the numbers of the products that each bin takes.
    for bits in (40, 50, 54, 58, 62):
        for bin_ in bins_for(method, device("gpu"), replace(TYPES, wide=True), 1 << bits):
            if bin_.method == method and bin_.max_products is not None:
                assert bits + (bin_.max_products - 1).bit_length() <= 64


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
    found = work({len(bins) - 1: 10**4}, len(bins), 10**8, 10**6)
    assert in_the_end(bins, found, product(10**6, 10**4)) == {"dense None": 10**4}
    assert in_the_end(bins, found, product(10**6, 10**6)) == {"esc None": 10**4}
