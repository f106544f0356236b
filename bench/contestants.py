"""The interface between the runner and whoever takes part: the library itself, and its peers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.problems import Problem
from bench.problems.base import Result

# Calls of one sample that are made back to back.
BACK_TO_BACK = 20
# Calls of a sample that are timed one by one, at most.
CALLS = 10
# Seconds of the longest sample: of calls that would take more, fewer are made.
LONGEST_SAMPLE = 0.4


class DeclinedError(Exception):
    """A contestant does not take part in a problem, for a reason that is no failure."""


class Prepared(ABC):
    """A contestant that holds one problem's operands and can compute its result again and again.

    Attributes
    ----------
    detail
        What was chosen to compute it: an algorithm, a plan.
    once
        Seconds of what is done once a problem: ``transfer``, ``plan``, ``first_call``, whichever there are.
    """

    detail: str = ""

    def __init__(self) -> None:
        self.once: dict[str, float] = {}

    @abstractmethod
    def poison(self) -> None:
        """Overwrite the memory of the result, so that a call that writes nothing is found out."""

    @abstractmethod
    def sample(self, repeat: int) -> dict[str, float]:
        """Call and return seconds a call, by way of timing; ``back_to_back`` is always among them.

        ==============  ================================================================================================
        back_to_back    ``repeat`` calls in a row, start to finish, divided by ``repeat``
        single          one call on the device, its first start to its last end
        busy            one call on the device, its commands added up
        host            one call that does not wait at its end
        wall            one call that waits
        ==============  ================================================================================================
        """

    @abstractmethod
    def error(self) -> float:
        """Return the error of what the last call left, as `Problem.error` does.

        Raises
        ------
        WrongResultError
            If it is wrong.
        """


@dataclass(frozen=True)
class Contestant:
    """Somebody who can compute an operation.

    Attributes
    ----------
    name
        ``family`` or ``family/variant``.
    prepare
        Takes a problem of the operation, and returns it ready to be computed; it may raise `DeclinedError`.
    """

    name: str
    prepare: Callable[[Any], Prepared]


class HostPrepared(Prepared):
    """A blocking call on NumPy arrays.

    Parameters
    ----------
    problem
        What to compute.
    call
        Computes it and returns the result, which may be new arrays or some that it keeps.
    unpack
        Makes of that what the problem wants, outside of what is timed.
    shared
        Arrays of the problem that the result may share.
    """

    def __init__(
        self,
        problem: Problem,
        call: Callable[[], Result],
        detail: str = "",
        *,
        unpack: Callable[[Result], Result] = tuple,
        shared: Result = (),
    ) -> None:
        super().__init__()
        self.detail = detail
        self._problem = problem
        self._call = call
        self._unpack = unpack
        self._shared = shared
        self._result: Result = ()
        self.once["first_call"] = seconds_of(self._once)

    def _once(self) -> None:
        self._result = self._call()

    def poison(self) -> None:
        """Overwrite the result with words of ones: NaN, or -1."""
        for part in self._result:
            if not any(np.may_share_memory(part, kept) for kept in self._shared):
                part.ravel(order="K").view(np.uint8).fill(0xFF)

    def sample(self, repeat: int) -> dict[str, float]:
        """Time ``repeat`` calls in a row."""
        return {"back_to_back": seconds_of(self._once, repeat)}

    def error(self) -> float:
        """Return the error of what the last call left."""
        return self._problem.error(self._unpack(self._result))


def seconds_of(action: Callable[[], object], repeat: int = 1) -> float:
    """Return the wall-clock seconds of one ``action``, from ``repeat`` in a row."""
    start = time.perf_counter()
    for _ in range(repeat):
        action()
    return (time.perf_counter() - start) / repeat


def calls_a_sample(seconds: float) -> int:
    """Return how many calls of this many seconds make a sample."""
    return int(np.clip(LONGEST_SAMPLE / max(seconds, 1e-9), 1, BACK_TO_BACK))
