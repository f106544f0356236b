"""Graph algorithms on sparse arrays, under the names of `scipy.sparse.csgraph`: all run on the host, by SciPy.

Sparse arrays of the device are copied to the host, and sparse results back to it; dense results are NumPy arrays.

Examples
--------
>>> import clsparse_py as sp
>>> graph = sp.csr_array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
>>> n_components, labels = sp.csgraph.connected_components(graph)
>>> n_components
2
>>> sp.csgraph.dijkstra(graph, indices=0)
array([ 0.,  1., inf])
"""

from __future__ import annotations

import scipy.sparse.csgraph
from scipy.sparse.csgraph import NegativeCycleError

from clsparse_py._arrays.hosted import wrap_scipy

#: The result of each function of `scipy.sparse.csgraph` in words, of which docstrings are made, by the function's name.
_FUNCTIONS = {
    "bellman_ford": "shortest paths, with weights of any sign",
    "breadth_first_order": "the nodes in the order of a breadth-first search",
    "breadth_first_tree": "the tree of a breadth-first search",
    "connected_components": "how many connected components there are, and the one of each node",
    "construct_dist_matrix": "the distances that predecessors stand for",
    "csgraph_from_dense": "the graph of a dense array",
    "csgraph_from_masked": "the graph of a masked array",
    "csgraph_masked_from_dense": "the masked array of a dense graph",
    "csgraph_to_dense": "a graph as a dense array",
    "csgraph_to_masked": "a graph as a masked array",
    "depth_first_order": "the nodes in the order of a depth-first search",
    "depth_first_tree": "the tree of a depth-first search",
    "dijkstra": "shortest paths, with weights that are not negative",
    "floyd_warshall": "shortest paths between all nodes",
    "johnson": "shortest paths, with weights of any sign, between all nodes",
    "laplacian": "the Laplacian of a graph",
    "maximum_bipartite_matching": "a largest matching of a bipartite graph",
    "maximum_flow": "the largest flow between two nodes",
    "min_weight_full_bipartite_matching": "the lightest full matching of a bipartite graph",
    "minimum_spanning_tree": "a lightest spanning tree",
    "reconstruct_path": "the tree of shortest paths that predecessors stand for",
    "reverse_cuthill_mckee": "an order of the nodes that makes the bandwidth small",
    "shortest_path": "shortest paths, by the method that suits the graph",
    "structural_rank": "the largest rank that an array of this pattern can have",
    "yen": "the k shortest paths between two nodes",
}

# Older versions of SciPy lack some functions, such as `yen`.
for _name, _does in _FUNCTIONS.items():
    if hasattr(scipy.sparse.csgraph, _name):
        globals()[_name] = wrap_scipy(getattr(scipy.sparse.csgraph, _name), _does)

__all__ = ["NegativeCycleError", *(name for name in _FUNCTIONS if name in globals())]
