"""Operands in canonical format: the matrix itself where it is so, else a copy that takes new values without waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.convert import converted
from clsparse_py.csr import assembled, csr_array
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.primitives.addition import sum_dtype
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.primitives.segmented import enqueue_segmented_sum
from clsparse_py.transpose.methods import enqueue_permute

__all__ = ["CanonicalOperand"]

#: What memory is needed for, in errors.
_WHAT = "operand in canonical format"


class CanonicalOperand:
    """A matrix in canonical format, and the way of values to it.

    Parameters
    ----------
    A : csr_array
        In any format; not changed.

    Attributes
    ----------
    matrix : csr_array
        The same with sorted rows and duplicates summed; A itself where that is so.
    n_values : int
        How many values `values` takes: the entries of A.
    """

    def __init__(self, A: csr_array) -> None:
        self.matrix = A
        self.n_values = A.nnz
        self._positions: cl_array.Array | None = None
        self._starts: cl_array.Array | None = None
        if A.has_canonical_format:
            return
        queue, index = A.queue, A.indptr.dtype
        chain = Chain(queue)
        one, numbers = allocated(queue, _WHAT, A.nnz, index), allocated(queue, _WHAT, A.nnz + 1, index)
        chain.fill(one, 1, A.nnz)
        enqueue_scan(chain, one, numbers, A.nnz, kind="pointers")
        chain.finish(one, numbers)
        sorted_rows = assembled(queue, A.shape, (numbers[: A.nnz], A.indices, A.indptr), None)
        sorted_rows.sort_indices()
        self._positions = sorted_rows.data
        ones = assembled(queue, A.shape, (one, sorted_rows.indices, A.indptr), None)
        ones.sum_duplicates()
        chain = Chain(queue, ones.data)
        if ones.nnz < A.nnz:
            self._starts = allocated(queue, _WHAT, ones.nnz + 1, index)
            enqueue_scan(chain, ones.data, self._starts, ones.nnz, kind="pointers")
            chain.finish(self._starts)
        parts = self.values(A.data), ones.indices, ones.indptr
        self.matrix = assembled(queue, A.shape, parts, ones.known_structure)

    def values(self, data: cl_array.Array) -> cl_array.Array:
        """Return the values of `matrix` where A has these; nothing is waited for."""
        if self._positions is None:
            return data
        queue, n = self.matrix.queue, self.n_values
        starts = () if self._starts is None else (self._starts,)
        chain = Chain(queue, data, self._positions, *starts)
        ordered = allocated(queue, _WHAT, n, data.dtype)
        enqueue_permute(chain, self._positions, data, ordered, n)
        chain.finish(ordered)
        if self._starts is None:
            return ordered
        dtype: np.dtype[Any] = sum_dtype(data.dtype)
        n_kept = self._starts.size - 1
        sums = allocated(queue, _WHAT, n_kept, dtype)
        enqueue_segmented_sum(chain, self._starts, n_kept, ordered, n, sums)
        chain.finish(sums)
        return sums if dtype == data.dtype else converted(queue, "data", sums, data.dtype)
