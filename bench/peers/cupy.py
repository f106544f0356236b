"""CuPy: what it has or what one writes with it, in memory of its own pool."""

from __future__ import annotations

import pyopencl as cl

from bench.contestants import Contestant
from bench.peers import cuda
from bench.peers.array_primitives import OPERATIONS, array_primitive
from bench.peers.cusparse_spgemm import sorted_rows
from bench.problems.primitives import Primitive
from bench.problems.spgemm import Spgemm


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return cuda.available()


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return cuda.versions()


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation in ("spgemm", "amg"):
        return [Contestant("cupy", _spgemm)]
    return [Contestant("cupy", _prepared)] if operation in OPERATIONS else []


def _prepared(problem: Primitive) -> cuda.CudaCalls:
    import cupy

    made = array_primitive(problem)
    operands, transfer = cuda.to_device(made.operands)
    once = {"transfer": transfer}
    return cuda.CudaCalls(problem, lambda: made.compute(cupy, *operands), once, made.detail, unpack=made.unpacked)


def _spgemm(problem: Spgemm) -> cuda.CudaCalls:
    import cupyx.scipy.sparse

    matrices = {id(each): each for each in (problem.matrix, problem.right)}
    operands, transfer = {}, 0.0
    for name, each in matrices.items():
        parts, seconds = cuda.to_device((each.data, each.indices, each.indptr))
        operands[name] = cupyx.scipy.sparse.csr_matrix(parts, shape=each.shape)
        transfer += seconds
    left, right = (operands[id(each)] for each in (problem.matrix, problem.right))

    def multiply() -> cuda.Arrays:
        product = left @ right
        return product.indptr, product.indices, product.data

    return cuda.CudaCalls(problem, multiply, {"transfer": transfer}, "A @ B of cupyx", unpack=sorted_rows(problem))
