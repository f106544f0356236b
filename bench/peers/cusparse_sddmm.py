"""cuSPARSE's SDDMM, with descriptors, preprocessing and workspace made beforehand."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from bench.contestants import Contestant
from bench.peers import cuda
from bench.peers.cuda import CudaCalls, address
from bench.peers.cusparse_library import (
    NON_TRANSPOSE,
    SCALARS,
    TRANSPOSE,
    VALUE_TYPES,
    CsrDescriptor,
    DenseDescriptor,
    call,
    handle,
    make_workspace,
)
from bench.problems.sddmm import Sddmm

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
        self._dense = tuple(DenseDescriptor(array, np.shape(array)) for array in (x, z))
        scalar = SCALARS[problem.dtype]
        self._one, self._zero = scalar(1.0), scalar(0.0)
        start = time.perf_counter()
        size = ctypes.c_size_t()
        self._sddmm("cusparseSDDMM_bufferSize", ctypes.byref(size))
        self.workspace = make_workspace(size)
        self._sddmm("cusparseSDDMM_preprocess", address(self.workspace))
        cuda.synchronize()
        self.plan = time.perf_counter() - start

    def _sddmm(self, function: str, last: Any) -> None:
        x, z = (array.pointer for array in self._dense)
        # fmt: off
        call(function, handle(), NON_TRANSPOSE, TRANSPOSE, ctypes.byref(self._one), x, z,
              ctypes.byref(self._zero), self._matrix.pointer, VALUE_TYPES[self._dtype], _DEFAULT, last)
        # fmt: on

    def __call__(self) -> tuple[Any, ...]:
        """Enqueue the product and return its values."""
        self._sddmm("cusparseSDDMM", address(self.workspace))
        return (self._values,)
