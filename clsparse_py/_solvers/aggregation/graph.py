"""The graph whose nodes are aggregated: the strong entries of a matrix, or of its blocks."""

from __future__ import annotations

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.plain import door
from clsparse_py._formats.canonical import with_marked
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import divide_tiles, work_group_of
from clsparse_py._operations.reductions.sums import diagonal_on_device
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain, spread
from clsparse_py._solvers.aggregation.kernels import Inverse, Nodes, Smoothing, Strength

__all__ = ["compute_smoothing_values", "invert_diagonal", "reduce_blocks", "select_strong_entries"]


@door()
def reduce_blocks(A: Matrix, block: int) -> Matrix:
    """Return the matrix of the Frobenius norms of A's blocks of ``block`` x ``block`` entries, a row for each node.

    All entries of a block are stored. A block of one entry: A itself is returned.
    """
    if block == 1:
        return A
    queue, (data, indices, indptr) = A.queue, A.parts
    chain, index, n = Chain(queue, *A.parts), indptr.dtype, (indptr.size - 1) // block
    built, record = chain.build(Nodes(min(128, chain.device.max_work_group), name_of(index), name_of(data.dtype)))
    real = np.zeros(0, data.dtype).real.dtype
    n_blocks = data.size // block**2
    norms, columns = allocate(queue, "norms", n_blocks, real), allocate(queue, "columns", n_blocks, index)
    node_indptr = allocate(queue, "indptr", n + 1, index)
    groups, sizes = spread(chain.device, n + 1, record.work_group, 64)
    chain.launch(built, groups, *sizes, np.uint64(block), indptr, indices, data, node_indptr, columns, norms)
    chain.finish(norms, columns, node_indptr)
    return A.assembled(Structure.canonical(queue, (n, A.shape[1] // block), columns, node_indptr), norms)


@door()
def select_strong_entries(A: Matrix, theta: float, diagonal: cl_array.Array | None = None) -> Matrix:
    """Return A's strong entries: off the diagonal, with ``|a_ij| >= theta sqrt(|a_ii a_jj|)``; A itself if theta is 0.

    ``diagonal`` is the vector of a_jj for all columns; by default A's diagonal.
    """
    if theta == 0 or not A.nnz:
        return A
    queue, parts = A.queue, A.parts
    data, indices, indptr = parts
    diagonal = diagonal_on_device(A) if diagonal is None else diagonal
    chain, index = Chain(queue, *parts, diagonal), indptr.dtype
    built, record = chain.build(Strength(work_group_of(chain.device), name_of(index), name_of(data.dtype)))
    strong = allocate(queue, "marks", indices.size, np.dtype(np.uint8))
    groups, sizes = divide_tiles(chain.device, indices.size, record.work_group)
    scalars = index.type(indptr.size - 1), np.zeros(0, data.dtype).real.dtype.type(theta)
    chain.launch(built, groups, *sizes, *scalars, indptr, indices, data, diagonal, strong)
    chain.finish(strong)
    data, indices, indptr = with_marked(queue, parts, strong)
    return A.assembled(Structure.canonical(queue, A.shape, indices, indptr), data)


@door()
def invert_diagonal(A: Matrix, *, l1: bool = False) -> cl_array.Array:
    """Return the vector of the inverses of a matrix's diagonal entries, 0 where the diagonal is 0 or has no entry.

    ``l1``: in place of the diagonal entries, of the sums of the absolute values of all entries of each row.
    """
    queue, (data, indices, indptr) = A.queue, A.parts
    chain, n = Chain(queue, *A.parts), indptr.size - 1
    built, record = chain.build(Inverse(work_group_of(chain.device), name_of(indptr.dtype), name_of(data.dtype), l1))
    inverse = allocate(queue, "a diagonal", n, data.dtype)
    groups, sizes = spread(chain.device, n, record.work_group, 64)
    chain.launch(built, groups, *sizes, np.uint32(A.has_sorted_indices), indptr, indices, data, inverse)
    chain.finish(inverse)
    return inverse


@door()
def compute_smoothing_values(A: Matrix, inverse: cl_array.Array, gain: float, first: int = 0) -> cl_array.Array:
    """Return the values of a Jacobi step's matrix ``1 - gain D^-1 A`` at the entries of A, from the inverse of the diagonal D.

    ``first`` is the column of the first row's diagonal entry: past all columns if A lacks the columns of the diagonal.
    """
    queue, (data, indices, indptr) = A.queue, A.parts
    chain, index = Chain(queue, *A.parts, inverse), indptr.dtype
    built, record = chain.build(Smoothing(work_group_of(chain.device), name_of(index), name_of(data.dtype)))
    values = allocate(queue, "values", data.size, data.dtype)
    groups, sizes = divide_tiles(chain.device, indices.size, record.work_group)
    scalars = index.type(indptr.size - 1), index.type(first), np.zeros(0, data.dtype).real.dtype.type(gain)
    chain.launch(built, groups, *sizes, *scalars, indptr, indices, data, inverse, values)
    chain.finish(values)
    return values
