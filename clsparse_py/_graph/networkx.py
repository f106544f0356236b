"""A backend of NetworkX: ``nx.triangles(G, backend="clsparse")`` runs on the device.

NetworkX finds the backend by an entry point of the package, converts a graph at the first call, and caches the converted graph.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.csr import csr_array
from clsparse_py._graph import _triangles, betweenness, components, ranks, search

__all__ = [
    "Graph",
    "betweenness_centrality",
    "can_run",
    "connected_components",
    "convert_from_nx",
    "convert_to_nx",
    "get_info",
    "k_truss",
    "number_connected_components",
    "pagerank",
    "should_run",
    "single_source_shortest_path_length",
    "triangles",
]

#: Functions that this backend has, each with a text for NetworkX's documentation: which calls of it the backend runs.
_FUNCTIONS = {
    "betweenness_centrality": "edges without weights, all sources, without endpoints",
    "connected_components": "undirected graphs",
    "k_truss": "undirected graphs",
    "number_connected_components": "undirected graphs",
    "pagerank": "without nstart and dangling; weights are not negative",
    "single_source_shortest_path_length": "edges of length 1",
    "triangles": "undirected graphs",
}
#: Arguments of NetworkX's functions that this backend does not support, by function.
_REFUSED = {"betweenness_centrality": ("k", "weight", "endpoints"), "pagerank": ("nstart", "dangling")}
#: By function: least edges of a graph with which this backend's call is faster than NetworkX's; True: with the graph's
#: conversion to the backend, False: only once the graph is converted. Measured: random graphs of four edges a node, Intel Xeon
#: (family 6, model 207), Intel's runtime 2026.22, 2026-11-26, ms of the call + of the conversion (of NetworkX's call): with
#: 4,000 edges `triangles` 1.0 + 1.7 (10), `pagerank` 1.4 + 1.7 (57), `k_truss` 48 + 1.7 (95); with 40,000 edges
#: `connected_components` 3.3 + 68 (46).
_LEAST_EDGES = {
    "betweenness_centrality": (1_000, True),
    "connected_components": (10_000, False),
    "k_truss": (4_000, True),
    "number_connected_components": (10_000, False),
    "pagerank": (2_000, True),
    "single_source_shortest_path_length": (100_000, False),
    "triangles": (2_000, True),
}


class Graph:
    """A graph of NetworkX with its adjacency matrix on the device.

    Attributes
    ----------
    original : networkx.Graph
    nodes : list
        In the order of the rows of the matrix.
    numbers : dict
        The row of each node.
    weight : str or None
        The attribute of edges that is asked for first; None: edges count as 1.
    """

    __networkx_backend__ = "clsparse"

    def __init__(self, original: Any, weight: str | None) -> None:
        self.original, self.weight = original, weight
        self.nodes = list(original)
        self.numbers = {node: number for number, node in enumerate(self.nodes)}
        self._matrices: dict[str | None, csr_array] = {}
        self.weighted(weight)

    @property
    def matrix(self) -> csr_array:
        """The adjacency matrix that the graph's conversion made, for functions that read its structure and no values."""
        return self.weighted(self.weight)

    def weighted(self, weight: str | None) -> csr_array:
        """Return the graph's adjacency matrix, whose entry (i, j) is the edge's attribute ``weight`` or, without one, 1.

        NetworkX keeps a graph that it converted, and hands it over for other attributes, too, and for none.
        """
        if weight not in self._matrices:
            # NetworkX's own conversion of a graph to a matrix takes three times as long, and would be dispatched to this backend.
            rows = [neighbours for _, neighbours in self.original.adjacency()]
            indptr = np.cumsum([0, *map(len, rows)])
            indices = np.fromiter(map(self.numbers.__getitem__, itertools.chain.from_iterable(rows)), np.int32, indptr[-1])
            if weight is None:
                values = np.ones(indices.size, np.int8)
            else:
                edges = (edge for neighbours in rows for edge in neighbours.values())
                values = np.fromiter((edge.get(weight, 1) for edge in edges), np.float64, indices.size)
            matrix = scipy.sparse.csr_array((values, indices, indptr), shape=(len(rows), len(rows)))
            matrix.sort_indices()
            self._matrices[weight] = csr_array(matrix)
        return self._matrices[weight]

    def is_directed(self) -> bool:
        """Return whether the graph's edges have a direction."""
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        """Return whether the graph may have several edges from one node to another."""
        return bool(self.original.is_multigraph())

    def named(self, values: Iterable[Any]) -> dict[Any, Any]:
        """Return values of the graph's nodes, given in the order of the matrix's rows, as a dict by node."""
        return dict(zip(self.nodes, values, strict=True))

    def number_of(self, node: Any) -> int:
        """Return the row of a node in the adjacency matrix.

        Raises
        ------
        networkx.NodeNotFound
            The graph has no such node.
        """
        try:
            return self.numbers[node]
        except (KeyError, TypeError):
            import networkx as nx

            raise nx.NodeNotFound(f"Node {node} is not in the graph") from None


def convert_from_nx(G: Any, *, edge_attrs: Any = None, **_: Any) -> Graph:
    """Return a NetworkX graph as a `Graph` on the default device; called by NetworkX."""
    import networkx as nx

    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("multigraphs are not supported by the backend clsparse")
    return Graph(G, next(iter(edge_attrs), None) if edge_attrs else None)


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Return a backend's result as NetworkX expects it: of a `Graph` the original graph, others unchanged; called by NetworkX."""
    return result.original if isinstance(result, Graph) else result


def can_run(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool | str:
    """Return whether the backend can run a call of a NetworkX function, or the reason why not; called by NetworkX."""
    for option in _REFUSED.get(name, ()):
        if (value := named.get(option)) is not None and value is not False:
            return f"{option} is not supported"
    G = arguments[0] if arguments else named.get("G")
    return "multigraphs are not supported" if G is not None and G.is_multigraph() else True


def should_run(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool | str:
    """Return whether the backend runs a call faster than NetworkX, or the reason why not; called before a graph's conversion."""
    G = arguments[0] if arguments else named["G"]
    least, is_worth_converting = _LEAST_EDGES[name]
    if isinstance(G, Graph):
        return True
    if G.number_of_edges() < least:
        return f"with fewer than {least:,} edges NetworkX takes less time"
    is_converted = "clsparse" in getattr(G, "__networkx_cache__", {}).get("backends", {})
    return is_worth_converting or is_converted or "to convert the graph takes longer than NetworkX's own function"


def _require_none(**named: Any) -> None:
    """Raise NotImplementedError if an argument is set that the backend does not support: NetworkX takes another backend then."""
    for name, value in named.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"{name}: is not supported by the backend clsparse")


def triangles(G: Graph, nodes: Any = None) -> Any:
    """Return the number of triangles of each node, of each in ``nodes``, or of one node, as `networkx.triangles`."""
    counts = _triangles.triangles(G.matrix).tolist()
    if nodes is None:
        return G.named(counts)
    try:
        if nodes in G.numbers:
            return counts[G.numbers[nodes]]
    except TypeError:
        pass  # an iterable of nodes, which is not hashable
    return {node: counts[G.numbers[node]] for node in nodes if node in G.numbers}


def k_truss(G: Graph, k: int) -> Any:
    """Return the k-truss of a graph, as `networkx.k_truss`."""
    import networkx as nx

    if nx.number_of_selfloops(G.original):
        raise nx.NetworkXNotImplemented("Input graph has self loops, with which there is no k-truss")
    truss = _triangles.k_truss(G.matrix, max(int(k), 2)).get().tocoo()
    edges = ((G.nodes[i], G.nodes[j]) for i, j in zip(truss.row.tolist(), truss.col.tolist(), strict=True))
    return G.original.edge_subgraph(edges).copy()


def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Any = None,
    weight: str | None = "weight",
    dangling: Any = None,
) -> dict[Any, float]:
    """Return the PageRank of all nodes, as `networkx.pagerank`."""
    import networkx as nx

    _require_none(nstart=nstart, dangling=dangling)
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    if not G.nodes:
        return {}
    begin = None
    if personalization is not None:
        begin = np.array([personalization.get(node, 0) for node in G.nodes], float)
        if not begin.sum():
            raise ZeroDivisionError("personalization: is zero for all nodes")
    try:
        rank_values = ranks.pagerank(G.weighted(weight), alpha, personalization=begin, tol=tol, max_iter=max_iter)
    except RuntimeError:
        raise nx.PowerIterationFailedConvergence(max_iter) from None
    return G.named(rank_values.tolist())


def connected_components(G: Graph) -> Iterator[set[Any]]:
    """Iterate over the sets of nodes of the connected components, as `networkx.connected_components`."""
    n, labels = components.connected_components(G.matrix)
    members: list[set[Any]] = [set() for _ in range(n)]
    for node, label in zip(G.nodes, labels.tolist(), strict=True):
        members[label].add(node)
    yield from members


def number_connected_components(G: Graph) -> int:
    """Return the number of a graph's connected components, as `networkx.number_connected_components`."""
    return components.connected_components(G.matrix)[0]


def betweenness_centrality(
    G: Graph,
    k: Any = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,  # noqa: ARG001 - of k
) -> dict[Any, float]:
    """Return the betweenness centrality of all nodes, as `networkx.betweenness_centrality`."""
    _require_none(k=k, weight=weight, endpoints=endpoints)
    return G.named(betweenness.betweenness_centrality(G.matrix, normalized=normalized, directed=G.is_directed()).tolist())


def single_source_shortest_path_length(G: Graph, source: Any, cutoff: Any = None) -> dict[Any, int]:
    """Return nodes' distances, in edges, from a source, nearest first, as `networkx.single_source_shortest_path_length`."""
    levels, _ = search.bfs(G.matrix, G.number_of(source))
    reached = np.flatnonzero((levels >= 0) & (levels <= (np.inf if cutoff is None else cutoff)))
    order = reached[np.argsort(levels[reached], kind="stable")]
    return {G.nodes[number]: int(levels[number]) for number in order}


def get_info() -> dict[str, Any]:
    """Return the backend's entry in NetworkX's list of backends."""
    return {
        "backend_name": "clsparse",
        "project": "clsparse_py",
        "package": "clsparse_py",
        "short_summary": "Graph algorithms on any OpenCL device.",
        "functions": {name: {"additional_docs": text} for name, text in _FUNCTIONS.items()},
    }


#: The backend that the package's entry point for NetworkX names: this module, which has the functions.
backend = sys.modules[__name__]
