"""The order of commands that use one memory: by queues, by the events of arrays, and by uses noted on the memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._memory.device_array import DeviceArray, is_covered
from clsparse_py._memory.overlap import find_buffer
from clsparse_py._memory.pool import Lent, arena_of, whole
from clsparse_py._memory.unordered import flush

__all__ = ["forget_ended", "note_use", "note_written", "of_others", "record_use", "uses_before_writing"]

#: OpenCL's execution status of a command that has ended.
_COMPLETE = cl.command_execution_status.COMPLETE


def _handle(data: Any) -> int:
    """Return the key of an array's memory: the handle of its buffer, or the address of shared virtual memory."""
    data = whole(data)
    if isinstance(data, cl.MemoryObjectHolder):
        return int((find_buffer(data) or data).int_ptr)
    return int(data.svm_ptr)


def of_others(queue: cl.CommandQueue, *arrays: cl_array.Array) -> tuple[int, ...]:
    """Return the handles of arrays' memory that belongs to other queues: uses of that memory on this queue have to be noted."""
    handles: list[int] = []
    own_queue = arena_of(queue).itself
    for array in arrays:
        data: Any = array.base_data
        if data.__class__ is not Lent:
            data = whole(data)
        if data.__class__ is Lent and data.block is not None:
            ours = data.block.arena is own_queue
        else:
            ours = data is None or array.queue is queue or array.queue is None or bool(array.queue == queue)
        if not ours:
            handles.append(_handle(data))
    return tuple(handles)


def note_use(queue: cl.CommandQueue, handles: Iterable[int], event: cl.Event) -> None:
    """Note that a command on a queue uses memory of other queues, given by the handles that `of_others` returned."""
    arena_of(queue).pool.uses.note(handles, queue, event)


def uses_before_writing(queue: cl.CommandQueue, *arrays: cl_array.Array) -> list[cl.Event]:
    """Return the events of noted uses of arrays, for which a command that writes to them has to wait; flush their queues."""
    pool = arena_of(queue).pool
    if not pool.uses:
        return []
    handles = [_handle(array.base_data) for array in arrays if array.base_data is not None]
    events = pool.uses.running(handles, queue.int_ptr)
    flush(events)
    return events


def note_written(array: cl_array.Array, event: cl.Event, known_event: cl.Event | None = None) -> None:
    """Note on an array, its views and its arrays `with_queue` a command that writes to it after waiting for all earlier writes.

    ``known_event`` is the event of an earlier command on the same queue, if the caller has one.
    """
    if isinstance(array, DeviceArray):
        array.note_written(event)
    else:
        former = array.events.copy()
        array.events.append(event)
        _forget(array, [earlier for earlier in former if earlier is known_event or is_covered(earlier, event)])


def forget_ended(array: cl_array.Array) -> None:
    """Forget the events of an array if all of them have ended; else keep them all."""
    events = array.events.copy()
    if events and all(event.command_execution_status == _COMPLETE for event in events):
        if isinstance(array, DeviceArray):
            array.forget(events)
        else:
            _forget(array, events)


def _forget(array: cl_array.Array, events: list[cl.Event]) -> None:
    """Forget events of an array of PyOpenCL's own class, which shares the list of events with its views.

    The events stay alive until the next call, as a thread may be about to wait for them.
    """
    if array.queue is not None and events:
        arena_of(array.queue).former = events
        for event in events:
            with contextlib.suppress(ValueError):  # another thread forgot the event
                array.events.remove(event)


def record_use(array: cl_array.Array, queue: cl.CommandQueue) -> None:
    """Say that commands of your own, enqueued on a queue so far, use an array that lives on another queue.

    The queue that made an array uses its memory again once you let the array go, and an array that you pass as ``out`` is written
    to: both then wait for the commands that you told of here. Operations of this package do this by themselves.

    Parameters
    ----------
    array : pyopencl.array.Array
    queue : pyopencl.CommandQueue
        Of the array's context.

    Raises
    ------
    TypeError, ValueError
        An argument is of another type, or the two are of different contexts.

    Examples
    --------
    >>> import pyopencl as cl
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2]])
    >>> other = cl.CommandQueue(A.context, A.queue.device)
    >>> # After a kernel of yours was enqueued on `other` that reads A.data:
    >>> sp.record_use(A.data, other)
    """
    if not isinstance(array, cl_array.Array):
        raise TypeError(f"array: must be a pyopencl.array.Array, is {type(array).__name__}")
    if not isinstance(queue, cl.CommandQueue):
        raise TypeError(f"queue: must be a pyopencl.CommandQueue, is {type(queue).__name__}")
    if array.context != queue.context:
        raise ValueError("queue: is of another context than the array")
    if handles := of_others(queue, array):
        note_use(queue, handles, cl.enqueue_marker(queue))
