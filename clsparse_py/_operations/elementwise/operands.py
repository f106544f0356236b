"""Operands of operators on matrices: scalars, and dense arrays as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._matrix.convert import copied
from clsparse_py._precision.arithmetic import OPENCL_TYPES, unsupported_dtype
from clsparse_py._run.transfer import contexts_match, from_host

__all__ = ["align", "broadcast", "dense_operand", "is_scalar", "place_dense", "scalar_of"]


def is_scalar(value: Any) -> bool:
    """Return whether a value is a scalar, or an array without dimensions."""
    return np.isscalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0)


def scalar_of(name: str, value: Any) -> Any:
    """Return a scalar operand of an elementwise operator as a number.

    Raises
    ------
    TypeError
        The scalar is no number; the message names the argument.
    """
    scalar = value[()] if isinstance(value, np.ndarray) else value
    if np.asarray(scalar).dtype.kind not in "biufc":
        raise TypeError(f"{name}: must be a number, is {scalar!r}")
    return scalar


def dense_operand(context: cl.Context, other: Any) -> Any:
    """Return a dense operand as a NumPy or device array of a supported dtype; None if NumPy makes an array of objects of it.

    Raises
    ------
    ValueError, TypeError
        It has another context, or a dtype that is not supported.
    """
    if not isinstance(other, cl_array.Array):
        other = np.asanyarray(other)
        if other.dtype.kind == "O":
            return None
    elif not contexts_match(other, context):
        raise ValueError("other: lives in another context than A")
    if other.dtype.name not in OPENCL_TYPES:
        raise unsupported_dtype("other", other.dtype)
    if not other.dtype.isnative:
        if isinstance(other, cl_array.Array):
            raise TypeError(f"other: must be in the host's byte order, is {other.dtype.str}")
        other = other.astype(other.dtype.newbyteorder("="))
    return other


def align(queue: cl.CommandQueue, dense: cl_array.Array) -> cl_array.Array:
    """Return a dense device array, or a copy whose values stand at multiples of their size in the buffer, as kernels need."""
    item = dense.dtype.itemsize
    is_aligned = not dense.offset % item and not any(step % item for step in dense.strides)
    return dense if is_aligned else copied(queue, "other", dense)


def place_dense(queue: cl.CommandQueue, dense: Any) -> cl_array.Array:
    """Return a dense operand of an elementwise operator as a two-dimensional device array."""
    if isinstance(dense, np.ndarray):
        return from_host(queue, np.ascontiguousarray(np.atleast_2d(dense)), copy=False)
    array = align(queue, dense)
    return array if array.ndim == 2 else broadcast(array, (1, array.shape[0]))


def broadcast(dense: cl_array.Array, shape: tuple[int, ...]) -> cl_array.Array:
    """Return a view of shape ``shape`` of a device array of one or two dimensions, whose single row or column is repeated."""
    lengths, steps = ((1,) * (2 - dense.ndim) + tuple(extents) for extents in (dense.shape, dense.strides))
    strides = tuple(0 if have == 1 else step for have, step in zip(lengths, steps, strict=True))
    data, begin, events = dense.base_data, dense.offset, dense.events
    return cl_array.Array(dense.queue, shape, dense.dtype, data=data, offset=begin, strides=strides, events=events)
