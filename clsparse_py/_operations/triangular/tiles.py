"""Tiles of triangular matrices of stencils: the check that a matrix is one, and the tiles and the kernel of a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular.grids import Grid, Offset, TileShape, find_grid
from clsparse_py._operations.triangular.kernels import GROUPS, StencilMasks, Tiles, work_group_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device

__all__ = ["GridRows", "TileSet", "choose_kernel", "choose_tile", "inspect_grid", "make_tiles"]

#: Lines of a tile in y and z on a GPU: in a plane as many as a sub-group has work-items, in space 8 x 8.
_LINES_IN_SPACE = 8
#: Most points of a line of a tile on a GPU.
_LONGEST_LINE = 32
#: Most work-items of a GPU's work-group that fetch unknowns of other tiles.
_MAX_FETCHERS = 128
#: Tiles to a compute unit of a CPU along each of two coordinates.
_TILES_TO_A_CORE = 3


@dataclass(frozen=True)
class GridRows:
    """The rows of a triangular matrix that is a stencil on a grid.

    Attributes
    ----------
    grid : Grid
    masks : pyopencl.array.Array, uint32
        Which points of the stencil each row has; see ``templates/triangular/stencil_masks.mako``.
    """

    grid: Grid
    masks: cl_array.Array


@dataclass(frozen=True)
class TileSet:
    """Tiles in an order in which they can be solved.

    Attributes
    ----------
    extents : Offset
        Of a tile.
    bounds : pyopencl.array.Array
        The least skewed coordinates of each.
    starts : numpy.ndarray, int32, shape (levels + 1,)
        Where the tiles that can be solved at the same time begin.
    """

    extents: Offset
    bounds: cl_array.Array
    starts: npt.NDArray[np.int32]

    @property
    def count(self) -> int:
        """The number of tiles."""
        return int(self.starts[-1])


def inspect_grid(
    queue: cl.CommandQueue, indptr: cl_array.Array, indices: cl_array.Array, distances: npt.NDArray[Any], upper: bool
) -> GridRows | None:
    """Return the rows of a triangular matrix, each of which ends with its diagonal entry, as a stencil on a grid.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    indptr, indices : pyopencl.array.Array
    distances : numpy.ndarray
        How far entries of some rows are from the diagonal; -1 if a row has too many entries for a stencil.
    upper : bool
        Whether the matrix is upper triangular.

    Returns
    -------
    GridRows or None
        None if the distances tell no grid, or a row has an entry that is none of the stencil. Else waits for the device.
    """
    n, index = indptr.size - 1, indptr.dtype
    found = np.unique(distances)
    grid = find_grid(found[found != 0].tolist(), n, upper=upper)
    if grid is None:
        return None
    chain = Chain(queue, indptr, indices)
    masks, state = allocate(queue, "points of rows", n, np.dtype(np.uint32)), chain.scratch(1, np.int32)
    chain.fill(state, 0, 1)
    built, record = chain.build(StencilMasks(work_group_of(chain.device), name_of(index), upper, grid.stencil))
    groups = min(-(-n // record.work_group), chain.device.compute_units * GROUPS)
    chain.launch(built, groups, np.int32(n), np.int32(grid.nx), np.int32(grid.plane), indptr, indices, masks, state)
    chain.finish(masks)
    return None if chain.read(state, 1)[0] else GridRows(grid, masks)


def choose_kernel(device: Device, grid: Grid, index: str, dtype: str, *, upper: bool, unit: bool) -> Tiles | None:
    """Return the record of the kernel that solves by tiles in one launch, in which work-groups wait for each other.

    None if work-groups of the device may not wait, or its local memory does not hold a tile.
    """
    if device.lanes_are_loops or not device.forward_progress:
        return None
    multiple = min(max(device.preferred_multiple, 32), 64)
    in_space = grid.extents[2] > 1
    lines = (_LINES_IN_SPACE, _LINES_IN_SPACE) if in_space else (multiple, 1)
    fetchers = min(_MAX_FETCHERS if in_space else 2 * multiple, device.max_work_group - lines[0] * lines[1])
    for longest in range(_LONGEST_LINE, 2, -2):
        tile = TileShape((longest, *lines))
        record = Tiles(lines[0] * lines[1] + fetchers, index, dtype, upper, unit, grid.stencil, tile)
        if record.n_local_bytes <= device.local_memory:
            return record if fetchers > 0 else None
    return None


def choose_tile(device: Device, grid: Grid) -> Offset:
    """Return the extents of tiles that are solved level by level, each by one work-item."""
    x, y, z = grid.extents
    count = _TILES_TO_A_CORE * device.compute_units
    return (x, -(-y // count), -(-z // count)) if z > 1 else (-(-x // count), -(-y // count), 1)


def make_tiles(queue: cl.CommandQueue, grid: Grid, extents: Offset) -> TileSet:
    """Return the tiles of a grid of given extents; waits for the device."""
    tiles, starts = grid.make_tiles(extents)
    bounds = copy_to_device(queue, "tiles", tiles.ravel())
    queue.finish()  # solutions on other queues read the tiles
    return TileSet(extents, bounds, starts)
