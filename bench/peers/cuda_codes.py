"""Codes of papers in CUDA: SpGEMM of spECK, OpSparse, AC-SpGEMM and HSMU-SpGEMM, and SpMV of DASP.

``cuda_codes.sh`` builds a library of each from its authors' sources and a file beside this one; ``CUDA_CODES`` names the folder
that holds the libraries. A code whose library is not there does not take part.
"""

from __future__ import annotations

import ctypes
import functools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from bench.contestants import Contestant, DeclinedError
from bench.peers import cuda
from bench.peers.cuda import Arrays, CudaCalls
from bench.peers.cusparse_spgemm import row_sorter
from bench.problems.spgemm import Spgemm
from bench.problems.spmv import Spmv

_SPGEMM = ("speck", "opsparse", "acspgemm", "hsmu")
_SPMV = "dasp"
# Rows of one entry that DASP's quicksort, which recurses once for each of them at worst, may be given.
_MOST_SINGLES = 20_000


class _Csr(ctypes.Structure):
    """The matrix of ``cuda_codes.cuh``."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("rows", "columns", "entries", "pooled")),
        *((name, ctypes.c_void_p) for name in ("indptr", "indices", "data")),
    )


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    if (reason := cuda.available()) is not None:
        return reason
    return None if any(map(_path, (*_SPGEMM, _SPMV))) else "CUDA_CODES names no folder with a library of cuda_codes.sh"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on: of each code, the commit that its library was built from."""
    commits = {name: _library(name).commit().decode() for name in (*_SPGEMM, _SPMV) if _path(name)}
    return {**cuda.versions(), **commits}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation == "spmv":
        return [Contestant(_SPMV, _prepare_dasp)]
    if operation not in ("spgemm", "amg"):
        return []
    return [
        Contestant(name + suffix, functools.partial(_prepare, name=name, pooled=pooled))
        for name in _SPGEMM
        for suffix, pooled in (("", False), ("/pool", True))
    ]


def _path(name: str) -> Path | None:
    folder = os.environ.get("CUDA_CODES")
    path = Path(folder, f"lib{name}.so") if folder else None
    return path if path is not None and path.exists() else None


@functools.cache
def _library(name: str) -> ctypes.CDLL:
    if _path(name) is None:
        raise DeclinedError(f"CUDA_CODES names no folder with lib{name}.so")
    made = ctypes.CDLL(str(_path(name)))
    for function in ("commit", "release", "multiply_float64", "multiply_float32", "plan_float64", "enqueue"):
        if hasattr(made, function):
            getattr(made, function).restype = ctypes.c_char_p
    return made


def _call(name: str, function: str, *arguments: Any) -> None:
    """Call a function of a code's library.

    Raises
    ------
    RuntimeError
        If it does not succeed, with what the library says.
    """
    if (error := getattr(_library(name), function)(*arguments)) is not None:
        raise RuntimeError(f"{name}: {error.decode()}")


class _Result:
    """A product in memory of its code's, which is freed with this object."""

    def __init__(self, name: str, pooled: bool) -> None:
        self._name = name
        self.matrix = _Csr(pooled=pooled)

    def arrays(self, dtype: str) -> Arrays:
        """Return the arrays of the matrix, which keep this object."""
        C = self.matrix
        sizes = ((C.indptr, C.rows + 1, "int32"), (C.indices, C.entries, "int32"), (C.data, C.entries, dtype))
        return tuple(_view(pointer, size, kind, self) for pointer, size, kind in sizes)

    def __del__(self) -> None:
        _library(self._name).release(ctypes.byref(self.matrix))


def _operand(shape: tuple[int, int], arrays: Arrays) -> _Csr:
    return _Csr(*shape, arrays[1].size, False, *(array.data.ptr for array in arrays))


def _view(pointer: int | None, size: int, dtype: str, owner: object) -> Any:
    import cupy

    # What is empty may have no memory at all.
    if not pointer:
        return cupy.zeros(size, dtype)
    memory = cupy.cuda.UnownedMemory(pointer, size * np.dtype(dtype).itemsize, owner, cupy.cuda.Device().id)
    return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(memory, 0))


def _prepare(problem: Spgemm, name: str, pooled: bool) -> CudaCalls:
    a, b = problem.matrix, problem.right
    function = f"multiply_{problem.dtype}"
    if not hasattr(_library(name), function):
        raise DeclinedError(f"it has no {problem.dtype}")
    if a.indices.dtype != np.int32 or b.indices.dtype != np.int32 or problem.reference[1].dtype != np.int32:
        raise DeclinedError("its matrices have 32-bit indices")
    if name == "hsmu" and b.shape[1] < 4096:
        raise DeclinedError("its code for fewer than 4096 columns needs the matrices on the host")

    arrays, transfer = cuda.to_device((a.indptr, a.indices, a.data))
    others, more = (arrays, 0.0) if b is a else cuda.to_device((b.indptr, b.indices, b.data))

    def multiply() -> Arrays:
        result = _Result(name, pooled)
        operands = (_operand(a.shape, arrays), _operand(b.shape, others))
        _call(name, function, *map(ctypes.byref, (*operands, result.matrix)))
        return result.arrays(problem.dtype)

    detail = "memory of CUDA's pool" if pooled else "memory of cudaMalloc"
    return CudaCalls(problem, multiply, {"transfer": transfer + more}, detail, unpack=row_sorter(problem))


class _Dasp:
    """A matrix in DASP's format, which is freed with this object, and its products with one vector."""

    def __init__(self, problem: Spmv) -> None:
        A = problem.matrix
        if problem.dtype != "float64":
            raise DeclinedError(f"it has no {problem.dtype}")
        if A.indices.dtype != np.int32:
            raise DeclinedError("its matrices have 32-bit indices")
        lengths = np.diff(A.indptr)
        if (lengths == 1).sum() > _MOST_SINGLES:
            raise DeclinedError(f"its quicksort recurses once for each row of one entry, of which there are over {_MOST_SINGLES}")
        self._empty = np.flatnonzero(lengths == 0)
        self._rows = np.empty(A.shape[0], np.int32)
        self._plan, y = ctypes.c_void_p(), ctypes.c_void_p()
        matrix = _Csr(*A.shape, A.nnz, False, *(array.ctypes.data for array in (A.indptr, A.indices, A.data)))
        host = (ctypes.c_void_p(array.ctypes.data) for array in (problem.x, self._rows))
        start = time.perf_counter()
        _call(_SPMV, "plan_float64", ctypes.byref(matrix), *host, ctypes.byref(self._plan), ctypes.byref(y))
        self.seconds = time.perf_counter() - start
        self._y = _view(y.value, A.shape[0], "float64", None)

    def __call__(self) -> Arrays:
        """Enqueue the product, and return y in the order of the format's rows."""
        _call(_SPMV, "enqueue", self._plan)
        return (self._y,)

    def unpack(self, arrays: Arrays) -> Arrays:
        """Return y in the order of A's rows; those without entries are none of its kernels'."""
        import cupy

        y = cupy.empty_like(arrays[0])
        y[cupy.asarray(self._rows)] = arrays[0]
        y[cupy.asarray(self._empty)] = 0
        return (y,)

    def __del__(self) -> None:
        if getattr(self, "_plan", None):
            _library(_SPMV).free_plan(self._plan)


def _prepare_dasp(problem: Spmv) -> CudaCalls:
    made = _Dasp(problem)
    return CudaCalls(problem, made, {"plan": made.seconds}, "its own format, y in the order of its rows", unpack=made.unpack)
