"""Indexing: rows, columns and a mask of rows of one matrix, half of them at random; and the matrix in other formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.problems.base import Array, ExactProblem, Result
from bench.problems.matrices import MatrixProblem, bytes_of, load


@dataclass(frozen=True, eq=False)
class Indexing(MatrixProblem, ExactProblem):
    """What SciPy makes of A, its arrays in SciPy's order.

    Attributes
    ----------
    positions
        The rows or columns that are taken, or the mask; of no elements where all are.
    """

    positions: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of the result, written once, of as many values and columns of A, and of what says which these are."""
        found = sum(part.nbytes for part in self.reference)
        if self.operation in ("tocsc", "tocoo"):
            return bytes_of(self.matrix) + found
        indptr, indices, data = self.reference
        if self.operation == "columns":
            return self.matrix.indptr.nbytes + self.matrix.indices.nbytes + data.nbytes + self.positions.nbytes + found
        # Of each row, where it begins and where it ends.
        return 2 * indptr.nbytes + indices.nbytes + data.nbytes + self.positions.nbytes + found


def _half(n: int) -> Array:
    """Return half of n positions, at random and in no order."""
    return np.random.default_rng(n).permutation(n)[: n // 2]


def _mask(n: int) -> Array:
    return np.random.default_rng(n).random(n) < 0.5


def _nothing(_n: int) -> Array:
    return np.zeros(0, np.int64)


def parts(matrix: Any) -> Result:
    """Return the arrays of a matrix, of any library: structure first."""
    if hasattr(matrix, "indptr"):
        return matrix.indptr, matrix.indices, matrix.data
    return matrix.row, matrix.col, matrix.data


# An operation's positions, along which axis, and the call as users write it.
OPERATIONS: dict[str, tuple[Callable[[int], Array], int, Callable[[Any, Any], Any]]] = {
    "rows": (_half, 0, lambda A, rows: A[rows]),
    "columns": (_half, 1, lambda A, columns: A[:, columns]),
    "mask": (_mask, 0, lambda A, mask: A[mask]),
    "tocsc": (_nothing, 0, lambda A, _: A.tocsc()),
    "tocoo": (_nothing, 0, lambda A, _: A.tocoo()),
}


def make(name: str, operation: str, dtype: str) -> Indexing:
    """Load a matrix and index it with SciPy."""
    matrix: sp.csr_array = load(name).astype(dtype, copy=False)
    choose, axis, call = OPERATIONS[operation]
    positions = choose(matrix.shape[axis])
    return Indexing(name, operation, dtype, parts(call(matrix, positions)), matrix, positions)
