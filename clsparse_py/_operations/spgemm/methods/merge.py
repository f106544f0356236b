"""Merging accumulators: "reg-merge", heads in registers, and "merge", heads in local memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Rows
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.kernels import KernelTypes, RowKernel
from clsparse_py._operations.spgemm.methods.team import Team
from clsparse_py._operations.spgemm.thresholds import Thresholds, thresholds_of
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["Merge", "MergeKernel", "merge", "merges", "reg_merge"]


@kernel
@dataclass(frozen=True)
class MergeKernel(RowKernel):
    """Parameters of ``templates/spgemm/merge_*.mako``; ``lanes`` is at most the lane width.

    Attributes
    ----------
    items : int
        Heads of a work-item.
    registers : bool
        Whether heads are in registers, or in local memory.
    staged_c : int
        Entries of C to a work-item that are staged in local memory, to be written side by side, where rows are adjacent and have
        one work-item each; 0: none.
    staged_b : int
        Entries of B that are staged in local memory, where the rows of a sub-group name rows of B that lie side by side; a
        work-group is one sub-group then. 0: none.
    max_length_of_b : int
        Entries of a row of B: the speculative symbolic phase reports whether rows of A name longer ones. 0: no speculation.
    """

    items: int
    registers: bool
    staged_c: int
    staged_b: int = 0
    max_length_of_b: int = 0

    #: Most ranges of adjacent rows of B that are staged.
    RANGES: ClassVar[int] = 8
    #: Number of partial sums of the number of products: work-groups add to different ones, so that they do not wait for each
    #: other.
    SLOTS: ClassVar[int] = 64
    #: Most heads in the registers of a work-item.
    MAX_ITEMS: ClassVar[int] = 64
    #: Most bytes of local memory of a work-group: several share a compute unit, and no device has less than 32 KiB.
    LOCAL_MEMORY: ClassVar[int] = 26 << 10

    @property
    @override
    def template(self) -> str:
        """The name of the template that merges: by speculation, with staged rows of B, by one work-item or by a team."""
        if self.max_length_of_b:
            return "spgemm/merge_speculative"
        if self.staged_b:
            return "spgemm/merge_staged"
        return "spgemm/merge_item" if self.lanes == 1 else "spgemm/merge_team"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `RowKernel`'s, heads' names, most staged ranges, partial sums, and lane width."""
        # Heads (current entries of rows of B) by number, which a template unrolls, or by the variable of a loop over heads.
        heads = tuple(range(self.items)) if self.registers else ("u",)
        constants = {"ranges": self.RANGES, "slots": self.SLOTS, "lane_width": self.lane_width}
        return {**super().arguments(), **constants, "heads": heads}

    @property
    def _entry_bytes(self) -> int:
        """Bytes of an entry of C in the merging kernel: a column and a value."""
        return self.types.column_bytes + self.types.value_bytes

    @property
    def _input_bytes(self) -> int:
        """Bytes of an entry of B that is staged in local memory: a column, and a value as B stores it."""
        return self.types.column_bytes + (np.dtype(self.types.arithmetic.x).itemsize if self.types.arithmetic else 0)

    @property
    def _work_item_bytes(self) -> int:
        """Bytes of local memory that a merging kernel takes for each work-item, without staged entries of B."""
        head = self._entry_bytes + self.types.column_bytes + self.types.index_bytes
        staged = -(-33 * self.staged_c * self._entry_bytes // 32)
        return staged + (0 if self.registers else self.items * head)

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the merging kernel's nearest parameters for a work-group and a lane width; None if there are none.

        Fewer lanes have more heads each, in local memory if registers do not hold them. Nothing of B is staged if there is
        no room for it.
        """
        if work_group < 1:
            return None
        width = 1 << min(lane_width, self.lane_width, work_group).bit_length() - 1
        lanes = min(self.lanes, width)
        items = self.items * (self.lanes // lanes)
        registers = self.registers and items <= self.MAX_ITEMS
        by_item = lanes == 1 and self.types.phase != "symbolic"
        staged_c = self.staged_c if by_item and not self.listed else 0
        record = replace(self, lanes=lanes, items=items, registers=registers, staged_c=staged_c, staged_b=0)
        # Entries of B are staged by a whole sub-group, as wide as ``lane_width`` allows: a smaller work-group stages none.
        is_whole_sub_group = 1 < min(lane_width, self.lane_width) == width
        if self.staged_b and by_item and registers and is_whole_sub_group and self.types.index == "int32":
            room = self.LOCAL_MEMORY - width * record._work_item_bytes
            if (self.staged_b + 1) * self._input_bytes <= room:
                return replace(record, staged_b=self.staged_b, portability=self.portability.at_most(width), work_group=width)
        record = replace(record, portability=self.portability.at_most(width if lanes > 1 else 1))
        while work_group * record._work_item_bytes > self.LOCAL_MEMORY:
            work_group //= 2
        # A work-group is a number of whole sub-groups, as the lanes of a sub-group exchange values.
        group = work_group // record.lane_width * record.lane_width
        return replace(record, work_group=group) if group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "local", "symbolic", "numeric", "values" and "team"."""
        types, staged = KernelTypes.of_same(arithmetic), Merge(1, 8, staged_c=16)
        phases = {phase: types.of(phase) for phase in ("symbolic", "numeric", "values")}
        yield "", Merge(1, 16).record(device, types, listed=True)
        yield "local", Merge(1, 8, registers=False).record(device, types, listed=True)
        for phase, of_phase in phases.items():
            yield phase, staged.record(device, of_phase, listed=False)
        yield "", Merge(1, 9, staged_c=28, staged_b=768).record(device, types, listed=False)
        yield "", merges(device, types, thresholds_of(device, types), registers=True)[-1].record(device, types, listed=True)
        for phase, of_phase in phases.items():
            yield phase, Merge(4, 8).record(device, of_phase, listed=True)
        yield "local", Merge(4, 8, registers=False).record(device, types, listed=True)
        yield "", Merge(1, 8).speculative(device, phases["symbolic"], 1000)
        yield "team", Merge(4, 8).speculative(device, phases["symbolic"], 1000)


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
        Most work-items in a work-group.
    staged_c : int, optional
        Entries of C to a work-item that are staged, see `MergeKernel`; by default the number that suits the product.
    staged_b : int
        Entries of B that are staged, see `MergeKernel`.
    """

    lanes: int
    items: int
    registers: bool = True
    work_group: int = 128
    staged_c: int | None = None
    staged_b: int = 0

    #: Number of which the number of staged entries of a row of C is a multiple.
    _STAGED_STEP: ClassVar[int] = 4
    #: Most entries of a row of C that are staged.
    _MAX_STAGED: ClassVar[int] = 32

    @property
    def length(self) -> int:
        """Most entries of a row of A whose rows of B the accumulator can merge."""
        return self.lanes * self.items

    def legal(self, device: Device, types: KernelTypes, *, listed: bool, max_length_of_b: int = 0) -> MergeKernel | None:
        """Return the parameters of the merging kernel that are nearest to the accumulator's and fit a device; None if none do."""
        shape = self.lanes, self.items, self.registers, self.staged_c or 0, self.staged_b, max_length_of_b
        requested = MergeKernel(self.work_group, types, listed, device.portability, *shape)
        width = device.portability.lane_width
        group = max(self.work_group, width) if self.staged_b or min(self.lanes, width) > 1 else self.work_group
        return requested.within(min(group, device.max_work_group), width)

    def speculative(self, device: Device, types: KernelTypes, max_length_of_b: int) -> MergeKernel:
        """Return parameters of the kernel that counts C's entries before any analysis, and reports whether all rows suit it."""
        legal = self.legal(device, types, listed=False, max_length_of_b=max_length_of_b)
        assert legal is not None, self  # `merges` gives none else
        # The speculative merge kernel counts the products of a work-item in 13 bits.
        return replace(legal, max_length_of_b=min(max_length_of_b, 8191 // legal.items))

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> MergeKernel:
        """Return the parameters of the merging kernel for the phase of the product in ``types``, as a device allows them."""
        legal = self.legal(device, types, listed=listed)
        assert legal is not None, self  # `merges` gives none else
        return legal

    @override
    def predict_record(self, product: Product, rows: Rows, phase: str) -> RowKernel | None:
        """Return the parameters of the merging kernel of a phase of the product; None if they depend on C's number of entries."""
        # The merge kernel depends on the number of entries of C that a work-item stages, hence on C's number of entries.
        staging = self.staged_c is None and self.lanes == 1 and phase != "symbolic" and rows.listed is None
        return None if staging else super().predict_record(product, rows, phase)

    @override
    def adapt(self, product: Product, entries: int | None = None) -> Self:
        """Return the accumulator that suits a product: C's mean row gives the entries of C that are staged in local memory."""
        if self.staged_c is not None or entries is None or product.kind.device.resident == 1:
            return self
        # Some rows of C are longer than the mean row: a tenth more entries of C than the mean are staged in local memory.
        n_staged = math.ceil(1.1 * (entries / product.shape[0]) / self._STAGED_STEP) * self._STAGED_STEP
        return replace(self, staged_c=n_staged if n_staged <= self._MAX_STAGED else 0)

    @override
    def describe(self) -> str:
        """Return the heads of a work-item, the work-items to a row and the staged entries of B, in a few words."""
        where = "" if self.registers else " in local memory"
        staged = f", {self.staged_b} entries of B side by side" if self.staged_b else ""
        return f"{self.items} heads a work-item{where}, {self.lanes} to a row{staged}"


# Merging accumulators are cached: products that are not analysed yet ask for the accumulators while the device waits.
@functools.lru_cache(maxsize=64)
def merges(device: Device, types: KernelTypes, thresholds: Thresholds, *, registers: bool) -> tuple[Merge, ...]:
    """Return the merging accumulators that a device can hold, those for short rows of A first.

    Short rows have one work-item, which has nothing to exchange and stages its entries of C; longer rows have more lanes, at
    least four, so that the entries of C of one turn fill a memory transaction; the longest rows have more heads to a lane.
    """
    width, items = min(device.portability.lane_width, thresholds.max_merge_lanes), thresholds.merge_items
    shapes = [(1, 1 << bit) for bit in range(thresholds.merge_item_length.bit_length())]
    teams = [(1 << bit, items) for bit in range(2, width.bit_length())]
    for lanes, heads in (*teams, (width, 2 * items), (width, 4 * items)):
        if lanes * heads > shapes[-1][0] * shapes[-1][1]:
            shapes.append((lanes, heads))
    accumulators = (Merge(lanes, heads, registers) for lanes, heads in shapes)
    return tuple(merge for merge in accumulators if merge.legal(device, types, listed=False))


def reg_merge(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "reg-merge", classes of rows by the length of A's row, merged in registers."""
    return tuple(Bin("reg-merge", accumulator, max_length=accumulator.length) for accumulator in merges(*on, registers=True))


def merge(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "merge", classes of rows by the length of A's row, merged in local memory."""
    return tuple(Bin("merge", accumulator, max_length=accumulator.length) for accumulator in merges(*on, registers=False))
