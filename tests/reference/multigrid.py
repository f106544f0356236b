"""Multigrid cycles by NumPy and SciPy, for hierarchies of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.linalg.colours import colour_matrix
from clsparse_py._solvers.linalg.problem import as_divided


class _Level(NamedTuple):
    A: Any
    P: Any
    R: Any
    inverse: Any
    order: Any
    smoothers: tuple[Smoother | None, Smoother | None]


def _copy_hierarchy(levels: Sequence[Level]) -> list[_Level]:
    """Return a hierarchy on the host; of its last level P is the inverse."""
    results = []
    for level in levels:
        A = as_divided(level.A).whole()
        diagonal = A.diagonal()
        inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal != 0)
        P, R = (None if matrix is None else as_divided(matrix).whole() for matrix in (level.P, level.R))
        by_colour = any(smoother is not None and smoother.sweep for smoother in (level.presmoother, level.postsmoother))
        order = colour_matrix(level.A).order if by_colour else None
        results.append(_Level(A, P, R, inverse, order, (level.presmoother, level.postsmoother)))
    return [*results[:-1], results[-1]._replace(P=scipy.linalg.pinv(results[-1].A.toarray()))]


def _relax(A: Any, order: Any, sweep: str, b: Any, x: Any) -> Any:
    """Return x after a step of Gauss-Seidel's method, row by row."""
    x = x.copy()
    for row in {"forward": order, "backward": order[::-1], "symmetric": np.r_[order, order[::-1]]}[sweep]:
        diagonal = A[row, row]
        x[row] = (b[row] - A[[row]] @ x + diagonal * x[row])[0] / diagonal
    return x


def _smooth(A: Any, inverse: Any, order: Any, smoother: Smoother | None, b: Any, x: Any) -> Any:
    """Return x after a smoother; ``inverse`` is that of the diagonal, ``order`` has rows by colour."""
    for _ in range(0 if smoother is None else smoother.iterations):
        assert smoother is not None
        if smoother.sweep:
            x = _relax(A, order, smoother.sweep, b, x)
            continue
        scale = {"diagonal": inverse, "l1": 1 / abs(A).sum(axis=1), "none": 1}[smoother.scaling]
        is_complex = np.iscomplexobj(x)
        first, *others = (coefficient if is_complex else np.real(coefficient) for coefficient in smoother.coefficients)
        s = scale * (b - A @ x)
        h = first * s
        for gain in others:
            h = gain * s + scale * (A @ h)
        x = x + h
    return x


def _level(levels: Sequence[_Level], b: Any, x: Any, kind: str, again: int) -> Any:
    """Return x after one cycle."""
    level, *below = levels
    if not below:
        return level.P @ b
    before, after = level.smoothers
    x = _smooth(level.A, level.inverse, level.order, before, b, x)
    x = x + level.P @ _correct(below, level.R @ (b - level.A @ x), kind, again)
    return _smooth(level.A, level.inverse, level.order, after, b, x)


def _correct(levels: Sequence[_Level], b: Any, kind: str, again: int) -> Any:
    """Return the correction on a coarser level."""
    x = np.zeros_like(b)
    if len(levels) == 1 or kind in "VWF":
        x = _level(levels, b, x, kind, again)
        for _ in range({"V": 0, "W": 1, "F": again}[kind] if len(levels) > 1 else 0):
            x = _level(levels, b, x, "W" if kind == "W" else "V", 1)
        return x
    A, before = levels[0].A, None
    for _ in range(2):
        p = _level(levels, b, np.full_like(b, kind == "AMLI"), kind, again)
        q = A @ p
        if before is not None:
            beta = _ratio(np.vdot(before[0], q), np.vdot(before[0], before[1]))
            p, q = p - beta * before[0], q - beta * before[1]
        alpha = _ratio(np.vdot(p, b), np.vdot(p, q))
        x, b, before = x + alpha * p, b - alpha * q, (p, q)
    return x


def _ratio(a: Any, b: Any) -> Any:
    return a / b if b != 0 else 0


def solve(
    levels: Sequence[Level], b: np.ndarray[Any, Any], *, maxiter: int, kind: str, residuals: list[float] | None = None
) -> Any:
    """Return x after some cycles from 0, and note the norms of all residuals."""
    host, x = _copy_hierarchy(levels), np.zeros_like(b)
    norms = [] if residuals is None else residuals
    norms.append(float(np.linalg.norm(b)))
    for _ in range(maxiter):
        x = _level(host, b, x, kind, 1)
        norms.append(float(np.linalg.norm(b - host[0].A @ x)))
    return x
