"""Whether arrays share memory: views, sub-buffers, buffers on host memory, shared virtual memory and NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._memory.pool import is_released

__all__ = ["find_buffer", "overlap", "require_apart", "require_inside", "require_writable"]

#: OpenCL's query of a sub-buffer for the buffer that the sub-buffer is a part of.
_ASSOCIATED = cl.mem_info.ASSOCIATED_MEMOBJECT
#: OpenCL's query of a buffer for its flags of memory and access.
_FLAGS = cl.mem_info.FLAGS
#: OpenCL's query of a sub-buffer for the position of its first byte in the whole buffer.
_OFFSET = cl.mem_info.OFFSET
#: OpenCL's flag of buffers that lie on memory of the host.
_USE_HOST_PTR = cl.mem_flags.USE_HOST_PTR
#: Number of the host's address space; a buffer elsewhere is an address space of its own, with its handle as number.
_HOST = 0

_Array = np.ndarray[Any, Any] | cl_array.Array


def find_buffer(buffer: cl.MemoryObjectHolder) -> cl.MemoryObjectHolder | None:
    """Return the buffer of which a sub-buffer is a part; None for a whole buffer, and if the runtime forgot the part's buffer."""
    try:
        return cast("cl.MemoryObjectHolder | None", buffer.get_info(_ASSOCIATED))
    except cl.LogicError:  # quirk 12
        return None


def _space(array: _Array) -> int:
    """Return the number of an array's address space: `_HOST`, or the handle of its buffer, which sub-buffers share."""
    if isinstance(array, np.ndarray):
        return _HOST
    memory: Any = array.base_data
    if not isinstance(memory, cl.MemoryObjectHolder):
        return _HOST
    get_info: Any = memory.get_info  # its answers have many types
    if get_info(_FLAGS) & _USE_HOST_PTR:
        return _HOST
    owner = find_buffer(memory)
    return int(memory.int_ptr if owner is None else owner.int_ptr)


def _reach(array: _Array) -> tuple[int, int]:
    """Return the range of an array's bytes in its address space: the first byte, and the byte behind the last."""
    if isinstance(array, np.ndarray):
        begin = array.ctypes.data
    else:
        memory: Any = array.base_data
        begin = array.offset
        if not isinstance(memory, cl.MemoryObjectHolder):
            begin += memory.svm_ptr
        else:
            get_info: Any = memory.get_info
            if get_info(_FLAGS) & _USE_HOST_PTR:
                begin += memory.get_host_array((memory.size,), np.dtype(np.uint8)).ctypes.data
            elif find_buffer(memory) is not None:
                begin += get_info(_OFFSET)
    return _bytes_from(begin, array)


def _bytes_from(begin: int, array: _Array) -> tuple[int, int]:
    """Return the first byte, and the byte behind the last, of an array whose first entry is at byte ``begin``."""
    end = begin + array.dtype.itemsize
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            begin += (length - 1) * stride
        else:
            end += (length - 1) * stride
    return begin, end


def require_inside(name: str, array: cl_array.Array) -> None:
    """Raise an error unless an array lies within its buffer, which PyOpenCL does not check.

    Raises
    ------
    ValueError
        The array reaches beyond its buffer, or has entries and no buffer, or a buffer that was released.
    """
    if not array.size:
        return
    memory: Any = array.base_data
    if is_released(memory):
        raise ValueError(f"{name}: its memory was released")
    if array.strides == (array.dtype.itemsize,):  # as of nearly all arrays, whose strides need no sum
        begin, end = array.offset, array.offset + array.nbytes
    else:
        begin, end = _bytes_from(array.offset, array)
    if memory is None or begin < 0 or end > memory.size:
        has = 0 if memory is None else memory.size
        raise ValueError(f"{name}: needs bytes {begin} to {end} of its buffer, which has {has}")


def overlap(a: _Array, b: _Array) -> bool:
    """Return whether the ranges of bytes of two arrays overlap."""
    # Address spaces of arrays are compared first: that takes a microsecond, and nearly all arrays have a space of their own.
    if not (a.size and b.size) or _space(a) != _space(b):
        return False
    (a_begin, a_end), (b_begin, b_end) = _reach(a), _reach(b)
    return a_begin < b_end and b_begin < a_end


def require_writable(out: _Array, name: str = "out") -> None:
    """Raise an error if an array or its buffer is read-only, so that kernels may not write to it.

    Raises
    ------
    ValueError
        The array or its buffer is read-only.
    """
    if isinstance(out, np.ndarray):
        writable = out.flags.writeable
    else:
        memory: Any = out.base_data
        flags: Any = memory.get_info(_FLAGS) if isinstance(memory, cl.MemoryObjectHolder) else 0
        writable = not flags & cl.mem_flags.READ_ONLY
    if not writable:
        raise ValueError(f"{name}: is read-only")


def require_apart(out: _Array, inputs: Mapping[str, _Array], name: str = "out") -> None:
    """Raise an error if the output array of an operation overlaps an input array.

    Parameters
    ----------
    out : numpy.ndarray or pyopencl.array.Array
    inputs : mapping of str to arrays
        The arrays that the kernels read, by the names that a caller knows.
    name : str
        The caller's name of ``out``.

    Raises
    ------
    ValueError
        The output overlaps an input, which the message names.
    """
    for input_name, array in inputs.items():
        if overlap(out, array):
            raise ValueError(f"{name}: overlaps {input_name}, which is read while {name} is written")
