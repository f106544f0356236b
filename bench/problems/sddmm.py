"""SDDMM: X @ Y at the places of a sparse matrix, for rows of X and columns of Y of so many adjacent values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.problems.base import Array, Result, largest_error, require_kinds
from bench.problems.matrices import MatrixProblem, load
from clsparse_py._ground.rounding import rounding_bound

#: Operations by name, with the values to a row of X.
OPERATIONS = {f"sddmm_{n}": n for n in (16, 32, 64, 128)}
#: Entries whose reference is computed at a time.
_PART = 1 << 18


@dataclass(frozen=True, eq=False)
class Sddmm(MatrixProblem):
    """Values of X @ Z.T at A's places; the reference is NumPy's in float64, from the rounded values.

    Attributes
    ----------
    X, Z
        The operands, C-contiguous, in the precision that is measured.
    bound
        How far each value of a result may be from the reference.
    """

    X: Array
    Z: Array
    bound: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A's structure, X, Y and the result, each array once."""
        structure = self.matrix.indptr.nbytes + self.matrix.indices.nbytes
        return int(structure + self.X.nbytes + self.Z.nbytes + self.matrix.data.nbytes)

    def error(self, result: Result) -> float:
        """Return the largest error of a value in units of its bound; see the base class."""
        require_kinds(result, (self.matrix.data,))
        return largest_error(result[0], self.reference[0], self.bound, "value")


def make(name: str, operation: str, dtype: str) -> Sddmm:
    """Load a matrix and compute the products at its places."""
    matrix, n_inner = load(name).astype(dtype, copy=False), OPERATIONS[operation]
    seed = np.random.default_rng([matrix.shape[1], matrix.nnz])
    X, Z = ((seed.random((n, n_inner), np.float32) - np.float32(0.5)).astype(dtype) for n in matrix.shape)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    result, sizes = (np.empty(matrix.nnz) for _ in range(2))
    for first in range(0, matrix.nnz, _PART):
        part = slice(first, first + _PART)
        terms = X[rows[part]].astype(np.float64) * Z[matrix.indices[part]]
        result[part] = terms.sum(axis=1)
        sizes[part] = np.abs(terms).sum(axis=1)
    bound = rounding_bound(np.full(matrix.nnz, n_inner), sizes, dtype, np.float64)
    return Sddmm(name, operation, dtype, (result,), matrix, X, Z, bound)
