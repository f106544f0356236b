"""Bins, classes of rows of C by size: accumulators with limits of the rows that they take.

A row of C goes to the first bin whose limits hold for its number of products, the length of A's row and the span of its columns;
the last bin takes any row. A named method has bins of its own; rows that none of these takes go to the bins of "auto".
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Accumulator
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.thresholds import Thresholds

__all__ = ["EMPTY", "Bin", "Bins", "Setting"]


class Setting(NamedTuple):
    """Inputs of a method's bins: device, types and thresholds.

    Attributes
    ----------
    device : Device
    types : KernelTypes
        Of the numeric phase.
    thresholds : Thresholds
        Of the device's profile.
    """

    device: Device
    types: KernelTypes
    thresholds: Thresholds


@dataclass(frozen=True)
class Bin:
    """An accumulator, and the limits of the rows that it takes.

    Attributes
    ----------
    method : str
        A name in `METHODS`; "" for rows without products, which nothing has to be done for.
    accumulator : Accumulator or None
        The accumulator of these rows; None for rows without products.
    max_products, max_length : int or None
        The most products of a row, and the most entries of a row of A, that the bin takes; None for no limit.
    takes_empty : bool
        Whether the bin also accepts rows without products, so that no list of rows is needed.
    as_wide : bool
        Whether the accumulator's workspace grows with the columns of B; the bin is skipped if that exceeds the limit.
    min_bytes : int
        Least workspace, in bytes; the bin is skipped if the limit is lower.
    max_columns : int or None
        The most columns of B; the bin is skipped if B has more. None for no limit.
    max_span : int or None
        The widest span of columns, from a row's first, rounded down to a multiple of 32, to its last; None for no limit.
    even : bool
        Whether the bin is for rows with similar numbers of products: if few rows have most products, the last bin takes these.
    """

    method: str
    accumulator: Accumulator | None
    max_products: int | None = None
    max_length: int | None = None
    takes_empty: bool = False
    as_wide: bool = False
    min_bytes: int = 0
    max_columns: int | None = None
    max_span: int | None = None
    even: bool = False

    @cached_property
    def limits(self) -> tuple[int, int, int]:
        """Limits of a bin (class of rows): most products, longest row of A, widest span of columns; -1: no limit."""
        products, length, span = (-1 if limit is None else limit for limit in (self.max_products, self.max_length, self.max_span))
        return products, length, span

    def covers(self, later: Bin) -> bool:
        """Return whether this bin (class of rows of C) takes every row that ``later`` takes, so that the later bin gets none."""
        return self.takes(later.limits)

    def takes(self, rows: tuple[int, int, int]) -> bool:
        """Return whether a bin takes all rows of C up to ``rows``: products, length of A's row, span of columns; -1: any."""
        # The comparisons of limits are written out, not in a loop, as bins are compared while the device waits.
        (products, length, span), (n, longest, widest) = self.limits, rows
        holds_counts = (products < 0 or 0 <= n <= products) and (length < 0 or 0 <= longest <= length)
        return holds_counts and (span < 0 or 0 <= widest <= span)

    def joins(self, other: Bin) -> bool:
        """Return whether another bin (class of rows) could take this bin's rows too, with an accumulator of the same class."""
        alike = other.method == self.method and type(other.accumulator) is type(self.accumulator)
        return alike and other.covers(self)

    def holds(self, n_columns: int, room: int, *, narrow: bool) -> bool:
        """Return whether the bin allows the number of B's columns, and ``room`` bytes of workspace suffice for its accumulator.

        ``narrow``: whether these bytes are enough for an accumulator as wide as B.
        """
        too_wide = self.max_columns is not None and n_columns > self.max_columns
        return not too_wide and self.min_bytes <= room and (narrow or not self.as_wide)

    @property
    def takes_all(self) -> bool:
        """Whether the bin (class of rows) takes rows of C of any size, so that later bins get no rows."""
        return self.limits == (-1, -1, -1)


class Bins(tuple[Bin, ...]):
    """Bins (classes of rows) in order, compared by identity: comparing twenty records takes longer than launching a kernel."""

    @cached_property
    def limits(self) -> tuple[tuple[int, int, int], ...]:
        """Limits of each bin (class of rows) in turn: most products, longest row of A, widest span of columns; -1: no limit."""
        return tuple(bin_.limits for bin_ in self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


#: Bin of the rows of C without products, which need no accumulator.
EMPTY = Bin("", None, max_products=0)
