"""Segmented sort: each segment of an array of keys in ascending order, with values or without.

Segments are grouped by length (Hou et al., "Fast segmented sort on GPUs"): short ones are sorted in the registers of a few lanes,
medium ones by more lanes that also exchange through local memory, long ones in pieces, which are merged. On CPU devices a
work-item sorts whole segments, and the pieces of long ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py.arithmetic import OPENCL_TYPES, type_of_sums
from clsparse_py.device import Device, Portability
from clsparse_py.launch import Chain
from clsparse_py.primitives import arguments
from clsparse_py.primitives.merge_rounds import Arrays, enqueue_rounds, spare_for
from clsparse_py.primitives.segments import Classes, Elements, OfElements, Runs, Segments, Shape, Tiles, classify, tiled

__all__ = ["MergeSerial", "SortNetwork", "enqueue_segmented_sort", "segmented_sort"]

# Work-items to a core that share segments out on CPU devices.
_PARTS_PER_CORE = 8


@dataclass(frozen=True)
class SortNetwork(OfElements):
    """Parameters of ``templates/primitives/sort_network.mako``.

    Attributes
    ----------
    ranges : str
        "segments" of a list, or "tiles" of long segments.
    lanes : int
        Lanes that sort a range: a power of two that divides ``work_group``.
    registers : int
        Elements in the registers of a lane: a power of two, at least 2.
    portability : Portability
        How lanes exchange values, and how far.
    """

    template = "primitives/sort_network"

    ranges: str
    lanes: int
    registers: int
    portability: Portability

    #: Elements in the registers of a lane, where the driver allows no work-group in which there would be fewer.
    MOST_REGISTERS = 32

    @classmethod
    def legal(cls, device: Device, shape: Shape, index: str, elements: Elements, runs: Runs | None, longest: int) -> SortNetwork:
        """Return the record that sorts ranges of up to ``longest`` elements: tiles of segments with ``runs``, else segments."""
        widest = 1 << shape.work_group.bit_length() - 1
        registers = max(min(shape.registers, max(4, longest // 16)), longest // widest, 2)
        lanes = max(longest // registers, 1)
        # Several ranges share a work-group where they leave lanes idle.
        group = shape.work_group // lanes * lanes
        ranges = "segments" if runs is None else "tiles"
        return cls(group, index, runs or Runs(False, longest), elements, ranges, lanes, registers, device.portability)

    @property
    def size(self) -> int:
        """Elements of a range, at most."""
        return self.lanes * self.registers

    @property
    def packed(self) -> bool:
        """Whether a word holds a key and its place behind it."""
        return self.elements.value_bytes > 0 and self.elements.key_bytes == 4

    @property
    def places(self) -> bool:
        """Whether places are words of their own beside the keys."""
        return self.elements.value_bytes > 0 and not self.packed

    @property
    def word(self) -> str:
        """NumPy's name of the type of what is sorted."""
        return "uint64" if self.packed or self.elements.key_bytes == 8 else "uint32"

    @property
    def box(self) -> int:
        """Words in local memory: a word for each element, and one more for each lane so that they do not meet in a bank."""
        return self.work_group * (self.registers + 1)

    @property
    @override
    def shape_name(self) -> str:
        return f"{self.ranges}_{self.lanes}x{self.registers}_"

    @property
    @override
    def prelude(self) -> str:
        return "\n".join((super().prelude, self.portability.defines, *type_of_sums(np.dtype(self.word))))

    @property
    @override
    def lane_width(self) -> int:
        return self.portability.lane_width

    @override
    def arguments(self) -> Mapping[str, object]:
        signed = {"int32": "0x80000000u", "int64": "0x8000000000000000ul"}
        return {
            **super().arguments(),
            "ranges": self.ranges,
            "lanes": self.lanes,
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
        if work_group < 1:
            return None
        lanes = min(self.lanes, 1 << work_group.bit_length() - 1)
        registers, portability = self.size // lanes, self.portability.at_most(lane_width)
        if registers > self.MOST_REGISTERS:
            return None
        return replace(self, work_group=work_group // lanes * lanes, lanes=lanes, registers=registers, portability=portability)


@dataclass(frozen=True)
class MergeSerial(OfElements):
    """Parameters of ``templates/primitives/merge_serial.mako``.

    Attributes
    ----------
    ranges : str
        "segments", or "tiles" of long segments that are cut.
    given_runs : bool
        Whether ranges have runs that are given, or pieces that are sorted by insertion.
    """

    template = "primitives/merge_serial"

    ranges: str
    given_runs: bool

    #: Elements that are sorted by insertion.
    BLOCK = 24

    @property
    @override
    def shape_name(self) -> str:
        return f"{self.ranges}_{'given' if self.given_runs else 'sorted'}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        own = {"ranges": self.ranges, "given_runs": self.given_runs, "block": self.BLOCK}
        return {**super().arguments(), **own}


def enqueue_serial(
    chain: Chain, segments: Segments, n: int, x: Arrays, target: Arrays, runs: Runs, longest: int, shape: Shape
) -> None:
    """Enqueue the serial algorithm: a work-item makes one run of each segment of at most ``longest`` of the ``n`` elements.

    Its runs are given, or pieces that it sorts by insertion: then ``x`` may be ``target``.
    """
    record = MergeSerial(shape.work_group, segments.index, runs, Elements.of(*x), "segments", runs.given)
    built, record = chain.build(record)
    # Elsewhere a work-item to a segment, about: as many as there are segments.
    parts = min(segments.n, _PARTS_PER_CORE * chain.device.compute_units) if chain.device.is_cpu else segments.n
    counts = np.uint64(parts), np.int64(segments.n), np.int64(longest)
    read = *segments.given, segments.bounds
    chain.launch(built, -(-parts // record.work_group), *counts, *read, *x, *target, *spare_for(chain, n, x))


def enqueue_short(chain: Chain, segments: Segments, classes: Classes, x: Arrays, target: Arrays, shape: Shape) -> None:
    """Enqueue the sort of the segments that are not long, bin by bin, in registers. ``x`` may be ``target``."""
    elements, listed = Elements.of(*x), 0
    for longest, count in zip(shape.bins, classes.counts[:-1], strict=True):
        if count:
            built, record = chain.build(SortNetwork.legal(chain.device, shape, segments.index, elements, None, longest))
            groups = -(-count // (record.work_group // record.lanes))
            numbers = np.uint64(count), np.uint64(listed)
            chain.launch(built, groups, *numbers, classes.lists, segments.bounds, *x, *target)
        listed += count


def enqueue_pieces(
    chain: Chain, segments: Segments, tiles: Tiles, x: Arrays, target: Arrays, spare: Arrays, runs: Runs, shape: Shape
) -> None:
    """Enqueue the sort of the tiles of segments that are cut, to where `enqueue_rounds` reads them. ``x`` may be ``target``."""
    elements = Elements.of(*x)
    read = np.uint64(tiles.n), tiles.segment, tiles.first, *segments.given, segments.bounds
    if shape.chunked:
        built, serial = chain.build(MergeSerial(shape.work_group, segments.index, runs, elements, "tiles", False))
        chain.launch(built, -(-tiles.n // serial.work_group), *read, *x, *target, *spare)
    else:
        record = SortNetwork.legal(chain.device, shape, segments.index, elements, runs, shape.tile)
        built, network = chain.build(record)
        chain.launch(built, -(-tiles.n // (network.work_group // network.lanes)), *read, *x, *target, *spare)


def enqueue_by_length(
    chain: Chain, segments: Segments, classes: Classes, n: int, x: Arrays, target: Arrays, runs: Runs, shape: Shape
) -> None:
    """Enqueue what makes one run of each segment: sorts of short segments, sorts of pieces of long ones, rounds of merges.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    segments, classes : Segments, Classes
        With runs where ``runs`` are given, which then ascend.
    n : int
        Elements.
    x, target : tuple of pyopencl.array.Array
        Keys, and values where there are any; the result, which may be ``x`` where no runs are given.
    runs, shape : Runs, Shape
        That the classes were made with.
    """
    if shape.chunked:
        enqueue_serial(chain, segments, n, x, target, runs, shape.tile, shape)
    else:
        enqueue_short(chain, segments, classes, x, target, shape)
    if classes.counts[-1]:
        tiles, spare = tiled(chain, segments, classes, runs), spare_for(chain, n, x)
        if runs.may_cut:
            enqueue_pieces(chain, segments, tiles, x, target, spare, runs, shape)
        enqueue_rounds(chain, segments, tiles, max(classes.n_rounds, 1), x, target, spare, runs, shape)


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
    shape: Shape | None = None,
) -> None:
    """Enqueue the stable sort of each segment by its keys; waits for the device once, to learn how long segments are.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    segment_ptr : pyopencl.array.Array
        ``n_segments + 1`` valid offsets, int32 or int64.
    n_segments : int
        Segments.
    keys : pyopencl.array.Array
        int32, uint32, int64 or uint64.
    values : pyopencl.array.Array or None
        Of any dtype of 1, 2, 4, 8 or 16 bytes; they move with the keys.
    n : int
        Elements.
    out_keys, out_values : pyopencl.array.Array, optional
        Where the result goes: ``keys`` and ``values`` themselves where they are not given. All arrays are used from the beginning
        of their buffers.
    shape : Shape, optional
        If not the one that suits the device.
    """
    x = (keys,) if values is None else (keys, values)
    outputs = (keys if out_keys is None else out_keys, values if out_values is None else out_values)
    target = tuple(output for output in outputs if output is not None)
    segments = Segments(segment_ptr, n_segments)
    if n:
        sort = SegmentedSort(chain, segments, Elements.of(*x), shape)
        sort.enqueue(n, x, target)


class SegmentedSort:
    """A segmented sort: made, it knows how long its segments are, having waited for the device; then it is enqueued.

    Attributes
    ----------
    classes : Classes
        What was found of the segments; nothing has trusted their bounds yet.
    """

    def __init__(self, chain: Chain, segments: Segments, elements: Elements, shape: Shape | None = None) -> None:
        self._chain, self._segments = chain, segments
        self._shape = (shape or Shape.default(chain.device)).legal(chain.device, elements)
        self._runs = Runs(False, self._shape.tile)
        self.classes = classify(chain, segments, self._shape, self._runs)

    def enqueue(self, n: int, x: Arrays, target: Arrays) -> None:
        """Enqueue the sort of ``n`` elements of ``x``, which may be ``target``."""
        enqueue_by_length(self._chain, self._segments, self.classes, n, x, target, self._runs, self._shape)


def segmented_sort(
    segment_ptr: cl_array.Array, keys: cl_array.Array, values: cl_array.Array | None = None, *, out: Any = None
) -> Any:
    """Sort the keys of each segment, and move values with them.

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
    """
    outs = arguments.pair_of_outputs(out, values is not None)
    queue = arguments.queue_of(segment_ptr=segment_ptr, keys=keys, values=values)
    chain = arguments.chain_of(queue, segment_ptr, keys, values, *outs)
    bounds = arguments.pointers(queue, "segment_ptr", segment_ptr)
    n = keys.size
    x: Arrays = (arguments.keys(queue, "keys", keys),)
    if values is not None:
        x += (arguments.values(queue, "values", values, beside=("keys", n)),)
    results = [
        arguments.output(chain, "out", each, n, given.dtype, bounds, *x, in_place=given)
        for each, given in zip(outs, x, strict=False)
    ]
    sort = SegmentedSort(chain, Segments(bounds, bounds.size - 1), Elements.of(*x))
    found = sort.classes
    arguments.require_pointers("segment_ptr", found.decreasing, found.first, found.last, n, "the length of keys")
    if n:
        sort.enqueue(n, x, tuple(result.array for result in results))
    delivered = tuple(result.deliver(chain) for result in results)
    return delivered if values is not None else delivered[0]
