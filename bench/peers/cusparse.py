"""cuSPARSE, called directly: SpMV by every algorithm for CSR, and the other operations by modules of their own."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pyopencl as cl

from bench.contestants import Contestant, DeclinedError
from bench.opencl import SAMPLES, Copy
from bench.peers import (
    cuda,
    cusparse_elementwise,
    cusparse_sddmm,
    cusparse_spgemm,
    cusparse_spmm,
    cusparse_sptrans,
    cusparse_triangular,
)
from bench.peers.cuda import CudaCalls, address
from bench.peers.cusparse_library import INDEX_TYPES, NON_TRANSPOSE, SCALARS, VALUE_TYPES, ZERO_BASED, call, handle, version
from bench.problems import Problem, sddmm, spmm, sptrsv
from bench.problems.spmv import Spmv

# cusparseSpMVAlg_t: the ones for CSR.
_SPMV_ALGORITHMS = {"default": 0, "alg1": 2, "alg2": 3}
# cusparseSpMVOpAlg_t; cuSPARSE has SpMVOp since CUDA 13.
_SPMV_OPERATIONS = {"op-default": 0, "op1": 1, "op2": 2}


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    if (reason := cuda.available()) is not None:
        return reason
    try:
        cuda.library("cusparse")
    except (ImportError, OSError, RuntimeError) as error:
        return str(error)
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"cusparse": str(version()), **cuda.versions()}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation == "spmv":
        return [
            *(_of_spmv(name, _Product, number) for name, number in _SPMV_ALGORITHMS.items()),
            *(_of_spmv(name, _Operation, number) for name, number in _SPMV_OPERATIONS.items()),
        ]
    if operation == "sptrans":
        return cusparse_sptrans.contestants()
    if operation == "add":
        return cusparse_elementwise.contestants()
    if operation in spmm.OPERATIONS:
        return cusparse_spmm.contestants()
    if operation in sddmm.OPERATIONS:
        return cusparse_sddmm.contestants()
    if operation in sptrsv.OPERATIONS:
        return cusparse_triangular.contestants(operation)
    return cusparse_spgemm.contestants() if operation in ("spgemm", "amg") else []


def _of_spmv(name: str, kind: type[_Product], algorithm: int) -> Contestant:
    return Contestant(f"cusparse/{name}", lambda problem: _prepared(problem, kind(problem, algorithm)))


def large_copy() -> Copy:
    """Return a device-to-device copy by CUDA, to hold the OpenCL one against."""
    import cupy

    size = min(cupy.cuda.runtime.memGetInfo()[1] // 8, 1 << 30)
    source, target = cupy.ones(size, cupy.uint8), cupy.empty(size, cupy.uint8)
    samples = tuple(cuda.seconds_on_device(lambda: cupy.copyto(target, source), 5) for _ in range(SAMPLES + 1))
    return Copy("CUDA", 2 * size, samples[1:])


class _Product:
    """One algorithm with a matrix descriptor of its own, since preprocessing leaves its mark on the descriptor."""

    def __init__(self, problem: Spmv, algorithm: int) -> None:
        import cupy

        a = problem.matrix
        self._algorithm = algorithm
        self._matrix, self._vectors = ctypes.c_void_p(), (ctypes.c_void_p(), ctypes.c_void_p())
        self._arrays, self.transfer = cuda.to_device((a.indptr, a.indices, a.data, problem.x))
        self._y = cupy.empty(problem.reference[0].size, problem.dtype)
        indptr, indices, data, x = map(address, self._arrays)
        index_type, self._value_type = INDEX_TYPES[a.indices.dtype.name], VALUE_TYPES[problem.dtype]
        n_rows, n_columns, nnz = (ctypes.c_int64(n) for n in (*a.shape, a.nnz))
        # fmt: off
        call("cusparseCreateCsr", ctypes.byref(self._matrix), n_rows, n_columns, nnz, indptr, indices, data,
              index_type, index_type, ZERO_BASED, self._value_type)
        # fmt: on
        call("cusparseCreateDnVec", ctypes.byref(self._vectors[0]), n_columns, x, self._value_type)
        call("cusparseCreateDnVec", ctypes.byref(self._vectors[1]), n_rows, address(self._y), self._value_type)

        scalar = SCALARS[problem.dtype]
        self._one, self._zero = scalar(1.0), scalar(0.0)
        start = time.perf_counter()
        self._prepare()
        cuda.synchronize()
        self.plan = time.perf_counter() - start

    def _prepare(self) -> None:
        import cupy

        size = ctypes.c_size_t()
        self._spmv("cusparseSpMV_bufferSize", ctypes.byref(size))
        self.workspace = cupy.empty(max(size.value, 1), cupy.uint8)
        self._spmv("cusparseSpMV_preprocess", address(self.workspace))

    def _spmv(self, function: str, last: Any) -> None:
        # fmt: off
        call(function, handle(), NON_TRANSPOSE, ctypes.byref(self._one), self._matrix, self._vectors[0],
              ctypes.byref(self._zero), self._vectors[1], self._value_type, self._algorithm, last)
        # fmt: on

    def __call__(self) -> tuple[Any, ...]:
        """Enqueue y = A @ x and return y."""
        self._spmv("cusparseSpMV", address(self.workspace))
        return (self._y,)

    def __del__(self) -> None:
        for vector in self._vectors:
            cuda.library("cusparse").cusparseDestroyDnVec(vector)
        cuda.library("cusparse").cusparseDestroySpMat(self._matrix)


class _Operation(_Product):
    """An algorithm of SpMVOp, whose plan is linked as it is made; without a function of one's own for the results."""

    def _prepare(self) -> None:
        import cupy

        self._descriptor, self._plan, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        if not hasattr(cuda.library("cusparse"), "cusparseSpMVOp"):
            raise DeclinedError("this cuSPARSE has no SpMVOp")
        x, y = self._vectors
        operands = (NON_TRANSPOSE, self._matrix, x, y, y, self._value_type, self._algorithm)
        call("cusparseSpMVOp_bufferSize", handle(), *operands, ctypes.byref(size))
        self.workspace = cupy.empty(max(size.value, 1), cupy.uint8)
        call("cusparseSpMVOp_createDescr", handle(), ctypes.byref(self._descriptor), *operands, address(self.workspace))
        call("cusparseSpMVOp_createPlan", handle(), self._descriptor, ctypes.byref(self._plan), None, ctypes.c_size_t())

    def __call__(self) -> tuple[Any, ...]:
        """Enqueue y = A @ x and return y."""
        x, y = self._vectors
        call("cusparseSpMVOp", handle(), self._plan, ctypes.byref(self._one), ctypes.byref(self._zero), x, y, y)
        return (self._y,)

    def __del__(self) -> None:
        if self._descriptor:
            cuda.library("cusparse").cusparseSpMVOp_destroyPlan(self._plan)
            cuda.library("cusparse").cusparseSpMVOp_destroyDescr(self._descriptor)
        super().__del__()


def _prepared(problem: Problem, made: _Product) -> CudaCalls:
    once = {"transfer": made.transfer, "plan": made.plan}
    return CudaCalls(problem, made, once, f"{made.workspace.nbytes} bytes of workspace")
