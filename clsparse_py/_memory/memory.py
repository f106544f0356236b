"""Device memory is allocated here, and here alone: results, copies, scratch, buffers on the host's memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._memory.device_array import DeviceArray
from clsparse_py._memory.pool import Arena, Block, MemoryInfo, Pool, arena_of, pools
from clsparse_py._memory.workspace import current

__all__ = [
    "allocate",
    "allocate_each",
    "allocate_pinned",
    "also_let_go",
    "array_of",
    "constants",
    "free_memory",
    "layout",
    "make_form",
    "memory_info",
    "new_array",
    "on_host_memory",
    "scratch",
    "shorten",
    "submit",
]

_Returned = TypeVar("_Returned")
#: Functions that `free_memory` calls with a context, or None for all contexts: of modules that keep built kernels.
also_let_go: list[Callable[[cl.Context | None], None]] = []

#: PyOpenCL's class of the codes of OpenCL's errors.
_CODES = cl.status_code
#: OpenCL's codes of errors for lack of memory, beside those that PyOpenCL raises as `pyopencl.MemoryError`.
_LACKING = {_CODES.OUT_OF_RESOURCES, _CODES.OUT_OF_HOST_MEMORY, _CODES.INVALID_BUFFER_SIZE, _CODES.MAP_FAILURE}


def array_of(
    queue: cl.CommandQueue,
    shape: int | tuple[int, ...],
    dtype: np.dtype[Any],
    data: Any,
    allocator: Any = None,
    context: cl.Context | None = None,
) -> cl_array.Array:
    """Return a C-contiguous device array on the memory ``data``, which is None for an array without entries.

    Callers that have the queue's ``context`` give it, as asking the queue for it takes long.
    """
    form = context or queue.context, dtype, *layout((shape,) if isinstance(shape, int) else shape, dtype.itemsize)
    return new_array(form, queue, data, [], allocator)


def new_array(
    form: tuple[Any, ...], queue: cl.CommandQueue, data: Any, events: list[cl.Event], allocator: Any = None
) -> cl_array.Array:
    """Return a device array on the memory ``data`` with the context, dtype, shape, strides and size of ``form``.

    The constructor is called as PyOpenCL's own operations call it, which takes a tenth of the time of the public way.
    """
    context, dtype, shape, strides, size = form
    array = DeviceArray.__new__(DeviceArray)  # to call the class would pass all arguments twice
    cl_array.Array.__init__(array, None, shape, dtype, "C", allocator, data, 0, strides, events, None, True, size, context, None)
    array.queue = queue  # the constructor would check the class of the memory for a queue, and warn of a user's class
    return array


def make_form(context: cl.Context, n: int, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the form (context, dtype, shape, strides, size) of one-dimensional device arrays of ``n`` entries."""
    return context, dtype, (n,), (dtype.itemsize,), n


@functools.lru_cache(maxsize=1024)
def layout(shape: tuple[int, ...], item: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the shape, the strides in bytes, and the number of entries of a C-contiguous array."""
    shape = tuple(map(int, shape))
    steps = [item]
    for length in shape[:0:-1]:
        steps.append(steps[-1] * max(length, 1))
    return shape, tuple(steps[::-1]) if shape else (), math.prod(shape)


def _allocate_vector(queue: cl.CommandQueue, arena: Arena, n: int, dtype: np.dtype[Any]) -> cl_array.Array | None:
    """Return a new one-dimensional array of ``n`` entries in memory of the arena's pool; None if there is too little memory."""
    item, pool, data = dtype.itemsize, arena.pool, None
    if n:
        if n * item > pool.device_bytes:
            return None
        try:
            data = arena.allocate(queue, n * item)
        except cl.Error:
            return None
    return new_array(make_form(pool.context, n, dtype), queue, data, [])


def allocate(
    queue: cl.CommandQueue, purpose: object, shape: int | tuple[int, ...], dtype: Any, allocator: Any = None
) -> cl_array.Array:
    """Return a new C-contiguous device array for commands on the queue, from the pool or the caller's allocator.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of the first command that uses the array.
    purpose : object
        The purpose of the memory: its ``str`` stands in the error.
    shape : int or tuple of int
    dtype : dtype
    allocator : callable, optional
        The caller's; by default memory comes from the pool.

    Raises
    ------
    MemoryError
        The device, or the limit of the workspace that is counted, has not enough memory; the message says for
        which ``purpose`` it is, how much is needed and how much there is.
    """
    dtype = np.dtype(dtype)
    workspace, arena = current(), arena_of(queue)
    if workspace is None and allocator is None and shape.__class__ is int:
        array = _allocate_vector(queue, arena, shape, dtype)  # nearly all arrays are vectors, which take less time
        if array is not None:
            return array
    n = shape if isinstance(shape, int) else math.prod(shape)
    n_bytes = n * dtype.itemsize
    if not n_bytes:
        return array_of(queue, shape, dtype, None, allocator)
    if workspace is not None:
        workspace.require(n_bytes)
    reason: Exception | None = None
    if n_bytes <= arena.pool.device_bytes:
        try:
            data = arena.allocate(queue, n_bytes) if allocator is None else _call_allocator(allocator, n_bytes, arena.pool)
            array = array_of(queue, shape, dtype, data, allocator, arena.pool.context)
            return array if workspace is None else workspace.count(array, n_bytes)
        except cl.Error as error:
            reason = error
    raise MemoryError(f"{purpose}: {n:,} entries of {dtype} need {n_bytes:,} bytes; {arena.pool.capacity()}") from reason


def allocate_each(
    queue: cl.CommandQueue, purpose: str, sizes: Sequence[tuple[int, np.dtype[Any]]], allocator: Any = None
) -> list[cl_array.Array]:
    """Return new one-dimensional device arrays of the lengths and dtypes in ``sizes``; raises as `allocate`."""
    return [allocate(queue, purpose, n, dtype, allocator) for n, dtype in sizes]


def shorten(array: cl_array.Array, n: int) -> None:
    """Shorten a new one-dimensional array to its first ``n`` entries; its memory stays. No view of the array may exist."""
    if n != array.size:
        array.shape, array.size, array.nbytes = (n,), n, n * array.dtype.itemsize


class scratch:  # noqa: N801 - used as a with statement, where lower case is the custom
    """Scratch memory for the commands of a ``with`` block; later commands of the queue may use the same memory again.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of all these commands.
    sizes : sequence of int
        The bytes of each buffer.

    Raises
    ------
    MemoryError
        The device, or the limit of the workspace that is counted, has not enough; the message says how much is needed, and how
        much there is.
    """

    __slots__ = ("_arena", "_blocks", "_held", "_queue", "_sizes", "_workspace")

    def __init__(self, queue: cl.CommandQueue, sizes: Sequence[int]) -> None:
        self._queue, self._sizes = queue, sizes
        self._arena, self._workspace = arena_of(queue), current()
        self._held = 0

    def __enter__(self) -> list[cl.Buffer]:
        workspace = self._workspace
        self._blocks: list[Block] = []
        try:
            for size in self._sizes:
                if workspace is not None:
                    workspace.hold(size)
                    self._held += size
                self._blocks.append(self._arena.take_block(self._queue, size))
        except cl.Error as error:
            self.__exit__()
            message = f"workspace: {sum(self._sizes):,} bytes are needed"
            raise MemoryError(f"{message}; {self._arena.pool.capacity()}") from error
        except BaseException:
            self.__exit__()
            raise
        return [block.buffer for block in self._blocks]

    def __exit__(self, *_: object) -> None:
        if self._workspace is not None:
            self._workspace.let_go(self._held)
        blocks, self._blocks = self._blocks, []
        take_back = self._arena.pool.take_back
        for block in blocks:
            take_back(block)


def on_host_memory(queue: cl.CommandQueue, host: np.ndarray[Any, Any], access: int) -> cl.Buffer:
    """Return a buffer on a host array's memory.

    Raises
    ------
    MemoryError
        The driver lacks memory of its own for the buffer.
    """
    return arena_of(queue).pool.create_on_host(host, access | cl.mem_flags.USE_HOST_PTR)


def allocate_pinned(queue: cl.CommandQueue, n_bytes: int) -> np.ndarray[Any, Any]:
    """Return pinned host memory, which devices of the queue's context copy to and from at full speed.

    Raises
    ------
    MemoryError
        The driver has not the memory.
    """
    pool = arena_of(queue).pool
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    try:
        buffer = cl.Buffer(pool.context, flags, max(n_bytes, 1))
        how: Any = cl.map_flags.READ | cl.map_flags.WRITE
        # The pinned buffer is mapped to the host as long as the NumPy array on the buffer's memory lives.
        mapped: Any = cl.enqueue_map_buffer(queue, buffer, how, 0, (max(n_bytes, 1),), np.dtype(np.uint8))[0]
    except cl.Error as error:
        raise MemoryError(f"{n_bytes:,} bytes of pinned host memory: {error}; {pool.capacity()}") from error
    pinned: np.ndarray[Any, Any] = mapped[:n_bytes]
    return pinned


def constants(queue: cl.CommandQueue, host: np.ndarray[Any, Any]) -> cl.Buffer:
    """Return a buffer with a copy of a host array, which all queues of the context may read at once; the caller keeps the buffer.

    Raises
    ------
    MemoryError
        The driver has not the memory.
    """
    return arena_of(queue).pool.create_on_host(host, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR)


def _call_allocator(allocator: Any, n_bytes: int, pool: Pool) -> Any:
    """Return memory of a caller's allocator; if the allocator fails, the pool is emptied, and it is called once more."""
    try:
        return allocator(n_bytes)
    except cl.Error:
        pool.empty()
        return allocator(n_bytes)


def _lacks_memory(error: cl.Error) -> bool:
    """Return whether an error of OpenCL says that a command failed for lack of memory."""
    return isinstance(error, cl.MemoryError) or error.code in _LACKING


def submit(
    purpose: str | cl.Kernel, command: Callable[..., _Returned], queue: cl.CommandQueue, *arguments: Any, **keywords: Any
) -> _Returned:
    """Call a function that enqueues a command, once more with an emptied pool if memory lacks, and return its result.

    Drivers may find memory for a buffer only at its first use (quirk 17). A command for an out-of-order queue runs on the
    in-order queue beside it.

    Parameters
    ----------
    purpose : str or pyopencl.Kernel
        The command's name for the error.
    command : callable
        The function, which is called with the queue and the other arguments.

    Raises
    ------
    MemoryError
        There is no memory, not even after the pool freed its idle blocks.
    """
    beside = arena_of(queue).beside
    if beside is not None:
        command = functools.partial(beside.run, command)
    try:
        return command(queue, *arguments, **keywords)
    except cl.Error as first:
        if not _lacks_memory(first):
            raise
        pool = arena_of(queue).pool
        pool.empty()
        try:
            return command(queue, *arguments, **keywords)
        except cl.Error as error:
            if not _lacks_memory(error):
                raise
            name = purpose.function_name if isinstance(purpose, cl.Kernel) else purpose
            raise MemoryError(f"{name}: the device has not the memory for its arrays ({error}); {pool.capacity()}") from error


def _select_pools(queue: cl.CommandQueue | None) -> Iterator[Pool]:
    """Iterate over the memory pool of a queue's context and device, or over all memory pools for None."""
    if queue is not None and not isinstance(queue, cl.CommandQueue):
        raise TypeError(f"queue: must be a pyopencl.CommandQueue or None, is {type(queue).__name__}")
    return iter(pools() if queue is None else [arena_of(queue).pool])


def free_memory(queue: cl.CommandQueue | None = None) -> None:
    """Give the memory that is kept for later results and scratch back to the driver, and let go of built kernels.

    Kernels that plans hold stay. Others are read from the disk when they are asked for again, which takes some milliseconds each.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        Memory of this queue's context and device, and kernels of its context; by default of all.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.free_memory()
    >>> sp.memory_info().pooled
    0
    """
    for pool in _select_pools(queue):
        pool.empty()
    for let_go in also_let_go:
        let_go(None if queue is None else queue.context)


def memory_info(queue: cl.CommandQueue | None = None) -> MemoryInfo:
    """Return how much device memory is used, and how much is kept for later results and scratch.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        For this queue's context and device; by default the sum over all.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.eye_array(1000, dtype="float32")
    >>> sp.memory_info(A.queue).used > 4 * 1000
    True
    """
    return MemoryInfo(*map(sum, zip(*(pool.info() for pool in _select_pools(queue)), (0, 0, 0, 0), strict=True)))
