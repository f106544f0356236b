"""cuSPARSE's transpositions: CSR to CSC, and SpMatConvert with its analysis at each call or kept, into existing memory."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from bench.contestants import Contestant, DeclinedError
from bench.peers import cuda
from bench.peers.cuda import Arrays, CudaCalls, address
from bench.peers.cusparse_library import (
    TRANSPOSE,
    VALUE_TYPES,
    ZERO_BASED,
    CsrDescriptor,
    Description,
    call,
    handle,
    make_workspace,
    require,
)
from bench.problems.sptrans import Sptrans
from bench.times import NUMERIC_ONLY

# cusparseAction_t: values too.
_NUMERIC = 1
# cusparseCsr2CscAlg_t: CUSPARSE_CSR2CSC_ALG_DEFAULT and CUSPARSE_CSR2CSC_ALG1 are the same number.
_CSR2CSC_ALGORITHM = 1
# cusparseSpMatConvertAlg_t: CUSPARSE_SPMAT_CONVERT_ALG_DEFAULT.
_CONVERT_ALGORITHM = 0


def contestants() -> list[Contestant]:
    """Return CSR to CSC, and SpMatConvert for the first time and again."""
    return [
        Contestant("cusparse/csr2csc", _prepare_csr2csc),
        Contestant("cusparse/spmatconvert", _prepare_conversion),
        Contestant(f"cusparse-spmatconvert{NUMERIC_ONLY}", _prepare_kept_conversion),
    ]


def _prepare_csr2csc(problem: Sptrans) -> CudaCalls:
    made = _Csr2csc(problem)
    once = {"transfer": made.transfer, "plan": made.plan}
    return CudaCalls(problem, made, once, f"{made.workspace.nbytes} bytes of workspace")


def _prepare_conversion(problem: Sptrans) -> CudaCalls:
    made = _Conversion(problem)
    return CudaCalls(problem, made.analyse_and_convert, {"transfer": made.transfer}, "analysis and conversion")


def _prepare_kept_conversion(problem: Sptrans) -> CudaCalls:
    made = _Conversion(problem)
    start = time.perf_counter()
    description, workspace = made.analyse()
    cuda.synchronize()
    once = {"transfer": made.transfer, "plan": time.perf_counter() - start}
    # The analysis or the first conversion may be all that writes the structure.
    made.convert(description, workspace)
    detail = f"conversion, {workspace.nbytes} bytes of workspace"
    return CudaCalls(problem, lambda: made.convert(description, workspace), once, detail, shared=made.results[:2])


def _operands_of(problem: Sptrans) -> tuple[Arrays, Arrays, float]:
    """Return A's row pointers, columns and values on the device, memory for the result, and the seconds of the transfer."""
    import cupy

    a = problem.matrix
    if a.indices.dtype != np.int32:
        raise DeclinedError(f"cuSPARSE transposes with 32-bit indices, these are {a.indices.dtype}")
    arrays, transfer = cuda.to_device((a.indptr, a.indices, a.data))
    return arrays, tuple(cupy.empty(part.shape, part.dtype) for part in problem.reference), transfer


class _Csr2csc:
    """CSR to CSC, with result and workspace allocated beforehand."""

    def __init__(self, problem: Sptrans) -> None:
        self._operands, self._results, self.transfer = _operands_of(problem)
        a, (starts, columns, values), (indptr, indices, data) = problem.matrix, self._operands, self._results
        self._arguments = (
            handle(),
            *(ctypes.c_int(n) for n in (*a.shape, a.nnz)),
            *map(address, (values, starts, columns, data, indptr, indices)),
            *(VALUE_TYPES[problem.dtype], _NUMERIC, ZERO_BASED, _CSR2CSC_ALGORITHM),
        )
        start = time.perf_counter()
        size = ctypes.c_size_t()
        call("cusparseCsr2cscEx2_bufferSize", *self._arguments, ctypes.byref(size))
        self.workspace = make_workspace(size)
        self.plan = time.perf_counter() - start

    def __call__(self) -> Arrays:
        """Enqueue the conversion and return the result's arrays."""
        call("cusparseCsr2cscEx2", *self._arguments, address(self.workspace))
        return self._results


class _Conversion:
    """SpMatConvert of A to the CSR form of its transposed, which is allocated beforehand."""

    def __init__(self, problem: Sptrans) -> None:
        require(("cusparseSpMatConvert", "cusparseSpMatConvert_bufferSize", "cusparseSpMatConvert_analysis"))
        arrays, self.results, self.transfer = _operands_of(problem)
        rows, columns = problem.matrix.shape
        self._source = CsrDescriptor((rows, columns), problem.dtype, *arrays)
        self._target = CsrDescriptor((columns, rows), problem.dtype, *self.results)

    def analyse(self) -> tuple[Description, Any]:
        """Return a new description of the conversion, and its workspace."""
        description = Description("cusparseSpMatConvertDescrCreate", "cusparseSpMatConvertDescrDestroy")
        size = ctypes.c_size_t()
        self._call("cusparseSpMatConvert_bufferSize", description, ctypes.byref(size))
        workspace = make_workspace(size)
        self._call("cusparseSpMatConvert_analysis", description, address(workspace))
        return description, workspace

    def convert(self, description: Description, workspace: Any) -> Arrays:
        """Enqueue the conversion by an analysis, and return the result's arrays."""
        self._call("cusparseSpMatConvert", description, address(workspace))
        return self.results

    def analyse_and_convert(self) -> Arrays:
        """Analyse, enqueue the conversion, and return the result's arrays."""
        return self.convert(*self.analyse())

    def _call(self, function: str, description: Description, last: Any) -> None:
        matrices = (self._source.pointer, self._target.pointer)
        call(function, handle(), TRANSPOSE, *matrices, _NUMERIC, _CONVERT_ALGORITHM, description.pointer, last)
