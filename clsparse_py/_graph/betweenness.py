"""Betweenness centrality by Brandes' method, many sources at a time: frontiers and numbers of paths are sparse matrices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.functions import vstack
from clsparse_py._build.plain import door
from clsparse_py._device.device import describe
from clsparse_py._graph.operands import read_graph, require_integer, require_vertex
from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.union import combine
from clsparse_py._operations.elementwise.values import map_values
from clsparse_py._operations.spgemm import spgemm
from clsparse_py._operations.spgemm.mask import sums_at
from clsparse_py._operations.spgemm.mask_writes import accumulate_values
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device

__all__ = ["betweenness_centrality"]


@door()
def betweenness_centrality(
    A: Any, *, sources: Any = None, normalized: bool = True, directed: bool = True, batch: int = 64
) -> np.ndarray[Any, Any]:
    """Return each vertex's betweenness centrality: the share of shortest paths through it, summed over pairs of other vertices.

    Parameters
    ----------
    A : sparse array, n x n
        Each stored entry is an edge of length 1, whatever its value. An undirected graph has each edge twice.
    sources : array_like of int, optional
        The vertices where paths begin; by default all.
    normalized : bool
        True: divided by the number of pairs of other vertices, (n - 1) (n - 2).
    directed : bool
        False: paths count in one of both directions; without effect if ``normalized``, as each pair then counts twice.
    batch : int
        Number of sources that are searched from at a time; memory grows in proportion.

    Returns
    -------
    numpy.ndarray, shape (n,)
        float64, or float32 if the device lacks double precision.

    Raises
    ------
    ValueError, TypeError
        A is no square sparse array, a source is no vertex, or ``batch`` is no positive integer.

    Notes
    -----
    Brandes, "A faster algorithm for betweenness centrality". A step forwards is a product under the complement of what was seen,
    a step back one under the frontier before. Forwards the host waits at each level, to learn how many vertices it has, and
    backwards once in all.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.graph.betweenness_centrality(sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    array([0., 1., 0.])
    """
    G = read_graph(A)
    n = G.shape[0]
    batch = require_integer("batch", batch, 1)
    begins = range(n) if sources is None else [require_vertex("sources", source, n) for source in np.asarray(sources).ravel()]
    dtype = np.dtype(np.float64 if describe(G.queue.device).fp64 else np.float32)
    centrality = np.zeros(n, dtype)
    if not G.nnz:
        return centrality
    ones = allocate(G.queue, "lengths of edges", G.nnz, dtype)
    chain = Chain(G.queue)
    chain.fill(ones, 1, G.nnz)
    chain.finish(ones)
    edges = G.with_values(ones)
    for first in range(0, len(begins), batch):
        centrality += _sum_dependencies(edges, list(begins[first : first + batch]))
    if normalized:
        return centrality / ((n - 1) * (n - 2)) if n > 2 else centrality
    return centrality if directed else centrality / 2


def _sum_dependencies(edges: csr_array, sources: list[int]) -> np.ndarray[Any, Any]:
    """Return each vertex's summed Brandes dependencies: the shares of shortest paths from ``sources`` that lead through it."""
    queue, m, n = edges.queue, len(sources), edges.shape[0]
    index = edges.indptr.dtype
    parts = np.asarray(sources, index), np.arange(m + 1, dtype=index)
    columns, begins = (copy_to_device(queue, "sources", part) for part in parts)
    frontier = csr_array.assembled(
        Structure.canonical(queue, (m, n), columns, begins), copy_to_device(queue, "paths", np.ones(m, edges.dtype))
    )
    # A frontier holds the numbers of shortest paths from the sources to a level's vertices, `visited` to all vertices so far.
    levels, visited = [], frontier
    while frontier.nnz:
        levels.append(frontier)
        frontier = spgemm(frontier, edges, mask=visited, complement=True)
        visited = combine("plus", visited, frontier)
    backwards, shares = edges._transposed(), []
    dependencies: cl_array.Array | None = None
    for previous, level in reversed(list(itertools.pairwise(levels))):
        # Brandes' share of a vertex is (1 + dependency) / paths; the previous level's dependency / paths is edges times shares.
        share = map_values(queue, level.data, "reciprocal")
        if dependencies is not None:
            accumulate_values(queue, share, dependencies, "plus")
            accumulate_values(queue, dependencies, level.data, "times")
            shares.append(level.with_values(dependencies))
        dependencies = sums_at(level.with_values(share), backwards, previous, plus_times)
    return np.asarray(vstack(shares).sum(axis=0)) if shares else np.zeros(n, edges.dtype)
