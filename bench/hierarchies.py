"""Multigrid hierarchies as results: whoever sets one up, refreshes it or solves with it, is checked by a solution."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.contestants import Prepared, seconds_of
from bench.problems.multigrid import Multigrid

__all__ = ["HierarchyCalls", "describe"]


class HierarchyCalls(Prepared):
    """A call that leaves a hierarchy or a solution.

    Parameters
    ----------
    problem
        What to compute.
    call
        Computes it, and may return before the device is done.
    solution
        Returns x of what the last call returned, outside of what is timed.
    wait
        Waits for the device.
    """

    def __init__(
        self, problem: Multigrid, call: Callable[[], Any], solution: Callable[[Any], Any], wait: Callable[[], object], detail: str
    ) -> None:
        super().__init__()
        self.detail = detail
        self._problem, self._call, self._solution, self._wait = problem, call, solution, wait
        self._made: Any = None
        self.once["first_call"] = seconds_of(self._once)

    def _once(self) -> None:
        self._made = None
        self._made = self._call()
        self._wait()

    def poison(self) -> None:
        """Let go of the result: each call makes another."""
        self._made = None

    def sample(self, repeat: int) -> dict[str, float]:
        """Time ``repeat`` calls in a row, and one that is waited for."""
        start = time.perf_counter()
        for _ in range(repeat):
            self._made = None
            self._made = self._call()
        self._wait()
        back_to_back = (time.perf_counter() - start) / repeat
        return {"back_to_back": back_to_back, "wall": seconds_of(self._once) if repeat > 1 else back_to_back}

    def error(self) -> float:
        """Return the error of a solution by what the last call left."""
        return self._problem.error((np.asarray(self._solution(self._made)),))


def describe(hierarchy: Any, problem: Multigrid, b: Any) -> str:
    """Return a hierarchy in words: the iterations of conjugate gradients that it preconditions, its levels, its complexity."""
    residuals: list[float] = []
    hierarchy.solve(b, tol=problem.tolerance, accel="cg", residuals=residuals)
    levels, complexity = len(hierarchy.levels), hierarchy.operator_complexity()
    return f"{len(residuals) - 1} iterations of CG, {levels} levels, operator complexity {complexity:.2f}"
