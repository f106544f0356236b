"""Matrices on the memory of host arrays (zero copy), which are read-only as long as the memory is in use."""

from __future__ import annotations

import operator
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse

from clsparse_py._device.device import describe
from clsparse_py._ground.errors import class_of
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.placement import Parts, queue_for, shape_of, value_dtype
from clsparse_py._run.transfer import from_host, works_in_place

__all__ = ["on_memory_of"]

#: The lock of `_lent`. The garbage collector may end a buffer in a thread that has the lock: `_give_back` never waits for it.
_lock = threading.Lock()
#: Host arrays whose OpenCL buffers have ended, once for each buffer, to be counted by the next thread with the lock `_lock`.
_ended: deque[np.ndarray[Any, Any]] = deque()
#: Number of OpenCL buffers over each host array that was made read-only for these buffers, by the array's id.
_lent: dict[int, int] = {}


def on_memory_of(
    arg1: Any, shape: Any = None, dtype: Any = None, queue: cl.CommandQueue | None = None, *, copy: bool = False
) -> tuple[Parts, tuple[int, int]]:
    """Return device arrays on the memory of a matrix's three NumPy arrays, and the shape; a vector counts as one row.

    The NumPy arrays are read-only until the last device array on their memory is gone.

    Parameters
    ----------
    arg1, shape, dtype, queue, copy
        As for `csr_array`.

    Raises
    ------
    ValueError
        The arrays cannot be used without a copy; the message says why.
    TypeError
        A part is no NumPy array.
    """
    if copy:
        raise ValueError("zero_copy: contradicts copy=True")
    host, own_shape = _arrays_of(arg1, shape)
    queue = queue_for((), queue)
    _require_fitting(host, own_shape, dtype)
    _require_reachable(host, queue)
    data, indices, indptr = map(_lend, (queue,) * 3, host.values())
    return (data, indices, indptr), own_shape


def _arrays_of(arg1: Any, shape: Any) -> tuple[dict[str, np.ndarray[Any, Any]], tuple[int, int]]:
    """Return the three NumPy arrays of a user's CSR matrix by name, and the matrix's shape; a vector counts as one row."""
    if scipy.sparse.issparse(arg1) and arg1.format == "csr":
        parts, own_shape = (arg1.data, arg1.indices, arg1.indptr), arg1.shape if shape is None else shape
    elif isinstance(arg1, tuple) and len(arg1) == 3:
        parts, own_shape = arg1, shape
    else:
        shown = f"{arg1.format} format" if scipy.sparse.issparse(arg1) else class_of(arg1)
        raise ValueError(f"zero_copy: takes a SciPy matrix in CSR format or (data, indices, indptr), not {shown}")
    if own_shape is None:
        raise ValueError("zero_copy: (data, indices, indptr) need a shape")
    host = dict(zip(("data", "indices", "indptr"), parts, strict=True))
    for name, part in host.items():
        if not isinstance(part, np.ndarray):
            raise TypeError(f"zero_copy: {name} must be a NumPy array, is {class_of(part)}")
        if part.ndim != 1 or not part.flags.c_contiguous:
            raise ValueError(f"zero_copy: {name} must be contiguous, has shape {part.shape} and strides {part.strides}")
    if np.ndim(own_shape) == 0 or len(own_shape) == 1:
        own_shape = 1, operator.index(own_shape if np.ndim(own_shape) == 0 else own_shape[0])
    return host, shape_of(own_shape)


def _require_fitting(host: dict[str, np.ndarray[Any, Any]], shape: tuple[int, int], dtype: Any) -> None:
    """Raise a ValueError if the dtype of one of a matrix's three host arrays would have to be converted."""
    data, indices, indptr = host.values()
    value_dtype("data", data.dtype)
    if not data.dtype.isnative or (dtype is not None and np.dtype(dtype) != data.dtype):
        raise ValueError(f"zero_copy: data has dtype {data.dtype.str}, and would be converted to {dtype or data.dtype.name}")
    index_dtype = indptr.dtype if indptr.dtype in (np.int32, np.int64) else np.dtype(np.int64)
    index_dtype = max(index_dtype, np.dtype(index_for(max(shape))), key=lambda candidate: candidate.itemsize)
    for name, part in (("indices", indices), ("indptr", indptr)):
        if part.dtype != index_dtype or not part.dtype.isnative:
            raise ValueError(
                f"zero_copy: {name} has dtype {part.dtype.str}, and would be converted to {index_dtype}: indices and "
                f"indptr are both of int32 or both of int64, which shape {shape} needs to fit"
            )


def _require_reachable(host: dict[str, np.ndarray[Any, Any]], queue: cl.CommandQueue) -> None:
    """Raise a ValueError if the device cannot work on the memory of a matrix's three host arrays."""
    device = describe(queue.device)
    if not device.aliases_host:
        has = "shares the host's memory, but was not seen to work on NumPy's" if device.unified_memory else "has its own memory"
        raise ValueError(f"zero_copy: {device.name} {has}; leave zero_copy out, and the arrays are copied")
    for name, part in host.items():
        if part.size and not works_in_place(queue, part):
            address = part.ctypes.data
            raise ValueError(
                f"zero_copy: {name} begins at address {address:#x}, which is no multiple of its {part.itemsize} bytes"
            )


def _lend(queue: cl.CommandQueue, array: np.ndarray[Any, Any]) -> Any:
    """Return a device array on the memory of a host array, which is read-only as long as the memory is in use."""
    lent = from_host(queue, array, copy=False)
    with _lock:
        if array.size and (array.flags.writeable or id(array) in _lent):
            _lent[id(array)] = _lent.get(id(array), 0) + 1
            array.flags.writeable = False
            # The OpenCL buffer keeps the host array alive, and is released after the commands that use the buffer.
            buffer: Any = lent.base_data
            weakref.finalize(buffer.hostbuf, _give_back, array).atexit = False
    _count_ended()
    return lent


def _give_back(array: np.ndarray[Any, Any]) -> None:
    """Make a host array writable again if the OpenCL buffer that ended was the last one on the array's memory."""
    _ended.append(array)
    _count_ended()


def _count_ended() -> None:
    """Count ended buffers, and make arrays without other buffers writable, unless another thread has the lock and does it."""
    while _ended and _lock.acquire(blocking=False):
        try:
            while _ended:
                array = _ended.popleft()
                _lent[id(array)] -= 1
                if not _lent[id(array)]:
                    del _lent[id(array)]
                    array.flags.writeable = True
        finally:
            _lock.release()
