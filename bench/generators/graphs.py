"""Graphs: R-MAT, web-like and other power laws, the butterfly, and boundary maps of simplicial complexes."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

from bench.generators.patterns import Integers, Pattern, first_of_run, from_pairs, from_sorted_keys, symmetric_from_pairs

# Probabilities of the quadrants of R-MAT.
RMAT = (0.57, 0.19, 0.19, 0.05)
# Edges of an R-MAT graph to a vertex, before duplicates are summed.
RMAT_EDGE_FACTOR = 16


def rmat(rng: np.random.Generator, scale: int) -> sp.csr_array:
    """Return the R-MAT graph of 2**scale vertices; edges drawn more than once have their values summed."""
    n_edges = RMAT_EDGE_FACTOR << scale
    # One 16-bit draw picks a quadrant: four times cheaper than a float, and near enough (1/65536) to the probabilities.
    upper_left, upper, but_last = (np.uint16(round(65536 * p)) for p in np.cumsum(RMAT)[:3])
    rows = np.zeros(n_edges, dtype=np.int64)
    columns = np.zeros(n_edges, dtype=np.int64)
    for _ in range(scale):
        draw = rng.integers(65536, size=n_edges, dtype=np.uint16)
        lower = draw >= upper
        right = ((draw >= upper_left) & ~lower) | (draw >= but_last)
        rows = (rows << 1) | lower
        columns = (columns << 1) | right
    keys = (rows << scale) | columns
    keys.sort()
    first = first_of_run(keys)
    values = np.add.reduceat(rng.random(n_edges) + 0.5, np.flatnonzero(first))
    return from_sorted_keys(keys[first], (1 << scale, 1 << scale)).with_values(values)


def power_law_lengths(rng: np.random.Generator, size: int, exponent: float, longest: int) -> Integers:
    """Return ``size`` integers of which a share of k**-exponent is at least k, cut at ``longest``."""
    return np.minimum((1.0 - rng.random(size)) ** (-1.0 / exponent), longest).astype(np.int64)


def webbase(rng: np.random.Generator, size: int) -> Pattern:
    """Return a web-like graph: power-law rows, half of the columns near the diagonal, half towards hubs."""
    lengths = power_law_lengths(rng, size, exponent=1.39, longest=4700)
    rows = np.repeat(np.arange(size, dtype=np.int64), lengths)
    reach = np.repeat(np.maximum(50, 2 * lengths), lengths)
    near = (rows + np.rint((2 * rng.random(rows.size) - 1) * reach).astype(np.int64)) % size
    # The density of the hubs falls with the square root of their number, wherever they stand in the matrix.
    hub = (size * rng.random(rows.size) ** 2).astype(np.int64) * 7_919 % size
    return from_pairs(rows, np.where(rng.random(rows.size) < 0.5, near, hub), (size, size))


def power_law_graph(rng: np.random.Generator, size: int, n_entries: int) -> Pattern:
    """Return an undirected graph of about ``n_entries`` entries whose vertices' degrees follow a power law."""
    n_edges = int(n_entries / 2 * 1.02)
    ends = (size * rng.random((2, n_edges)) ** 1.8).astype(np.int64) * 7_919 % size
    rows, columns = ends[:, ends[0] != ends[1]]
    return symmetric_from_pairs(rows, columns, size, diagonal=False)


def butterfly(order: int) -> Pattern:
    """Return the wrapped butterfly graph: ``order`` * 2**order vertices with four neighbours each."""
    level, word = np.divmod(np.arange(order << order, dtype=np.int64), 1 << order)
    next_level = (level + 1) % order << order
    here = (level << order) | word
    rows = np.concatenate([here, here])
    columns = np.concatenate([next_level | word, next_level | (word ^ (1 << level))])
    return symmetric_from_pairs(rows, columns, here.size, diagonal=False)


def chessboard_boundary(height: int, width: int, dimension: int) -> sp.csr_array:
    """Return the boundary map of a chessboard complex, from its simplices of one dimension to their faces.

    A simplex is a set of ``dimension`` + 1 rooks on a ``height`` x ``width`` board none of which attacks another.
    """
    faces = {face: number for number, face in enumerate(_placements(height, width, dimension))}
    columns = np.array(
        [
            faces[rooks[:left_out] + rooks[left_out + 1 :]]
            for rooks in _placements(height, width, dimension + 1)
            for left_out in range(dimension + 1)
        ],
        dtype=np.int32,
    ).reshape(-1, dimension + 1)
    signs = np.tile((-1.0) ** np.arange(dimension + 1), columns.shape[0])
    indptr = np.arange(columns.shape[0] + 1, dtype=np.int32) * (dimension + 1)
    boundary = sp.csr_array((signs, columns.ravel(), indptr), shape=(columns.shape[0], len(faces)))
    boundary.sort_indices()
    return boundary


def _placements(height: int, width: int, rooks: int) -> list[tuple[tuple[int, int], ...]]:
    """Return all ways to place rooks that do not attack one another, each in the order of its rows."""
    return [
        tuple(zip(rows, columns, strict=True))
        for rows in itertools.combinations(range(height), rooks)
        for columns in itertools.permutations(range(width), rooks)
    ]
