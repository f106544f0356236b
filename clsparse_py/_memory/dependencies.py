"""Commands that use memory outside of the order of the queue that it belongs to: later commands there have to wait for them."""

from __future__ import annotations

from collections.abc import Iterable

import pyopencl as cl

__all__ = ["Uses", "flush"]

_COMPLETE = cl.command_execution_status.COMPLETE


class Uses(dict[int, dict[int, cl.Event]]):
    """The last commands, as events, by the handle of the memory that they use, then by the handle of their queue.

    For one thread at a time: the pool of the memory calls it under its lock.
    """

    def note(self, pointers: Iterable[int], queue: cl.CommandQueue, event: cl.Event) -> None:
        """Note that a command uses memory; it ends after all commands noted for the same queue before."""
        self.any_running()
        for pointer in pointers:
            self.setdefault(pointer, {})[queue.int_ptr] = event

    def any_running(self) -> bool:
        """Return whether any command still runs; forget ended commands."""
        # In the order of insertion, up to the first command that still runs.
        while self:
            if self.running(next(iter(self))):
                return True
        return False

    def running(self, pointer: int, own_queue: int | None = None) -> list[cl.Event]:
        """Return the events of running commands that use memory, without those of the queue ``own_queue``; forget ended ones."""
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
    """Flush the queues of events before another queue waits for these events, as OpenCL asks."""
    for event in events:
        queue = event.command_queue
        if queue is not None:  # user events have no queue
            queue.flush()
