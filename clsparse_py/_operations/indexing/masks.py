"""Positions at which a device mask is True."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._formats.canonical import without_zeros
from clsparse_py._formats.coordinates import regroup, rows_of
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.values import dense_values
from clsparse_py._operations.indexing.kernels import MARKED
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import contexts_match

__all__ = ["contiguous", "places_of_entries", "places_of_marks"]

#: Work-items of a work-group, at most.
_WORK_GROUP = 128


def contiguous(queue: cl.CommandQueue, name: str, array: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return the values of a device array of any strides in C order: one-dimensional, from the beginning of its buffer."""
    if array.ndim == 2 and not array.flags.c_contiguous:
        array = dense_values(queue, array, "positive", np.dtype(array.dtype))
    flat: cl_array.Array = array if array.ndim == 1 else array.reshape(array.size)  # type: ignore[no-untyped-call]
    is_whole = not flat.offset and flat.flags.c_contiguous
    return flat if is_whole and flat.dtype == dtype else convert(queue, name, flat, dtype)


def places_of_marks(queue: cl.CommandQueue, mask: cl_array.Array) -> tuple[cl_array.Array, ...]:
    """Return the positions along each axis at which a mask of one or two dimensions is True, in C order.

    Waits for the device once, to learn how many these are.

    Raises
    ------
    ValueError
        The mask lives in another context.
    """
    if not contexts_match(mask, queue.context):
        raise ValueError("index: lives in another context than the matrix")
    positions = _mark(queue, contiguous(queue, "index", mask, np.dtype(bool)))
    if mask.ndim == 1:
        return (positions,)
    return regroup(queue, positions, positions, (0, 1), max(mask.shape[1], 1), np.dtype(positions.dtype))


def places_of_entries(mask: Matrix) -> tuple[cl_array.Array, ...]:
    """Return the rows and the columns of the entries of a sparse mask that are True. Waits for the device once."""
    mask.require_valid()
    _, indices, indptr = without_zeros(mask.queue, mask.parts)
    return rows_of(mask.queue, indptr, indices.size), indices


def _mark(queue: cl.CommandQueue, marks: cl_array.Array) -> cl_array.Array:
    """Return the positions of marks."""
    chain, n = Chain(queue, marks), marks.size
    index = index_for(n)
    built, record = chain.build(MARKED.record(min(_WORK_GROUP, chain.device.max_work_group), name_of(index)))
    places = chain.scratch(n + 1, index)
    enqueue_scan(chain, marks, places, n, kind="pointers")
    positions = allocate(queue, "positions", int(chain.read(places, 1, n)[0]), index)
    groups, sizes = spread(chain.device, n, record.work_group, 64)
    chain.launch(built, groups, *sizes, places, positions)
    chain.finish(positions)
    return positions
