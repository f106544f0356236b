"""Matrices of regular grids: finite differences, finite elements, beams, shells and lattices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bench.generators.patterns import Pattern, blown_up, from_pairs, offsets_of, symmetric_from_pairs

Offset = tuple[int, ...]


def star(dimensions: int) -> list[Offset]:
    """Return the point itself and its two neighbours along each axis: the 5- and 7-point stencils."""
    return [o for o in box((1,) * dimensions) if sum(map(abs, o)) <= 1]


def box(half_widths: Sequence[int]) -> list[Offset]:
    """Return all offsets of at most ``half_widths`` along each axis: the 9- and 27-point stencils and wider ones."""
    return list(itertools.product(*(range(-w, w + 1) for w in half_widths)))


def ball(squared_radius: int) -> list[Offset]:
    """Return the offsets of a 3-D lattice within a sphere."""
    reach = math.isqrt(squared_radius)
    return [o for o in box((reach,) * 3) if sum(c * c for c in o) <= squared_radius]


def ball_97() -> list[Offset]:
    """Return the 97-point stencil of a real-space quantum chemistry code: a ball and four points beyond its surface."""
    return [*ball(8), (3, 0, 0), (-3, 0, 0), (0, 3, 0), (0, -3, 0)]


def grid(dimensions: Sequence[int], stencil: Iterable[Offset], *, periodic: bool = False) -> Pattern:
    """Couple every point of a grid with the points that a stencil reaches.

    Parameters
    ----------
    dimensions
        Points along each axis; the last axis runs fastest.
    stencil
        Offsets, one number an axis.
    periodic
        Whether the grid closes on itself; without, what a stencil reaches outside the grid is left out.
    """
    size = math.prod(dimensions)
    strides = [math.prod(dimensions[axis + 1 :]) for axis in range(len(dimensions))]
    # In the order of the linear offset, so that the columns of an interior row come out sorted.
    offsets = sorted(stencil, key=lambda offset: sum(o * s for o, s in zip(offset, strides, strict=True)))
    points = np.arange(size, dtype=np.int32)
    coordinates = [points // stride % extent for stride, extent in zip(strides, dimensions, strict=True)]
    columns = np.zeros((size, len(offsets)), dtype=np.int32)
    inside = np.ones((size, len(offsets)), dtype=bool)
    for k, offset in enumerate(offsets):
        for coordinate, step, stride, extent in zip(coordinates, offset, strides, dimensions, strict=True):
            moved = coordinate + np.int32(step)
            if periodic:
                moved %= extent
            elif step:
                inside[:, k] &= (moved >= 0) & (moved < extent)
            columns[:, k] += moved * np.int32(stride)
    if periodic:
        columns.sort(axis=1)
    return Pattern(offsets_of(inside.sum(axis=1)), columns[inside], (size, size))


def laplacian(pattern: Pattern, centre: float) -> sp.csr_array:
    """Return ``pattern`` with ``centre`` on its diagonal and -1 elsewhere."""
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int32), np.diff(pattern.indptr))
    return pattern.with_values(np.where(rows == pattern.indices, centre, -1.0))


def fd2d5(n: int) -> sp.csr_array:
    """Poisson's equation on an n x n grid by finite differences (Dalton 1a)."""
    return laplacian(grid((n, n), star(2)), 4.0)


def fe2d9(n: int) -> sp.csr_array:
    """Poisson's equation on an n x n grid by bilinear elements (Dalton 1b)."""
    return laplacian(grid((n, n), box((1, 1))), 8.0)


def fd3d7(n: int) -> sp.csr_array:
    """Poisson's equation on an n x n x n grid by finite differences (Dalton 2a)."""
    return laplacian(grid((n, n, n), star(3)), 6.0)


def fe3d27(n: int) -> sp.csr_array:
    """Poisson's equation on an n x n x n grid by trilinear elements (Dalton 2b)."""
    return laplacian(grid((n, n, n), box((1, 1, 1))), 26.0)


def biharmonic(n: int) -> sp.csr_array:
    """Biharmonic equation on an n x n grid by finite differences, 13-point."""
    weight = {0: 20.0, 1: -8.0, 2: 2.0, 4: 1.0}
    stencil = [(0, 0)] + [o for o in box((2, 2)) if 0 < abs(o[0]) + abs(o[1]) <= 2]
    pattern = grid((n, n), stencil)
    rows = np.repeat(np.arange(n * n), np.diff(pattern.indptr))
    down = pattern.indices // n - rows // n
    across = pattern.indices % n - rows % n
    squared_distance = down * down + across * across
    values = np.zeros(pattern.nnz)
    for distance, value in weight.items():
        values[squared_distance == distance] = value
    return pattern.with_values(values)


def beam(dimensions: Sequence[int], stencil: Iterable[Offset], block: int) -> Pattern:
    """Return a brick of nodes with ``block`` degrees of freedom each."""
    return blown_up(grid(dimensions, stencil), block)


def cantilever(length: int) -> Pattern:
    """Return a beam of 10 x 10 x ``length`` trilinear nodes with 3 degrees of freedom each."""
    return beam((10, 10, length), box((1, 1, 1)), 3)


def qcd_sites(extent: int) -> Pattern:
    """Return a periodic 4-D lattice, every site coupled to itself and 8 neighbours, with 4 components a site."""
    return blown_up(grid((extent,) * 4, star(4), periodic=True), 4)


def qcd() -> Pattern:
    """Return a periodic 4-D lattice with 39 entries in every row.

    A site has 3 components and is coupled to itself, its 8 neighbours, and the 4 second neighbours along the two long axes.
    """
    second: list[Offset] = [(0, 0, 0, 2), (0, 0, 0, -2), (0, 0, 2, 0), (0, 0, -2, 0)]
    return blown_up(grid((8, 8, 16, 16), star(4) + second, periodic=True), 3)


def epidemiology() -> Pattern:
    """Return a Markov chain on a 1025 x 513 lattice: a state's four neighbours, and one absorbing state that keeps itself."""
    neighbours = grid((1025, 513), star(2)[:2] + star(2)[3:])
    indices = np.concatenate([[0], neighbours.indices]).astype(np.int32)
    indptr = neighbours.indptr + 1
    indptr[0] = 0
    return Pattern(indptr.astype(np.int32), indices, neighbours.shape)


def spheres(rng: np.random.Generator) -> Pattern:
    """Return a thick spherical shell of 27 778 trilinear nodes with 3 degrees of freedom each, some of them fixed."""
    n_nodes, inner_radius, reach = 27_778, 15.5, 23
    axis = np.arange(-reach, reach + 1)
    z, y, x = np.meshgrid(axis, axis, axis, indexing="ij")
    distance = np.sqrt(x * x + y * y + z * z).ravel()
    outside = np.flatnonzero(distance >= inner_radius)
    nodes = np.sort(outside[np.argsort(distance[outside], kind="stable")[:n_nodes]])
    number = np.full(distance.size, -1, dtype=np.int32)
    number[nodes] = np.arange(n_nodes, dtype=np.int32)
    whole = grid((axis.size,) * 3, box((1, 1, 1)))
    rows = number[np.repeat(np.arange(distance.size), np.diff(whole.indptr))]
    columns = number[whole.indices]
    kept = (rows >= 0) & (columns >= 0)
    shell = blown_up(from_pairs(rows[kept], columns[kept], (n_nodes, n_nodes)), 3)
    fixed = np.zeros(shell.shape[0], dtype=bool)
    fixed[rng.choice(shell.shape[0], size=150, replace=False)] = True
    return without_couplings_of(shell, fixed)


def without_couplings_of(pattern: Pattern, fixed: npt.NDArray[np.bool_]) -> Pattern:
    """Return ``pattern`` with only the diagonal left in fixed rows and columns."""
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int32), np.diff(pattern.indptr))
    kept = (rows == pattern.indices) | ~(fixed[rows] | fixed[pattern.indices])
    lengths = np.bincount(rows[kept], minlength=pattern.shape[0])
    return Pattern(offsets_of(lengths), pattern.indices[kept], pattern.shape)


def wind_tunnel(rng: np.random.Generator) -> Pattern:
    """Return a shell of 36 319 nodes with 6 degrees of freedom each, stiffened by ribs, and 4 loose degrees of freedom.

    Nodes are numbered along a helix, so that the 9-point stencil of the closed tube is a set of constant offsets.
    """
    n_nodes, around, n_hubs, rib = 36_319, 190, 60, 20
    nodes = np.arange(n_nodes, dtype=np.int32)
    rows, columns = [], []
    for step in (1, around - 1, around, around + 1):
        rows.append(nodes[:-step])
        columns.append(nodes[step:])
    # Windows in the hull: some couplings are missing, as in the mesh that this stands for.
    kept = rng.random(sum(r.size for r in rows)) >= 0.02
    hubs = np.sort(rng.choice(n_nodes, size=n_hubs, replace=False)).astype(np.int32)
    spokes = rng.integers(n_nodes, size=(n_hubs, rib), dtype=np.int32)
    shell = symmetric_from_pairs(
        np.concatenate([np.concatenate(rows)[kept], np.repeat(hubs, rib)]),
        np.concatenate([np.concatenate(columns)[kept], spokes.ravel()]),
        n_nodes,
        diagonal=True,
    )
    hull = blown_up(shell, 6)
    loose = np.arange(hull.shape[0], hull.shape[0] + 4, dtype=np.int32)
    size = hull.shape[0] + loose.size
    indptr = np.concatenate([hull.indptr, hull.indptr[-1] + 2 * np.arange(1, loose.size + 1)])
    indices = np.concatenate([hull.indices, np.column_stack([loose - 4, loose]).ravel()])
    return Pattern(indptr.astype(np.int32), indices, (size, size))


def road(rng: np.random.Generator, n: int, kept: float) -> Pattern:
    """Return an n x n lattice of which a random share of the edges is kept, symmetric and without a diagonal."""
    points = np.arange(n * n, dtype=np.int32).reshape(n, n)
    rows = np.concatenate([points[:, :-1].ravel(), points[:-1, :].ravel()])
    columns = np.concatenate([points[:, 1:].ravel(), points[1:, :].ravel()])
    chosen = rng.random(rows.size) < kept
    return symmetric_from_pairs(rows[chosen], columns[chosen], n * n, diagonal=False)
