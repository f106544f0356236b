"""Upgrades of plans: costlier preparations that replace the first ones after enough calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

import pyopencl as cl

from clsparse_py._ground.errors import BuildError

__all__ = ["Upgrade"]

_log = logging.getLogger(__name__)
_Prepared = TypeVar("_Prepared")


class Upgrade(Generic[_Prepared]):
    """A preparation that takes the place of a plan's commands from some call on; no call waits for it.

    For one thread at a time.

    Parameters
    ----------
    name : str
        The upgrade's name, for explanations.
    after : int
        The number of the call that begins the preparation: for fewer calls it does not pay.
    expected : int, optional
        The number of calls that the caller expects: the upgrade is made at the first call, which waits, if they are ``after`` or
        more, else never.
    make : callable
        A generator function that enqueues the preparation and returns it, or None if it is of no use. It yields an event instead
        of waiting for the device; a call after that event resumes it.

    Attributes
    ----------
    name : str
    after : int
    is_done : bool
        Whether the preparation was made, or is known to be of no use.
    made : object or None
        The preparation.
    """

    def __init__(
        self, name: str, after: int, expected: int | None, make: Callable[[], Generator[cl.Event, None, _Prepared | None]]
    ) -> None:
        self.name, self.after = name, after
        self._at_once = expected is not None
        self.is_done = expected is not None and expected < after
        self.made: _Prepared | None = None
        self._calls = 0
        self._steps = make()
        self._awaited: cl.Event | None = None

    def __str__(self) -> str:
        if self.is_done:
            return f"{self.name}: {'not made' if self.made is None else 'done'}"
        return f"{self.name}: due at call {self.after}, after {self._calls} by now"

    def come(self) -> bool:
        """Count a call of the plan, and return whether the plan's upgrade, a costlier preparation, is done by now."""
        self._calls += 1
        if self.is_done:
            return True
        return (self._at_once or self._calls >= self.after) and self._go_on(wait=self._at_once)

    def now(self) -> _Prepared | None:
        """Finish the plan's upgrade, waiting for the device, and return what it prepared; None if it failed or is of no use."""
        if not self.is_done:
            self._go_on(wait=True)
        return self.made

    def _go_on(self, *, wait: bool) -> bool:
        """Continue the plan's upgrade, with ``wait`` to its end, else until it has to wait; return whether it is done."""
        try:
            while True:
                if self._awaited is not None:
                    if wait:
                        self._awaited.wait()
                    elif self._awaited.command_execution_status > cl.command_execution_status.COMPLETE:
                        return False
                self._awaited = next(self._steps)
        except StopIteration as end:
            self.made = end.value
        except (BuildError, MemoryError) as error:
            _log.info("%s: not to be had: %s", self.name, error)
        self.is_done, self._awaited = True, None
        return True
