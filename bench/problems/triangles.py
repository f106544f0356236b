"""Triangles of a graph: how many there are, from a matrix's pattern made symmetric and without its diagonal."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bench.problems.base import ExactProblem
from bench.problems.matrices import MatrixProblem, load

OPERATION = "triangles"
#: Entries of L @ L that the reference makes at a time, about.
_PART = 1 << 24


@dataclass(frozen=True, eq=False)
class Triangles(MatrixProblem, ExactProblem):
    """The number of triangles, one 64-bit integer; the reference is SciPy's, of parts of L @ L.

    Attributes
    ----------
    edges
        L: each edge once, towards the vertex of higher degree.
    ordered
        The same with vertices by degree, so that it is upper triangular.
    """

    edges: sp.csr_array
    ordered: sp.csr_array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of the graph's structure: no count reads less."""
        return int(self.matrix.indptr.nbytes + self.matrix.indices.nbytes)


def make(name: str, dtype: str) -> Triangles:
    """Load a matrix, make a graph of it and count its triangles with SciPy."""
    pattern = load(name).astype(bool)
    n = min(pattern.shape)
    rows, columns = (part.astype(np.int32) for part in pattern[:n, :n].tocoo().coords)
    kept = rows != columns
    rows, columns = (np.concatenate(pair)[np.tile(kept, 2)] for pair in ((rows, columns), (columns, rows)))
    graph = _ones(rows, columns, n)
    degrees = np.diff(graph.indptr)
    rows, columns = (part.astype(np.int32) for part in graph.tocoo().coords)
    place = np.empty(n, np.int32)
    place[np.argsort(degrees, kind="stable")] = np.arange(n, dtype=np.int32)
    upwards = place[rows] < place[columns]
    rows, columns = rows[upwards], columns[upwards]
    edges = _ones(rows, columns, n)
    count = np.array([_count(edges)], np.int64)
    return Triangles(name, OPERATION, dtype, (count,), graph.astype(dtype), edges, _ones(place[rows], place[columns], n))


def _ones(rows: np.ndarray, columns: np.ndarray, n: int) -> sp.csr_array:
    """Return a pattern with 32-bit indices, in canonical format."""
    result = sp.coo_array((np.ones(rows.size, np.int32), (rows, columns)), shape=(n, n)).tocsr()
    result.sort_indices()
    result.data[:] = 1
    return result


def _count(edges: sp.csr_array) -> int:
    """Return the sum of L @ L at L's places, some rows at a time."""
    products = np.concatenate(([0], np.cumsum(np.diff(edges.indptr)[edges.indices])))[edges.indptr]
    cuts = np.unique(np.searchsorted(products, np.arange(0, products[-1] + _PART, _PART)).clip(max=edges.shape[0]))
    parts = (edges[first:last] for first, last in itertools.pairwise(cuts))
    return sum(int((part @ edges).multiply(part).sum()) for part in parts)
