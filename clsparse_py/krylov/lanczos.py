"""Eigenvalues of Hermitian operators by Lanczos' method with thick restart, on the device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from pyopencl import array as cl_array

from clsparse_py.krylov.basis import Basis
from clsparse_py.krylov.system import Apply
from clsparse_py.launch import Chain

__all__ = ["WANTED", "Eigenpairs", "lanczos"]


def _both_ends(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the order of values that ascend: the largest, the smallest, the second largest and so on."""
    order = np.empty(values.size, np.intp)
    half = -(-values.size // 2)
    order[0::2], order[1::2] = np.arange(values.size)[::-1][:half], np.arange(values.size - half)
    return order


#: The order of eigenvalues that ascend, those that are wanted first; by SciPy's names.
WANTED: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "LM": lambda values: np.argsort(-np.abs(values), kind="stable"),
    "SM": lambda values: np.argsort(np.abs(values), kind="stable"),
    "LA": lambda values: np.arange(values.size)[::-1],
    "SA": lambda values: np.arange(values.size),
    "BE": _both_ends,
}


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
    """Return some eigenvalues of an operator and their vectors.

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
    n, dtype = first.size, first.dtype
    eps = float(np.finfo(dtype).eps)
    basis = Basis(chain, n, dtype, A, None, size)
    rotated = [basis.sweeps.vector() for _ in range(k + (size - k) // 2)]
    projected = np.zeros((size, size), np.result_type(dtype, np.float64))
    basis.begin(first)
    kept, restarts = 0, 0
    while True:
        restarts += 1
        below = 0.0
        for number in range(kept, size):
            column, below = basis.extend(number).values()
            if not np.isfinite(column).all() or not np.isfinite(below):
                return Eigenpairs(np.full(k, np.nan), basis.vectors[:k], np.zeros(k, bool), restarts)
            projected[: number + 1, number], projected[number, : number + 1] = column, column.conj()
            if below <= eps * float(np.linalg.norm([*np.abs(column), below])):
                below = 0.0
                if number + 1 < size:
                    basis.replace(number + 1, rng.standard_normal(n).astype(dtype))
        values, vectors = scipy.linalg.eigh(projected)
        order = WANTED[which](values)
        errors = below * np.abs(vectors[-1])
        limits = (tol or eps) * np.maximum(eps ** (2 / 3), np.abs(values))
        fine = errors <= np.maximum(limits, floor * eps * np.abs(values).max())
        if fine[order[:k]].all() or restarts >= maxiter:
            break
        # Some more than are wanted are kept, so that a restart loses less.
        kept = min(k + (size - k) // 2, size - 1)
        _rotate(basis, rotated, vectors[:, order[:kept]])
        basis.sweeps.copy(basis.vectors[kept], basis.vectors[size])
        for vector in basis.vectors[kept + 1 :]:
            basis.sweeps.fill(vector)
        projected[:] = 0
        projected[range(kept), range(kept)] = values[order[:kept]]
    chosen = np.sort(order[:k])
    _rotate(basis, rotated, vectors[:, chosen])
    return Eigenpairs(values[chosen], basis.vectors[: chosen.size], fine[chosen], restarts)


def _rotate(basis: Basis, room: list[cl_array.Array], factors: np.ndarray[Any, Any]) -> None:
    """Make the first vectors of a basis combinations of all but the last one, one for each column of factors."""
    columns = factors.shape[1]
    for target, column in zip(room[:columns], factors.T, strict=True):
        basis.sweeps.fill(target)
        basis.add(target, column)
    for source, target in zip(room[:columns], basis.vectors[:columns], strict=True):
        basis.sweeps.copy(target, source)
