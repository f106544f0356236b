"""The base of peers on CUDA: memory, streams and events by CuPy, libraries called directly, calls timed by events."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import machine
from bench.contestants import CALLS, Prepared, seconds_of
from bench.problems.base import Problem, Result

# Arrays of CuPy's, whose types are unknown where it is not installed.
Arrays = tuple[Any, ...]
# The dtype, the shape and the digest of each array of a result.
Digests = list[tuple[Any, tuple[int, ...], int]]


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
    """Return one of CUDA's libraries: the file that e.g. ``CUSPARSE_LIBRARY`` names, else what CuPy itself finds."""
    if (path := os.environ.get(f"{name.upper()}_LIBRARY")) is not None:
        return ctypes.CDLL(path)
    # In wheels, conda and the system's folders.
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
        # The digests of a result that is known to be right, and its error.
        self._right: Digests | None = None
        self._error = 0.0
        self.detail = detail
        _let_go(problem)
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
        kept = {array.data.ptr for array in self._shared}
        for array in (array for array in self._results if array.data.ptr not in kept):
            array.view(np.uint8).fill(0xFF)
        synchronize()

    def sample(self, repeat: int) -> dict[str, float]:
        """Time calls in all ways but ``busy``."""
        single = seconds_on_device(self._call, 1)
        calls, walls = [], []
        for _ in range(min(CALLS, repeat)):
            start = time.perf_counter()
            self._call()
            called = time.perf_counter()
            synchronize()
            calls.append(called - start)
            walls.append(time.perf_counter() - start)
        return {
            "single": single,
            "back_to_back": seconds_on_device(self._call, repeat),
            "host": statistics.median(calls),
            "wall": statistics.median(walls),
        }

    def error(self) -> float:
        """Return the error of what the last call left.

        What has the bits of a result that was right is so too. That is found out on the device, as it takes no time there.
        """
        result = _digests(self._results)
        if result != self._right:
            self._error = self._problem.error(tuple(array.get() for array in self._unpack(self._results)))
            self._right = result
        return self._error


@functools.lru_cache(maxsize=1)
def _let_go(_problem: Problem) -> None:
    """Give back the memory that the problem before left unused, once a problem."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


@functools.cache
def _mixing_kernel() -> Any:
    """Return the kernel that makes 64 bits of each word and its place, as in `bench.opencl`."""
    import cupy

    return cupy.ElementwiseKernel(
        "uint32 word",
        "uint64 mixed",
        """
        unsigned long long z = word + (i + 1) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        mixed = z ^ (z >> 31);
        """,
        "bench_mixed",
    )


def _digests(arrays: Arrays) -> Digests:
    words = (array.view(np.uint32) for array in arrays)
    return [(array.dtype, array.shape, int(_mixing_kernel()(word).sum())) for array, word in zip(arrays, words, strict=True)]
