"""Partition of rows among bins, after the analysis: pure functions of work, features and profile."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from clsparse_py._decisions.profiles import Ruling
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._operations.spgemm.accumulator import Rows
from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bin_choice import choose
from clsparse_py._operations.spgemm.bins import EMPTY, Bin
from clsparse_py._operations.spgemm.decide import (
    Decision,
    Reason,
    Speculation,
    compresses,
    is_light,
    max_item_length,
    single_item_bin,
    small_product_bin,
    staged_entries,
)
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.methods.esc_local import EscGroup, EscTeam
from clsparse_py._operations.spgemm.methods.sort import Sort
from clsparse_py._operations.spgemm.speculation import Speculated
from clsparse_py._operations.spgemm.strategy import Choice
from clsparse_py._operations.spgemm.thresholds import Thresholds

__all__ = ["Assignment", "Partition", "Step", "are_long", "numeric_bin", "partition_of", "refine", "suits_upper_bound"]

#: Classes of the accumulators that can make rows of C uncounted, each row in memory for as many entries as it has products.
_BY_UPPER_BOUND = (Sort, EscTeam, EscGroup)


class Assignment(NamedTuple):
    """The final bins (classes of rows) of a product, with their numbers of rows.

    Attributes
    ----------
    shares : list of (Bin, int)
        Bins with their numbers of rows, which are adjacent in the analysis' list. The first bin is for rows without products;
        others have rows.
    rulings : sequence of Ruling
        A profile's decisions for other accumulators than the strategy's.
    """

    shares: list[tuple[Bin, int]]
    rulings: Sequence[Ruling[Choice]] = ()


def refine(kind: Kind, features: Features, decision: Decision, work: Work, budget: Budget) -> Assignment:
    """Return the final bins (classes of rows by size) of a product, and the number of rows that each of them takes.

    One bin takes all rows that have products, in their order, if the product is small or its rows short. Else given
    bins, and the bins of a named method, stay as they are; with "auto" the device's profile chooses the accumulator of each bin,
    and neighbouring bins with one accumulator are joined.

    Parameters
    ----------
    kind : Kind
    features : Features
    decision : Decision
    work : Work
    budget : Budget
    """
    single_bin, n_empty = _choose_single_bin(kind, features, decision, work), work.taken[0]
    if single_bin is not None:
        return Assignment([(EMPTY, n_empty), (single_bin, features.shape[0] - n_empty)])
    if not decision.is_auto:
        return Assignment(list(zip(decision.bins, work.taken, strict=True)))
    bins, rulings = choose(kind, features, decision.bins, work, budget, decision.choices)
    return Assignment([(EMPTY, n_empty), *_join_bins(kind.thresholds, zip(bins[1:], work.taken[1:], strict=True))], rulings)


def _choose_single_bin(kind: Kind, features: Features, decision: Decision, work: Work) -> Bin | None:
    """Return the one bin (class of rows) that takes all rows of C in order; None if several bins had better share them."""
    limits = kind.thresholds
    if not decision.is_auto:
        light = all(bin_.method in ("", "reg-merge") for bin_, n in zip(decision.bins, work.taken, strict=True) if n)
    elif 0 < work.n_products <= limits.max_small_products:
        return small_product_bin(kind, limits, work.longest_row)
    else:
        light = compresses(limits, features.A) or is_light(limits, work.longest_row, features.mean_row_of_b)
    return single_item_bin(limits, work.longest_row, work.max_products, staged_entries(kind, features)) if light else None


def _join_bins(limits: Thresholds, shares: Iterable[tuple[Bin, int]]) -> Iterator[tuple[Bin, int]]:
    """Iterate over bins (classes of rows) that have rows; bins of one accumulator are joined, and few rows go to a larger bin."""
    pending: tuple[Bin, int] | None = None
    for bin_, n in shares:
        if not n:
            continue
        if pending is not None:
            earlier, n_before = pending
            if earlier.accumulator is bin_.accumulator or (_are_few(limits, n_before, earlier, bin_) and earlier.joins(bin_)):
                n += n_before
            else:
                yield pending
        pending = bin_, n
    if pending is not None:
        yield pending


def _are_few(thresholds: Thresholds, n_rows: int, bin_: Bin, later: Bin) -> bool:
    """Return whether a bin has so few rows that a later bin of the same method takes these rows in less time than a launch."""
    if isinstance(bin_.accumulator, Sort):
        return n_rows * ((later.max_products or 0) - (bin_.max_products or 0)) <= thresholds.max_joined_places
    return n_rows < thresholds.max_joined_rows


def suits_upper_bound(limits: Thresholds, n_rows: int, work: Work, bins: Sequence[Bin]) -> bool:
    """Return whether rows of C are made uncounted, with room for all their products, and then compacted.

    Compaction is faster if products hardly contract, and if rows are so short that counting takes longer than moving them.
    """
    n_products, compression = work.n_products, work.compression
    if not 0 < n_products <= INT32_MAX or n_rows > INT32_MAX or compression > limits.max_upper_compression:
        return False
    if len(bins) == 1 and isinstance(bins[0].accumulator, DenseChunked):
        # A chunk of uncounted rows of C fills memory without gaps: the compaction moves only as many entries as C has.
        return n_products <= n_rows * max(limits.max_upper_mean, limits.max_moved * compression)
    if n_products > limits.max_upper_mean * n_rows:
        return False
    return all(isinstance(bin_.accumulator, _BY_UPPER_BOUND) for bin_ in bins)


def are_long(kind: Kind, bin_: Bin, n_rows: int, n_all: int) -> bool:
    """Return whether a bin's rows are long and so few that they run on a side queue beside other rows of the product."""
    few_rows = n_rows <= kind.thresholds.max_side_groups * kind.device.compute_units
    return few_rows and n_rows < n_all and isinstance(bin_.accumulator, EscGroup)


def numeric_bin(thresholds: Thresholds, speculation: Speculation, speculated: Speculated, inputs: int) -> Bin | None:
    """Return the bin of all rows of a speculation that held; None if a large product has few products to an entry of C."""
    if speculation.accumulator.lanes == 1 and speculation.accumulator.length <= max_item_length(thresholds):
        return single_item_bin(thresholds, speculated.longest_row, 0, inputs) or speculation.bin
    compresses = speculated.n_products >= thresholds.min_merged_compression * speculated.nnz
    return speculation.bin if compresses or speculated.n_products <= thresholds.max_small_products else None


class Step(NamedTuple):
    """The rows of one bin (class of rows), and the state that its accumulator keeps for them.

    ``long``: the rows are few and long, so that rows of other bins are made at the same time.
    """

    bin: Bin
    rows: Rows
    state: object = None
    long: bool = False


class Partition(NamedTuple):
    """The partition of a product's rows among bins.

    Attributes
    ----------
    steps : list of Step
        The rows of bins that have products; at first without states and, if rows are listed, without the list.
    is_listed : bool
        Whether rows are listed by bins; if not, one bin takes all rows.
    reason : Reason
    suits_upper_bound : bool
        Whether rows of C are made in the room of their upper bound, if there is memory, without being counted first.
    """

    steps: list[Step]
    is_listed: bool
    reason: Reason
    suits_upper_bound: bool


def partition_of(kind: Kind, features: Features, decision: Decision, work: Work, budget: Budget) -> Partition:
    """Return the partition of a product's rows among bins (classes of rows with accumulators), by the analysed work."""
    n_rows, (shares, rulings) = features.shape[0], refine(kind, features, decision, work, budget)
    rows_of_bins, is_listed = _partition_rows(n_rows, shares)
    nonempty = [(bin_, rows) for bin_, rows in rows_of_bins if bin_.accumulator is not None]
    steps = [Step(bin_, rows, long=are_long(kind, bin_, rows.n, n_rows)) for bin_, rows in nonempty]
    loose = decision.may_skip_counting and suits_upper_bound(kind.thresholds, n_rows, work, [bin_ for bin_, _ in nonempty])
    reason = decision.reason._replace(of_bins=rulings) if rulings else decision.reason
    return Partition(steps, is_listed, reason, loose)


def _partition_rows(n_rows: int, shares: Sequence[tuple[Bin, int]]) -> tuple[list[tuple[Bin, Rows]], bool]:
    """Return the rows of C that each bin takes, and whether rows are listed by bins: not if one bin takes all.

    Parameters
    ----------
    n_rows : int
    shares : sequence of (Bin, int)
        Bins in their order with their numbers of rows. The first is for rows without products; a bin that ``takes_empty`` takes
        them too if it has all other rows. Rows of a bin keep their order.
    """
    n_empty = shares[0][1]
    for bin_, n in shares:
        if n == n_rows or (bin_.takes_empty and 0 < n == n_rows - n_empty):
            return [(bin_, Rows(n_rows, n_empty=n_rows - n))], False
    firsts = itertools.accumulate((n for _, n in shares), initial=0)
    return [(bin_, Rows(n, first)) for (bin_, n), first in zip(shares, firsts, strict=False) if n], True
