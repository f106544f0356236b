"""SpTRSV and SpTRSM: the solution x of L x = b for the lower triangle of a matrix, with a diagonal that dominates it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bench.problems.base import Array, Result, WrongResultError, require_kinds
from bench.problems.matrices import MatrixProblem, bytes_of, load

#: Operations by name: the number of columns of b, whose rows are adjacent in memory; None if b is a vector.
OPERATIONS = {"sptrsv": None, "sptrsm_32": 32}


@dataclass(frozen=True, eq=False)
class Sptrsv(MatrixProblem):
    """The solution of L x = b; ``matrix`` is L, the reference is the x in float64 that b was computed from.

    Attributes
    ----------
    b
        The right-hand side, or right-hand sides in columns, in the precision that is measured.
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
        terms = (np.diff(L.indptr) + 2).reshape(-1, *(1,) * (x.ndim - 1))
        bound = terms * float(np.finfo(self.dtype).eps) * (L @ np.abs(x) + b)
        share = residual / np.maximum(bound, np.finfo(np.float64).tiny)
        worst = np.unravel_index(np.argmax(np.nan_to_num(share, nan=np.inf)), share.shape)
        if not share[worst] <= 1:
            raise WrongResultError(f"row {worst[0]}: {share[worst]:.3g} times the error that rounding explains")
        return float(share[worst])


def make(name: str, operation: str, dtype: str) -> Sptrsv:
    """Load a matrix, take its lower triangle with L[i, i] = 1 + the sum of |a_ij|, j < i, and compute b from a random x."""
    exact = load(name)
    n = min(exact.shape)
    below = sp.csr_array(sp.tril(exact[:n, :n], -1))
    below.sum_duplicates()
    diagonal = 1 + np.bincount(np.repeat(np.arange(n), np.diff(below.indptr)), np.abs(below.data), n)
    L = sp.csr_array(below + sp.diags_array(diagonal))
    L.sort_indices()
    L = sp.csr_array((L.data.astype(dtype), L.indices.astype(np.int32), L.indptr.astype(np.int32)), shape=L.shape)
    n_columns = OPERATIONS[operation]
    x = np.random.default_rng([n, L.nnz]).standard_normal(n if n_columns is None else (n, n_columns))
    return Sptrsv(name, operation, dtype, (x,), L, (L.astype(np.float64) @ x).astype(dtype))
