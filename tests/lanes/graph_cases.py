"""Cases of graph algorithms and of sampled products."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from primitive_cases import to_device
from scipy.sparse import csgraph
from spgemm_cases import operand, random_rows
from supposed import describe_as
from values import INDEX_TYPES, numbers, same

from clsparse_py import csr_array, graph, sddmm

Case = partial[None]

PLACES = random_rows((0, 1, 2, 3, 5, 0, 9, 20, 1, 4, 30, 2), 40)
ALIKE = random_rows((5, 4, 5, 3, 5, 5, 1, 5, 5), 40)


def search(index: type[Any]) -> None:
    """Search a graph, count its triangles, and find its components and ranks."""
    result = random_rows((3, 0, 1, 2, 0, 4, 1, 1, 0, 2), 10)
    host = scipy.sparse.csr_array(result + result.T + scipy.sparse.diags_array(np.ones(10)))
    host.sort_indices()
    host = host.astype(np.float32)
    A = operand(host, host.data, index)
    levels, _ = graph.bfs(A, 0)
    far = csgraph.shortest_path(host, unweighted=True, indices=0)
    same(levels, np.where(np.isinf(far), -1, far).astype(np.int32))
    n, labels = graph.connected_components(A)
    wanted, of_scipy = csgraph.connected_components(host, directed=False)
    assert n == wanted
    same(labels, of_scipy)
    dense = (host.toarray() != 0) & ~np.eye(10, dtype=bool)
    assert graph.triangle_count(A) == np.trace(np.linalg.matrix_power(dense.astype(int), 3)) // 6
    assert abs(graph.pagerank(A).sum() - 1) < 1e-5


def sample(dtype: np.dtype[Any], index: type[Any], k: int) -> None:
    """Make a product of dense matrices at some places."""
    sample_at(PLACES, dtype, index, k)


def sample_by_teams(index: type[Any], places: scipy.sparse.csr_array) -> None:
    """Do as `sample`, by the kernel of GPUs that knows how many values a row has."""
    with describe_as(type="gpu"):
        sample_at(places, np.dtype(np.float32), index, 12)


def sample_at(places: scipy.sparse.csr_array, dtype: np.dtype[Any], index: type[Any], k: int) -> None:
    """Make a product of dense matrices at given places."""
    n = places.shape[0]
    X, Y = numbers((n, k), dtype), numbers((40, k), dtype)
    rows = np.repeat(np.arange(n), np.diff(places.indptr))
    parts = np.ones(places.nnz, np.int8), places.indices.astype(index), places.indptr.astype(index)
    M = csr_array(tuple(map(to_device, parts)), shape=places.shape)
    same(sddmm(M, to_device(X), to_device(Y).T).data, (X @ Y.T)[rows, places.indices])


def graph_cases(dtypes: tuple[np.dtype[Any], ...]) -> Iterator[Case]:
    """Index types, and sampled products with dtypes in rotation."""
    for index in INDEX_TYPES:
        yield partial(search, index)
    for i, dtype in enumerate(dtypes):
        yield partial(sample, dtype, INDEX_TYPES[i % 2], (3, 16, 37)[i % 3])
    for index, places in zip(INDEX_TYPES, (PLACES, ALIKE), strict=True):
        yield partial(sample_by_teams, index, places)
