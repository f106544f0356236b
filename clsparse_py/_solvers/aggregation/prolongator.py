"""Smoothed prolongators of one candidate, made row by row without a product of sparse matrices: a row has few entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._matrix.matrix import Matrix, MatrixT, Parts, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread
from clsparse_py._solvers.aggregation.kernels import Prolongator

__all__ = ["MAX_ROW", "refresh_prolongator", "smooth_prolongator"]

#: Most entries of a matrix's longest row at which a prolongator is smoothed row by row: on CPU devices (True), on others (False).
MAX_ROW = {True: 1024, False: 96}


def _build_kernel(chain: Chain, A: Parts, phase: str, longest: int) -> tuple[Built, tuple[Any, ...]]:
    """Return the kernel of a phase of a prolongator's smoothing, the number of work-groups, and how these share A's rows."""
    types = name_of(A[2].dtype), name_of(A[0].dtype)
    built, record = chain.build(Prolongator.legal(chain.device, *types, phase, longest))
    groups, sizes = spread(chain.device, A[2].size - 1, record.work_group, 64)
    return built, (groups, *sizes)


def _pack_operand(gain: float, T: Parts) -> tuple[Any, ...]:
    """Return kernel arguments that smooth a prolongator T: the Jacobi step's factor, whether T has no empty row, T's arrays."""
    values, columns, pointers = T
    real = np.zeros(0, values.dtype).real.dtype
    return real.type(gain), np.uint32(values.size == pointers.size - 1), pointers, columns, values


def smooth_prolongator(
    queue: cl.CommandQueue, A: MatrixT, inverse: cl_array.Array, gain: float, T: Matrix, longest: int
) -> MatrixT:
    """Return the smoothed prolongator ``P = (1 - gain D^-1 A) T``, of A's class; waits.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        In canonical format, n x n.
    inverse : pyopencl.array.Array
        The inverse of A's diagonal D, 0 for rows that are not smoothed.
    gain : float
    T : Matrix
        n rows of at most one entry each, of A's dtypes.
    longest : int
        Entries of A's longest row.
    """
    data, indices, indptr = A.parts
    chain, index, n_rows = Chain(queue, *A.parts, inverse, *T.parts), indptr.dtype, indptr.size - 1
    (make, sizes), (pack, sizes_of_pack) = (_build_kernel(chain, A.parts, phase, longest) for phase in ("make", "pack"))
    counts, columns, sums = (
        chain.scratch(*scratch) for scratch in ((n_rows, index), (data.size, index), (data.size, data.dtype))
    )
    chain.launch(make, *sizes, indptr, indices, data, inverse, *_pack_operand(gain, T.parts), counts, columns, sums)
    pointers = allocate(queue, "indptr", n_rows + 1, index)
    enqueue_scan(chain, counts, pointers, n_rows, kind="pointers")
    nnz = int(chain.read(pointers, 1, n_rows)[0])
    entries = allocate(queue, "values", nnz, data.dtype), allocate(queue, "indices", nnz, index)
    chain.launch(pack, *sizes_of_pack, indptr, columns, sums, pointers, entries[1], entries[0])
    chain.finish(*entries, pointers)
    return A.assembled(Structure.canonical(queue, T.shape, entries[1], pointers), entries[0])


def refresh_prolongator(
    queue: cl.CommandQueue, A: Matrix, inverse: cl_array.Array, gain: float, T: Matrix, longest: int, P: Matrix
) -> cl_array.Array:
    """Overwrite the values of P, a result of `smooth_prolongator`, by the result for A's present values; return P's values."""
    data, indices, indptr = A.parts
    sums, columns, pointers = P.parts
    chain = Chain(queue, *A.parts, inverse, *T.parts, columns, pointers, writes=(sums,))
    built, sizes = _build_kernel(chain, A.parts, "values", longest)
    chain.launch(built, *sizes, indptr, indices, data, inverse, *_pack_operand(gain, T.parts), pointers, columns, sums)
    chain.finish(sums)
    return sums
