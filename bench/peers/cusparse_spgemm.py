"""cuSPARSE's SpGEMM, called directly: the default one, which finds structure and values, and the reuse form's numeric phase."""

from __future__ import annotations

import ctypes
import time
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
)
from bench.problems.spgemm import Spgemm
from bench.times import NUMERIC_ONLY

# cusparseSpGEMMAlg_t: CUSPARSE_SPGEMM_DEFAULT.
_ALGORITHM = 0


def contestants() -> list[Contestant]:
    """Return both forms."""
    return [
        Contestant("cusparse/spgemm", lambda problem: _prepare(problem, _Product(problem))),
        Contestant(f"cusparse-reuse{NUMERIC_ONLY}", lambda problem: _prepare(problem, _Reuse(problem))),
    ]


def _prepare(problem: Spgemm, made: _Product) -> CudaCalls:
    return CudaCalls(problem, made, made.once, made.detail, unpack=row_sorter(problem), shared=made.shared)


def row_sorter(problem: Spgemm) -> Callable[[Arrays], Arrays]:
    """Return what sorts the rows of a result, in memory of its own: the library's may come in any order."""

    def unpack(arrays: Arrays) -> Arrays:
        import cupyx.scipy.sparse

        indptr, indices, data = arrays
        shape = (problem.matrix.shape[0], problem.right.shape[1])
        rows = cupyx.scipy.sparse.csr_matrix((data, indices, indptr), shape=shape, copy=True)
        rows.sort_indices()
        return rows.indptr, rows.indices, rows.data

    return unpack


class _Product:
    """The default product: structure and values at every call, into new memory."""

    detail = "structure and values"
    #: Arrays that calls do not write.
    shared: Arrays = ()

    def __init__(self, problem: Spgemm) -> None:
        a, b = problem.matrix, problem.right
        if a.indices.dtype != b.indices.dtype or problem.reference[1].dtype.name != "int32":
            raise DeclinedError("its products have 32-bit indices")
        arrays, transfer = cuda.to_device((a.indptr, a.indices, a.data))
        # Of a square, B's arrays are A's, as with all who take part.
        others, more = (arrays, 0.0) if b is a else cuda.to_device((b.indptr, b.indices, b.data))
        self.once = {"transfer": transfer + more}
        self._dtype = problem.dtype
        self._shape = (a.shape[0], b.shape[1])
        self._left = CsrDescriptor(a.shape, problem.dtype, *arrays)
        self._right = CsrDescriptor(b.shape, problem.dtype, *others)
        scalar = SCALARS[problem.dtype]
        self._one, self._zero = scalar(1.0), scalar(0.0)

    def __call__(self) -> Arrays:
        """Multiply, and return the result's arrays."""
        made, description = make_result(self._shape, self._dtype, self._left.arrays[0].dtype), describe("SpGEMM")
        sized = (description.pointer, *_size_argument())
        first = self._with_buffer("cusparseSpGEMM_workEstimation", made, sized)
        second = self._with_buffer("cusparseSpGEMM_compute", made, sized)
        result = made.allocate()
        self._numeric("cusparseSpGEMM_copy", made, description.pointer)
        del first, second  # in use until here
        return result

    def _numeric(self, function: str, made: CsrDescriptor, *last: Any) -> None:
        operands = (ctypes.byref(self._one), self._left.pointer, self._right.pointer, ctypes.byref(self._zero), made.pointer)
        call(function, handle(), NON_TRANSPOSE, NON_TRANSPOSE, *operands, VALUE_TYPES[self._dtype], _ALGORITHM, *last)

    def _with_buffer(self, function: str, made: CsrDescriptor, sized: tuple[Any, Any, Any]) -> Any:
        """Ask how much workspace a phase needs, and run it with that; return the workspace."""
        description, size, reference = sized
        self._numeric(function, made, description, reference, None)
        workspace = make_workspace(size)
        self._numeric(function, made, description, reference, address(workspace))
        return workspace


class _Reuse(_Product):
    """The numeric phase of the reuse form: values alone, into memory that is kept."""

    detail = "values alone"

    def __init__(self, problem: Spgemm) -> None:
        super().__init__(problem)
        start = time.perf_counter()
        self._made, self._description = make_result(self._shape, self._dtype, self._left.arrays[0].dtype), describe("SpGEMM")
        size, reference = _size_argument()
        self._symbolic("cusparseSpGEMMreuse_workEstimation", reference, None)
        first = make_workspace(size)
        self._symbolic("cusparseSpGEMMreuse_workEstimation", reference, address(first))
        sizes = [_size_argument() for _ in range(3)]
        self._symbolic("cusparseSpGEMMreuse_nnz", *(argument for _, at in sizes for argument in (at, None)))
        buffers = [make_workspace(size) for size, _ in sizes]
        ready = zip(sizes, buffers, strict=True)
        self._symbolic("cusparseSpGEMMreuse_nnz", *(argument for (_, at), buffer in ready for argument in (at, address(buffer))))
        self._result = self._made.allocate()
        self.shared = self._result[:2]
        self._symbolic("cusparseSpGEMMreuse_copy", reference, None)
        last = make_workspace(size)
        self._symbolic("cusparseSpGEMMreuse_copy", reference, address(last))
        cuda.synchronize()
        # The numeric phase reads what was left in these; the others may go.
        self._kept = (*buffers[1:], last)
        self.once["plan"] = time.perf_counter() - start

    def _symbolic(self, function: str, *last: Any) -> None:
        operands = (self._left.pointer, self._right.pointer, self._made.pointer)
        call(function, handle(), NON_TRANSPOSE, NON_TRANSPOSE, *operands, _ALGORITHM, self._description.pointer, *last)

    def __call__(self) -> Arrays:
        """Compute the values, and return the result's arrays."""
        self._numeric("cusparseSpGEMMreuse_compute", self._made, self._description.pointer)
        return self._result


def _size_argument() -> tuple[ctypes.c_size_t, Any]:
    size = ctypes.c_size_t()
    return size, ctypes.byref(size)
