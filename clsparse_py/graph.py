"""Graph algorithms on the device.

A graph is a square sparse array, of this package or of SciPy: entry (i, j) is an edge from vertex i to vertex j. An undirected
graph has each edge twice, (i, j) and (j, i). Values count if a function says so; else each stored entry is an edge.

Vectors are NumPy arrays; with ``like`` a device array or a queue they are device arrays on its queue.
"""

from clsparse_py._graph._triangles import k_truss, triangle_count, triangles
from clsparse_py._graph.betweenness import betweenness_centrality
from clsparse_py._graph.components import connected_components
from clsparse_py._graph.ranks import pagerank
from clsparse_py._graph.search import bfs

__all__ = ["betweenness_centrality", "bfs", "connected_components", "k_truss", "pagerank", "triangle_count", "triangles"]
