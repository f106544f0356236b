"""Out-of-order queues: operations run on an in-order queue beside, between two markers.

This is the one rule for such queues, kept where commands are enqueued (`memory.submit`, `launch.Chain`). Everything else takes
any queue for one in order.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pyopencl as cl

__all__ = ["Beside", "has_order", "queue_beside"]

_WITHOUT_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
#: Commands that the host may be ahead of the first unfinished one (quirk 43).
_MOST_AHEAD = 64
#: Longest wait of the host for the first unfinished command, in seconds.
_PATIENCE = 0.01


def has_order(queue: cl.CommandQueue) -> bool:
    """Return whether a queue keeps the order of its commands."""
    return not queue.properties & _WITHOUT_ORDER


def queue_beside(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return a new queue in order on the same device, with the other properties."""
    properties: Any = queue.properties & ~_WITHOUT_ORDER
    return cl.CommandQueue(queue.context, queue.device, properties)


class Beside:
    """A queue in order that runs operations' commands for a user's queue without order.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        In order.
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue = queue_beside(queue)
        self._ends: deque[cl.Event] = deque()

    def run(self, command: Callable[..., Any], queue: cl.CommandQueue, *arguments: Any, **keywords: Any) -> Any:
        """Enqueue a command, or several by one call, for the user's queue, and return what the call returns: the last event.

        They come after all that is on the user's queue; what comes there later, a barrier, a marker or `finish`, waits for them.
        """
        begin = cl.enqueue_marker(queue)
        queue.flush()
        cl.enqueue_barrier(self.queue, wait_for=[begin])
        event = command(self.queue, *arguments, **keywords)
        self.queue.flush()
        self._ends.append(cl.enqueue_marker(queue, wait_for=[event]))
        queue.flush()
        if len(self._ends) > _MOST_AHEAD:
            _await(self._ends.popleft())
        return event


def _await(event: cl.Event) -> None:
    """Wait for an event, but not for long: it may be held back by one that the user sets."""
    until = time.monotonic() + _PATIENCE
    while event.command_execution_status > cl.command_execution_status.COMPLETE and time.monotonic() < until:
        time.sleep(_PATIENCE / 100)
