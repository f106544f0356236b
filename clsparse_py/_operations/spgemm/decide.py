"""Decisions before the analysis of rows: pure functions of features, limits and profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from clsparse_py._decisions.profiles import Ruling
from clsparse_py._operations.spgemm.all_rows import compresses, is_light, max_item_length, merge_all, small_merge
from clsparse_py._operations.spgemm.bins import Bin, Bins
from clsparse_py._operations.spgemm.choice import Choice
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.merge import Merge, merges
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.strategy import PLAIN, Strategy, bins_for, decide_strategy
from clsparse_py._operations.spgemm.thresholds import Thresholds

__all__ = ["Decision", "Reason", "Speculation", "decide", "is_uneven", "speculation_for"]


class Reason(NamedTuple):
    """The reason for the bins of a product, put into words when it is asked for.

    Attributes
    ----------
    text : str
        If no profile decided.
    ruling : Ruling or None
        If a profile decided.
    upper_bound : bool
        Whether C was allocated by its upper bound.
    of_bins : sequence of Ruling
        What a profile decided for bins, if not what the strategy gives.
    """

    text: str
    ruling: Ruling[Strategy] | None = None
    upper_bound: bool = False
    of_bins: Sequence[Ruling[Choice]] = ()

    def __str__(self) -> str:
        ruling = self.ruling
        how = "; C allocated by its upper bound, not counted first" if self.upper_bound else ""
        bins = "".join(f"; {reason}" for reason in dict.fromkeys(f"{reason.label}, by {reason.why}" for reason in self.of_bins))
        return (self.text if ruling is None else f"{ruling.label}, by {ruling.why}") + bins + how


class Decision(NamedTuple):
    """The decision for a product whose rows are analysed.

    Attributes
    ----------
    bins : Bins
        Among which the analysis shares rows out.
    reason : Reason
    is_auto : bool
        Whether a strategy gave them, so that the work of rows refines them.
    is_uneven : bool
        Whether several bins are likely to have rows, so that these are listed while the host waits for the analysis.
    may_skip_counting : bool
        Whether C may be allocated by its upper bound, and its rows made without being counted first.
    choices : mapping of int to Choice, or None
        What makes the bins of these numbers, if the profile is not to decide.
    """

    bins: Bins
    reason: Reason
    is_auto: bool = False
    is_uneven: bool = False
    may_skip_counting: bool = False
    choices: Mapping[int, Choice] | None = None


def decide(kind: Kind, features: Features, request: Request, budget: Budget) -> Decision:
    """Return the decision for a product.

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
        return Decision(PLAIN, Reason("plain kernels"))
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
    """Return whether several bins are likely to have rows, by what is known of A."""
    A = features.A
    return A is not None and A.longest is not None and A.longest * features.shape[0] > thresholds.min_listed_by_mean * A.nnz


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


def speculation_for(kind: Kind, features: Features) -> Speculation | None:
    """Return the accumulator that may hold all rows of a product, so that the analysis is spared; None if there is none.

    Means and the facts of the structures tell. Uniform rows are merged if many columns of A are neighbours, as their rows of B
    are likely to have columns in common. Rows count as uniform, too, if the device holds the teams of all of them at a time.
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
        return _speculation_for(kind, limits, longest, few_products, by_item, 0, mergeable)
    near = compresses(limits, A)
    by_item = _by_item(limits, of_a, mean_row_of_b, near=near) if mergeable else 0
    items_per_row = kind.device.compute_units * kind.device.resident // n_rows
    uniform = of_a <= max(limits.max_longest_by_mean * mean_row, limits.merge_items * items_per_row)
    alike = near and uniform and of_a * n_products <= limits.max_speculative_work
    width = min(kind.device.portability.lane_width, limits.max_merge_lanes)
    max_lanes = min(max(items_per_row, 1), width) if alike else 0
    return _speculation_for(kind, limits, of_a, few_products, by_item, max_lanes, mergeable)


def _by_item(limits: Thresholds, longest: int, mean_row_of_b: float, *, near: bool) -> float:
    """Return up to which entries of a row one work-item merges each row; 0 if it compares too many heads for that."""
    if is_light(limits, longest, mean_row_of_b):
        return max_item_length(limits)
    return limits.max_item_length if near else 0


def _speculation_for(
    kind: Kind, limits: Thresholds, longest: int, few_products: bool, by_item: float, max_lanes: int, mergeable: bool
) -> Speculation | None:
    """Return the speculation for rows of A up to some length: of few products, or rows that are alike.

    Parameters
    ----------
    kind : Kind
    limits : Thresholds
    longest : int
    few_products : bool
        Whether there are few products.
    by_item : float
        Entries of a row, up to which one work-item merges each row.
    max_lanes : int
        Lanes of a row with which the device holds all rows at a time; 0 if rows are not uniform, or do not compress.
    mergeable : bool
        Whether a work-item by itself merges the products of a mean row.
    """
    if few_products:
        accumulator = small_merge(kind, limits, longest)
        return Speculation(accumulator, merge_all(accumulator), limits.max_small_products) if accumulator else None
    accumulator = Merge(1, longest) if longest <= min(by_item, limits.max_item_length) else None
    if accumulator is None and max_lanes and longest > limits.max_item_length:
        shapes = merges(kind.device, kind.types, limits, registers=True)
        fitting = (shape for shape in shapes if longest <= shape.length <= limits.max_speculative_length)
        accumulator = next((_spread(shape, limits, max_lanes) for shape in fitting if mergeable or shape.lanes > 1), None)
    if accumulator is None and longest <= by_item:
        accumulator = Merge(1, longest)
    return Speculation(accumulator, merge_all(accumulator), None) if accumulator else None


def _spread(team: Merge, limits: Thresholds, max_lanes: int) -> Merge:
    """Return an accumulator for rows as long with more lanes of fewer heads, up to some number of lanes."""
    lanes, items = team.lanes, team.items
    while 1 < lanes <= max_lanes // 2 and items > limits.min_merge_items:
        lanes, items = 2 * lanes, items // 2
    return replace(team, lanes=lanes, items=items)
