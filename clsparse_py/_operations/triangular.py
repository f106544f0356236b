"""Triangular systems by level sets, and incomplete factors by fixed-point sweeps; `clsparse_py.linalg` has both for users.

A wide level has a launch of its own, a run of narrow levels shares one. A sweep computes all entries of the factors at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._build.plain import door
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import OfNumbers, OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["Factor", "LevelSets", "Levels", "Solve", "get_level_sets", "make_solver", "sweep_factors"]

#: Work-items in a work-group of the kernels for triangular systems on devices other than CPUs.
_WORK_GROUP = 256
#: Rows of a level set (solved at once) to a GPU's work-item, above which a triangular solve gives the level its own launch.
_WIDE = 8
#: Rows of a level set (solved at once) on CPU devices, above which a triangular solve gives the level a launch of its own.
_WIDE_ON_CPU = 4096
#: Most work-groups to a compute unit of a launch that solves rows of a triangular system.
_SOLVE_GROUPS = 8
#: Most work-groups to a compute unit of a sweep over the entries of incomplete factors.
_SWEEP_GROUPS = 16


@kernel
@dataclass(frozen=True)
class Levels(OfStructure):
    """Parameters of ``templates/triangular/levels.mako``.

    Attributes
    ----------
    upper : bool
        Whether the matrix is upper triangular.
    """

    template = "triangular/levels"
    variants: ClassVar[Variants] = {"": {"upper": False}, "upper": {"upper": True}}

    upper: bool


@kernel
@dataclass(frozen=True)
class Solve(OfNumbers):
    """Parameters of ``templates/triangular/solve.mako``.

    Attributes
    ----------
    upper, unit : bool
        Whether the matrix is upper triangular, and whether its diagonal is 1, whatever is stored.
    """

    template = "triangular/solve"
    variants: ClassVar[Variants] = {"": {"upper": False, "unit": False}, "unit": {"upper": True, "unit": True}}

    upper: bool
    unit: bool


@kernel
@dataclass(frozen=True)
class Factor(OfNumbers):
    """Parameters of ``templates/triangular/factor.mako``.

    Attributes
    ----------
    hermitian : bool
        True: the factor of IC; False: the factors of ILU.
    """

    template = "triangular/factor"
    variants: ClassVar[Variants] = {"": {"hermitian": False}, "hermitian": {"hermitian": True}}

    hermitian: bool


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


@door()
def make_solver(
    queue: cl.CommandQueue, A: Matrix, *, upper: bool, unit: bool
) -> Callable[[cl_array.Array, cl_array.Array], None]:
    """Return a function that enqueues ``x = T^-1 b``, T triangular, for b and x of n entries, or of n x columns, row by row.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        It has the triangle T, in the dtype of b and x; entries on the other side of the diagonal are passed over. In any format.
    upper, unit : bool
        Whether T is upper triangular, and whether its diagonal is 1, whatever is stored.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    sets, chain = get_level_sets(A, upper), Chain(queue)
    parts = A.indptr, A.indices, A.data
    for part in parts:
        # The host waits for the arrays of A once, as each solution of a triangular system would wait again.
        for event in part.events:
            event.wait()
    built, record = chain.build(Solve(_work_group_of(chain.device), name_of(A.indptr.dtype), A.dtype.name, upper, unit))
    n, max_groups = A.shape[0], chain.device.compute_units * _SOLVE_GROUPS

    def solve(b: cl_array.Array, x: cl_array.Array) -> None:
        """Enqueue ``x = T^-1 b`` for the triangular T, level by level."""
        columns, launches = b.size // n, Chain(queue)
        for first, last, widest in sets.launches:
            groups = 1 if last - first > 1 else min(-(-widest * columns // record.work_group), max_groups)
            numbers = np.uint32(first), np.uint32(last), np.uint64(columns)
            launches.launch(built, groups, *numbers, sets.starts, sets.order, *parts, b, x)

    return solve


def get_level_sets(A: Matrix, upper: bool) -> LevelSets:
    """Return the level sets of a triangular A, which its structure keeps; they are found at the first call, with one read."""
    queue, indices, indptr = A.queue, A.indices, A.indptr
    return A.structure.get_plan((LevelSets, upper), lambda: _find_level_sets(queue, indices, indptr, upper))


def _find_level_sets(queue: cl.CommandQueue, indices: cl_array.Array, indptr: cl_array.Array, upper: bool) -> LevelSets:
    """Return the level sets (rows solved at once) of a triangular matrix; waits to read the level of each row."""
    chain, index, n = Chain(queue, indices, indptr), indptr.dtype, indptr.size - 1
    work_group = _work_group_of(chain.device)
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


def sweep_factors(queue: cl.CommandQueue, A: Matrix, start: cl_array.Array, sweeps: int, *, hermitian: bool) -> cl_array.Array:
    """Return the values of incomplete factors (ILU or IC) after some sweeps, in the pattern of A.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        Canonical, with a diagonal without zeros; if ``hermitian``, the lower triangle of the matrix.
    start : pyopencl.array.Array
        First guesses of the values, which are overwritten; of A's dtype.
    sweeps : int
        Number of sweeps over the entries.
    hermitian : bool
        Whether the factor is that of IC; else the factors are those of ILU.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain, n = Chain(queue, A.data, A.indices, A.indptr, start), A.shape[0]
    index = A.indptr.dtype
    built, record = chain.build(Factor(_work_group_of(chain.device), name_of(index), A.dtype.name, hermitian))
    groups = min(-(-n // record.work_group), chain.device.compute_units * _SWEEP_GROUPS)
    current, following = start, allocate(queue, "factors", max(start.size, 1), start.dtype)
    for _ in range(sweeps):
        chain.launch(built, groups, index.type(n), A.indptr, A.indices, A.data, current, following)
        current, following = following, current
    chain.finish(current)
    return current


def _work_group_of(device: Device) -> int:
    """Return the work-group size of kernels for triangular systems: 1 on CPU devices, where a work-item is a core's loop."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1
