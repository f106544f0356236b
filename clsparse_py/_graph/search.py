"""Breadth-first search, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from scipy.sparse import csgraph

from clsparse_py._build.plain import door
from clsparse_py._graph.kernels import Level, Thresholds
from clsparse_py._graph.operands import deliver, deliver_from_host, on_host, read_graph, require_vertex
from clsparse_py._memory.memory import allocate
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import copy_to_device

__all__ = ["bfs"]


#: Type of two device arrays: a structure's row pointers and columns, or a breadth-first search's levels and parents.
_Structure = tuple[cl_array.Array, cl_array.Array]


def _search_by_scipy(A: Any, source: int, *, directed: bool = True, like: Any = None) -> tuple[Any, Any]:
    """Return the levels and parents of a breadth-first search by SciPy, as `bfs` does."""
    levels, parents = csgraph.dijkstra(on_host(A), directed, source, return_predecessors=True)
    levels[np.isinf(levels)] = parents[parents < 0] = -1
    parents[source] = source
    return deliver_from_host(A, levels, like), deliver_from_host(A, parents, like)


@door(_search_by_scipy)
def bfs(A: Any, source: int, *, directed: bool = True, like: Any = None) -> tuple[Any, Any]:
    """Search a graph from a vertex, breadth first; return each vertex's level (its distance in edges) and parent.

    Parameters
    ----------
    A : sparse array, n x n
        Each stored entry is an edge.
    source : int
        Where the search begins.
    directed : bool
        False: edges are walked in both directions.
    like : pyopencl.array.Array or pyopencl.CommandQueue, optional
        The results are device arrays.

    Returns
    -------
    levels : numpy.ndarray or pyopencl.array.Array, shape (n,), int32
        How many edges the shortest way to each vertex has; -1 if there is none.
    parents : numpy.ndarray or pyopencl.array.Array, shape (n,), int32
        The vertex before each on such a way: the source for the source itself, -1 if there is none.

    Raises
    ------
    ValueError, TypeError
        A is no square sparse array, or has no such vertex.

    Notes
    -----
    The host waits once in eight levels.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> levels, parents = sp.graph.bfs(sp.csr_array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]]), 0)
    >>> levels, parents
    (array([ 0,  1,  2, -1], dtype=int32), array([ 0,  0,  1, -1], dtype=int32))
    """
    G = read_graph(A)
    source = require_vertex("source", source, G.shape[0])
    patterns = (G._transposed(),) if directed else (G._transposed(), G)
    levels, parents = _search(G.queue, tuple((pattern.indptr, pattern.indices) for pattern in patterns), source)
    return deliver(G.queue, levels, like), deliver(G.queue, parents, like)


def _search(queue: cl.CommandQueue, structures: tuple[_Structure, ...], source: int) -> _Structure:
    """Return the levels and parents of a breadth-first search; row v of a structure holds the vertices with an edge to v."""
    n = structures[0][0].size - 1
    chain = Chain(queue, *(part for pattern in structures for part in pattern))
    built, record = chain.build(
        Level(min(Thresholds.of(chain.device).work_group, chain.device.max_work_group), structures[0][0].dtype.name)
    )
    levels, parents = (allocate(queue, name, n, np.int32) for name in ("levels", "parents"))
    next_visited, visited = chain.scratch(n, np.uint8), chain.scratch(n, np.uint8)
    ahead = Thresholds.of(chain.device).levels_ahead
    new_flags = chain.scratch(ahead, np.uint32)
    for vector, value in ((levels, -1), (parents, -1), (visited, 0)):
        chain.fill(vector, value, n)
    at_source = copy_to_device(queue, "the source", np.array([0, source], np.int32))
    chain.copy(levels, at_source, 1, source)
    chain.copy(parents, at_source, 1, source, 1)
    ones = copy_to_device(queue, "the source", np.ones(1, np.uint8))
    chain.copy(visited, ones, 1, source)
    groups, sizes = spread(chain.device, n, record.work_group, 64)
    number = 0
    while True:
        chain.fill(new_flags, 0, ahead)
        for i in range(ahead):
            number += 1
            for k, structure in enumerate(structures):
                scalars = np.int32(number), np.uint32(k == 0), np.uint32(i)
                chain.launch(built, groups, *sizes, *scalars, *structure, visited, levels, parents, next_visited, new_flags)
            visited, next_visited = next_visited, visited
        if not chain.read(new_flags, 1, ahead - 1)[0]:
            break
    chain.finish(levels, parents)
    return levels, parents
