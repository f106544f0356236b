"""Commands that use memory outside of the order of the queue that it belongs to: later commands there have to wait for them."""

from __future__ import annotations

from collections.abc import Iterable

import pyopencl as cl

__all__ = ["Uses", "flush"]

#: From this many uses of one block on a queue without order on, one marker replaces them.
_MAX_USES = 16

_COMPLETE = cl.command_execution_status.COMPLETE


class Uses(dict[int, dict[int, list[cl.Event]]]):
    """Events of commands, by the handle of the memory that they use, then by the handle of their queue.

    For one thread at a time: the pool of the memory calls it under its lock.
    """

    def note(self, pointers: Iterable[int], queue: cl.CommandQueue, event: cl.Event, ordered: bool) -> None:
        """Note that a command on a queue, which keeps its commands in order or does not, uses memory."""
        of = queue.int_ptr
        if len(self) > _MAX_USES:
            for pointer in tuple(self):
                self.running(pointer)
        for pointer in pointers:
            by_queue = self.setdefault(pointer, {})
            # On a queue in order, the newest command ends last: its event is enough.
            events = [] if ordered else by_queue.get(of, [])
            if len(events) >= _MAX_USES:
                events = [cl.enqueue_marker(queue, wait_for=events)]
            by_queue[of] = [*events, event]

    def any_running(self) -> bool:
        """Return whether a command has not ended; forget those that have."""
        # The oldest first: one that has not ended is found at once.
        while self:
            if self.running(next(iter(self))):
                return True
        return False

    def running(self, pointer: int, own: int | None = None) -> list[cl.Event]:
        """Return the events of running commands that use memory, without those of the queue ``own``; forget ended ones."""
        by_queue = self.get(pointer)
        if by_queue is None:
            return []
        left: dict[int, list[cl.Event]] = {}
        for of, events in by_queue.items():
            if running := [event for event in events if event.command_execution_status > _COMPLETE]:
                left[of] = running
        if left:
            self[pointer] = left
        else:
            del self[pointer]
        return [event for of, events in left.items() if of != own for event in events]


def flush(events: Iterable[cl.Event]) -> None:
    """Flush the queues of events before another queue waits for these events, as OpenCL asks."""
    for event in events:
        queue = event.command_queue
        if queue is not None:  # user events have no queue
            queue.flush()
