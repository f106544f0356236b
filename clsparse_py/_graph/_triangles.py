"""Triangles of undirected graphs: products under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._formats.canonical import with_marked
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._graph.kernels import ORIENT, Thresholds
from clsparse_py._graph.operands import deliver, read_graph, require_integer
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.spgemm.mask import sums_at
from clsparse_py._operations.spgemm.mask_writes import apply_mask
from clsparse_py._precision.semiring import plus_pair
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import copy_to_device

__all__ = ["k_truss", "triangle_count", "triangles"]


@door()
def triangle_count(A: Any) -> int:
    """Return the number of triangles of an undirected graph.

    Parameters
    ----------
    A : sparse array, n x n
        Of a symmetric pattern: each edge is there twice. Values and entries on the diagonal do not count.

    Returns
    -------
    int

    Raises
    ------
    ValueError, TypeError
        A is no square sparse array.

    Notes
    -----
    L has each edge in one direction, towards the vertex of higher degree. The sum of ``L @ L`` under the mask L is the number
    of triangles; no other entry of the product is made.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> sp.graph.triangle_count(sp.csr_array(np.ones((4, 4)) - np.eye(4)))
    4
    """
    edges = _orient(read_graph(A))
    if not edges.nnz:
        return 0
    # Products of patterns read no values: the array of columns stands in for the values, as its dtype holds the counts.
    L = edges.with_values(edges.indices)
    return int(L.with_values(sums_at(L, L, L, plus_pair, by_rows=True)).sum())


@door()
def triangles(A: Any, *, like: Any = None) -> Any:
    """Return the number of triangles at each vertex of an undirected graph.

    Parameters
    ----------
    A : sparse array, n x n
        As for `triangle_count`.
    like : pyopencl.array.Array or pyopencl.CommandQueue, optional
        The result is a device array.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array, shape (n,), int64

    Raises
    ------
    ValueError, TypeError
        As for `triangle_count`.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> sp.graph.triangles(sp.csr_array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]))
    array([1, 1, 1, 0])
    """
    counts = _count_triangles(_without_loops(read_graph(A)).structure)
    per_vertex = np.asarray(counts.sum(axis=1)) // 2
    return per_vertex if like is None else deliver(counts.queue, copy_to_device(counts.queue, "triangles", per_vertex), like)


@door()
def k_truss(A: Any, k: int) -> csr_array:
    """Return the k-truss of an undirected graph: the largest subgraph whose edges are in k - 2 or more of its triangles each.

    Parameters
    ----------
    A : sparse array, n x n
        As for `triangle_count`.
    k : int
        At least 2.

    Returns
    -------
    csr_array, n x n
        The entries of A that are left, with their values; none is on the diagonal.

    Raises
    ------
    ValueError, TypeError
        As for `triangle_count`; k is no integer from 2 on.

    Notes
    -----
    Waits for the device once in each round; rounds end when no edge falls away.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    >>> sp.graph.k_truss(A, 3).nnz
    6
    """
    k = require_integer("k", k, 2)
    G = _without_loops(read_graph(A))
    S = G.structure
    while k > 2 and S.indices.size:
        remaining = (_count_triangles(S) > k - 3).structure
        if remaining.indices.size == S.indices.size:
            break
        S = remaining
    data, indices, indptr = apply_mask(G.queue, G.parts, (S.indptr, S.indices), True)
    return csr_array.assembled(Structure.canonical(G.queue, G.shape, indices, indptr), data)


def _count_triangles(S: Structure) -> csr_array:
    """Return a matrix of the number of triangles at each edge of a graph without self-loops; the device is not waited for."""
    # Products of patterns read no values: the array of columns stands in for the values, as its dtype holds the counts.
    edges = Matrix.assembled(S, S.indices)
    return csr_array.assembled(S, sums_at(edges, edges, edges, plus_pair))


def _without_loops(A: csr_array) -> csr_array:
    """Return a graph without the entries on its diagonal."""
    queue, n = A.queue, A.shape[0]
    numbers = copy_to_device(queue, "the diagonal", np.arange(n + 1, dtype=A.indptr.dtype))
    data, indices, indptr = apply_mask(queue, A.parts, (numbers, numbers[:n]), False)
    return csr_array.assembled(Structure.canonical(queue, A.shape, indices, indptr), data)


def _orient(A: csr_array) -> csr_array:
    """Return each edge of an undirected graph once: from the vertex of lower degree or, at equal degrees, lower number."""
    queue, parts, n = A.queue, A.parts, A.nnz
    if not n:
        return A
    _, indices, indptr = parts
    rows = rows_of(queue, indptr, n)
    chain = Chain(queue, *parts, rows)
    work_group = min(Thresholds.of(chain.device).work_group, chain.device.max_work_group)
    built, record = chain.build(ORIENT.record(work_group, indptr.dtype.name))
    marks = allocate(queue, "marks", n, np.uint8)
    groups, sizes = spread(chain.device, n, record.work_group, 64)
    chain.launch(built, groups, *sizes, rows, indices, indptr, marks)
    chain.finish(marks)
    data, indices, indptr = with_marked(queue, parts, marks)
    return csr_array.assembled(Structure.canonical(queue, A.shape, indices, indptr), data)
