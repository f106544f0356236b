"""A backend of NetworkX: ``nx.triangles(G, backend="clsparse")`` runs on the device.

NetworkX finds the backend by an entry point of the package. It converts a graph at the first call, and keeps the converted
graph in the graph's cache.
"""

from clsparse_py._graph.networkx import (
    Graph,
    backend,
    betweenness_centrality,
    can_run,
    connected_components,
    convert_from_nx,
    convert_to_nx,
    get_info,
    k_truss,
    number_connected_components,
    pagerank,
    should_run,
    single_source_shortest_path_length,
    triangles,
)

__all__ = [
    "Graph",
    "backend",
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
