"""The graph whose nodes are aggregated: the strong entries of a matrix, or of its blocks."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.aggregation.kernels import Inverse, Nodes, Smoothing, Strength
from clsparse_py.arithmetic import name_of
from clsparse_py.canonical import with_marked
from clsparse_py.construct.tiles import tiles, work_group_of
from clsparse_py.launch import Chain, spread
from clsparse_py.matrix import Matrix, Parts, Structure
from clsparse_py.memory import allocated
from clsparse_py.plain import door
from clsparse_py.reductions.sums import diagonal_on_device

__all__ = ["inverse_diagonal", "nodes_of", "smoothing_values", "strong_entries"]


@door()
def _nodes(queue: cl.CommandQueue, parts: Parts, block: int) -> Parts:
    data, indices, indptr = parts
    chain, index, n = Chain(queue, *parts), indptr.dtype, (indptr.size - 1) // block
    built, record = chain.build(Nodes(min(128, chain.device.max_work_group), name_of(index), name_of(data.dtype)))
    real = np.zeros(0, data.dtype).real.dtype
    n_blocks = data.size // block**2
    norms, columns = allocated(queue, "norms", n_blocks, real), allocated(queue, "columns", n_blocks, index)
    node_indptr = allocated(queue, "indptr", n + 1, index)
    groups, sizes = spread(chain.device, n + 1, record.work_group, 64)
    chain.launch(built, groups, *sizes, np.uint64(block), indptr, indices, data, node_indptr, columns, norms)
    chain.finish(norms, columns, node_indptr)
    return norms, columns, node_indptr


def nodes_of(A: Matrix, block: int) -> Matrix:
    """Return the matrix of A's nodes: for each block of ``block`` x ``block`` entries, all stored, their norm; A itself for 1."""
    if block == 1:
        return A
    norms, columns, indptr = _nodes(A.queue, A.parts, block)
    shape = indptr.size - 1, A.shape[1] // block
    return A.assembled(Structure.canonical(A.queue, shape, columns, indptr), norms)


@door()
def _strength(queue: cl.CommandQueue, parts: Parts, diagonal: cl_array.Array, theta: float) -> cl_array.Array:
    data, indices, indptr = parts
    chain, index = Chain(queue, *parts, diagonal), indptr.dtype
    built, record = chain.build(Strength(work_group_of(chain.device), name_of(index), name_of(data.dtype)))
    strong = allocated(queue, "marks", indices.size, np.dtype(np.uint8))
    groups, sizes = tiles(chain.device, indices.size, record.work_group)
    scalars = index.type(indptr.size - 1), np.zeros(0, data.dtype).real.dtype.type(theta)
    chain.launch(built, groups, *sizes, *scalars, indptr, indices, data, diagonal, strong)
    chain.finish(strong)
    return strong


def strong_entries(A: Matrix, theta: float, diagonal: cl_array.Array | None = None) -> Matrix:
    """Return A's strong entries: those off the diagonal with ``|a_ij| >= theta sqrt(|a_ii a_jj|)``, or A itself if theta is 0.

    ``diagonal`` has a_jj for each column; by default A's.
    """
    if theta == 0 or not A.nnz:
        return A
    parts = A.parts
    strong = _strength(A.queue, parts, diagonal_on_device(A) if diagonal is None else diagonal, theta)
    data, indices, indptr = with_marked(A.queue, parts, strong)
    return A.assembled(Structure.canonical(A.queue, A.shape, indices, indptr), data)


@door()
def _inverse(queue: cl.CommandQueue, parts: Parts, *, is_sorted: bool) -> cl_array.Array:
    data, indices, indptr = parts
    chain, n = Chain(queue, *parts), indptr.size - 1
    built, record = chain.build(Inverse(work_group_of(chain.device), name_of(indptr.dtype), name_of(data.dtype)))
    found = allocated(queue, "a diagonal", n, data.dtype)
    groups, sizes = spread(chain.device, n, record.work_group, 64)
    chain.launch(built, groups, *sizes, np.uint32(is_sorted), indptr, indices, data, found)
    chain.finish(found)
    return found


def inverse_diagonal(queue: cl.CommandQueue, A: Matrix) -> cl_array.Array:
    """Return the inverse of the diagonal of a matrix, 0 where that is 0 or has no entry."""
    return _inverse(queue, A.parts, is_sorted=A.has_sorted_indices)


@door()
def smoothing_values(
    queue: cl.CommandQueue, parts: Parts, inverse: cl_array.Array, gain: float, first: int = 0
) -> cl_array.Array:
    """Return the values of ``1 - gain D^-1 A`` at the entries of A, of its parts and the inverse of its diagonal D.

    ``first`` is the column of the first row's entry of D: of columns that are beside the diagonal how many there are.
    """
    data, indices, indptr = parts
    chain, index = Chain(queue, *parts, inverse), indptr.dtype
    built, record = chain.build(Smoothing(work_group_of(chain.device), name_of(index), name_of(data.dtype)))
    found = allocated(queue, "values", data.size, data.dtype)
    groups, sizes = tiles(chain.device, indices.size, record.work_group)
    scalars = index.type(indptr.size - 1), index.type(first), np.zeros(0, data.dtype).real.dtype.type(gain)
    chain.launch(built, groups, *sizes, *scalars, indptr, indices, data, inverse, found)
    chain.finish(found)
    return found
