"""Upgrades of plans: costlier preparations that replace the first ones after enough calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

import pyopencl as cl

from clsparse_py._ground.errors import BuildError

__all__ = ["Upgrade"]

_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")


class Upgrade(Generic[_Made]):
    """Something that takes the place of a plan's commands from some call on; no call waits for it.

    For one thread at a time.

    Parameters
    ----------
    name : str
        What it is, for explanations.
    after : int
        It is begun by this call: behind fewer, to make it does not pay.
    expected : int, optional
        How many calls the caller expects: if that is ``after`` or more it is made at the first call, which waits, else never.
    make : callable
        A generator function that enqueues what makes it, and returns it, or None if it is of no use. It yields an event wherever
        it had to wait for the device: it is resumed by a call that comes after the event.

    Attributes
    ----------
    name : str
    after : int
    is_done : bool
        Whether it was made, or is known to be of no use.
    made : object or None
    """

    def __init__(
        self, name: str, after: int, expected: int | None, make: Callable[[], Generator[cl.Event, None, _Made | None]]
    ) -> None:
        self.name, self.after = name, after
        self._at_once = expected is not None
        self.is_done = expected is not None and expected < after
        self.made: _Made | None = None
        self._calls = 0
        self._steps = make()
        self._awaited: cl.Event | None = None

    def __str__(self) -> str:
        if self.is_done:
            return f"{self.name}: {'not made' if self.made is None else 'done'}"
        return f"{self.name}: due at call {self.after}, after {self._calls} by now"

    def come(self) -> bool:
        """Take note of a call, and return whether the upgrade is done by now."""
        self._calls += 1
        if self.is_done:
            return True
        return (self._at_once or self._calls >= self.after) and self._go_on(wait=self._at_once)

    def now(self) -> _Made | None:
        """Make the upgrade, and return it. Waits."""
        if not self.is_done:
            self._go_on(wait=True)
        return self.made

    def _go_on(self, *, wait: bool) -> bool:
        """Go on with the upgrade until there is something to wait for, and return whether it is done."""
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
