"""The labels that profiles have for SpGEMM: strategies for products, and choices of accumulators for bins.

A strategy is a list of methods in their order. Its label is the list of their names; a method that merges may have limits, as in
"reg-sort dense-span reg-merge:256:65536:1024 esc".

The label of a choice is the name of a method, whose accumulator makes the rows of the bin: "hash". With ":together" one
accumulator makes the rows of all bins with that label, even if the longest row of A is among them: "reg-merge:together". "given"
is the accumulator that the strategy gives to the bin, and "last" that of its last bin, if all bins between have no rows or go
there too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

from clsparse_py._decisions import profiles
from clsparse_py._decisions.labels import MOST, number
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.arguments import memory_limit_of
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins, Setting
from clsparse_py._operations.spgemm.features import Features
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.dense import CHUNKED
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.registry import METHODS, PARTS
from clsparse_py._operations.spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py._precision.arithmetic import name_of

__all__ = [
    "GIVEN",
    "LAST",
    "MERGING",
    "PLAIN",
    "TAKING_ALL",
    "Choice",
    "Entry",
    "Limits",
    "Strategy",
    "bins_for",
    "choosable_strategies",
    "decide_strategy",
    "is_narrow",
    "parse",
    "parse_choice",
    "strategy_bins",
]

#: Label of the choice that leaves a bin (class of rows) the accumulator that the strategy gives to it.
GIVEN = "given"
#: Label of the choice that gives a bin (class of rows) the accumulator of the strategy's last bin.
LAST = "last"
#: Suffix of a label of a choice of accumulators: one accumulator makes the rows of all bins (classes of rows) with the choice.
_TOGETHER = ":together"
#: Names of SpGEMM methods that merge rows of B; a strategy's label may limit length and products of rows.
MERGING = ("reg-merge", "merge")
#: Names of the SpGEMM methods of which one ends each strategy: their last bin takes rows of any size and sets no least workspace.
TAKING_ALL = ("esc", "esc-local", "long-rows")
#: Bins of every product by plain kernels (a work-item to a work-group): one dense accumulator for chunks of rows.
PLAIN = Bins((EMPTY, CHUNKED))
#: Features (sizes) of a typical product A @ B, by which the strategy (list of methods) of an unknown product is chosen.
_TYPICAL = Features((1 << 20, 1 << 20, 1 << 20), (1 << 23, 1 << 23)).by_name()


@dataclass(frozen=True)
class Limits:
    """The limits of the rows that a method merges.

    A team finds columns one after another, so a row with many columns keeps it busy after all other teams are done.

    Attributes
    ----------
    max_length : int
        Entries of a row of A.
    max_products : int
        Products of a row that a team merges.
    max_item_products : int
        Products of a row that a single work-item merges.
    """

    max_length: int
    max_products: int
    max_item_products: int

    def __str__(self) -> str:
        return f"{self.max_length}:{self.max_products}:{self.max_item_products}"


@dataclass(frozen=True)
class Entry:
    """A method of a strategy, with the limits of rows to merge, if it merges."""

    method: str
    limits: Limits | None = None

    def __str__(self) -> str:
        return self.method if self.limits is None else f"{self.method}:{self.limits}"


@dataclass(frozen=True)
class Strategy:
    """The methods that share the rows of a product, in their order: a row goes to the first method that can hold it."""

    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.entries))


def _entry(text: str, label: str) -> Entry:
    """Return the SpGEMM method, with its limits of rows, that a word of a strategy's label names."""
    method, *numbers = text.split(":")
    if method not in PARTS:
        raise ValueError(f"strategy: {method!r} is no method, in {label!r}")
    if not numbers:
        return Entry(method)
    if method not in MERGING or len(numbers) != 3:
        raise ValueError(f"strategy: limits are three numbers for {' or '.join(MERGING)}, but there is {text!r} in {label!r}")
    return Entry(method, Limits(*(number(digits, f"strategy: a limit of {method}", 0, MOST) for digits in numbers)))


def parse(label: str) -> Strategy:
    """Return the strategy, a list of SpGEMM methods, that a label names, such as "reg-sort dense-span esc".

    Raises
    ------
    ValueError
        The label names no strategy.
    """
    strategy = Strategy(tuple(_entry(word, label) for word in label.split(" ")))
    if len({entry.method for entry in strategy.entries}) < len(strategy.entries):
        raise ValueError(f"strategy: has a method twice, {label!r}")
    if strategy.entries[-1].method not in TAKING_ALL:
        raise ValueError(f"strategy: must end with one of {', '.join(TAKING_ALL)}, which take any row, is {label!r}")
    return strategy


@dataclass(frozen=True)
class Choice:
    """The choice of a bin's accumulator.

    Attributes
    ----------
    method : str
        A name in `PARTS`, `GIVEN` or `LAST`.
    together : bool
        Whether one accumulator makes the rows of all bins with this choice.
    """

    method: str
    together: bool = False

    def __str__(self) -> str:
        return self.method + _TOGETHER * self.together


def parse_choice(label: str) -> Choice:
    """Return the choice of an accumulator for a bin (class of rows) that a label names, such as "hash" or "reg-merge:together".

    Raises
    ------
    ValueError
        The label names no choice.
    """
    method = label.removesuffix(_TOGETHER)
    if method not in PARTS and label not in (GIVEN, LAST):
        raise ValueError(f"bin: {method!r} is no method, in {label!r}")
    return Choice(method, method != label)


def decide_strategy(device: Device, types: KernelTypes, features: Mapping[str, float] = _TYPICAL) -> profiles.Ruling[Strategy]:
    """Return the ruling of the device's profile on a product's strategy (list of methods); ``features``: `Features.by_name`."""
    assert types.arithmetic is not None  # of a numeric phase
    return profiles.decide(device, "spgemm", name_of(types.arithmetic.result), "strategy", features, parse)


def choosable_strategies(device: Device, types: KernelTypes) -> tuple[Strategy, ...]:
    """Return all strategies (lists of SpGEMM methods) at the leaves of the profile's decision tree for a device and types."""
    assert types.arithmetic is not None  # of a numeric phase
    rules = profiles.rules(device, "spgemm", name_of(types.arithmetic.result), "strategy", _TYPICAL, parse)
    return tuple(rules.values.values())


def strategy_bins(device: Device, types: KernelTypes, strategy: Strategy) -> tuple[Bin, ...]:
    """Return the bins (classes of rows with accumulators) of a strategy's methods; the last bin takes any row."""
    setting = Setting(device, types, thresholds_of(device, types))
    return tuple(bin_ for entry in strategy.entries for bin_ in _entry_bins(setting, entry))


def _entry_bins(setting: Setting, entry: Entry) -> tuple[Bin, ...]:
    """Return the bins of a strategy's method: those within its limits, if it has any; `Esc` gets a bounded workspace."""
    method_bins, limits = PARTS[entry.method](setting), entry.limits
    if entry.method in ("esc", "esc-local"):
        return *method_bins[:-1], Bin(entry.method, Esc(bounded=True, expected_fill=setting.thresholds.expected_fill))
    if limits is None:
        return method_bins
    merging = ((bin_, bin_.accumulator) for bin_ in method_bins if isinstance(bin_.accumulator, Merge))
    return tuple(
        replace(bin_, max_products=limits.max_products if accumulator.lanes > 1 else limits.max_item_products, even=True)
        for bin_, accumulator in merging
        if accumulator.length <= limits.max_length
    )


def bins_for(
    method: str,
    device: Device,
    types: KernelTypes,
    n_columns: int = 0,
    memory_limit: int | None = None,
    strategy: Strategy | None = None,
    accumulator_limit: int | None = None,
) -> Bins:
    """Return the bin for rows without products, a method's bins (classes of rows), and those of "auto" for rows that are left.

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
        Strategy of "auto"; by default the profile's for a typical product.
    accumulator_limit : int, optional
        Bytes that an accumulator as wide as B may have; by default the workspace's.
    """
    room, strategy_taken = memory_limit_of(device, memory_limit), strategy or decide_strategy(device, types).value
    narrow = is_narrow(types, n_columns, room if accumulator_limit is None else min(room, accumulator_limit))
    of_method = None if method == "auto" else METHODS[method]
    return _select_bins(of_method, device, types, thresholds_of(device, types), n_columns, room, narrow, strategy_taken)


def is_narrow(types: KernelTypes, n_columns: int, limit: int) -> bool:
    """Return whether an accumulator as wide as B has at most ``limit`` bytes, if each column has a value and one byte."""
    assert types.arithmetic is not None  # of a numeric phase
    return (types.arithmetic.result.itemsize + 1) * n_columns <= limit


# Bins (classes of rows) of SpGEMM methods are cached, as making bins takes longer than a small product.
@functools.lru_cache(maxsize=256)
def _select_bins(
    of_method: Callable[[Setting], tuple[Bin, ...]] | None,
    device: Device,
    types: KernelTypes,
    thresholds: Thresholds,
    n_columns: int,
    room: int,
    narrow: bool,
    strategy: Strategy,
) -> Bins:
    """Return a method's bins (classes of rows), then a strategy's, that suit B's columns and ``room`` bytes of workspace."""
    method_bins = of_method(Setting(device, types, thresholds)) if of_method else ()
    bins: list[Bin] = []
    for bin_ in (EMPTY, *method_bins, *strategy_bins(device, types, strategy)):
        if not bin_.holds(n_columns, room, narrow=narrow) or any(earlier.covers(bin_) for earlier in bins):
            continue
        bins.append(bin_)
        if bin_.takes_all:
            break
    return Bins(bins)
