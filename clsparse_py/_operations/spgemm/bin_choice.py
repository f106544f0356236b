"""Choose the accumulator of each bin by a tree of the device's profile over the bin's features, after the analysis of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from clsparse_py._decisions import profiles
from clsparse_py._operations.spgemm.analysis import Work
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.features import Budget, Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense import DenseWindows
from clsparse_py._operations.spgemm.registry import FAMILIES
from clsparse_py._operations.spgemm.strategy import GIVEN, LAST, Choice, Entry, Strategy, is_narrow, parse_choice, strategy_bins
from clsparse_py._precision.arithmetic import name_of

__all__ = ["NAMES", "BinFeatures", "ProductFeatures", "bins_of_method", "choose"]


class ProductFeatures(dict[str, float]):
    """The features that all bins of a product share, computed when they are first asked for.

    Those are the features before the analysis, see `Features.by_name`, and features of the work of all rows.

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
        # The mean products of a row, and shares of rows, leave out the first bin, whose rows of C have no products.
        self.n_rows = max(sum(work.taken) - work.taken[0], 1)

    def __missing__(self, name: str) -> float:
        of_work = _OF_WORK.get(name)
        if of_work is None:
            self.update(features_by_name := self.features.by_name(self.kind.device))
            return features_by_name[name]
        value = self[name] = of_work(self)
        return value


def _window_entries(product: ProductFeatures) -> float:
    """Return the mean number of entries that a row of B has in a window, a range of columns with sums in local memory."""
    n, nnz = product.features.shape[2], product.features.nnz[0]
    return product.work.n_products * min(DenseWindows().columns_of(product.kind.types), n) / max(nnz * n, 1)


def _is_mergeable(product: ProductFeatures) -> float:
    """Return 1 if a product's strategy has a bin whose accumulator merges the longest row of A, else 0."""
    longest = product.work.longest_row
    return float(any(bin_.even and (bin_.max_length or 0) >= longest for bin_ in product.bins))


#: Functions that compute a product's features after the analysis, by the names that a profile's decision trees compare.
_OF_WORK: dict[str, Callable[[ProductFeatures], float]] = {
    "row_products": lambda product: product.work.n_products / product.n_rows,
    "max_products_by_mean": lambda product: product.work.max_products / max(product.work.n_products / product.n_rows, 1),
    "compression": lambda product: product.work.compression,
    # Upper bound of C's entries, divided by products: less than 1 if rows of C span fewer columns than they have products.
    "bound_by_products": lambda product: product.work.bound / max(product.work.n_products, 1),
    "window_entries": _window_entries,
    "mergeable": _is_mergeable,
}


class BinFeatures(dict[str, float]):
    """The features of a bin and of its product, computed when they are first asked for.

    Parameters
    ----------
    product : ProductFeatures
    number : int
        Number of the bin.
    """

    def __init__(self, product: ProductFeatures, number: int) -> None:
        self.product, self.bin, self.n_rows = product, product.bins[number], product.work.taken[number]

    def __missing__(self, name: str) -> float:
        of_bin = _OF_BIN.get(name)
        value = self[name] = self.product[name] if of_bin is None else of_bin(self)
        return value

    @functools.cached_property
    def max_work(self) -> tuple[int, int, int]:
        """Upper bounds of the rows of a bin (class of rows): most products, longest row of A, widest span of columns."""
        return _max_work([self.bin], self.product.work, self.product.features.shape[2])


def _span_by_local(bin_features: BinFeatures) -> float:
    """Return the bytes of a sum and a mark for each column that a bin's widest row spans, divided by those of local memory."""
    kind = bin_features.product.kind
    return bin_features.max_work[2] * (kind.result.itemsize + 1) / kind.device.local_memory


def _rows_by_items(bin_features: BinFeatures) -> float:
    """Return the number of rows of C in a bin (class of rows), divided by the work-items that the device holds at a time."""
    device = bin_features.product.kind.device
    return bin_features.n_rows / (device.compute_units * device.resident)


def _is_of_family(family: str, bin_features: BinFeatures) -> float:
    """Return 1 if the strategy's accumulator of a bin (class of rows) is of a family of methods, such as "sorts"; else 0."""
    return float(bin_features.bin.method in FAMILIES[family])


#: Functions that compute the features of a bin (class of rows), by the names that a profile's decision trees compare.
_OF_BIN: dict[str, Callable[[BinFeatures], float]] = {
    "bin_share": lambda features: features.n_rows / features.product.n_rows,
    "bin_rows_by_items": _rows_by_items,
    "bin_products": lambda features: features.max_work[0],
    "bin_length": lambda features: features.max_work[1],
    "span_by_local": _span_by_local,
    **{family: functools.partial(_is_of_family, family) for family in FAMILIES},
}
#: Names of all features of a product and of a bin (class of rows) that a profile's decision trees may compare.
NAMES = (*Features((1, 1, 1), (1, 1)).by_name(), *_OF_WORK, *_OF_BIN)
#: Features with which a profile's decision trees for bins (classes of rows) are checked: each name that a tree may use, with the
#: value 0.
_KNOWN = dict.fromkeys(NAMES, 0.0)


def choose(
    kind: Kind,
    features: Features,
    bins: Sequence[Bin],
    work: Work,
    budget: Budget,
    choices: Mapping[int, Choice] | None = None,
) -> tuple[list[Bin], list[profiles.Ruling[Choice]]]:
    """Return a product's bins (classes of rows) with final accumulators, and the profile's rulings by which they changed.

    Parameters
    ----------
    kind : Kind
    features : Features
    bins : sequence of Bin
        Of a strategy; the first is for rows without products.
    work : Work
        Result of the analysis with these bins.
    budget : Budget
    choices : mapping of int to Choice, optional
        Choices by the numbers of bins, if the profile is not to decide.
    """
    rules = profiles.rules(kind.device, "spgemm", name_of(kind.result), "bin", _KNOWN, parse_choice)
    shared, rows_of_bins = ProductFeatures(kind, features, bins, work), work.taken
    chosen_by_number: dict[int, Choice] = {}
    rulings = []
    # The accumulator of the last bin is chosen even if that bin has no rows, as rows of other bins may go there.
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
    return _build_bins(shared, budget, chosen_by_number) if chosen_by_number else list(bins), rulings


def _build_bins(product: ProductFeatures, budget: Budget, choices: Mapping[int, Choice]) -> list[Bin]:
    """Return bins (classes of rows) with chosen accumulators; a bin keeps its own if the chosen method does not take its rows.

    With the choice `LAST` a bin gets the accumulator of the last bin, if all bins between them that have rows get it too.
    """
    kind, bins, work, n_columns = product.kind, product.bins, product.work, product.features.shape[2]
    new_bins, together = list(bins), {bin_choice for bin_choice in choices.values() if bin_choice.together}
    groups = [[number for number, other in choices.items() if other is bin_choice] for bin_choice in together]
    groups += [[number] for number, bin_choice in choices.items() if not bin_choice.together and bin_choice.method != LAST]
    for numbers in groups:
        choice = choices[numbers[0]]
        rows = _max_work([bins[number] for number in numbers], work, n_columns)
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
    """Iterate over bins (classes of rows) of one method that may take rows: those of the strategy, then all of the method."""
    yield from (bin_ for bin_ in bins if bin_.method == method)
    yield from bins_of_method(kind, method, n_columns, budget)


def _max_work(bins: Sequence[Bin], work: Work, n_columns: int) -> tuple[int, int, int]:
    """Return upper bounds of the rows of some bins (classes of rows): most products, longest row of A, widest span of columns."""
    products, lengths, spans = zip(*(bin_.limits for bin_ in bins), strict=True)
    return _max_within(products, work.max_products), _max_within(lengths, work.longest_row), _max_within(spans, n_columns)


def _max_within(limits: Sequence[int], bound: int) -> int:
    """Return the largest of limits of bins (classes of rows), but at most ``bound``; ``bound`` if a limit is -1 (none)."""
    return bound if min(limits) < 0 else min(max(limits), bound)


def bins_of_method(kind: Kind, method: str, n_columns: int, budget: Budget) -> tuple[Bin, ...]:
    """Return the bins (classes of rows) of an SpGEMM method that suit the columns of B and the budget of memory."""
    narrow = is_narrow(kind.types, n_columns, min(budget))
    bins = strategy_bins(kind.device, kind.types, Strategy((Entry(method),)))
    return tuple(bin_ for bin_ in bins if bin_.holds(n_columns, budget.workspace, narrow=narrow))
