"""Segmented sort: the keys of each segment of an array in ascending order, with values or without.

Segments are grouped by length (Hou et al., "Fast segmented sort on GPUs"): short segments are sorted in the registers of a few
lanes, medium ones by more lanes that also exchange through local memory, long ones in pieces, which are merged. On CPU devices a
work-item sorts whole segments, and the pieces of long ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, overload

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.built import Built
from clsparse_py._build.plain import door
from clsparse_py._build.programs import note_asked
from clsparse_py._decisions.profiles import decide
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import OPENCL_TYPES, define_sum_type, name_of
from clsparse_py._primitives import arguments
from clsparse_py._primitives.merge_rounds import Arrays, allocate_spare, enqueue_rounds
from clsparse_py._primitives.segment_classes import Tiles, Totals, cut_into_tiles, inspect_segments
from clsparse_py._primitives.segments import BLOCK, FEW_REGISTERS, Elements, OfElements, Runs, Segments, Shape
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Pair

__all__ = ["MergeSerial", "SortNetwork", "enqueue_segmented_sort", "features_of", "segmented_sort"]

#: Most work-items per core of a CPU device among which the segments of a sort or merge are divided.
_PARTS_PER_CORE = 8


@dataclass(frozen=True)
class SortNetwork(OfElements):
    """Parameters of ``templates/primitives/sort_network.mako``; ``work_group`` is a power of two.

    Attributes
    ----------
    ranges : str
        "segments" of some lists, or "tiles" of long segments.
    bins : tuple of int
        The longest segments of the lists, which double from list to list; or the tile alone.
    registers : int
        Elements in the registers of a lane: a power of two.
    portability : Portability
        How lanes exchange values, and how far.
    """

    template = "primitives/sort_network"

    ranges: str
    bins: tuple[int, ...]
    registers: int
    portability: Portability

    #: Most elements in the registers of a lane: a lane takes more than asked for if the driver allows a smaller work-group alone.
    MOST_REGISTERS: ClassVar[int] = 32

    @classmethod
    def of_segments(cls, device: Device, shape: Shape, index: str, elements: Elements) -> tuple[SortNetwork, ...]:
        """Return the records of the kernels that sort short segments and, if the shape has bins of them, medium segments."""
        bins_and_registers = ((shape.short_bins, FEW_REGISTERS), (shape.medium_bins, shape.registers))
        return tuple(
            cls(shape.work_group, index, Runs(False, bins[-1]), elements, "segments", bins, registers, device.portability)
            for bins, registers in bins_and_registers
            if bins
        )

    @classmethod
    def of_tiles(cls, device: Device, shape: Shape, index: str, elements: Elements, runs: Runs) -> SortNetwork:
        """Return the record of the kernel that sorts tiles of long segments."""
        return cls(shape.work_group, index, runs, elements, "tiles", (shape.tile,), shape.registers, device.portability)

    @property
    def lanes(self) -> int:
        """Number of lanes that sort a segment or tile of the greatest length together: a divisor of the work-group."""
        return self.bins[-1] // self.registers

    @property
    def teams(self) -> tuple[int, ...]:
        """The numbers of segments (or tiles) that a work-group sorts at once, for each length class."""
        return tuple(self.work_group * self.registers // longest for longest in self.bins)

    @property
    def packed(self) -> bool:
        """Whether a sorted word of 64 bits holds a key and, in its lower bits, the key's position, by which a value is moved."""
        return self.elements.value_bytes > 0 and self.elements.key_bytes == 4

    @property
    def places(self) -> bool:
        """Whether the positions of keys, by which values are moved, are words of their own beside the sorted keys."""
        return self.elements.value_bytes > 0 and not self.packed

    @property
    def word(self) -> str:
        """NumPy's name of the type of the words (keys, or keys with positions) that a sorting network sorts."""
        return "uint64" if self.packed or self.elements.key_bytes == 8 else "uint32"

    @property
    def box(self) -> int:
        """Number of a work-group's words in local memory: one for each element, and one for each lane against bank conflicts."""
        return self.work_group * (self.registers + 1)

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name, such as ``segments_8_32x4_``: ranges, shortest bin, most lanes, elements a lane."""
        return f"{self.ranges}_{self.bins[0]}_{self.lanes}x{self.registers}_"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: types of pointers, keys, values and words, and how lanes exchange words."""
        return "\n".join((super().prelude, self.portability.defines, *define_sum_type(np.dtype(self.word))))

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `OfElements`, lengths, lanes and registers, types and local memory."""
        signed = {"int32": "0x80000000u", "int64": "0x8000000000000000ul"}
        return {
            **super().arguments(),
            "ranges": self.ranges,
            "bins": len(self.bins),
            "longest": self.bins[-1],
            "lanes": self.lanes,
            "min_lanes": self.bins[0] // self.registers,
            "registers": self.registers,
            "lane_width": self.lane_width,
            "packed": self.packed,
            "places": self.places,
            "t": OPENCL_TYPES[self.word],
            "key": OPENCL_TYPES[self.elements.key],
            "unsigned": {4: "uint", 8: "ulong"}[self.elements.key_bytes],
            "flip": signed.get(self.elements.key, ""),
            "box": self.box,
            "local_memory": self.box * (np.dtype(self.word).itemsize + 4 * self.places),
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record for a smaller work-group with more elements to a lane; None if over 32 or over the shortest bin."""
        if work_group < 1:
            return None
        group = 1 << work_group.bit_length() - 1
        registers = max(self.registers, self.bins[-1] // group)
        if registers > min(self.MOST_REGISTERS, self.bins[0]):
            return None
        return replace(self, work_group=group, registers=registers, portability=self.portability.at_most(lane_width))


@dataclass(frozen=True)
class MergeSerial(OfElements):
    """Parameters of ``templates/primitives/merge_serial.mako``.

    Attributes
    ----------
    ranges : str
        "segments", or "tiles" of long segments that are cut.
    given_runs : bool
        Whether the ranges consist of given runs, or of pieces that the kernel sorts by insertion.
    block : int
        Elements of a piece that is sorted by insertion.
    """

    template = "primitives/merge_serial"

    ranges: str
    given_runs: bool
    block: int = BLOCK

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name for ranges and runs: given, or sorted blocks of a length, such as ``segments_sorted24_``."""
        return f"{self.ranges}_{'given' if self.given_runs else f'sorted{self.block}'}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `OfElements`, ``ranges``, whether runs are given, and a block's elements."""
        own_arguments = {"ranges": self.ranges, "given_runs": self.given_runs, "block": self.block}
        return {**super().arguments(), **own_arguments}


def enqueue_serial(
    chain: Chain, segments: Segments, n: int, x: Arrays, target: Arrays, runs: Runs, longest: int, shape: Shape
) -> None:
    """Enqueue the serial sort or merge: a work-item merges the runs of whole segments of at most ``longest`` elements.

    The runs are given, or pieces that the work-item sorts by insertion: then ``x`` may be ``target``.
    """
    kinds = segments.index, runs, Elements.of(*x)
    built, record = chain.build(MergeSerial(shape.work_group, *kinds, "segments", runs.given, shape.block))
    # On devices other than CPUs a work-item merges a single segment.
    parts = min(segments.n, _PARTS_PER_CORE * chain.device.compute_units) if chain.device.lanes_are_loops else segments.n
    counts = np.uint64(parts), np.int64(segments.n), np.int64(longest)
    segment_bounds = *segments.given, segments.bounds
    chain.launch(built, -(-parts // record.work_group), *counts, *segment_bounds, *x, *target, *allocate_spare(chain, n, x))


def _bound_groups(record: SortNetwork, shorter: int, n_segments: int, n: int) -> int:
    """Return an upper bound of the number of work-groups of a kernel that sorts segments of more than ``shorter`` elements."""
    # The lanes that sort are bounded by the lengths of segments in their bin (length class), and by the number of segments.
    by_number = n_segments * record.lanes
    steps = [
        longest / shorter_bin for shorter_bin, longest in zip((shorter, *record.bins), record.bins, strict=False) if shorter_bin
    ]
    by_length = n * max(steps, default=0) / record.registers
    if not shorter:
        by_length += min(n, n_segments) * record.bins[0] // record.registers
    return int(min(by_number, by_length)) // record.work_group + 1 + len(record.bins)


class _Networks(NamedTuple):
    """The kernels that sort short and medium segments by sorting networks.

    Attributes
    ----------
    built : tuple of Built
    records : tuple of SortNetwork
    teams : tuple of int
        The numbers of segments of the bins that a work-group sorts at once.
    """

    built: tuple[Built, ...]
    records: tuple[SortNetwork, ...]
    teams: tuple[int, ...]

    @classmethod
    def of(cls, chain: Chain, index: str, elements: Elements, shape: Shape) -> _Networks:
        """Return the kernels that sort short and medium segments: built by the first call for a device, types and shape."""
        kind = _Networks, chain.device, index, elements, shape
        networks = chain.worked_out(kind, lambda: cls._build(chain, *kind[2:]))
        note_asked(networks.built)
        return networks

    @classmethod
    def _build(cls, chain: Chain, index: str, elements: Elements, shape: Shape) -> _Networks:
        """Build the kernels that sort short and medium segments."""
        requested = () if shape.chunked else SortNetwork.of_segments(chain.device, shape, index, elements)
        pairs = [chain.build(record) for record in requested]
        records = tuple(record for _, record in pairs)
        teams = itertools.chain.from_iterable(record.teams for record in records)
        return cls(tuple(built for built, _ in pairs), records, tuple(teams))


def _enqueue_networks(
    chain: Chain,
    plan: cl_array.Array,
    lists: cl_array.Array,
    bounds: cl_array.Array,
    keys: cl_array.Array,
    sorted_keys: cl_array.Array,
    values: cl_array.Array | None,
    sorted_values: cl_array.Array | None,
    sizes: tuple[int, int, int],
    offsets: tuple[int, int],
    shape: Shape,
) -> None:
    """Enqueue the sort of short and medium segments by sorting networks.

    ``sizes``: the numbers of segments and elements, and the length of the longest segment; ``offsets``: the plan's first entries
    for lists and for work-groups.
    """
    n_segments, n, longest = sizes
    x, target = ((keys,), (sorted_keys,)) if values is None else ((keys, values), (sorted_keys, sorted_values))
    networks = _Networks.of(chain, name_of(bounds.dtype), Elements.of(*x), shape)
    n_bins_done = shorter = 0
    for built, record in zip(networks.built, networks.records, strict=True):
        if longest > shorter:
            places = (np.uint64(offset + n_bins_done) for offset in offsets)
            chain.launch(built, _bound_groups(record, shorter, n_segments, n), *places, plan, lists, bounds, *x, *target)
        n_bins_done, shorter = n_bins_done + len(record.bins), record.bins[-1]


def _enqueue_pieces(
    chain: Chain, segments: Segments, tiles: Tiles, x: Arrays, target: Arrays, spare: Arrays, runs: Runs, shape: Shape
) -> None:
    """Enqueue the sort of each tile of the long segments that are cut, for merge rounds to merge. ``x`` may be ``target``."""
    elements = Elements.of(*x)
    ends = np.uint64(tiles.n), np.uint64(tiles.n_merged)
    inputs = *ends, tiles.segment, tiles.first, *segments.given, segments.bounds
    if shape.chunked:
        built, serial = chain.build(MergeSerial(shape.work_group, segments.index, runs, elements, "tiles", False, shape.block))
        at_once = serial.work_group
    else:
        built, network = chain.build(SortNetwork.of_tiles(chain.device, shape, segments.index, elements, runs))
        at_once = network.teams[0]
    chain.launch(built, -(-(tiles.n - tiles.n_merged) // at_once), *inputs, *x, *target, *spare)


def enqueue_by_length(
    chain: Chain,
    segments: Segments,
    n: int,
    x: Arrays,
    target: Arrays,
    runs: Runs,
    shape: Shape,
    *,
    longest: int | None = None,
    accept: Callable[[Totals], None] | None = None,
) -> None:
    """Enqueue the sort or merge of segments by their lengths: sorts of short segments and of tiles of long ones, then merges.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    segments : Segments
        Segments, with their runs if ``runs`` are given, which then ascend.
    n : int
        Elements.
    x, target : tuple of pyopencl.array.Array
        Keys, and values if there are any; the result, which may be ``x`` if no runs are given.
    runs, shape : Runs, Shape
        Legal on the device.
    longest : int, optional
        Elements of the longest segment, if known. If they fit into a tile, the host does not wait.
    accept : callable, optional
        Function that is called with the totals of the inspection before commands that rely on the pointers are enqueued, and
        raises if the pointers are not valid.
    """
    networks = _Networks.of(chain, segments.index, Elements.of(*x), shape)
    inspection = inspect_segments(chain, segments, n, shape, runs, networks.teams)
    longest_bound = n if longest is None else min(longest, n)
    if n and networks.built:
        offsets = inspection.record.lists_at, inspection.record.groups_at
        value_arrays = (x[1], target[1]) if len(x) > 1 else (None, None)
        arrays = inspection.plan, inspection.lists, segments.bounds, x[0], target[0], *value_arrays
        run(chain, _enqueue_networks, arrays, (segments.n, n, longest_bound), offsets, shape)
    if accept is None and longest_bound <= shape.tile and not shape.chunked:
        return
    totals = inspection.wait()
    if accept is not None:
        accept(totals)
    if shape.chunked and n:
        enqueue_serial(chain, segments, n, x, target, runs, shape.tile, shape)
    if totals.merged_tiles + totals.cut_tiles:
        tiles, spare = cut_into_tiles(chain, segments, inspection, totals), allocate_spare(chain, n, x)
        if totals.cut_tiles:
            _enqueue_pieces(chain, segments, tiles, x, target, spare, runs, shape)
        enqueue_rounds(chain, segments, tiles, max(totals.rounds, 1), x, target, spare, runs, shape)


def features_of(elements: Elements, n: int, n_segments: int) -> dict[str, float]:
    """Return the features of a segmented sort, by which profiles choose its kernels' `Shape`; the device is not asked."""
    return {
        "n": n,
        "segments": n_segments,
        "mean": n / max(n_segments, 1),
        "key_bytes": elements.key_bytes,
        "value_bytes": elements.value_bytes,
    }


def _choose(device: Device, elements: Elements, n: int, n_segments: int) -> Shape:
    """Return the `Shape` of a segmented sort's kernels that the device's profile chooses."""
    return decide(device, "segmented_sort", "any", "shape", features_of(elements, n, n_segments), Shape.parse).value


def enqueue_segmented_sort(
    chain: Chain,
    segment_ptr: cl_array.Array,
    n_segments: int,
    keys: cl_array.Array,
    values: cl_array.Array | None,
    n: int,
    *,
    out_keys: cl_array.Array | None = None,
    out_values: cl_array.Array | None = None,
    longest: int | None = None,
    shape: Shape | None = None,
    accept: Callable[[Totals], None] | None = None,
) -> None:
    """Enqueue the stable sort of each segment by its keys.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    segment_ptr : pyopencl.array.Array
        ``n_segments + 1`` offsets, int32 or int64. If they are not valid, nothing is sorted.
    n_segments : int
        Segments.
    keys : pyopencl.array.Array
        int32, uint32, int64 or uint64.
    values : pyopencl.array.Array or None
        Values of any dtype of 1, 2, 4, 8 or 16 bytes, which move with the keys.
    n : int
        Elements.
    out_keys, out_values : pyopencl.array.Array, optional
        The arrays of the result; by default ``keys`` and ``values``. All arrays are used from the beginning of their buffers.
    longest : int, optional
        An upper bound of the length of segments. The host waits for the device once, unless no segment can be long.
    shape : Shape, optional
        The shape of the sort; by default the one that the device's profile chooses.
    accept : callable, optional
        As in `enqueue_by_length`.
    """
    x = (keys,) if values is None else (keys, values)
    outputs = (keys if out_keys is None else out_keys, values if out_values is None else out_values)
    target = tuple(output for output in outputs if output is not None)
    elements = Elements.of(*x)
    legal = (shape or _choose(chain.device, elements, n, n_segments)).legal(chain.device, elements)
    segments, runs = Segments(segment_ptr, n_segments), Runs(False, legal.tile)
    enqueue_by_length(chain, segments, n, x, target, runs, legal, longest=longest, accept=accept)


@overload
def segmented_sort(
    segment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: None = ...,
    *,
    out: cl_array.Array | None = ...,
) -> cl_array.Array: ...


@overload
def segmented_sort(
    segment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: cl_array.Array,
    *,
    out: Pair | None = ...,
) -> Pair: ...


@door()
def segmented_sort(
    segment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: cl_array.Array | None = None,
    *,
    out: cl_array.Array | Pair | None = None,
) -> cl_array.Array | Pair:
    """Return each segment's keys in stable ascending order; with ``values``, which move with their keys, (keys, values).

    Parameters
    ----------
    segment_ptr : pyopencl.array.Array
        Where each segment begins, and the end: shape (segments + 1,), int32 or int64. Segments may be empty.
    keys : pyopencl.array.Array
        Shape (n,); int32, uint32, int64 or uint64.
    values : pyopencl.array.Array, optional
        Shape (n,); any supported dtype.
    out : pyopencl.array.Array, or a tuple of two, optional
        Where the result goes: of the shape and dtype of ``keys``, with values a tuple (keys, values). It may be the arguments
        themselves.

    Returns
    -------
    pyopencl.array.Array, or a tuple of two
        The keys of each segment in ascending order; with values, (keys, values). Equal keys keep their order.

    Raises
    ------
    TypeError
        A dtype is not supported, or an argument is no device array.
    ValueError
        ``segment_ptr`` does not begin with 0, decreases, or does not end with n; ``values`` or ``out`` has another length.

    Notes
    -----
    The host waits for the device once, to learn how many segments there are of each length. After Hou et al., "Fast segmented
    sort on GPUs", as Ji et al., "Segmented merge", Section 2.3, summarise it.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> keys, pointers = (cl_array.to_device(sp.default_queue(), np.array(each, np.int32)) for each in ([2, 1, 3], [0, 2, 3]))
    >>> sp.primitives.segmented_sort(pointers, keys).get().tolist()
    [1, 2, 3]
    """
    outs = arguments.split_outputs(out, values is not None)
    queue = arguments.find_queue(segment_ptr=segment_ptr, keys=keys, values=values)
    chain = arguments.start_chain(queue, segment_ptr, keys, values, outs=outs)
    bounds = arguments.prepare_pointers(queue, "segment_ptr", segment_ptr)
    n = keys.size
    x = arguments.prepare_elements(queue, keys, values)
    results = [
        arguments.prepare_output(chain, "out", to, n, part.dtype, bounds, *x, in_place=part)
        for to, part in zip(outs, x, strict=False)
    ]

    def accept(totals: Totals) -> None:
        """Raise an error unless the pointers to segments begin with 0, never decrease, and end with the length of the keys."""
        arguments.require_pointers("segment_ptr", totals.decreasing, *totals.bounds, n, "the length of keys")

    arrays = [result.array for result in results] + [None] * (values is None)
    moved_values = None if values is None else x[1]
    enqueue_segmented_sort(
        chain, bounds, bounds.size - 1, x[0], moved_values, n, out_keys=arrays[0], out_values=arrays[1], accept=accept
    )
    return arguments.deliver(chain, results)
