"""A timer of a product's phases."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["UNTIMED", "Timer"]


class Timer:
    """The seconds that each phase of a product takes, by the host's clock; the queue is finished at the end of a phase.

    Parameters
    ----------
    queue : pyopencl.CommandQueue or None
        None: nothing is measured, and the queue is not finished.

    Attributes
    ----------
    seconds : dict of str to float
    """

    def __init__(self, queue: Any) -> None:
        self.seconds: dict[str, float] = {}
        self._queue = queue
        if queue is not None:
            queue.finish()
            self._begin = time.perf_counter()

    def end_phase(self, phase: str) -> None:
        """Finish the queue, and add the seconds since the last phase ended to the seconds of ``phase``; nothing if untimed."""
        if self._queue is not None:
            self._queue.finish()
            begin, self._begin = self._begin, time.perf_counter()
            self.seconds[phase] = self.seconds.get(phase, 0.0) + self._begin - begin


#: Timer of the phases of an SpGEMM that measures nothing: the default.
UNTIMED = Timer(None)
