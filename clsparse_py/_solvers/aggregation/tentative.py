"""Tentative prolongators: orthonormal columns for each aggregate that hold the near-nullspace candidates."""

from __future__ import annotations

import math

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.plain import door
from clsparse_py._matrix.matrix import Matrix, Parts, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._operations.transpose import transpose_plan
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain, spread
from clsparse_py._solvers.aggregation.aggregates import Aggregates
from clsparse_py._solvers.aggregation.kernels import Norms, Orthonormal, Tentative

__all__ = ["make_tentative_prolongator"]

# The tolerance is 10 machine epsilons at least.
#: Ratio of a candidate's norms after and before orthogonalisation, in an aggregate, below which it depends on earlier candidates.
_TOLERANCE = 1e-10


def _enqueue_normalised(chain: Chain, of_nodes: Parts, block: int, T: Parts, norms: cl_array.Array) -> None:
    """Enqueue the kernels that make the prolongator T of one candidate: the candidate divided by its norm in each aggregate."""
    joined, positions, candidate = of_nodes
    values, indices, indptr = T
    types = name_of(positions.dtype), name_of(candidate.dtype)
    (norm, _), (fill, record) = chain.build(Norms(1, *types)), chain.build(Tentative(1, *types, normed=True))
    sizes = np.uint64(joined.size), np.uint64(norms.size), np.uint64(block)
    chain.launch(norm, 1, *sizes, joined, candidate, norms)
    groups, rows = spread(chain.device, indptr.size, record.work_group, 64)
    blocks = np.uint64(block), np.uint64(1)
    chain.launch(fill, groups, *rows, *blocks, joined, positions, candidate, indptr, indices, values, norms)


def _enqueue_orthonormal(chain: Chain, of_nodes: Parts, sizes: tuple[int, int], T: Parts, coarse: cl_array.Array) -> None:
    """Enqueue the kernels that make the prolongator T of several candidates: columns that are orthonormal in each aggregate."""
    joined, positions, candidates = of_nodes
    values, indices, indptr = T
    queue, device, dtype = chain.queue, chain.device, candidates.dtype
    group, types, blocks = work_group_of(device), (name_of(positions.dtype), name_of(dtype)), tuple(map(np.uint64, sizes))
    fill, _ = chain.build(Tentative(group, *types))
    orthonormal, _ = chain.build(Orthonormal(min(64, group), *types))
    members, n = allocate(queue, "members", values.size // math.prod(sizes), positions.dtype), coarse.size // sizes[1] ** 2
    groups, rows = spread(device, indptr.size, group, 64)
    chain.launch(fill, groups, *rows, *blocks, *of_nodes, indptr, indices, values, members)
    chain.finish(members)
    # The plan's kernels are those that transpose the smoothed prolongator.
    lists = transpose_plan(Matrix.assembled(Structure.canonical(queue, (joined.size, n), members, positions), members))
    groups, rows = spread(device, n, min(64, group), 64)
    tolerance = np.zeros(0, dtype).real.dtype.type(max(_TOLERANCE, 10 * float(np.finfo(dtype).eps)))
    of_lists = lists.indptr, lists.indices, positions
    chain.launch(orthonormal, groups, *rows, *blocks, tolerance, *of_lists, values, coarse)


@door()
def make_tentative_prolongator(
    queue: cl.CommandQueue, groups: Aggregates, candidates: cl_array.Array, block: int
) -> tuple[Matrix, cl_array.Array]:
    """Return the tentative prolongator, whose range holds the near-nullspace candidates, and the candidates of the coarser level.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    groups : Aggregates
        The aggregates of the nodes.
    candidates : pyopencl.array.Array
        A row for each unknown, C-contiguous.
    block : int
        Unknowns of a node.
    """
    joined, positions, columns = groups.joined, groups.place, candidates.shape[1]
    flat = candidates.reshape(candidates.size)  # type: ignore[no-untyped-call] # PyOpenCL's
    chain, index, dtype = Chain(queue, joined, positions, flat), positions.dtype, candidates.dtype
    n_rows, nnz = joined.size * block, groups.n_joined * block * columns
    T = (
        allocate(queue, "values", nnz, dtype),
        allocate(queue, "indices", nnz, index),
        allocate(queue, "indptr", n_rows + 1, index),
    )
    coarse = allocate(queue, "candidates", (groups.n * columns, columns), dtype)
    if columns == 1 and chain.device.lanes_are_loops:
        _enqueue_normalised(chain, (joined, positions, flat), block, T, coarse)
    else:
        _enqueue_orthonormal(chain, (joined, positions, flat), (block, columns), T, coarse)
    chain.finish(*T, coarse)
    values, indices, indptr = T
    return Matrix.assembled(Structure.canonical(queue, (n_rows, groups.n * columns), indices, indptr), values), coarse
