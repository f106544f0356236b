"""cuSPARSE's SDDMM, with descriptors, preprocessing and workspace made beforehand."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from bench.contestants import Contestant
from bench.peers import cuda
from bench.peers.cuda import CudaCalls, address
from bench.peers.cusparse_library import NON_TRANSPOSE, SCALARS, VALUE_TYPES, CsrDescriptor, call, handle
from bench.problems.sddmm import Sddmm

_TRANSPOSE = 1  # cusparseOperation_t
_ROWS = 2  # cusparseOrder_t
_DEFAULT = 0  # cusparseSDDMMAlg_t


def contestants() -> list[Contestant]:
    """Return cuSPARSE; Y is given as its transposed, whose rows have adjacent values."""
    return [Contestant("cusparse/sddmm", _prepare)]


def _prepare(problem: Sddmm) -> CudaCalls:
    made = _Product(problem)
    once = {"transfer": made.transfer, "plan": made.plan}
    return CudaCalls(problem, made, once, f"{made.workspace.nbytes} bytes of workspace")


class _Product:
    def __init__(self, problem: Sddmm) -> None:
        import cupy

        a, self._dtype = problem.matrix, problem.dtype
        (*structure, x, z), self.transfer = cuda.to_device((a.indptr, a.indices, problem.X, problem.Z))
        self._values = cupy.zeros(a.nnz, problem.dtype)
        self._matrix = CsrDescriptor(a.shape, problem.dtype, *structure, self._values)
        self._arrays = x, z
        self._dense = tuple(self._descriptor(array) for array in self._arrays)
        scalar = SCALARS[problem.dtype]
        self._one, self._zero = scalar(1.0), scalar(0.0)
        start = time.perf_counter()
        size = ctypes.c_size_t()
        self._sddmm("cusparseSDDMM_bufferSize", ctypes.byref(size))
        self.workspace = cupy.empty(max(size.value, 1), cupy.uint8)
        self._sddmm("cusparseSDDMM_preprocess", address(self.workspace))
        cuda.synchronize()
        self.plan = time.perf_counter() - start

    def _descriptor(self, array: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        sizes = (ctypes.c_int64(int(n)) for n in (*np.shape(array), np.shape(array)[1]))
        call("cusparseCreateDnMat", ctypes.byref(made), *sizes, address(array), VALUE_TYPES[self._dtype], _ROWS)
        return made

    def _sddmm(self, function: str, last: Any) -> None:
        # fmt: off
        call(function, handle(), NON_TRANSPOSE, _TRANSPOSE, ctypes.byref(self._one), self._dense[0], self._dense[1],
              ctypes.byref(self._zero), self._matrix.pointer, VALUE_TYPES[self._dtype], _DEFAULT, last)
        # fmt: on

    def __call__(self) -> tuple[Any, ...]:
        """Enqueue the product and return its values."""
        self._sddmm("cusparseSDDMM", address(self.workspace))
        return (self._values,)

    def __del__(self) -> None:
        for array in self._dense:
            cuda.library("cusparse").cusparseDestroyDnMat(array)
