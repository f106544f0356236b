"""Strategies: which methods share the rows of a product, in which order, and up to which limits rows are merged.

A strategy is what profiles choose. Its label is a list of names, of which those that merge may have limits, as in
"reg-sort dense-span reg-merge:256:65536:1024 esc".
"""

from __future__ import annotations

from collections.abc import Collection

from clsparse_py.device import Device
from clsparse_py.records import dataclass
from clsparse_py.structure import Facts
from clsparse_py.tuning.labels import MOST, number

__all__ = ["MERGING", "TAKING_ALL", "Entry", "Limits", "Strategy", "features_of"]

#: Methods that may have limits, and those that take any row in any memory: one of these comes last.
MERGING = ("reg-merge", "merge")
TAKING_ALL = ("esc", "esc-local", "long-rows")


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
        """Return what a label names.

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
        strategy = cls(tuple(_entry(each, label, methods) for each in label.split(" ")))
        if len({entry.method for entry in strategy.entries}) < len(strategy.entries):
            raise ValueError(f"strategy: has a method twice, {label!r}")
        if strategy.entries[-1].method not in TAKING_ALL:
            raise ValueError(f"strategy: must end with one of {', '.join(TAKING_ALL)}, which take any row, is {label!r}")
        return strategy


def _entry(text: str, label: str, methods: Collection[str]) -> Entry:
    method, *numbers = text.split(":")
    if method not in methods:
        raise ValueError(f"strategy: {method!r} is no method, in {label!r}")
    if not numbers:
        return Entry(method)
    if method not in MERGING or len(numbers) != 3:
        raise ValueError(f"strategy: limits are three numbers for {' or '.join(MERGING)}, but there is {text!r} in {label!r}")
    return Entry(method, Limits(*(number(each, f"strategy: a limit of {method}", 0, MOST) for each in numbers)))


def features_of(
    shape: tuple[int, int, int],
    nnz: tuple[int, int],
    A: Facts | None = None,
    device: Device | None = None,
    entry_bytes: int = 12,
) -> dict[str, float]:
    """Return what profiles decide by: what is known of a product before the analysis shares its rows out.

    Parameters
    ----------
    shape : tuple of int
        Rows of A, its columns, columns of B.
    nnz : tuple of int
        Entries of A and of B.
    A : Facts or None
        Facts of A: if there are none, rows are taken to be alike, and half of the columns to be neighbours.
    device : Device or None
        That makes it, for the features that are relative to the device.
    entry_bytes : int
        Of an entry of B.
    """
    rows, inner, columns = shape
    mean, mean_of_b = nnz[0] / max(rows, 1), nnz[1] / max(inner, 1)
    # Drivers that tell no cache have one of the size of all local memory.
    cache = (device.cache_bytes or device.local_memory * device.compute_units) if device else 1
    return {
        "rows": rows,
        "columns": columns,
        "nnz": nnz[0],
        "nnz_of_b": nnz[1],
        "mean": mean,
        "mean_of_b": mean_of_b,
        "longest_by_mean": A.longest / mean if A and A.longest else 1.0,
        # Neighbouring columns of A name rows of B that have columns in common, in meshes and blocks.
        "adjacent": A.adjacent / nnz[0] if A and A.longest else 0.5,
        # As there would be if all rows of B were alike.
        "products": nnz[0] * mean_of_b,
        "mean_products": mean * mean_of_b,
        # How full a row of C would be if no columns met.
        "fill": mean * mean_of_b / max(columns, 1),
        # Each row of B is read again for each entry of A that names it.
        "bytes_by_cache": nnz[1] * entry_bytes / max(cache, 1),
        "rows_by_items": rows / (device.compute_units * device.resident) if device else rows,
    }
