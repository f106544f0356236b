"""Operands in canonical format: the matrix itself, or a copy that takes new values without waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._formats.canonical import with_sorted_rows, without_duplicates
from clsparse_py._matrix.convert import convert, with_index
from clsparse_py._matrix.matrix import Matrix, Origin, Structure
from clsparse_py._matrix.placement import place_part, value_dtype
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._primitives.segmented import enqueue_segmented_sum
from clsparse_py._run.launch import Chain

__all__ = ["CanonicalOperand", "number_entries"]

#: Name that errors about memory give to the arrays of an operand's copy in canonical format.
_PURPOSE = "operand in canonical format"


class CanonicalOperand:
    """A matrix in canonical format, to which new values of the original matrix can be moved.

    Parameters
    ----------
    A : Matrix
        Valid, in any format; not changed.

    Attributes
    ----------
    matrix : Matrix
        The same with sorted rows and duplicates summed; A itself if it is in canonical format.
    n_values : int
        Number of A's entries, for which `values` takes values.
    indptr, indices, data : pyopencl.array.Array
        Of `matrix`.
    nnz : int
        Its entries.
    facts : Facts or None
        Facts of its structure.
    """

    def __init__(self, A: Matrix) -> None:
        self._queue = A.queue
        self._positions: cl_array.Array | None = None
        self._starts: cl_array.Array | None = None
        self.n_values: int = A.structure.indices.size
        facts = A.facts
        self.matrix = matrix = A if (facts.canonical if facts else A.has_canonical_format) else self._canonical(A)
        structure, self._origin = matrix.structure, Origin(A)
        self.indptr, self.indices, self.facts = structure.indptr, structure.indices, structure.facts
        self.data = matrix.data
        self.nnz: int = self.indices.size

    def arrays(self, index: np.dtype[Any]) -> tuple[cl_array.Array, cl_array.Array, cl_array.Array]:
        """Return the canonical operand's indptr, indices and data, with indices converted to a dtype."""
        data, indices, indptr = with_index(self._queue, (self.data, self.indices, self.indptr), index)
        return indptr, indices, data

    def _canonical(self, A: Matrix) -> Matrix:
        """Return a copy of a matrix in canonical format, and keep, for later values, where in A each value comes from."""
        queue, index = A.queue, A.indptr.dtype
        ones, numbers = number_entries(queue, _PURPOSE, A.nnz, index)
        self._positions, indices, indptr = numbers, A.indices, A.indptr
        if not A.has_sorted_indices:
            self._positions, indices, indptr = with_sorted_rows(queue, (self._positions, indices, indptr))
        # Ones, summed like duplicate entries, give the number of A's entries at each place (row and column) of the copy.
        lengths, indices, indptr = without_duplicates(queue, (ones, indices, indptr))
        n_kept = indices.size
        if n_kept < A.nnz:
            chain = Chain(queue, lengths)
            self._starts = allocate(queue, _PURPOSE, n_kept + 1, index)
            enqueue_scan(chain, lengths, self._starts, n_kept, kind="pointers")
            chain.finish(self._starts)
        return Matrix.assembled(Structure.canonical(queue, A.shape, indices, indptr), self.values(A.data))

    def accept(self, name: str, values_given: Any, planned: cl_array.Array) -> cl_array.Array:
        """Return the values of the canonical `matrix` for a caller's values of the original one; ``planned`` if none are given.

        Raises
        ------
        ValueError, TypeError
            A wrong shape, dtype or context, or values of another structure; the message begins with ``name``.
        """
        if values_given is None:
            return planned
        self._origin.check(name, values_given)
        values = values_given if isinstance(values_given, cl_array.Array) else np.asarray(values_given)
        value_dtype(name, values.dtype)
        if values.shape != (self.n_values,):
            raise ValueError(f"{name}: must have the {self.n_values} entries of the matrix, has shape {values.shape}")
        if values.dtype != planned.dtype:
            raise TypeError(f"{name}: must have the dtype that was planned for, {planned.dtype}, has {values.dtype}")
        return self.values(place_part(self._queue, name, values, planned.dtype, copy=False))

    def values(self, data: cl_array.Array) -> cl_array.Array:
        """Return the values of the canonical `matrix` for the original's: reordered, duplicates summed. Never waits."""
        if self._positions is None:
            return data
        queue, n = self._queue, self._positions.size
        starts = () if self._starts is None else (self._starts,)
        chain = Chain(queue, data, self._positions, *starts)
        ordered = allocate(queue, _PURPOSE, n, data.dtype)
        enqueue_permute(chain, self._positions, data, ordered, n)
        chain.finish(ordered)
        if self._starts is None:
            return ordered
        dtype: np.dtype[Any] = sum_dtype(data.dtype)
        n_kept = self._starts.size - 1
        sums = allocate(queue, _PURPOSE, n_kept, dtype)
        enqueue_segmented_sum(chain, self._starts, ordered, sums, n_kept, n)
        chain.finish(sums)
        return sums if dtype == data.dtype else convert(queue, "data", sums, data.dtype)


def number_entries(queue: cl.CommandQueue, purpose: str, n: int, index: np.dtype[Any]) -> tuple[cl_array.Array, cl_array.Array]:
    """Return an array of n ones, and one of the numbers from 0 to n - 1; ``purpose`` names the arrays in errors about memory."""
    chain = Chain(queue)
    ones, numbers = (allocate(queue, purpose, size, index) for size in (n, n + 1))
    chain.fill(ones, 1, n)
    enqueue_scan(chain, ones, numbers, n, kind="pointers")
    chain.finish(ones, numbers)
    return ones, numbers[:n]
