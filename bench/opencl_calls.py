"""Calls on an OpenCL queue, of the library's functions or of PyOpenCL's: how they are timed and checked."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import pyopencl as cl
import pyopencl.array as cla
from pyopencl.tools import ImmediateAllocator, MemoryPool

from bench import opencl
from bench.contestants import CALLS, Prepared, seconds_of
from bench.problems.base import ExactProblem, Problem, Result
from bench.problems.primitives import Primitive
from clsparse_py._memory.memory import free_memory

Arrays = tuple[cla.Array, ...]
# The dtype, the shape and the digest of each array of a result.
Digests = list[tuple[Any, tuple[int, ...], int]]


class OpenclCalls(Prepared):
    """A call that leaves device arrays, on a queue without profiling.

    New arrays are let go before the next call, which then may get the same memory.

    Parameters
    ----------
    problem
        What to compute.
    queue
        Where; operands are there already.
    call
        Takes a queue, enqueues the computation there, and returns the result's arrays.
    once
        Seconds of what was done before.
    shared
        Arrays that a result may share, and that are not overwritten for that.
    on_device
        Returns seconds by the device's clock; by default ``single`` and ``busy`` of one call on `opencl.profiling_queue`.
    """

    def __init__(
        self,
        problem: Problem,
        queue: cl.CommandQueue,
        call: Callable[[cl.CommandQueue], Arrays],
        once: dict[str, float],
        *,
        detail: str = "",
        shared: Arrays = (),
        on_device: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        super().__init__()
        self._problem = problem
        self._queue = queue
        self._compute = call
        self._shared = shared
        self._on_device = on_device or self._profiled
        self._results: Arrays = ()
        # The digests of a result that is known to be right, and its error.
        self._right: Digests | None = None
        self._error = 0.0
        self.detail = detail
        _let_go(problem, queue)
        self.once = {**once, "first_call": seconds_of(self._call_and_wait)}

    def _call(self, queue: cl.CommandQueue | None = None) -> None:
        self._results = ()
        self._results = self._compute(queue or self._queue)

    def _call_and_wait(self) -> None:
        self._call()
        self._queue.finish()

    def _profiled(self) -> dict[str, float]:
        profiling = opencl.profiling_queue(self._queue)
        single, busy = opencl.device_seconds(profiling, lambda: self._call(profiling))
        return {"single": single, "busy": busy}

    def poison(self) -> None:
        """Set all bits of the result: NaN, or -1."""
        kept = [(array.base_data, array.offset) for array in self._shared]
        for array in self._results:
            if (array.base_data, array.offset) not in kept:
                opencl.fill_with_ones(self._queue, array)
        self._queue.finish()

    def sample(self, repeat: int) -> dict[str, float]:
        """Time calls in all ways."""
        on_device = self._on_device()
        calls, walls = [], []
        for _ in range(min(CALLS, repeat)):
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
            **on_device,
            "host": statistics.median(calls),
            "wall": statistics.median(walls),
        }

    def error(self) -> float:
        """Return the error of what the last call left.

        What has the bits of a result that was right is so too. That is found out on the device, as it takes no time there.
        """
        result = _digests(self._queue, self._results)
        if self._right is None and isinstance(self._problem, ExactProblem):
            self._right = _right_digests(self._problem, self._queue)
        if result != self._right:
            self._error = self._problem.error(tuple(array.get(self._queue) for array in self._results))
            self._right = result
        return self._error


def _digests(queue: cl.CommandQueue, arrays: Arrays) -> Digests:
    return [(array.dtype, array.shape, opencl.digest(queue, array)) for array in arrays]


@functools.lru_cache(maxsize=1)
def _pool(queue: cl.CommandQueue) -> MemoryPool:
    """Return the pool that operands are made with, so that results come from it too."""
    return MemoryPool(ImmediateAllocator(queue))


def to_device(queue: cl.CommandQueue, arrays: Result) -> Arrays:
    """Return copies of arrays on the device, in memory of the pool."""
    return tuple(cla.to_device(queue, array, allocator=_pool(queue)) for array in arrays)


@functools.lru_cache(maxsize=1)
def _right_digests(problem: Problem, queue: cl.CommandQueue) -> Digests:
    """Return the digests of a problem's right result, computed once for all contestants."""
    return _digests(queue, to_device(queue, problem.reference))


@functools.lru_cache(maxsize=1)
def _let_go(_problem: Problem, queue: cl.CommandQueue) -> None:
    """Give back the memory that the problem before left unused, once a problem."""
    _pool(queue).free_held()
    free_memory()


@functools.lru_cache(maxsize=1)
def operands_on_device(problem: Primitive, queue: cl.CommandQueue) -> tuple[dict[str, cla.Array], float]:
    """Return a primitive's operands on the device, once for all contestants, and the seconds that this took."""
    start = time.perf_counter()
    operands = dict(zip(problem.operands, to_device(queue, tuple(problem.operands.values())), strict=True))
    queue.finish()
    return operands, time.perf_counter() - start
