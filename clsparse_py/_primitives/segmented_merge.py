"""Segmented merge: the sorted sub-segments of each segment of an array of keys become one, with values or without.

Ji et al., "Segmented merge: a new primitive for parallel sparse matrix computations", with its three algorithms: serial
(Section 3.2), simple (Algorithm 1) and balanced (Algorithm 2). Sub-segments are called runs in the kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Examples, kernels
from clsparse_py._build.plain import door
from clsparse_py._device.device import Device
from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._primitives import arguments
from clsparse_py._primitives.merge_rounds import Arrays, MergeChunks, MergeSplits, MergeTiles, allocate_spare
from clsparse_py._primitives.segment_classes import SegmentClasses, SegmentTiles, Totals, inspect_segments
from clsparse_py._primitives.segmented_sort import MergeSerial, SortNetwork, enqueue_by_length, enqueue_serial
from clsparse_py._primitives.segments import NEVER, Elements, OfElements, Runs, Segments, Shape
from clsparse_py._run.launch import Chain

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Pair

__all__ = ["ALGORITHMS", "SORT_ROUNDS", "Algorithm", "MergePairs", "MergeUnsorted", "enqueue_segmented_merge", "segmented_merge"]

#: Names of the algorithms of segmented merge.
Algorithm = Literal["serial", "simple", "balanced"]
#: The algorithms of segmented merge, in the order of the paper that describes segmented merge.
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)

#: Merge rounds that sorting tiles is worth, but not on CPUs: given runs that take more rounds than tiles by over this are sorted.
SORT_ROUNDS = 2


@dataclass(frozen=True)
class MergeUnsorted(OfElements):
    """Parameters of ``templates/primitives/merge_unsorted.mako``."""

    template = "primitives/merge_unsorted"


@dataclass(frozen=True)
class MergePairs(OfElements):
    """Parameters of ``templates/primitives/merge_pairs.mako``."""

    template = "primitives/merge_pairs"


@overload
def segmented_merge(
    segment_ptr: cl_array.Array,
    subsegment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: None = ...,
    *,
    algorithm: Algorithm = ...,
    check: bool = ...,
    out: cl_array.Array | None = ...,
) -> cl_array.Array: ...


@overload
def segmented_merge(
    segment_ptr: cl_array.Array,
    subsegment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: cl_array.Array,
    *,
    algorithm: Algorithm = ...,
    check: bool = ...,
    out: Pair | None = ...,
) -> Pair: ...


@door()
def segmented_merge(
    segment_ptr: cl_array.Array,
    subsegment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: cl_array.Array | None = None,
    *,
    algorithm: Algorithm = "balanced",
    check: bool = False,
    out: cl_array.Array | Pair | None = None,
) -> cl_array.Array | Pair:
    """Return keys after a merge of each segment's sorted sub-segments; with ``values``, which move with keys, (keys, values).

    Parameters
    ----------
    segment_ptr : pyopencl.array.Array
        The first sub-segment of each segment, and the number of sub-segments: shape (p + 1,), int32 or int64. Segments may be
        empty.
    subsegment_ptr : pyopencl.array.Array
        Where each sub-segment begins, and the end: shape (q + 1,), int32 or int64. Sub-segments may be empty.
    keys : pyopencl.array.Array
        Shape (n,); int32, uint32, int64 or uint64. Each sub-segment ascends.
    values : pyopencl.array.Array, optional
        Shape (n,); any supported dtype.
    algorithm : {"balanced", "simple", "serial"}
        "serial": a work-item merges all of a segment, bottom-up in a binary tree (Section 3.2). "simple": a work-item merges a
        pair of sub-segments, a launch to a round of the tree (Algorithm 1). "balanced": each work-item merges the same number of
        elements, which it finds by merge path (Algorithm 2); segments that fit into a work-group's registers, and pieces of
        others whose sub-segments are short, are sorted there in place of the first rounds.
    check : bool
        Whether to make sure that sub-segments are sorted. If they are not, the result is some order of each segment's elements.
    out : pyopencl.array.Array, or a tuple of two, optional
        Where the result goes: of the shape and dtype of ``keys``, with values a tuple (keys, values).

    Returns
    -------
    pyopencl.array.Array, or a tuple of two
        The keys of each segment in ascending order; with values, (keys, values). Equal keys keep the order of their sub-segments.

    Raises
    ------
    TypeError
        A dtype is not supported, or an argument is no device array.
    ValueError
        Pointers do not begin with 0, decrease, or do not end with the length of the array that they point into; ``values`` or
        ``out`` has another length; there is no such algorithm; with ``check``, a sub-segment is not sorted.

    Notes
    -----
    The host waits for the device once, to learn how many rounds there are, and not between rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> given = [2, 4, 1, 3], [0, 2], [0, 2, 4]
    >>> keys, pointers, sub_pointers = (cl_array.to_device(sp.default_queue(), np.array(each, np.int32)) for each in given)
    >>> sp.primitives.segmented_merge(pointers, sub_pointers, keys).get().tolist()
    [1, 2, 3, 4]
    """
    require_name("algorithm", algorithm, ALGORITHMS)
    outs = arguments.split_outputs(out, values is not None)
    queue = arguments.find_queue(segment_ptr=segment_ptr, subsegment_ptr=subsegment_ptr, keys=keys, values=values)
    chain = arguments.start_chain(queue, segment_ptr, subsegment_ptr, keys, values, outs=outs)
    pointers = _pointers(queue, segment_ptr, subsegment_ptr)
    n = keys.size
    x = arguments.prepare_elements(queue, keys, values)
    results = [
        arguments.prepare_output(chain, "out", to, n, part.dtype, *pointers, *x) for to, part in zip(outs, x, strict=False)
    ]
    enqueue_segmented_merge(chain, pointers, x, tuple(result.array for result in results), n, algorithm, check=check)
    return arguments.deliver(chain, results)


def _pointers(queue: cl.CommandQueue, *pair: cl_array.Array) -> tuple[cl_array.Array, ...]:
    """Return the two arrays of pointers, to sub-segments and to keys, contiguous and of one dtype: int64 if they differ."""
    pointers = [
        arguments.prepare_pointers(queue, name, array)
        for name, array in zip(("segment_ptr", "subsegment_ptr"), pair, strict=True)
    ]
    wide = np.dtype(np.int64)
    if pointers[0].dtype != pointers[1].dtype:
        return tuple(array if array.dtype == wide else convert(queue, "pointers", array, wide) for array in pointers)
    return tuple(pointers)


def enqueue_segmented_merge(
    chain: Chain,
    pointers: tuple[cl_array.Array, ...],
    x: Arrays,
    target: Arrays,
    n: int,
    algorithm: str = "balanced",
    *,
    check: bool = False,
    shape: Shape | None = None,
) -> None:
    """Enqueue the merge of the sorted sub-segments of each segment; the host waits for the device once.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    pointers : tuple of pyopencl.array.Array
        The first sub-segments of segments, and the first elements of sub-segments: of one dtype, unchecked.
    x, target : tuple of pyopencl.array.Array
        Keys, and values if there are any; the result. They share no memory.
    n : int
        Elements.
    algorithm : str
        One of `ALGORITHMS`.
    check : bool
        Whether to make sure that sub-segments are sorted.
    shape : Shape, optional
        The shape of the merge; by default the one that suits the device.

    Raises
    ------
    ValueError
        The pointers are not valid or, with ``check``, a sub-segment is not sorted.
    """
    elements = Elements.of(*x)
    legal = (shape or Shape.default(chain.device)).legal(chain.device, elements)
    runs = Runs(True, legal.tile, NEVER if legal.chunked else SORT_ROUNDS)
    n_segments, n_runs = (array.size - 1 for array in pointers)
    segments = Segments(chain.scratch(n_segments + 1, pointers[0].dtype), n_segments, pointers)
    falls = _count_falls(chain, pointers[1], x[0], n, runs, elements) if check else None

    def accept(totals: Totals) -> None:
        """Raise an error if pointers decrease or have wrong ends, or if keys, where checked, descend inside a sub-segment."""
        arguments.require_pointers("segment_ptr", totals.decreasing, *totals.segment_ptr, n_runs, "the number of sub-segments")
        arguments.require_pointers("subsegment_ptr", totals.runs_decrease, *totals.run_ptr, n, "the length of keys")
        fallen = 0 if falls is None else int(falls().sum())
        if fallen:
            raise ValueError(f"keys: must ascend in each sub-segment, {fallen} of {n} are below the one before them")

    if algorithm == "balanced":
        enqueue_by_length(chain, segments, n, x, target, runs, legal, accept=accept)
        return
    totals = inspect_segments(chain, segments, n, legal, runs).wait()
    accept(totals)
    if n and algorithm == "serial":
        enqueue_serial(chain, segments, n, x, target, runs, n, legal)
    elif n:
        _enqueue_pairs(chain, segments, n_runs, totals.max_rounds, n, x, target, runs)


def _count_falls(
    chain: Chain, run_ptr: cl_array.Array, keys: cl_array.Array, n: int, runs: Runs, elements: Elements
) -> Callable[[], np.ndarray[Any, Any]]:
    """Enqueue the count of keys below the preceding key of the same sub-segment; return a function that reads partial counts."""
    group, n_runs = min(128, chain.device.max_work_group), run_ptr.size - 1
    built, record = chain.build(MergeUnsorted(group, name_of(run_ptr.dtype), runs, elements))
    groups = max(1, min(-(-max(n, n_runs) // record.work_group), 8 * chain.device.compute_units))
    falls = chain.scratch(groups, np.int64)
    chain.launch(built, groups, np.int64(n), np.int64(n_runs), run_ptr, keys, falls)
    return functools.partial(chain.read, falls, groups)


def _enqueue_pairs(
    chain: Chain, segments: Segments, n_runs: int, max_rounds: int, n: int, x: Arrays, target: Arrays, runs: Runs
) -> None:
    """Enqueue the simple segmented merge (Algorithm 1): a launch for each round, in which a work-item merges two runs."""
    group, n_rounds = min(64, chain.device.max_work_group), max(max_rounds, 1)
    built, record = chain.build(MergePairs(group, segments.index, runs, Elements.of(*x)))
    spare = allocate_spare(chain, n, x) if n_rounds > 1 else x
    counts = np.uint64(n_runs), np.int64(segments.n)
    for n_done in range(n_rounds):
        to, origin = (target, spare) if (n_rounds - n_done) % 2 else (spare, target)
        rounds = np.uint32(n_done), np.uint32(n_rounds)
        chain.launch(built, -(-n_runs // record.work_group), *rounds, *counts, *segments.given, *x, *origin, *to)


@kernels
def _examples(device: Device, arithmetic: Arithmetic) -> Examples:
    """Yield example records of the kernels of segmented sort and merge, for keys and values of an arithmetic's types."""
    index, elements = arithmetic.index, Elements(arithmetic.index, arithmetic.result.itemsize)
    shape, group = Shape.lanes(256, 512, 16).legal(device, elements), min(64, device.max_work_group)
    own_runs, given_runs = Runs(False, shape.tile), Runs(True, shape.tile, SORT_ROUNDS)
    chunk = Runs(False, Shape.chunks(1).tile)
    chunks = replace(chunk, given=True, sort_rounds=NEVER)
    short, medium = SortNetwork.of_segments(device, shape, index, elements)
    tiles = SortNetwork.of_tiles(device, shape, index, elements, own_runs)
    for variant, network in (("", medium), ("short", short), ("tiles", tiles), ("given", replace(tiles, runs=given_runs))):
        yield variant, network
    bins = shape.bins, short.teams + medium.teams, len(short.bins)
    for variant, runs in (("", own_runs), ("given", given_runs)):
        classes = SegmentClasses(min(128, device.max_work_group), index, runs, "count", *bins)
        yield variant, classes
        yield f"{variant}_place".removeprefix("_"), replace(classes, step="place")
        yield variant, SegmentTiles(group, index, runs)
        yield variant, MergeSplits(group, index, runs, elements)
        yield variant, MergeTiles.legal(device, index, runs, elements, shape.merge_group)
    serial = MergeSerial(1, index, chunk, elements, "segments", False)
    yield "", serial
    yield "tiles", replace(serial, ranges="tiles")
    yield "given", replace(serial, runs=chunks, given_runs=True)
    yield "", MergeChunks(1, index, chunk, elements)
    yield "given", MergeChunks(1, index, chunks, elements)
    yield "", MergePairs(group, index, given_runs, elements)
    yield "", MergeUnsorted(min(128, device.max_work_group), index, given_runs, elements)
