"""Choose the accumulator of a bin, when the work of rows is known: by a tree of the device's profile over the bin's features."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clsparse_py._decisions import profiles
from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.choice import GIVEN, LAST, Choice, parse_choice
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense import DenseWindows
from clsparse_py._operations.spgemm.registry import FAMILIES
from clsparse_py._operations.spgemm.strategy import Entry, Strategy, auto, is_narrow
from clsparse_py._precision.arithmetic import name_of

__all__ = ["NAMES", "BinFeatures", "Chosen", "ProductFeatures", "choose", "takers"]


class Chosen(NamedTuple):
    """The accumulators chosen for the bins of a product.

    Attributes
    ----------
    bins : list of Bin
        In the order of the bins that are given, each with the accumulator in the end.
    rulings : list of Ruling
        The decisions for another accumulator than the strategy's.
    """

    bins: list[Bin]
    rulings: list[profiles.Ruling[Choice]]


class ProductFeatures(dict[str, float]):
    """The features that all bins of a product share, each worked out when it is first asked for.

    What was known before the analysis, see `Features.by_name`, and the work of all rows.

    Parameters
    ----------
    kind : Kind
    features : Features
    bins : sequence of Bin
        Of the strategy; the first is for rows without products.
    work : Work
    """

    def __init__(self, kind: Kind, features: Features, bins: Sequence[Bin], work: Work) -> None:
        self.kind, self.features, self.bins, self.work = kind, features, bins, work
        # Rows that have products.
        self.n_rows = max(sum(work.taken) - work.taken[0], 1)

    def __missing__(self, name: str) -> float:
        of_work = _OF_WORK.get(name)
        if of_work is None:
            self.update(features_by_name := self.features.by_name(self.kind.device))
            return features_by_name[name]
        value = self[name] = of_work(self)
        return value


def _window_entries(product: ProductFeatures) -> float:
    """Return how many entries of a row of B are in a window of columns."""
    n, nnz = product.features.shape[2], product.features.nnz[0]
    return product.work.n_products * min(DenseWindows().columns_of(product.kind.types), n) / max(nnz * n, 1)


def _is_mergeable(product: ProductFeatures) -> float:
    """Return whether the strategy has a bin that merges the longest row of A."""
    longest = product.work.longest_row
    return float(any(bin_.even and (bin_.max_length or 0) >= longest for bin_ in product.bins))


#: Features of a product's work that trees may compare, by name.
_OF_WORK: dict[str, Callable[[ProductFeatures], float]] = {
    "row_products": lambda product: product.work.n_products / product.n_rows,
    "max_products_by_mean": lambda product: product.work.max_products / max(product.work.n_products / product.n_rows, 1),
    "compression": lambda product: product.work.compression,
    # C's upper bound: less than 1 if rows span fewer columns than they have products.
    "bound_by_products": lambda product: product.work.bound / max(product.work.n_products, 1),
    "window_entries": _window_entries,
    "mergeable": _is_mergeable,
}


class BinFeatures(dict[str, float]):
    """The features of a bin: those of its product, and its own, each worked out when it is first asked for.

    Parameters
    ----------
    of : ProductFeatures
    number : int
        Of the bin.
    """

    def __init__(self, product: ProductFeatures, number: int) -> None:
        self.of, self.bin, self.n_rows = product, product.bins[number], product.work.taken[number]

    def __missing__(self, name: str) -> float:
        of_bin = _OF_BIN.get(name)
        value = self[name] = self.of[name] if of_bin is None else of_bin(self)
        return value

    @functools.cached_property
    def most(self) -> tuple[int, int, int]:
        """The most products, the longest row of A and the widest span of its rows, as far as is known."""
        return _needs([self.bin], self.of.work, self.of.features.shape[2])


def _span_by_local(bin_features: BinFeatures) -> float:
    """Return the bytes of a row's dense sums over its span of columns, divided by the bytes of local memory."""
    kind = bin_features.of.kind
    return bin_features.most[2] * (kind.result.itemsize + 1) / kind.device.local_memory


def _rows_by_items(bin_features: BinFeatures) -> float:
    """Return the bin's rows, divided by the work-items that the device holds at a time."""
    device = bin_features.of.kind.device
    return bin_features.n_rows / (device.compute_units * device.resident)


def _is_of(family: str, bin_features: BinFeatures) -> float:
    """Return whether the strategy's accumulator is of a family of methods."""
    return float(bin_features.bin.method in FAMILIES[family])


#: Features of a bin that trees may compare, by name.
_OF_BIN: dict[str, Callable[[BinFeatures], float]] = {
    "bin_share": lambda features: features.n_rows / features.of.n_rows,
    "bin_rows_by_items": _rows_by_items,
    "bin_products": lambda features: features.most[0],
    "bin_length": lambda features: features.most[1],
    "span_by_local": _span_by_local,
    **{family: functools.partial(_is_of, family) for family in FAMILIES},
}
#: All features: what trees may compare.
NAMES = (*Features((1, 1, 1), (1, 1)).by_name(), *_OF_WORK, *_OF_BIN)
_KNOWN = dict.fromkeys(NAMES, 0.0)


def choose(
    kind: Kind,
    features: Features,
    bins: Sequence[Bin],
    work: Work,
    budget: Budget,
    choices: Mapping[int, Choice] | None = None,
) -> Chosen:
    """Return what makes the rows of each bin.

    Parameters
    ----------
    kind : Kind
    features : Features
    bins : sequence of Bin
        Of a strategy; the first is for rows without products.
    work : Work
        As the analysis found it with these bins.
    budget : Budget
    choices : mapping of int to Choice, optional
        By the number of a bin: what makes it, if the profile is not to decide.
    """
    rules = profiles.rules(kind.device, "spgemm", name_of(kind.result), "bin", _KNOWN, parse_choice)
    shared, rows_of_bins = ProductFeatures(kind, features, bins, work), work.taken
    chosen_by_number: dict[int, Choice] = {}
    rulings = []
    # The last one is decided in any case, as others may go there.
    for number in [*(number for number in range(1, len(bins) - 1) if rows_of_bins[number]), len(bins) - 1]:
        if choices and number in choices:
            chosen_by_number[number] = choices[number]
            continue
        ruling = rules.decide(BinFeatures(shared, number))
        if ruling.label != GIVEN:
            chosen_by_number[number] = ruling.value
            if rows_of_bins[number]:
                rulings.append(ruling)
    chosen_by_number = {number: choice for number, choice in chosen_by_number.items() if choice.method != GIVEN}
    return Chosen(_build_bins(shared, budget, chosen_by_number) if chosen_by_number else list(bins), rulings)


def _build_bins(product: ProductFeatures, budget: Budget, choices: Mapping[int, Choice]) -> list[Bin]:
    """Return the bins with the chosen accumulators; bins without a matching method stay as given."""
    kind, bins, work, n_columns = product.kind, product.bins, product.work, product.features.shape[2]
    new_bins, together = list(bins), {bin_choice for bin_choice in choices.values() if bin_choice.together}
    groups = [[number for number, other in choices.items() if other is bin_choice] for bin_choice in together]
    groups += [[number] for number, bin_choice in choices.items() if not bin_choice.together and bin_choice.method != LAST]
    for numbers in groups:
        choice = choices[numbers[0]]
        rows = _needs([bins[number] for number in numbers], work, n_columns)
        if choice.together:
            rows = rows[0], work.longest_row, rows[2]
        able = (bin_ for bin_ in _candidates(kind, bins, choice.method, n_columns, budget) if bin_.takes(rows))
        taker = next(able, None)
        for number in numbers:
            new_bins[number] = taker or bins[number]
    for number in range(len(bins) - 2, 0, -1):
        if number in choices and choices[number].method == LAST:
            new_bins[number] = new_bins[-1]
        elif work.taken[number]:
            break
    return new_bins


def _candidates(kind: Kind, bins: Sequence[Bin], method: str, n_columns: int, budget: Budget) -> Iterator[Bin]:
    """Iterate over the bins of a method: those of the strategy before the others."""
    yield from (bin_ for bin_ in bins if bin_.method == method)
    yield from takers(kind, method, n_columns, budget)


def _needs(bins: Sequence[Bin], work: Work, n_columns: int) -> tuple[int, int, int]:
    """Return the most products, the longest row of A and the widest span that rows of some bins have, as far as is known."""
    products, lengths, spans = zip(*(bin_.limits for bin_ in bins), strict=True)
    return _least(products, work.max_products), _least(lengths, work.longest_row), _least(spans, n_columns)


def _least(limits: Sequence[int], bound: int) -> int:
    """Return the largest of the limits, or ``bound`` if a limit is -1 (none) or larger than it."""
    return bound if min(limits) < 0 else min(max(limits), bound)


def takers(kind: Kind, method: str, n_columns: int, budget: Budget) -> tuple[Bin, ...]:
    """Return the bins of a method if B has so many columns, and the workspace so many bytes."""
    narrow = is_narrow(kind.types, n_columns, min(budget))
    bins = auto(kind.device, kind.types, Strategy((Entry(method),)))
    return tuple(bin_ for bin_ in bins if bin_.holds(n_columns, budget.workspace, narrow=narrow))
