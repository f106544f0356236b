"""cuSPARSE, called directly: every CSR algorithm with its preprocessing. CuPy provides memory, streams and events."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import time
from typing import Any

import numpy as np

from bench import machine
from bench.contestants import Contestant, Prepared
from bench.opencl import SAMPLES, Copy
from bench.problem import Array, Problem

_NON_TRANSPOSE = 0
_ZERO_BASED = 0
_INDEX_TYPES = {"int32": 2, "int64": 3}
_VALUE_TYPES = {"float32": 0, "float64": 1}
_SCALARS: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float}
# cusparseSpMVAlg_t: the ones for CSR.
_ALGORITHMS = {"default": 0, "alg1": 2, "alg2": 3}


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
        _library()
    except (cupy.cuda.runtime.CUDARuntimeError, OSError, RuntimeError) as error:
        return str(error)
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    import cupy

    number = ctypes.c_int()
    _call("cusparseGetVersion", _handle(), ctypes.byref(number))
    return {
        "cusparse": str(number.value),
        "cuda_driver": str(cupy.cuda.runtime.driverGetVersion()),
        "cupy": machine.version_of("cupy-cuda13x") or str(cupy.__version__),
    }


def contestants(operation: str) -> list[Contestant]:
    """Return who can compute an operation."""
    return [_contestant(name) for name in _ALGORITHMS] if operation == "spmv" else []


def large_copy() -> Copy:
    """Return a device-to-device copy by CUDA, to hold the OpenCL one against."""
    import cupy

    size = min(cupy.cuda.runtime.memGetInfo()[1] // 8, 1 << 30)
    source, target = cupy.ones(size, cupy.uint8), cupy.empty(size, cupy.uint8)
    samples = tuple(_seconds_on_device(lambda: cupy.copyto(target, source), 5) for _ in range(SAMPLES + 1))
    return Copy("CUDA", 2 * size, samples[1:])


class _Spmv(Prepared):
    """One algorithm with a matrix descriptor of its own, since preprocessing leaves its mark on the descriptor."""

    def __init__(self, problem: Problem, algorithm: str) -> None:
        import cupy

        super().__init__()
        self._algorithm = _ALGORITHMS[algorithm]
        dtype = problem.dtype.name
        a = problem.matrix
        start = time.perf_counter()
        self._arrays = [cupy.asarray(part) for part in (a.indptr, a.indices, a.data, problem.x)]
        self._y = cupy.empty(problem.reference.size, problem.dtype)
        _synchronize()
        self.once["transfer"] = time.perf_counter() - start

        indptr, indices, data, x = (ctypes.c_void_p(array.data.ptr) for array in self._arrays)
        index_type, value_type = _INDEX_TYPES[a.indices.dtype.name], _VALUE_TYPES[dtype]
        self._matrix, self._vectors = ctypes.c_void_p(), (ctypes.c_void_p(), ctypes.c_void_p())
        n_rows, n_columns, nnz = (ctypes.c_int64(n) for n in (*a.shape, a.nnz))
        # fmt: off
        _call("cusparseCreateCsr", ctypes.byref(self._matrix), n_rows, n_columns, nnz, indptr, indices, data,
              index_type, index_type, _ZERO_BASED, value_type)
        # fmt: on
        _call("cusparseCreateDnVec", ctypes.byref(self._vectors[0]), n_columns, x, value_type)
        y = ctypes.c_void_p(self._y.data.ptr)
        _call("cusparseCreateDnVec", ctypes.byref(self._vectors[1]), n_rows, y, value_type)

        scalar = _SCALARS[dtype]
        self._one, self._zero = scalar(1.0), scalar(0.0)
        self._value_type = value_type
        start = time.perf_counter()
        size = ctypes.c_size_t()
        self._spmv("cusparseSpMV_bufferSize", ctypes.byref(size))
        self._workspace = cupy.empty(max(size.value, 1), cupy.uint8)
        self._buffer = ctypes.c_void_p(self._workspace.data.ptr)
        self._spmv("cusparseSpMV_preprocess", self._buffer)
        _synchronize()
        planned = time.perf_counter()
        self._product()
        _synchronize()
        self.once |= {"plan": planned - start, "first_call": time.perf_counter() - planned}
        self.detail = f"{size.value} bytes of workspace"

    def _spmv(self, function: str, last: Any) -> None:
        # fmt: off
        _call(function, _handle(), _NON_TRANSPOSE, ctypes.byref(self._one), self._matrix, self._vectors[0],
              ctypes.byref(self._zero), self._vectors[1], self._value_type, self._algorithm, last)
        # fmt: on

    def _product(self) -> None:
        self._spmv("cusparseSpMV", self._buffer)

    def poison(self) -> None:
        """Overwrite the result with NaN."""
        self._y.fill(np.nan)
        _synchronize()

    def sample(self, repeat: int) -> dict[str, float]:
        """Time products in all four ways."""
        start = time.perf_counter()
        self._product()
        called = time.perf_counter()
        _synchronize()
        wall = time.perf_counter() - start
        return {
            "single": _seconds_on_device(self._product, 1),
            "back_to_back": _seconds_on_device(self._product, repeat),
            "host": called - start,
            "wall": wall,
        }

    def result(self) -> Array:
        """Return what the last product left."""
        result: Array = self._y.get()
        return result

    def __del__(self) -> None:
        for vector in self._vectors:
            _library().cusparseDestroyDnVec(vector)
        _library().cusparseDestroySpMat(self._matrix)


def _contestant(algorithm: str) -> Contestant:
    return Contestant(f"cusparse/{algorithm}", lambda problem: _Spmv(problem, algorithm))


def _seconds_on_device(action: Any, repeat: int) -> float:
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(repeat):
        action()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3 / repeat


def _synchronize() -> None:
    import cupy

    cupy.cuda.get_current_stream().synchronize()


@functools.cache
def _library() -> ctypes.CDLL:
    # The helper that CuPy itself loads CUDA's libraries with: it knows wheels, conda and system folders.
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return ctypes.CDLL(load_nvidia_dynamic_lib("cusparse").abs_path)


@functools.cache
def _handle() -> ctypes.c_void_p:
    import cupy

    # cuSPARSE uses the context that is current; touching the runtime makes one.
    cupy.cuda.runtime.free(0)
    handle = ctypes.c_void_p()
    _call("cusparseCreate", ctypes.byref(handle))
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    _call("cusparseSetStream", handle, stream)
    return handle


def _call(function: str, *arguments: Any) -> None:
    status = getattr(_library(), function)(*arguments)
    if status != 0:
        raise RuntimeError(f"{function} returned status {status}")
