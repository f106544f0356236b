"""Triangular matrices of stencils on grids: the grid that the distances of entries to the diagonal tell, and its tiles."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from clsparse_py._ground.records import dataclass

__all__ = ["MAX_POINTS", "Grid", "Offset", "Stencil", "TileShape", "find_grid"]

#: The difference of two points of a grid, in x, y and z.
Offset = tuple[int, int, int]

#: Most points of a stencil: entries of a row beside its diagonal entry.
MAX_POINTS = 16
#: Offsets of a stencil's points in x, y and z.
_REACH = range(-2, 3)


@dataclass(frozen=True)
class Stencil:
    """A stencil of a lower triangular matrix.

    Attributes
    ----------
    offsets : tuple of Offset
        The offsets of the entries of a row beside its diagonal entry, in the order of columns; the last coordinate of each that
        is not 0 is negative.
    """

    offsets: tuple[Offset, ...]

    @property
    def name(self) -> str:
        """The part of the names of kernels that stands for the stencil."""
        return f"points{len(self.offsets)}"

    @property
    def skew(self) -> Offset:
        """The least numbers a, b, c with which all offsets in coordinates ``(x + a y + b z, y + c z, z)`` are 0 or less.

        Boxes in these coordinates, the tiles, need unknowns of tiles of smaller coordinates alone.
        """
        a = max((-(x // y) for x, y, z in self.offsets if y and not z), default=0)
        a = max(a, 0)
        b = max((-((x + a * y) // z) for x, y, z in self.offsets if z), default=0)
        c = max((-(y // z) for _, y, z in self.offsets if z), default=0)
        return a, max(b, 0), max(c, 0)

    @property
    def skewed(self) -> tuple[Offset, ...]:
        """The offsets in the coordinates of `skew`."""
        a, b, c = self.skew
        return tuple((x + a * y + b * z, y + c * z, z) for x, y, z in self.offsets)


@dataclass(frozen=True)
class TileShape:
    """The extents of a tile in x, y and z."""

    extents: Offset

    @property
    def name(self) -> str:
        """The part of the names of kernels that stands for the tile."""
        return "tile" + "x".join(map(str, self.extents))


@dataclass(frozen=True)
class Grid:
    """A grid whose points are the rows of a lower triangular matrix: row ``x + nx y + plane z``.

    Attributes
    ----------
    nx, plane, n : int
        Numbers of points of a line, of a plane, which has whole lines, and of the grid.
    stencil : Stencil
        The points around a point that its row may have.
    """

    nx: int
    plane: int
    n: int
    stencil: Stencil

    @property
    def extents(self) -> Offset:
        """The extents of the grid in skewed coordinates."""
        (a, b, c), ny, nz = self.stencil.skew, self.plane // self.nx, -(-self.n // self.plane)
        return self.nx + a * (ny - 1) + b * (nz - 1), ny + c * (nz - 1), nz

    @property
    def n_levels(self) -> int:
        """An upper bound for the number of level sets."""
        return sum(self.extents) - 2

    def make_tiles(self, tile: Offset) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the tiles of an extent, and where their levels begin.

        Returns
        -------
        tiles : numpy.ndarray, int32, shape (tiles, 4)
            The least skewed coordinates of each tile that may have a point, and 0; in an order in which they can be solved.
        starts : numpy.ndarray, int32, shape (levels + 1,)
            Where the tiles that can be solved at the same time begin.
        """
        a, b, c = self.stencil.skew
        counts = [-(-extent // side) for extent, side in zip(self.extents, tile, strict=True)]
        numbers = np.indices(counts).reshape(3, -1)
        least = numbers * np.reshape(tile, (3, 1))
        (x, y, z), (x_most, y_most, z_most) = least, least + np.reshape(tile, (3, 1)) - 1
        # Interval arithmetic: the coordinates before the skew that a point of the tile may have.
        y_low, y_high = np.maximum(y - c * z_most, 0), np.minimum(y_most - c * z, self.plane // self.nx - 1)
        has_points = (y_low <= y_high) & (x_most - a * y_low - b * z >= 0) & (x - a * y_high - b * z_most < self.nx)
        level = numbers.sum(axis=0)[has_points]
        order = np.argsort(level, kind="stable")
        tiles = np.zeros((order.size, 4), np.int32)
        tiles[:, :3] = least[:, has_points].T[order]
        starts = np.r_[0, np.flatnonzero(np.diff(level[order])) + 1, order.size].astype(np.int32)
        return tiles, starts


def find_grid(distances: Iterable[int], n: int, *, upper: bool) -> Grid | None:
    """Return the grid that the distances of entries from the diagonal tell, or None.

    Parameters
    ----------
    distances : iterable of int
        Differences of row and column, above 0 (upper: of column and row); they may be those of some rows.
    n : int
        Number of rows.
    upper : bool
        Whether the matrix is upper triangular: its rows, and their entries, are then those of a lower one in reverse order.
    """
    found = sorted(set(distances))
    # Kernels compute places of a tile that reaches beyond the grid.
    if found[:1] != [1] or found[MAX_POINTS:] or n >= 2**30:
        return None
    # The strides of y and z are near the least distances that no combination of the strides before them gives.
    best: tuple[int, int, int, list[Offset]] | None = None
    for nx in _near(next((d for d in found if d not in _REACH), n), 1):
        in_a_plane = [_split(d, nx, n) for d in found]
        beyond = next((d for d, offset in zip(found, in_a_plane, strict=True) if not _is_near(offset)), n)
        for plane in _near(beyond, nx) if beyond < n else (n,):
            offsets = [_split(d, nx, plane) for d in found]
            if (plane % nx and plane != n) or 2 * nx > n or not all(map(_is_near, offsets)):
                continue
            size = sum(abs(x) + abs(y) for x, y, _ in offsets)
            if best is None or size < best[0]:
                best = size, nx, plane, offsets
    if best is None:
        return None
    _, nx, plane, offsets = best
    stencil = Stencil(tuple((-x, -y, -z) for x, y, z in (offsets if upper else offsets[::-1])))
    return Grid(nx, -(-plane // nx) * nx, n, stencil)


def _near(distance: int, stride: int) -> list[int]:
    """Return the multiples of a stride that may be the next stride if a stencil's point has a distance."""
    middle = round(distance / stride)
    # Points of two lines, or of two planes, have different distances.
    return [(middle + k) * stride for k in _REACH if middle + k >= len(_REACH)]


def _split(distance: int, nx: int, plane: int) -> Offset:
    """Return a distance of rows as the nearest multiple of a plane's points, of a line's, and the rest: (x, y, z)."""
    z = round(distance / plane)
    y = round((distance - z * plane) / nx)
    return distance - z * plane - y * nx, y, z


def _is_near(offset: Offset) -> bool:
    return all(step in _REACH for step in offset)
