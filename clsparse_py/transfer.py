"""Arrays between host and device: in place where the device was seen to work on the host's memory, by copy elsewhere."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.device import describe
from clsparse_py.forked import is_forked, use_device

__all__ = ["Waits", "allocated", "array_of", "contexts_match", "from_host", "on_host", "pending"]

_COMPLETE = cl.command_execution_status.COMPLETE


def contexts_match(array: cl_array.Array, context: cl.Context) -> bool:
    """Return whether an array lives in a context."""
    return array.context is context or bool(array.context == context)


def array_of(queue: cl.CommandQueue, n: int, dtype: np.dtype[Any], data: Any, allocator: Any = None) -> cl_array.Array:
    """Return the array of ``n`` entries that a buffer holds.

    As PyOpenCL's own operations make arrays: its constructor takes longer to look at a shape than a launch takes.
    """
    made: dict[str, Any] = {"_fast": True, "_size": n, "_context": queue.context, "_queue": queue}
    return cl_array.Array(None, (n,), dtype, data=data, strides=(dtype.itemsize,), allocator=allocator, **made)


def allocated(queue: cl.CommandQueue, what: str, n: int, dtype: Any, allocator: Any = None) -> cl_array.Array:
    """Return a new device array of ``n`` entries.

    Raises
    ------
    MemoryError
        The device has not enough memory; the message says ``what`` needs it, how much, and how much there is.
    """
    device = describe(queue.device)
    needed = n * np.dtype(dtype).itemsize
    reason: Exception | None = None
    if needed <= device.global_memory:
        try:
            if not n:
                return cl_array.empty(queue, n, dtype, allocator=allocator)
            data = allocator(needed) if allocator else cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, needed)
            return array_of(queue, n, np.dtype(dtype), data, allocator)
        except cl.Error as error:
            reason = error
    raise MemoryError(
        f"{what}: {n:,} entries of {np.dtype(dtype)} need {needed:,} bytes; "
        f"{device.name} has {device.global_memory:,} in all and allows {device.max_allocation:,} in one array"
    ) from reason


class _Lent(np.ndarray):
    """Host memory that a buffer works on: it is not let go before the queue's commands, which may use it, have ended."""

    queue: cl.CommandQueue | None = None

    def __del__(self) -> None:
        if self.queue is not None and not is_forked():
            self.queue.finish()


def from_host(queue: cl.CommandQueue, values: np.ndarray[Any, Any], *, copy: bool) -> cl_array.Array:
    """Return a device array with the values of a host array.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of the array.
    values : numpy.ndarray
        Contiguous, in native byte order.
    copy : bool
        False: where the device works on the host's memory, the array is that memory. It is kept alive, and who writes to one
        writes to the other.
    """
    if not _in_place(queue, values):
        return cl_array.to_device(queue, values)
    if copy:
        # In memory of NumPy's, which asks for large pages: 60 MB take 4.5 ms, and 25 in memory that a CPU runtime allocates.
        values = values.copy(order="K")
    flags = cl.mem_flags
    access = flags.READ_WRITE if values.flags.writeable else flags.READ_ONLY
    lent = values.view(_Lent)
    lent.queue = queue
    buffer = cl.Buffer(queue.context, access | flags.USE_HOST_PTR, hostbuf=lent)
    order = "C" if values.flags.c_contiguous else "F"
    return cl_array.Array(queue, values.shape, values.dtype, order=order, data=buffer)


def _in_place(queue: cl.CommandQueue, values: np.ndarray[Any, Any]) -> bool:
    """Return whether a device can work on a host array's own memory. OpenCL aligns a type to its size, NumPy need not."""
    return bool(values.size and describe(queue.device).aliases_host and values.ctypes.data % values.itemsize == 0)


class Waits:
    """What commands on a queue wait for. Remembers the queue and its own events: asking a driver for them takes microseconds.

    Attributes
    ----------
    ordered : bool
        Whether the queue keeps its commands in order.
    """

    def __init__(self) -> None:
        self.ordered = False
        self._queue: cl.CommandQueue | None = None
        self._own: list[cl.Event] = []

    def before(self, queue: cl.CommandQueue, *arrays: cl_array.Array) -> list[cl.Event] | None:
        """Return the events that a command on a queue, which uses these arrays, has to wait for explicitly.

        In order, those of the queue itself need no waiting; naming them would cost time on the host and on the device. The queues
        of others are flushed, as OpenCL asks.

        Raises
        ------
        RuntimeError
            This process was forked from one that had used a device.
        """
        use_device()
        if queue is not self._queue:
            self._queue, self._own = queue, []
            self.ordered = not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        own: list[cl.Event] = []
        foreign: list[cl.Event] = []
        for array in arrays:
            for event in array.events:
                if event in self._own:
                    own.append(event)
                    continue
                other = event.command_queue
                if other == queue:
                    own.append(event)
                else:
                    foreign.append(event)
                    if other is not None:  # a user's own event has none
                        other.flush()
        self._own = own
        return (foreign if self.ordered else own + foreign) or None

    def made(self, event: cl.Event) -> None:
        """Take note of an event of the queue that commands are going to meet."""
        self._own.append(event)


def pending(queue: cl.CommandQueue, *arrays: cl_array.Array) -> tuple[bool, list[cl.Event] | None]:
    """Return whether a queue keeps its commands in order, and the events that a command on it has to wait for explicitly.

    Arrays forget events that are complete: who uses them often would ask for their queues each time.
    """
    for array in arrays:
        for event in tuple(array.events):
            if event.command_execution_status == _COMPLETE:
                # One by one: another thread may add an event meanwhile, or have taken this one out.
                with suppress(ValueError):
                    array.events.remove(event)
    waits = Waits()
    events = waits.before(queue, *arrays)
    return waits.ordered, events


def on_host(array: cl_array.Array, host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Wait for a device array that `from_host` made from ``host`` without a copy, and return ``host`` with its values."""
    if not host.size:
        return host
    # `from_host` gave it both, which PyOpenCL's types leave open.
    queue: Any = array.queue
    buffer: Any = array.base_data
    if _in_place(queue, host):
        # Mapping is what makes the device's writes visible in memory that both use.
        mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, host.shape, host.dtype, wait_for=array.events)
        mapped.base.release(queue)
        return host
    array.get(ary=host)
    return host
