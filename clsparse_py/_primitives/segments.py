"""Segments of keys and values, their sorted runs, and their shapes: the common part of segmented sort and segmented merge.

Positions are counted in 64 bits; stored ones have the pointers' index type.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.programs import Parameters
from clsparse_py._decisions.labels import number
from clsparse_py._device.device import RESERVED, Device
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import MOVED_TYPES, OPENCL_TYPES, name_of

__all__ = ["BLOCK", "FEW_REGISTERS", "NEVER", "Elements", "OfElements", "OfRuns", "Runs", "Segments", "Shape"]

#: Number of elements that each lane (work-item) of the kernel that sorts short segments holds in registers.
FEW_REGISTERS = 4
#: Greatest length of a segment that a segmented sort counts as short by default, in elements.
_SHORT = 128
#: Greatest length of a segment in the first length class (bin) of short segments, in elements.
_SHORTEST_BIN = 8
#: Elements of a block (a piece of a segment) that a work-item of a CPU device sorts by insertion, by default.
BLOCK = 24
#: Number of merge rounds that no segment needs: as `Runs.sort_rounds`, it says that given runs are never sorted anew.
NEVER = 64


@dataclass(frozen=True)
class Elements:
    """Keys, and the values that move with them.

    Attributes
    ----------
    key : str
        NumPy's name of the dtype of keys.
    value_bytes : int
        Bytes of a value, 0 if there are none.
    """

    key: str
    value_bytes: int

    @classmethod
    def of(cls, keys: cl_array.Array, values: cl_array.Array | None = None) -> Elements:
        """Return the types of the elements of a sort or merge, by the array of keys and the array of values, if there is one."""
        return cls(name_of(keys.dtype), 0 if values is None else values.dtype.itemsize)

    @property
    def key_bytes(self) -> int:
        """Bytes of a key that is sorted or merged."""
        return np.dtype(self.key).itemsize

    @property
    def name(self) -> str:
        """The part of a kernel's name that tells the types of keys and values, such as ``int32_v8``."""
        return f"{self.key}_v{self.value_bytes}" if self.value_bytes else self.key

    @property
    def prelude(self) -> str:
        """The lines of OpenCL C that define the types of keys and values."""
        value = f"\ntypedef {MOVED_TYPES[self.value_bytes]} V;" if self.value_bytes else ""
        return f"typedef {OPENCL_TYPES[self.key]} K;  // {self.key}: keys{value}\n#define VALUES {int(self.value_bytes > 0)}"


@dataclass(frozen=True)
class Runs:
    """The sorted runs from which segments are merged, and the macros of ``cl/segment_runs.cl`` for them.

    Attributes
    ----------
    given : bool
        Whether the caller gives sorted runs; else kernels make runs by sorting tiles.
    tile : int
        Elements of a tile.
    sort_rounds : int
        Merge rounds that sorting a tile is worth: given runs that take more rounds than tiles by more than that are not used.
    """

    given: bool
    tile: int
    sort_rounds: int = 0

    @property
    def name(self) -> str:
        """Part of a kernel's name for given or made runs, a tile's elements and, if given, `sort_rounds`: ``given_t4096s2``."""
        return f"{'given' if self.given else 'made'}_t{self.tile}{f's{self.sort_rounds}' if self.given else ''}"

    @property
    def prelude(self) -> str:
        """The lines of OpenCL C that define the macros of ``cl/segment_runs.cl``, by which kernels find sorted runs."""
        return f"#define RUNS_GIVEN {int(self.given)}\n#define TILE {self.tile}l\n#define SORT_ROUNDS {self.sort_rounds}u"


#: Largest numbers in the label of a segmented sort's shape, by kind and name; few registers, as loops over them are unrolled.
_BOUNDS = {
    "chunks": {"work-group": 1 << 16, "tile": 1 << 30, "block": 1 << 10},
    "lanes": {"work-group": 1 << 16, "merge-group": 1 << 16, "registers": 16, "short": 1 << 16},
}
#: Most elements of a tile that one work-item merges.
_MAX_MERGED = 16


@dataclass(frozen=True)
class Shape:
    """The shape of a segmented sort or merge: profiles choose it, and tests vary it.

    Attributes
    ----------
    chunked : bool
        Whether a tile is a work-item's, in global memory, or a work-group's, in local memory.
    work_group : int
        Work-group of kernels that sort; a power of two unless chunked.
    merge_group : int
        Work-group of kernels that merge tiles.
    registers : int
        Most elements in the registers of a lane; a power of two, at least 4. 0 if chunked.
    tile : int
        Elements of a tile; longer segments are long. A power of two unless chunked.
    short : int
        Longest segment that lanes with four elements sort, if the work-group has enough lanes; a power of two.
    block : int
        Elements that a work-item sorts by insertion, if chunked.
    """

    chunked: bool
    work_group: int
    merge_group: int
    registers: int
    tile: int
    short: int = _SHORT
    block: int = BLOCK

    def __str__(self) -> str:
        if self.chunked:
            return f"chunks/{self.work_group}/{self.tile}/{self.block}"
        return f"lanes/{self.work_group}/{self.merge_group}/{self.registers}/{self.short}"

    @classmethod
    def parse(cls, label: str) -> Shape:
        """Return the shape of a segmented sort that a label, such as "lanes/256/512/16/128" or "chunks/1/32768/24", stands for.

        Labels are "chunks/WORK_GROUP/TILE/BLOCK" or "lanes/WORK_GROUP/MERGE_GROUP/REGISTERS/SHORT".

        Raises
        ------
        ValueError
            It names no shape.
        """
        kind, *numbers = label.split("/")
        bounds = _BOUNDS.get(kind, {})
        if bounds and len(numbers) == len(bounds):
            fields = zip(numbers, bounds.items(), strict=True)
            values = [number(text, f"shape: {name}", 1, highest) for text, (name, highest) in fields]
            if kind == "chunks":
                return cls.chunks(*values)
            work_group, merge_group, registers, short = values
            powers = all(number.bit_count() == 1 for number in (work_group, registers, short))
            if powers and min(registers, short) >= FEW_REGISTERS:
                return cls.lanes(work_group, merge_group, registers, short)
        raise ValueError(
            f'shape: must be such as "lanes/256/512/16/128", with powers of two, or "chunks/1/32768/24", is {label!r}'
        )

    @classmethod
    def default(cls, device: Device) -> Shape:
        """Return the default shape of a segmented sort or merge for a device, not yet adapted to its limits by `legal`."""
        return cls.chunks(1) if device.lanes_are_loops else cls.lanes(256, 512, 16)

    @classmethod
    def chunks(cls, work_group: int, tile: int = 1 << 15, block: int = BLOCK) -> Shape:
        """Return the shape of a segmented sort or merge whose tiles are sorted by a single work-item, as on CPU devices."""
        return cls(True, work_group, work_group, 0, tile, block=block)

    @classmethod
    def lanes(cls, work_group: int, merge_group: int, registers: int, short: int = _SHORT) -> Shape:
        """Return the shape of a segmented sort or merge whose tiles are sorted by the lanes of a work-group, as on GPUs.

        The work-group has ``work_group`` lanes, or the next lower power of two.
        """
        work_group = 1 << work_group.bit_length() - 1
        return cls(False, work_group, merge_group, registers, work_group * registers, short)

    @functools.lru_cache(maxsize=256)  # noqa: B019 - a shape is a small value, and the same few are asked for again and again
    def legal(self, device: Device, elements: Elements) -> Shape:
        """Return the shape of a segmented sort or merge nearest to this shape whose kernels fit a device's limits."""
        max_group = device.max_work_group
        if self.chunked:
            return replace(self, work_group=min(self.work_group, max_group), merge_group=min(self.merge_group, max_group))
        if device.is_plain:
            return self.default(device)
        shape = self.lanes(min(self.work_group, max_group), min(self.merge_group, max_group), self.registers, self.short)
        shape = device.fitting(shape._list_smaller(), lambda candidate: candidate.local_memory(elements), RESERVED)
        # Kernels that merge tiles are unrolled over the elements of a work-item, which are few therefore (quirk 6).
        return replace(shape, merge_group=max(shape.merge_group, -(-shape.tile // _MAX_MERGED)))

    def _list_smaller(self) -> Iterator[Shape]:
        """Iterate over this shape of a sort, shapes with fewer registers to a work-item, and shapes with fewer work-items."""
        work_group, registers = self.work_group, self.registers
        while work_group:
            yield self.lanes(work_group, self.merge_group, registers, self.short)
            if registers > FEW_REGISTERS:
                registers //= 2
            else:
                work_group //= 2

    def local_memory(self, elements: Elements) -> int:
        """Return an upper bound of the bytes of local memory that a kernel takes to sort or merge a tile."""
        # Keys are sorted in local memory, together with their positions if there are values.
        sorting = (elements.key_bytes + (4 if elements.value_bytes else 0)) * (self.tile + self.work_group)
        merging = elements.key_bytes * self.tile + 2 * (self.tile + 2 * self.tile // 4 + 4)
        return max(sorting, merging)

    @functools.cached_property
    def short_bins(self) -> tuple[int, ...]:
        """The greatest lengths of segments in the length classes (bins) of short segments; none if chunked."""
        if self.chunked:
            return ()
        sizes = [FEW_REGISTERS << i for i in range(min(self.work_group, self.short // FEW_REGISTERS).bit_length())]
        return tuple(size for size in sizes if size >= _SHORTEST_BIN) or (sizes[-1],)

    @functools.cached_property
    def medium_bins(self) -> tuple[int, ...]:
        """The greatest lengths of segments in the length classes (bins) between short and long segments; none if chunked."""
        if self.chunked:
            return ()
        sizes = (self.registers << i for i in range(self.work_group.bit_length()))
        return tuple(size for size in sizes if size > self.short_bins[-1])

    @functools.cached_property
    def bins(self) -> tuple[int, ...]:
        """The greatest lengths of segments in all length classes (bins) of segments that are not long; none if chunked."""
        return self.short_bins + self.medium_bins


@dataclass(frozen=True)
class OfRuns(Parameters):
    """Base of the records of kernels that read segments and runs.

    Attributes
    ----------
    index : str
        NumPy's name of the dtype of pointers.
    runs : Runs
    """

    index: str
    runs: Runs

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, shape, kind of runs and length of a tile, type of pointers, and work-group size."""
        return f"{self.template.rpartition('/')[2]}_{self.shape_name}{self.runs.name}_{self.index}_wg{self.work_group}"

    @property
    def shape_name(self) -> str:
        """The part of a kernel's name for the fields of its record's own class, such as ``segments_8_32x4_``; "" for none."""
        return ""

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the type I of pointers, and the macros by which kernels find sorted runs."""
        return f"typedef {OPENCL_TYPES[self.index]} I;  // {self.index}: pointers\n{self.runs.prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size, whether runs are given, and the elements of a tile."""
        return {"work_group": self.work_group, "has_runs": self.runs.given, "tile": self.runs.tile}


@dataclass(frozen=True)
class OfElements(OfRuns):
    """Base of the records of kernels that read and move elements.

    Attributes
    ----------
    elements : Elements
    """

    elements: Elements

    @property
    @override
    def name(self) -> str:
        """The kernel's name: that of `OfRuns`, and the types of keys and values, such as ``int32_v8``."""
        return f"{super().name}_{self.elements.name}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the lines of `OfRuns`, and the types of keys and values."""
        return f"{super().prelude}\n{self.elements.prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `OfRuns`, and ``value_bytes``, 0 without values."""
        return {**OfRuns.arguments(self), "value_bytes": self.elements.value_bytes}


@dataclass(frozen=True)
class Segments:
    """Segments of an array of elements on the device.

    Attributes
    ----------
    bounds : pyopencl.array.Array
        The first elements of segments, and the end: ``n + 1`` pointers.
    n : int
        The number of segments.
    given : tuple of pyopencl.array.Array
        The first runs of segments and the first elements of runs; empty without given runs.
    """

    bounds: cl_array.Array
    n: int
    given: tuple[cl_array.Array, ...] = ()

    @property
    def index(self) -> str:
        """NumPy's name of the dtype of the pointers to segments of keys."""
        return name_of(self.bounds.dtype)
