"""Graph algorithms beside NetworkX's and SciPy's."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array
from scipy.sparse import csgraph

from clsparse_py import csr_array, graph
from clsparse_py._build.plain import are_plain
from clsparse_py._ground.errors import BuildError
from clsparse_py._run.launch import Chain


def undirected_graph(seed: int = 0, n: int = 60, p: float = 0.12) -> nx.Graph:
    result = nx.gnp_random_graph(n, p, seed=seed)
    result.add_edge(3, 3)
    return result


def directed_graph(seed: int = 1) -> nx.DiGraph:
    return nx.gnp_random_graph(60, 0.03, seed=seed, directed=True)


def matrix(of: Any, queue: cl.CommandQueue, dtype: Any = float) -> csr_array:
    return csr_array(nx.to_scipy_sparse_array(of, format="csr", dtype=dtype, weight=None), queue=queue)


def values(result: dict[Any, Any]) -> list[Any]:
    return list(result.values())


def test_triangles_and_trusses(queue: cl.CommandQueue) -> None:
    for seed in range(2):
        G = undirected_graph(seed)
        A = matrix(G, queue, (np.int32, bool)[seed])
        G.remove_edge(3, 3)
        wanted = values(nx.triangles(G))
        assert graph.triangles(A).tolist() == wanted
        assert graph.triangle_count(A) == sum(wanted) // 3
        assert graph.triangle_count(A.get()) == sum(wanted) // 3
        on_device = graph.triangles(A, like=queue)
        assert isinstance(on_device, cl_array.Array)
        assert on_device.get().tolist() == wanted
        for k in (2, 3, 4, 6):
            result = graph.k_truss(A, k)
            truss = nx.k_truss(G, k)
            edges = set(map(frozenset, truss.edges))
            host = result.get().tocoo()
            assert set(map(frozenset, zip(host.row.tolist(), host.col.tolist(), strict=True))) == edges
            assert result.dtype == A.dtype
    assert graph.triangle_count(csr_array((5, 5), queue=queue)) == 0
    assert graph.triangle_count(csr_array((0, 0), queue=queue)) == 0


@pytest.mark.refusals
def test_where_kernels_are_refused(queue: cl.CommandQueue) -> None:
    G = undirected_graph()
    A = matrix(G, queue)
    components, labels = graph.connected_components(A)
    n_triangles, of_each, shares = graph.triangle_count(A), graph.triangles(A), graph.betweenness_centrality(A)
    refusal, takes_plain = BuildError("refused", log="", parameters=None, source=None), [True]

    def build(self: Chain, parameters: Any, real: Any = Chain.build) -> Any:
        if (parameters.template.startswith("graph/") or "masked" in parameters.template) and not (takes_plain[0] and are_plain()):
            raise refusal
        return real(self, parameters)

    with patch.object(Chain, "build", build):
        assert graph.triangle_count(A) == n_triangles
        np.testing.assert_array_equal(graph.triangles(A), of_each)
        np.testing.assert_allclose(graph.betweenness_centrality(A), shares)
        for takes_plain[0] in (True, False):
            for directed in (True, False):
                assert_search(A, *graph.bfs(A, 7, directed=directed), 7, directed=directed)
            assert isinstance(graph.bfs(A, 7, like=queue)[0], cl_array.Array)
            assert graph.connected_components(A)[0] == components
            np.testing.assert_array_equal(graph.connected_components(A)[1], labels)
        with pytest.raises(BuildError, match="refused"):
            graph.triangle_count(A)


def assert_search(A: csr_array, levels: np.ndarray, parents: np.ndarray, source: int, *, directed: bool) -> None:
    host = A.get()
    far = csgraph.shortest_path(host, unweighted=True, indices=source, directed=directed)
    np.testing.assert_array_equal(levels, np.where(np.isinf(far), -1, far))
    assert levels.dtype == parents.dtype == np.int32
    assert levels[source] == 0
    assert parents[source] == source
    dense = host.toarray() != 0
    dense = dense if directed else dense | dense.T
    for v in np.flatnonzero(levels > 0):
        assert levels[parents[v]] == levels[v] - 1
        assert dense[parents[v], v]
    assert (parents[levels < 0] == -1).all()


def test_breadth_first_search(queue: cl.CommandQueue) -> None:
    path = scipy.sparse.diags_array([np.ones(29)], offsets=[1], shape=(30, 30)).tocsr()
    for A in (matrix(directed_graph(), queue), matrix(undirected_graph(), queue), csr_array(path, queue=queue)):
        for is_directed in (True, False):
            assert_search(A, *graph.bfs(A, 5, directed=is_directed), 5, directed=is_directed)
    levels, _ = graph.bfs(A, 5, like=queue)
    assert isinstance(levels, cl_array.Array)
    wide = csr_array(
        tuple(
            cl_array.to_device(queue, part) for part in (path.data, path.indices.astype(np.int64), path.indptr.astype(np.int64))
        ),
        shape=(30, 30),
    )
    np.testing.assert_array_equal(graph.bfs(wide, 5)[0], levels.get())


def test_connected_components(queue: cl.CommandQueue) -> None:
    for host in (
        matrix(directed_graph(), queue).get(),
        scipy.sparse.diags_array([np.ones(500)], offsets=[1], shape=(501, 501)).tocsr(),
        scipy.sparse.csr_array((7, 7)),
    ):
        n, labels = graph.connected_components(csr_array(host, queue=queue))
        wanted, of_scipy = csgraph.connected_components(host, directed=False)
        assert n == wanted
        np.testing.assert_array_equal(labels, of_scipy)
    assert graph.connected_components(csr_array((0, 0), queue=queue))[0] == 0


def test_pagerank(queue: cl.CommandQueue) -> None:
    for G in (directed_graph(), undirected_graph()):
        for u, v in G.edges:
            G[u][v]["weight"] = 1 + (u + 2 * v) % 5
        A = csr_array(nx.to_scipy_sparse_array(G, format="csr", dtype=float), queue=queue)
        np.testing.assert_allclose(graph.pagerank(A, tol=1e-10), values(nx.pagerank(G, tol=1e-10)), rtol=1e-6)
        begin = np.arange(60.0)
        wanted = values(nx.pagerank(G, 0.6, personalization=dict(enumerate(begin)), tol=1e-10))
        np.testing.assert_allclose(graph.pagerank(A, 0.6, personalization=begin, tol=1e-10), wanted, rtol=1e-6)
    single = graph.pagerank(A.astype(np.float32), like=queue)
    assert single.dtype == np.float32
    assert single.get().sum() == pytest.approx(1, abs=1e-4)
    with pytest.raises(RuntimeError, match=r"^max_iter: ranks still change"):
        graph.pagerank(A, tol=1e-15, max_iter=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pagerank_ends_where_ranks_change_by_rounding_alone(queue: cl.CommandQueue, dtype: str) -> None:
    for weights in ([[0, 288.24573], [1257.4843, 632.14587]], [[1, 0], [0, 0]], np.arange(1, 26).reshape(5, 5)):
        W = np.array(weights, float)
        n, out = W.shape[0], W.sum(axis=1, keepdims=True)
        steps = np.where(out > 0, W / np.where(out > 0, out, 1), 1 / n)
        wanted = np.linalg.solve(np.eye(n) - 0.85 * steps.T, np.full(n, 0.15 / n))
        result = graph.pagerank(csr_array(W.astype(dtype), queue=queue), tol=0, max_iter=300)
        np.testing.assert_allclose(result, wanted, rtol=100 * np.finfo(dtype).eps)


def test_betweenness_centrality(queue: cl.CommandQueue) -> None:
    for G, is_directed in ((undirected_graph(), False), (directed_graph(), True)):
        A = matrix(G, queue)
        for normalized in (True, False):
            wanted = values(nx.betweenness_centrality(G, normalized=normalized))
            result = graph.betweenness_centrality(A, normalized=normalized, directed=is_directed, batch=25)
            np.testing.assert_allclose(result, wanted, atol=1e-12)
    some = graph.betweenness_centrality(A, sources=[3, 8], normalized=False)
    assert (some <= graph.betweenness_centrality(A, normalized=False) + 1e-12).all()
    assert graph.betweenness_centrality(csr_array((4, 4), queue=queue)).tolist() == [0] * 4


def test_betweenness_waits_at_each_level_forwards_and_once_backwards(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, reads, copy = matrix(nx.path_graph(13), queue), [0], cl.enqueue_copy
    assert A.has_canonical_format

    def copied(of: cl.CommandQueue, to: Any, source: Any, **named: Any) -> Any:
        reads[0] += isinstance(to, np.ndarray)
        return copy(of, to, source, **named)

    monkeypatch.setattr(cl, "enqueue_copy", copied)
    graph.betweenness_centrality(A, sources=[0])
    assert reads[0] <= 4 * 13 + 1


def test_bad_input(queue: cl.CommandQueue) -> None:
    A, wide = csr_array(np.eye(3), queue=queue), csr_array((3, 4), queue=queue)
    for function, more in (
        (graph.triangle_count, ()), (graph.triangles, ()), (graph.k_truss, (3,)), (graph.pagerank, ()), (graph.bfs, (0,)),
        (graph.connected_components, ()), (graph.betweenness_centrality, ()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^A: must be square, has shape \(3, 4\)"):
            function(wide, *more)
        with pytest.raises(TypeError, match=r"^A: must be a sparse array"):
            function(np.eye(3), *more)
    context = cl.Context([queue.device])
    for error, message, call in (
        (ValueError, r"^k: must be at least 2, is 1", lambda: graph.k_truss(A, 1)),
        (TypeError, r"^k: must be an integer, is float", lambda: graph.k_truss(A, 3.0)),
        (ValueError, r"^source: must lie in \[0, 3\), is 3", lambda: graph.bfs(A, 3)),
        (TypeError, r"^source: must be an integer", lambda: graph.bfs(A, 1.0)),
        (ValueError, r"^alpha: must lie in", lambda: graph.pagerank(A, 2)),
        (ValueError, r"^max_iter: must be at least 1", lambda: graph.pagerank(A, max_iter=0)),
        (ValueError, r"^A: weights must not be negative", lambda: graph.pagerank(-A)),
        (ValueError, r"^A: weights .* must be finite .* row 0 add up to inf", lambda: graph.pagerank(A * np.inf)),
        (ValueError, r"^A: weights .* must be finite .* row 0 add up to nan", lambda: graph.pagerank(A * np.nan)),
        (TypeError, r"^A: weights must be real", lambda: graph.pagerank(A.astype(np.complex64))),
        (ValueError, r"^personalization: must have shape", lambda: graph.pagerank(A, personalization=[1, 2])),
        (ValueError, r"^personalization: must be numbers", lambda: graph.pagerank(A, personalization=[0, 0, 0])),
        (ValueError, r"^sources: must lie in", lambda: graph.betweenness_centrality(A, sources=[5])),
        (ValueError, r"^batch: must be at least 1", lambda: graph.betweenness_centrality(A, batch=0)),
        (TypeError, r"^like: must be a device array", lambda: graph.bfs(A, 0, like=np.zeros(3))),
        (ValueError, r"^like: lives in another context", lambda: graph.bfs(A, 0, like=cl.CommandQueue(context))),
    ):
        with pytest.raises(error, match=message):
            call()
