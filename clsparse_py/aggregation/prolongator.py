"""Smoothed prolongators of one candidate: a row is the sum of few aggregates', so no product of sparse matrices is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.aggregation.kernels import Prolongator
from clsparse_py.arithmetic import name_of
from clsparse_py.built import Built
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.launch import Chain, spread
from clsparse_py.matrix import Matrix, MatrixT, Parts, Structure
from clsparse_py.memory import allocated, submit
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.transfer import fetched

__all__ = ["MAX_ROW", "smoothed_prolongator", "smoothed_values"]

#: Entries of the longest row of A up to which a work-item makes each row: on CPU devices, and elsewhere.
MAX_ROW = {True: 1024, False: 96}


def _on_host(queue: cl.CommandQueue, A: Parts, inverse: cl_array.Array, gain: float, T: Parts, n: int) -> Any:
    """Return the values, columns and row pointers of the prolongator, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in A)
    values, columns, pointers = (fetched(part, queue) for part in T)
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    terms = ((indices == row) - fetched(inverse, queue)[row] * data * gain).astype(data.dtype)
    kept = np.flatnonzero(np.diff(pointers)[indices] > 0)
    at = pointers[indices[kept]]
    places, of = np.unique(row[kept] * np.int64(n) + columns[at], return_inverse=True)
    sums = np.zeros(places.size, data.dtype)
    np.add.at(sums, of, terms[kept] * values[at])
    found = np.searchsorted(places // max(n, 1), np.arange(indptr.size))
    return sums, (places % max(n, 1)).astype(indptr.dtype), found.astype(indptr.dtype)


def _made_by_host(
    queue: cl.CommandQueue,
    A: Parts,
    inverse: cl_array.Array,
    gain: float,
    T: Parts,
    n: int,
    longest: int,  # noqa: ARG001 - of the kernels
) -> Parts:
    """Return the result of `_made`, computed by NumPy."""
    values, columns, pointers = _on_host(queue, A, inverse, gain, T, n)
    return placed(queue, "values", values), placed(queue, "indices", columns), placed(queue, "indptr", pointers)


@or_by_host(_made_by_host)
def _made(
    queue: cl.CommandQueue,
    A: Parts,
    inverse: cl_array.Array,
    gain: float,
    T: Parts,
    n: int,  # noqa: ARG001 - of the host
    longest: int,
) -> Parts:
    """Return the values, columns and row pointers of P, which has n columns."""
    chain, (data, indices, indptr) = Chain(queue, *A, inverse, *T), A
    index, n_rows = indptr.dtype, indptr.size - 1
    (make, sizes), (pack, sizes_of_pack) = (_built(chain, A, phase, longest) for phase in ("make", "pack"))
    counts, columns, sums = (chain.scratch(*each) for each in ((n_rows, index), (data.size, index), (data.size, data.dtype)))
    chain.launch(make, *sizes, indptr, indices, data, inverse, *_of(gain, T), counts, columns, sums)
    pointers = allocated(queue, "indptr", n_rows + 1, index)
    enqueue_scan(chain, counts, pointers, n_rows, kind="pointers")
    nnz = int(chain.read(pointers, 1, n_rows)[0])
    found = allocated(queue, "values", nnz, data.dtype), allocated(queue, "indices", nnz, index)
    chain.launch(pack, *sizes_of_pack, indptr, columns, sums, pointers, found[1], found[0])
    chain.finish(*found, pointers)
    return *found, pointers


def _values_by_host(
    queue: cl.CommandQueue,
    A: Parts,
    inverse: cl_array.Array,
    gain: float,
    T: Parts,
    P: Parts,
    n: int,
    longest: int,  # noqa: ARG001 - of the kernels
) -> None:
    """Do as `_set_values`, by NumPy."""
    values, _, _ = _on_host(queue, A, inverse, gain, T, n)
    submit("values", cl.enqueue_copy, queue, P[0].base_data, values, is_blocking=True)


@or_by_host(_values_by_host)
def _set_values(
    queue: cl.CommandQueue,
    A: Parts,
    inverse: cl_array.Array,
    gain: float,
    T: Parts,
    P: Parts,
    n: int,  # noqa: ARG001 - of the host
    longest: int,
) -> None:
    """Overwrite the values of P, which has n columns."""
    data, indices, indptr = A
    sums, columns, pointers = P
    chain = Chain(queue, *A, inverse, *T, columns, pointers, writes=(sums,))
    built, sizes = _built(chain, A, "values", longest)
    chain.launch(built, *sizes, indptr, indices, data, inverse, *_of(gain, T), pointers, columns, sums)
    chain.finish(sums)


def _built(chain: Chain, A: Parts, phase: str, longest: int) -> tuple[Built, tuple[Any, ...]]:
    """Return a kernel, work-groups, and the arguments that say how they share the rows."""
    types = name_of(A[2].dtype), name_of(A[0].dtype)
    built, record = chain.build(Prolongator.legal(chain.device, *types, phase, longest))
    groups, sizes = spread(chain.device, A[2].size - 1, record.work_group, 64)
    return built, (groups, *sizes)


def _of(gain: float, T: Parts) -> tuple[Any, ...]:
    """Return the gain and T as kernels take them: whether each row has an entry, which is then the one of the row's number."""
    values, columns, pointers = T
    real = np.zeros(0, values.dtype).real.dtype
    return real.type(gain), np.uint32(values.size == pointers.size - 1), pointers, columns, values


def _parts(A: Matrix) -> Parts:
    return A.parts


def smoothed_prolongator(
    queue: cl.CommandQueue, A: MatrixT, inverse: cl_array.Array, gain: float, T: Matrix, longest: int
) -> MatrixT:
    """Return ``P = (1 - gain D^-1 A) T``, of A's class; waits.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order.
    A : Matrix
        In canonical format, n x n.
    inverse : pyopencl.array.Array
        That of A's diagonal D, 0 for rows that are not smoothed.
    gain : float
    T : Matrix
        n rows of at most one entry each, of A's dtypes.
    longest : int
        Entries of A's longest row.
    """
    values, columns, pointers = _made(queue, _parts(A), inverse, gain, _parts(T), T.shape[1], longest)
    return A.assembled(Structure.canonical(queue, T.shape, columns, pointers), values)


def smoothed_values(
    queue: cl.CommandQueue, A: Matrix, inverse: cl_array.Array, gain: float, T: Matrix, longest: int, P: Matrix
) -> cl_array.Array:
    """Overwrite the values of an earlier result of `smoothed_prolongator` by those for others of A, and return them."""
    _set_values(queue, _parts(A), inverse, gain, _parts(T), _parts(P), T.shape[1], longest)
    return P.data
