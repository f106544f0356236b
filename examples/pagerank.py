"""
PageRank
========

Who matters in a network: the share of time that a walker spends at each node who follows links at random and jumps anywhere
now and then. The graph is real: Zachary's karate club, which comes with the package, who met whom outside of the club before
it split.

Each round is one product ``A @ x`` with a matrix and vectors on the device.
"""

# %%
# The graph
# ---------
#
# Column j of the matrix of transitions has the chances to go from j to each neighbour.

import importlib.resources

import matplotlib.pyplot as plt
import numpy as np
import scipy.io
from pyopencl import array as cl_array

import clsparse_py as sp

club = importlib.resources.files("clsparse_py") / "samples" / "karate.mtx.gz"
graph = sp.csr_array(scipy.io.mmread(str(club)), dtype=np.float64)
n = graph.shape[0]
transitions = (graph / graph.sum(axis=0)).tocsr()
print(repr(transitions))

# %%
# Rounds
# ------
#
# Vectors stay on the device; the only number that the host reads is how much a round changed.

DAMPING = 0.85
rank = cl_array.to_device(graph.queue, np.full(n, 1 / n))
changes = []
while not changes or changes[-1] > 1e-12:
    new = DAMPING * (transitions @ rank) + (1 - DAMPING) / n
    changes.append(float(cl_array.sum(abs(new - rank)).get()))
    rank = new
ranks = rank.get()
print(f"{len(changes)} rounds; the ranks sum to {ranks.sum():.6f}")

# %%
# The same from a plain loop of NumPy:

dense = graph.toarray() / graph.toarray().sum(axis=0)
expected = np.linalg.solve(np.eye(n) - DAMPING * dense, np.full(n, (1 - DAMPING) / n))
assert np.allclose(ranks, expected)

# %%
# The picture
# -----------
#
# Nodes 0 and 33 are the instructor and the president, around whom the club split.

host = graph.get().tocoo()
_, vectors = np.linalg.eigh(np.diag(graph.sum(axis=0)) - graph.toarray())
around = (
    2 * np.pi * np.argsort(np.argsort(vectors[:, 1])) / n
)  # around a circle, in the order of the Laplacian's second eigenvector
x, y = np.sin(around), np.cos(around)

fig, axes = plt.subplots(figsize=(6, 6), layout="constrained")
axes.plot(x[[host.row, host.col]], y[[host.row, host.col]], color="0.8", lw=0.6, zorder=1)
axes.scatter(x, y, s=9000 * ranks, color="#56B4E9", edgecolor="black", zorder=2)
for node in np.argsort(ranks)[-5:]:
    axes.text(x[node], y[node], str(node), ha="center", va="center", zorder=3)
axes.set_title("The area of a node is its rank; the five largest are numbered")
axes.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
axes.set_axis_off()
plt.show()
