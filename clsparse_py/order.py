"""The order of commands that use one memory: by queues, by the events of arrays, and by uses noted on the memory."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.blocks import lent, wholes
from clsparse_py.overlap import whole_of
from clsparse_py.pool import arena_of
from clsparse_py.uses import flush

__all__ = ["forget_ended", "note_use", "note_written", "of_others", "record_use", "uses_before_writing"]

#: An array's list of events, if other arrays share it, is shortened from this length on.
_MAX_EVENTS = 64

_COMPLETE = cl.command_execution_status.COMPLETE


def _whole(data: Any) -> Any:
    """Return the lent buffer that a buffer is, or is a part of; else the buffer itself."""
    return wholes.get(id(data), data)


def _handle(data: Any) -> int:
    """Return the key of memory: the handle of its buffer, or the address of shared virtual memory."""
    data = _whole(data)
    if isinstance(data, cl.MemoryObjectHolder):
        return int((whole_of(data) or data).int_ptr)
    return int(data.svm_ptr)


def of_others(queue: cl.CommandQueue, *arrays: cl_array.Array) -> tuple[int, ...]:
    """Return the handles of those arrays' memory that belongs to other queues: its uses on this one have to be noted."""
    found: list[int] = []
    own = arena_of(queue).itself
    for array in arrays:
        data = array.base_data
        block = lent.get(id(data))
        if block is None and wholes:
            block = lent.get(id(_whole(data)))
        if block is not None:
            ours = block.arena is own
        else:
            ours = data is None or array.queue is queue or array.queue is None or bool(array.queue == queue)
        if not ours:
            found.append(_handle(data))
    return tuple(found)


def note_use(queue: cl.CommandQueue, handles: Iterable[int], event: cl.Event) -> None:
    """Note that a command uses memory, given by the handles that `of_others` returned."""
    arena_of(queue).pool.note(handles, queue, event)


def uses_before_writing(queue: cl.CommandQueue, *arrays: cl_array.Array) -> list[cl.Event]:
    """Return the noted events that a command which writes to arrays has to wait for; their queues are flushed."""
    pool = arena_of(queue).pool
    if not pool.uses:
        return []
    handles = [_handle(array.base_data) for array in arrays if array.base_data is not None]
    events = pool.uses_before_writing(handles, queue)
    flush(events)
    return events


def note_written(array: cl_array.Array, event: cl.Event) -> None:
    """Note that a command writes to an array, after all earlier writes.

    The list of events is replaced, not changed, as other threads may be about to wait for its events. But if views or arrays
    `with_queue` share the list, it grows in place, as they have to learn of the command.
    """
    events = array.events
    if sys.getrefcount(events) == _alone:
        array.events = [event]
        return
    events.append(event)
    if len(events) > _MAX_EVENTS:
        # The newest event waits for the others. They stay alive until the next call, as a thread may be about to wait for them.
        assert array.queue is not None  # the array was written to on a queue
        arena_of(array.queue).former, events[:-1] = events[:-1], []


def _has_alone(array: Any) -> bool:
    """Return whether no other array has the list of events of an array."""
    events = array.events
    return sys.getrefcount(events) == _has_it_alone


def _written() -> object:
    """Return the events of an array that was written to: a list if its own were found to be its alone."""
    array: Any = SimpleNamespace(events=deque())
    note_written(array, array)
    return array.events


#: The references to a list that only its array holds, as `note_written` and `_has_alone` find them: versions of Python count
#: differently, and depending on the code.
_alone = _has_it_alone = 0
while not isinstance(_written(), list):
    _alone += 1
while not _has_alone(SimpleNamespace(events=[])):
    _has_it_alone += 1


def forget_ended(array: cl_array.Array) -> None:
    """Forget the events of an array if all have ended; not if other arrays share the list, as they learn of writes by it."""
    if not array.events or any(event.command_execution_status != _COMPLETE for event in tuple(array.events)):
        return
    if _has_alone(array):
        array.events = []


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
        One is of another type, or the two are of different contexts.

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
