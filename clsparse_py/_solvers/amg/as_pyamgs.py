"""Conversion of a multigrid hierarchy to PyAMG's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from clsparse_py._operations.preconditioning import Colouring
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.linalg.colours import colour_matrix
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
                _make_host_smoother(smoother, copied.A, level) for smoother in (level.presmoother, level.postsmoother)
            )
        if level.B is not None and as_divided(level.A).all_sum is None:
            copied.B = level.B.get()
        levels.append(copied)
    hierarchy = OfPyamg(levels, coarse_solver="pinv")
    hierarchy.symmetric_smoothing = all(level.presmoother == level.postsmoother for level in ours[:-1])
    return hierarchy


def _make_host_smoother(smoother: Smoother | None, A: Any, level: Level) -> Any:
    """Return a multigrid smoother as PyAMG's function of a matrix, x and b, which overwrites x; A is a copy of the level's."""
    from pyamg.relaxation import relaxation

    if smoother is None:
        return lambda A, x, b: None  # noqa: ARG005 - as PyAMG calls it
    if smoother.sweep:
        return _make_gauss_seidel(smoother, colour_matrix(level.A))
    if smoother.scaling == "diagonal" and len(smoother.coefficients) == 1:
        omega = smoother.coefficients[0]
        keywords = {"iterations": smoother.iterations, "omega": omega if A.dtype.kind == "c" else np.real(omega)}
        return functools.partial(relaxation.jacobi, **keywords)
    scale: Any = {"diagonal": A.diagonal, "l1": lambda: abs(A).sum(axis=1).astype(A.dtype), "none": lambda: np.ones(A.shape[0])}
    diagonal = scale[smoother.scaling]()
    inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal != 0)

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


def _make_gauss_seidel(smoother: Smoother, colouring: Colouring) -> Any:
    """Return steps of Gauss-Seidel's method by colours as PyAMG's smoother."""
    from pyamg.relaxation import relaxation

    order = colouring.order.astype(np.int32)

    def relax(A: Any, x: Any, b: Any) -> None:
        """Overwrite x by the result of the steps for ``A x = b``; the order of rows within a colour does not matter."""
        relaxation.gauss_seidel_indexed(A, x, b, order, iterations=smoother.iterations, sweep=smoother.sweep)

    return relax
