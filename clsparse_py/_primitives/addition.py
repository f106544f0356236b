"""Records of kernels that add values up: types, and how lanes exchange sums."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import OPENCL_TYPES, conversion, define_sum_type, extreme, extreme_of_none, needs_fp64

__all__ = ["Addition", "Tiles", "fit_record", "sum_dtype"]


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of sums of values of a dtype: the same, but int64 for bool, whose True counts as one."""
    return np.dtype(np.int64) if dtype.kind == "b" else dtype


@dataclass(frozen=True)
class Addition(Parameters):
    """Base of the records of kernels that add values up.

    Attributes
    ----------
    source, target : str
        NumPy's names of the dtypes of the values and of their sums.
    portability : Portability
        How lanes exchange values, and how far.
    operation : str
        The operation that combines values: "plus"; "signed_plus", whose identity is -0, so that -0 alone keeps its sign; or a
        name that `arithmetic.extreme` takes.
    """

    source: str
    target: str
    portability: Portability
    operation: str = field(default="plus", kw_only=True)

    @cached_property
    def total(self) -> str:
        """NumPy's name of the dtype in which a kernel adds values up: the sums' dtype, or 32-bit integers for smaller integers.

        Bits beyond the sums' dtype are dropped at the end; compilers err in kernels on bytes (quirk 29).
        """
        target = np.dtype(self.target)
        return target.name if target.itemsize >= 4 else f"{'u' if target.kind == 'u' else ''}int32"

    @property
    def entry(self) -> str:
        """The OpenCL C expression for entry ``i`` of the array of values, converted to T, the type in which the kernel adds."""
        return "from_source(source[i])"

    @property
    def shape_name(self) -> str:
        """The part of a kernel's name for the fields that a record's class adds to this base, such as ``n15_``; "" for none."""
        return ""

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, shape, operation (unless addition), dtypes of values and sums, and work-group size."""
        types = self.target if self.source == self.target else f"{self.source}_{self.target}"
        if self.operation != "plus":
            types = f"{self.operation}_{types}"
        return f"{self.template.replace('/', '_')}_{self.shape_name}{types}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes exchange values, the types of values and sums, and the addition."""
        source, target, total = np.dtype(self.source), np.dtype(self.target), np.dtype(self.total)
        lines = [self.portability.defines]
        if needs_fp64(source, target):
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        lines += [
            f"typedef {OPENCL_TYPES[source.name]} SOURCE;  // {source.name}",
            f"typedef {OPENCL_TYPES[target.name]} TARGET;  // {target.name}",
            *define_sum_type(total),
            *self._define_addition(total),
            f"T from_source(SOURCE v) {{ return {conversion(source, total)}; }}",
            f"T LOAD(global const SOURCE *source, const ulong i) {{ return {self.entry}; }}",
        ]
        return "\n".join(lines)

    def _define_addition(self, total: np.dtype[Any]) -> list[str]:
        """Return the lines of OpenCL C that define the addition (or the minimum or maximum in its place) and its identity."""
        if self.operation.endswith("plus"):
            return [f"#define ZERO ((T)({'0' if self.operation == 'plus' else '-0.0f'}))", "#define ADD(a, b) ((a) + (b))"]
        return [
            # The identity of a minimum or maximum is of the sums' dtype: that of a larger dtype does not fit in arrays of sums.
            f"#define ZERO ((T)({extreme_of_none(self.operation, np.dtype(self.target))}))",
            f"T add(const T a, const T b) {{ return {extreme(self.operation, total)}; }}",
            "#define ADD(a, b) add(a, b)",
        ]

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size alone."""
        return {"work_group": self.work_group}


_Tiles = TypeVar("_Tiles", bound="Tiles")


@dataclass(frozen=True)
class Tiles(Addition):
    """Base of the records of kernels that scan tiles of entries in local memory.

    Attributes
    ----------
    items : int
        Entries to a work-item, an odd number, so that lanes do not meet in a bank of local memory.
    inclusive : bool
        Whether an entry is part of its own sum.
    """

    items: int
    inclusive: bool

    @property
    def tile(self) -> int:
        """Entries of a tile, which a work-group scans; in a scan of segments, steps on the merge path of segments and entries."""
        return self.work_group * self.items

    @property
    @abc.abstractmethod
    def segmented(self) -> bool:
        """Whether the sums of a scan begin anew inside a tile, where a segment or a key begins."""

    @property
    def local_memory(self) -> int:
        """Bytes of local memory that a work-group of the scan takes."""
        heads = self.items + 4 if self.segmented else 0
        return self.work_group * ((self.items + 1) * np.dtype(self.total).itemsize + heads)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the work-group's size, a work-item's entries, and whether the scan is inclusive."""
        return {**super().arguments(), "items": self.items, "inclusive": self.inclusive}


def fit_record(device: Device, record: _Tiles) -> _Tiles:
    """Return a scan's record with a work-group that fits local memory, and 15, 11 or 5 entries to a work-item by the sums' size.

    Sums of 4 bytes have 15 entries to a work-item, sums of 8 bytes 11, and larger ones 5.
    """
    items = {4: 15, 8: 11}.get(np.dtype(record.total).itemsize, 5)
    work_group = min(record.work_group, device.max_work_group)
    halves = (replace(record, items=items, work_group=work_group >> i) for i in range(work_group.bit_length()))
    return device.fitting(halves, lambda candidate: candidate.local_memory)
