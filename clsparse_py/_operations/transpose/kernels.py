"""The kernels of SpTRANS: a parameter record beside each template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._primitives.permute import Moving

__all__ = [
    "UNPACK",
    "UNPACK_POSITIONS",
    "AtOnce",
    "Count",
    "Gather",
    "GatherChunked",
    "Insert",
    "Order",
    "Sample",
    "Transposition",
    "fit_tile",
]


class Transposition(NamedTuple):
    """A matrix and the arrays of its transposed, which are written to.

    Attributes
    ----------
    indptr, indices : pyopencl.array.Array
        Of the matrix.
    values : pyopencl.array.Array or None
        Of the matrix; if None, positions of entries are moved.
    to_indptr, to_indices, moved : pyopencl.array.Array
        Of the transposed; ``moved`` is for its values or positions.
    shape : tuple of int
        Of the matrix.
    nnz : int
    """

    indptr: cl_array.Array
    indices: cl_array.Array
    values: cl_array.Array | None
    to_indptr: cl_array.Array
    to_indices: cl_array.Array
    moved: cl_array.Array
    shape: tuple[int, int]
    nnz: int

    @property
    def value_arguments(self) -> tuple[cl_array.Array, ...]:
        """A kernel's arguments for the values of the matrix to transpose: none if positions of entries are moved."""
        return () if self.values is None else (self.values,)

    @property
    def value_bytes(self) -> int:
        """Bytes of a value of the matrix to transpose; 0 if positions of entries are moved."""
        return 0 if self.values is None else self.values.dtype.itemsize


@kernel
@dataclass(frozen=True)
class Sample(OfStructure):
    """Parameters of ``templates/transpose/sample.mako``."""

    template = "transpose/sample"
    variants: ClassVar[Variants] = {"": {"work_group": 256}}

    #: Most rows of a matrix that are sampled: of one entry of each, the mirror image is searched for.
    ROWS: ClassVar[int] = 1024

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, and ``samples``, the number of sampled rows."""
        return {**super().arguments(), "samples": self.ROWS}


@kernel
@dataclass(frozen=True)
class Count(OfStructure):
    """Parameters of ``templates/transpose/count.mako``."""

    template = "transpose/count"
    variants: ClassVar[Variants] = {"": {"work_group": 256}}


@kernel
@dataclass(frozen=True)
class GatherChunked(Moving):
    """Parameters of ``templates/transpose/gather_chunked.mako``."""

    template = "transpose/gather_chunked"
    variants: ClassVar[Variants] = {"": {"work_group": 1}, "positions": {"work_group": 1, "value_bytes": 0}}

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and ``positions``: whether positions are moved in place of values."""
        return {**super().arguments(), "positions": not self.value_bytes}


#: Loop that makes the transposed matrix's column indices and values from insert.mako's (row, position) pairs.
UNPACK = declare_loop(
    "transpose/unpack",
    "The rows and values of the pairs of insert.mako.",
    "const ulong *pairs, const V *data, I *rows, V *out",
    "rows[k] = (I)(pairs[k] >> 32);",
    "out[k] = data[pairs[k] & 0xffffffff];",
    counter="k",
    types="I V",
)


#: Loop that splits insert.mako's (row, position) pairs into the transposed matrix's column indices and positions of entries.
UNPACK_POSITIONS = declare_loop(
    "transpose/unpack:positions",
    "The rows and positions of the pairs of insert.mako.",
    "const ulong *pairs, I *rows, I *positions",
    "rows[k] = (I)(pairs[k] >> 32);",
    "positions[k] = (I)(pairs[k] & 0xffffffff);",
    counter="k",
)


@kernel
@dataclass(frozen=True)
class AtOnce(Moving):
    """Parameters of ``templates/transpose/at_once.mako``.

    Attributes
    ----------
    places : int
        Rows, columns and entries together, at most.
    portability : Portability
        How lanes exchange counts.
    """

    template = "transpose/at_once"

    places: int
    portability: Portability

    @classmethod
    def legal(cls, device: Device, index: str, value_bytes: int, work_group: int = 256, places: int | None = None) -> Self:
        """Return the nearest legal parameters of the one-launch transposition; on CPU devices one work-item takes all entries."""
        work_group = 1 if device.lanes_are_loops else min(work_group, device.max_work_group)
        # In a one-launch transposition columns' counters, and two numbers to a work-item, take at most half of local memory.
        places = Thresholds.of(device).max_at_once if places is None else places
        places = max(1, min(places, device.local_memory // 8 - 2 * work_group))
        return cls(work_group, index, value_bytes, places, device.portability)

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes exchange counts, and the types of indices and moved values."""
        return f"{self.portability.defines}\n{super().prelude}"

    @property
    @override
    def lane_width(self) -> int:
        """Number of lanes that exchange values without local memory; 1 if the work-group has one work-item."""
        return 1 if self.work_group == 1 else self.portability.lane_width

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, whether positions are moved, and the first step of the search for a row."""
        return {**super().arguments(), "positions": not self.value_bytes, "first_step": 1 << (self.places - 1).bit_length()}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel that moves values, "", and that moves "positions" of entries."""
        yield "", cls.legal(device, arithmetic.index, np.dtype(arithmetic.a).itemsize)
        yield "positions", cls.legal(device, arithmetic.index, 0)


def fit_tile(device: Device, work_group: int = 256, items: int = 4, entry_bytes: int = 4) -> tuple[int, int]:
    """Return the legal work-group size and entries to a work-item, nearest to the given ones, of a transposition's tile.

    A tile takes at most a quarter of the device's local memory: ``entry_bytes`` for each entry and one more.
    """
    max_tile = max(1, device.local_memory // (4 * entry_bytes) - 1)
    work_group = max(1, min(work_group, device.max_work_group, max_tile))
    return work_group, max(1, min(items, max_tile // work_group))


@kernel
@dataclass(frozen=True)
class Insert(OfStructure):
    """Parameters of ``templates/transpose/insert.mako``.

    Attributes
    ----------
    items : int
        Entries and beginnings of rows to a work-item; a tile has ``work_group * items``. See `fit_tile` for the legal values.
    """

    template = "transpose/insert"

    items: int

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, whose tile fits the device."""
        group, items = fit_tile(device)
        yield "", cls(group, arithmetic.index, items)


@dataclass(frozen=True)
class _MovingTiles(Moving):
    """Base of the parameter records of SpTRANS's kernels that move the entries of a tile.

    Attributes
    ----------
    items : int
        As in `Insert`.
    """

    items: int

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and ``positions``: whether positions are moved in place of values."""
        return {**super().arguments(), "positions": not self.value_bytes}


@kernel
@dataclass(frozen=True)
class Order(_MovingTiles):
    """Parameters of ``templates/transpose/order.mako``; an entry takes 12 bytes of local memory."""

    template = "transpose/order"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, whose tile fits the device."""
        group, items = fit_tile(device, items=8, entry_bytes=12)
        yield "", cls(group, arithmetic.index, np.dtype(arithmetic.a).itemsize, items)


@kernel
@dataclass(frozen=True)
class Gather(_MovingTiles):
    """Parameters of ``templates/transpose/gather.mako``."""

    template = "transpose/gather"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records for values and for "positions" of entries; the tile fits the device."""
        group, items = fit_tile(device)
        yield "", cls(group, arithmetic.index, np.dtype(arithmetic.a).itemsize, items)
        yield "positions", cls(group, arithmetic.index, 0, items)
