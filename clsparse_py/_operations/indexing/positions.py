"""Positions along an axis: listed by arrays or masks, and checked on the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._formats.canonical import without_zeros
from clsparse_py._formats.coordinates import regroup, rows_of
from clsparse_py._ground.index_types import index_for
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.values import dense_values
from clsparse_py._operations.indexing.kernels import MARKED, Positions
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import contexts_match, from_host

__all__ = ["Listed", "Placed", "contiguous", "move_to_device", "place", "places_of_entries", "places_of_marks"]

#: Greatest number of work-items of a work-group that lists the positions at which a mask is True.
_WORK_GROUP = 128

#: Most work-groups per compute unit of the kernel that checks indices: the host reads a count of each work-group.
_GROUPS_PER_UNIT = 4


@dataclass(frozen=True, eq=False)
class Listed:
    """Positions along an axis, in an array.

    Attributes
    ----------
    values : numpy.ndarray or pyopencl.array.Array
        On the host: int64, from 0 on, in range. On the device: the same if ``is_checked``; else the caller's integers.
    is_checked : bool
        Whether an array on the device came from a mask.
    is_ascending : bool
        Whether positions on the device are known to ascend strictly.
    is_given : bool
        Whether the caller gave an array on the device; then values of places are a device array, too.
    """

    values: Any
    is_checked: bool = False
    is_ascending: bool = False
    is_given: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of listed positions along an axis."""
        return tuple(self.values.shape)

    @property
    def size(self) -> int:
        """Number of listed positions along an axis."""
        return int(self.values.size)

    @functools.cached_property
    def ascends(self) -> bool:
        """Whether the listed positions along an axis are known to ascend strictly; positions on the device are not read."""
        if isinstance(self.values, np.ndarray):
            return bool(np.all(np.diff(self.values.ravel()) > 0))
        return self.is_ascending


@dataclass(frozen=True, eq=False)
class Placed:
    """Positions along an axis, on the device.

    Attributes
    ----------
    positions : pyopencl.array.Array
        Of the index type, from 0 on.
    outside : pyopencl.array.Array or None
        Numbers of indices out of range, by work-group; None if the host checked the indices.
    axis, length : int
        The axis, and its number of positions.
    """

    positions: cl_array.Array
    outside: cl_array.Array | None
    axis: int
    length: int

    @property
    def size(self) -> int:
        """Number of positions along an axis that the device array lists."""
        return int(self.positions.size)

    def as_dtype(self, queue: cl.CommandQueue, index: np.dtype[Any]) -> Placed:
        """Return the positions along an axis, which were checked before, as an array of another dtype."""
        return Placed(convert(queue, "index", self.positions, index), None, self.axis, self.length)

    def enqueue_checks(self, chain: Chain) -> Callable[[], None]:
        """Return a function that reads from the device how many indices were out of range, and raises an IndexError if any."""
        outside = self.outside
        if outside is None:
            return lambda: None

        def check() -> None:
            """Raise an IndexError if an index of the device array was out of range, by the counts of its work-groups."""
            if n_outside := int(chain.read(outside, outside.size).sum()):
                raise IndexError(
                    f"index out of range: {n_outside} of {self.size} are; axis {self.axis} has {self.length} positions"
                )

        return check


def place(queue: cl.CommandQueue, listed: Listed, axis: int, length: int, index: np.dtype[Any]) -> Placed:
    """Return listed positions along an axis as `Placed`: on the device, of dtype ``index``, negative ones counted from the end.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    listed : Listed
    axis, length : int
        The axis, and its number of positions.
    index : dtype
        int32 or int64.

    Raises
    ------
    ValueError
        The array lives in another context.
    """
    array = move_to_device(queue, listed, index)
    if listed.is_checked or isinstance(listed.values, np.ndarray):
        return Placed(array if array.dtype == index else convert(queue, "index", array, index), None, axis, length)
    return Placed(*_resolve_negative(queue, array, length, index), axis, length)


def move_to_device(queue: cl.CommandQueue, listed: Listed, index: np.dtype[Any]) -> cl_array.Array:
    """Return listed indices as a 1-D device array at offset 0; NumPy's in the dtype ``index``, device arrays in their own.

    Raises
    ------
    ValueError
        The array lives in another context.
    """
    values = listed.values
    if isinstance(values, np.ndarray):
        return from_host(queue, values.ravel().astype(index), copy=False)
    if not contexts_match(values, queue.context):
        raise ValueError("index: lives in another context than the matrix")
    return contiguous(queue, "index", values, np.dtype(values.dtype))


def _resolve_negative(
    queue: cl.CommandQueue, indices: cl_array.Array, length: int, index: np.dtype[Any]
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return device indices as positions, negative ones counted from the end, and work-groups' counts of indices out of range."""
    chain, n = Chain(queue, indices), indices.size
    built, record = chain.build(Positions(min(256, chain.device.max_work_group), name_of(index), name_of(indices.dtype)))
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    positions = allocate(queue, "positions", n, index)
    outside = allocate(queue, "counts", groups, np.dtype(np.int64))
    chain.launch(built, groups, *sizes, np.int64(length), indices, positions, outside)
    chain.finish(positions, outside)
    return positions, outside


def contiguous(queue: cl.CommandQueue, name: str, array: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return a device array of any strides as a one-dimensional array of ``dtype``, in C order, at offset 0 of its buffer."""
    if array.ndim == 2 and not array.flags.c_contiguous:
        array = dense_values(queue, array, "positive", np.dtype(array.dtype))
    flat: cl_array.Array = array if array.ndim == 1 else array.reshape(array.size)  # type: ignore[no-untyped-call]
    is_whole = not flat.offset and flat.flags.c_contiguous
    return flat if is_whole and flat.dtype == dtype else convert(queue, name, flat, dtype)


def places_of_marks(queue: cl.CommandQueue, mask: cl_array.Array) -> tuple[cl_array.Array, ...]:
    """Return the positions along each axis at which a mask of one or two dimensions is True, in C order.

    Waits for the device once, for the number of positions.

    Raises
    ------
    ValueError
        The mask lives in another context.
    """
    if not contexts_match(mask, queue.context):
        raise ValueError("index: lives in another context than the matrix")
    positions = _list_marks(queue, contiguous(queue, "index", mask, np.dtype(bool)))
    if mask.ndim == 1:
        return (positions,)
    return regroup(queue, positions, positions, (0, 1), max(mask.shape[1], 1), np.dtype(positions.dtype))


def places_of_entries(mask: Matrix) -> tuple[cl_array.Array, ...]:
    """Return the rows and the columns of a sparse mask's entries that are True. Waits for the device once."""
    mask.require_valid()
    _, indices, indptr = without_zeros(mask.queue, mask.parts)
    return rows_of(mask.queue, indptr, indices.size), indices


def _list_marks(queue: cl.CommandQueue, marks: cl_array.Array) -> cl_array.Array:
    """Return the ascending positions at which a mask on the device is True."""
    chain, n = Chain(queue, marks), marks.size
    index = index_for(n)
    built, _ = chain.build(MARKED.record(min(_WORK_GROUP, chain.device.max_work_group), name_of(index)))
    places = chain.scratch(n + 1, index)
    enqueue_scan(chain, marks, places, n, kind="pointers")
    positions = allocate(queue, "positions", int(chain.read(places, 1, n)[0]), index)
    chain.launch_spread(built, n, places, positions)
    chain.finish(positions)
    return positions
