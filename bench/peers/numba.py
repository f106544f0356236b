"""Numba: the parallel loop over rows that one writes in five lines, and count, scan, insert by runs of rows."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from bench import machine
from bench.contestants import Contestant, HostPrepared
from bench.problems.base import Result
from bench.problems.spmv import Spmv
from bench.problems.sptrans import Sptrans


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None if importlib.util.find_spec("numba") else "numba is not installed"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"numba": machine.version_of("numba") or "unknown"}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    calls = {"spmv": _spmv, "sptrans": _sptrans}
    return [Contestant("numba", calls[operation])] if operation in calls else []


def _spmv(problem: Spmv) -> HostPrepared:
    product = _compiled_product()
    a, y = problem.matrix, problem.empty()

    def multiply() -> Result:
        product(a.indptr, a.indices, a.data, problem.x, y)
        return (y,)

    return HostPrepared(problem, multiply, detail=f"{machine.threads()} threads")


def _sptrans(problem: Sptrans) -> HostPrepared:
    conversion = _compiled_conversion()
    a, threads = problem.matrix, machine.threads()
    result = tuple(np.empty_like(part) for part in problem.reference)
    counts = np.empty((threads, a.shape[1]), a.indptr.dtype)
    # Rows in as many runs as there are threads, of about the same number of entries.
    bounds = np.searchsorted(a.indptr, np.linspace(0, a.nnz, threads + 1))
    bounds[0], bounds[-1] = 0, a.shape[0]

    def transpose() -> Result:
        conversion(a.indptr, a.indices, a.data, bounds, counts, *result)
        return result

    return HostPrepared(problem, transpose, detail=f"{threads} threads, result kept")


def _jit() -> Callable[[Callable[..., None]], Callable[..., None]]:
    import numba

    numba.set_num_threads(machine.threads())
    jit: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(parallel=True)
    return jit


@functools.cache
def _compiled_product() -> Callable[..., None]:
    import numba

    @_jit()
    def multiply(indptr: Any, indices: Any, data: Any, x: Any, y: Any) -> None:
        for row in numba.prange(y.size):
            total = y.dtype.type(0)
            for k in range(indptr[row], indptr[row + 1]):
                total += data[k] * x[indices[k]]
            y[row] = total

    return multiply


@functools.cache
def _compiled_conversion() -> Callable[..., None]:
    import numba

    @_jit()
    def convert(
        indptr: Any, indices: Any, data: Any, bounds: Any, counts: Any, to_indptr: Any, to_indices: Any, to_data: Any
    ) -> None:
        threads, n_columns = counts.shape
        for thread in numba.prange(threads):
            own = counts[thread]
            own[:] = 0
            for k in range(indptr[bounds[thread]], indptr[bounds[thread + 1]]):
                own[indices[k]] += 1
        # Each count becomes the place of the thread's first entry in its column.
        place = 0
        for column in range(n_columns):
            to_indptr[column] = place
            for thread in range(threads):
                count = counts[thread, column]
                counts[thread, column] = place
                place += count
        to_indptr[n_columns] = place
        for thread in numba.prange(threads):
            places = counts[thread]
            for row in range(bounds[thread], bounds[thread + 1]):
                for k in range(indptr[row], indptr[row + 1]):
                    to = places[indices[k]]
                    places[indices[k]] = to + 1
                    to_indices[to] = row
                    to_data[to] = data[k]

    return convert
