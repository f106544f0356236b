"""CuPy: what it has or what one writes with it, in memory of its own pool."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl

from bench.contestants import Contestant, HostPrepared
from bench.peers import cuda
from bench.peers.array_primitives import OPERATIONS, array_primitive
from bench.peers.cusparse_elementwise import canonicalizer
from bench.peers.cusparse_spgemm import row_sorter
from bench.problems import elementwise, indexing, triangles
from bench.problems.base import Array, Result
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
    if operation in elementwise.CALLS:
        return [Contestant("cupy", _elementwise)]
    if operation in indexing.OPERATIONS:
        return [Contestant("cupy", _index)]
    if operation == triangles.OPERATION:
        return [Contestant("cupy", _triangles)]
    return [Contestant("cupy", _prepare)] if operation in OPERATIONS else []


def _prepare(problem: Primitive) -> cuda.CudaCalls:
    import cupy

    made = array_primitive(problem)
    operands, transfer = cuda.to_device(made.operands)
    once = {"transfer": transfer}
    return cuda.CudaCalls(problem, lambda: made.compute(cupy, *operands), once, made.detail, unpack=made.unpacked)


def _spgemm(problem: Spgemm) -> cuda.CudaCalls:
    import cupyx.scipy.sparse

    matrices = {id(matrix): matrix for matrix in (problem.matrix, problem.right)}
    operands, transfer = {}, 0.0
    for name, matrix in matrices.items():
        parts, seconds = cuda.to_device((matrix.data, matrix.indices, matrix.indptr))
        operands[name] = cupyx.scipy.sparse.csr_matrix(parts, shape=matrix.shape)
        transfer += seconds
    left, right = (operands[id(matrix)] for matrix in (problem.matrix, problem.right))

    def multiply() -> cuda.Arrays:
        product = left @ right
        return product.indptr, product.indices, product.data

    return cuda.CudaCalls(problem, multiply, {"transfer": transfer}, "A @ B of cupyx", unpack=row_sorter(problem))


def _triangles(problem: triangles.Triangles) -> HostPrepared:
    import cupyx.scipy.sparse

    L = problem.edges
    parts, _ = cuda.to_device((L.data.astype(np.float64), L.indices, L.indptr))
    edges = cupyx.scipy.sparse.csr_matrix(tuple(parts), shape=L.shape)
    return HostPrepared(problem, lambda: (np.array([int((edges @ edges).multiply(edges).sum())]),), "(L @ L).multiply(L).sum()")


def _elementwise(problem: elementwise.Union | elementwise.Sums | elementwise.Extremes) -> cuda.CudaCalls:
    import cupyx.scipy.sparse

    hosts = (problem.matrix, problem.right) if isinstance(problem, elementwise.Union) else (problem.matrix, None)
    matrices, transfer = [], 0.0
    for host in hosts:
        if host is not None:
            arrays, seconds = cuda.to_device((host.data, host.indices, host.indptr))
            matrices.append(cupyx.scipy.sparse.csr_matrix(tuple(arrays), shape=host.shape))
            transfer += seconds
        else:
            matrices.append(None)
    call = elementwise.CALLS[problem.operation]

    def compute() -> cuda.Arrays:
        result = call(*matrices)
        if isinstance(problem, elementwise.Sums):
            return (result.ravel(),)
        if isinstance(problem, elementwise.Extremes):
            result = result.tocoo()
            return (result.row if problem.operation == "max_rows" else result.col), result.data
        return indexing.parts(result)

    def unpack(arrays: cuda.Arrays) -> cuda.Arrays:
        if isinstance(problem, elementwise.Sums):
            return arrays
        if isinstance(problem, elementwise.Extremes):
            places, values = arrays
            kept = values != 0
            return places[kept], values[kept]
        return canonicalizer(problem)(arrays)

    return cuda.CudaCalls(problem, compute, {"transfer": transfer}, "plain call of cupyx", unpack=unpack)


def _index(problem: indexing.Indexing) -> cuda.CudaCalls:
    import cupyx.scipy.sparse

    a = problem.matrix
    (*arrays, positions), transfer = cuda.to_device((a.data, a.indices, a.indptr, problem.positions))
    matrix = cupyx.scipy.sparse.csr_matrix(tuple(arrays), shape=a.shape)
    call = indexing.OPERATIONS[problem.operation][2]

    second = indexing.second_of(matrix, positions, problem.operation)

    def compute() -> cuda.Arrays:
        return indexing.parts(call(matrix, second))

    detail = "plain call of cupyx"
    # A matrix in another format may have some of its arrays.
    return cuda.CudaCalls(problem, compute, {"transfer": transfer}, detail, unpack=_in_order(problem), shared=tuple(arrays))


def _in_order(problem: indexing.Indexing) -> Callable[[cuda.Arrays], cuda.Arrays]:
    """Return what puts the entries of each row into the reference's order: CuPy's may come in another."""

    def unpack(arrays: cuda.Arrays) -> cuda.Arrays:
        import cupy

        if problem.operation in ("tocsc", "tocoo", "tocoo_shared"):
            return arrays
        if problem.operation == "kron":
            rows, columns, data = arrays
            order = cupy.lexsort(cupy.stack((columns, rows)))
            return rows[order], columns[order], data[order]
        wanted, result = (_row_by_row(part) for part in (problem.reference, tuple(array.get() for array in arrays)))
        if wanted.shape != result.shape:
            return arrays
        indptr, indices, data = arrays
        order = np.empty_like(wanted)
        order[wanted] = result
        return indptr, indices[cupy.asarray(order)], data[cupy.asarray(order)]

    return unpack


def _row_by_row(parts: Result) -> Array:
    """Return the order of a matrix's entries by row and column."""
    indptr, indices, _ = parts
    order: Array = np.lexsort((indices, np.repeat(np.arange(indptr.size - 1), np.diff(indptr))))
    return order
