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
#: Entries of a smoothed prolongator's row for which a work-item has local memory, on GPUs; 8 if A's rows have at most 8 entries.
_ROOM = 16


def _build_kernel(chain: Chain, A: Parts, phase: str, longest: int) -> tuple[Built, tuple[Any, ...], tuple[Any, ...]]:
    """Return the kernel of a phase of a prolongator's smoothing, how work-groups share A's rows, and arguments for local rows."""
    index, dtype, room = A[2].dtype, A[0].dtype, 8 if longest <= 8 else _ROOM
    built, record = chain.build(Prolongator.legal(chain.device, name_of(index), name_of(dtype), phase, room))
    groups, sizes = spread(chain.device, A[2].size - 1, record.work_group, 64)
    local = (cl.LocalMemory(room * record.work_group * itemsize) for itemsize in (index.itemsize, dtype.itemsize))
    return built, (groups, *sizes), (index.type(room), *local) if record.local_rows else ()


def _pack_operand(gain: float, local: tuple[Any, ...], T: Parts) -> tuple[Any, ...]:
    """Return kernel arguments that smooth a prolongator T: the step's factor, local rows, whether T has no empty row, T."""
    values, columns, pointers = T
    real = np.zeros(0, values.dtype).real.dtype
    return real.type(gain), *local, np.uint32(values.size == pointers.size - 1), pointers, columns, values


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
    (make, sizes, local), (pack, sizes_of_pack, _) = (_build_kernel(chain, A.parts, phase, longest) for phase in ("make", "pack"))
    counts, columns, sums = (
        chain.scratch(*scratch) for scratch in ((n_rows, np.uint32), (data.size, index), (data.size, data.dtype))
    )
    chain.launch(make, *sizes, indptr, indices, data, inverse, *_pack_operand(gain, local, T.parts), counts, columns, sums)
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
    built, sizes, local = _build_kernel(chain, A.parts, "values", longest)
    chain.launch(built, *sizes, indptr, indices, data, inverse, *_pack_operand(gain, local, T.parts), pointers, columns, sums)
    chain.finish(sums)
    return sums
