"""From what a `csr_array` is made of to its three arrays on a device."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py.arithmetic import OPENCL_TYPES, name_of, unsupported
from clsparse_py.convert import converted, copied
from clsparse_py.device import default_queue, describe
from clsparse_py.errors import DtypeError
from clsparse_py.overlap import require_inside
from clsparse_py.structure import Structure
from clsparse_py.transfer import contexts_match, from_host

__all__ = ["parts_of", "place", "place_part", "queue_for", "require_device_array", "shape_of", "value_dtype"]

Parts = tuple[Any, Any, Any]


def shape_of(shape: Any) -> tuple[int, int]:
    """Return a shape as two Python integers."""
    try:
        rows, cols = (operator.index(length) for length in shape)
    except (TypeError, ValueError):
        raise TypeError(f"shape: must be two integers, is {shape!r}") from None
    if rows < 0 or cols < 0:
        raise ValueError(f"shape: must not be negative, is {(rows, cols)}")
    if max(rows, cols) > np.iinfo(np.int64).max:
        raise ValueError(f"shape: must fit 64-bit indices, is {(rows, cols)}")
    return rows, cols


def value_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return a dtype that kernels take."""
    try:
        given: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise DtypeError(f"{name}: {dtype!r} is no dtype") from None
    native = given if given.isnative else given.newbyteorder("=")
    if name_of(native) not in OPENCL_TYPES:
        raise unsupported(name, native)
    return native


def require_device_array(name: str, values: Any, context: cl.Context) -> None:
    """Check that a part is a device array of a context."""
    if not isinstance(values, cl_array.Array):
        raise TypeError(f"{name}: must be a pyopencl.array.Array, is {type(values).__name__}")
    if not contexts_match(values, context):
        raise ValueError(f"{name}: lives in another context than the queue of the matrix")


def queue_for(parts: Iterable[Any], queue: cl.CommandQueue | None) -> cl.CommandQueue:
    """Return the queue given, or that of the first part on a device, or the default one.

    Raises
    ------
    TypeError
        It is no queue.
    """
    if queue is not None and not isinstance(queue, cl.CommandQueue):
        raise TypeError(f"queue: must be a pyopencl.CommandQueue, is {type(queue).__name__}")
    own = (part.queue for part in parts if isinstance(part, cl_array.Array) and part.queue is not None)
    return queue or next(own, None) or default_queue()


def parts_of(
    arg1: Any, shape: tuple[int, int] | None, dtype: Any, queue: cl.CommandQueue | None
) -> tuple[Parts, tuple[int, int], Structure | None]:
    """Return ``(data, indices, indptr)``, on host or device, the shape, and what is known of the structure.

    Parameters
    ----------
    arg1, shape, dtype, queue
        As for `csr_array`; ``arg1`` is none.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is no such thing; the message names the part.
    """
    if scipy.sparse.issparse(arg1):
        return *_from_scipy(arg1), None
    if not isinstance(arg1, tuple):
        return *_from_scipy(_from_dense(arg1)), None
    if arg1 and all(isinstance(each, (int, np.integer)) for each in arg1):
        return *_empty(shape_of(arg1), dtype), None
    if len(arg1) == 2 and isinstance(arg1[1], (tuple, list)) and len(arg1[1]) == 2:
        data, (row, col) = arg1
        return _from_coordinates(data, row, col, shape, dtype, queue)
    return *_from_tuple(arg1, shape), None


def place(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], dtype: Any, *, copy: bool
) -> tuple[cl_array.Array, cl_array.Array, cl_array.Array]:
    """Return the three arrays on the device, of matching index type, and the values of the dtype asked for.

    Raises
    ------
    ValueError, TypeError
        Their lengths do not go together, a dtype is not supported or not on this device, or one lives in another context.
    """
    data, indices, indptr = _vector("data", parts[0]), _index_vector("indices", parts[1]), _index_vector("indptr", parts[2])
    if indptr.size != shape[0] + 1:
        raise ValueError(f"indptr: must have rows + 1 = {shape[0] + 1} entries, has {indptr.size}")
    if data.size != indices.size:
        raise ValueError(f"data: must have as many entries as indices, has {data.size}, not {indices.size}")
    value = _value_dtype_on(queue, data.dtype, dtype)
    index = _index_dtype(indices, indptr, shape)
    return (
        place_part(queue, "data", data, value, copy=copy),
        place_part(queue, "indices", indices, index, copy=copy),
        place_part(queue, "indptr", indptr, index, copy=copy),
    )


def _value_dtype_on(queue: cl.CommandQueue, own: np.dtype[Any], dtype: Any) -> np.dtype[Any]:
    """Return the dtype of values on a device: the one asked for, or else their own."""
    value = value_dtype("data" if dtype is None else "dtype", own if dtype is None else dtype)
    if name_of(value) in ("float64", "complex128") and not describe(queue.device).fp64:
        raise TypeError(
            f"dtype: {value} needs double precision, which {queue.device.name} lacks; "
            f"use dtype={'float32' if value.kind == 'f' else 'complex64'}"
        )
    return value


def place_part(queue: cl.CommandQueue, name: str, part: Any, dtype: np.dtype[Any], *, copy: bool) -> cl_array.Array:
    """Return one of the three arrays on the device, contiguous and from the beginning of its buffer.

    One from the host is copied, whatever ``copy`` says: SciPy's matrices sort their arrays in place, even when they are only
    asked for their largest entry, and what is known of a structure has to stay true.
    """
    if isinstance(part, cl_array.Array):
        if not contexts_match(part, queue.context):
            raise ValueError(f"{name}: lives in another context than the queue of the matrix")
        require_inside(name, part)
        if part.dtype != dtype or (part.size > 1 and part.strides != (dtype.itemsize,)):
            return converted(queue, name, part, dtype)
        # Kernels take the beginning of a buffer: a part that begins inside one is copied to a buffer of its own.
        return copied(queue, name, part) if copy or part.offset else part
    values = np.ascontiguousarray(part, dtype=dtype)
    return from_host(queue, values, copy=np.may_share_memory(values, part))


def _vector(name: str, part: Any) -> Any:
    """Return one of the three arrays of a CSR matrix, on host or device, as a one-dimensional array."""
    if not isinstance(part, cl_array.Array):
        part = np.asarray(part)
    elif not part.dtype.isnative:
        raise TypeError(f"{name}: must be in the host's byte order, is {part.dtype.str}")
    if part.ndim != 1:
        raise ValueError(f"{name}: must have one dimension, has {part.ndim} (shape {part.shape})")
    return part


def _index_vector(name: str, part: Any) -> Any:
    part = _vector(name, part)
    if part.dtype.kind not in "iu" and part.size:
        raise TypeError(f"{name}: must be integers, is {part.dtype}")
    return part


def _empty(shape: tuple[int, int], dtype: Any) -> tuple[Parts, tuple[int, int]]:
    """Return the parts of a matrix without entries, of float64 where no dtype is given, as SciPy's."""
    index = np.int64 if max(shape) > np.iinfo(np.int32).max else np.int32
    return (np.zeros(0, dtype), np.zeros(0, index), np.zeros(shape[0] + 1, index)), shape


def _from_scipy(matrix: Any) -> tuple[Parts, tuple[int, int]]:
    if matrix.ndim != 2:
        raise ValueError(f"arg1: must have two dimensions, has {matrix.ndim}")
    rows = matrix.tocsr()
    return (rows.data, rows.indices, rows.indptr), (int(rows.shape[0]), int(rows.shape[1]))


def _from_dense(values: Any) -> scipy.sparse.csr_array:
    if isinstance(values, cl_array.Array):
        values = values.get()
    if values is None or isinstance(values, (str, bytes)):
        raise TypeError(f"arg1: must be a sparse matrix, a dense array or a tuple of arrays, is {type(values).__name__}")
    dense = np.asarray(values)
    if dense.dtype.name not in OPENCL_TYPES:
        raise unsupported("arg1", dense.dtype)
    if dense.ndim != 2:
        raise ValueError(f"arg1: a dense array must have two dimensions, has {dense.ndim} (shape {dense.shape})")
    return scipy.sparse.csr_array(dense)


def _from_tuple(arg1: tuple[Any, ...], shape: tuple[int, int] | None) -> tuple[Parts, tuple[int, int]]:
    """Return the three arrays and the shape of a tuple of three parts."""
    if len(arg1) != 3:
        raise ValueError(f"arg1: a tuple must be (data, indices, indptr) or (data, (row, col)) or a shape, has {len(arg1)} parts")
    data, indices, indptr = _vector("data", arg1[0]), _index_vector("indices", arg1[1]), _index_vector("indptr", arg1[2])
    value_dtype("data", data.dtype)
    if not indptr.size:
        raise ValueError("indptr: must have rows + 1 entries, has none")
    if shape is None:
        if not indices.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it")
        largest = indices.get().max() if isinstance(indices, cl_array.Array) else indices.max()
        shape = indptr.size - 1, max(int(largest) + 1, 0)
    if isinstance(indices, np.ndarray) and isinstance(indptr, np.ndarray):
        # As SciPy does with arrays from outside: 32 bits where all fits. Done here, so that a matrix keeps its own index type.
        index = _narrowest(indices, indptr, shape)
        indices, indptr = indices.astype(index, copy=False), indptr.astype(index, copy=False)
    return (data, indices, indptr), shape


def _from_coordinates(
    data: Any, row: Any, col: Any, shape: tuple[int, int] | None, dtype: Any, queue: cl.CommandQueue | None
) -> tuple[Parts, tuple[int, int], Structure]:
    """Return the parts, shape and structure of entries with their rows and columns, whose duplicates are summed."""
    from clsparse_py.canonical import from_coordinates

    data, row, col = _vector("data", data), _index_vector("row", row), _index_vector("col", col)
    value_dtype("data", data.dtype)
    if shape is None and not data.size:
        raise ValueError("shape: cannot be told from arrays without entries; give it")
    for name, part in (("row", row), ("col", col)):
        if part.size != data.size:
            raise ValueError(f"{name}: must have as many entries as data, has {part.size}, not {data.size}")
    queue = queue_for((data, row, col), queue)
    return from_coordinates(queue, data, row, col, shape, _value_dtype_on(queue, data.dtype, dtype))


def _narrowest(indices: np.ndarray[Any, Any], indptr: np.ndarray[Any, Any], shape: tuple[int, int]) -> type:
    """Return int32 where the dimensions and all entries fit, int64 elsewhere."""
    limit = np.iinfo(np.int32)
    for part in (indices, indptr):
        if part.dtype != np.int32 and part.size and (part.max() > limit.max or part.min() < limit.min):
            return np.int64
    return np.int64 if max(shape) > limit.max else np.int32


def _index_dtype(indices: Any, indptr: Any, shape: tuple[int, int]) -> np.dtype[Any]:
    """Return the index type of a matrix: 64 bits where one of its arrays or a dimension needs them."""
    wide = any(part.dtype.itemsize > 4 or part.dtype == np.uint32 for part in (indices, indptr))
    return np.dtype(np.int64 if wide or max(shape) > np.iinfo(np.int32).max else np.int32)
