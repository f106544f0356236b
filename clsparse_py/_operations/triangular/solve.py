"""Solve a triangular system by the method of its structure: `serial`, row by row, or `levels`, level set by level set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._matrix.matrix import Structure
from clsparse_py._operations.triangular.choose import choose_method
from clsparse_py._operations.triangular.kernels import Ends, Solve, work_group_of
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
        "serial" or "levels".
    diagonal_at_end : bool
        Whether each row ends (upper: begins) with its diagonal entry, and has none beyond it.
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
        self._kernels: dict[int, Built] = {}
        self._build(chain, 1)

    def _build(self, chain: Chain, width: int) -> Built:
        """Return the kernel of the solver's method: "levels", or "serial" with ``width`` right-hand sides to a work-item."""
        built = self._kernels.get(width)
        if built is None:
            work_group = work_group_of(chain.device)
            record = Solve(work_group if self.levels else 1, *self._fields, 0 if self.levels else width)
            built = self._kernels[width] = chain.build(record)[0]
        return built

    def enqueue(self, chain: Chain, values: cl_array.Array, b: RightSide, x: cl_array.Array, singular: cl_array.Array) -> None:
        """Enqueue ``x = T^-1 b``, T triangular, for a row-major x of n x columns; a 0 on T's diagonal sets ``singular`` to 1."""
        columns = np.uint64(b.columns)
        steps = np.int64(b.begin), np.int64(b.row_step), np.int64(b.column_step)
        operands = self._indptr, self._indices, values, b.values, *steps, x, singular
        if self.levels is None:
            n, groups = self._indptr.dtype.type(self._indptr.size - 1), b.columns // _WIDTH
            if groups:
                chain.launch(self._build(chain, _WIDTH), groups, n, columns, np.uint64(0), *operands)
            chain.launch(self._build(chain, 1), b.columns % _WIDTH, n, columns, np.uint64(groups * _WIDTH), *operands)
            return
        built = self._build(chain, 1)
        for groups, *levels in self.levels.schedule(built.parameters.work_group, b.columns, self._max_groups):
            chain.launch(built, groups, *levels, columns, self.levels.starts, self.levels.order, *operands)


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
    method : {"auto", "serial", "levels"}
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
