"""Segmented merge: the sorted sub-segments of each segment of an array of keys become one, with values or without.

Ji et al., "Segmented merge: a new primitive for parallel sparse matrix computations", with its three algorithms: serial
(Section 3.2), simple (Algorithm 1) and balanced (Algorithm 2). Sub-segments are called runs in the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.convert import converted
from clsparse_py.launch import Chain
from clsparse_py.primitives import arguments
from clsparse_py.primitives.merge_rounds import Arrays, spare_for
from clsparse_py.primitives.segmented_sort import enqueue_by_length, enqueue_serial
from clsparse_py.primitives.segments import NEVER, Elements, OfElements, OfRuns, Runs, Segments, Shape, classify

__all__ = ["ALGORITHMS", "SORT_ROUNDS", "MergeBounds", "MergePairs", "MergeUnsorted", "SegmentedMerge", "segmented_merge"]

ALGORITHMS = ("serial", "simple", "balanced")

#: Rounds that sorting a tile is worth. On CPU devices a round costs about as much in a core's cache, so that nothing is sorted.
SORT_ROUNDS = 1
# What `merge_bounds` tells of each work-group.
_FOUND = 7


@dataclass(frozen=True)
class MergeBounds(OfRuns):
    """Parameters of ``templates/primitives/merge_bounds.mako``."""

    template = "primitives/merge_bounds"


@dataclass(frozen=True)
class MergeUnsorted(OfElements):
    """Parameters of ``templates/primitives/merge_unsorted.mako``."""

    template = "primitives/merge_unsorted"


@dataclass(frozen=True)
class MergePairs(OfElements):
    """Parameters of ``templates/primitives/merge_pairs.mako``."""

    template = "primitives/merge_pairs"


def segmented_merge(
    segment_ptr: cl_array.Array,
    subsegment_ptr: cl_array.Array,
    keys: cl_array.Array,
    values: cl_array.Array | None = None,
    *,
    algorithm: str = "balanced",
    check: bool = False,
    out: Any = None,
) -> Any:
    """Merge the sorted sub-segments of each segment, and move values with the keys.

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
        Pointers do not begin with 0, decrease, or do not end with the length of what they point into; ``values`` or ``out`` has
        another length; there is no such algorithm; with ``check``, a sub-segment is not sorted.

    Notes
    -----
    The host waits for the device once, to learn how many rounds there are, and not between rounds.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm: must be one of {', '.join(ALGORITHMS)}, is {algorithm!r}")
    outs = arguments.pair_of_outputs(out, values is not None)
    queue = arguments.queue_of(segment_ptr=segment_ptr, subsegment_ptr=subsegment_ptr, keys=keys, values=values)
    chain = arguments.chain_of(queue, segment_ptr, subsegment_ptr, keys, values, *outs)
    given = _pointers(queue, segment_ptr, subsegment_ptr)
    n = keys.size
    x: Arrays = (arguments.keys(queue, "keys", keys),)
    if values is not None:
        x += (arguments.values(queue, "values", values, beside=("keys", n)),)
    results = [arguments.output(chain, "out", each, n, part.dtype, *given, *x) for each, part in zip(outs, x, strict=False)]
    merge = SegmentedMerge(chain, given, x, n, algorithm, check=check)
    merge.enqueue(tuple(result.array for result in results))
    delivered = tuple(result.deliver(chain) for result in results)
    return delivered if values is not None else delivered[0]


def _pointers(queue: cl.CommandQueue, *pair: cl_array.Array) -> tuple[cl_array.Array, ...]:
    """Return both arrays of pointers as kernels take them: of one dtype."""
    placed = [arguments.pointers(queue, name, each) for name, each in zip(("segment_ptr", "subsegment_ptr"), pair, strict=True)]
    wide = np.dtype(np.int64)
    if placed[0].dtype != placed[1].dtype:
        return tuple(each if each.dtype == wide else converted(queue, "pointers", each, wide) for each in placed)
    return tuple(placed)


class SegmentedMerge:
    """A segmented merge of some elements: made, it has been checked, having waited for the device; then it is enqueued.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    given : tuple of pyopencl.array.Array
        The first sub-segment of each segment, and where sub-segments begin; of one dtype, unchecked.
    x : tuple of pyopencl.array.Array
        Keys, and values where there are any.
    n : int
        Elements.
    algorithm : str
        One of `ALGORITHMS`.
    check : bool
        Whether to make sure that sub-segments are sorted.
    shape : Shape, optional
        If not the one that suits the device.

    Raises
    ------
    ValueError
        The pointers are not valid or, with ``check``, a sub-segment is not sorted.
    """

    def __init__(
        self,
        chain: Chain,
        given: tuple[cl_array.Array, ...],
        x: Arrays,
        n: int,
        algorithm: str = "balanced",
        *,
        check: bool = False,
        shape: Shape | None = None,
    ) -> None:
        self._chain, self._x, self._n, self._algorithm = chain, x, n, algorithm
        self._elements = Elements.of(*x)
        self._shape = (shape or Shape.default(chain.device)).legal(chain.device, self._elements)
        self._runs = Runs(True, self._shape.tile, NEVER if self._shape.chunked else SORT_ROUNDS)
        n_segments, self._n_runs = (each.size - 1 for each in given)
        self._segments = Segments(chain.scratch(n_segments + 1, given[0].dtype), n_segments, given)
        found, groups = self._inspect()
        falls = self._count_falls() if check else None
        # All kernels so far trust nothing: one wait for all that the host has to know.
        self._classes = classify(chain, self._segments, self._shape, self._runs) if algorithm == "balanced" else None
        self._n_rounds = self._checked(chain.read(found, _FOUND * groups).reshape(groups, _FOUND))
        if falls is not None:
            self._require_sorted(int(chain.read(falls, falls.size).sum()))

    def _inspect(self) -> tuple[cl_array.Array, int]:
        """Enqueue an inspection of the pointers, which makes the segments' bounds; return what it tells, of how many groups."""
        chain, segments = self._chain, self._segments
        built, record = chain.build(MergeBounds(min(128, chain.device.max_work_group), segments.index, self._runs))
        groups = self._groups(max(segments.n + 1, self._n_runs), record.work_group)
        found = chain.scratch(_FOUND * groups, np.int64)
        chain.launch(built, groups, np.int64(segments.n), np.int64(self._n_runs), *segments.given, segments.bounds, found)
        return found, groups

    def _count_falls(self) -> cl_array.Array:
        """Enqueue counting the keys that are below the one before them in their sub-segment."""
        chain, segments = self._chain, self._segments
        group = min(128, chain.device.max_work_group)
        built, record = chain.build(MergeUnsorted(group, segments.index, self._runs, self._elements))
        groups = self._groups(max(self._n, self._n_runs), record.work_group)
        falls = chain.scratch(groups, np.int64)
        chain.launch(built, groups, np.int64(self._n), np.int64(self._n_runs), segments.given[1], self._x[0], falls)
        return falls

    def _groups(self, n: int, work_group: int) -> int:
        return max(1, min(-(-n // work_group), 2 * self._chain.device.compute_units))

    def _checked(self, found: np.ndarray[Any, Any]) -> int:
        """Return the most rounds that a segment takes, where the pointers are valid."""
        segments_decrease, runs_decrease, _, first, last, first_run, last_run = found.sum(axis=0).tolist()
        arguments.require_pointers("segment_ptr", segments_decrease, first, last, self._n_runs, "the number of sub-segments")
        arguments.require_pointers("subsegment_ptr", runs_decrease, first_run, last_run, self._n, "the length of keys")
        return int(found[:, 2].max())

    def _require_sorted(self, falls: int) -> None:
        if falls:
            raise ValueError(f"keys: must ascend in each sub-segment, {falls} of {self._n} are below the one before them")

    def enqueue(self, target: Arrays) -> None:
        """Enqueue the merge, to arrays that share no memory with the elements."""
        if not self._n:
            return
        chain, segments, x, runs, shape = self._chain, self._segments, self._x, self._runs, self._shape
        if self._algorithm == "simple":
            self._enqueue_simple(target)
        elif self._algorithm == "serial":
            enqueue_serial(chain, segments, self._n, x, target, runs, self._n, shape)
        elif self._classes is not None:
            enqueue_by_length(chain, segments, self._classes, self._n, x, target, runs, shape)

    def _enqueue_simple(self, target: Arrays) -> None:
        """Enqueue Algorithm 1, a launch to a round."""
        chain, segments, n_rounds = self._chain, self._segments, max(self._n_rounds, 1)
        group = min(64, chain.device.max_work_group)
        built, record = chain.build(MergePairs(group, segments.index, self._runs, self._elements))
        spare = spare_for(chain, self._n, self._x) if n_rounds > 1 else self._x
        counts = np.uint64(self._n_runs), np.int64(segments.n)
        for done in range(n_rounds):
            to, of = (target, spare) if (n_rounds - done) % 2 else (spare, target)
            rounds = np.uint32(done), np.uint32(n_rounds)
            chain.launch(built, -(-self._n_runs // record.work_group), *rounds, *counts, *segments.given, *self._x, *of, *to)
