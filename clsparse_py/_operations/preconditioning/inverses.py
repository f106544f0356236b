"""Incomplete sparse approximate inverses, and the diagonals that they divide by."""

from __future__ import annotations

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._operations.preconditioning.kernels import CheckDiagonal, InvertTriangle
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["has_regular_diagonal", "invert_triangle"]


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
