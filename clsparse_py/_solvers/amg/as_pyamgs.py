"""Conversion of a multigrid hierarchy to PyAMG's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.linalg.problem import as_divided

__all__ = ["convert_to_pyamg"]


def convert_to_pyamg(ours: Sequence[Level]) -> Any:
    """Return a multigrid hierarchy as PyAMG's, with copies of matrices and smoothers; see `MultilevelSolver.to_pyamg`."""
    from pyamg.multilevel import MultilevelSolver as OfPyamg

    levels = []
    for level in ours:
        copied = OfPyamg.Level()
        copied.A = as_divided(level.A).whole()
        if level.P is not None and level.R is not None:
            copied.P, copied.R = as_divided(level.P).whole(), as_divided(level.R).whole()
            copied.presmoother, copied.postsmoother = (
                _make_host_smoother(smoother, copied.A) for smoother in (level.presmoother, level.postsmoother)
            )
        if level.B is not None and as_divided(level.A).all_sum is None:
            copied.B = level.B.get()
        levels.append(copied)
    hierarchy = OfPyamg(levels, coarse_solver="pinv")
    hierarchy.symmetric_smoothing = all(level.presmoother == level.postsmoother for level in ours[:-1])
    return hierarchy


def _make_host_smoother(smoother: Smoother | None, A: Any) -> Any:
    """Return a multigrid smoother as PyAMG's function of a matrix, x and b, which overwrites x."""
    from pyamg.relaxation import relaxation

    if smoother is None:
        return lambda A, x, b: None  # noqa: ARG005 - as PyAMG calls it
    if smoother.scaled and len(smoother.coefficients) == 1:
        omega = smoother.coefficients[0]
        keywords = {"iterations": smoother.iterations, "omega": omega if A.dtype.kind == "c" else np.real(omega)}
        return functools.partial(relaxation.jacobi, **keywords)
    diagonal = A.diagonal()
    inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal != 0) if smoother.scaled else 1

    def polynomial(A: Any, x: Any, b: Any) -> None:
        """Overwrite x by the result of the polynomial smoother's steps for ``A x = b``."""
        first, *further = (gain if np.iscomplexobj(x) else np.real(gain) for gain in smoother.coefficients)
        solution = x
        for _ in range(smoother.iterations):
            s = inverse * (b - A @ solution)
            h = first * s
            for gain in further:
                h = gain * s + inverse * (A @ h)
            solution = solution + h
        x[...] = solution

    return polynomial
