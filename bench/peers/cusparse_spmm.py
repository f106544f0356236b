"""cuSPARSE's SpMM by every algorithm for CSR, with descriptors, preprocessing and workspace made beforehand."""

from __future__ import annotations

import ctypes
import functools
import time
from typing import Any

import numpy as np

from bench.contestants import Contestant
from bench.peers import cuda
from bench.peers.cuda import CudaCalls, address
from bench.peers.cusparse_library import (
    NON_TRANSPOSE,
    SCALARS,
    VALUE_TYPES,
    CsrDescriptor,
    DenseDescriptor,
    call,
    handle,
    make_workspace,
)
from bench.problems.spmm import Spmm

# cusparseSpMMAlg_t: the ones for CSR.
_ALGORITHMS = {"default": 0, "alg1": 4, "alg2": 6, "alg3": 12}


def contestants() -> list[Contestant]:
    """Return cuSPARSE, by each algorithm; Y has the order of X."""
    return [Contestant(f"cusparse/{name}", functools.partial(_prepare, number)) for name, number in _ALGORITHMS.items()]


def _prepare(algorithm: int, problem: Spmm) -> CudaCalls:
    made = _Product(problem, algorithm)
    once = {"transfer": made.transfer, "plan": made.plan}
    return CudaCalls(problem, made, once, f"{made.workspace.nbytes} bytes of workspace", unpack=made.in_shape)


class _Product:
    """One algorithm with a matrix descriptor of its own, since preprocessing leaves its mark on the descriptor."""

    def __init__(self, problem: Spmm, algorithm: int) -> None:
        import cupy

        a, self._order = problem.matrix, problem.order
        self._algorithm, self._dtype = algorithm, problem.dtype
        self._shape = problem.reference[0].shape
        operands = (a.indptr, a.indices, a.data, problem.X.ravel(order="K"))
        (*parts, x), self.transfer = cuda.to_device(operands)
        self._y = cupy.empty(problem.reference[0].size, problem.dtype)
        self._matrix = CsrDescriptor(a.shape, problem.dtype, *parts)
        self._dense = (DenseDescriptor(x, problem.X.shape, self._order), DenseDescriptor(self._y, self._shape, self._order))
        scalar = SCALARS[problem.dtype]
        self._one, self._zero = scalar(1.0), scalar(0.0)
        start = time.perf_counter()
        size = ctypes.c_size_t()
        self._spmm("cusparseSpMM_bufferSize", ctypes.byref(size))
        self.workspace = make_workspace(size)
        self._spmm("cusparseSpMM_preprocess", address(self.workspace))
        cuda.synchronize()
        self.plan = time.perf_counter() - start

    def _spmm(self, function: str, last: Any) -> None:
        x, y = (array.pointer for array in self._dense)
        # fmt: off
        call(function, handle(), NON_TRANSPOSE, NON_TRANSPOSE, ctypes.byref(self._one), self._matrix.pointer, x,
              ctypes.byref(self._zero), y, VALUE_TYPES[self._dtype], self._algorithm, last)
        # fmt: on

    def __call__(self) -> tuple[Any, ...]:
        """Enqueue Y = A @ X and return Y's values as they lie."""
        self._spmm("cusparseSpMM", address(self.workspace))
        return (self._y,)

    def in_shape(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return Y in its shape."""
        return (np.reshape(arrays[0], self._shape, order=self._order),)
