"""Positions along an axis, checked on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.indexing.kernels import Positions
from clsparse_py._operations.indexing.key import Listed
from clsparse_py._operations.indexing.masks import contiguous
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import contexts_match, from_host

__all__ = ["Placed", "on_device", "place"]

#: Work-groups to a compute unit, at most: each tells a number to the host.
_GROUPS_PER_UNIT = 4


@dataclass(frozen=True, eq=False)
class Placed:
    """Positions on the device.

    Attributes
    ----------
    positions : pyopencl.array.Array
        Of the index type, from 0 on.
    outside : pyopencl.array.Array or None
        Numbers that are 0 unless some indices were out of range; None if the host looked at them.
    axis, length : int
        Which axis they are for, and how many positions that has.
    """

    positions: cl_array.Array
    outside: cl_array.Array | None
    axis: int
    length: int

    @property
    def size(self) -> int:
        """Number of positions."""
        return int(self.positions.size)

    def as_dtype(self, queue: cl.CommandQueue, index: np.dtype[Any]) -> Placed:
        """Return the same positions, which were checked, as an array of a dtype."""
        return Placed(convert(queue, "index", self.positions, index), None, self.axis, self.length)

    def enqueue_checks(self, chain: Chain) -> Callable[[], None]:
        """Return a function that reads whether all indices were in range, after other reads or in place of one."""
        outside = self.outside
        if outside is None:
            return _in_range

        def check() -> None:
            """Raise an IndexError if an index is out of range."""
            if n_outside := int(chain.read(outside, outside.size).sum()):
                raise IndexError(
                    f"index out of range: {n_outside} of {self.size} are; axis {self.axis} has {self.length} positions"
                )

        return check


def _in_range() -> None:
    """Raise nothing."""


def place(queue: cl.CommandQueue, listed: Listed, axis: int, length: int, index: np.dtype[Any]) -> Placed:
    """Return listed positions as an array of a dtype on the device, one-dimensional, from the beginning of its buffer.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    listed : Listed
    axis, length : int
        The axis that they are for, and how many positions that has.
    index : dtype
        int32 or int64.

    Raises
    ------
    ValueError
        The array lives in another context.
    """
    array = on_device(queue, listed, index)
    if listed.is_checked or isinstance(listed.values, np.ndarray):
        return Placed(array if array.dtype == index else convert(queue, "index", array, index), None, axis, length)
    return Placed(*_wrap(queue, array, length, index), axis, length)


def on_device(queue: cl.CommandQueue, listed: Listed, index: np.dtype[Any]) -> cl_array.Array:
    """Return listed positions, or unchecked indices, as a one-dimensional array that begins its buffer: of the host, of a dtype.

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


def _wrap(
    queue: cl.CommandQueue, indices: cl_array.Array, length: int, index: np.dtype[Any]
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return the positions that indices stand for, and numbers whose sum is how many are out of range."""
    chain, n = Chain(queue, indices), indices.size
    built, record = chain.build(Positions(min(256, chain.device.max_work_group), name_of(index), name_of(indices.dtype)))
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    positions = allocate(queue, "positions", n, index)
    outside = allocate(queue, "counts", groups, np.dtype(np.int64))
    chain.launch(built, groups, *sizes, np.int64(length), indices, positions, outside)
    chain.finish(positions, outside)
    return positions, outside
