"""Incomplete sparse approximate inverses, and the diagonals that they divide by."""

from __future__ import annotations

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.structure import check_structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._operations.preconditioning.kernels import CheckDiagonal, InvertRows, InvertTriangle
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["has_regular_diagonal", "invert_rows", "invert_triangle"]

#: Most entries of the rows whose small dense systems one work-group of few work-items eliminates.
_SHORT = 32
#: Ratio of the most entries of a row in a launch to the most in the launch before, as each launch has memory for its longest row.
_GROWTH = 8
#: Most work-groups to a compute unit that eliminate small dense systems, one to a row, for an approximate inverse.
_GROUPS_PER_UNIT = 32
#: Memory for the dense systems of a launch, in bytes, unless a single one is larger.
_SYSTEMS = 1 << 26


def has_regular_diagonal(A: Matrix) -> bool:
    """Return whether the diagonal of a canonical square matrix has no zero, and no value that is not finite; waits.

    False also if the magnitude of a complex value overflows.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain = Chain(A.queue, *A.parts)
    built, _ = chain.build(CheckDiagonal(work_group_of(chain.device), name_of(A.indptr.dtype), A.dtype.name))
    wrong = chain.scratch(1, np.int32)
    chain.fill(wrong, 0, 1)
    chain.launch_spread(built, A.shape[0], A.indptr, A.indices, A.data, wrong)
    return not chain.read(wrong, 1)[0]


def invert_triangle(T: Matrix, *, upper: bool, unit: bool) -> cl_array.Array:
    """Return the values of a triangular matrix's incomplete sparse approximate inverse, in the matrix's pattern.

    Parameters
    ----------
    T : Matrix
        Canonical, n x n, with an entry on the diagonal in each row and none beyond it.
    upper, unit : bool
        Whether the triangle is upper, and whether its diagonal is 1, whatever is stored.

    Raises
    ------
    BuildError
        The kernel is refused.
    """
    chain = Chain(T.queue, *T.parts)
    built, _ = chain.build(InvertTriangle(work_group_of(chain.device), name_of(T.indptr.dtype), T.dtype.name, upper, unit))
    inverse = allocate(T.queue, "an inverse", T.data.size, T.dtype)
    chain.launch_spread(built, T.shape[0], T.indptr, T.indices, T.data, inverse)
    chain.finish(inverse)
    return inverse


def invert_rows(A: Matrix) -> cl_array.Array:
    """Return the values of a matrix's incomplete sparse approximate inverse, in the matrix's pattern; waits.

    Parameters
    ----------
    A : Matrix
        Canonical, n x n, with an entry on the diagonal in each row.

    Raises
    ------
    ValueError
        The entries of A in the rows and columns of a row's pattern are a singular matrix.
    MemoryError
        The device has no memory for the square of the longest row's length.
    BuildError
        The kernel is refused.
    """
    queue, structure = A.queue, A.structure
    facts = structure.facts
    if facts is None or facts.longest is None:
        facts = check_structure(queue, A.shape, structure.indices, structure.indptr)
    chain, longest, least = Chain(queue, *A.parts), facts.longest or 0, 1
    inverse, singular = allocate(queue, "an inverse", A.nnz, A.dtype), chain.scratch(1, np.int32)
    chain.fill(singular, 0, 1)
    most, group = min(_SHORT, longest), min(_SHORT, work_group_of(chain.device))
    while least <= longest:
        built, _ = chain.build(InvertRows(group, name_of(A.indptr.dtype), A.dtype.name))
        entries = most * (most + 1)
        groups = min(A.shape[0], chain.device.compute_units * _GROUPS_PER_UNIT, max(_SYSTEMS // (entries * A.dtype.itemsize), 1))
        systems = allocate(queue, f"dense systems of rows of {most} entries", groups * entries, A.dtype)
        numbers = (np.uint64(number) for number in (A.shape[0], -(-A.shape[0] // groups), least, most))
        chain.launch(built, groups, *numbers, A.indptr, A.indices, A.data, systems, inverse, singular)
        least, most, group = most + 1, min(most * _GROWTH, longest), work_group_of(chain.device)
    chain.finish(inverse)
    if chain.read(singular, 1)[0]:
        raise ValueError("A: has a singular matrix in the pattern of a row")
    return inverse
