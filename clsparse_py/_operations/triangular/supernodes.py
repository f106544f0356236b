"""Inspection of a triangular matrix: the rows' diagonal entries, supernodes (adjacent rows solved without a wait), the grid."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.choose import Thresholds
from clsparse_py._operations.triangular.kernels import GROUPS, Ends, EndsCounts, Supernodes, work_group_of
from clsparse_py._operations.triangular.tiles import GridRows, inspect_grid
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["Triangle", "inspect_triangle"]


@dataclass(frozen=True)
class Triangle:
    """A triangle's rows.

    Attributes
    ----------
    diagonal_at_end : bool
        Whether each row ends (upper: begins) with its diagonal entry, and has none beyond it.
    rows : int
        Most rows of a supernode; 1 if the triangle has too few supernodes of more rows.
    supernodes : pyopencl.array.Array or None
        Of each row, as ``templates/triangular/supernodes.mako`` describes; None if ``rows`` is 1.
    grid : GridRows or None
        The rows as points of a grid, if the matrix is a stencil on one.
    """

    diagonal_at_end: bool
    rows: int = 1
    supernodes: cl_array.Array | None = None
    grid: GridRows | None = None


def inspect_triangle(queue: cl.CommandQueue, structure: Structure, upper: bool) -> Triangle:
    """Return where the rows of a triangle have their diagonal entries, its supernodes and grid; waits for the device."""
    indices, indptr = structure.indices, structure.indptr
    chain, index, n = Chain(queue, indices, indptr), indptr.dtype, indptr.size - 1
    name, limits = name_of(index), Thresholds.of(chain.device)
    built, record = chain.build(Ends(work_group_of(chain.device), name, upper))
    n_counts, n_distances = len(EndsCounts._fields), record.N_SAMPLES * record.MAX_ENTRIES
    continues, counts = chain.scratch(n, np.int32), chain.scratch(n_counts + n_distances, np.int32)
    chain.fill(counts, 0, counts.size)
    groups = min(-(-n // record.work_group), chain.device.compute_units * GROUPS)
    chain.launch(built, groups, index.type(n), indptr, indices, continues, counts)
    numbers = chain.read(counts, counts.size)
    found = EndsCounts(*map(int, numbers[:n_counts]))
    # Places of unknowns are numbers below 2^31.
    rows = limits.supernode_rows if n * limits.supernode_rows < 2**31 else 1
    grid = None if found.others else inspect_grid(queue, indptr, indices, numbers[n_counts:], upper)
    if found.others or rows == 1 or found.continued < max(limits.min_continued * n, 1):
        return Triangle(not found.others, grid=grid)
    supernodes = allocate(queue, "supernodes", n, np.dtype(np.int32))
    built, _ = chain.build(Supernodes(record.work_group, name, upper, rows))
    chain.launch(built, groups, index.type(n), continues, supernodes)
    chain.finish(supernodes)
    return Triangle(True, rows, supernodes, grid)
