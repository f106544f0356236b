"""Segments of keys and values on the device: grouped by length, and those too long for one work-group cut into tiles.

Segmented sort and segmented merge share this. Positions are counted in 64 bits; what is stored has the pointers' index type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py.arithmetic import OPENCL_TYPES
from clsparse_py.device import Device
from clsparse_py.launch import Chain
from clsparse_py.primitives.radix_kernels import MOVED_TYPES
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.programs import Parameters

__all__ = [
    "NEVER",
    "RESERVED",
    "Classes",
    "Elements",
    "OfElements",
    "OfRuns",
    "Runs",
    "SegmentClasses",
    "SegmentTiles",
    "Segments",
    "Shape",
    "Tiles",
    "classify",
    "tiled",
]

# The longest segments of the first bin.
_SHORTEST_BIN = 8
#: More rounds than any segment takes.
NEVER = 64
#: Bytes of local memory that are left to the driver.
RESERVED = 1024


@dataclass(frozen=True)
class Elements:
    """Keys, and the values that move with them.

    Attributes
    ----------
    key : str
        NumPy's name of the dtype of keys.
    value_bytes : int
        Bytes of a value, 0 where there are none.
    """

    key: str
    value_bytes: int

    @classmethod
    def of(cls, keys: cl_array.Array, values: cl_array.Array | None = None) -> Elements:
        """Return what some arrays hold."""
        return cls(keys.dtype.name, 0 if values is None else values.dtype.itemsize)

    @property
    def key_bytes(self) -> int:
        """Bytes of a key."""
        return np.dtype(self.key).itemsize

    @property
    def name(self) -> str:
        """A short name, such as ``int32_v8``."""
        return f"{self.key}_v{self.value_bytes}" if self.value_bytes else self.key

    @property
    def prelude(self) -> str:
        """OpenCL C: the types."""
        value = f"\ntypedef {MOVED_TYPES[self.value_bytes]} V;" if self.value_bytes else ""
        return f"typedef {OPENCL_TYPES[self.key]} K;  // {self.key}: keys{value}\n#define VALUES {int(self.value_bytes > 0)}"


@dataclass(frozen=True)
class Runs:
    """What the runs are that segments are merged from: the macros that ``cl/segment_runs.cl`` needs.

    Attributes
    ----------
    given : bool
        Whether there are sorted runs from the beginning; else all are made by sorting tiles.
    tile : int
        Elements of a tile.
    sort_rounds : int
        Given runs are not used where they take more than so many rounds more than sorted tiles would.
    """

    given: bool
    tile: int
    sort_rounds: int = 0

    @property
    def may_cut(self) -> bool:
        """Whether tiles of a segment may be sorted first."""
        return not self.given or self.sort_rounds < NEVER

    @property
    def name(self) -> str:
        """A short name."""
        return f"{'given' if self.given else 'made'}_t{self.tile}{f's{self.sort_rounds}' if self.given else ''}"

    @property
    def prelude(self) -> str:
        """OpenCL C: the macros."""
        return f"#define RUNS_GIVEN {int(self.given)}\n#define TILE {self.tile}l\n#define SORT_ROUNDS {self.sort_rounds}u"


@dataclass(frozen=True)
class Shape:
    """How segments are cut: what the tests vary, and tuning may.

    Attributes
    ----------
    chunked : bool
        Whether a tile is a work-item's, in global memory, or a work-group's, in local memory.
    work_group : int
        Of kernels that sort.
    merge_group : int
        Of kernels that merge tiles.
    registers : int
        Elements in the registers of a lane, at most; a power of two. 0 where chunked.
    tile : int
        Elements of a tile; segments of more are long. A power of two where not chunked.
    """

    chunked: bool
    work_group: int
    merge_group: int
    registers: int
    tile: int

    @classmethod
    def default(cls, device: Device) -> Shape:
        """Return the shape for a device, before `legal`."""
        return cls.chunks(1) if device.is_cpu else cls.lanes(256, 256, 16)

    @classmethod
    def chunks(cls, work_group: int, tile: int = 1 << 15) -> Shape:
        """Return the shape of tiles that a work-item sorts."""
        return cls(True, work_group, work_group, 0, tile)

    @classmethod
    def lanes(cls, work_group: int, merge_group: int, registers: int) -> Shape:
        """Return the shape of tiles that a work-group of these sorts."""
        return cls(False, work_group, merge_group, registers, (1 << work_group.bit_length() - 1) * registers)

    def legal(self, device: Device, elements: Elements) -> Shape:
        """Return the nearest shape whose kernels fit a device's work-groups and local memory."""
        most = device.max_work_group
        if self.chunked:
            return replace(self, work_group=min(self.work_group, most), merge_group=min(self.merge_group, most))
        found = self.lanes(min(self.work_group, most), min(self.merge_group, most), self.registers)
        while found.local_memory(elements) + RESERVED > device.local_memory:
            if found.registers > 4:
                found = self.lanes(found.work_group, found.merge_group, found.registers // 2)
            else:
                found = self.lanes(found.work_group // 2, found.merge_group, found.registers)
        return found

    def local_memory(self, elements: Elements) -> int:
        """Return an upper bound of what a kernel takes for a tile."""
        sorting = self.word_bytes(elements) * (self.tile + self.work_group)
        merging = elements.key_bytes * self.tile + 2 * (self.tile + 2 * self.tile // 4 + 4)
        return max(sorting, merging)

    @staticmethod
    def word_bytes(elements: Elements) -> int:
        """Return the bytes of what is sorted: a key, with its place where there are values."""
        return elements.key_bytes + (4 if elements.value_bytes else 0)

    @property
    def bins(self) -> tuple[int, ...]:
        """The longest segments of each bin of segments that are not long."""
        if self.chunked:
            return ()
        shortest = min(_SHORTEST_BIN, self.tile)
        return tuple(shortest << i for i in range((self.tile // shortest).bit_length()))


@dataclass(frozen=True)
class OfRuns(Parameters):
    """What kernels that read segments and runs share.

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
        return f"{self.template.rpartition('/')[2]}_{self.shape_name}{self.runs.name}_{self.index}_wg{self.work_group}"

    @property
    def shape_name(self) -> str:
        """The part of the name that tells the kernel's own parameters."""
        return ""

    @property
    @override
    def prelude(self) -> str:
        return f"typedef {OPENCL_TYPES[self.index]} I;  // {self.index}: pointers\n{self.runs.prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group, "given": self.runs.given, "tile": self.runs.tile}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group) if work_group else None


@dataclass(frozen=True)
class SegmentClasses(OfRuns):
    """Parameters of ``templates/primitives/segment_classes.mako``.

    Attributes
    ----------
    step : str
        "count" or "place".
    bins : tuple of int
        The longest segments of each class but the last.
    """

    template = "primitives/segment_classes"

    step: str
    bins: tuple[int, ...]

    @property
    @override
    def shape_name(self) -> str:
        return f"{self.step}_{len(self.bins)}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**OfRuns.arguments(self), "step": self.step, "bins": self.bins, "n_classes": len(self.bins) + 1}


@dataclass(frozen=True)
class SegmentTiles(OfRuns):
    """Parameters of ``templates/primitives/segment_tiles.mako``."""

    template = "primitives/segment_tiles"


@dataclass(frozen=True)
class OfElements(OfRuns):
    """What kernels that read and move elements share.

    Attributes
    ----------
    elements : Elements
    """

    elements: Elements

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.elements.name}"

    @property
    @override
    def prelude(self) -> str:
        return f"{super().prelude}\n{self.elements.prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**OfRuns.arguments(self), "value_bytes": self.elements.value_bytes}


@dataclass(frozen=True)
class Segments:
    """Segments on the device.

    Attributes
    ----------
    bounds : pyopencl.array.Array
        Where the elements of each begin, and the end: ``n + 1`` entries.
    n : int
        Segments.
    given : tuple of pyopencl.array.Array
        The first run of each segment and where runs begin, or nothing.
    """

    bounds: cl_array.Array
    n: int
    given: tuple[cl_array.Array, ...] = ()

    @property
    def index(self) -> str:
        """NumPy's name of the dtype of pointers."""
        return self.bounds.dtype.name


@dataclass(frozen=True)
class Classes:
    """Segments by length: what `classify` found.

    Attributes
    ----------
    counts : tuple of int
        Segments of each bin of a shape, then long ones.
    n_tiles : int
        Tiles of long segments.
    n_rounds : int
        Rounds that a long segment takes, at most.
    decreasing, first, last : int
        How often the bounds decrease; the first and the last of them.
    lists : pyopencl.array.Array
        The numbers of the segments of each class, class by class.
    tiles_of : pyopencl.array.Array
        Tiles of each long segment.
    """

    counts: tuple[int, ...]
    n_tiles: int
    n_rounds: int
    decreasing: int
    first: int
    last: int
    lists: cl_array.Array
    tiles_of: cl_array.Array


def classify(chain: Chain, segments: Segments, shape: Shape, runs: Runs) -> Classes:
    """Group segments by their lengths: the one wait for the device. Trusts the bounds no further than it has to.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    segments : Segments
        With runs where ``runs`` are given.
    shape : Shape
        Legal on the device.
    runs : Runs
    """
    group = min(128, chain.device.max_work_group)
    counting, record = chain.build(SegmentClasses(group, segments.index, runs, "count", shape.bins))
    placing, _ = chain.build(replace(record, step="place"))
    n_classes = len(shape.bins) + 1
    groups = max(1, min(-(-segments.n // record.work_group), 2 * chain.device.compute_units))
    found, starts = (chain.scratch((n_classes + 5) * groups, np.int64) for _ in range(2))
    lists, tiles_of = (chain.scratch(segments.n, segments.bounds.dtype) for _ in range(2))
    read = np.uint64(segments.n), *segments.given, segments.bounds
    chain.launch(counting, groups, *read, found)
    enqueue_scan(chain, found, starts, n_classes * groups, kind="exclusive")
    chain.launch(placing, groups, *read, starts, lists, tiles_of)
    rows = chain.read(found, (n_classes + 5) * groups).reshape(-1, groups)
    *counts, n_tiles, _, decreasing, first, last = rows.sum(axis=1).tolist()
    return Classes(tuple(counts), n_tiles, int(rows[n_classes + 1].max()), decreasing, first, last, lists, tiles_of)


@dataclass(frozen=True)
class Tiles:
    """The tiles of long segments.

    Attributes
    ----------
    n : int
    segment, first : pyopencl.array.Array
        The segment that each tile belongs to, and that segment's first tile.
    run : tuple of pyopencl.array.Array
        Where runs are given, the one that holds the first element of each tile.
    """

    n: int
    segment: cl_array.Array
    first: cl_array.Array
    run: tuple[cl_array.Array, ...]


def tiled(chain: Chain, segments: Segments, classes: Classes, runs: Runs) -> Tiles:
    """Return the tiles of long segments."""
    n, n_long, index = classes.n_tiles, classes.counts[-1], segments.bounds.dtype
    tile_ptr = chain.scratch(n_long + 1, index)
    enqueue_scan(chain, classes.tiles_of, tile_ptr, n_long, kind="pointers")
    segment, first = (chain.scratch(n, index) for _ in range(2))
    run = (chain.scratch(n, index),) if runs.given else ()
    built, record = chain.build(SegmentTiles(min(64, chain.device.max_work_group), segments.index, runs))
    listed = np.uint64(n_long), tile_ptr, np.uint64(sum(classes.counts[:-1])), classes.lists
    read = *segments.given, segments.bounds
    chain.launch(built, -(-n // record.work_group), np.uint64(n), *listed, *read, segment, first, *run)
    return Tiles(n, segment, first, run)
