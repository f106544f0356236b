"""Level sets of a triangular matrix: rows that do not depend on each other; and the launches that solve the level sets."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.choose import Thresholds, work_group_of_tasks
from clsparse_py._operations.triangular.kernels import GROUPS, Levels, LevelsState, RowKeys, SyncFreeLevels, work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device

__all__ = ["LevelSets", "get_level_sets"]

_log = logging.getLogger(__name__)

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
        Rows by level; of supernodes their first rows, and then the others.
    starts : pyopencl.array.Array
        The first place of each level in ``order``, and ``rows``.
    rows : int
        The number of rows or supernodes.
    launches : list of (int, int, int)
        The first level of a launch, the level behind its last, and the rows of the widest.
    shift_starts : numpy.ndarray, shape (levels, shifts)
        Rows of a level are in the order of the logarithm to base 2 of the number of work-items that share a row: the first place
        in ``order`` of those of each.
    """

    order: cl_array.Array
    starts: cl_array.Array
    rows: int
    launches: list[tuple[int, int, int]]
    shift_starts: npt.NDArray[Any]

    @property
    def count(self) -> int:
        """The number of level sets."""
        return int(self.starts.size) - 1

    def schedule(self, work_group: int, columns: int, max_groups: int) -> Iterator[tuple[int, np.uint32, np.uint32]]:
        """Yield each launch's work-groups, its first level set and the one after its last, for ``columns`` right-hand sides."""
        for first, last, widest in self.launches:
            groups = 1 if last - first > 1 else min(-(-widest * columns // work_group), max_groups)
            yield groups, np.uint32(first), np.uint32(last)


def get_level_sets(structure: Structure, upper: bool, supernodes: cl_array.Array | None = None) -> LevelSets:
    """Return the level sets of a triangular structure, which keeps them; the first call finds them, and waits for the device.

    With ``supernodes`` (see `Triangle`), they are sets of supernodes, each named by the row that is solved first.
    """
    queue, indices, indptr = structure.queue, structure.indices, structure.indptr
    key = LevelSets, upper, supernodes is not None
    return structure.get_plan(key, lambda: _find_level_sets(queue, indices, indptr, supernodes, upper))


def _find_levels(
    chain: Chain, indices: cl_array.Array, indptr: cl_array.Array, supernodes: cl_array.Array | None, upper: bool
) -> tuple[cl_array.Array, int]:
    """Return the level of each row of a triangular matrix, int32, and the highest level; waits for the device."""
    device, index, n = chain.device, indptr.dtype, indptr.size - 1
    levels, state = chain.scratch(n, np.int32), chain.scratch(len(LevelsState._fields), np.int32)
    fields = name_of(index), upper, supernodes is not None
    structure = (indptr, indices) if supernodes is None else (indptr, indices, supernodes)
    if device.forward_progress and not device.lanes_are_loops:
        chain.fill(state, 0, state.size)
        chain.fill(levels, -1, n)
        built, record = chain.build(SyncFreeLevels(work_group_of(device), *fields))
        max_polls = np.uint32(Thresholds.of(device).max_polls)
        chain.launch(built, -(-n // record.work_group), index.type(n), max_polls, *structure, levels, state)
        found = LevelsState(*map(int, chain.read(state, state.size)))
        if not found.starved:
            return levels, found.highest
        _log.warning("triangular systems: a launch that looks for levels gave up waiting; one work-group looks for them")
    chain.fill(state, 0, state.size)
    built, _ = chain.build(Levels(min(work_group_of(device), 64), *fields))
    chain.launch(built, 1, index.type(n), *structure, levels, state)
    return levels, LevelsState(*map(int, chain.read(state, state.size))).highest


def _find_level_sets(
    queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, supernodes: cl_array.Array | None, upper: bool
) -> LevelSets:
    """Return the level sets (rows or supernodes solved at once) of a triangular matrix; waits to read where each begins."""
    of_supernodes = () if supernodes is None else (supernodes,)
    chain, n = Chain(queue, indices, indptr, *of_supernodes), indptr.size - 1
    device, index = chain.device, indptr.dtype
    limits = Thresholds.of(device)
    levels, highest = _find_levels(chain, indices, indptr, supernodes, upper)
    # Keys are numbers of 32 bits.
    shifts = min(work_group_of_tasks(device).bit_length(), (2**31 - 2) // max(n, 1))
    n_keys, keys = (highest + 1) * shifts, chain.scratch(n, np.int32)
    built, record = chain.build(RowKeys(work_group_of(device), name_of(index), supernodes is not None))
    groups = min(-(-n // record.work_group), device.compute_units * GROUPS)
    # An entry of a supernode has a value in each of its rows.
    per_lane = limits.entries_per_lane if supernodes is None else max(2 * limits.entries_per_lane // limits.supernode_rows, 1)
    numbers = index.type(n), np.int32(shifts - 1), np.int64(per_lane), np.int32(n_keys)
    chain.launch(built, groups, *numbers, indptr, *of_supernodes, levels, keys)
    order, pointers = allocate(queue, "rows by level", n, np.dtype(np.int32)), chain.scratch(n_keys + 2, np.int32)
    enqueue_sort_by_key(chain, keys, n, n_keys + 1, n_items=n, sorted_items=order, pointers=pointers)
    starts = chain.read(pointers, n_keys + 1)
    shift_starts, starts = starts[:-1].reshape(-1, shifts), starts[::shifts]
    lengths = np.diff(starts)
    max_narrow = _WIDE_ON_CPU if device.lanes_are_loops else _WIDE * work_group_of(device)
    # A new launch of a triangular solve begins before and behind each wide level set (one of many rows).
    is_wide = lengths > max_narrow
    begins = np.flatnonzero(np.r_[True, is_wide[1:] | is_wide[:-1], True])
    launches = [(int(first), int(last), int(lengths[first:last].max())) for first, last in itertools.pairwise(begins)]
    chain.finish(order)
    on_device = copy_to_device(queue, "levels", np.ascontiguousarray(starts))
    level_sets = LevelSets(order, on_device, int(starts[-1]), launches, shift_starts)
    queue.finish()  # solutions on other queues read the level sets
    return level_sets
