"""SciPy: one thread, a new result at every call, as its users have it."""

from __future__ import annotations

import functools

import numpy as np
import pyopencl as cl
import scipy

from bench.contestants import Contestant, DeclinedError, HostPrepared
from bench.problems import elementwise, indexing, sddmm, spmm, sptrsv, triangles
from bench.problems.base import Result
from bench.problems.spgemm import Spgemm
from bench.problems.spmm import Spmm
from bench.problems.spmv import Spmv
from bench.problems.sptrans import Sptrans


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"scipy": scipy.__version__}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation in ("spgemm", "amg"):
        return [Contestant("scipy", _spgemm), Contestant("scipy/sorted", functools.partial(_spgemm, ordered=True))]
    calls = {"spmv": _spmv, "sptrans": _sptrans, **dict.fromkeys(indexing.OPERATIONS, _index)}
    calls |= {**dict.fromkeys(elementwise.CALLS, _elementwise), **dict.fromkeys(spmm.OPERATIONS, _spmm)}
    calls |= {**dict.fromkeys(sptrsv.OPERATIONS, _sptrsv), **dict.fromkeys(sddmm.OPERATIONS, _sddmm)}
    calls |= {triangles.OPERATION: _triangles}
    return [Contestant("scipy", calls[operation])] if operation in calls else []


def _spmv(problem: Spmv) -> HostPrepared:
    return HostPrepared(problem, lambda: (problem.matrix @ problem.x,), detail="1 thread")


def _spmm(problem: Spmm) -> HostPrepared:
    return HostPrepared(problem, lambda: (problem.matrix @ problem.X,), detail="1 thread")


def _sddmm(problem: sddmm.Sddmm) -> HostPrepared:
    """Multiply with NumPy: SciPy has no such product."""
    rows = np.repeat(np.arange(problem.matrix.shape[0]), np.diff(problem.matrix.indptr))
    if rows.size * problem.X.shape[1] * problem.X.itemsize > 1 << 30:
        raise DeclinedError("rows of X and Y, gathered, take more than a GiB")
    gathered = (lambda: problem.X[rows], lambda: problem.Z[problem.matrix.indices])
    return HostPrepared(problem, lambda: (np.einsum("ek,ek->e", *(gather() for gather in gathered)),), detail="NumPy, 1 thread")


def _triangles(problem: triangles.Triangles) -> HostPrepared:
    L = problem.edges
    if int(np.diff(L.indptr)[L.indices].sum()) > 1 << 28:
        raise DeclinedError("L @ L takes more memory than is given to it")
    return HostPrepared(problem, lambda: (np.array([int((L @ L).multiply(L).sum())]),), detail="1 thread, (L @ L) * L")


def _sptrsv(problem: sptrsv.Sptrsv) -> HostPrepared:
    solve = scipy.sparse.linalg.spsolve_triangular
    return HostPrepared(problem, lambda: (solve(problem.matrix, problem.b),), detail="1 thread")


def _sptrans(problem: Sptrans) -> HostPrepared:
    def transpose() -> Result:
        columns = problem.matrix.tocsc()
        return columns.indptr, columns.indices, columns.data

    return HostPrepared(problem, transpose, detail="1 thread")


def _elementwise(problem: elementwise.Union | elementwise.Sums | elementwise.Extremes) -> HostPrepared:
    call, A = elementwise.CALLS[problem.operation], problem.matrix
    if isinstance(problem, elementwise.Union):
        right = problem.right
        return HostPrepared(problem, lambda: indexing.parts(call(A, right)), detail="1 thread")
    if isinstance(problem, elementwise.Sums):
        return HostPrepared(problem, lambda: (call(A, None),), detail="1 thread")

    def largest() -> Result:
        result = call(A, None)
        return *result.coords, result.data

    return HostPrepared(problem, largest, detail="1 thread")


def _index(problem: indexing.Indexing) -> HostPrepared:
    call = indexing.OPERATIONS[problem.operation][2]
    second = indexing.second_of(problem.matrix, problem.positions, problem.operation)

    def row_by_row(result: Result) -> Result:
        if problem.operation != "kron":
            return result
        order = np.lexsort((result[1], result[0]))
        return tuple(part[order] for part in result)

    a = problem.matrix
    shared = a.data, a.indices, a.indptr

    def compute() -> Result:
        return indexing.parts(call(a, second))

    return HostPrepared(problem, compute, detail="1 thread", unpack=row_by_row, shared=shared)


def _spgemm(problem: Spgemm, *, ordered: bool = False) -> HostPrepared:
    def multiply() -> Result:
        product = problem.matrix @ problem.right
        if ordered:
            product.sort_indices()
        return product.indptr, product.indices, product.data

    # SciPy leaves out what cancels; that is put in, and rows are sorted, outside of what is timed.
    detail = f"1 thread, rows {'sorted' if ordered else 'as they come'}"
    return HostPrepared(problem, multiply, detail, unpack=problem.with_cancelled)
