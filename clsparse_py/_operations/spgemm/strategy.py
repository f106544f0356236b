"""Strategies: methods, their order, and merge limits.

A strategy is what profiles choose. Its label is a list of names, of which those that merge may have limits, as in
"reg-sort dense-span reg-merge:256:65536:1024 esc".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
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
    "MERGING",
    "PLAIN",
    "TAKING_ALL",
    "Entry",
    "Limits",
    "Strategy",
    "auto",
    "bins_for",
    "choosable",
    "decide_strategy",
    "is_narrow",
    "parse",
]

#: Methods that may have limits.
MERGING = ("reg-merge", "merge")
#: Methods that take any row in any memory: one of these comes last.
TAKING_ALL = ("esc", "esc-local", "long-rows")
#: The bins of every product by plain kernels: chunks of rows, by as many workers as memory allows.
PLAIN = Bins((EMPTY, CHUNKED))
#: Features of a product of which nothing is known.
_TYPICAL = Features((1 << 20, 1 << 20, 1 << 20), (1 << 23, 1 << 23)).by_name()


@dataclass(frozen=True)
class Limits:
    """Which rows are merged.

    A team finds columns one after another, so a row with many keeps it busy when all others are done.

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
    """A method of a strategy, with the limits of the rows that it takes where it has any."""

    method: str
    limits: Limits | None = None

    def __str__(self) -> str:
        return self.method if self.limits is None else f"{self.method}:{self.limits}"


@dataclass(frozen=True)
class Strategy:
    """The methods that share the rows of a product: each takes those that it can hold of what the ones before it leave."""

    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.entries))

    @classmethod
    def parse(cls, label: str, methods: Collection[str]) -> Strategy:
        """Return the strategy that a label names.

        Parameters
        ----------
        label : str
        methods : collection of str
            The names of methods.

        Raises
        ------
        ValueError
            It names no strategy.
        """
        strategy = cls(tuple(_entry(word, label, methods) for word in label.split(" ")))
        if len({entry.method for entry in strategy.entries}) < len(strategy.entries):
            raise ValueError(f"strategy: has a method twice, {label!r}")
        if strategy.entries[-1].method not in TAKING_ALL:
            raise ValueError(f"strategy: must end with one of {', '.join(TAKING_ALL)}, which take any row, is {label!r}")
        return strategy


def _entry(text: str, label: str, methods: Collection[str]) -> Entry:
    """Return the entry of a strategy that a word of its label names."""
    method, *numbers = text.split(":")
    if method not in methods:
        raise ValueError(f"strategy: {method!r} is no method, in {label!r}")
    if not numbers:
        return Entry(method)
    if method not in MERGING or len(numbers) != 3:
        raise ValueError(f"strategy: limits are three numbers for {' or '.join(MERGING)}, but there is {text!r} in {label!r}")
    return Entry(method, Limits(*(number(digits, f"strategy: a limit of {method}", 0, MOST) for digits in numbers)))


def parse(label: str) -> Strategy:
    """Return the strategy that a label names.

    Raises
    ------
    ValueError
        It names none.
    """
    return Strategy.parse(label, PARTS)


def decide_strategy(device: Device, types: KernelTypes, features: Mapping[str, float] = _TYPICAL) -> profiles.Ruling[Strategy]:
    """Return the strategy that the device's profile has for a product; see `Features.by_name`."""
    assert types.arithmetic is not None  # of a numeric phase
    return profiles.decide(device, "spgemm", name_of(types.arithmetic.result), "strategy", features, parse)


def choosable(device: Device, types: KernelTypes) -> tuple[Strategy, ...]:
    """Return all strategies that the device's profile may choose."""
    assert types.arithmetic is not None  # of a numeric phase
    rules = profiles.rules(device, "spgemm", name_of(types.arithmetic.result), "strategy", _TYPICAL, parse)
    return tuple(rules.values.values())


def auto(device: Device, types: KernelTypes, strategy: Strategy) -> tuple[Bin, ...]:
    """Return the bins of "auto", of which the last takes any row."""
    setting = Setting(device, types, thresholds_of(device, types))
    return tuple(bin_ for entry in strategy.entries for bin_ in _of_entry(setting, entry))


def _of_entry(setting: Setting, entry: Entry) -> tuple[Bin, ...]:
    """Return the bins of an entry of a strategy: with limits for even rows, in global memory with little of it."""
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
    room, strategy_taken = memory_limit_of(device, memory_limit), strategy or decide_strategy(device, types).value
    narrow = is_narrow(types, n_columns, room if accumulator_limit is None else min(room, accumulator_limit))
    of_method = None if method == "auto" else METHODS[method]
    return _bins(of_method, device, types, thresholds_of(device, types), n_columns, room, narrow, strategy_taken)


def is_narrow(types: KernelTypes, n_columns: int, limit: int) -> bool:
    """Return whether an accumulator as wide as B, a value and a bit for each column and some more, has so many bytes at most."""
    assert types.arithmetic is not None  # of a numeric phase
    return (types.arithmetic.result.itemsize + 1) * n_columns <= limit


# Kept: to ask what each bin takes on a device costs more than to make a small product.
@functools.lru_cache(maxsize=256)
def _bins(
    of_method: Callable[[Setting], tuple[Bin, ...]] | None,
    device: Device,
    types: KernelTypes,
    thresholds: Thresholds,
    n_columns: int,
    room: int,
    narrow: bool,
    strategy: Strategy,
) -> Bins:
    """Return the bins of a method, or of a strategy alone, where the workspace may have so many bytes."""
    method_bins = of_method(Setting(device, types, thresholds)) if of_method else ()
    bins: list[Bin] = []
    for bin_ in (EMPTY, *method_bins, *auto(device, types, strategy)):
        if not bin_.holds(n_columns, room, narrow=narrow) or any(earlier.covers(bin_) for earlier in bins):
            continue
        bins.append(bin_)
        if bin_.takes_all:
            break
    return Bins(bins)
