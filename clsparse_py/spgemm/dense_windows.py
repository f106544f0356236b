"""Dense accumulators for GPUs: a work-group to a row, which goes through windows of columns in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import Self, override

from clsparse_py.device import Device
from clsparse_py.spgemm.fenced import FencedKernel, SummingTeam
from clsparse_py.spgemm.kernels import Form

__all__ = ["DenseWindows", "DenseWindowsKernel"]

#: Columns to a window in the symbolic phase, which has a bit for each; bytes of the sums of a window; entries of A at a time.
_SYMBOLIC = 32768
_SUMS = 16 << 10
_ENTRIES = 256


@dataclass(frozen=True)
class DenseWindowsKernel(FencedKernel):
    """Parameters of ``templates/spgemm/dense_windows.mako``; the lanes are the work-group.

    Attributes
    ----------
    columns : int
        Of a window; a multiple of 32.
    entries : int
        Of A's row, that are taken at a time.
    items : int
        Products that a lane fetches at a time.
    ordered : bool
        Whether values are added in the order of A's row; by atomics else.
    least : int
        Fewest entries of a row of C whose columns and values are made.
    """

    template = "spgemm/dense_windows"
    kind = "dense_windows"

    columns: int
    entries: int
    items: int
    ordered: bool
    least: int

    @property
    @override
    def shape_name(self) -> str:
        atomic = "" if self.ordered else "_atomic"
        least = f"_from_{self.least}" if self.least else ""
        return f"{super().shape_name}_{self.columns}_columns_{self.entries}_entries_{self.items}_items{atomic}{least}"

    @property
    @override
    def row_bytes(self) -> int:
        """Local memory for a row."""
        lengths = self.columns // 8 + self.entries * (4 + np.dtype(self.form.index).itemsize) + 4
        exchanged = 4 + (8 if self.form.wide else 4)
        if self.form.arithmetic is None:
            return lengths + self.lanes * exchanged
        value = self.form.arithmetic.result.itemsize
        exchanged += (value + 2 + 4 * -(-self.lanes // 32)) * self.ordered
        return lengths + self.columns * value + self.columns // 8 + 4 + self.lanes * exchanged

    @override
    def arguments(self) -> Mapping[str, object]:
        own = {"columns": self.columns, "entries": self.entries, "items": self.items, "ordered": self.ordered}
        return {**super().arguments(), **own, "least": self.least}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        portability = self.portability.at_most(lane_width)
        return replace(self, work_group=work_group, lanes=work_group, portability=portability) if work_group else None


@dataclass(frozen=True)
class DenseWindows(SummingTeam):
    """An accumulator for rows of any length, best for those that are dense in their range of columns.

    Attributes
    ----------
    columns : int or None
        Of a window, a multiple of 32; by default what serves a phase.
    least : int
        Fewest entries of a row of C whose columns and values are made; all rows are counted.
    """

    work_group: int = 256
    columns: int | None = None
    entries: int = _ENTRIES
    items: int = 1
    least: int = 0

    def columns_of(self, form: Form) -> int:
        """Return how many columns a window has in a phase."""
        value = form.arithmetic.result.itemsize if form.arithmetic else 0
        return min(self.columns or (_SUMS // value if value else _SYMBOLIC), 1 << 16)

    @override
    def record(self, device: Device, form: Form, listed: bool) -> DenseWindowsKernel:
        # The lanes meet in loops of any length: on CPU devices, of which one was seen to get those wrong, they are one.
        group = 1 if device.is_cpu else self.work_group
        ordered = self.adds_in_order(device, form)
        shape = self.columns_of(form), self.entries, self.items, ordered, self.least if form.arithmetic else 0
        return DenseWindowsKernel(group, form, listed, device.portability, group, *shape).fitting(device)

    @override
    def describe(self) -> str:
        return f"windows of columns, a work-group of {self.work_group} to a row"
