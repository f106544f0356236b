"""Solve a triangular system by the method of its structure: `serial`, `sync-free` or `levels`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._matrix.matrix import Structure
from clsparse_py._operations.triangular.choose import Thresholds, choose_method
from clsparse_py._operations.triangular.kernels import Ends, Solve, State, SyncFree, unknown_of, work_group_of
from clsparse_py._operations.triangular.level_sets import LevelSets, get_level_sets
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["RightSide", "Solver", "get_solver"]

#: Most work-groups to a compute unit of a launch that solves rows of a triangular system.
_SOLVE_GROUPS = 8
#: Number of adjacent right-hand sides (columns of b) that a work-item solves together by the method "serial".
_WIDTH = 8


class RightSide(NamedTuple):
    """Right-hand sides of a triangular system: `columns` of them in an array of any strides.

    Attributes
    ----------
    values : pyopencl.array.Array
    columns : int
    begin, row_step, column_step : int
        Entries from the beginning of the buffer to the first value, between rows, and between columns.
    """

    values: cl_array.Array
    columns: int = 1
    begin: int = 0
    row_step: int = 1
    column_step: int = 1


class Solver:
    """The launches that solve triangular systems of one structure and dtype, for any values and right-hand sides.

    Attributes
    ----------
    method : str
        "serial", "sync-free" or "levels".
    diagonal_at_end : bool
        Whether each row ends (upper: begins) with its diagonal entry, and has none beyond it.
    lanes : int
        Work-items that share a row.
    levels : LevelSets or None
        Of the method `levels`.
    """

    def __init__(
        self, queue: cl.CommandQueue, structure: Structure, dtype: np.dtype[Any], upper: bool, unit: bool, method: str
    ) -> None:
        chain = Chain(queue)
        self.method = method
        self.diagonal_at_end = structure.get_plan((Ends, upper), lambda: _ends_with_diagonal(queue, structure, upper))
        self.levels: LevelSets | None = get_level_sets(structure, upper) if method == "levels" else None
        self._fields = name_of(structure.indptr.dtype), dtype.name, upper, unit, self.diagonal_at_end
        self._indptr, self._indices = structure.indptr, structure.indices
        self._max_groups = chain.device.compute_units * _SOLVE_GROUPS
        self._max_polls = np.uint32(Thresholds.of(chain.device).max_polls)
        self._kernels: dict[int, Built] = {}
        self._waiting: list[Built] = []
        self.lanes = 1
        if method == "sync-free":
            self._waiting = self._build_sync_free(chain, structure, dtype)
        else:
            self._build(chain, 1)

    def _build(self, chain: Chain, width: int) -> Built:
        """Return the kernel of the method: "levels", or "serial" with ``width`` right-hand sides to a work-item."""
        built = self._kernels.get(width)
        if built is None:
            work_group = work_group_of(chain.device)
            record = Solve(work_group if self.levels else 1, *self._fields, 0 if self.levels else width)
            built = self._kernels[width] = chain.build(record)[0]
        return built

    def _build_sync_free(self, chain: Chain, structure: Structure, dtype: np.dtype[Any]) -> list[Built]:
        """Return the kernels of the method "sync-free": that which solves, and that which finishes what a launch gave up."""
        limits, device = Thresholds.of(chain.device), chain.device
        if device.lanes_are_loops:
            work_group = 1
        else:
            work_group = min(limits.work_group, 1 << device.max_work_group.bit_length() - 1)
            if self.diagonal_at_end:
                mean = structure.indices.size / max(structure.shape[0], 1)
                self.lanes = min(1 << int(mean / limits.entries_per_lane).bit_length(), limits.max_lanes, work_group)
        self._unknown = unknown_of(dtype)
        rows = 1 if self.lanes > 1 else limits.rows
        return [chain.build(SyncFree(work_group, *self._fields, self.lanes, rows, finish))[0] for finish in (False, True)]

    def enqueue(
        self, chain: Chain, values: cl_array.Array, b: RightSide, x: cl_array.Array, *, is_noted: bool = True
    ) -> cl_array.Array:
        """Enqueue ``x = T^-1 b``, T triangular, for a row-major x of n x columns; return the `State`.

        If not ``is_noted``, `State.singular` has no meaning.
        """
        state = chain.scratch(len(State._fields), np.int32)
        if is_noted or self.method == "sync-free":
            chain.fill(state, 0, len(State._fields))
        steps = np.int64(b.begin), np.int64(b.row_step), np.int64(b.column_step)
        structure, vectors = (self._indptr, self._indices), (values, b.values, *steps, x, state)
        n, columns = self._indptr.dtype.type(self._indptr.size - 1), np.uint64(b.columns)
        if self._waiting:
            solve, finish = self._waiting
            record: Any = solve.parameters
            arguments = n, columns, self._max_polls, *structure, *vectors
            chain.fill(x, self._unknown, x.size)
            chain.launch(solve, -(-x.size // (record.work_group // record.lanes * record.rows)), *arguments)
            chain.launch(finish, 1, *arguments)
        elif self.levels is None:
            groups = b.columns // _WIDTH
            if groups:
                chain.launch(self._build(chain, _WIDTH), groups, n, columns, np.uint64(0), *structure, *vectors)
            chain.launch(self._build(chain, 1), b.columns % _WIDTH, n, columns, np.uint64(groups * _WIDTH), *structure, *vectors)
        else:
            built = self._build(chain, 1)
            for launched, *levels in self.levels.schedule(built.parameters.work_group, b.columns, self._max_groups):
                chain.launch(built, launched, *levels, columns, self.levels.starts, self.levels.order, *structure, *vectors)
        return state


def get_solver(
    queue: cl.CommandQueue, structure: Structure, dtype: np.dtype[Any], *, upper: bool, unit: bool, method: str = "auto"
) -> Solver:
    """Return the solver of triangular systems that a structure keeps; the first call builds it.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        For the commands that inspect the structure.
    structure : Structure
        It has the triangle; entries on the other side of the diagonal are passed over. In any order, and with duplicates.
    dtype : numpy.dtype
        Of the values, b and x.
    upper, unit : bool
        Whether the triangle is upper, and whether its diagonal is 1, whatever is stored.
    method : {"auto", "serial", "sync-free", "levels"}
        "auto" chooses by the profile of the device.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    if method == "auto":
        method = choose_method(queue, structure)
    key = Solver, dtype, upper, unit, method
    return structure.get_plan(key, lambda: Solver(queue, structure, dtype, upper, unit, method))


def _ends_with_diagonal(queue: cl.CommandQueue, structure: Structure, upper: bool) -> bool:
    """Return whether each row ends (upper: begins) with its only diagonal entry, and has none beyond it; waits for the device."""
    indices, indptr = structure.indices, structure.indptr
    chain, index, n = Chain(queue, indices, indptr), indptr.dtype, indptr.size - 1
    built, record = chain.build(Ends(work_group_of(chain.device), name_of(index), upper))
    other = chain.scratch(1, np.int32)
    chain.fill(other, 0, 1)
    groups = min(-(-n // record.work_group), chain.device.compute_units * _SOLVE_GROUPS)
    chain.launch(built, groups, index.type(n), indptr, indices, other)
    return not chain.read(other, 1)[0]
