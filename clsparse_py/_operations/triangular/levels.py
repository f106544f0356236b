"""Level sets of a triangular matrix, kept with its structure."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["LevelSets", "Levels", "get_levels", "work_group_of"]

#: Work-items in a work-group on devices other than CPUs.
_WORK_GROUP = 256
#: Rows to a work-item of a GPU above which a level has a launch of its own; narrower ones share one.
_WIDE = 8
#: Rows of a level on CPU devices above which it has a launch of its own.
_WIDE_ON_CPU = 4096


def work_group_of(device: Device) -> int:
    """Return how many work-items a work-group has: one on CPU devices, where it is a core's loop."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1


@kernel
@dataclass(frozen=True)
class Levels(OfStructure):
    """Parameters of ``templates/triangular/levels.mako``.

    Attributes
    ----------
    upper : bool
    """

    template = "triangular/levels"
    variants: ClassVar[Variants] = {"": {"upper": False}, "upper": {"upper": True}}

    upper: bool


@dataclass(frozen=True)
class LevelSets:
    """Rows by level, and launches: of which levels, and how many rows the widest one has."""

    order: cl_array.Array
    starts: cl_array.Array
    launches: list[tuple[int, int, int]]


def _levels(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, upper: bool) -> cl_array.Array:
    """Return the level of each row."""
    chain, index = Chain(queue, indices, indptr), indptr.dtype
    group = min(work_group_of(chain.device), 64)
    built, _ = chain.build(Levels(group, name_of(index), upper))
    levels = allocate(queue, "levels", indptr.size - 1, np.dtype(np.int32))
    chain.launch(built, 1, index.type(indptr.size - 1), indptr, indices, levels)
    chain.finish(levels)
    return levels


def get_levels(A: Matrix, upper: bool) -> LevelSets:
    """Return the level sets that a matrix's structure keeps; analysed at the first call, with one read."""
    queue, indices, indptr = A.queue, A.indices, A.indptr
    return A.structure.get_plan((LevelSets, upper), lambda: _sets(queue, indices, indptr, upper))


def _sets(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, upper: bool) -> LevelSets:
    """Return the level sets of a triangular matrix; waits for the device."""
    levels = copy_to_host(_levels(queue, indices, indptr, upper), queue)
    device = Chain(queue).device
    wide = _WIDE_ON_CPU if device.lanes_are_loops else _WIDE * work_group_of(device)
    counts = np.bincount(levels)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    # A cut before and behind each wide level.
    is_wide = counts > wide
    cuts = np.flatnonzero(np.r_[True, is_wide[1:] | is_wide[:-1], True])
    launches = [(int(a), int(b), int(counts[a:b].max())) for a, b in itertools.pairwise(cuts)]
    order = copy_to_device(queue, "rows by level", np.argsort(levels, kind="stable").astype(np.int32))
    level_sets = LevelSets(order, copy_to_device(queue, "levels", starts), launches)
    queue.finish()  # solutions on other queues read them
    return level_sets
