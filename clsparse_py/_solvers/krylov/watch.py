"""Convergence checks by the host while the device continues."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._memory.memory import submit
from clsparse_py._memory.pool import side_queue
from clsparse_py._solvers.krylov.sweep import Sweeps
from clsparse_py._solvers.krylov.system import LeastSquares, System
from clsparse_py._solvers.krylov.thresholds import Thresholds

__all__ = ["Iteration", "Watch", "iterate"]


class Watch:
    """Asynchronous reads of a pass's scalars: begun every few iterations, and waited for at the next read.

    A host that never waits is the bottleneck: it then looks less often, unless ranks have to look together.

    Parameters
    ----------
    sweeps : Sweeps
    every : int
        How many iterations pass between two looks at least.

    Attributes
    ----------
    turn : int
        Which one of the pass, bound for both turns, is to be enqueued: its scalars are not being read.
    """

    def __init__(self, sweeps: Sweeps, every: int) -> None:
        self._queue, self._sweeps, self._every = sweeps.chain.queue, sweeps, every
        # A read between two kernels of a queue takes a GPU some 30 us, so a second queue reads scalars, but not on CPU devices.
        self._reading = side_queue(self._queue) if sweeps.chain.device.waits_cost else self._queue
        self._read: tuple[cl.Event, np.ndarray[Any, Any]] | None = None
        self._next = self._step = every
        self.turn = 0

    def read_late(self, iterations: int, event_of_values: cl.Event) -> np.ndarray[Any, Any] | None:
        """Begin, if it is time, to read the scalars that a command writes for the host; return the scalars read before, or None.

        The result is None if there was no read before, or if it is not yet time to look.
        """
        if iterations < self._next:
            return None
        previous, self._read = self._read, self._enqueue_read(event_of_values)
        self.turn = 1 - self.turn
        if previous is not None:
            event, host = previous
            is_late = event.command_execution_status == cl.command_execution_status.COMPLETE
            limits = Thresholds.of(self._sweeps.chain.device)
            rarely = min(limits.max_unwatched, iterations // limits.unwatched_share)
            max_step = self._every if self._sweeps.shared else max(rarely, self._every)
            self._step = min(self._step + 1, max_step) if is_late else self._every
            event.wait()
        self._next = iterations + self._step
        return None if previous is None else host

    def read_now(self, event_of_values: cl.Event) -> np.ndarray[Any, Any]:
        """Return the scalars that a command of an iteration writes for the host; waits, and no read is pending afterwards."""
        self._read = None
        event, host = self._enqueue_read(event_of_values)
        event.wait()
        return host

    def _enqueue_read(self, event_of_values: cl.Event) -> tuple[cl.Event, np.ndarray[Any, Any]]:
        """Enqueue the read of the scalars that a command writes for the host, and return its event and the host's array."""
        n = len(self._sweeps.layout.told)
        host = np.empty(n, self._sweeps.dtype)
        begin = (self._sweeps.told_at + self.turn * n) * host.itemsize
        wait_for = None if self._reading is self._queue else [event_of_values]
        # The queue of the iterations is flushed, so that the device begins at once, and the queue that reads can wait for it.
        self._queue.flush()
        event = submit(
            "a read", cl.enqueue_copy, self._reading, host, self._sweeps.scalars.base_data,
            src_offset=begin, is_blocking=False, wait_for=wait_for,
        )  # fmt: skip
        return event, host.real


@dataclasses.dataclass(frozen=True)
class Iteration:
    """The commands of an iteration, and the tests of the scalars that the host reads.

    Attributes
    ----------
    begin : callable
        Enqueues the begin of an iteration, for its number, the turn of the host's scalars, and whether the iteration follows,
        with its product; returns the event of the pass that writes the outcome of the iteration before. Called once more after
        the last iteration.
    finish : callable
        Enqueues the rest of an iteration, for its number. True: the host saw that this iteration was the last.
    info : callable
        Returns info for the scalars that the host read, or None if iterations go on.
    last : callable, optional
        Returns info for the scalars after the last iteration; by default as ``info``, and ``maxiter`` in place of None.
    counts : callable
        Returns whether the callback is called, for the scalars that the host read.
    early : int
        Iterations at first whose scalars the host waits for before it enqueues another product: a preconditioner that is almost
        the inverse needs no more. The begin of an iteration may be repeated then.
    """

    begin: Callable[[int, int, bool], cl.Event]
    finish: Callable[[int], bool | None]
    info: Callable[..., int | None]
    last: Callable[..., int] | None = None
    counts: Callable[..., bool] = lambda *_: True
    early: int = 0


def iterate(system: System | LeastSquares, sweeps: Sweeps, iteration: Iteration) -> int:
    """Enqueue the iterations of a Krylov method until its test ends them, ``maxiter`` at most, and return SciPy's info."""
    watch = Watch(sweeps, system.check_every)
    number = 0
    for number in range(system.maxiter):
        system.made = number
        event = iteration.begin(number, watch.turn, True)
        values = watch.read_late(number, event) if system.callback is None else watch.read_now(event)
        if values is not None:
            if system.callback is not None and number and iteration.counts(*values):
                system.callback(system.x)
            info = iteration.info(*values)
            if info is not None:
                return info
        is_last = iteration.finish(number)
        if is_last or (
            number < iteration.early
            and iteration.info(*watch.read_now(iteration.begin(number + 1, watch.turn, False))) is not None
        ):
            break
    system.made = number + 1
    values = watch.read_now(iteration.begin(number + 1, watch.turn, False))
    if system.callback is not None and system.maxiter and iteration.counts(*values):
        system.callback(system.x)
    info = (iteration.last or iteration.info)(*values)
    return system.maxiter if info is None else info
