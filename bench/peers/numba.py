"""Numba: the parallel loop over rows that one writes in five lines."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import machine
from bench.contestants import Contestant, HostPrepared
from bench.problem import Problem


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None if importlib.util.find_spec("numba") else "numba is not installed"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"numba": machine.version_of("numba") or "unknown"}


def contestants(operation: str) -> list[Contestant]:
    """Return who can compute an operation."""
    return [Contestant("numba", _spmv)] if operation == "spmv" else []


def _spmv(problem: Problem) -> HostPrepared:
    product = _compiled()
    a, y = problem.matrix, np.empty(problem.reference.shape, problem.dtype)

    def multiply() -> Any:
        product(a.indptr, a.indices, a.data, problem.x, y)
        return y

    return HostPrepared(problem, multiply, detail=f"{machine.threads()} threads")


@functools.cache
def _compiled() -> Callable[..., None]:
    import numba

    numba.set_num_threads(machine.threads())
    jit: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(parallel=True)

    @jit
    def multiply(indptr: Any, indices: Any, data: Any, x: Any, y: Any) -> None:
        for row in numba.prange(y.size):
            total = y.dtype.type(0)
            for k in range(indptr[row], indptr[row + 1]):
                total += data[k] * x[indices[k]]
            y[row] = total

    return multiply
