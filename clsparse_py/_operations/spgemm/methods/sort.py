"""Sorting accumulators: "reg-sort", products in registers, and "sort", products in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.team import SynchronisedKernel, Team
from clsparse_py._operations.spgemm.thresholds import Thresholds
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["Sort", "SortKernel", "max_columns_of", "reg_sort", "sort", "sorts"]

#: Most work-items that sort the products of one row of C together.
_MAX_LANES = 32


@kernel
@dataclass(frozen=True)
class SortKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/sort.mako``; ``lanes`` is a power of two.

    Attributes
    ----------
    items : int
        Products of a lane, a power of two of at least 2.
    registers : bool
        Whether products are sorted in registers, or in local memory.
    word_bytes : int
        Bytes of a word that is sorted: it holds a column and, but in the symbolic phase, the number of a product.
    """

    template = "spgemm/sort"

    items: int
    registers: bool
    word_bytes: int

    #: Most products of a lane: a word of 32 bits marks the products of a lane at which runs begin.
    MAX_ITEMS: ClassVar[int] = 32
    #: Most products in a lane's registers (quirk 6).
    MAX_REGISTER_ITEMS: ClassVar[int] = 16
    #: Most bytes of local memory of a work-group of several sub-groups, so that several work-groups share a compute unit.
    LOCAL_MEMORY: ClassVar[int] = 24 << 10
    #: Products that a lane fetches at a time.
    BATCH: ClassVar[int] = 8

    @property
    def products(self) -> int:
        """Most intermediate products of a row of C that the lanes of a row can sort: `items` for each of the `lanes`."""
        return self.lanes * self.items

    @property
    @override
    def row_bytes(self) -> int:
        """Bytes of local memory that the sorting kernel takes for each row of C."""
        words = self.word_bytes * (self.products + self.lanes)
        return words + (2 + self.types.index_bytes + self.types.value_bytes) * self.products + 2 + 4 * self.lanes

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `RowKernel`'s, a row's products, bits of a number, products per fetch, lane width."""
        bits = self.products.bit_length() - 1
        return {
            **super().arguments(),
            "batch": min(self.items, self.BATCH),
            "products": self.products,
            "lane_width": self.lane_width,
            "bits": bits if self.types.arithmetic else 0,
            "bits_of_products": bits,
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the sorting kernel's nearest parameters for a work-group and a lane width; None if there are none.

        Fewer lanes have more products each, in local memory if registers are too few.
        """
        if work_group < 1:
            return None
        lanes = min(self.lanes, 1 << work_group.bit_length() - 1)
        width = 1 << min(lane_width, self.lane_width, work_group).bit_length() - 1 if lanes > 1 else 1
        items = self.products // lanes
        if items > self.MAX_ITEMS:
            return None
        # A work-group is a number of whole sub-groups, as the lanes of a sub-group exchange values.
        unit = max(lanes, width)
        group = work_group // unit * unit
        record = replace(
            self, work_group=group, lanes=lanes, items=items, portability=self.portability.at_most(width),
            registers=self.registers and items <= self.MAX_REGISTER_ITEMS,
        )  # fmt: skip
        while record.work_group // lanes * record.row_bytes > self.LOCAL_MEMORY and record.work_group >= 2 * unit:
            record = replace(record, work_group=record.work_group // (2 * unit) * unit)
        return record

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "", one for each phase, and those of "most" products, "small" columns and "local" memory."""
        types = KernelTypes.of_same(arithmetic)
        yield "", Sort(1, 8).record(device, types, listed=True)
        for phase in ("symbolic", "numeric", "values"):
            yield phase, Sort(8, 8).record(device, types.of(phase), listed=False)
        yield "upper_bound", Sort(8, 8).record(device, types.of("upper_bound"), listed=True)
        yield "most", Sort(32, 16).record(device, types, listed=True)
        yield "small", Sort(16, 8, columns=1 << 16).record(device, types, listed=True)
        yield "local", Sort(8, 8, registers=False).record(device, types, listed=True)


@dataclass(frozen=True)
class Sort(Team):
    """An accumulator that sorts products, for rows with at most ``lanes * items`` products and as many entries of A.

    Attributes
    ----------
    lanes : int
        Work-items to a row, a power of two.
    items : int
        Products of a work-item, a power of two from 2 to 32.
    registers : bool
        Whether products are sorted in registers, or in local memory.
    work_group : int
        Most work-items in a work-group.
    columns : int, optional
        A bound above all columns of B, if not their number: few columns leave room for a product's number in a word of 32 bits.
    """

    lanes: int
    items: int
    registers: bool = True
    work_group: int = 128
    columns: int | None = None

    @property
    def products(self) -> int:
        """Most intermediate products of a row of C that the lanes of a row can sort: `items` for each of the `lanes`."""
        return self.lanes * self.items

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> SortKernel:
        """Return the parameters of the sorting kernel for the phase of the product in ``types``, as a device allows them."""
        columns = 32 if self.columns is None else (self.columns - 1).bit_length()
        bits = columns + (0 if types.phase == "symbolic" else (self.products - 1).bit_length())
        word_bytes = 8 if types.wide or bits > 32 else 4
        width = device.portability.lane_width
        requested = SortKernel(
            self.work_group, types, listed, device.portability, self.lanes, self.items, self.registers, word_bytes
        )
        legal = requested.within(min(max(self.work_group, self.lanes, width), device.max_work_group), width)
        assert legal is not None, self  # no device has so few work-items in a work-group
        return legal

    @override
    def adapt(self, product: Product, entries: int | None = None) -> Self:
        """Return the sorting accumulator with the product's number of columns, which decides if sort words have 4 or 8 bytes."""
        return replace(self, columns=self.columns or product.shape[1])

    @override
    def describe(self) -> str:
        """Return the products of a work-item and the work-items to a row, in a few words."""
        where = "" if self.registers else " in local memory"
        return f"{self.items} products a work-item{where}, {self.lanes} to a row"


def max_columns_of(products: int) -> int:
    """Return the most columns of B with which a word of 64 bits holds a column and a number below ``products``."""
    return 1 << 64 - (products - 1).bit_length()


def sorts(thresholds: Thresholds, *, registers: bool) -> tuple[Sort, ...]:
    """Return the sorting accumulators, one for rows of at most 2, 4, 8, ..., 512 products each, as in Liu et al., Section 3.4.

    ``registers``: whether they sort in registers, or in local memory.
    """
    accumulators = []
    for products in (1 << bit for bit in range(1, 10)):
        # A lane (work-item) sorts few products of a row, so that neighbouring lanes write side by side.
        lanes = min(_MAX_LANES, max(products // thresholds.sort_items, min(products // 2, 2)))
        accumulators.append(Sort(lanes, products // lanes, registers))
    return tuple(accumulators)


def _bins(method: str, accumulators: tuple[Sort, ...]) -> tuple[Bin, ...]:
    """Return a bin for each sorting accumulator: the class of rows whose products and columns the accumulator holds."""
    return tuple(
        Bin(method, accumulator, accumulator.products, accumulator.products, max_columns=max_columns_of(accumulator.products))
        for accumulator in accumulators
    )


def reg_sort(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "reg-sort", classes of rows by their number of products, sorted in registers."""
    return _bins("reg-sort", sorts(on.thresholds, registers=True))


def sort(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "sort", classes of rows by their number of products, sorted in local memory."""
    return _bins("sort", sorts(on.thresholds, registers=False))
