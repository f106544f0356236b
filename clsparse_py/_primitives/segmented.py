"""Segmented sum and scan: of adjacent segments of any lengths, in parts of equal weight.

After Blelloch, Heroux and Zagha, every work-item has the same number of entries, whatever segments they belong to. Parts are
cut on the merge path of segment beginnings and entries (Merrill and Garland), so that many empty segments are no burden to a
single part. On CPU devices a work-item takes a part, and parts are few and long.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.plain import door
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of
from clsparse_py._primitives import arguments
from clsparse_py._primitives.addition import Addition, Tiles, fit_record, sum_dtype
from clsparse_py._primitives.scan import count_chunks, enqueue_tiles, legal_tiles
from clsparse_py._primitives.thresholds import Thresholds
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = [
    "AddPartials",
    "CutSegments",
    "SegmentedChunks",
    "SegmentedTails",
    "SegmentedTiles",
    "enqueue_segmented_scan",
    "enqueue_segmented_sum",
    "segmented_scan",
    "segmented_sum",
]


@kernel
@dataclass(frozen=True)
class CutSegments(OfStructure):
    """Parameters of ``templates/primitives/cut_segments.mako``."""

    template = "primitives/cut_segments"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        tiles = SegmentedTiles.usual_on(device, arithmetic)
        yield "", cls(tiles.work_group, tiles.index)


@dataclass(frozen=True)
class OfSegments(Addition):
    """Base of the records of kernels that add up segments.

    Attributes
    ----------
    index : str
        NumPy's name of the dtype of pointers.
    """

    index: str

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells the type of pointers to segments, such as ``int32_``."""
        return f"{self.index}_"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the lines of `Addition`, and the type I of pointers to segments."""
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.index]} I;  // {self.index}: pointers"


@kernel
@dataclass(frozen=True)
class SegmentedTiles(Tiles, OfSegments):
    """Parameters of ``templates/primitives/segmented_tiles.mako``."""

    template = "primitives/segmented_tiles"

    @classmethod
    def legal(
        cls, device: Device, source: str, target: str, index: str, inclusive: bool, work_group: int | None = None
    ) -> SegmentedTiles:
        """Return the record of a scan of segments by tiles, which fits in the device's local memory."""
        return fit_record(
            device,
            cls(work_group or Thresholds.of(device).scanning_group, source, target, device.portability, index, 1, inclusive),
        )

    @classmethod
    def usual_on(cls, device: Device, arithmetic: Arithmetic) -> SegmentedTiles:
        """Return the usual record of a scan of segments on a device: inclusive, for values of an arithmetic's result dtype."""
        types = arithmetic.result.name, sum_dtype(arithmetic.result).name
        return cls.legal(device, *types, arithmetic.index, inclusive=True)

    @property
    @override
    def segmented(self) -> bool:
        """Whether the sums of the scan begin anew inside a tile: always, where a segment begins."""
        return True

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name for kind of scan, entries of a work-item, pointer type, such as ``exclusive_n15_int32_``."""
        return f"{'' if self.inclusive else 'exclusive_'}n{self.items}_{super().shape_name}"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel for an inclusive scan, "", and for an "exclusive" one."""
        tiles = cls.usual_on(device, arithmetic)
        yield "", tiles
        yield "exclusive", replace(tiles, inclusive=False)


@kernel
@dataclass(frozen=True)
class SegmentedTails(OfSegments):
    """Parameters of ``templates/primitives/segmented_tails.mako``."""

    template = "primitives/segmented_tails"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        tiles = SegmentedTiles.usual_on(device, arithmetic)
        yield "", cls(tiles.work_group, tiles.source, tiles.target, tiles.portability, tiles.index)


@kernel
@dataclass(frozen=True)
class SegmentSums(OfSegments):
    """Parameters of ``templates/primitives/segment_sums.mako``.

    Attributes
    ----------
    whole : bool
        Whether a work-group takes whole segments, not a part of equal weight.
    items : int
        Weight of a part, divided by the work-items of a work-group.
    unroll : int
        Segments whose loads a lane has in flight.
    """

    template = "primitives/segment_sums"

    whole: bool
    items: int
    unroll: int

    @property
    def local_memory(self) -> int:
        """Bytes of local memory that a work-group takes to sum its part of the segments; 0 if it takes whole segments."""
        return 0 if self.whole else (self.step + self.work_group) * np.dtype(self.total).itemsize + 16

    @property
    def step(self) -> int:
        """Weight of the part that a work-group sums: its entries and segment beginnings, counted together."""
        return self.work_group * self.items

    @property
    def lanes(self) -> int:
        """Most lanes of a work-group that sum a segment together."""
        return self.lane_width if self.work_group % self.lane_width == 0 else 1

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name: "whole" or a work-item's weight, unrolling and pointer type, such as ``n16_u4_int32_``."""
        return f"{'whole' if self.whole else f'n{self.items}'}_u{self.unroll}_{super().shape_name}"

    @classmethod
    def legal(
        cls,
        device: Device,
        source: str,
        target: str,
        index: str,
        uncut: bool,
        work_group: int | None = None,
        *,
        operation: str = "plus",
    ) -> SegmentSums:
        """Return the record of the kernel that sums segments, which fits in the device's local memory."""
        group, size = min(work_group or Thresholds.of(device).summing_group, device.max_work_group), np.dtype(target).itemsize
        items, unroll = (16 if size <= 8 else 8), (4 if size <= 4 else 2)
        record = cls(group, source, target, device.portability, index, uncut, items, unroll, operation=operation)
        halves = (replace(record, work_group=group >> i) for i in range(group.bit_length()))
        return device.fitting(halves, lambda candidate: candidate.local_memory)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: work-group size, whether segments are whole, weights, a segment's lanes, unrolling."""
        sizes = {"whole": self.whole, "items": self.items, "step": self.step, "lanes": self.lanes, "unroll": self.unroll}
        return {**super().arguments(), **sizes}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel that sums cut segments ("") and "whole" ones, and that finds the "maximum"."""
        types = arithmetic.result.name, sum_dtype(arithmetic.result).name
        sums = cls.legal(device, *types, arithmetic.index, uncut=False)
        yield "", sums
        yield "whole", cls.legal(device, *types, arithmetic.index, uncut=True)
        yield "maximum", replace(sums, operation="maximum")


@kernel
@dataclass(frozen=True)
class AddPartials(Addition):
    """Parameters of ``templates/primitives/add_partials.mako``."""

    template = "primitives/add_partials"

    @classmethod
    def of(cls, device: Device, sums: SegmentSums) -> AddPartials:
        """Return the record of the kernel that adds later parts' sums to the sum of a segment that began in an earlier part."""
        group = min(sums.work_group, Thresholds.of(device).summing_group)
        return cls(group, sums.total, sums.target, sums.portability.at_most(group), operation=sums.operation)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        dtype, total = arithmetic.result, sum_dtype(arithmetic.result)
        yield "", cls.of(device, SegmentSums.legal(device, dtype.name, total.name, arithmetic.index, uncut=False))


@kernel
@dataclass(frozen=True)
class SegmentedChunks(OfSegments):
    """Parameters of ``templates/primitives/segmented_chunks.mako``.

    Attributes
    ----------
    step : str
        "sum", "add", "tails" or "scan".
    inclusive : bool
        Whether an entry is part of its own sum.
    """

    template = "primitives/segmented_chunks"

    step: str
    inclusive: bool

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name for step of the segmented sum or scan and pointer type, such as ``exclusive_scan_int32_``."""
        step = f"{'inclusive' if self.inclusive else 'exclusive'}_scan" if self.step == "scan" else self.step
        return f"{step}_{super().shape_name}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size, the step, and whether the scan is inclusive."""
        return {**super().arguments(), "step": self.step, "inclusive": self.inclusive}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "add", "tails", "scan" and "maximum"."""
        types = arithmetic.result.name, sum_dtype(arithmetic.result).name
        chunks = cls(1, *types, device.portability.at_most(1), arithmetic.index, "sum", True)
        yield "", chunks
        for step in ("add", "tails", "scan"):
            yield step, replace(chunks, step=step)
        yield "maximum", replace(chunks, operation="maximum")


#: `SegmentSums.legal` with its results kept: making a record legal takes longer than launching its kernel.
_legal_sums = functools.lru_cache(maxsize=256)(SegmentSums.legal)
#: `AddPartials.of` with its results kept: making a record takes longer than launching its kernel.
_of_partials = functools.lru_cache(maxsize=256)(AddPartials.of)


@functools.lru_cache(maxsize=256)
def _make_chunked(
    device: Device,
    work_group: int | None,
    source: str,
    target: str,
    index: str,
    steps: tuple[str, str],
    inclusive: bool,
    operation: str = "plus",
) -> tuple[SegmentedChunks, SegmentedChunks]:
    """Return the records of the two kernels of a segmented sum or scan on CPU devices: a work-item takes one part."""
    kinds = source, target, device.portability.at_most(1), index
    first, second = (SegmentedChunks(work_group or 1, *kinds, step, inclusive, operation=operation) for step in steps)
    return first, second


def enqueue_segmented_sum(
    chain: Chain,
    segment_ptr: cl_array.Array,
    source: cl_array.Array,
    target: cl_array.Array,
    n_segments: int,
    n: int,
    work_group: int | None = None,
    *,
    operation: str = "plus",
    longest: int | None = None,
) -> None:
    """Enqueue the sum (or another reduction, ``operation``) of the values of each segment.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    segment_ptr, source, target : pyopencl.array.Array
        ``n_segments + 1`` valid pointers, ``n`` values, ``n_segments`` sums, used from the beginning of their buffers. Sums are
        made in ``target``'s dtype, which is no bool.
    n_segments, n : int
        The numbers of segments and of values.
    work_group : int, optional
        Work-items of a work-group; by default a number that suits the device.
    operation : str
        The operation in place of the addition, as in `Addition`; an empty segment gives its identity.
    longest : int, optional
        The length of the longest segment, if it is known: if lengths are alike, one kernel does without parts.
    """
    types, index = (name_of(source.dtype), name_of(target.dtype)), name_of(segment_ptr.dtype)
    if chain.device.lanes_are_loops:
        steps = _make_chunked(chain.device, work_group, *types, index, ("sum", "add"), True, operation)
        _enqueue_chunks(chain, steps, segment_ptr, n_segments, source, n, target)
        return
    # A segment is summed by as many lanes as the mean segment has entries.
    lanes = min(1 << max(n // n_segments, 1).bit_length() - 1, chain.device.portability.lane_width)
    uncut = longest is not None and longest <= lanes * Thresholds.of(chain.device).few_rounds
    built, sums = chain.build(_legal_sums(chain.device, *types, index, uncut, work_group, operation=operation))
    if uncut:
        lanes = min(lanes, sums.lanes)
        per_group = sums.work_group // lanes * sums.unroll
        sizes = np.uint64(n_segments), np.uint64(per_group), np.uint32(lanes)
        chain.launch(built, -(-n_segments // per_group), *sizes, segment_ptr, source, target)
        return
    n_parts = -(-(n + n_segments) // sums.step)
    adding = chain.build(_of_partials(chain.device, sums))[0]
    cuts, partial = chain.scratch(n_parts + 1, np.uint64), chain.scratch(n_parts, sums.total)
    chain.launch(built, n_parts, np.uint64(n_segments), np.uint64(n), segment_ptr, source, cuts, partial, target)
    if n_parts > 1:
        chain.launch(adding, n_parts, cuts, partial, target)


def enqueue_segmented_scan(
    chain: Chain,
    segment_ptr: cl_array.Array,
    source: cl_array.Array,
    target: cl_array.Array,
    n_segments: int,
    n: int,
    inclusive: bool,
    work_group: int | None = None,
) -> None:
    """Enqueue the scan (prefix sums) of the values of each segment.

    Parameters
    ----------
    chain, segment_ptr, source, n_segments, n, work_group
        Parameters of `enqueue_segmented_sum`.
    target : pyopencl.array.Array
        The array of ``n`` sums; may be ``source``.
    inclusive : bool
        Whether an entry is part of its own sum.
    """
    types, index = (name_of(source.dtype), name_of(target.dtype)), name_of(segment_ptr.dtype)
    if chain.device.lanes_are_loops:
        steps = _make_chunked(chain.device, work_group, *types, index, ("tails", "scan"), inclusive)
        _enqueue_chunks(chain, steps, segment_ptr, n_segments, source, n, target)
        return
    built, tiles = chain.build(SegmentedTiles.legal(chain.device, *types, index, inclusive, work_group))
    n_parts, cuts = _enqueue_cuts(chain, tiles, segment_ptr, n_segments, n)
    partial = chain.scratch(n_parts, tiles.total)
    if n_parts > 1:
        tails, _ = chain.build(SegmentedTails(tiles.work_group, *types, tiles.portability, index))
        chain.launch(tails, n_parts - 1, np.uint64(tiles.tile), segment_ptr, cuts, source, partial)
        # The sums of parts are scanned by key: over consecutive parts in which no other segment begins.
        carries = legal_tiles(chain.device, tiles.total, tiles.total, True, tiles.work_group, by_key=True)
        enqueue_tiles(chain, carries, partial, partial, n_parts, n_parts, (cuts,))
    else:
        chain.fill(partial, 0, 1)
    chain.launch(built, n_parts, np.uint64(n_segments), np.uint64(n), segment_ptr, cuts, source, partial, target)


def _enqueue_cuts(
    chain: Chain, tiles: SegmentedTiles, segment_ptr: cl_array.Array, n_segments: int, n: int
) -> tuple[int, cl_array.Array]:
    """Enqueue the cutting of segments into parts of equal weight; return the number of parts, and the parts' first segments."""
    n_parts = -(-(n + n_segments) // tiles.tile)
    cuts = chain.scratch(n_parts + 1, np.uint64)
    built, record = chain.build(CutSegments(tiles.work_group, tiles.index))
    sizes = (np.uint64(size) for size in (n_segments, n, n_parts, tiles.tile))
    chain.launch(built, -(-(n_parts + 1) // record.work_group), *sizes, segment_ptr, cuts)
    return n_parts, cuts


def _enqueue_chunks(
    chain: Chain,
    steps: tuple[SegmentedChunks, SegmentedChunks],
    segment_ptr: cl_array.Array,
    n_segments: int,
    source: cl_array.Array,
    n: int,
    target: cl_array.Array,
) -> None:
    """Enqueue the two kernels of a segmented sum or scan on CPU devices, which cut segments into a few long parts."""
    n_parts = count_chunks(chain.device, n_segments + n)
    cuts, partial = chain.scratch(n_parts, np.uint64), chain.scratch(n_parts, steps[0].total)
    sizes = tuple(np.uint64(size) for size in (n_segments, n, n_parts))
    for step in steps:
        built, record = chain.build(step)
        chain.launch(built, -(-n_parts // record.work_group), *sizes, segment_ptr, source, cuts, partial, target)


@door()
def segmented_sum(segment_ptr: cl_array.Array, values: cl_array.Array, *, out: cl_array.Array | None = None) -> cl_array.Array:
    """Return the sums of the segments of an array.

    Every work-item has the same number of entries, whatever segments they belong to (Blelloch, Heroux and Zagha, "Segmented
    operations for sparse matrix computation on vector multiprocessors", 1993).

    Parameters
    ----------
    segment_ptr : pyopencl.array.Array
        Where each of p segments begins in ``values``: p + 1 entries of int32 or int64, the first 0, never decreasing, the last
        the length of ``values``. Segments may be empty.
    values : pyopencl.array.Array
        One-dimensional, of any supported dtype.
    out : pyopencl.array.Array, optional
        Where the result goes. By default a new array.

    Returns
    -------
    pyopencl.array.Array
        p sums of the dtype of ``values``, in which they are made; of int64 where that is bool. 0 for an empty segment. The device
        may still be writing it.

    Raises
    ------
    TypeError, ValueError
        An argument is no such array, or the pointers are no such pointers; the message names the argument.

    Notes
    -----
    Waits for the check of the pointers: one kernel, one read. The order of the additions depends on the pointers alone, so
    results are bitwise the same at each call on a device.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> values, pointers = (cl_array.to_device(sp.default_queue(), np.array(each, np.int32)) for each in ([1, 2, 3], [0, 2, 3]))
    >>> sp.primitives.segmented_sum(pointers, values).get().tolist()
    [3, 3]
    """
    queue = arguments.find_queue(segment_ptr=segment_ptr, values=values)
    pointers = arguments.prepare_pointers(queue, "segment_ptr", segment_ptr)
    entries = arguments.prepare_values(queue, "values", values, added=True)
    chain, n_segments = arguments.start_chain(queue, pointers, entries, outs=(out,)), pointers.size - 1
    result = arguments.prepare_output(chain, "out", out, n_segments, sum_dtype(values.dtype), entries, pointers)
    arguments.check_pointers(chain, "segment_ptr", pointers, entries.size)
    if n_segments:
        run(chain, enqueue_segmented_sum, (pointers, entries, result.array), n_segments, entries.size)
    return result.deliver(chain)


@door()
def segmented_scan(
    segment_ptr: cl_array.Array, values: cl_array.Array, *, exclusive: bool = False, out: cl_array.Array | None = None
) -> cl_array.Array:
    """Return the scan of the segments of an array: for each entry, the sum of its segment's entries up to it.

    Every work-item has the same number of entries, whatever segments they belong to, as in `segmented_sum`.

    Parameters
    ----------
    segment_ptr, values : pyopencl.array.Array
        As for `segmented_sum`.
    exclusive : bool
        Whether sums leave the entry itself out: then they are 0 where a segment begins.
    out : pyopencl.array.Array, optional
        Where the result goes; may be ``values``. By default a new array.

    Returns
    -------
    pyopencl.array.Array
        As many sums as ``values`` has entries, in the dtypes of `segmented_sum`. The device may still be writing it.

    Raises
    ------
    TypeError, ValueError
        As for `segmented_sum`.

    Notes
    -----
    Waits, and is deterministic, as `segmented_sum`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> values, pointers = (cl_array.to_device(sp.default_queue(), np.array(each, np.int32)) for each in ([1, 2, 3], [0, 2, 3]))
    >>> sp.primitives.segmented_scan(pointers, values).get().tolist()
    [1, 3, 3]
    """
    queue = arguments.find_queue(segment_ptr=segment_ptr, values=values)
    pointers = arguments.prepare_pointers(queue, "segment_ptr", segment_ptr)
    entries = arguments.prepare_values(queue, "values", values, added=True)
    chain, n, dtype = arguments.start_chain(queue, pointers, entries, outs=(out,)), entries.size, sum_dtype(values.dtype)
    result = arguments.prepare_output(chain, "out", out, n, dtype, entries, pointers, in_place=entries)
    arguments.check_pointers(chain, "segment_ptr", pointers, n)
    if n:
        run(chain, enqueue_segmented_scan, (pointers, entries, result.array), pointers.size - 1, n, not exclusive)
    return result.deliver(chain)
