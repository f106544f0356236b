"""
Triangles
=========

How close-knit is a network? A triangle is three nodes that all know each other. With L the part of the graph's matrix below
the diagonal, entry (i, j) of ``L @ L`` counts the paths from i over some k to j; those with an edge (i, j) close a triangle.
The semiring ``plus_pair`` counts without looking at values.
"""

# %%
# Two networks
# ------------
#
# As many nodes and edges each: in one, friends of friends become friends; in the other, edges are at random.

import matplotlib.pyplot as plt
import numpy as np

import clsparse_py as sp

N, NEAR = 4000, 8
rng = np.random.default_rng(0)


def network(p):
    """Return a ring whose nodes know their NEAR next ones, with a share p of the edges led elsewhere (Watts and Strogatz)."""
    start = np.repeat(np.arange(N), NEAR)
    end = (start + np.tile(np.arange(1, NEAR + 1), N)) % N
    end = np.where(rng.random(len(end)) < p, rng.integers(0, N, len(end)), end)
    keep = start != end
    half = sp.coo_array((np.ones(keep.sum()), (start[keep], end[keep])), shape=(N, N)).tocsr()
    half.sum_duplicates()
    return (half + half.T).tocsr() != 0


def triangles(graph):
    """Return how many triangles a graph has, and the share of paths of two edges that are closed."""
    below = sp.tril(graph, k=-1).astype(np.int64).tocsr()
    closed = sp.spgemm(below, below, semiring=sp.plus_pair).multiply(below)
    n_triangles = int(closed.sum())
    degree = graph.astype(np.int64).sum(axis=1)
    return n_triangles, 3 * n_triangles / (degree * (degree - 1) // 2).sum()


# %%
# From order to chance
# --------------------

shares = np.array([0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
found = [triangles(network(p)) for p in shares]
for p, (count, clustering) in zip(shares, found):
    print(f"{p:4.0%} of the edges at random: {count:6d} triangles, clustering {clustering:.3f}")

# %%
# A ring without random edges has a known number: NEAR (NEAR - 1) / 2 a node.

assert found[0][0] == N * NEAR * (NEAR - 1) // 2

# %%
# The picture
# -----------

fig, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.plot(shares, [clustering for _, clustering in found], "o-", color="#0072B2")
axes.set(
    xlabel="share of edges at random",
    ylabel="share of paths that are closed",
    title="Triangles go as edges go astray",
    ylim=(0, None),
)
axes.grid(lw=0.4)
plt.show()
