"""The graph whose nodes are aggregated: the strong entries of a matrix, or of its blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.aggregation.kernels import Inverse, Nodes, Smoothing, Strength
from clsparse_py.arithmetic import name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.canonical import with_marked
from clsparse_py.construct.tiles import tiles, work_group_of
from clsparse_py.launch import Chain, spread
from clsparse_py.matrix import Matrix, Parts, Structure
from clsparse_py.memory import allocated
from clsparse_py.reductions.sums import diagonal_on_device
from clsparse_py.transfer import fetched

__all__ = ["inverse_diagonal", "nodes_of", "smoothing_values", "strong_entries"]


def _rows(indptr: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def _nodes_by_host(queue: cl.CommandQueue, parts: Parts, block: int) -> Parts:
    """Return the result of `_nodes`, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    n = (indptr.size - 1) // block
    node_indptr = (indptr[::block] // block**2).astype(indptr.dtype)
    found, norms = [], []
    for node in range(n):
        first, last = indptr[node * block], indptr[node * block + 1]
        found.append(indices[first:last:block] // block)
        values = np.abs(data[first : indptr[(node + 1) * block]]).reshape(block, -1, block)
        norms.append(np.sqrt((values**2).sum(axis=(0, 2))))
    real = np.abs(data[:0]).dtype
    joined = (np.concatenate([np.zeros(0, each), *made]).astype(each) for made, each in ((norms, real), (found, indptr.dtype)))
    norms_of_all, columns = joined
    return placed(queue, "norms", norms_of_all), placed(queue, "columns", columns), placed(queue, "indptr", node_indptr)


@or_by_host(_nodes_by_host)
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


def _strength_by_host(queue: cl.CommandQueue, parts: Parts, diagonal: cl_array.Array, theta: float) -> cl_array.Array:
    """Return the result of `_strength`, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    sizes, rows = np.abs(fetched(diagonal, queue)), _rows(indptr)
    strong = (indices != rows) & (np.abs(data) ** 2 >= sizes.dtype.type(theta) ** 2 * (sizes[rows] * sizes[indices]))
    return placed(queue, "marks", strong.view(np.uint8))


@or_by_host(_strength_by_host)
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


def _inverse_by_host(queue: cl.CommandQueue, parts: Parts, *, is_sorted: bool) -> cl_array.Array:  # noqa: ARG001 - of the kernel's
    """Return the result of `_inverse`, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    rows, found = _rows(indptr), np.zeros(indptr.size - 1, data.dtype)
    on = indices == rows
    np.add.at(found, rows[on], data[on])
    there = np.abs(found) > 0
    found[there] = 1 / found[there]
    return placed(queue, "a diagonal", found)


@or_by_host(_inverse_by_host)
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


def _smoothing_by_host(
    queue: cl.CommandQueue, parts: Parts, inverse: cl_array.Array, gain: float, first: int = 0
) -> cl_array.Array:
    """Return the result of `smoothing_values`, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    rows = _rows(indptr)
    on = indices - rows == first
    return placed(queue, "values", (on - fetched(inverse, queue)[rows] * data * gain).astype(data.dtype))


@or_by_host(_smoothing_by_host)
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
