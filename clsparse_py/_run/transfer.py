"""Arrays between host and device: in place where the device was seen to work on the host's memory, by copy elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._device.device import describe
from clsparse_py._ground import fork_guard
from clsparse_py._ground.fork_guard import use_device
from clsparse_py._memory.device_array import DeviceArray
from clsparse_py._memory.memory import allocate, on_host_memory, submit
from clsparse_py._memory.order import forget_ended, uses_before_writing
from clsparse_py._memory.pool import arena_of
from clsparse_py._memory.unordered import Uses

__all__ = [
    "allocate_result",
    "contexts_match",
    "copy_to_device",
    "copy_to_host",
    "find_pending_events",
    "from_host",
    "on_host",
    "works_in_place",
]


def contexts_match(array: cl_array.Array, context: cl.Context) -> bool:
    """Return whether an array and its queue, if it has one, belong to a context."""
    if array.context is not context and array.context != context:
        return False
    return array.queue is None or bool(arena_of(array.queue).pool.context == context)


class _Lent(np.ndarray):
    """Host memory under a buffer: it is not freed before the commands that may use the buffer have ended.

    These are the commands of the buffer's queue, and commands of other queues that were noted for the buffer.
    """

    queue: cl.CommandQueue | None = None
    uses: Uses
    pointer: int

    def __del__(self) -> None:
        if self.queue is not None and not fork_guard.forked:
            self.queue.finish()
            # The lock of the noted uses of memory is not taken: the garbage collector may come while this thread has that lock.
            for event in list(self.uses.get(self.pointer, {}).values()):
                event.wait()


def from_host(queue: cl.CommandQueue, values: np.ndarray[Any, Any], *, copy: bool) -> cl_array.Array:
    """Return a device array with the values of a host array: without ``copy`` on the host's memory if it can be, else copied.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of the array.
    values : numpy.ndarray
        Contiguous, in native byte order.
    copy : bool
        False: on devices that work on the host's memory, the device array is on the memory of the host array, which it keeps.

    Raises
    ------
    MemoryError
        The array is larger than the device allows, which is checked before anything is copied; or the device lacks memory.
    """
    pool = arena_of(queue).pool
    if values.nbytes > pool.largest:
        raise MemoryError(f"a copy of host memory: {values.nbytes:,} bytes; {pool.capacity()}")
    if not works_in_place(queue, values):
        array = allocate(queue, "a copy of host memory", values.shape, values.dtype)
        if values.size:
            submit("a copy of host memory", cl.enqueue_copy, queue, array.base_data, values, is_blocking=True)
            array.strides = values.strides
        return array
    if copy:
        # NumPy allocates the copy of the host array, with large pages: 60 MB take 4.5 ms, and 25 ms in a CPU runtime's memory.
        values = values.copy(order="K")
    flags = cl.mem_flags
    access = flags.READ_WRITE if values.flags.writeable else flags.READ_ONLY
    lent_values = values.view(_Lent)
    buffer = on_host_memory(queue, lent_values, access)
    lent_values.queue, lent_values.uses, lent_values.pointer = queue, pool.uses, buffer.int_ptr
    order = "C" if values.flags.c_contiguous else "F"
    return DeviceArray(queue, values.shape, values.dtype, order=order, data=buffer)


def copy_to_device(queue: cl.CommandQueue, purpose: str, values: np.ndarray[Any, Any], allocator: Any = None) -> cl_array.Array:
    """Return a new device array with a copy of the values of a one-dimensional NumPy array."""
    array = allocate(queue, purpose, values.size, values.dtype, allocator)
    if values.size:
        submit(f"a copy of {purpose}", cl.enqueue_copy, queue, array.base_data, np.ascontiguousarray(values), is_blocking=True)
    return array


def allocate_result(queue: cl.CommandQueue, host: np.ndarray[Any, Any]) -> cl_array.Array:
    """Return a device array without values yet, for a result that `on_host` brings to the C-contiguous NumPy array ``host``."""
    if works_in_place(queue, host):
        return from_host(queue, host, copy=False)
    return allocate(queue, "the result", host.shape, host.dtype)


def works_in_place(queue: cl.CommandQueue, values: np.ndarray[Any, Any]) -> bool:
    """Return whether a device can work on a host array's own memory: it was seen to do so, and the array is aligned.

    OpenCL aligns a type to its size, NumPy need not. An array without entries is not worked on.
    """
    device = describe(arena_of(queue).pool.device)  # asking the queue takes longer
    return bool(values.size and device.aliases_host and values.ctypes.data % values.itemsize == 0)


def find_pending_events(
    queue: cl.CommandQueue, *arrays: cl_array.Array, writes: tuple[cl_array.Array, ...] = ()
) -> list[cl.Event] | None:
    """Return the events that a command on a queue, which uses these arrays, has to wait for explicitly; None if there are none.

    Events of the queue that runs the command are left out, as naming them costs time on the host and on the device. Queues of
    other events are flushed, as OpenCL asks. A command that ``writes`` to arrays also waits for commands that read these arrays.

    Arrays forget their events once all are complete, which spares later calls from asking for the events' queues.

    Raises
    ------
    RuntimeError
        This process was forked from one that had used a device.
    """
    use_device()
    events: list[cl.Event] = []
    for array in arrays:
        if array.events:
            forget_ended(array)
            events += array.events
    foreign: list[cl.Event] = []
    if events:
        beside = arena_of(queue).beside
        running = queue if beside is None else beside.queue
        for event in dict.fromkeys(events):
            event_queue = event.command_queue
            if event_queue != running:
                foreign.append(event)
                if event_queue is not None:  # a user's own event has no queue
                    event_queue.flush()
    if writes:
        foreign += uses_before_writing(queue, *writes)
    return foreign or None


def copy_to_host(array: cl_array.Array, queue: cl.CommandQueue | None = None) -> np.ndarray[Any, Any]:
    """Return the values of a contiguous array that begins its buffer, as `Array.get` does; several threads may call it.

    The array is read on its queue or, if it has none, on ``queue``.
    """
    host = np.empty(array.shape, array.dtype)
    if host.size:
        on: Any = array.queue or queue
        wait_for = find_pending_events(on, array)
        submit("a read", cl.enqueue_copy, on, host, array.base_data, wait_for=wait_for, is_blocking=True)
    return host


def on_host(array: cl_array.Array, host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Wait for a device array of `allocate_result`, and return the NumPy array ``host`` with the device array's values."""
    if not host.size:
        return host
    # An array of `allocate_result` has a queue and a buffer, which PyOpenCL's types leave open.
    queue: Any = array.queue
    buffer: Any = array.base_data
    if works_in_place(queue, host):
        # Memory that host and device share has to be mapped before the host sees the device's writes.
        submit("a read", _map_for_reading, queue, buffer, host, [*array.events])
        return host
    submit("a read", cl.enqueue_copy, queue, host, buffer, wait_for=[*array.events], is_blocking=True)
    return host


def _map_for_reading(queue: cl.CommandQueue, buffer: cl.Buffer, host: np.ndarray[Any, Any], wait_for: list[cl.Event]) -> cl.Event:
    """Map a buffer on a host array's memory for reading, wait, unmap the buffer, and return the event of the unmapping."""
    mapped: Any = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, host.shape, host.dtype, wait_for=wait_for)[0]
    ended: cl.Event = mapped.base.release(queue)
    return ended
