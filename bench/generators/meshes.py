"""Unstructured meshes: Delaunay triangulations of scattered points with linear elements, and the dual of one."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

from bench.generators.patterns import Floats, Integers, Pattern, symmetric_from_pairs

# Largest distance of a point from the middle of its cell, in cells: enough to make the mesh irregular, little enough to keep
# the number of neighbours in the range that real meshes have.
SCATTER = 0.35

# Longest edge of a simplex that stays, in medians of the simplices' longest edges: inner simplices stay well below.
LONGEST_EDGE = 2.0


def spread(total: int, parts: int) -> Integers:
    """Return ``total`` cut into ``parts`` numbers that differ by at most one."""
    return np.diff(np.arange(parts + 1, dtype=np.int64) * total // parts)


def scatter(rng: np.random.Generator, n_points: int, dimensions: int) -> Floats:
    """Return exactly ``n_points`` points in the unit square or cube, one in each cell of a grid, in the grid's order."""
    per_axis = max(1, round(n_points ** (1 / dimensions)))
    if dimensions == 1:
        return (np.arange(n_points)[:, None] + 0.5 + rng.uniform(-SCATTER, SCATTER, (n_points, 1))) / n_points
    layers = [
        np.column_stack([(layer + 0.5 + rng.uniform(-SCATTER, SCATTER, size)) / per_axis, scatter(rng, size, dimensions - 1)])
        for layer, size in enumerate(spread(n_points, per_axis).tolist())
    ]
    return np.concatenate(layers)


def stiffness(points: Floats, simplices: Integers) -> sp.csr_array:
    """Assemble the Laplacian of linear elements on triangles or tetrahedra."""
    corners = points[simplices]
    edges = corners[:, 1:] - corners[:, :1]
    # The gradients of the barycentric coordinates are the columns of the inverse edge matrix; the first one closes the sum.
    inverse = np.linalg.inv(edges)
    gradients = np.concatenate([-inverse.sum(axis=2, keepdims=True), inverse], axis=2)
    volume = np.abs(np.linalg.det(edges))
    n_corners = simplices.shape[1]
    size = points.shape[0]
    rows, columns, values = [], [], []
    for i, j in itertools.product(range(n_corners), repeat=2):
        rows.append(simplices[:, i])
        columns.append(simplices[:, j])
        values.append(volume * np.einsum("ed,ed->e", gradients[:, :, i], gradients[:, :, j]))
    triples = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    matrix = sp.coo_array(triples, shape=(size, size)).tocsr()
    # Linear elements leave the scale free; this keeps values near one whatever the size of the mesh.
    matrix.data /= matrix.diagonal().mean()
    matrix.sort_indices()
    return matrix


def mesh(rng: np.random.Generator, n_points: int, dimensions: int) -> sp.csr_array:
    """Return the stiffness matrix of a Delaunay mesh of ``n_points`` scattered points."""
    points = scatter(rng, n_points, dimensions)
    return stiffness(points, without_long_edges(points, Delaunay(points).simplices))


def without_long_edges(points: Floats, simplices: Integers) -> Integers:
    """Return the simplices less the slivers along the hull, which reach over many of their neighbours."""
    longest = np.zeros(simplices.shape[0])
    for i, j in itertools.combinations(range(simplices.shape[1]), 2):
        np.maximum(longest, np.linalg.norm(points[simplices[:, i]] - points[simplices[:, j]], axis=1), out=longest)
    return simplices[longest < LONGEST_EDGE * np.median(longest)]


def planar_dual(rng: np.random.Generator, n_points: int) -> Pattern:
    """Return which triangles of a planar Delaunay mesh share an edge."""
    neighbours = Delaunay(scatter(rng, n_points, 2)).neighbors
    triangle, side = np.nonzero(neighbours >= 0)
    other = neighbours[triangle, side]
    once = triangle < other
    return symmetric_from_pairs(triangle[once], other[once], neighbours.shape[0], diagonal=False)
