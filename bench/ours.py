"""The library itself as a contestant: the plan that it chooses, and any that is named."""

from __future__ import annotations

import functools
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

import clsparse_py as cs
from bench.contestants import Contestant, Prepared, seconds_of
from bench.problem import Array, Problem
from clsparse_py.spmv import KernelChoice

FAMILY = "clsparse"
CALLS = 10


@dataclass(frozen=True)
class Variant:
    """A way of ours to compute a product: ``auto``, ``scheme``, or ``scheme:kernel`` with ``:parameter=number`` after it."""

    name: str
    scheme: str
    kernel: str | KernelChoice | None

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read a variant from the command line.

        Raises
        ------
        ValueError
            If it does not have that form, or there is no such kernel or parameter.
        """
        scheme, *rest = text.split(":")
        if not rest:
            return cls(text, scheme, None)
        kernel, *assignments = rest
        try:
            parameters = {name: int(number) for name, number in (each.split("=") for each in assignments)}
            return cls(text, scheme, KernelChoice(kernel, **parameters) if parameters else kernel)
        except (TypeError, ValueError) as error:
            raise ValueError(f"variant: {text!r} is not scheme:kernel:parameter=number: {error}") from error


class OwnSpmv(Prepared):
    """y = A @ x by a plan, on a queue without profiling; ``single`` is what the plan's own profiling says."""

    def __init__(self, problem: Problem, queue: cl.CommandQueue, variant: Variant) -> None:
        super().__init__()
        self._queue = queue
        self._matrix, self._x, transfer = _on_device(problem, queue)
        self._y = cla.empty(queue, problem.reference.size, problem.dtype)
        start = time.perf_counter()
        self._plan = cs.spmv_plan(self._matrix, scheme=variant.scheme, kernel=variant.kernel)
        queue.finish()
        self.once = {"transfer": transfer, "plan": time.perf_counter() - start}
        self.once["first_call"] = seconds_of(self._call_and_wait)
        self.detail = str(self._plan)

    def _call(self) -> None:
        cs.spmv(self._matrix, self._x, plan=self._plan, out=self._y)

    def _call_and_wait(self) -> None:
        self._call()
        self._queue.finish()

    def poison(self) -> None:
        """Overwrite the result with NaN."""
        buffer: Any = self._y.data
        if buffer is not None:
            cl.enqueue_fill_buffer(self._queue, buffer, np.array(np.nan, self._y.dtype), 0, self._y.nbytes)
        self._queue.finish()

    def sample(self, repeat: int) -> dict[str, float]:
        """Time products in all four ways."""
        single = self._plan.profile(self._matrix, self._x, self._y)
        calls, walls = [], []
        for _ in range(CALLS):
            start = time.perf_counter()
            self._call()
            called = time.perf_counter()
            self._queue.finish()
            calls.append(called - start)
            walls.append(time.perf_counter() - start)
        start = time.perf_counter()
        for _ in range(repeat):
            self._call()
        self._queue.finish()
        back_to_back = (time.perf_counter() - start) / repeat
        return {
            "back_to_back": back_to_back,
            "single": single,
            "host": statistics.median(calls),
            "wall": statistics.median(walls),
        }

    def result(self) -> Array:
        """Return what the last product left."""
        return self._y.get(self._queue)


@functools.lru_cache(maxsize=1)
def _on_device(problem: Problem, queue: cl.CommandQueue) -> tuple[cs.csr_array, cla.Array, float]:
    """Return A and x on the device, once for all variants, and the seconds that this took."""
    start = time.perf_counter()
    matrix, x = cs.csr_array(problem.matrix, queue=queue), cla.to_device(queue, problem.x)
    queue.finish()
    return matrix, x, time.perf_counter() - start


def contestants(queue: cl.CommandQueue, variants: list[str]) -> list[Contestant]:
    """Return a contestant for each variant, given as `Variant.parse` reads it."""
    return [_contestant(queue, Variant.parse(text)) for text in variants]


def _contestant(queue: cl.CommandQueue, variant: Variant) -> Contestant:
    return Contestant(f"{FAMILY}/{variant.name}", lambda problem: OwnSpmv(problem, queue, variant))
