"""Commands that the order of their queue does not cover: of out-of-order queues, and on memory of another queue.

Operations for an out-of-order queue run on an in-order queue beside it, between two markers. This is the one rule for such
queues, kept where commands are enqueued (`memory.submit`, `launch.Chain`). Everything else takes any queue for one in order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import pyopencl as cl

__all__ = ["Beside", "Uses", "flush", "has_order", "queue_beside"]

#: OpenCL's property of a queue that runs its commands in any order.
_OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
#: OpenCL's execution status of a command that has ended; running and waiting commands have a greater status.
_COMPLETE = cl.command_execution_status.COMPLETE
#: Most commands that the host may enqueue for an out-of-order queue ahead of the first unfinished command (quirk 43).
_MOST_AHEAD = 64
#: Longest wait of the host for the first unfinished command of an out-of-order queue, in seconds.
_PATIENCE = 0.01


def has_order(queue: cl.CommandQueue) -> bool:
    """Return whether a queue keeps the order of its commands."""
    return not queue.properties & _OUT_OF_ORDER


def queue_beside(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return a new in-order queue on the device of another queue, with that queue's other properties."""
    properties: Any = queue.properties & ~_OUT_OF_ORDER
    return cl.CommandQueue(queue.context, queue.device, properties)


class Beside:
    """An in-order queue that runs the commands of operations for a user's out-of-order queue.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        The in-order queue.
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue = queue_beside(queue)
        self._ends: deque[cl.Event] = deque()

    def run(self, command: Callable[..., Any], queue: cl.CommandQueue, *arguments: Any, **keywords: Any) -> Any:
        """Run a function that enqueues commands for the user's out-of-order queue, and return its result: the last event.

        The command begins after all earlier commands of the user's queue. Later barriers, markers and calls of `finish` there
        wait for it.
        """
        begin = cl.enqueue_marker(queue)
        queue.flush()
        cl.enqueue_barrier(self.queue, wait_for=[begin])
        event = command(self.queue, *arguments, **keywords)
        self.queue.flush()
        self._ends.append(cl.enqueue_marker(queue, wait_for=[event]))
        queue.flush()
        if len(self._ends) > _MOST_AHEAD:
            _wait_briefly(self._ends.popleft())
        return event


def _wait_briefly(event: cl.Event) -> None:
    """Wait for an event for `_PATIENCE` seconds at most, as it may depend on an event that the user has yet to set."""
    until = time.monotonic() + _PATIENCE
    while event.command_execution_status > _COMPLETE and time.monotonic() < until:
        time.sleep(_PATIENCE / 100)


class Uses(dict[int, dict[int, cl.Event]]):
    """The last commands, as events, by the handle of the memory that they use, then by the handle of their queue.

    Commands are noted whose order with later commands on the memory's own queue is not given by that queue.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def note(self, pointers: Iterable[int], queue: cl.CommandQueue, event: cl.Event) -> None:
        """Note that a command uses memory of another queue; the command ends after those noted before for its queue."""
        with self._lock:
            self._has_running()
            for pointer in pointers:
                self.setdefault(pointer, {})[queue.int_ptr] = event

    def has_running(self) -> bool:
        """Return whether any command that was noted for a use of memory still runs; forget ended commands."""
        with self._lock:
            return self._has_running()

    def running(self, pointers: Iterable[int], own_queue: int | None = None) -> list[cl.Event]:
        """Return the events of running commands, but not of ``own_queue``, that use handles' memory; forget ended commands."""
        with self._lock:
            return [event for pointer in pointers for event in self._running_on(pointer, own_queue)]

    def _has_running(self) -> bool:
        """Return whether any command that was noted for a use of memory still runs; for callers that have the lock."""
        while self:
            if self._running_on(next(iter(self))):
                return True
        return False

    def _running_on(self, pointer: int, own_queue: int | None = None) -> list[cl.Event]:
        """Return the events of running commands, but not of ``own_queue``, that use a handle's memory; callers have the lock."""
        by_queue = self.get(pointer)
        if by_queue is None:
            return []
        unfinished = {queue: event for queue, event in by_queue.items() if event.command_execution_status > _COMPLETE}
        if unfinished:
            self[pointer] = unfinished
        else:
            del self[pointer]
        return [event for queue, event in unfinished.items() if queue != own_queue]


def flush(events: Iterable[cl.Event]) -> None:
    """Flush the queues of events, as OpenCL asks before another queue waits for these events."""
    for event in events:
        queue = event.command_queue
        if queue is not None:  # user events have no queue
            queue.flush()
