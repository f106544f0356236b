"""Calls of NetworkX's functions with the backend, beside the same without it: run by `test_networkx_backend` in a child."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from clsparse_py._graph import networkx as networkx_backend

NAME = "clsparse"


def graphs() -> list[Any]:
    named = nx.relabel_nodes(nx.karate_club_graph(), str)
    apart = nx.disjoint_union(nx.cycle_graph(4), nx.star_graph(3))
    return [named, nx.path_graph(7), nx.complete_graph(5), apart, nx.empty_graph(3)]


def same_as_networkx() -> None:
    for G in graphs():
        first = next(iter(G))
        assert nx.triangles(G, backend=NAME) == nx.triangles(G)
        assert nx.triangles(G, first, backend=NAME) == nx.triangles(G, first)
        assert nx.triangles(G, list(G)[:2], backend=NAME) == nx.triangles(G, list(G)[:2])
        assert nx.pagerank(G, max_iter=300, tol=1e-10, backend=NAME) == pytest.approx(nx.pagerank(G, max_iter=300, tol=1e-10))
        assert list(nx.connected_components(G, backend=NAME)) == list(nx.connected_components(G))
        assert nx.number_connected_components(G, backend=NAME) == nx.number_connected_components(G)
        for normalized in (True, False):
            wanted = nx.betweenness_centrality(G, normalized=normalized)
            assert nx.betweenness_centrality(G, normalized=normalized, backend=NAME) == pytest.approx(wanted)
        for k in (2, 3, 4):
            assert nx.utils.graphs_equal(nx.k_truss(G, k, backend=NAME), nx.k_truss(G, k))
        wanted = nx.single_source_shortest_path_length(G, first)
        assert dict(nx.single_source_shortest_path_length(G, first, backend=NAME)) == dict(wanted)


def directed_weighted_graph() -> None:
    G = nx.gnp_random_graph(30, 0.08, seed=3, directed=True)
    for u, v in G.edges:
        G[u][v]["cost"] = 1 + (u + v) % 4
    # NetworkX keeps the converted graph, and hands it over for other weights, too, and for none.
    for weight in ("cost", None, "cost"):
        assert nx.pagerank(G, weight=weight, backend=NAME) == pytest.approx(nx.pagerank(G, weight=weight), rel=1e-4)
    near = nx.single_source_shortest_path_length(G, 4, cutoff=2)
    assert dict(nx.single_source_shortest_path_length(G, 4, cutoff=2, backend=NAME)) == dict(near)
    some = {2: 1.0, 5: 3.0}
    assert nx.pagerank(G, personalization=some, backend=NAME) == pytest.approx(nx.pagerank(G, personalization=some), abs=1e-4)
    assert nx.betweenness_centrality(G, backend=NAME) == pytest.approx(nx.betweenness_centrality(G))
    assert dict(nx.single_source_shortest_path_length(G, 4, backend=NAME)) == dict(nx.single_source_shortest_path_length(G, 4))


def check_refusals() -> None:
    G = nx.path_graph(4)
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.triangles(nx.DiGraph(G), backend=NAME)
    with pytest.raises(nx.NodeNotFound):
        nx.single_source_shortest_path_length(G, 9, backend=NAME)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(G, tol=1e-14, max_iter=1, backend=NAME)
    with pytest.raises(NotImplementedError):
        nx.betweenness_centrality(G, endpoints=True, backend=NAME)
    assert networkx_backend.can_run("pagerank", (nx.MultiGraph(G),), {}) == "multigraphs are not supported"
    assert nx.pagerank(nx.empty_graph(0), backend=NAME) == {}


def check_worth() -> None:
    small, large = nx.path_graph(4), nx.gnm_random_graph(3000, 20_000, seed=2)
    calls = networkx_backend._FUNCTIONS
    assert not [name for name in calls if networkx_backend.should_run(name, (small,), {}) is True]
    worth = {name for name in calls if networkx_backend.should_run(name, (large,), {}) is True}
    assert worth == {"betweenness_centrality", "k_truss", "pagerank", "triangles"}
    with nx.config(backend_priority=[NAME]):
        assert nx.triangles(small) == dict.fromkeys(small, 0)
        assert "__networkx_cache__" not in vars(small) or not small.__networkx_cache__.get("backends")
        nx.triangles(large)
    assert NAME in large.__networkx_cache__["backends"]
    assert networkx_backend.should_run("connected_components", (), {"G": large}) is True


if __name__ == "__main__":
    same_as_networkx()
    directed_weighted_graph()
    check_refusals()
    check_worth()
    print("right")
