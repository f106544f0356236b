"""The methods of SpGEMM: which bins each gives, and which a strategy is made of. Pure functions of device, types and features."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from clsparse_py._spgemm.analysis import Work
from clsparse_py._spgemm.arguments import memory_limit_of
from clsparse_py._spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._spgemm.kernels import KernelTypes
from clsparse_py._spgemm.kind import Kind
from clsparse_py._spgemm.methods.base import Product
from clsparse_py._spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._spgemm.methods.dense_span import dense_spans
from clsparse_py._spgemm.methods.dense_windows import DenseWindows
from clsparse_py._spgemm.methods.esc import Esc
from clsparse_py._spgemm.methods.esc_local import EscGroup, EscItem, EscTeam, esc_bins
from clsparse_py._spgemm.methods.hash import Hash, hashes, large_hashes
from clsparse_py._spgemm.methods.long_rows import LongRows
from clsparse_py._spgemm.methods.merge import Merge, merges
from clsparse_py._spgemm.methods.sort import Sort, max_columns_of, sorts
from clsparse_py._spgemm.speculation import MAX_MERGED_BY_ITEM, Speculated
from clsparse_py._spgemm.strategy import Entry, Strategy, features_of
from clsparse_py._spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py.arithmetic import name_of
from clsparse_py.device import Device
from clsparse_py.index_types import INT32_MAX
from clsparse_py.structure import Facts
from clsparse_py.tuning import profiles

__all__ = [
    "DENSE_CHUNKED",
    "IN_WINDOWS",
    "METHODS",
    "WINDOWS",
    "Method",
    "Speculation",
    "alone",
    "are_long",
    "auto",
    "bins_for",
    "choosable",
    "compresses",
    "decided",
    "is_light",
    "is_narrow",
    "is_uneven",
    "numeric_bin",
    "parse",
    "refined",
    "small",
    "speculation_for",
    "staged_entries",
    "suits_upper_bound",
]

#: Staged entries of B are a multiple of this, as each number has a kernel of its own.
_INPUTS = 128
#: Accumulators that can make rows in the room of their upper bound.
_BY_UPPER_BOUND = (Sort, EscTeam, EscGroup)
#: Features of a product of which nothing is known.
_TYPICAL = features_of((1 << 20, 1 << 20, 1 << 20), (1 << 23, 1 << 23))
_FILLED = DenseWindows()
#: Any row on CPU devices, with an accumulator as wide as B.
DENSE_CHUNKED = Bin("dense", DenseChunked(), takes_empty=True, as_wide=True)
#: Any row, with no workspace.
WINDOWS = Bin("dense", DenseWindows(entries=1), takes_empty=True)
IN_WINDOWS = Bins((EMPTY, WINDOWS))


def reg_merge(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:
    """Return the bins of "reg-merge": by entries of a row of A."""
    return tuple(Bin("reg-merge", each, max_length=each.length) for each in merges(device, types, thresholds, registers=True))


def merge(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:
    """Return the bins of "merge": by entries of a row of A."""
    return tuple(Bin("merge", each, max_length=each.length) for each in merges(device, types, thresholds, registers=False))


def _sort_bins(method: str, accumulators: tuple[Sort, ...]) -> tuple[Bin, ...]:
    return tuple(
        Bin(method, each, each.products, each.products, max_columns=max_columns_of(each.products)) for each in accumulators
    )


def reg_sort(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the bins of "reg-sort": by products of a row."""
    return _sort_bins("reg-sort", sorts(thresholds, registers=True))


def sort(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the bins of "sort": by products of a row."""
    return _sort_bins("sort", sorts(thresholds, registers=False))


def dense(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the bins of "dense": one for any row if work-items are few, as there is room for a value of each column then."""
    if device.resident > 1 or types.arithmetic is None:
        spans = (Bin("dense", each, max_span=each.columns) for each in dense_spans(device, types))
        return *spans, Bin("dense", DenseWindows())
    return (DENSE_CHUNKED,)


def esc(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the one bin of "esc": it takes any row."""
    return (Bin("esc", Esc()),)


def esc_local(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:
    """Return the bins of "esc-local": by products of a row, which one work-item, sub-group or work-group takes at most."""
    bins = (
        Bin(
            "esc-local", each, each.products, each.length, takes_empty=isinstance(each, EscItem),
            min_bytes=each.min_bytes(device, types), max_columns=each.max_columns(device, types),
        )
        for each in esc_bins(device, types, thresholds)
    )  # fmt: skip
    return *bins, Bin("esc-local", Esc(bounded=True))


def long_rows(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the one bin of "long-rows": it takes any row."""
    return (Bin("long-rows", LongRows(bounded=True)),)


def _hash_bins(method: str, accumulators: tuple[Hash, ...]) -> tuple[Bin, ...]:
    return tuple(Bin(method, each, each.products, each.length) for each in accumulators)


def hash_(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the bins of "hash": by products."""
    return _hash_bins("hash", hashes(device, types, registers=False))


def reg_hash(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the bins of "reg-hash": by products."""
    return _hash_bins("reg-hash", hashes(device, types, registers=True))


def large_hash(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:  # noqa: ARG001
    """Return the bins of "large-hash": by products, above those of "hash" and smaller rows with them."""
    return _hash_bins("large-hash", large_hashes(device, types))


Method = Literal[
    "auto", "reg-merge", "merge", "reg-sort", "sort", "dense", "esc", "hash", "reg-hash", "large-hash", "esc-local", "long-rows"
]
METHODS: dict[str, Callable[[Device, KernelTypes, Thresholds], tuple[Bin, ...]]] = {
    "reg-merge": reg_merge,
    "merge": merge,
    "reg-sort": reg_sort,
    "sort": sort,
    "dense": dense,
    "esc": esc,
    "hash": hash_,
    "reg-hash": reg_hash,
    "large-hash": large_hash,
    "esc-local": esc_local,
    "long-rows": long_rows,
}


def dense_span(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[Bin, ...]:
    """Return the bins of "dense" for rows that span few columns: on CPU devices none."""
    return tuple(bin_ for bin_ in dense(device, types, thresholds) if bin_.max_span is not None)


#: The methods that strategies may name.
_ENTRIES = {**METHODS, "dense-span": dense_span}


@functools.lru_cache(maxsize=64)
def parse(label: str) -> Strategy:
    """Return the strategy that a label names.

    Raises
    ------
    ValueError
        It names none.
    """
    return Strategy.parse(label, _ENTRIES)


def decided(device: Device, types: KernelTypes, features: Mapping[str, float] = _TYPICAL) -> profiles.Ruling[Strategy]:
    """Return the strategy that the device's profile has for a product; see `strategy.features_of`."""
    assert types.arithmetic is not None  # of a numeric phase
    return profiles.decide(device, "spgemm", name_of(types.arithmetic.result), "strategy", features, parse)


def choosable(device: Device, types: KernelTypes) -> tuple[Strategy, ...]:
    """Return all strategies that the device's profile may choose."""
    assert types.arithmetic is not None  # of a numeric phase
    found = profiles.rules(device, "spgemm", name_of(types.arithmetic.result), "strategy", _TYPICAL, parse)
    return tuple(found.values.values())


def auto(device: Device, types: KernelTypes, strategy: Strategy) -> tuple[Bin, ...]:
    """Return the bins of "auto", of which the last takes any row."""
    thresholds = thresholds_of(device, types)
    return tuple(bin_ for entry in strategy.entries for bin_ in _of_entry(device, types, entry, thresholds))


def _of_entry(device: Device, types: KernelTypes, entry: Entry, thresholds: Thresholds) -> tuple[Bin, ...]:
    """Return the bins of an entry of a strategy: with limits for even rows, in global memory with little of it."""
    found, limits = _ENTRIES[entry.method](device, types, thresholds), entry.limits
    if entry.method in ("esc", "esc-local"):
        return *found[:-1], Bin(entry.method, Esc(bounded=True, expected_fill=thresholds.expected_fill))
    if limits is None:
        return found
    merging = ((bin_, bin_.accumulator) for bin_ in found if isinstance(bin_.accumulator, Merge))
    return tuple(
        replace(bin_, max_products=limits.max_products if each.lanes > 1 else limits.max_item_products, even=True)
        for bin_, each in merging
        if each.length <= limits.max_length
    )


def _merging(accumulator: Merge) -> Bin:
    """Return the bin by which an accumulator merges all rows that it holds."""
    return Bin("reg-merge", accumulator, max_length=accumulator.length)


def small(kind: Kind, thresholds: Thresholds, longest_row: int) -> Bin | None:
    """Return the bin that makes all rows of a small product by one launch a phase; None if rows of A are long."""
    found = _small(kind, thresholds, longest_row)
    return _merging(found) if found else None


def _small(kind: Kind, thresholds: Thresholds, longest_row: int) -> Merge | None:
    shapes = merges(kind.device, kind.types, thresholds, registers=True)
    held = (each for each in shapes if each.lanes <= thresholds.max_small_lanes and each.items <= thresholds.max_small_items)
    return next((each for each in held if each.length >= longest_row), None)


@functools.lru_cache(maxsize=256)
def _alone(longest_row: int, inputs: int) -> Bin:
    return Bin("reg-merge", Merge(1, longest_row, staged_b=inputs), max_length=longest_row)


def alone(thresholds: Thresholds, longest_row: int, max_products: int, inputs: int) -> Bin | None:
    """Return the bin by which one work-item each merges all rows, in their order; None if they are too long.

    ``inputs``: as `staged_entries` says.
    """
    if not 0 < longest_row <= thresholds.max_item_length or max_products > thresholds.max_item_products:
        return None
    return _alone(longest_row, inputs)


def is_light(thresholds: Thresholds, longest_row: int, mean_row_of_b: float) -> bool:
    """Return whether one work-item merges the longest row of A in little time, by the heads that it compares."""
    return longest_row * longest_row * mean_row_of_b <= thresholds.max_item_steps


def compresses(thresholds: Thresholds, A: Facts | None) -> bool:
    """Return whether rows of C are likely to compress, as rows of B that a row of A names have columns in common."""
    return A is not None and A.adjacent >= thresholds.min_adjacent_share * A.nnz


def are_long(kind: Kind, bin_: Bin, n_rows: int, n_all: int) -> bool:
    """Return whether rows leave most of a device idle for long, which other rows of the product can have meanwhile."""
    few = n_rows <= kind.thresholds.max_side_groups * kind.device.compute_units
    return few and n_rows < n_all and isinstance(bin_.accumulator, EscGroup)


def is_uneven(thresholds: Thresholds, n_rows: int, A: Facts | None) -> bool:
    """Return whether several bins are likely to have rows, by what is known of A."""
    return A is not None and A.longest is not None and A.longest * n_rows > thresholds.min_listed_by_mean * A.nnz


def staged_entries(kind: Kind, n_rows: int, A: Facts | None, mean_row_of_b: float) -> int:
    """Return how many entries the rows of B have that neighbouring rows of A name together; 0 if they share few of them.

    Neighbouring columns of A are those that the next row has too, as in grids: of a row, only the others are new.
    """
    portability = kind.device.portability
    if portability.lanes == "local" or A is None or A.adjacent < max(kind.thresholds.min_staged_share * A.nnz, 1):
        return 0
    named = ((A.nnz - A.adjacent) * portability.lane_width + A.adjacent) / n_rows
    return math.ceil(named * mean_row_of_b / _INPUTS) * _INPUTS


class Speculation(NamedTuple):
    """An accumulator that may hold all rows of a product.

    Attributes
    ----------
    accumulator : Merge
    bin : Bin
        Its bin.
    max_products : int or None
        The most products that it is for; None for no limit.
    """

    accumulator: Merge
    bin: Bin
    max_products: int | None


def speculation_for(
    kind: Kind, n_rows: int, mean_row: float, mean_products: float, A: Facts | None, B: Facts | None
) -> Speculation | None:
    """Return the accumulator that may hold all rows of a product, so that the analysis is spared; None if there is none.

    Means and the facts of the structures tell. Uniform rows are merged if many columns of A are neighbours, as their rows of B
    are likely to have columns in common. Rows count as uniform, too, if the device holds the teams of all of them at a time.
    """
    of_a, of_b = A.longest if A else None, B.longest if B else None
    if of_b is not None and of_b > MAX_MERGED_BY_ITEM:
        return None
    limits, n_products, mergeable = kind.thresholds, mean_products * n_rows, mean_products <= MAX_MERGED_BY_ITEM
    few, mean_row_of_b = n_products <= limits.max_small_products // 2, mean_products / mean_row
    if A is None or of_a is None:
        longest = math.ceil(1.5 * mean_row) * (2 if few else 1)
        by_item = limits.max_item_length if mergeable and is_light(limits, longest, mean_row_of_b) else 0
        return kind.once(_speculation_for, limits, longest, few, by_item, 0, mergeable)
    near = compresses(limits, A)
    by_item = _max_item_length(limits, of_a, mean_row_of_b, near=near) if mergeable else 0
    held = kind.device.compute_units * kind.device.resident // n_rows
    uniform = of_a <= max(limits.max_longest_by_mean * mean_row, limits.merge_items * held)
    alike = near and uniform and of_a * n_products <= limits.max_speculative_work
    width = min(kind.device.portability.lane_width, int(limits.max_merge_lanes))
    # A power of two, of which there are few.
    max_lanes = 1 << min(max(held, 1), width).bit_length() - 1 if alike else 0
    return kind.once(_speculation_for, limits, of_a, few, by_item, max_lanes, mergeable)


def _max_item(limits: Thresholds) -> float:
    """Return the longest row that one work-item ever merges without analysis."""
    return max(limits.max_item_length, limits.max_light_length)


def _max_item_length(limits: Thresholds, longest: int, mean_row_of_b: float, *, near: bool) -> float:
    """Return up to which entries of a row one work-item merges each row; 0 if it compares too many heads for that."""
    if is_light(limits, longest, mean_row_of_b):
        return _max_item(limits)
    return limits.max_item_length if near else 0


def _speculation_for(
    kind: Kind, limits: Thresholds, longest: int, few: bool, by_item: float, max_lanes: int, mergeable: bool
) -> Speculation | None:
    """Return the speculation for rows of A up to some length: of few products, or rows that are alike.

    Parameters
    ----------
    kind : Kind
    limits : Thresholds
    longest : int
    few : bool
        Whether there are few products.
    by_item : float
        Entries of a row, up to which one work-item merges each row.
    max_lanes : int
        Lanes of a row with which the device holds all rows at a time; 0 if rows are not uniform, or do not compress.
    mergeable : bool
        Whether a work-item by itself merges the products of a mean row.
    """
    if few:
        found = _small(kind, limits, longest)
        return Speculation(found, _merging(found), int(limits.max_small_products)) if found else None
    found = Merge(1, longest) if longest <= min(by_item, limits.max_item_length) else None
    if found is None and max_lanes and longest > limits.max_item_length:
        shapes = merges(kind.device, kind.types, limits, registers=True)
        fitting = (each for each in shapes if longest <= each.length <= limits.max_speculative_length)
        found = next((_spread(each, limits, max_lanes) for each in fitting if mergeable or each.lanes > 1), None)
    if found is None and longest <= by_item:
        found = Merge(1, longest)
    return Speculation(found, _merging(found), None) if found else None


def _spread(team: Merge, limits: Thresholds, max_lanes: int) -> Merge:
    """Return an accumulator for rows as long with more lanes of fewer heads, up to some number of lanes."""
    lanes, items = team.lanes, team.items
    while 1 < lanes <= max_lanes // 2 and items > limits.min_merge_items:
        lanes, items = 2 * lanes, items // 2
    return replace(team, lanes=lanes, items=items)


def numeric_bin(thresholds: Thresholds, speculation: Speculation, found: Speculated, inputs: int) -> Bin | None:
    """Return the bin of the numeric phase after a speculation that held; None if rows had better not be merged."""
    if speculation.accumulator.lanes == 1 and speculation.accumulator.length <= _max_item(thresholds):
        return alone(thresholds, found.longest_row, 0, inputs) or speculation.bin
    compresses = found.n_products >= thresholds.min_merged_compression * found.nnz
    return speculation.bin if compresses or found.n_products <= thresholds.max_small_products else None


def refined(bins: Bins, work: Work, product: Product, refused: Container[object] = ()) -> list[tuple[Bin, int]]:
    """Return the bins of "auto" with the numbers of rows that they take in the end, adjacent rows of the list each.

    If rows are very uneven, bins for even rows hand theirs on to the last one; else, if several products make an entry, rows that
    would be sorted are merged. A few rows go to the next bin of their method, if it takes them too with an accumulator of its
    kind. If rows of B have some entries in each window of columns, windows take the rows that would be expanded, unless they are
    among the accumulators that are ``refused``.
    """
    limits, kept, taken, last = product.kind.thresholds, list(bins), list(work.taken), len(bins) - 1
    mean = work.n_products / max(sum(taken[1:]), 1)
    if work.max_products > limits.max_products_by_mean * mean:
        while last > 1 and (bins[last - 1].even or not taken[last - 1]):
            last -= 1
        taken[last:] = [*(0 for _ in taken[last:-1]), sum(taken[last:])]
    elif work.compression >= limits.min_merged_compression:
        merging = next((bin_ for bin_ in bins if bin_.even and (bin_.max_length or 0) >= work.longest_row), None)
        sorting = [number for number, bin_ in enumerate(bins) if bin_.method == "reg-sort"]
        if merging is not None and sorting:
            kept[sorting[-1]], taken[sorting[-1]] = merging, sum(taken[number] for number in sorting)
            taken[sorting[0] : sorting[-1]] = [0] * (len(sorting) - 1)
    columns = min(_FILLED.columns_of(product.types), product.shape[1])
    filled = work.n_products * columns >= limits.min_window_entries * product.a_indices.size * product.shape[1]
    if isinstance(bins[-1].accumulator, Esc) and filled and _FILLED not in refused:
        first = next(number for number, bin_ in enumerate(bins) if bin_.method == bins[-1].method)
        taken[first:] = [*(0 for _ in taken[first:-1]), sum(taken[first:])]
        kept[-1] = Bin("dense", _FILLED)
    held, joined = [number for number in range(1, len(bins)) if taken[number]], bins.joined
    for number, later in itertools.pairwise(held):
        bin_, other = kept[number], kept[later]
        given = bin_ is bins[number] and other is bins[later]
        if (joined[number][later] if given else bin_.joins(other)) and _few(limits, taken[number], bin_, other):
            taken[later] += taken[number]
            taken[number] = 0
    return list(zip(kept, taken, strict=True))


def suits_upper_bound(work: Work, product: Product, bins: Sequence[Bin]) -> bool:
    """Return whether a row is made with room for all its products, and moved, rather than counted first.

    If products hardly contract, and rows are so short that what they are made of takes longer to find than they take to move.
    """
    limits, n_rows, room = product.kind.thresholds, product.shape[0], product.upper_bytes
    contracts = work.compression > limits.max_upper_compression
    if contracts or not 0 < work.n_products <= limits.max_upper_mean * n_rows or max(work.n_products, n_rows) > INT32_MAX:
        return False
    least = max((bin_.min_bytes for bin_ in bins), default=0)
    fits = room + max(room, least) <= product.free and room + least <= product.spare(int(work.n_products / work.compression))
    return fits and all(isinstance(bin_.accumulator, _BY_UPPER_BOUND) for bin_ in bins)


def _few(thresholds: Thresholds, n_rows: int, bin_: Bin, other: Bin) -> bool:
    """Return whether rows are so few that they had better go with those of another bin of their method."""
    if isinstance(bin_.accumulator, Sort):
        return n_rows * ((other.max_products or 0) - (bin_.max_products or 0)) <= thresholds.max_joined_places
    return n_rows < thresholds.max_joined_rows


def bins_for(
    method: str,
    device: Device,
    types: KernelTypes,
    n_columns: int = 0,
    memory_limit: int | None = None,
    strategy: Strategy | None = None,
    accumulator_limit: int | None = None,
) -> Bins:
    """Return the bins of a method, rows without products first; rows that it cannot hold go to the bins of "auto".

    Parameters
    ----------
    method : str
        "auto" or a name in `METHODS`.
    device : Device
    types : KernelTypes
        Of the numeric phase.
    n_columns : int
        Of B.
    memory_limit : int, optional
        Bytes that the workspace may have.
    strategy : Strategy, optional
        Of "auto"; by default the one that the profile has for a product of which nothing is known.
    accumulator_limit : int, optional
        Bytes that an accumulator as wide as B may have; by default as many as the workspace.
    """
    room, chosen = memory_limit_of(device, memory_limit), strategy or decided(device, types).value
    narrow = is_narrow(types, n_columns, room if accumulator_limit is None else min(room, accumulator_limit))
    of_method = None if method == "auto" else METHODS[method]
    return _bins(of_method, device, types, thresholds_of(device, types), n_columns, room, narrow, chosen)


def is_narrow(types: KernelTypes, n_columns: int, limit: int) -> bool:
    """Return whether an accumulator as wide as B, a value and a bit for each column and some more, has so many bytes at most."""
    assert types.arithmetic is not None  # of a numeric phase
    return (types.arithmetic.result.itemsize + 1) * n_columns <= limit


# Kept: to ask what each bin takes on a device costs more than to make a small product.
@functools.lru_cache(maxsize=256)
def _bins(
    of_method: Callable[[Device, KernelTypes, Thresholds], tuple[Bin, ...]] | None,
    device: Device,
    types: KernelTypes,
    thresholds: Thresholds,
    n_columns: int,
    room: int,
    narrow: bool,
    strategy: Strategy,
) -> Bins:
    """Return the bins of a method, or of a strategy alone, where the workspace may have so many bytes."""
    named = of_method(device, types, thresholds) if of_method else ()
    bins: list[Bin] = []
    for bin_ in (EMPTY, *named, *auto(device, types, strategy)):
        if not bin_.holds(n_columns, room, narrow=narrow) or any(earlier.covers(bin_) for earlier in bins):
            continue
        bins.append(bin_)
        if bin_.takes_all:
            break
    return Bins(bins)
