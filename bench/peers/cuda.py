"""What peers on CUDA share: memory, streams and events by CuPy, libraries called directly, calls timed by events."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import machine
from bench.contestants import Prepared, seconds_of
from bench.problems.base import ExactProblem, Problem, Result

# CuPy's, whose types are unknown where it is not installed.
Arrays = tuple[Any, ...]


def available() -> str | None:
    """Return why CuPy cannot run here, or None."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return str(error)
    return None


def versions() -> dict[str, str]:
    """Return the versions of the driver and of CuPy."""
    import cupy

    return {
        "cuda_driver": str(cupy.cuda.runtime.driverGetVersion()),
        "cupy": machine.version_of("cupy-cuda13x") or str(cupy.__version__),
    }


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """Return one of CUDA's libraries, found by the helper that CuPy itself finds them with: wheels, conda, system folders."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return ctypes.CDLL(load_nvidia_dynamic_lib(name).abs_path)


def synchronize() -> None:
    """Wait for the current stream."""
    import cupy

    cupy.cuda.get_current_stream().synchronize()


def seconds_on_device(action: Callable[[], object], repeat: int) -> float:
    """Return the seconds of one ``action``, from ``repeat`` in a row between two events."""
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(repeat):
        action()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3 / repeat


def address(array: Any) -> ctypes.c_void_p:
    """Return where a CuPy array begins, as a C argument."""
    return ctypes.c_void_p(array.data.ptr)


def to_device(arrays: Result) -> tuple[Arrays, float]:
    """Return NumPy arrays as CuPy arrays, and the seconds that this took."""
    import cupy

    start = time.perf_counter()
    on_device = tuple(cupy.asarray(array) for array in arrays)
    synchronize()
    return on_device, time.perf_counter() - start


class CudaCalls(Prepared):
    """A call that leaves CuPy arrays and is timed by CUDA events.

    Parameters
    ----------
    problem
        What to compute.
    call
        Enqueues it and returns the arrays, which may be new or some that it keeps.
    once
        Seconds of what was done before.
    unpack
        Makes of the arrays what the problem wants, outside of what is timed.
    shared
        Arrays that the call does not write to, though they belong to the result.
    """

    def __init__(
        self,
        problem: Problem,
        call: Callable[[], Arrays],
        once: dict[str, float],
        detail: str = "",
        *,
        unpack: Callable[[Arrays], Arrays] = tuple,
        shared: Arrays = (),
    ) -> None:
        super().__init__()
        self._shared = shared
        self._problem = problem
        self._compute = call
        self._unpack = unpack
        self._results: Arrays = ()
        self.detail = detail
        self.once = {**once, "first_call": seconds_of(self._call_and_wait)}

    def _call(self) -> None:
        # Let go first: a new array then is the same memory.
        self._results = ()
        self._results = self._compute()

    def _call_and_wait(self) -> None:
        self._call()
        synchronize()

    def poison(self) -> None:
        """Set all bits of the result: NaN, or -1."""
        for array in (array for array in self._results if not any(array is kept for kept in self._shared)):
            array.view(np.uint8).fill(0xFF)
        synchronize()

    def sample(self, repeat: int) -> dict[str, float]:
        """Time calls in all ways but ``busy``."""
        start = time.perf_counter()
        self._call()
        called = time.perf_counter()
        synchronize()
        wall = time.perf_counter() - start
        return {
            "single": seconds_on_device(self._call, 1),
            "back_to_back": seconds_on_device(self._call, repeat),
            "host": called - start,
            "wall": wall,
        }

    def error(self) -> float:
        """Return the error of what the last call left; exact results are compared on the device, where that takes no time."""
        results = self._unpack(self._results)
        if isinstance(self._problem, ExactProblem) and _same_bits(results, _reference_on_device(self._problem)):
            return 0.0
        return self._problem.error(tuple(array.get() for array in results))


def _same_bits(results: Arrays, expected: Arrays) -> bool:
    kinds = [[(array.dtype, array.shape) for array in arrays] for arrays in (results, expected)]
    return kinds[0] == kinds[1] and all(
        bool((array.view(np.uint32) == right.view(np.uint32)).all()) for array, right in zip(results, expected, strict=True)
    )


@functools.lru_cache(maxsize=1)
def _reference_on_device(problem: Problem) -> Arrays:
    import cupy

    # What is left of the problem before.
    cupy.get_default_memory_pool().free_all_blocks()
    return to_device(problem.reference)[0]
