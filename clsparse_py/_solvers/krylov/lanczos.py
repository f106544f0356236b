"""Eigenvalues of Hermitian operators by Lanczos' method with thick restart, on the device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from pyopencl import array as cl_array

from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.basis import Basis
from clsparse_py._solvers.krylov.system import Apply
from clsparse_py._solvers.krylov.thresholds import Thresholds

__all__ = ["WANTED", "Eigenpairs", "lanczos"]


def _order_from_both_ends(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the indices of ascending eigenvalues from both ends in turn: the largest, smallest, second largest and so on."""
    order = np.empty(values.size, np.intp)
    top = np.argsort(-values, kind="stable")[: -(-values.size // 2)]
    order[0::2], order[1::2] = top, np.setdiff1d(np.arange(values.size), top)
    return order


#: SciPy's names of wanted eigenvalues, with functions that take ascending eigenvalues and return indices, the most wanted first.
WANTED: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "LM": lambda values: np.argsort(-np.abs(values), kind="stable"),
    "SM": lambda values: np.argsort(np.abs(values), kind="stable"),
    "LA": lambda values: np.argsort(-values, kind="stable"),
    "SA": lambda values: np.arange(values.size),
    "BE": _order_from_both_ends,
}


# The rounding floor is the argument ``floor`` of `lanczos`, times the precision of the largest eigenvalue.
# ARPACK leaves eigenpairs' residuals of up to 98 times the largest eigenvalue's precision, LAPACK of 5 times.
# With `_DRIFT` 1 in place of 4, the eigenvalues of a grid of 44 x 44 took 3.3 times the products, with 2 they took 1.2 times.
#: Factor by which an eigenpair's residual, computed by a product, may exceed the rounding floor in `_DRIFTING_RESTARTS` restarts.
_DRIFT = 4.0
#: Restarts of Lanczos' method up to which `_DRIFT` holds; n times as many multiply `_DRIFT` by the square root of n.
_DRIFTING_RESTARTS = 100
#: Most change of a locked eigenvalue, in rounding floors, in a search for missed eigenvalues; more than that is a new eigenvalue.
_DRIFT_OF_VALUES = 32.0


@dataclasses.dataclass(frozen=True)
class Eigenpairs:
    """Eigenvalues that ascend, their vectors on the device, which of them are converged, and the restarts made."""

    values: np.ndarray[Any, Any]
    vectors: list[cl_array.Array]
    converged: np.ndarray[Any, Any]
    restarts: int


def lanczos(
    chain: Chain,
    A: Apply,
    first: cl_array.Array,
    k: int,
    size: int,
    maxiter: int,
    tol: float,
    which: str,
    rng: np.random.Generator,
    floor: float,
) -> Eigenpairs:
    """Return some eigenvalues and eigenvectors of a Hermitian operator, by Lanczos' method with thick restart.

    Parameters
    ----------
    chain : Chain
    A : callable
        Enqueues the product.
    first : pyopencl.array.Array
        The vector to begin with.
    k : int
        How many eigenvalues are wanted.
    size : int
        Vectors of the basis, more than k, and at most as many as a vector has entries.
    maxiter : int
        Restarts at most.
    tol : float
        Relative error of eigenvalues; 0 stands for the precision.
    which : str
        Of `WANTED`.
    rng : numpy.random.Generator
        Makes a vector where those so far span all that they can reach.
    floor : float
        Errors that are taken for rounding whatever the eigenvalue, as a multiple of the precision of the largest one. 0 for an
        inverse, as its largest eigenvalue may be any number of times those that are wanted.
    """
    n, dtype, limits = first.size, first.dtype, Thresholds.of(chain.device)
    eps = float(np.finfo(dtype).eps)
    basis = Basis(chain, n, dtype, A, None, size)
    if floor and n <= (1 + limits.search) * (size + 1):
        return _solve_densely(basis, k, which)
    spare = [basis.sweeps.vector() for _ in range(k + max(1, (size - k) // 2))]
    projected = np.zeros((size, size), np.result_type(dtype, np.float64))
    basis.begin(first)
    values, norm = np.zeros(0), 0.0
    # Wanted eigenpairs are locked (kept as they are) while a Krylov space of a random vector is searched for missed eigenpairs.
    n_kept, locked, restarts, products, end = 0, 0, 0, 0, 0

    def have_converged(errors: np.ndarray[Any, Any], values: np.ndarray[Any, Any], times: float = 1.0) -> np.ndarray[Any, Any]:
        """Return a mask of the eigenpairs that have converged: pairs whose residual norms, ``errors``, are small."""
        least = times * floor * norm * eps if floor else (tol or eps) * eps ** (2 / 3)
        is_small: np.ndarray[Any, Any] = errors <= np.maximum((tol or eps) * np.abs(values), least)
        return is_small

    def count_kept(converged: int) -> int:
        """Return the number of eigenpairs that a restart keeps: more than are wanted once some have converged, as in ARPACK."""
        return min(max(k + min(converged, (size - k) // 2), size // 2), filled - 1)

    while True:
        below, filled = 0.0, min(size, n_kept + max(1, end - products)) if locked else size
        for number in range(n_kept, filled):
            column, below = basis.extend(number).values()
            products += 1
            if not np.isfinite(column).all() or not np.isfinite(below):
                return Eigenpairs(np.full(k, np.nan), basis.vectors[:k], np.zeros(k, bool), restarts + 1)
            projected[: number + 1, number], projected[number, : number + 1] = column, column.conj()
            if below <= limits.noise * eps * float(np.linalg.norm([*np.abs(column), below])):
                below = 0.0
                basis.replace(number + 1, rng.standard_normal(n).astype(dtype))
        new_values, vectors = scipy.linalg.eigh(projected[locked:filled, locked:filled])
        _part_copies(new_values, vectors, limits.noise * eps * float(np.abs(new_values).max()))
        values, vectors = np.concatenate([values[:locked], new_values]), scipy.linalg.block_diag(np.eye(locked), vectors)
        rank, norm = np.argsort(values, kind="stable"), max(norm, float(np.abs(values).max()))
        order = rank[WANTED[which](values[rank])]
        selected, following = rank[np.isin(rank, order[:k])], basis.vectors[filled]
        fine = have_converged(below * np.abs(vectors[-1]), values)[selected]
        if locked and have_converged(np.abs(values[selected] - values[:k]), values[:k], _DRIFT_OF_VALUES).all():
            if products >= end:
                return Eigenpairs(values[:k], basis.vectors[:k], np.ones(k, bool), restarts)
            selected = np.concatenate([np.arange(k), order[order >= k]])[: count_kept(k)]
            _rotate(basis, spare, vectors[:, selected])
            values = values[selected]
        else:
            # A new eigenvalue that is better than the locked eigenvalues, such as a missed copy, unlocks all eigenpairs.
            end, locked, restarts = 0 if locked else end, 0, restarts + 1
            if restarts >= maxiter and not fine.all():
                _rotate(basis, spare, vectors[:, selected])
                return Eigenpairs(values[selected], basis.vectors[:k], fine, restarts)
            if not fine.all():
                selected = order[: count_kept(int(fine.sum()))]
                _rotate(basis, spare, vectors[:, selected])
                values = values[selected]
            else:
                # After convergence in one or two restarts there may be few distinct eigenvalues: run one more restart at least.
                least = (k if floor else 0) + (size - k if k > 1 else 0)
                end = end or max(int((1 + limits.search) * products), products + least)
                _rotate(basis, spare, vectors[:, selected], anew=True)
                values = values[selected]
                if floor:
                    # Only products with the eigenvectors show the rounding errors of many restarts of Lanczos' method.
                    values, vectors, errors = _project_anew(basis, spare[k], k)
                    drift = _DRIFT * max(1.0, restarts / _DRIFTING_RESTARTS) ** 0.5
                    fine, products, following = have_converged(errors, values, drift), products + k, spare[k]
                    _rotate(basis, spare, vectors)
                if fine.all() and products < end and size < n:
                    locked = k
                elif fine.all() or restarts >= maxiter:
                    return Eigenpairs(values, basis.vectors[:k], fine, restarts)
        n_kept = values.size
        basis.sweeps.copy(basis.vectors[n_kept], following)
        for vector in basis.vectors[n_kept + 1 :]:
            basis.sweeps.fill(vector)
        if locked == n_kept:
            basis.replace(n_kept, rng.standard_normal(n).astype(dtype))
        projected[:] = 0
        projected[range(n_kept), range(n_kept)] = values


def _part_copies(values: np.ndarray[Any, Any], vectors: np.ndarray[Any, Any], near: float) -> None:
    """Make eigenvalues near each other equal, and rotate their eigenvectors so that the last of these alone has a residual.

    Otherwise every copy has a part of the newest copy's residual, and a restart that keeps some of the copies loses converged
    ones: for ever, where both ends of the spectrum compete for room.
    """
    for copies in np.split(np.arange(values.size), 1 + np.flatnonzero(np.diff(values) > near)):
        if copies.size > 1:
            values[copies] = values[copies].mean()
            vectors[:, copies] = vectors[:, copies] @ scipy.linalg.qr(vectors[-1:, copies].T.conj())[0][:, ::-1]


def _solve_densely(basis: Basis, k: int, which: str) -> Eigenpairs:
    """Return k eigenpairs of an operator of few rows, whose entries are the products with all unit vectors."""
    entries = np.stack([basis.product(unit) for unit in np.eye(basis.w.size)], axis=1)
    if not np.isfinite(entries).all():
        return Eigenpairs(np.full(k, np.nan), basis.vectors[:k], np.zeros(k, bool), 1)
    values, vectors = scipy.linalg.eigh((entries + entries.conj().T) / 2)
    selected = np.sort(WANTED[which](values)[:k])
    for vector, column in zip(basis.vectors, vectors[:, selected].T, strict=False):
        basis.assign(vector, column)
    return Eigenpairs(values[selected], basis.vectors[:k], np.ones(k, bool), 1)


def _project_anew(
    basis: Basis, worst: cl_array.Array, k: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return Ritz values of the operator on k basis vectors, the factors of their Ritz vectors, and bounds of their residuals.

    The largest part of a product outside of the space of these vectors is copied to ``worst``.
    """
    projected, norms = np.zeros((k, k), np.result_type(basis.sweeps.dtype, np.float64)), np.zeros(k)
    for i in range(k):
        projected[:, i], norms[i] = basis.extend(i, k, basis.q).values()
        if norms[i] >= norms.max():
            basis.sweeps.copy(worst, basis.q)
    values, factors = scipy.linalg.eigh((projected + projected.T.conj()) / 2)
    return values, factors, norms @ np.abs(factors)


def _rotate(basis: Basis, spare: list[cl_array.Array], factors: np.ndarray[Any, Any], anew: bool = False) -> None:
    """Replace the first vectors of a basis by linear combinations of basis vectors, one for each column of factors.

    If ``anew``, the combinations are made orthonormal again, and the other basis vectors 0.
    """
    columns = factors.shape[1]
    for target, column in zip(spare[:columns], factors.T, strict=True):
        basis.sweeps.fill(target)
        basis.add(target, column)
    if anew:
        for vector in basis.vectors:
            basis.sweeps.fill(vector)
    for number, target in enumerate(spare[:columns]):
        if anew:
            basis.orthogonalise(number, target)
        else:
            basis.sweeps.copy(basis.vectors[number], target)
