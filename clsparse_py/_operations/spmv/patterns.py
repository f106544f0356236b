"""Row patterns: the distances of rows' entries to the diagonal, which stand for A's columns where few rows differ in them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.spmv.features import Inspected
from clsparse_py._operations.spmv.kernels import FindPatterns
from clsparse_py._run.launch import Chain

__all__ = ["RowPatterns", "find_patterns"]


@dataclass(frozen=True)
class RowPatterns:
    """The patterns of a matrix's rows, as ``templates/spmv/find_patterns.mako`` describes them.

    Attributes
    ----------
    width : int
        Number of offsets for which each pattern has room: the length of A's longest row.
    numbers : pyopencl.array.Array, uint8
        The number of each row's pattern.
    lengths : pyopencl.array.Array, uint8
        The number of entries of each pattern.
    offsets : pyopencl.array.Array
        The differences of column and row of each pattern, ``width`` places to a pattern.
    """

    width: int
    numbers: cl_array.Array
    lengths: cl_array.Array
    offsets: cl_array.Array


def find_patterns(inspected: Inspected) -> Generator[cl.Event, None, RowPatterns | None]:
    """Find the patterns of A's rows; yield the event to await, and return the patterns, or None if A has too many.

    A has at most 2^32 - 2 rows, of at most 255 entries each, and an entry.
    """
    queue, n_rows, width = inspected.queue, inspected.features.n_rows, inspected.features.longest
    n_patterns, index = FindPatterns.MAX_PATTERNS, inspected.indices.dtype
    chain = Chain(queue, inspected.indptr, inspected.indices)
    group = 1 if inspected.device.lanes_are_loops else min(256, inspected.device.max_work_group)
    kernel, _ = chain.build(FindPatterns(group, index.name))
    numbers = allocate(queue, "patterns of rows", n_rows, np.dtype(np.uint8))
    lengths = allocate(queue, "lengths of patterns", n_patterns, np.dtype(np.uint8))
    offsets = allocate(queue, "offsets of patterns", n_patterns * width, index)
    slots = chain.scratch(n_patterns + 1, np.uint32)
    chain.fill(slots, 0, n_patterns + 1)
    chain.launch_spread(kernel, n_rows, np.uint32(width), inspected.indptr, inspected.indices, numbers, lengths, offsets, slots)
    chain.finish(numbers, lengths, offsets)
    read_full = chain.read_later(slots, 1, n_patterns)
    yield chain.events[-1]
    return None if read_full()[0] else RowPatterns(width, numbers, lengths, offsets)
