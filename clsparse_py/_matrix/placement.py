"""The three arrays of a matrix on a device: dtypes, queue, copies."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._device.device import default_queue, describe
from clsparse_py._ground.errors import DtypeError
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert, copied
from clsparse_py._memory.overlap import require_inside
from clsparse_py._precision.arithmetic import OPENCL_TYPES, name_of, unsupported_dtype
from clsparse_py._run.transfer import contexts_match, from_host

__all__ = [
    "Parts",
    "index_dtype",
    "index_vector",
    "place",
    "place_part",
    "place_values",
    "queue_for",
    "shape_of",
    "value_dtype",
    "value_dtype_on",
    "vector",
]

#: The type of the data, indices and indptr of a matrix, on host or device.
Parts = tuple[Any, Any, Any]


def shape_of(shape: Any) -> tuple[int, int]:
    """Return a matrix's shape as two Python integers; raise an error if the argument is no shape."""
    if hasattr(shape, "__len__") and not isinstance(shape, str) and len(shape) != 2:
        raise ValueError(f"shape: must be two integers, is {shape!r} (unable to infer matrix dimensions)")
    try:
        rows, cols = (operator.index(length) for length in shape)
    except (TypeError, ValueError):
        raise TypeError(f"shape: must be two integers, is {shape!r} (object cannot be interpreted as these)") from None
    if rows < 0 or cols < 0:
        raise ValueError(f"shape: must not be negative, is {(rows, cols)} ('shape' elements cannot be negative)")
    if max(rows, cols) > np.iinfo(np.int64).max:
        raise ValueError(f"shape: must fit 64-bit indices, is {(rows, cols)}")
    return rows, cols


def value_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return a dtype in the host's byte order; raise a DtypeError if kernels do not take it."""
    try:
        requested: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise DtypeError(f"{name}: {dtype!r} is no dtype") from None
    native = requested if requested.isnative else requested.newbyteorder("=")
    if name_of(native) not in OPENCL_TYPES:
        raise unsupported_dtype(name, native)
    return native


def value_dtype_on(queue: cl.CommandQueue, data_dtype: np.dtype[Any], dtype: Any) -> np.dtype[Any]:
    """Return the dtype of values on a device: ``dtype`` if it is given, else ``data_dtype``; raise if the device lacks it."""
    value = value_dtype("data" if dtype is None else "dtype", data_dtype if dtype is None else dtype)
    if name_of(value) in ("float64", "complex128") and not describe(queue.device).fp64:
        raise TypeError(
            f"dtype: {value} needs double precision, which {queue.device.name} lacks; "
            f"use dtype={'float32' if value.kind == 'f' else 'complex64'}"
        )
    return value


def queue_for(parts: Iterable[Any], queue: cl.CommandQueue | None) -> cl.CommandQueue:
    """Return the queue of a matrix of three arrays: the given one, else that of the first array on a device, else the default.

    Raises
    ------
    TypeError
        ``queue`` is no queue.
    """
    if queue is not None and not isinstance(queue, cl.CommandQueue):
        raise TypeError(f"queue: must be a pyopencl.CommandQueue, is {type(queue).__name__}")
    own_queues = (part.queue for part in parts if isinstance(part, cl_array.Array) and part.queue is not None)
    return queue or next(own_queues, None) or default_queue()


def vector(name: str, part: Any, dtype: Any = None) -> Any:
    """Return one of the three arrays of a CSR matrix, on host or device, with one dimension; lists are converted to ``dtype``."""
    if not isinstance(part, cl_array.Array):
        part = np.asarray(part, dtype) if isinstance(part, (list, tuple)) else np.asarray(part)
    elif not part.dtype.isnative:
        raise TypeError(f"{name}: must be in the host's byte order, is {part.dtype.str}")
    if part.ndim != 1:
        raise ValueError(f"{name}: must have one dimension, has {part.ndim} (shape {part.shape})")
    return part


def index_vector(name: str, part: Any) -> Any:
    """Return `indices` or `indptr` with one dimension, as by `vector`; raise a TypeError unless they are integers."""
    part = vector(name, part)
    if part.dtype.kind not in "iu" and part.size:
        raise TypeError(f"{name}: must be integers, is {part.dtype}")
    return part


def index_dtype(parts: Iterable[Any], shape: Iterable[int]) -> np.dtype[Any]:
    """Return the index type of a matrix: int64 if one of its index arrays or a dimension needs it, else int32."""
    wide = any(part.dtype.itemsize > 4 or part.dtype == np.uint32 for part in parts)
    return np.dtype(np.int64) if wide else index_for(max(shape))


def place(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], dtype: Any, *, copy: bool
) -> tuple[cl_array.Array, cl_array.Array, cl_array.Array]:
    """Return the three arrays of a matrix on the device: values of ``dtype``, and index arrays of one index type.

    Raises
    ------
    ValueError, TypeError
        The arrays' lengths do not match; a dtype is not supported, or not by the device; a part lives in another context.
    """
    data, indices, indptr = vector("data", parts[0]), index_vector("indices", parts[1]), index_vector("indptr", parts[2])
    if indptr.size != shape[0] + 1:
        raise ValueError(f"indptr: must have rows + 1 = {shape[0] + 1} entries, has {indptr.size}")
    if data.size != indices.size:
        raise ValueError(f"data: must have as many entries as indices, has {data.size}, not {indices.size}")
    value = value_dtype_on(queue, data.dtype, dtype)
    index = index_dtype((indices, indptr), shape)
    return (
        place_part(queue, "data", data, value, copy=copy),
        place_part(queue, "indices", indices, index, copy=copy),
        place_part(queue, "indptr", indptr, index, copy=copy),
    )


def place_part(queue: cl.CommandQueue, name: str, part: Any, dtype: np.dtype[Any], *, copy: bool) -> cl_array.Array:
    """Return one of the three arrays of a matrix on the device, contiguous and from the beginning of its buffer.

    An array of the host is always copied, even with ``copy=False``: SciPy's matrices sort their arrays in place, even when they
    are only asked for their largest entry, and facts about a structure have to stay true.
    """
    if isinstance(part, cl_array.Array):
        if not contexts_match(part, queue.context):
            raise ValueError(f"{name}: lives in another context than the queue of the matrix")
        require_inside(name, part)
        if part.dtype != dtype or (part.size > 1 and part.strides != (dtype.itemsize,)):
            value_dtype(name, part.dtype)
            return convert(queue, name, part, dtype)
        # Kernels read arrays from the beginning of a buffer: an array that begins inside one is copied to a buffer of its own.
        return copied(queue, name, part) if copy or part.offset else part
    values = np.ascontiguousarray(part, dtype=dtype)
    return from_host(queue, values, copy=np.may_share_memory(values, part))


def place_values(queue: cl.CommandQueue, data: Any, n: int, *, from_beginning: bool = False) -> cl_array.Array:
    """Return new values of a planned matrix of ``n`` entries, the argument ``data``, as a contiguous array on the device.

    Kernels that do not add the array's offset in its buffer take values ``from_beginning``.

    Raises
    ------
    ValueError, TypeError
        A wrong shape, dtype or context.
    """
    values = data if isinstance(data, cl_array.Array) else np.asarray(data)
    dtype = value_dtype("data", values.dtype)
    if values.shape != (n,):
        raise ValueError(f"data: must have the {n} entries of A, has shape {values.shape}")
    if dtype.name in ("float64", "complex128") and not describe(queue.device).fp64:
        raise TypeError(f"data: {dtype} needs double precision, which {describe(queue.device).name} lacks; use single precision")
    if (
        isinstance(values, cl_array.Array)
        and contexts_match(values, queue.context)
        and (values.dtype == dtype and values.strides == (dtype.itemsize,) and values.offset % dtype.itemsize == 0)
        and not (from_beginning and values.offset)
    ):
        require_inside("data", values)
        return values
    return place_part(queue, "data", values, dtype, copy=False)
