"""Tentative prolongators: orthonormal columns for each aggregate that hold the near-nullspace candidates."""

from __future__ import annotations

import math

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._transpose import transpose
from clsparse_py.aggregation.aggregates import Aggregates
from clsparse_py.aggregation.kernels import Norms, Orthonormal, Tentative
from clsparse_py.arithmetic import name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.construct.tiles import work_group_of
from clsparse_py.launch import Chain, spread
from clsparse_py.matrix import Matrix, Parts, Structure
from clsparse_py.memory import allocated
from clsparse_py.transfer import fetched

__all__ = ["tentative_prolongator"]

#: A column of which less than this part is left, once those before it are taken away, depends on these.
_TOLERANCE = 1e-10


def _by_host(
    queue: cl.CommandQueue,
    joined: cl_array.Array,
    place: cl_array.Array,
    candidates: cl_array.Array,
    block: int,
    n: int,
    n_joined: int,  # noqa: ARG001 - of the kernels
) -> tuple[Parts, cl_array.Array]:
    """Return the result of `_tentative`, computed by NumPy."""
    of, before, given = (fetched(each, queue) for each in (joined, place, candidates))
    columns = given.size // max(of.size * block, 1)
    given = given.reshape(of.size, block, columns)
    index = before.dtype
    inside = np.where(of >= 0, 1, 0)[:, None] * np.arange(block)
    indptr = np.append((before[:-1, None] * block + inside) * columns, before[-1] * block * columns).astype(index)
    kept = of[of >= 0]
    indices = np.repeat(kept[:, None] * columns + np.arange(columns), block, axis=0).astype(index)
    values, coarse = given[of >= 0].copy(), np.zeros((n, columns, columns), given.dtype)
    tolerance = max(_TOLERANCE, 10 * float(np.finfo(given.dtype).eps))
    for aggregate in range(n):
        rows = np.flatnonzero(kept == aggregate)
        Q = values[rows].reshape(-1, columns)
        for column in range(columns):
            size = np.linalg.norm(Q[:, column])
            for other in range(column):
                coarse[aggregate, other, column] = product = np.vdot(Q[:, other], Q[:, column])
                Q[:, column] -= product * Q[:, other]
            left = np.linalg.norm(Q[:, column])
            is_new = left > tolerance * size
            Q[:, column] *= 1 / left if is_new else 0
            coarse[aggregate, column, column] = left if is_new else 0
        values[rows] = Q.reshape(-1, block, columns)
    parts = placed(queue, "values", values.ravel()), placed(queue, "indices", indices.ravel()), placed(queue, "indptr", indptr)
    return parts, placed(queue, "candidates", coarse.ravel())


@or_by_host(_by_host)
def _tentative(
    queue: cl.CommandQueue,
    joined: cl_array.Array,
    place: cl_array.Array,
    candidates: cl_array.Array,
    block: int,
    n: int,
    n_joined: int,
) -> tuple[Parts, cl_array.Array]:
    """Return the parts of the prolongator, and the coarse candidates."""
    chain, index, dtype = Chain(queue, joined, place, candidates), place.dtype, candidates.dtype
    n_rows = joined.size * block
    columns = candidates.size // n_rows
    nnz = n_joined * block * columns
    T = (
        allocated(queue, "values", nnz, dtype),
        allocated(queue, "indices", nnz, index),
        allocated(queue, "indptr", n_rows + 1, index),
    )
    coarse = allocated(queue, "candidates", n * columns * columns, dtype)
    of_nodes = joined, place, candidates
    if columns == 1 and chain.device.lanes_are_loops:
        _normed(chain, of_nodes, block, T, coarse)
    else:
        _orthonormal(chain, of_nodes, (block, columns), T, coarse)
    chain.finish(*T, coarse)
    return T, coarse


def _normed(chain: Chain, of_nodes: Parts, block: int, T: Parts, norms: cl_array.Array) -> None:
    """Enqueue the prolongator of one candidate, and its norm in each aggregate, which one work-item adds up."""
    joined, place, candidate = of_nodes
    values, indices, indptr = T
    types = name_of(place.dtype), name_of(candidate.dtype)
    (norm, _), (fill, record) = chain.build(Norms(1, *types)), chain.build(Tentative(1, *types, normed=True))
    sizes = np.uint64(joined.size), np.uint64(norms.size), np.uint64(block)
    chain.launch(norm, 1, *sizes, joined, candidate, norms)
    groups, rows = spread(chain.device, indptr.size, record.work_group, 64)
    blocks = np.uint64(block), np.uint64(1)
    chain.launch(fill, groups, *rows, *blocks, joined, place, candidate, indptr, indices, values, norms)


def _orthonormal(chain: Chain, of_nodes: Parts, sizes: tuple[int, int], T: Parts, coarse: cl_array.Array) -> None:
    """Enqueue the prolongator, and the coarse candidates: columns are made orthonormal for each aggregate's list of nodes."""
    joined, place, candidates = of_nodes
    values, indices, indptr = T
    queue, device, dtype = chain.queue, chain.device, candidates.dtype
    group, types, blocks = work_group_of(device), (name_of(place.dtype), name_of(dtype)), tuple(map(np.uint64, sizes))
    fill, _ = chain.build(Tentative(group, *types))
    orthonormal, _ = chain.build(Orthonormal(min(64, group), *types))
    members, n = allocated(queue, "members", values.size // math.prod(sizes), place.dtype), coarse.size // sizes[1] ** 2
    groups, rows = spread(device, indptr.size, group, 64)
    chain.launch(fill, groups, *rows, *blocks, *of_nodes, indptr, indices, values, members)
    chain.finish(members)
    lists = transpose(Matrix.assembled(Structure.canonical(queue, (joined.size, n), members, place), members))
    groups, rows = spread(device, n, min(64, group), 64)
    tolerance = np.zeros(0, dtype).real.dtype.type(max(_TOLERANCE, 10 * float(np.finfo(dtype).eps)))
    of_lists = lists.indptr, lists.indices, place
    chain.launch(orthonormal, groups, *rows, *blocks, tolerance, *of_lists, values, coarse)


def tentative_prolongator(
    queue: cl.CommandQueue, of: Aggregates, candidates: cl_array.Array, block: int
) -> tuple[Matrix, cl_array.Array]:
    """Return a prolongator that holds candidates exactly, and the coarse candidates.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    of : Aggregates
        Of nodes.
    candidates : pyopencl.array.Array
        A row for each unknown, C-contiguous.
    block : int
        Unknowns of a node.
    """
    n_nodes, columns = of.joined.size, candidates.shape[1]
    flat = candidates.reshape(candidates.size)  # type: ignore[no-untyped-call] # PyOpenCL's
    (values, indices, indptr), coarse = _tentative(queue, of.joined, of.place, flat, block, of.n, of.n_joined)
    shape = n_nodes * block, of.n * columns
    T = Matrix.assembled(Structure.canonical(queue, shape, indices, indptr), values)
    return T, coarse.reshape(of.n * columns, columns)  # type: ignore[no-untyped-call] # PyOpenCL's
