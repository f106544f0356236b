"""Operators on two matrices entry by entry, and reductions: B is A with its rows in reverse order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.problems.base import Array, ExactProblem, Result, largest_error, require_kinds
from bench.problems.indexing import parts
from bench.problems.matrices import MatrixProblem, bytes_of, load


@dataclass(frozen=True, eq=False)
class Union(MatrixProblem, ExactProblem):
    """A matrix made of A and B, in canonical format and without zeros.

    Attributes
    ----------
    right
        B.
    """

    right: sp.csr_array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A and B, read once, and of the result, written once."""
        return bytes_of(self.matrix) + bytes_of(self.right) + sum(part.nbytes for part in self.reference)


@dataclass(frozen=True, eq=False)
class Sums(MatrixProblem):
    """The sum of each row or column; the reference is SciPy's in float64.

    Attributes
    ----------
    bound
        How far each sum may be from the reference.
    """

    bound: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, but for its columns if rows are summed, and of the result."""
        unread = self.matrix.indices.nbytes if self.operation == "sum_rows" else 0
        return bytes_of(self.matrix) - unread + sum(part.nbytes for part in self.reference)

    def error(self, result: Result) -> float:
        """Return the largest distance of a sum, in units of its bound; see the base class."""
        require_kinds(result, (self.reference[0].astype(self.dtype),))
        return largest_error(result[0].astype(np.float64), self.reference[0], self.bound, "sum")


@dataclass(frozen=True, eq=False)
class Extremes(MatrixProblem, ExactProblem):
    """The largest value of each row or column, without zeros: where they are, and the values."""

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, but for its columns if rows are looked through, and of the result."""
        unread = self.matrix.indices.nbytes if self.operation == "max_rows" else 0
        return bytes_of(self.matrix) - unread + sum(part.nbytes for part in self.reference)


#: Calls of the operations by name, as users write them: of A and B or, for a reduction, of A.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda A, B: A + B,
    "multiply": lambda A, B: A.multiply(B),
    "sum_rows": lambda A, _: A.sum(axis=1),
    "sum_columns": lambda A, _: A.sum(axis=0),
    "max_rows": lambda A, _: A.max(axis=1),
    "max_columns": lambda A, _: A.max(axis=0),
}
#: Operations that take B.
OF_TWO = ("add", "multiply")


def _reverse_rows(A: sp.csr_array) -> sp.csr_array:
    """Return a matrix with its rows in reverse order, of the index type of A."""
    result = A[::-1]
    result.indices, result.indptr = result.indices.astype(A.indices.dtype), result.indptr.astype(A.indptr.dtype)
    return result


def _sum(A: sp.csr_array, axis: int) -> tuple[Array, Array]:
    """Return the sums of rows or columns in float64, and how far those of the matrix's precision may be off."""
    exact = A.astype(np.float64)
    n_terms = np.diff(A.indptr) if axis == 1 else np.bincount(A.indices, minlength=A.shape[1])
    # As much for the reference as for the result.
    return exact.sum(axis=axis), n_terms * np.finfo(A.dtype).eps * abs(exact).sum(axis=axis)


def make(name: str, operation: str, dtype: str) -> Union | Sums | Extremes:
    """Load a matrix and compute the operation with SciPy."""
    A: sp.csr_array = load(name).astype(dtype, copy=False)
    if operation in OF_TWO:
        B = _reverse_rows(A)
        return Union(name, operation, dtype, parts(CALLS[operation](A, B)), A, B)
    axis = 1 if operation.endswith("rows") else 0
    if operation.startswith("sum"):
        sums, bound = _sum(A, axis)
        return Sums(name, operation, dtype, (sums,), A, bound)
    result = A.max(axis=axis)
    return Extremes(name, operation, dtype, (result.coords[0], result.data), A)
