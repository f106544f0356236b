"""The optimised ESC of Dalton et al.: "esc-local", each row expanded, sorted and contracted in the memory that it fits in.

Rows of few products have a work-item, in registers; rows of more products a sub-group or a work-group, in local memory; rows that
local memory does not hold have a work-group, in global memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import RESERVED, Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Rows
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.kernels import KernelTypes, RowKernel
from clsparse_py._operations.spgemm.methods.esc import Esc
from clsparse_py._operations.spgemm.methods.sort import max_columns_of
from clsparse_py._operations.spgemm.methods.team import SynchronisedKernel, Team
from clsparse_py._operations.spgemm.thresholds import Thresholds
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

__all__ = ["EscGroup", "EscGroupKernel", "EscItem", "EscItemKernel", "EscTeam", "EscTeamKernel", "esc_bins", "esc_local"]

#: Products of a row that a work-item sorts at a time, in registers: longer unrolled kernels crash a compiler (quirk 6).
_REGISTERS = 16
#: Most products of a row of C that a work-group sorts in global memory: one such row takes as long as all other rows.
_GROUP_PRODUCTS = 1 << 14
#: Most entries of a row of A whose products a work-group sorts in global memory: local memory has the first product of each.
_GROUP_ENTRIES = 1 << 13
#: Most bytes of local memory of a sorting work-group of several rows, so that several work-groups share a compute unit.
_LOCAL_BYTES = 24 << 10


def _word_bytes(types: KernelTypes, columns: int | None, bits: int) -> int:
    """Return the bytes of a word that stands for a product in a sort: a column and, but in the symbolic phase, its number."""
    if types.phase == "symbolic":
        return 8 if types.wide else 4
    return 4 if columns is not None and (columns - 1).bit_length() + bits <= 32 else 8


@dataclass(frozen=True)
class _SortingKernel(RowKernel):
    """Base of the records of kernels that sort the products of a row.

    Attributes
    ----------
    products : int
        Most products of a row.
    word_bytes : int
        Bytes of a word that is sorted.
    """

    products: int
    word_bytes: int

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `RowKernel`, and how many bits number the products of a row."""
        bits = (self.products - 1).bit_length() if self.types.arithmetic else 0
        return {**super().arguments(), "bits": bits}


@kernel
@dataclass(frozen=True)
class EscItemKernel(_SortingKernel):
    """Parameters of ``templates/spgemm/esc_item.mako``; ``products`` is a power of two, at most 32."""

    template = "spgemm/esc_item"

    @property
    def work_item_bytes(self) -> int:
        """Bytes of local memory for a work-item that sorts the products of a row in registers."""
        return self.products * (self.word_bytes + bool(self.types.arithmetic))

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `RowKernel`, bits of a product's number, and products that registers hold."""
        return {**super().arguments(), "registers": min(self.products, _REGISTERS)}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "unpacked" and "symbolic"."""
        types = KernelTypes.of_same(arithmetic)
        yield "", EscItem(32, columns=1 << 20).record(device, types, listed=True)
        yield "unpacked", EscItem(32).record(device, types.of("values"), listed=False)
        yield "symbolic", EscItem(32).record(device, types.of("symbolic"), listed=False)


@dataclass(frozen=True)
class _SortingTeamKernel(_SortingKernel, SynchronisedKernel):
    """Base of the records of kernels in which a team sorts a row."""

    #: Products that a lane fetches at a time.
    BATCH: ClassVar[int] = 2

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `_SortingKernel`, and products fetched at a time."""
        return {**super().arguments(), "batch": self.BATCH}


@kernel
@dataclass(frozen=True)
class EscTeamKernel(_SortingTeamKernel):
    """Parameters of ``templates/spgemm/esc_team.mako``."""

    template = "spgemm/esc_team"

    @property
    @override
    def row_bytes(self) -> int:
        """Bytes of local memory that the sorting kernel takes for each row of C."""
        return self.products * (2 * self.word_bytes + 2) + 8 + self.lanes * (4 + self.types.value_bytes)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: base's, whether lanes need no barriers, whether words hold where B's rows begin."""
        # The positions where rows of B begin are kept in the memory of the words to sort, if a word holds an index of B.
        bases = self.types.index == "int32" or self.word_bytes == 8
        return {**super().arguments(), "free": self.team_sync != "barrier", "bases": bases}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "unpacked", "symbolic", "upper_bound" and "group"."""
        types = KernelTypes.of_same(arithmetic)
        packed, unpacked = EscTeam(736, columns=1 << 20), EscTeam(736)
        yield "", packed.record(device, types, listed=True)
        yield "unpacked", unpacked.record(device, types.of("values"), listed=False)
        yield "symbolic", unpacked.record(device, types.of("symbolic"), listed=False)
        yield "upper_bound", packed.record(device, types.of("upper_bound"), listed=True)
        yield "group", EscTeam(1024, lanes=256, columns=1 << 20).record(device, types, listed=False)


@kernel
@dataclass(frozen=True)
class EscGroupKernel(_SortingTeamKernel):
    """Parameters of ``templates/spgemm/esc_group.mako``; the lanes are the work-group.

    Attributes
    ----------
    entries : int
        Most entries of a row of A.
    """

    template = "spgemm/esc_group"

    entries: int

    #: Bits of a digit of the radix sort.
    DIGIT_BITS: ClassVar[int] = 4

    @property
    @override
    def row_bytes(self) -> int:
        """Bytes of local memory that the sorting kernel takes for each row of C."""
        return 2 * (self.entries + 1) + self.lanes * (4 + self.types.value_bytes + 2 * (1 << self.DIGIT_BITS))

    @property
    def room(self) -> int:
        """Number of words for a row's products in a pass of the radix sort, enough for lanes with equal, odd numbers of words."""
        return self.products + 3 * self.lanes

    @property
    def base_words(self) -> int:
        """Number of words of memory that hold, for each entry of a row of A, where in B its row of B begins."""
        return -(-self.entries * self.types.index_bytes // self.word_bytes)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of global memory in which a work-group sorts the products of a row, a multiple of 8."""
        return -(-(2 * self.room + self.base_words) * self.word_bytes // 8) * 8

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: base's, words for products and for places in B, bits of an entry and of a digit."""
        # If a sorted word has room for the number of its product's entry of A, no search has to find this entry.
        entry_bits = (self.entries - 1).bit_length() if self.word_bytes == 8 and self.types.arithmetic else 0
        words = {"room": self.room, "base_words": self.base_words, "entry_bits": entry_bits}
        return {**super().arguments(), **words, "digit_bits": self.DIGIT_BITS}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        types = KernelTypes.of_same(arithmetic)
        yield "", EscGroup(1024, 64, columns=1 << 20, entries=512).record(device, types, listed=True)


@dataclass(frozen=True)
class _SortingTeam(Team):
    """Base of the accumulators that sort the products of a row.

    Attributes
    ----------
    products : int
        Most products of a row, and most entries of a row of A.
    work_group : int
        Most work-items in a work-group.
    columns : int, optional
        A bound above all columns of B, if one is known: few columns leave room for a product's number in a word of 32 bits.
    """

    products: int
    work_group: int = 128
    columns: int | None = None

    @override
    def adapt(self, product: Product, entries: int | None = None) -> Self:
        """Return the sorting accumulator with B's number of columns, which tells the bits of a column in a sorted word."""
        return replace(self, columns=self.columns or product.shape[1])

    @property
    def bits(self) -> int:
        """Number of bits that the numbers 0, 1, ... of the intermediate products of a row of C need in a sorted word."""
        return (self.products - 1).bit_length()

    @property
    def length(self) -> int:
        """Most entries of a row of A whose products the accumulator can sort."""
        return self.products

    def min_bytes(self, device: Device, types: KernelTypes) -> int:  # noqa: ARG002 - most sort on the chip
        """Return the least bytes of workspace that the sorting accumulator needs: 0 if it sorts in registers or local memory."""
        return 0

    def max_columns(self, device: Device, types: KernelTypes) -> int:  # noqa: ARG002 - words of any size fit
        """Return the most columns of B with which a sorted word of 64 bits holds a column and a product's number."""
        return max_columns_of(self.products)


@dataclass(frozen=True)
class EscItem(_SortingTeam):
    """An accumulator that sorts the products of a row in the registers of a work-item; ``products`` are at most 32."""

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> EscItemKernel:
        """Return the parameters of the sorting kernel for the phase of the product in ``types``, as a device allows them."""
        word_bytes = _word_bytes(types, self.columns, self.bits)
        requested = EscItemKernel(self.work_group, types, listed, device.portability.at_most(1), 1, 1 << self.bits, word_bytes)
        fitting = min(device.local_memory - RESERVED, _LOCAL_BYTES) // requested.work_item_bytes
        return replace(requested, work_group=min(self.work_group, device.max_work_group, max(fitting // 32 * 32, 1)))

    @override
    def describe(self) -> str:
        """Return the greatest number of products in a work-item's registers, in a few words."""
        return f"{self.products} products in a work-item's registers"


@dataclass(frozen=True)
class EscTeam(_SortingTeam):
    """An accumulator that sorts the products of a row in local memory.

    Attributes
    ----------
    lanes : int
        Work-items to a row.
    """

    lanes: int = 32

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> EscTeamKernel:
        """Return the parameters of the sorting kernel for the phase of the product in ``types``, as a device allows them."""
        word_bytes = _word_bytes(types, self.columns, self.bits)
        requested = EscTeamKernel(self.work_group, types, listed, device.portability, self.lanes, self.products, word_bytes)
        legal = requested.within(min(max(self.work_group, self.lanes), device.max_work_group), device.portability.lane_width)
        assert legal is not None  # a work-group has at least one work-item
        return legal.with_teams(min(device.local_memory - RESERVED, _LOCAL_BYTES))

    @override
    def max_columns(self, device: Device, types: KernelTypes) -> int:
        """Return the most columns of B with which the words of a row's products fit in local memory."""
        row_bytes = self.record(device, types.of("numeric"), listed=True).row_bytes
        return super().max_columns(device, types) if row_bytes + RESERVED <= device.local_memory else 1 << 32 - self.bits

    @override
    def describe(self) -> str:
        """Return the greatest number of products in local memory and the lanes to a row, in a few words."""
        return f"{self.products} products in local memory, {self.lanes} lanes to a row"


@dataclass(frozen=True)
class EscGroup(_SortingTeam):
    """An accumulator that sorts the products of a row in global memory: a work-group takes one row after another.

    Attributes
    ----------
    entries : int
        Most entries of a row of A.
    """

    entries: int = _GROUP_ENTRIES

    #: Most work-groups of a launch to a compute unit.
    _RESIDENT: ClassVar[int] = 2

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> EscGroupKernel:
        """Return the parameters of the sorting kernel for the phase of the product in ``types``, as a device allows them."""
        # Lanes (work-items) of a row of C meet at barriers in loops of any length: one lane on CPU devices (quirk 4).
        lanes = min(self.work_group, device.resident)
        word_bytes = _word_bytes(types, self.columns, self.bits)
        shape = lanes, self.products, word_bytes, self.entries
        return EscGroupKernel(lanes, types, listed, device.portability, *shape).fitting(device)

    @property
    @override
    def length(self) -> int:
        """Most entries of a row of A whose products the accumulator, a work-group to a row, can sort."""
        return self.entries

    @override
    def min_bytes(self, device: Device, types: KernelTypes) -> int:
        """Return the least bytes of workspace that the accumulator needs: those in which one work-group sorts a row."""
        return self.record(device, types, listed=True).scratch_bytes

    @override
    def max_columns(self, device: Device, types: KernelTypes) -> int:
        """Return the most columns of B with which a sorted 64-bit word holds a column, an entry of A and a product's number."""
        return super().max_columns(device, types) >> (self.entries - 1).bit_length()

    @override
    def _spread(self, chain: Chain, product: Product, rows: Rows, record: Any) -> tuple[int, tuple[Any, ...]]:
        """Return the sorting kernel's number of work-groups and last arguments: number of passes and memory of the radix sort."""
        # Half of the workspace is room for the work-groups to sort the products of a few rows at a time.
        room = product.spare() // 2
        groups = max(min(rows.n, self._RESIDENT * chain.device.compute_units, room // record.scratch_bytes), 1)
        scratch = chain.scratch(groups * record.scratch_bytes // 8, np.uint64)
        columns = self.columns or product.shape[1]
        passes = np.uint32(-(-max((columns - 1).bit_length(), 1) // record.DIGIT_BITS))
        return groups, (passes, scratch)

    @override
    def describe(self) -> str:
        """Return the greatest number of products in global memory and the work-group to a row, in a few words."""
        return f"{self.products} products in global memory, a work-group of {self.work_group} to a row"


def _max_products(device: Device, types: KernelTypes, lanes: int, word_bytes: int) -> int:
    """Return the most products of a row that a team sorts in local memory, in any phase, by words of ``word_bytes`` bytes."""
    record = replace(EscTeam(1, lanes=lanes).record(device, types.of("numeric"), listed=True), word_bytes=word_bytes)
    product_bytes = replace(record, products=2).row_bytes - record.row_bytes
    return (device.local_memory - RESERVED - record.row_bytes) // product_bytes


def esc_bins(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[EscItem | EscTeam | EscGroup, ...]:
    """Return the accumulators of "esc-local": a row has a work-item for few products, a sub-group or a work-group for more.

    Rows have no more products than local memory holds: more if columns leave room for a product's number in a word of 32 bits,
    see `EscTeam.max_columns`.
    """
    of_item, of_sub_group, of_group = (
        int(limit) for limit in (thresholds.esc_item_products, thresholds.esc_team_products, thresholds.esc_group_products)
    )
    width, group = min(32, device.max_work_group), min(256, device.max_work_group)
    accumulators: list[EscItem | EscTeam | EscGroup] = [EscItem(of_item)]
    for products, lanes in ((of_sub_group, width), (of_group, group)):
        fitting = min(products, _max_products(device, types, lanes, 8))
        packed = min(products, fitting if types.wide else _max_products(device, types, lanes, 4))
        # Rows with at most a quarter of the products take a quarter of local memory: more of these rows share a compute unit.
        accumulators += [
            EscTeam(size, lanes=lanes) for size in (fitting // 4, fitting, packed) if size > accumulators[-1].products
        ]
    # Entries of A's row take half of local memory, two bytes each: what is left holds the counters of many lanes.
    entries = min(_GROUP_ENTRIES, device.local_memory // 4)
    return *accumulators, EscGroup(_GROUP_PRODUCTS, min(512, device.max_work_group), entries=entries)


def esc_local(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of "esc-local": few products go to a work-item, more to a sub-group or work-group, the rest to `Esc`."""
    device, types, thresholds = on
    bins = (
        Bin(
            "esc-local", accumulator, accumulator.products, accumulator.length, takes_empty=isinstance(accumulator, EscItem),
            min_bytes=accumulator.min_bytes(device, types), max_columns=accumulator.max_columns(device, types),
        )
        for accumulator in esc_bins(device, types, thresholds)
    )  # fmt: skip
    return *bins, Bin("esc-local", Esc(bounded=True))
