"""The seconds of a product's phases."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["Timer"]


class Timer:
    """The seconds that each phase takes, by the host's clock; if it measures, the queue is finished at the end of each.

    Attributes
    ----------
    seconds : dict of str to float
    """

    def __init__(self, queue: Any, *, measures: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._queue = queue
        self._measures = measures
        if measures:
            queue.finish()
            self._begin = time.perf_counter()

    def ended(self, phase: str) -> None:
        """Add the time since the phase before ended to a phase."""
        if self._measures:
            self._queue.finish()
            begin, self._begin = self._begin, time.perf_counter()
            self.seconds[phase] = self.seconds.get(phase, 0.0) + self._begin - begin
