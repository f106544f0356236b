"""cuSPARSE's SpGEAM: A + B, structure and values at every call, into new memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from bench.contestants import Contestant, DeclinedError
from bench.peers import cuda
from bench.peers.cuda import Arrays, CudaCalls, address
from bench.peers.cusparse_library import (
    NON_TRANSPOSE,
    SCALARS,
    VALUE_TYPES,
    CsrDescriptor,
    call,
    describe,
    handle,
    make_result,
    make_workspace,
    require,
)
from bench.problems.elementwise import Union
from bench.problems.indexing import parts

# cusparseSpGEAMAlg_t: CUSPARSE_SPGEAM_ALG_DEFAULT.
_ALGORITHM = 0


def contestants() -> list[Contestant]:
    """Return the sum of two matrices."""
    return [Contestant("cusparse/spgeam", _prepare)]


def _prepare(problem: Union) -> CudaCalls:
    made = _Sum(problem)
    return CudaCalls(problem, made, {"transfer": made.transfer}, "structure and values", unpack=canonicalizer(problem))


def canonicalizer(problem: Union) -> Callable[[Arrays], Arrays]:
    """Return what sorts the rows of a result and leaves out its zeros, in memory of its own."""

    def unpack(arrays: Arrays) -> Arrays:
        import cupyx.scipy.sparse

        indptr, indices, data = arrays
        result = cupyx.scipy.sparse.csr_matrix((data, indices, indptr), shape=problem.matrix.shape, copy=True)
        result.sort_indices()
        result.eliminate_zeros()
        return parts(result)

    return unpack


class _Sum:
    def __init__(self, problem: Union) -> None:
        require(("cusparseSpGEAM", "cusparseSpGEAM_bufferSize", "cusparseSpGEAM_nnz"))
        hosts = (problem.matrix, problem.right)
        index_dtypes = {part.dtype for host in hosts for part in (host.indptr, host.indices)}
        if len(index_dtypes) > 1:
            raise DeclinedError("SpGEAM takes indices of one type")
        (self._index_dtype,) = index_dtypes
        self._shape, self._dtype = problem.matrix.shape, problem.dtype
        self._operands, self.transfer = [], 0.0
        for host in hosts:
            arrays, seconds = cuda.to_device((host.indptr, host.indices, host.data))
            self._operands.append(CsrDescriptor(self._shape, self._dtype, *arrays))
            self.transfer += seconds
        self._one = SCALARS[self._dtype](1.0)

    def __call__(self) -> Arrays:
        """Add, and return the result's arrays."""
        made, description = make_result(self._shape, self._dtype, self._index_dtype), describe("SpGEAM")
        A, B = (operand.pointer for operand in self._operands)
        one = ctypes.byref(self._one)
        operands = (NON_TRANSPOSE, NON_TRANSPOSE, one, A, one, B, made.pointer)

        def add(function: str, last: Any) -> None:
            call(function, handle(), *operands, VALUE_TYPES[self._dtype], _ALGORITHM, description.pointer, last)

        size = ctypes.c_size_t()
        add("cusparseSpGEAM_bufferSize", ctypes.byref(size))
        workspace = make_workspace(size)
        add("cusparseSpGEAM_nnz", address(workspace))
        result = made.allocate()
        add("cusparseSpGEAM", address(workspace))
        return result
