"""Decisions before the analysis of rows, and bins by which one kernel merges all rows: pure functions of features and profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from clsparse_py._build.plain import explain_plain
from clsparse_py._decisions.profiles import Profile, Ruling
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.spgemm.bins import Bin, Bins
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.merge import Merge, merges
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import PLAIN, Choice, Strategy, bins_for, decide_strategy
from clsparse_py._operations.spgemm.thresholds import Thresholds

__all__ = [
    "Decision",
    "Reason",
    "Speculation",
    "compresses",
    "decide",
    "is_light",
    "is_uneven",
    "max_item_length",
    "single_item_bin",
    "small_product_bin",
    "speculation_for",
    "staged_entries",
]

#: Multiple to which the number of B's entries staged in local memory is rounded up, as each number is a kernel of its own.
_STAGED_MULTIPLE = 128


class Reason(NamedTuple):
    """The reason for the bins of a product, put into words when it is asked for.

    Attributes
    ----------
    text : str
        The reason if no profile decided.
    ruling : Ruling or None
        The decision of a profile, and its path.
    upper_bound : bool
        Whether C was allocated by its upper bound.
    of_bins : sequence of Ruling
        A profile's decisions for other accumulators of bins than the strategy's.
    """

    text: str
    ruling: Ruling[Strategy] | None = None
    upper_bound: bool = False
    of_bins: Sequence[Ruling[Choice]] = ()

    @property
    def deciding(self) -> tuple[Profile, ...]:
        """The profiles that decided on the product's bins and their accumulators."""
        rulings = (*(() if self.ruling is None else (self.ruling,)), *self.of_bins)
        return tuple(dict.fromkeys(ruling.rules.profile for ruling in rulings))

    def __str__(self) -> str:
        ruling = self.ruling
        how = "; C allocated by its upper bound, not counted first" if self.upper_bound else ""
        bins = "".join(f"; {reason}" for reason in dict.fromkeys(f"{reason.label}, by {reason.why}" for reason in self.of_bins))
        return (self.text if ruling is None else f"{ruling.label}, by {ruling.why}") + bins + how


class Decision(NamedTuple):
    """The bins of a product whose rows are analysed, and the reason for them.

    Attributes
    ----------
    bins : Bins
        The bins among which the analysis shares rows out.
    reason : Reason
    is_auto : bool
        Whether a strategy gave the bins, so that the work of rows refines them.
    is_uneven : bool
        Whether several bins are likely to have rows, so that rows are listed while the host waits for the analysis.
    may_skip_counting : bool
        Whether C may be allocated by its upper bound, and its rows made without being counted first.
    choices : mapping of int to Choice, or None
        Accumulators by the numbers of bins, if the profile is not to decide.
    """

    bins: Bins
    reason: Reason
    is_auto: bool = False
    is_uneven: bool = False
    may_skip_counting: bool = False
    choices: Mapping[int, Choice] | None = None


def decide(kind: Kind, features: Features, request: Request, budget: Budget) -> Decision:
    """Return the bins (classes of rows by size) among which the analysis shares a product's rows out, and the reason for them.

    Parameters
    ----------
    kind : Kind
        Device and types, with the thresholds of the device's profile.
    features : Features
    request : Request
    budget : Budget
    """
    device, types, n = kind.device, kind.types, features.shape[2]
    strategy, bins = request.strategy, request.bins
    if bins is not None:
        return Decision(bins, Reason(request.why))
    if device.is_plain:
        return Decision(PLAIN, Reason(explain_plain(request.method)))
    if request.method != "auto":
        reason = Reason("the method was named")
    elif strategy is not None:
        reason = Reason("the strategy was given")
    else:
        ruling = decide_strategy(device, types, features.by_name(device))
        strategy, reason = ruling.value, Reason("", ruling)
    bins = bins_for(request.method, device, types, n, budget.workspace, strategy, budget.accumulator)
    if not request.is_auto:
        return Decision(bins, reason)
    return Decision(bins, reason, True, is_uneven(kind.thresholds, features), request.may_skip_counting, request.choices)


def is_uneven(thresholds: Thresholds, features: Features) -> bool:
    """Return whether rows of A differ so much in length that several bins likely have rows; False if lengths are unknown."""
    A = features.A
    return A is not None and A.longest is not None and A.longest * features.shape[0] > thresholds.min_listed_by_mean * A.nnz


class Speculation(NamedTuple):
    """A guess that one accumulator holds all rows of a product, which the symbolic phase checks.

    Attributes
    ----------
    accumulator : Merge
    bin : Bin
        The bin of all rows, with this accumulator.
    max_products : int or None
        The most products with which the guess counts; None for no limit.
    """

    accumulator: Merge
    bin: Bin
    max_products: int | None


def speculation_for(kind: Kind, features: Features) -> Speculation | None:
    """Return the speculation that one accumulator holds all rows of a product, which spares the analysis; None if none pays.

    Means and the facts of the structures decide. Uniform rows are merged if many columns of A are neighbours, as their rows of B
    are likely to have columns in common. Rows count as uniform, too, if the device holds the teams of all rows at a time.
    """
    (n_rows, inner, _), (nnz, nnz_of_b), A, B, _ = features
    mean_row, mean_row_of_b = nnz / n_rows, nnz_of_b / inner
    of_a, of_b, mean_products = A.longest if A else None, B.longest if B else None, mean_row * mean_row_of_b
    limits = kind.thresholds
    if kind.device.is_plain or (of_b is not None and of_b > limits.max_speculated):
        return None
    n_products, mergeable = mean_products * n_rows, mean_products <= limits.max_speculated
    few_products = n_products <= limits.max_small_products // 2
    if A is None or of_a is None:
        longest = math.ceil(1.5 * mean_row) * (2 if few_products else 1)
        by_item: float = limits.max_item_length if mergeable and is_light(limits, longest, mean_row_of_b) else 0
        return _choose_speculation(kind, limits, longest, few_products, by_item, 0, mergeable)
    near = compresses(limits, A)
    by_item = _max_length_by_item(limits, of_a, mean_row_of_b, near=near) if mergeable else 0
    items_per_row = kind.device.compute_units * kind.device.resident // n_rows
    uniform = of_a <= max(limits.max_longest_by_mean * mean_row, limits.merge_items * items_per_row)
    alike = near and uniform and of_a * n_products <= limits.max_speculative_work
    width = min(kind.device.portability.lane_width, limits.max_merge_lanes)
    max_lanes = min(max(items_per_row, 1), width) if alike else 0
    return _choose_speculation(kind, limits, of_a, few_products, by_item, max_lanes, mergeable)


def _max_length_by_item(limits: Thresholds, longest: int, mean_row_of_b: float, *, near: bool) -> float:
    """Return the most entries of a row of A that one work-item merges; 0 if it is slow and C compresses little (not ``near``).

    ``near``: whether many columns of A are neighbours, so that C has far fewer entries than products.
    """
    if is_light(limits, longest, mean_row_of_b):
        return max_item_length(limits)
    return limits.max_item_length if near else 0


def _choose_speculation(
    kind: Kind, limits: Thresholds, longest: int, few_products: bool, by_item: float, max_lanes: int, mergeable: bool
) -> Speculation | None:
    """Return the speculation that one merge kernel holds all rows, the longest of A with ``longest`` entries; None if none suits.

    Parameters
    ----------
    kind : Kind
    limits : Thresholds
    longest : int
    few_products : bool
        Whether the product is a small one.
    by_item : float
        The longest row of A that one work-item merges.
    max_lanes : int
        Lanes of a row with which the device holds all rows at a time; 0 if rows are not uniform, or do not compress.
    mergeable : bool
        Whether a work-item by itself merges the products of a mean row.
    """
    if few_products:
        accumulator = small_product_merge(kind, limits, longest)
        return Speculation(accumulator, merge_all(accumulator), limits.max_small_products) if accumulator else None
    accumulator = Merge(1, longest) if longest <= min(by_item, limits.max_item_length) else None
    if accumulator is None and max_lanes and longest > limits.max_item_length:
        shapes = merges(kind.device, kind.types, limits, registers=True)
        fitting = (shape for shape in shapes if longest <= shape.length <= limits.max_speculative_length)
        accumulator = next((_widen_team(shape, limits, max_lanes) for shape in fitting if mergeable or shape.lanes > 1), None)
    if accumulator is None and longest <= by_item:
        accumulator = Merge(1, longest)
    return Speculation(accumulator, merge_all(accumulator), None) if accumulator else None


def _widen_team(team: Merge, limits: Thresholds, max_lanes: int) -> Merge:
    """Return the merging accumulator ``team`` with more lanes to a row, up to ``max_lanes``, and fewer rows of B to a lane."""
    lanes, items = team.lanes, team.items
    while 1 < lanes <= max_lanes // 2 and items > limits.min_merge_items:
        lanes, items = 2 * lanes, items // 2
    return replace(team, lanes=lanes, items=items)


def merge_all(accumulator: Merge) -> Bin:
    """Return the bin that gives all rows of a product to a merging accumulator, if A's longest row fits in the accumulator."""
    return Bin("reg-merge", accumulator, max_length=accumulator.length, takes_empty=True)


def small_product_bin(kind: Kind, thresholds: Thresholds, longest_row: int) -> Bin | None:
    """Return the bin that makes all rows of a small product by one launch a phase; None if a row of A is too long for it."""
    accumulator = small_product_merge(kind, thresholds, longest_row)
    return merge_all(accumulator) if accumulator else None


def small_product_merge(kind: Kind, thresholds: Thresholds, longest_row: int) -> Merge | None:
    """Return the smallest merging accumulator that makes all rows of a small product; None if a row of A is too long for any."""
    shapes = merges(kind.device, kind.types, thresholds, registers=True)
    fitting = (
        shape for shape in shapes if shape.lanes <= thresholds.max_small_lanes and shape.items <= thresholds.max_small_items
    )
    return next((shape for shape in fitting if shape.length >= longest_row), None)


def single_item_bin(thresholds: Thresholds, longest_row: int, max_products: int, inputs: int) -> Bin | None:
    """Return the bin of all rows in order, one work-item merging each; None if rows of A are long or have many products.

    ``inputs``: entries of B that a work-group stages, see `staged_entries`.
    """
    if not 0 < longest_row <= thresholds.max_item_length or max_products > thresholds.max_item_products:
        return None
    return Bin("reg-merge", Merge(1, longest_row, staged_b=inputs), max_length=longest_row, takes_empty=True)


def max_item_length(limits: Thresholds) -> float:
    """Return the number of entries of the longest row of A that one work-item merges without analysis, whatever B is."""
    return max(limits.max_item_length, limits.max_light_length)


def is_light(thresholds: Thresholds, longest_row: int, mean_row_of_b: float) -> bool:
    """Return whether a work-item compares at most `max_item_steps` heads (entries of rows of B) to merge A's longest row."""
    return longest_row * longest_row * mean_row_of_b <= thresholds.max_item_steps


def compresses(thresholds: Thresholds, A: Facts | None) -> bool:
    """Return whether rows of C likely have far fewer entries than products, as rows of B that a row of A names share columns."""
    return A is not None and A.adjacent >= thresholds.min_adjacent_share * A.nnz


def staged_entries(kind: Kind, features: Features) -> int:
    """Return how many entries of B a sub-group stages in local memory for its rows of A; 0 if columns of A are seldom neighbours.

    0 on devices whose lanes exchange by local memory, too.

    In grids, a row of A has the neighbouring columns of the row before: only its other columns name further rows of B.
    """
    portability, A = kind.device.portability, features.A
    if portability.lanes == "local" or A is None or A.adjacent < max(kind.thresholds.min_staged_share * A.nnz, 1):
        return 0
    n_named = ((A.nnz - A.adjacent) * portability.lane_width + A.adjacent) / features.shape[0]
    return math.ceil(n_named * features.mean_row_of_b / _STAGED_MULTIPLE) * _STAGED_MULTIPLE
