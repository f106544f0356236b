"""Multigrid by smoothed aggregation: set-up, set-up for other values of the same structure, and the solution of A x = b."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.problems.base import Array, Result, WrongResultError, require_kinds
from bench.problems.matrices import MatrixProblem, bytes_of, load

OPERATIONS = ("multigrid_setup", "multigrid_refresh", "multigrid_solve")
#: Residual of a solution as a part of b's norm, by precision.
_TOLERANCES = {"float64": 1e-8, "float32": 1e-4}
#: Largest residual of x, as a multiple of the one that conjugate gradients update and stop by.
_SLACK = 2.0


@dataclass(frozen=True, eq=False)
class Multigrid(MatrixProblem):
    """A hierarchy of a symmetric positive definite matrix, held against a system that it solves; the reference is b.

    Attributes
    ----------
    tolerance
        Solutions are asked for with a residual of so many times the norm of b.
    """

    tolerance: float

    @property
    def b(self) -> Array:
        """The right-hand side."""
        return self.reference[0]

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, and of b and x if a system is solved, each array once: a bound from far below."""
        return bytes_of(self.matrix) + (2 * self.b.nbytes if self.operation == "multigrid_solve" else 0)

    def error(self, result: Result) -> float:
        """Return the residual of a solution in units of what it may be; see the base class."""
        require_kinds(result, self.reference)
        residual = np.linalg.norm(self.b.astype(np.float64) - self.matrix.astype(np.float64) @ result[0].astype(np.float64))
        share = float(residual / (_SLACK * self.tolerance * np.linalg.norm(self.b)))
        if not share <= 1:
            raise WrongResultError(f"the residual is {share:.3g} times what it may be")
        return share


def make(name: str, operation: str, dtype: str) -> Multigrid:
    """Load a matrix, and make a right-hand side."""
    matrix = load(name).astype(dtype, copy=False)
    b = np.random.default_rng([matrix.shape[0], matrix.nnz]).standard_normal(matrix.shape[0]).astype(dtype)
    return Multigrid(name, operation, dtype, (b,), matrix, _TOLERANCES[dtype])
