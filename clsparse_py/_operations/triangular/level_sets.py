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
from clsparse_py._operations.triangular.kernels import Levels, work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

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


def _find_level_sets(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, upper: bool) -> LevelSets:
    """Return the level sets (rows solved at once) of a triangular matrix; waits to read the level of each row."""
    chain, index, n = Chain(queue, indices, indptr), indptr.dtype, indptr.size - 1
    work_group = work_group_of(chain.device)
    built, _ = chain.build(Levels(min(work_group, 64), name_of(index), upper))
    levels_on_device = allocate(queue, "levels", n, np.dtype(np.int32))
    chain.launch(built, 1, index.type(n), indptr, indices, levels_on_device)
    chain.finish(levels_on_device)
    levels = copy_to_host(levels_on_device, queue)
    max_narrow = _WIDE_ON_CPU if chain.device.lanes_are_loops else _WIDE * work_group
    lengths = np.bincount(levels)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    # A new launch of a triangular solve begins before and behind each wide level set (one of many rows).
    is_wide = lengths > max_narrow
    begins = np.flatnonzero(np.r_[True, is_wide[1:] | is_wide[:-1], True])
    launches = [(int(first), int(last), int(lengths[first:last].max())) for first, last in itertools.pairwise(begins)]
    order = copy_to_device(queue, "rows by level", np.argsort(levels, kind="stable").astype(np.int32))
    level_sets = LevelSets(order, copy_to_device(queue, "levels", starts), launches)
    queue.finish()  # solutions on other queues read the level sets
    return level_sets
