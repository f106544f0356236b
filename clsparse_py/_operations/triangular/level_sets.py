"""Level sets of a triangular matrix: rows that do not depend on each other; and the launches that solve the level sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.choose import Thresholds
from clsparse_py._operations.triangular.kernels import Levels, State, SyncFreeLevels, unknown_of, work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device

__all__ = ["LevelSets", "get_level_sets"]

#: Most rows of a level set (rows solved at once), per work-item of a work-group, for which a GPU's triangular solve gives the
#: level set no launch of its own.
_WIDE = 8
#: Most rows of a level set (rows solved at once) for which a CPU's triangular solve gives the level set no launch of its own.
_WIDE_ON_CPU = 4096


@dataclass(frozen=True)
class LevelSets:
    """The level sets of a triangular matrix, rows that are solved at the same time; the matrix's structure keeps the sets.

    Attributes
    ----------
    order : pyopencl.array.Array
        Rows by level.
    starts : pyopencl.array.Array
        The first place of each level in ``order``, and the number of rows.
    launches : list of (int, int, int)
        The first level of a launch, the level behind its last, and the rows of the widest.
    """

    order: cl_array.Array
    starts: cl_array.Array
    launches: list[tuple[int, int, int]]

    @property
    def count(self) -> int:
        """The number of level sets."""
        return int(self.starts.size) - 1

    def schedule(self, work_group: int, columns: int, max_groups: int) -> Iterator[tuple[int, np.uint32, np.uint32]]:
        """Yield each launch's work-groups, its first level set and the one after its last, for ``columns`` right-hand sides."""
        for first, last, widest in self.launches:
            groups = 1 if last - first > 1 else min(-(-widest * columns // work_group), max_groups)
            yield groups, np.uint32(first), np.uint32(last)


def get_level_sets(structure: Structure, upper: bool) -> LevelSets:
    """Return the level sets of a triangular structure, which keeps them; the first call finds them, and waits for the device."""
    queue, indices, indptr = structure.queue, structure.indices, structure.indptr
    return structure.get_plan((LevelSets, upper), lambda: _find_level_sets(queue, indices, indptr, upper))


def _enqueue_levels(chain: Chain, indices: cl_array.Array, indptr: cl_array.Array, upper: bool) -> cl_array.Array:
    """Enqueue the search for the level of each row of a triangular matrix, and return the levels, of the index type."""
    device, index, n = chain.device, indptr.dtype, indptr.size - 1
    levels, name, work_group = chain.scratch(n, np.int32), name_of(index), work_group_of(device)
    if device.lanes_are_loops or not device.forward_progress:
        built, _ = chain.build(Levels(min(work_group, 64), name, upper))
        chain.launch(built, 1, index.type(n), indptr, indices, levels)
        return levels
    state = chain.scratch(len(State._fields), np.int32)
    chain.fill(state, 0, len(State._fields))
    chain.fill(levels, unknown_of(levels.dtype), n)
    max_polls = np.uint32(Thresholds.of(device).max_polls)
    for finish in (False, True):
        built, record = chain.build(SyncFreeLevels(work_group, name, upper, finish))
        groups = 1 if finish else -(-n // record.work_group)
        chain.launch(built, groups, index.type(n), np.uint64(1), max_polls, indptr, indices, levels, state)
    return levels


def _find_level_sets(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, upper: bool) -> LevelSets:
    """Return the level sets (rows solved at once) of a triangular matrix; waits to read the level of each row."""
    chain, n = Chain(queue, indices, indptr), indptr.size - 1
    levels = _enqueue_levels(chain, indices, indptr, upper)
    lengths = np.bincount(chain.read(levels, n))
    device = chain.device
    max_narrow = _WIDE_ON_CPU if device.lanes_are_loops else _WIDE * work_group_of(device)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    # A new launch of a triangular solve begins before and behind each wide level set (one of many rows).
    is_wide = lengths > max_narrow
    begins = np.flatnonzero(np.r_[True, is_wide[1:] | is_wide[:-1], True])
    launches = [(int(first), int(last), int(lengths[first:last].max())) for first, last in itertools.pairwise(begins)]
    order = allocate(queue, "rows by level", n, np.dtype(np.int32))
    enqueue_sort_by_key(chain, levels, n, lengths.size, n_items=n, sorted_items=order)
    chain.finish(order)
    level_sets = LevelSets(order, copy_to_device(queue, "levels", starts), launches)
    queue.finish()  # solutions on other queues read the level sets
    return level_sets
