"""SuiteSparse:GraphBLAS through python-graphblas: SpGEMM with as many threads as the process has cores, rows sorted."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType
from typing import Any

import numpy as np
import pyopencl as cl

from bench import machine
from bench.contestants import Contestant, HostPrepared
from bench.problems.base import Result
from bench.problems.spgemm import Spgemm
from bench.problems.triangles import OPERATION, Triangles


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None if importlib.util.find_spec("graphblas") else "python-graphblas is not installed"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    names = ("python-graphblas", "suitesparse-graphblas")
    return {name: machine.version_of(name) or "unknown" for name in names}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation == OPERATION:
        ways = {"saxpy": (False, "L @ L"), "dot": (True, "U @ U.T")}
        return [Contestant(f"graphblas/{name}", functools.partial(_triangles, *way)) for name, way in ways.items()]
    return [Contestant("graphblas", _spgemm)] if operation in ("spgemm", "amg") else []


class _Product(HostPrepared):
    """A product that GraphBLAS holds in an object of its own, new at each call."""

    def __init__(self, problem: Spgemm) -> None:
        graphblas = _interface()
        left, right = (
            graphblas.Matrix.from_csr(matrix.indptr, matrix.indices, matrix.data, ncols=matrix.shape[1])
            for matrix in (problem.matrix, problem.right)
        )

        def multiply() -> Any:
            product = left.mxm(right, graphblas.semiring.plus_times).new()
            # Rows are sorted and what is pending is done, at the latest, here.
            product.wait("materialize")
            return (product,)

        super().__init__(problem, multiply, f"{machine.threads()} threads", unpack=functools.partial(_export, problem))

    def poison(self) -> None:
        """Let the result go; there is none until the next call."""
        self._result = ()


def _spgemm(problem: Spgemm) -> HostPrepared:
    return _Product(problem)


def _triangles(turned: bool, what: str, problem: Triangles) -> HostPrepared:
    """Count by a product under the mask of its own operand: L in the graph's order, or U with vertices by degree."""
    graphblas = _interface()
    L = problem.ordered if turned else problem.edges
    edges = graphblas.Matrix.from_csr(L.indptr, L.indices, L.data, ncols=L.shape[1])

    def count() -> Result:
        result = graphblas.Matrix(graphblas.dtypes.INT32, *L.shape)
        result(edges.S) << graphblas.semiring.plus_pair(edges @ (edges.T if turned else edges))
        return (np.array([int(result.reduce_scalar(graphblas.monoid.plus[graphblas.dtypes.INT64]).new().value)]),)

    return HostPrepared(problem, count, f"{machine.threads()} threads, C<mask> = {what}, plus_pair")


def _export(problem: Spgemm, result: Any) -> Result:
    indptr, indices, values = result[0].to_csr()
    return tuple(
        np.asarray(part).astype(like.dtype, copy=False)
        for part, like in zip((indptr, indices, values), problem.like, strict=True)
    )


@functools.cache
def _interface() -> ModuleType:
    import graphblas

    graphblas.ss.config["nthreads"] = machine.threads()
    module: ModuleType = graphblas
    return module
