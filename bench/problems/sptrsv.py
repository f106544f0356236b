"""SpTRSV: the solution x of L x = b for the lower triangle of a matrix, with a diagonal that dominates it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bench.problems.base import Array, Result, WrongResultError, require_kinds
from bench.problems.matrices import MatrixProblem, bytes_of, load

OPERATION = "sptrsv"


@dataclass(frozen=True, eq=False)
class Sptrsv(MatrixProblem):
    """The solution of L x = b; ``matrix`` is L, the reference is SciPy's in float64.

    Attributes
    ----------
    b
        The right-hand side, in the precision that is measured.
    """

    b: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of L, b and x, each array once: no solution moves less."""
        return bytes_of(self.matrix) + 2 * self.b.nbytes

    def empty(self) -> Array:
        """Return an array for x."""
        return np.empty_like(self.b)

    def error(self, result: Result) -> float:
        """Return the largest componentwise backward error in units of (entries of the row + 2) eps; see the base class."""
        require_kinds(result, (self.empty(),))
        x, L = result[0].astype(np.float64), self.matrix.astype(np.float64)
        residual, b = np.abs(self.b - L @ x), np.abs(self.b.astype(np.float64))
        L.data = np.abs(L.data)
        bound = (np.diff(L.indptr) + 2) * float(np.finfo(self.dtype).eps) * (L @ np.abs(x) + b)
        share = residual / np.maximum(bound, np.finfo(np.float64).tiny)
        worst = int(np.argmax(np.nan_to_num(share, nan=np.inf)))
        if not share[worst] <= 1:
            raise WrongResultError(f"row {worst}: {share[worst]:.3g} times the error that rounding explains")
        return float(share[worst])


def make(name: str, dtype: str) -> Sptrsv:
    """Load a matrix, take its lower triangle with L[i, i] = 1 + the sum of |a_ij|, j < i, and solve with SciPy."""
    exact = load(name)
    n = min(exact.shape)
    below = sp.csr_array(sp.tril(exact[:n, :n], -1))
    below.sum_duplicates()
    diagonal = 1 + np.bincount(np.repeat(np.arange(n), np.diff(below.indptr)), np.abs(below.data), n)
    L = sp.csr_array(below + sp.diags_array(diagonal))
    L.sort_indices()
    L = sp.csr_array((L.data.astype(dtype), L.indices.astype(np.int32), L.indptr.astype(np.int32)), shape=L.shape)
    b = np.random.default_rng([n, L.nnz]).standard_normal(n).astype(dtype)
    wide = L.astype(np.float64)
    reference = sp.linalg.splu(wide.tocsc(), permc_spec="NATURAL", options={"Equil": False, "DiagPivotThresh": 0.0}).solve(
        b.astype(np.float64)
    )
    return Sptrsv(name, OPERATION, dtype, (reference,), L, b)
