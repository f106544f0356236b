"""SpMV: y = A @ x with one matrix in one precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.problems.base import Array, Result, largest_error, require_kinds
from bench.problems.matrices import MatrixProblem, bytes_of, load
from clsparse_py._ground.rounding import rounding_bound


@dataclass(frozen=True, eq=False)
class Spmv(MatrixProblem):
    """y = A @ x; the reference is SciPy's in float64, from the rounded values.

    Attributes
    ----------
    x
        The operand, in the precision that is measured.
    bound
        How far each element of a result may be from the reference.
    """

    x: Array
    bound: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, x and y, each array once: no product moves less."""
        return bytes_of(self.matrix) + self.x.nbytes + self.reference[0].size * self.x.itemsize

    def empty(self) -> Array:
        """Return an array for y."""
        return np.empty(self.reference[0].shape, self.dtype)

    def error(self, result: Result) -> float:
        """Return the largest error of a result in units of its bound; see the base class."""
        require_kinds(result, (self.empty(),))
        return largest_error(result[0], self.reference[0], self.bound, "row")


def make(name: str, dtype: str) -> Spmv:
    """Load a matrix and compute what its product must be.

    The bound of a row is `rounding_bound`'s; the reference is computed in float64.
    """
    exact = load(name)
    matrix = exact.astype(dtype, copy=False)
    seed = np.random.default_rng([exact.shape[1], exact.nnz])
    x = (seed.random(exact.shape[1]) + 0.5).astype(dtype)
    # Signs so that sums cancel: a product left out or taken twice then shows against the bound in every row.
    x[seed.random(x.size) < 0.5] *= -1
    in_float64 = matrix.astype(np.float64)
    wide_x = x.astype(np.float64)
    reference = in_float64 @ wide_x
    in_float64.data = np.abs(in_float64.data)
    bound = rounding_bound(np.diff(matrix.indptr), in_float64 @ np.abs(wide_x), dtype, np.float64)
    return Spmv(name, "spmv", dtype, (reference,), matrix, x, bound)
