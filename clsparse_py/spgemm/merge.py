"""Merging accumulators: "reg-merge", heads in registers, and "merge", heads in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py.device import Device
from clsparse_py.launch import Chain
from clsparse_py.spgemm.accumulator import Product, Rows
from clsparse_py.spgemm.kernels import Form, RowKernel
from clsparse_py.spgemm.team import Team

__all__ = ["Merge", "MergeKernel", "merges"]

#: Work-items to a row, at most.
_MOST_LANES = 32


@dataclass(frozen=True)
class MergeKernel(RowKernel):
    """Parameters of ``templates/spgemm/merge.mako``; ``lanes`` is at most the lane width.

    Attributes
    ----------
    items : int
        Heads of a work-item.
    registers : bool
        Whether heads are in registers, or in local memory.
    outputs : int
        Entries of C for each work-item that a work-group stages in local memory, where its rows are one piece of C; 0 for none.
    """

    template = "spgemm/merge"
    kind = "merge"

    items: int
    registers: bool
    outputs: int

    #: Heads in the registers of a work-item, at most.
    MOST_ITEMS: ClassVar[int] = 64
    #: Bytes of local memory that a work-group may take: several of them share a compute unit, and no device has less than 32 KiB.
    LOCAL_MEMORY: ClassVar[int] = 24 << 10

    @property
    @override
    def shape_name(self) -> str:
        where = f"{self.items}_{'heads' if self.registers else 'local_heads'}"
        return f"{super().shape_name}_{where}{f'_staged{self.outputs}' if self.outputs else ''}"

    @override
    def arguments(self) -> Mapping[str, object]:
        shape = {"items": self.items, "registers": self.registers, "tile": self.outputs * self.work_group}
        return {**super().arguments(), **shape}

    @property
    def _work_item_bytes(self) -> int:
        """Bytes of local memory for each work-item."""
        column = 8 if self.form.wide else 4
        value = self.form.arithmetic.result.itemsize if self.form.arithmetic else 0
        head = 2 * column + np.dtype(self.form.index).itemsize + value
        return self.outputs * (column + value) + (0 if self.registers else self.items * head)

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest legal record: fewer lanes have more heads each, in local memory where registers do not hold them."""
        if work_group < 1:
            return None
        width = 1 << min(lane_width, self.lane_width, work_group).bit_length() - 1
        lanes = min(self.lanes, width)
        items = self.items * (self.lanes // lanes)
        portability = self.portability.at_most(width if lanes > 1 else 1)
        staged = lanes == 1 and not self.listed and self.form.phase != "symbolic"
        made = replace(
            self, lanes=lanes, items=items, portability=portability, registers=self.registers and items <= self.MOST_ITEMS,
            outputs=self.outputs if staged else 0,
        )  # fmt: skip
        while work_group * made._work_item_bytes > self.LOCAL_MEMORY:
            work_group //= 2
        # Whole sub-groups, as their lanes exchange values.
        group = work_group // made.lane_width * made.lane_width
        return replace(made, work_group=group) if group else None


@dataclass(frozen=True)
class Merge(Team):
    """An accumulator that merges rows of B, for rows of A with at most ``lanes * items`` entries.

    Attributes
    ----------
    lanes : int
        Work-items to a row, a power of two.
    items : int
        Heads of a work-item.
    registers : bool
        Whether heads are in registers, or in local memory.
    work_group : int
    outputs : int
        As `MergeKernel` has it.
    """

    lanes: int
    items: int
    registers: bool = True
    work_group: int = 128
    outputs: int = 0

    #: Entries of C for each work-item that are staged: the fewest of these that hold the mean.
    _STAGED: ClassVar[tuple[int, ...]] = (4, 8, 16, 32)

    @property
    def length(self) -> int:
        """The longest row of A that it takes."""
        return self.lanes * self.items

    def legal(self, device: Device, form: Form, *, listed: bool) -> MergeKernel | None:
        """Return the nearest record that a device can hold, or None."""
        asked = MergeKernel(
            self.work_group, form, listed, device.portability, self.lanes, self.items, self.registers, self.outputs
        )
        width = device.portability.lane_width
        group = max(self.work_group, width) if min(self.lanes, width) > 1 else self.work_group
        return asked.within(min(group, device.max_work_group), width)

    @override
    def record(self, device: Device, form: Form, listed: bool) -> MergeKernel:
        legal = self.legal(device, form, listed=listed)
        assert legal is not None, self  # `merges` gives none else
        return legal

    @override
    def _enqueue(self, chain: Chain, product: Product, rows: Rows, form: Form, *results: Any) -> None:
        # Without a list the rows are all there are, and how many entries they have is known by the numeric phase.
        mean = results[-1].size / rows.n if form.phase != "symbolic" else 0
        outputs = next((n for n in self._STAGED if mean <= n), 0)
        Team._enqueue(replace(self, outputs=self.outputs or outputs), chain, product, rows, form, *results)

    @override
    def describe(self) -> str:
        where = "" if self.registers else " in local memory"
        return f"{self.items} heads a work-item{where}, {self.lanes} to a row"


def merges(device: Device, form: Form, *, registers: bool) -> tuple[Merge, ...]:
    """Return the bins that a device can hold, those of short rows of A first.

    Few entries have one work-item, which has nothing to exchange then; more have more lanes, and last more heads each.
    """
    width = min(device.portability.lane_width, _MOST_LANES)
    shapes = [(1, items) for items in (1, 2, 4)]
    shapes += [(1 << bit, 8) for bit in range(width.bit_length())]
    shapes += [(width, 16), (width, 32)]
    found = (Merge(lanes, items, registers) for lanes, items in shapes)
    return tuple(merge for merge in found if merge.legal(device, form, listed=False))
