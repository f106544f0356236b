"""Decisions after the analysis of rows: pure functions of work, features and profile."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from clsparse_py._decisions.profiles import Ruling
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._operations.spgemm.accumulator import Rows
from clsparse_py._operations.spgemm.all_rows import alone, compresses, is_light, max_item_length, small, staged_entries
from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bin_choice import choose
from clsparse_py._operations.spgemm.bins import EMPTY, Bin
from clsparse_py._operations.spgemm.choice import Choice
from clsparse_py._operations.spgemm.decide import Decision, Reason, Speculation
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.methods.esc_local import EscGroup, EscTeam
from clsparse_py._operations.spgemm.methods.sort import Sort
from clsparse_py._operations.spgemm.speculation import Speculated
from clsparse_py._operations.spgemm.thresholds import Thresholds

__all__ = ["Assignment", "Partition", "Step", "are_long", "numeric_bin", "partition_of", "refine", "suits_upper_bound"]

#: Accumulators that can make rows in the room of their upper bound.
_BY_UPPER_BOUND = (Sort, EscTeam, EscGroup)


class Assignment(NamedTuple):
    """The bins in the end.

    Attributes
    ----------
    shares : list of (Bin, int)
        Bins with the numbers of rows that they take: adjacent rows of the analysis' list each. The first is for rows without
        products; others have some.
    rulings : sequence of Ruling
        The decisions for accumulators that the strategy does not give.
    """

    shares: list[tuple[Bin, int]]
    rulings: Sequence[Ruling[Choice]] = ()


def refine(kind: Kind, features: Features, decision: Decision, work: Work, budget: Budget) -> Assignment:
    """Return the final bins of a product, and the rows that each of them takes.

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
    single_bin, n_empty = _one_for_all(kind, features, decision, work), work.taken[0]
    if single_bin is not None:
        return Assignment([(EMPTY, n_empty), (single_bin, features.shape[0] - n_empty)])
    if not decision.is_auto:
        return Assignment(list(zip(decision.bins, work.taken, strict=True)))
    bins, rulings = choose(kind, features, decision.bins, work, budget, decision.choices)
    return Assignment([(EMPTY, n_empty), *_join(kind.thresholds, zip(bins[1:], work.taken[1:], strict=True))], rulings)


def _one_for_all(kind: Kind, features: Features, decision: Decision, work: Work) -> Bin | None:
    """Return the bin that had better take all rows; None if there is none."""
    limits = kind.thresholds
    if not decision.is_auto:
        light = all(bin_.method in ("", "reg-merge") for bin_, n in zip(decision.bins, work.taken, strict=True) if n)
    elif 0 < work.n_products <= limits.max_small_products:
        return small(kind, limits, work.longest_row)
    else:
        light = compresses(limits, features.A) or is_light(limits, work.longest_row, features.mean_row_of_b)
    return alone(limits, work.longest_row, work.max_products, staged_entries(kind, features)) if light else None


def _join(limits: Thresholds, shares: Iterable[tuple[Bin, int]]) -> Iterator[tuple[Bin, int]]:
    """Iterate over bins that have rows: one goes to the next if that has its accumulator, or takes its few rows too."""
    pending: tuple[Bin, int] | None = None
    for bin_, n in shares:
        if not n:
            continue
        if pending is not None:
            earlier, n_before = pending
            if earlier.accumulator is bin_.accumulator or (_few(limits, n_before, earlier, bin_) and earlier.joins(bin_)):
                n += n_before
            else:
                yield pending
        pending = bin_, n
    if pending is not None:
        yield pending


def _few(thresholds: Thresholds, n_rows: int, bin_: Bin, later: Bin) -> bool:
    """Return whether a bin's rows are so few that a later bin of the same method had better take them."""
    if isinstance(bin_.accumulator, Sort):
        return n_rows * ((later.max_products or 0) - (bin_.max_products or 0)) <= thresholds.max_joined_places
    return n_rows < thresholds.max_joined_rows


def suits_upper_bound(limits: Thresholds, n_rows: int, work: Work, bins: Sequence[Bin]) -> bool:
    """Return whether a row is made with room for all its products, and moved, rather than counted first.

    If products hardly contract, and rows are so short that what they are made of takes longer to find than they take to move.
    """
    n_products, compression = work.n_products, work.compression
    if not 0 < n_products <= INT32_MAX or n_rows > INT32_MAX or compression > limits.max_upper_compression:
        return False
    if len(bins) == 1 and isinstance(bins[0].accumulator, DenseChunked):
        # Chunks of rows have a buffer each, without gaps: the compaction moves as many entries as C has.
        return n_products <= n_rows * max(limits.max_upper_mean, limits.max_moved * compression)
    if n_products > limits.max_upper_mean * n_rows:
        return False
    return all(isinstance(bin_.accumulator, _BY_UPPER_BOUND) for bin_ in bins)


def are_long(kind: Kind, bin_: Bin, n_rows: int, n_all: int) -> bool:
    """Return whether rows leave most of a device idle for long, which other rows of the product can have meanwhile."""
    few_rows = n_rows <= kind.thresholds.max_side_groups * kind.device.compute_units
    return few_rows and n_rows < n_all and isinstance(bin_.accumulator, EscGroup)


def numeric_bin(thresholds: Thresholds, speculation: Speculation, speculated: Speculated, inputs: int) -> Bin | None:
    """Return the bin of the numeric phase after a speculation that held; None if rows had better not be merged."""
    if speculation.accumulator.lanes == 1 and speculation.accumulator.length <= max_item_length(thresholds):
        return alone(thresholds, speculated.longest_row, 0, inputs) or speculation.bin
    compresses = speculated.n_products >= thresholds.min_merged_compression * speculated.nnz
    return speculation.bin if compresses or speculated.n_products <= thresholds.max_small_products else None


class Step(NamedTuple):
    """The rows of one bin, which has some, and the state that its accumulator keeps for them.

    ``long``: they are few, and each takes long; those of other bins are made at the same time.
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
        Of rows with products: without their states and, if rows are listed, their list.
    is_listed : bool
        Whether rows are listed by bins; one bin takes all of them else.
    reason : Reason
    suits_upper_bound : bool
        Whether C is allocated by its upper bound if there is memory, and its rows are made without being counted first.
    """

    steps: list[Step]
    is_listed: bool
    reason: Reason
    suits_upper_bound: bool


def partition_of(kind: Kind, features: Features, decision: Decision, work: Work, budget: Budget) -> Partition:
    """Return how rows are shared out by their work."""
    n_rows, (shares, rulings) = features.shape[0], refine(kind, features, decision, work, budget)
    rows_of_bins, is_listed = _partition_rows(n_rows, shares)
    nonempty = [(bin_, rows) for bin_, rows in rows_of_bins if bin_.accumulator is not None]
    steps = [Step(bin_, rows, long=are_long(kind, bin_, rows.n, n_rows)) for bin_, rows in nonempty]
    loose = decision.may_skip_counting and suits_upper_bound(kind.thresholds, n_rows, work, [bin_ for bin_, _ in nonempty])
    reason = decision.reason._replace(of_bins=rulings) if rulings else decision.reason
    return Partition(steps, is_listed, reason, loose)


def _partition_rows(n_rows: int, shares: Sequence[tuple[Bin, int]]) -> tuple[list[tuple[Bin, Rows]], bool]:
    """Return the rows of each bin that has some, and whether they are listed: not if one bin takes all.

    Parameters
    ----------
    n_rows : int
    shares : sequence of (Bin, int)
        Bins in their order with their numbers of rows, of which the first is for rows without products: where it costs less to
        visit them than to sort them out, another bin takes them too. The order of rows is kept within each.
    """
    n_empty = shares[0][1]
    for bin_, n in shares:
        if n == n_rows or (bin_.takes_empty and 0 < n == n_rows - n_empty):
            return [(bin_, Rows(n_rows, n_empty=n_rows - n))], False
    firsts = itertools.accumulate((n for _, n in shares), initial=0)
    return [(bin_, Rows(n, first)) for (bin_, n), first in zip(shares, firsts, strict=False) if n], True
