"""Smoothed-aggregation prolongators: what the triple products of algebraic multigrid multiply."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bench.generators.patterns import Floats, Integers

# Weight of the Jacobi smoothing step, times the spectral radius of D^-1 A.
JACOBI = 4.0 / 3.0


def prolongator(matrix: sp.csr_array, rng: np.random.Generator) -> sp.csr_array:
    """Return P = (I - w D^-1 A) T, where T is piecewise constant on distance-2 aggregates."""
    aggregates, n_aggregates = distance_two_aggregates(matrix, rng)
    size = matrix.shape[0]
    weight = 1.0 / np.sqrt(np.bincount(aggregates, minlength=n_aggregates))
    tentative = sp.csr_array((weight[aggregates], aggregates, np.arange(size + 1, dtype=np.int32)), shape=(size, n_aggregates))
    scaled = sp.diags_array(1.0 / _nonzero_diagonal(matrix)).tocsr() @ matrix
    # The largest absolute row sum bounds the spectral radius and, unlike a power iteration, is the same on every machine.
    bound = float(abs(scaled).sum(axis=1).max())
    smoothed = (tentative - (JACOBI / bound) * (scaled @ tentative)).tocsr()
    smoothed.sum_duplicates()
    return smoothed


def _nonzero_diagonal(matrix: sp.csr_array) -> Floats:
    """Return D: a row's absolute sum for a diagonal entry that is zero or missing, 1 for an empty row."""
    diagonal = matrix.diagonal()
    sums = np.asarray(abs(matrix).sum(axis=1))
    return np.where(diagonal != 0, diagonal, np.where(sums != 0, sums, 1.0))


def distance_two_aggregates(matrix: sp.csr_array, rng: np.random.Generator) -> tuple[Integers, int]:
    """Return the number of each row's aggregate, and how many aggregates there are.

    The roots are a maximal set of rows no two of which are within distance 2. A row joins the aggregate of a root next to it,
    or else that of a neighbour.
    """
    graph = sp.csr_array((np.ones(matrix.nnz, dtype=np.int8), matrix.indices, matrix.indptr), shape=matrix.shape) + sp.eye_array(
        matrix.shape[0], dtype=np.int8, format="csr"
    )
    indptr, indices = graph.indptr, graph.indices

    def largest_around(values: Floats) -> Floats:
        return np.maximum.reduceat(values[indices], indptr[:-1])

    undecided, root, excluded = 1.0, 2.0, 0.0
    state = np.full(graph.shape[0], undecided)
    # Each row's draw breaks ties; the state counts first, so a root beats whatever is undecided around it.
    draw = rng.permutation(graph.shape[0]) / graph.shape[0]
    while (state == undecided).any():
        score = state + draw * (state == undecided)
        within_two = largest_around(largest_around(score))
        open_rows = state == undecided
        state[open_rows & (within_two >= root)] = excluded
        state[open_rows & (within_two == score) & (within_two < root)] = root

    roots = np.flatnonzero(state == root)
    label = np.full(graph.shape[0], -1.0)
    label[roots] = np.arange(roots.size)
    for _ in range(2):
        near = largest_around(label)
        label = np.where(label < 0, near, label)
    return label.astype(np.int32), roots.size
