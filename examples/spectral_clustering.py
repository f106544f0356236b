"""
Spectral clustering, with scikit-learn
======================================

Two half moons that no straight line parts. The graph of nearest neighbours comes from scikit-learn, the eigenvectors of its
Laplacian from SciPy's ``lobpcg`` and ``eigsh``, whose products run on the device, and k-means ends it.
"""

# %%
# The graph
# ---------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph

import clsparse_py as sp

points, truth = make_moons(2000, noise=0.06, random_state=0)
graph = sp.csr_array(kneighbors_graph(points, 12))
graph = graph.maximum(graph.T)  # neighbours of each other
degree = graph.sum(axis=1)

# %%
# Eigenvectors
# ------------
#
# The largest eigenvalues of the normalised adjacency are the smallest of the Laplacian.

scale = sp.diags_array(1 / np.sqrt(degree))
normalised = (scale @ graph @ scale).tocsr()
values, vectors = sp.linalg.eigsh(normalised, k=2, which="LA", v0=np.ones(len(points)))
print("eigenvalues", values)
residual = np.linalg.norm(normalised @ vectors - vectors * values)
assert residual < 1e-8

# %%
# Clusters
# --------

found = KMeans(2, n_init=10, random_state=0).fit_predict(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
straight = KMeans(2, n_init=10, random_state=0).fit_predict(points)


def share_right(labels):
    """Return the share of points whose cluster is the moon that they are of."""
    right = (labels == truth).mean()
    return max(right, 1 - right)


print(f"right: {share_right(found):.1%} by the graph, {share_right(straight):.1%} by distance alone")
assert share_right(found) > 0.95

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharex=True, sharey=True)
for ax, labels, title in ((axes[0], straight, "k-means of the points"), (axes[1], found, "k-means of the eigenvectors")):
    for label, colour, marker in ((0, "#0072B2", "o"), (1, "#E69F00", "^")):
        ax.scatter(*points[labels == label].T, s=8, color=colour, marker=marker)
    ax.set_title(f"{title}: {share_right(labels):.0%} right")
plt.show()
