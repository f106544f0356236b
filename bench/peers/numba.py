"""Numba: the parallel loop over rows that one writes in five lines; count, scan, insert by runs of rows; dense accumulators."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from bench import machine
from bench.contestants import Contestant, HostPrepared
from bench.problems.base import Array, Result
from bench.problems.spgemm import Spgemm
from bench.problems.spmv import Spmv
from bench.problems.sptrans import Sptrans
from bench.problems.sptrsv import Sptrsv


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None if importlib.util.find_spec("numba") else "numba is not installed"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"numba": machine.version_of("numba") or "unknown"}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    calls = {"spmv": _spmv, "sptrans": _sptrans, "spgemm": _spgemm, "amg": _spgemm, "sptrsv": _sptrsv}
    return [Contestant("numba", calls[operation])] if operation in calls else []


def _spmv(problem: Spmv) -> HostPrepared:
    product = _compile_product()
    a, y = problem.matrix, problem.empty()

    def multiply() -> Result:
        product(a.indptr, a.indices, a.data, problem.x, y)
        return (y,)

    return HostPrepared(problem, multiply, detail=f"{machine.threads()} threads")


def _sptrans(problem: Sptrans) -> HostPrepared:
    conversion = _compile_conversion()
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


def _sptrsv(problem: Sptrsv) -> HostPrepared:
    substitution = _compile_substitution()
    L, x = problem.matrix, problem.empty()

    def solve() -> Result:
        substitution(L.indptr, L.indices, L.data, problem.b, x)
        return (x,)

    return HostPrepared(problem, solve, detail="1 thread, a serial loop")


def _spgemm(problem: Spgemm) -> HostPrepared:
    count, fill = _compile_accumulators()
    a, b, threads = problem.matrix, problem.right, machine.threads()
    indptr, indices, data = (np.empty(like.shape, like.dtype) for like in problem.like)
    # A thread's row of each: the row of C that a column was met in last, and its sum there.
    marks, sums = np.empty((threads, b.shape[1]), indptr.dtype), np.empty((threads, b.shape[1]), data.dtype)

    def multiply() -> Result:
        bounds = _shares(a, b, threads)
        count(a.indptr, a.indices, b.indptr, b.indices, bounds, marks, indptr)
        np.cumsum(indptr, out=indptr)
        fill(a.indptr, a.indices, a.data, b.indptr, b.indices, b.data, bounds, marks, sums, indptr, indices, data)
        return indptr, indices, data

    return HostPrepared(problem, multiply, detail=f"{threads} threads, dense accumulators, result kept")


def _shares(a: Any, b: Any, threads: int) -> Array:
    """Return where runs of rows begin, as many as there are threads, of about the same number of products."""
    products = np.concatenate(([0], np.cumsum(np.diff(b.indptr)[a.indices], dtype=np.int64)))[a.indptr]
    bounds = np.searchsorted(products, np.linspace(0, products[-1], threads + 1))
    bounds[0], bounds[-1] = 0, a.shape[0]
    return bounds


def _jit() -> Callable[[Callable[..., None]], Callable[..., None]]:
    import numba

    numba.set_num_threads(machine.threads())
    jit: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(parallel=True)
    return jit


@functools.cache
def _compile_product() -> Callable[..., None]:
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
def _compile_substitution() -> Callable[..., None]:
    import numba

    @numba.njit
    def solve(indptr: Any, indices: Any, data: Any, b: Any, x: Any) -> None:
        for row in range(x.size):
            total, last = b[row], indptr[row + 1] - 1
            for k in range(indptr[row], last):
                total -= data[k] * x[indices[k]]
            x[row] = total / data[last]

    result: Callable[..., None] = solve
    return result


@functools.cache
def _compile_conversion() -> Callable[..., None]:
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


@functools.cache
def _compile_accumulators() -> tuple[Callable[..., None], Callable[..., None]]:
    import numba

    @_jit()
    def count(a_indptr: Any, a_indices: Any, b_indptr: Any, b_indices: Any, bounds: Any, marks: Any, c_indptr: Any) -> None:
        c_indptr[0] = 0
        for thread in numba.prange(marks.shape[0]):
            mark = marks[thread]
            mark[:] = -1
            for row in range(bounds[thread], bounds[thread + 1]):
                entries = 0
                for k in range(a_indptr[row], a_indptr[row + 1]):
                    for j in range(b_indptr[a_indices[k]], b_indptr[a_indices[k] + 1]):
                        if mark[b_indices[j]] != row:
                            mark[b_indices[j]] = row
                            entries += 1
                c_indptr[row + 1] = entries

    @_jit()
    def fill(
        a_indptr: Any, a_indices: Any, a_data: Any, b_indptr: Any, b_indices: Any, b_data: Any, bounds: Any, marks: Any,
        sums: Any, c_indptr: Any, c_indices: Any, c_data: Any,
    ) -> None:  # fmt: skip
        for thread in numba.prange(marks.shape[0]):
            mark, total = marks[thread], sums[thread]
            mark[:] = -1
            for row in range(bounds[thread], bounds[thread + 1]):
                begin, end = c_indptr[row], c_indptr[row]
                for k in range(a_indptr[row], a_indptr[row + 1]):
                    factor = a_data[k]
                    for j in range(b_indptr[a_indices[k]], b_indptr[a_indices[k] + 1]):
                        column = b_indices[j]
                        if mark[column] != row:
                            mark[column] = row
                            total[column] = factor * b_data[j]
                            c_indices[end] = column
                            end += 1
                        else:
                            total[column] += factor * b_data[j]
                if end - begin <= 32:
                    for i in range(begin + 1, end):
                        column, to = c_indices[i], i
                        while to > begin and c_indices[to - 1] > column:
                            c_indices[to] = c_indices[to - 1]
                            to -= 1
                        c_indices[to] = column
                else:
                    c_indices[begin:end].sort()
                for i in range(begin, end):
                    c_data[i] = total[c_indices[i]]

    return count, fill
