"""The values of a sparse matrix at places, whose rows and columns are listed or evenly spaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.indexing.kernels import Points
from clsparse_py._operations.indexing.key import Axis
from clsparse_py._operations.indexing.positions import Listed, Placed, place
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host

__all__ = ["Places", "Spread", "places_of", "values_at"]


@dataclass(frozen=True, eq=False)
class Spread:
    """The positions along one axis of a matrix of places.

    Attributes
    ----------
    begin, by_row, by_column : int
        The place in row r and column c has position ``begin + r * by_row + c * by_column``, or the list's item of that number.
    listed : Placed or None
        The list of positions.
    ascends : bool
        Whether the list is known to ascend strictly; True without a list.
    """

    begin: int
    by_row: int
    by_column: int
    listed: Placed | None = None
    ascends: bool = True

    def arguments(self, unused: cl_array.Array) -> tuple[Any, ...]:
        """Return a kernel's arguments (cl/axis.cl) for an axis's positions; any array ``unused`` stands for a missing list."""
        numbers = np.uint32(self.listed is not None), *map(np.int64, (self.begin, self.by_row, self.by_column))
        return *numbers, unused if self.listed is None else self.listed.positions

    def on_host(self, shape: tuple[int, int], queue: cl.CommandQueue) -> np.ndarray[Any, Any]:
        """Return, as a NumPy array, the positions along one axis (row or column numbers) of all selected places, row by row."""
        rows, columns = np.ogrid[: shape[0], : shape[1]]
        positions: np.ndarray[Any, Any] = (self.begin + rows * self.by_row + columns * self.by_column).ravel()
        return positions if self.listed is None else copy_to_host(self.listed.positions, queue)[positions]


@dataclass(frozen=True, eq=False)
class Places:
    """A matrix of places in a sparse matrix.

    Attributes
    ----------
    shape : tuple of int
    row, column : Spread
    """

    shape: tuple[int, int]
    row: Spread
    column: Spread

    @property
    def size(self) -> int:
        """Number of the places in a sparse matrix that are read or get a value."""
        return self.shape[0] * self.shape[1]

    @property
    def ascend(self) -> bool:
        """Whether places in a sparse matrix are known to ascend strictly, by row, then by column, so that none is repeated."""
        row, column, (n_rows, n_columns) = self.row, self.column, self.shape
        if not (row.ascends and column.ascends):
            return False
        to_the_right = n_columns < 2 or row.by_column > 0 or (not row.by_column and column.by_column > 0)
        if n_columns > 1 and row.by_column:
            return to_the_right and n_rows < 2
        down = n_rows < 2 or row.by_row > 0 or (not row.by_row and n_columns < 2 and column.by_row > 0)
        return to_the_right and down

    @property
    def arrays(self) -> tuple[cl_array.Array, ...]:
        """The device arrays that list rows or columns of places, one for each axis that is listed, not evenly spaced."""
        return tuple(spread.listed.positions for spread in (self.row, self.column) if spread.listed is not None)

    def swap_axes(self) -> Places:
        """Return the same places in the transposed sparse matrix, by exchanging their rows and columns."""
        return Places(self.shape, self.column, self.row)

    def transpose(self) -> Places:
        """Return the matrix of places transposed: the place in row r and column c moves to row c and column r."""
        row, column = (replace(spread, by_row=spread.by_column, by_column=spread.by_row) for spread in (self.row, self.column))
        return Places((self.shape[1], self.shape[0]), row, column)

    def widen(self, queue: cl.CommandQueue) -> Places:
        """Return the matrix of places with its lists of row and column indices converted to int64."""
        return Places(self.shape, _widen(queue, self.row), _widen(queue, self.column))

    def enqueue_checks(self, chain: Chain) -> list[Any]:
        """Return functions that raise an IndexError if a listed row or column is out of range; see `Placed.enqueue_checks`."""
        return [spread.listed.enqueue_checks(chain) for spread in (self.row, self.column) if spread.listed is not None]


def _widen(queue: cl.CommandQueue, spread: Spread) -> Spread:
    """Return the positions of places along an axis with the device array that lists them, if there is one, converted to int64."""
    if spread.listed is None:
        return spread
    return replace(spread, listed=spread.listed.as_dtype(queue, np.dtype(np.int64)))


def places_of(queue: cl.CommandQueue, shape: tuple[int, int], index: np.dtype[Any], rows: Axis, columns: Axis) -> Places:
    """Return the matrix of the places at which selected rows and columns of a sparse matrix meet.

    Two lists are broadcast together; else each row is combined with each column.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    shape : tuple of int
        Of the matrix.
    index : dtype
        int32 or int64, of the lists on the device.
    rows, columns : Axis
    """
    of_rows, of_columns = (_shape_as_2d(positions, axis) for axis, positions in enumerate((rows, columns)))
    if isinstance(rows, Listed) and not isinstance(columns, Listed) and len(rows.shape) == 1 and isinstance(columns, range):
        of_rows = (rows.size, 1)
    places_shape = np.broadcast_shapes(of_rows, of_columns)
    row = _broadcast_axis(queue, rows, of_rows, 0, shape, index)
    return Places((places_shape[0], places_shape[1]), row, _broadcast_axis(queue, columns, of_columns, 1, shape, index))


def _shape_as_2d(positions: Axis, axis: int) -> tuple[int, int]:
    """Return an axis index's 2-D shape before broadcasting: n x 1 for a range of rows, 1 x n for other 1-D ones, else its own."""
    if isinstance(positions, int):
        return 1, 1
    if isinstance(positions, range):
        return (1, len(positions)) if axis else (len(positions), 1)
    return (1, *positions.shape)[-2:]  # type: ignore[return-value]


def _broadcast_axis(
    queue: cl.CommandQueue, positions: Axis, own_shape: tuple[int, int], axis: int, shape: tuple[int, int], index: np.dtype[Any]
) -> Spread:
    """Return the rows (axis 0) or columns (axis 1) of all selected places as a `Spread`: broadcasts an index of ``own_shape``."""
    if isinstance(positions, int):
        return Spread(positions, 0, 0)
    by_row, by_column = (own_shape[1] if own_shape[0] > 1 else 0), int(own_shape[1] > 1)
    if isinstance(positions, range):
        return Spread(positions.start, by_row * positions.step, by_column * positions.step)
    return Spread(0, by_row, by_column, place(queue, positions, axis, shape[axis], index), positions.ascends)


def values_at(A: Matrix, places: Places) -> cl_array.Array:
    """Return the values of a sparse matrix at places, row by row, as a one-dimensional device array; duplicates are added up.

    Waits for the device once if rows or columns are device arrays, whose range is checked there.

    Raises
    ------
    IndexError
        An index of a device array is out of range.
    """
    data, indices, indptr = parts = A.parts
    chain, n = Chain(A.queue, *parts, *places.arrays), places.size
    built, record = chain.build(Points(min(128, chain.device.max_work_group), name_of(indptr.dtype), name_of(data.dtype)))
    values = allocate(A.queue, "values", n, data.dtype, data.allocator)
    axes = *places.row.arguments(indptr), *places.column.arguments(indptr)
    sizes = np.uint64(n), np.uint64(places.shape[1]), *axes, np.uint32(A.has_sorted_indices)
    chain.launch(built, -(-n // record.work_group), *sizes, indptr, indices, data, values)
    for check in places.enqueue_checks(chain):
        check()
    chain.finish(values)
    return values
