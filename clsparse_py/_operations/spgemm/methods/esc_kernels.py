"""The kernels of expansion, sort and contraction in global memory: a parameter record beside each template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._operations.spgemm.kernels import KernelTypes, OfLanes, OfListed, OfProduct, OfRows
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic

__all__ = [
    "ESC_MARK",
    "ESC_MARK_NUMBERED",
    "EscCarry",
    "EscContract",
    "EscCount",
    "EscEntries",
    "EscExpand",
    "EscRows",
]


@kernel
@dataclass(frozen=True)
class EscRows(OfRows):
    """Parameters of ``templates/spgemm/esc_rows.mako``."""

    template = "spgemm/esc_rows"
    variants: ClassVar[Variants] = {"": {"listed": True}}


@kernel
@dataclass(frozen=True)
class EscEntries(OfRows):
    """Parameters of ``templates/spgemm/esc_entries.mako``.

    Attributes
    ----------
    pointers : bool
        Whether the kernel also writes the first entry of each row.
    """

    template = "spgemm/esc_entries"
    variants: ClassVar[Variants] = {"": {"listed": False, "pointers": False}, "pointers": {"listed": True, "pointers": True}}

    pointers: bool


@kernel
@dataclass(frozen=True)
class EscCount(OfRows):
    """Parameters of ``templates/spgemm/esc_count.mako``.

    Attributes
    ----------
    counting : bool
        Whether the kernel also counts the entries of each row of C.
    """

    template = "spgemm/esc_count"
    variants: ClassVar[Variants] = {"": {"listed": False, "counting": True}}

    counting: bool


#: The kernel that marks the products, sorted by entry of C, at which entries of C begin.
ESC_MARK = declare_loop(
    "spgemm/esc_mark:keys",
    "Marks of a slice's sorted products: 1 where an entry of C begins, as the key is not that of the product before (Dalton, "
    "Olson and Bell, Section 3.4).",
    "const KEY *keys, uchar *marks",
    "marks[i] = i == 0 || keys[i] != keys[i - 1];",
    types="KEY",
)

#: The kernel that marks the sorted products at which entries of C begin, and sets bit 31 of the numbers of these products.
ESC_MARK_NUMBERED = declare_loop(
    "spgemm/esc_mark",
    "Marks as esc_mark:keys has them, and bit 31 set where an entry begins in the products' numbers, sorted with the keys.",
    "const KEY *keys, uint *numbers, uchar *marks",
    "const bool begins = i == 0 || keys[i] != keys[i - 1];",
    "marks[i] = begins;",
    "if (begins)",
    "    numbers[i] |= 1u << 31;",
    types="KEY",
)


@kernel
@dataclass(frozen=True)
class EscExpand(OfProduct):
    """Parameters of ``templates/spgemm/esc_expand.mako``, of the "values" phase if values are made, else of the "symbolic" one.

    Attributes
    ----------
    key : str
        "uint32" or "uint64": the dtype of a product's row and column as one number.
    output : str
        The kernel's output: "keys", "numbered" keys or "values".
    items : int
        Products of a work-item.
    """

    template = "spgemm/esc_expand"

    key: str
    output: str
    items: int = 8

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: the base's prelude, and ``KEY``, the type of a row and column as one number."""
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.key]} KEY;"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "keys" and "numbered"."""
        group, types = min(128, device.max_work_group), KernelTypes.of_same(arithmetic)
        yield "", cls(group, types.of("values"), "uint32", "values")
        yield "keys", cls(group, types.of("symbolic"), "uint32", "keys")
        yield "numbered", cls(group, types.of("symbolic"), "uint64", "numbered")


@kernel
@dataclass(frozen=True)
class EscContract(OfLanes, OfListed):
    """Parameters of ``templates/spgemm/esc_contract.mako``.

    Attributes
    ----------
    key : str
        "uint32" or "uint64": the dtype of the sorted keys.
    items : int
        Products to a work-item, an odd number: lanes that walk through products of their own do not meet in a bank of memory.
    """

    template = "spgemm/esc_contract"

    key: str
    items: int

    @classmethod
    def legal(cls, device: Device, types: KernelTypes, listed: bool, key: str, work_group: int) -> EscContract:
        """Return a device's parameters of the contraction kernel: 15 products a work-item, 11 if a value has 8 bytes, 5 if 16."""
        record = cls(min(work_group, device.max_work_group), types, listed, device.portability, key, 15)
        record = replace(record, items={8: 11, 16: 5}.get(types.value_bytes, 15))
        halves = (replace(record, work_group=record.work_group >> bit) for bit in range(record.work_group.bit_length()))
        return device.fitting(halves, lambda candidate: candidate.local_bytes)

    @property
    def tile(self) -> int:
        """Number of sorted products that a work-group contracts to entries of C."""
        return self.work_group * self.items

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory of a work-group of the kernel that contracts sorted products to entries of C."""
        value = self.types.value_bytes
        return self.tile * (value + 3) + self.work_group * (value + 4) + 4

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: ``KEY``, the type of a row and column as one number, and the base's prelude."""
        return f"typedef {OPENCL_TYPES[self.key]} KEY;\n{super().prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `OfListed`, and whether columns are given and only values are made."""
        return {**super().arguments(), "values_only": self.types.phase == "values"}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the contraction kernel for a work-group and a lane width; None if there are none."""
        # The number of products of a tile (one work-group's) must not change: arrays kept of a slice have an entry a tile.
        fitting = next((size for size in range(work_group, 0, -1) if self.tile % size == 0), 0)
        if not fitting:
            return None
        return replace(self, work_group=fitting, items=self.tile // fitting, portability=self.portability.at_most(lane_width))

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "" and "values"."""
        types = KernelTypes.of_same(arithmetic)
        yield "", cls.legal(device, types, True, "uint32", 128)
        yield "values", cls.legal(device, types.of("values"), False, "uint32", 128)


@kernel
@dataclass(frozen=True)
class EscCarry(OfListed):
    """Parameters of ``templates/spgemm/esc_carry.mako``.

    Attributes
    ----------
    tile : int
        Products of a tile, as `EscContract` has them.
    """

    template = "spgemm/esc_carry"

    tile: int

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        types = KernelTypes.of_same(arithmetic)
        tile = EscContract.legal(device, types, True, "uint32", 128).tile
        yield "", cls(min(128, device.max_work_group), types.of("values"), True, tile)
