"""Decide what the work of rows tells: pure functions of the analysis, features and the device's profile."""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence

from clsparse_py._spgemm.all_rows import alone, compresses, is_light, max_item_length, small, staged_entries
from clsparse_py._spgemm.analysis import Work
from clsparse_py._spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._spgemm.decide import Decision, Speculation
from clsparse_py._spgemm.features import Features
from clsparse_py._spgemm.kind import Kind
from clsparse_py._spgemm.methods.dense import FILLED
from clsparse_py._spgemm.methods.dense_windows import DenseWindows
from clsparse_py._spgemm.methods.esc import Esc
from clsparse_py._spgemm.methods.esc_local import EscGroup, EscTeam
from clsparse_py._spgemm.methods.sort import Sort
from clsparse_py._spgemm.speculation import Speculated
from clsparse_py._spgemm.thresholds import Thresholds
from clsparse_py.index_types import INT32_MAX

__all__ = ["are_long", "numeric_bin", "refine", "suits_upper_bound"]

#: Accumulators that can make rows in the room of their upper bound.
_BY_UPPER_BOUND = (Sort, EscTeam, EscGroup)
_WINDOWS = DenseWindows()


def refine(
    kind: Kind, features: Features, decision: Decision, work: Work, refused: Container[object] = ()
) -> list[tuple[Bin, int]]:
    """Return the bins in the end, with the numbers of rows that they take: adjacent rows of the analysis' list each.

    The first is for rows without products. One bin takes all others, in their order, if the product is small or its rows short.
    Else bins that are given, or those of a named method, stay as they are.

    Parameters
    ----------
    kind : Kind
    features : Features
    decision : Decision
    work : Work
    refused : container
        Accumulators that the product does without.
    """
    one = _one_for_all(kind, features, decision, work)
    if one is not None and one.accumulator not in refused:
        n_empty = work.taken[0]
        return [(EMPTY, n_empty), (one, features.shape[0] - n_empty)]
    if decision.is_auto:
        return _refined(kind, features, decision.bins, work, refused)
    return list(zip(decision.bins, work.taken, strict=True))


def _one_for_all(kind: Kind, features: Features, decision: Decision, work: Work) -> Bin | None:
    """Return the bin that had better take all rows; None if there is none."""
    limits = kind.thresholds
    if not decision.is_auto:
        light = all(bin_.method in ("", "reg-merge") for bin_, n in zip(decision.bins, work.taken, strict=True) if n)
    elif 0 < work.n_products <= limits.max_small_products:
        return kind.once(small, limits, work.longest_row)
    else:
        light = compresses(limits, features.A) or is_light(limits, work.longest_row, features.mean_row_of_b)
    return alone(limits, work.longest_row, work.max_products, staged_entries(kind, features)) if light else None


def _refined(kind: Kind, features: Features, bins: Bins, work: Work, refused: Container[object]) -> list[tuple[Bin, int]]:
    """Return the bins of "auto" with the numbers of rows that they take in the end.

    If rows are very uneven, bins for even rows hand theirs on to the last one; else, if several products make an entry, rows that
    would be sorted are merged. A few rows go to the next bin of their method, if it takes them too with an accumulator of its
    kind. If rows of B have some entries in each window of columns, windows take the rows that would be expanded, unless they are
    among the accumulators that are ``refused``.
    """
    limits, kept, taken, last = kind.thresholds, list(bins), list(work.taken), len(bins) - 1
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
    (*_, n), (nnz, _) = features.shape, features.nnz
    columns = min(_WINDOWS.columns_of(kind.types), n)
    filled = work.n_products * columns >= limits.min_window_entries * nnz * n
    if isinstance(bins[-1].accumulator, Esc) and filled and _WINDOWS not in refused:
        first = next(number for number, bin_ in enumerate(bins) if bin_.method == bins[-1].method)
        taken[first:] = [*(0 for _ in taken[first:-1]), sum(taken[first:])]
        kept[-1] = FILLED
    held, joined = [number for number in range(1, len(bins)) if taken[number]], bins.joined
    for number, later in itertools.pairwise(held):
        bin_, other = kept[number], kept[later]
        given = bin_ is bins[number] and other is bins[later]
        if (joined[number][later] if given else bin_.joins(other)) and _few(limits, taken[number], bin_, other):
            taken[later] += taken[number]
            taken[number] = 0
    return list(zip(kept, taken, strict=True))


def _few(thresholds: Thresholds, n_rows: int, bin_: Bin, other: Bin) -> bool:
    """Return whether rows are so few that they had better go with those of another bin of their method."""
    if isinstance(bin_.accumulator, Sort):
        return n_rows * ((other.max_products or 0) - (bin_.max_products or 0)) <= thresholds.max_joined_places
    return n_rows < thresholds.max_joined_rows


def suits_upper_bound(limits: Thresholds, n_rows: int, work: Work, bins: Sequence[Bin]) -> bool:
    """Return whether a row is made with room for all its products, and moved, rather than counted first.

    If products hardly contract, and rows are so short that what they are made of takes longer to find than they take to move.
    """
    contracts = work.compression > limits.max_upper_compression
    if contracts or not 0 < work.n_products <= limits.max_upper_mean * n_rows or max(work.n_products, n_rows) > INT32_MAX:
        return False
    return all(isinstance(bin_.accumulator, _BY_UPPER_BOUND) for bin_ in bins)


def are_long(kind: Kind, bin_: Bin, n_rows: int, n_all: int) -> bool:
    """Return whether rows leave most of a device idle for long, which other rows of the product can have meanwhile."""
    few = n_rows <= kind.thresholds.max_side_groups * kind.device.compute_units
    return few and n_rows < n_all and isinstance(bin_.accumulator, EscGroup)


def numeric_bin(thresholds: Thresholds, speculation: Speculation, found: Speculated, inputs: int) -> Bin | None:
    """Return the bin of the numeric phase after a speculation that held; None if rows had better not be merged."""
    if speculation.accumulator.lanes == 1 and speculation.accumulator.length <= max_item_length(thresholds):
        return alone(thresholds, found.longest_row, 0, inputs) or speculation.bin
    compresses = found.n_products >= thresholds.min_merged_compression * found.nnz
    return speculation.bin if compresses or found.n_products <= thresholds.max_small_products else None
