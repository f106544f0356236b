"""SpMM: Y = A @ X with one matrix in one precision, for X of so many columns, whose rows or columns are adjacent in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bench.problems.base import Array, Result, largest_error, require_kinds
from bench.problems.matrices import MatrixProblem, bytes_of, load
from clsparse_py._ground.rounding import rounding_bound

#: Numbers of columns of X.
COLUMNS = (2, 4, 8, 16, 32, 64, 128)
#: Operations by name: columns of X, and whether rows ("C") or columns ("F") of X are adjacent in memory.
OPERATIONS = {
    f"spmm_{n}_{name}": (n, order) for n in COLUMNS for name, order in (("rows", "C"), ("columns", "F"))
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Spmm(MatrixProblem):
    """Y = A @ X; the reference is SciPy's in float64, from the rounded values.

    Attributes
    ----------
    X
        The operand, in the precision that is measured and in the operation's order.
    order
        NumPy's name of it; peers that can give Y in the same order do.
    bound
        How far each element of a result may be from the reference.
    """

    X: Array
    order: str
    bound: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, X and Y, each array once: no product moves less."""
        return bytes_of(self.matrix) + self.X.nbytes + self.reference[0].size * self.X.itemsize

    def empty(self) -> Array:
        """Return an array for Y."""
        return np.empty(self.reference[0].shape, self.dtype)

    def error(self, result: Result) -> float:
        """Return the largest error of a result in units of its bound; see the base class."""
        require_kinds(result, (self.empty(),))
        return largest_error(result[0].ravel(), self.reference[0].ravel(), self.bound.ravel(), "element")


def make(name: str, operation: str, dtype: str) -> Spmm:
    """Load a matrix and compute what its product must be; the bound is that of `spmv`'s rows."""
    n_columns, order = OPERATIONS[operation]
    exact = load(name)
    matrix: sp.csr_array = exact.astype(dtype, copy=False)
    seed = np.random.default_rng([exact.shape[1], exact.nnz])
    X = np.asarray(seed.random((exact.shape[1], n_columns), np.float32) + np.float32(0.5), dtype, order=order)  # type: ignore[call-overload]
    # Signs so that sums cancel: a product left out or taken twice then shows against the bound.
    X *= np.where(seed.random(exact.shape[1]) < 0.5, -1, 1).astype(dtype)[:, None]
    in_float64 = matrix.astype(np.float64)
    wide = np.ascontiguousarray(X, np.float64)
    reference = in_float64 @ wide
    in_float64.data = np.abs(in_float64.data)
    bound = rounding_bound(np.diff(matrix.indptr)[:, None], in_float64 @ np.abs(wide), dtype, np.float64)
    return Spmm(name, operation, dtype, (reference,), matrix, X, order, bound)
