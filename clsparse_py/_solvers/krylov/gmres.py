"""The generalised minimal residual method, restarted, on the device.

The basis and all vectors are on the device. A column of the Hessenberg matrix is read while the next one is made; the small
least-squares problem is the host's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from clsparse_py._solvers.krylov.basis import START, Basis
from clsparse_py._solvers.krylov.system import System

__all__ = ["gmres"]


class _Rotations:
    """The least-squares problem of a cycle, kept triangular by a rotation for each column."""

    def __init__(self, norm: float, restart: int, dtype: np.dtype[Any]) -> None:
        wide = np.result_type(dtype, np.float64)
        self.R = np.zeros((restart, restart), wide)
        self.right = np.zeros(restart + 1, wide)
        self.right[0] = norm
        self._rotations: list[tuple[float, Any]] = []

    def add(self, column: np.ndarray[Any, Any], below: float) -> float:
        """Add a column of the Hessenberg matrix to GMRES's least-squares problem, and return the norm of its residual."""
        column, k = column.copy(), column.size - 1
        for i, (c, s) in enumerate(self._rotations):
            column[i], column[i + 1] = c * column[i] + s * column[i + 1], -np.conj(s) * column[i] + c * column[i + 1]
        top = column[k]
        size = np.hypot(abs(top), below)
        if size == 0:
            c, s = 1.0, column.dtype.type(0)
        elif abs(top) == 0:
            c, s = 0.0, column.dtype.type(1)
        else:
            c, s = abs(top) / size, top / abs(top) * below / size
        self.R[:k, k], self.R[k, k] = column[:k], c * top + s * below
        self._rotations.append((c, s))
        self.right[k + 1] = -np.conj(s) * self.right[k]
        self.right[k] *= c
        return float(abs(self.right[k + 1]))

    def solution(self) -> np.ndarray[Any, Any]:
        """Return the coefficients of the basis vectors in GMRES's solution; undetermined coefficients are 0."""
        n = len(self._rotations)
        y = self.right[:n].copy()
        if self.R[n - 1, n - 1] == 0:
            y[n - 1] = 0
        for k in reversed(range(n)):
            if y[k] != 0:
                y[k] /= self.R[k, k]
                y[:k] -= y[k] * self.R[:k, k]
        return y


def gmres(system: System, restart: int, report: Callable[[float], object] | None, by_columns: bool) -> int:
    """Solve a linear system by restarted GMRES, and return SciPy's info.

    Parameters
    ----------
    system : System
    restart : int
        Columns of a cycle; as many as unknowns at most.
    report : callable or None
        Called with the relative norm of the preconditioned residual, for each column.
    by_columns : bool
        Whether ``maxiter`` counts columns; else it counts cycles.
    """
    basis = Basis(system.chain, system.n, system.dtype, system.A, system.M, restart, system.all_sum)
    r, x, maxiter = basis.sweeps.vector(), system.x, system.maxiter
    residual = functools.partial(system.begin, START, basis.sweeps, q=basis.q, w=r)
    totals = system.scaling.begin_sums(residual, basis.sweeps)
    bb, norm = totals["bb"].real, float(np.sqrt(totals["ww"].real))
    limit = float(np.sqrt(system.bound(totals["bb"])))
    if bb == 0:
        basis.sweeps.fill(x)
        return 0
    if norm <= limit:
        return 0
    basis.apply_preconditioner(system.b, basis.w)
    b_norm, factor, eps = float(np.sqrt(bb)), 1.0, float(np.finfo(system.dtype).eps)
    bound = basis.norm() * min(factor, limit / b_norm)
    n_steps = 0
    for _ in range(maxiter):
        if not np.isfinite(norm):
            break
        basis.begin(r)
        rotations, estimate, exact = _Rotations(basis.norm(), basis.size, system.dtype), 0.0, False
        for column, below in basis.columns():
            exact = below <= eps * float(np.linalg.norm([*np.abs(column), below]))
            estimate = rotations.add(column, 0.0 if exact else below)
            n_steps += 1
            if report is not None:
                report(np.float64(estimate / b_norm / system.scaling.M.alpha))
            if estimate <= bound or exact or (by_columns and n_steps == maxiter):
                break
        basis.add(x, rotations.solution())
        system.guessed = True
        residual()
        norm = float(np.sqrt(basis.sweeps.totals()["ww"].real))
        if by_columns and n_steps == maxiter:
            break
        if system.callback is not None:
            system.callback(x)
        if norm <= limit or exact:
            break
        # In the next cycle of GMRES the preconditioned residual has to fall as far as the residual still has to.
        factor = max(eps, 0.25 * factor) if estimate <= bound else min(1.0, 1.5 * factor)
        bound = estimate * min(factor, limit / norm)
    return 0 if norm <= limit and np.isfinite(norm) else maxiter
