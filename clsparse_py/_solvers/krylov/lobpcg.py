"""Eigenvalues of Hermitian operators by the locally optimal block preconditioned conjugate gradient method, on the device."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.linalg

from clsparse_py._solvers.krylov.panel import Columns, Panel
from clsparse_py._solvers.krylov.scaling import Scaling, Vectors
from clsparse_py._solvers.krylov.system import Apply

__all__ = ["Block", "Problem", "lobpcg"]


@dataclasses.dataclass
class Problem:
    """``A x = w B x``, with a preconditioner M, for vectors that are B-orthogonal to constraints; B and M may be None."""

    panel: Panel
    A: Apply
    B: Apply | None
    M: Apply | None
    constraints: Columns
    tol: float
    maxiter: int
    largest: bool


@dataclasses.dataclass
class Block:
    """The result of LOBPCG: eigenvalues, vectors, and the history of eigenvalues and residual norms."""

    values: np.ndarray[Any, Any]
    vectors: Columns
    norms: np.ndarray[Any, Any]
    all_values: list[np.ndarray[Any, Any]]
    all_norms: list[np.ndarray[Any, Any]]


@dataclasses.dataclass
class _Part:
    """The columns of a matrix x, and the columns of its products with A and B."""

    x: Columns
    ax: Columns
    bx: Columns

    @classmethod
    def allocate(cls, problem: Problem, x: Columns) -> _Part:
        """Return a part of LOBPCG's trial space: columns x, and columns allocated for the products A x and B x."""
        columns = problem.panel.columns
        return cls(x, columns(len(x)), x if problem.B is None else columns(len(x)))

    def multiply(self, problem: Problem) -> None:
        """Enqueue the products A x and B x for the columns x of a part of LOBPCG's trial space."""
        for x, ax, bx in zip(self.x, self.ax, self.bx, strict=True):
            problem.A(x, ax)
            if problem.B is not None:
                problem.B(x, bx)

    def replace(self, panel: Panel, *sources: tuple[_Part, np.ndarray[Any, Any]], spare: Columns) -> None:
        """Enqueue replacing columns x, A x and B x of LOBPCG's trial space by linear combinations of columns of that space."""
        panel.replace(self.ax, *((part.ax, factors) for part, factors in sources), spare=spare)
        if self.bx is not self.x:
            panel.replace(self.bx, *((part.bx, factors) for part, factors in sources), spare=spare)
        panel.replace(self.x, *((part.x, factors) for part, factors in sources), spare=spare)

    def select(self, numbers: np.ndarray[Any, Any]) -> _Part:
        """Return a part of LOBPCG's trial space with those columns x, A x and B x alone whose indices are given."""
        x = [self.x[i] for i in numbers]
        return _Part(x, [self.ax[i] for i in numbers], x if self.bx is self.x else [self.bx[i] for i in numbers])


def lobpcg(problem: Problem, x: Columns) -> Block:
    """Return eigenvalues and eigenvectors by LOBPCG, from guesses of the eigenvectors, which are overwritten.

    Raises
    ------
    ValueError
        The guesses, or the constraints, depend on each other, or products with them are not finite.
    """
    panel, k = problem.panel, len(x)
    sweeps = panel.sweeps
    scaling = Scaling(Vectors(sweeps.chain, sweeps.dtype), sweeps.n)
    problem.A = scaling.scale_product(problem.A, scaling.A)
    if problem.M is not None:
        problem.M = scaling.scale_product(problem.M, scaling.M)
    eps = float(np.finfo(panel.sweeps.dtype).eps)
    spare, best = panel.columns(k), panel.columns(k)
    X, W, P = (_Part.allocate(problem, columns) for columns in (x, panel.columns(k), panel.columns(k)))
    constrain = _make_constrain(problem, spare)
    constrain(X.x)
    values = _orthonormalise(problem, X, spare)
    unit = 2.0 ** (scaling.A.exponent or 0)
    tol = problem.tol / unit
    all_values, all_norms = [values], []
    identity = np.eye(k)

    def residual_norms(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the norms of the residuals ``A x - w B x`` for Ritz values w; the residuals are stored in W. Waits."""
        panel.replace(W.x, (X.ax, identity), (X.bx, -np.diag(values)), spare=spare)
        norms: np.ndarray[Any, Any] = np.sqrt(np.abs(np.diag(panel.products(W.x, W.x)).real))
        return norms

    least, active, has_directions = np.inf, np.ones(k, bool), False
    for iteration in range(problem.maxiter + 1):
        norms = residual_norms(values)
        all_norms.append(norms)
        if norms.mean() < least:
            least = norms.mean()
            panel.copy(best, X.x)
        active &= norms > tol
        if not active.any() or iteration == problem.maxiter or not np.isfinite(norms).all():
            break
        if problem.M is not None:
            for column, target in zip(W.x, spare, strict=True):
                problem.M(column, target)
            panel.copy(W.x, spare)
        constrain(W.x)
        panel.replace(W.x, (W.x, identity), (X.x, -panel.products(X.bx, W.x)), spare=spare)
        W.multiply(problem)
        numbers = np.flatnonzero(active)
        parts = [X, W.select(numbers), *([P.select(numbers)] if has_directions else [])]
        values, factors = _solve_projected(panel, parts, k, problem.largest, eps)
        if factors is None:
            break
        all_values.append(values)
        cuts = np.cumsum([len(part.x) for part in parts])[:-1]
        of_x, *of_others = np.split(factors, cuts)
        P.replace(panel, *zip(parts[1:], of_others, strict=True), spare=spare)
        X.replace(panel, (X, of_x), (P, identity), spare=spare)
        has_directions = True
    panel.copy(X.x, best)
    values = _orthonormalise(problem, X, spare)
    norms = residual_norms(values)
    return Block(
        values * unit, X.x, norms * unit, [history * unit for history in all_values], [history * unit for history in all_norms]
    )  # fmt: skip


def _make_constrain(problem: Problem, spare: Columns) -> Any:
    """Return the function that makes columns B-orthogonal to the constraints of the eigenproblem."""
    panel, y = problem.panel, problem.constraints
    if not y:
        return lambda _: None
    b_of_y = y
    if problem.B is not None:
        b_of_y = panel.columns(len(y))
        for source, target in zip(y, b_of_y, strict=True):
            problem.B(source, target)
    try:
        factor = scipy.linalg.cho_factor(panel.products(y, b_of_y))
    except np.linalg.LinAlgError as error:
        raise ValueError("Y: linearly dependent constraints") from error

    def constrain(columns: Columns) -> None:
        """Make columns B-orthogonal to the constraints of the eigenproblem."""
        factors = scipy.linalg.cho_solve(factor, panel.products(b_of_y, columns))
        panel.replace(columns, (columns, np.eye(len(columns))), (y, -factors), spare=spare)

    return constrain


def _orthonormalise(problem: Problem, X: _Part, spare: Columns) -> np.ndarray[Any, Any]:
    """Replace the columns X by B-orthonormal Ritz vectors of the space that X spans, and return the Ritz values."""
    panel, k = problem.panel, len(X.x)
    X.multiply(problem)
    values, factors = _solve_projected(panel, [X], k, problem.largest, float(np.finfo(panel.sweeps.dtype).eps))
    if factors is None or factors.shape[1] < k:
        raise ValueError("X: linearly dependent initial approximations, or products with A or B are no numbers")
    X.replace(panel, (X, factors), spare=spare)
    return values


def _solve_projected(
    panel: Panel, parts: list[_Part], k: int, largest: bool, eps: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """Return k Ritz values of the space that the columns of all parts span, and the factors of the Ritz vectors.

    The factors are None, and the values NaN, if the space has less than k dimensions or an inner product is not finite.
    """
    x = [column for part in parts for column in part.x]
    ax = [column for part in parts for column in part.ax]
    bx = [column for part in parts for column in part.bx]
    of_A, of_B = panel.products(x, ax), panel.products(x, bx)
    if not np.isfinite(of_A).all() or not np.isfinite(of_B).all():
        return np.full(k, np.nan), None
    sizes = np.sqrt(np.maximum(np.diag(of_B).real, 0))
    scale = np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    of_A, of_B = (scale[:, None] * (product + product.conj().T) / 2 * scale for product in (of_A, of_B))
    weights, directions = np.linalg.eigh(of_B)
    # Leave out directions of the projected space that depend linearly on other directions.
    is_kept = weights > 100 * eps * weights[-1]
    if is_kept.sum() < k:
        return np.full(k, np.nan), None
    directions = directions[:, is_kept] / np.sqrt(weights[is_kept])
    values, vectors = np.linalg.eigh(directions.conj().T @ of_A @ directions)
    order = np.arange(values.size)[::-1][:k] if largest else np.arange(k)
    return values[order], scale[:, None] * (directions @ vectors[:, order])
