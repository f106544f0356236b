"""Assign values to places of a sparse matrix, and insert new entries: ``A[...] = values``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.base import on_device
from clsparse_py._build.built import Built
from clsparse_py._build.programs import Parameters
from clsparse_py._formats.coordinates import regroup, rows_of
from clsparse_py._ground.errors import warn
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import with_index
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.union import canonical_parts
from clsparse_py._operations.indexing.columns import columns_at
from clsparse_py._operations.indexing.kernels import KEYS, Insert, Locate
from clsparse_py._operations.indexing.points import Places
from clsparse_py._operations.indexing.positions import Listed, contiguous
from clsparse_py._operations.indexing.rows import Parts, new_parts, rows_at
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.radix_sort import enqueue_radix_sort
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import contexts_match, from_host

__all__ = ["Values", "assign_to_parts", "dense_values", "sparse_values"]

#: Greatest number of work-items of a work-group that assigns values to places of a sparse matrix.
_WORK_GROUP = 128


@dataclass(frozen=True, eq=False)
class Values:
    """Values that are assigned to places of a sparse matrix.

    Attributes
    ----------
    array : pyopencl.array.Array
        Of the matrix's dtype, contiguous, from the beginning of its buffer.
    by_row, by_column : int
        The value of the place in row r and column c of the matrix of places is number ``r * by_row + c * by_column``.
    listed : pyopencl.array.Array or None
        The numbers of the places that get a value, int64, ascending, if other places stay as they are; None for all places.
    """

    array: cl_array.Array
    by_row: int
    by_column: int
    listed: cl_array.Array | None = None


def dense_values(queue: cl.CommandQueue, values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Values | None:
    """Return a scalar's or dense array's values for places ``A[...]`` of a ``shape``, on the device; None if either is empty.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : scalar, array_like or pyopencl.array.Array
    dtype : dtype
        Of the matrix, to which NumPy converts values of the host.
    shape : tuple of int
        Of the places; empty for a single place.

    Raises
    ------
    ValueError, TypeError, OverflowError
        The values cannot be broadcast to the shape, live in another context, or do not fit the dtype.
    """
    if not isinstance(values, cl_array.Array):
        values = np.asarray(values, dtype)
    values_shape = tuple(values.shape)
    if not shape and values.size != 1:
        raise ValueError(f"values: a single place takes one value, got {values.size} (Trying to assign a sequence to an item)")
    n_columns = shape[-1] if shape else 1
    if _drop_ones(values_shape) == _drop_ones(shape):
        steps = (n_columns, 1)
    else:
        if len(values_shape) > len(shape) or _try_broadcast(values_shape, shape) != shape:
            raise ValueError(
                f"values: an array of shape {values_shape} could not be broadcast together with the places, of shape {shape}"
            )
        rows, columns = (1, 1, *values_shape)[-2:]
        steps = (columns if rows > 1 else 0, int(columns > 1))
    if not math.prod(shape) or not values.size:
        return None
    return Values(_place_values(queue, values, dtype), *steps)


def _drop_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the axes of length 1."""
    return tuple(length for length in shape if length != 1)


def _try_broadcast(other: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape to which two shapes broadcast, None if they do not."""
    try:
        return np.broadcast_shapes(other, shape)
    except ValueError:
        return None


def _place_values(queue: cl.CommandQueue, values: Any, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return the values to assign, in C order, as a device array of the matrix's dtype at offset 0 of its buffer.

    Raises
    ------
    ValueError
        The values live in another context.
    """
    if isinstance(values, np.ndarray):
        return from_host(queue, np.ascontiguousarray(values.ravel()), copy=True)
    if not contexts_match(values, queue.context):
        raise ValueError("values: live in another context than the matrix")
    if values.dtype.kind == "c" and dtype.kind not in "cb":
        warn("values: their imaginary parts are left out", np.exceptions.ComplexWarning)
    return contiguous(queue, "values", values, dtype)


def sparse_values(queue: cl.CommandQueue, matrix: Any, dtype: np.dtype[Any], shape: tuple[int, int]) -> Values | None:
    """Return the values that the entries of a sparse array, also SciPy's, assign to places ``A[...]``; None if it has no entries.

    Duplicates are added up. A row or a column is broadcast.

    Raises
    ------
    ValueError
        The shapes of array and places do not fit, or the array lives in another context.
    """
    rows, columns = shape
    matrix_shape = (1, *matrix.shape)[-2:]
    if not (matrix_shape[0] in (1, rows) and matrix_shape[1] in (1, columns)):
        fit = f"does not fit the places, of shape {(rows, columns)}: shape mismatch in assignment"
        raise ValueError(f"values: a sparse array of shape {matrix_shape} {fit}")
    if scipy.sparse.issparse(matrix):
        host = matrix.tocsr(copy=True)
        host.sum_duplicates()
        matrix = on_device(queue, host.astype(dtype))
    A = matrix._as_csr()
    if not contexts_match(A.data, queue.context):
        raise ValueError("values: live in another context than the matrix")
    data, indices, indptr = canonical_parts(A, A.dtype)
    entries = Matrix.assembled(Structure.canonical(queue, A.shape, indices, indptr), data)
    if matrix_shape[0] < rows:
        entries = rows_at(entries, Listed(np.zeros(rows, np.int64)))
    if matrix_shape[1] < columns:
        entries = columns_at(entries, Listed(np.zeros(columns, np.int64)))
    if not entries.indices.size:
        return None
    row = rows_of(queue, entries.indptr, entries.indices.size)
    numbers, _ = regroup(queue, row, entries.indices, (columns, 1), 1, np.dtype(np.int64))
    return Values(_place_values(queue, entries.data, dtype), 0, 1, numbers)


def assign_to_parts(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool = True
) -> tuple[Parts, int]:
    """Return data, indices and indptr of a sparse matrix with values assigned to places, and the number of new entries.

    Waits for the device once, for the number of new entries.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    parts : tuple of pyopencl.array.Array
        data, indices and indptr, in canonical format; they are not changed. Without new entries the result shares the latter two.
    shape : tuple of int
        Of the matrix.
    places : Places
        The last value of a place counts.
    values : Values
    inserts : bool
        False: places without an entry get none.

    Raises
    ------
    IndexError
        An index of a device array is out of range.
    ValueError
        Places of the matrix cannot be counted in 63 bits.
    MemoryError
        The device has not the memory for the result.
    """
    if shape[0] * shape[1] > np.iinfo(np.int64).max:
        raise ValueError(f"A: a matrix of {shape[0]} x {shape[1]} has too many places to be assigned to")
    return _assign(queue, parts, shape, places, values, inserts=inserts)


def _assign(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return a sparse matrix's arrays with values assigned to places, and the number of new entries; see `assign_to_parts`."""
    data, indices, indptr = parts
    chain = Chain(queue, *parts, *places.arrays, values.array, *([] if values.listed is None else [values.listed]))
    n, index = places.size if values.listed is None else values.listed.size, indptr.dtype
    if n > np.iinfo(index).max:
        return _with_wide_index(queue, parts, shape, places, values, inserts=inserts)
    kernels = _build_kernels(chain, index, data.dtype)
    out = allocate(queue, "data of the result", data.size, data.dtype, data.allocator)
    chain.copy(out, data, data.size)
    search = _enqueue_search(chain, kernels, (out, indices, indptr), shape, places, values, n)
    checks = places.enqueue_checks(chain)
    enqueue_scan(chain, search.is_new, search.counts, n, kind="pointers")
    n_new = int(chain.read(search.counts, 1, n)[0])
    for check in checks:
        check()
    if not n_new or not inserts:
        chain.finish(out)
        return (out, indices, indptr), 0
    if data.size + n_new > np.iinfo(index).max:
        return _with_wide_index(queue, parts, shape, places, values, inserts=inserts)
    new_arrays = new_parts(queue, parts, shape[0], data.size + n_new)
    _enqueue_insertion(chain, kernels, (out, indices, indptr), values.array, search, n_new, new_arrays)
    chain.finish(*new_arrays)
    return new_arrays, n_new


def _build_kernels(chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any]) -> dict[str, Built]:
    """Return, by name, the kernels that assign values to places of a sparse matrix, for an index type and a dtype of values."""
    group, types = min(_WORK_GROUP, chain.device.max_work_group), (name_of(index), dtype.itemsize)
    records: dict[str, Parameters] = {phase: Insert(group, *types, phase) for phase in ("new", "entries", "rows")}
    records |= {"keys": KEYS.record(group, types[0]), "locate": Locate(group, *types)}
    return {name: chain.build(record)[0] for name, record in records.items()}


class _Search(NamedTuple):
    """Results of the search of n places in a sparse matrix; arrays have an item for each place, in the order of keys.

    ``layout`` are the kernels' arguments for the values of places, and the number of columns of the matrix.
    """

    n: int
    layout: tuple[np.generic, ...]
    keys: cl_array.Array
    numbers: cl_array.Array
    is_new: cl_array.Array
    belongs: cl_array.Array
    counts: cl_array.Array  # memory for the numbers of new entries before each place


def _enqueue_search(
    chain: Chain, kernels: dict[str, Built], parts: Parts, shape: tuple[int, int], places: Places, values: Values, n: int
) -> _Search:
    """Enqueue the kernel that looks for a matrix's entries at n places, and assigns values to those found; return its results."""
    data, indices, indptr = parts
    keys, numbers = _enqueue_keys(chain, kernels["keys"], indptr.dtype, shape, places, values, n)
    is_new, belongs, counts = (chain.scratch(n + 1, dtype) for dtype in (np.uint8, indptr.dtype, indptr.dtype))
    layout = np.uint64(_count_columns(places, values)), np.int64(values.by_row), np.int64(values.by_column), np.int64(shape[1])
    arrays = keys, numbers, values.array, indptr, indices, data, is_new, belongs
    locate = kernels["locate"]
    chain.launch(locate, -(-n // locate.parameters.work_group), np.uint64(n), *layout, *arrays)
    return _Search(n, layout, keys, numbers, is_new, belongs, counts)


def _enqueue_insertion(
    chain: Chain, kernels: dict[str, Built], parts: Parts, values: cl_array.Array, search: _Search, n_new: int, new_arrays: Parts
) -> None:
    """Enqueue the insertion of new entries into a sparse matrix; the result's data, indices and indptr are ``new_arrays``."""
    data, indices, indptr = parts
    out_data, out_indices, out_indptr = new_arrays
    of_new = indptr.dtype.type(n_new)
    belongs, keys = chain.scratch(n_new, indptr.dtype), chain.scratch(n_new, np.int64)
    listed = search.keys, search.numbers, values, search.belongs, search.counts
    for phase, n, arguments in (
        ("new", search.n, (*search.layout, *listed, belongs, keys, out_indices, out_data)),
        ("entries", data.size, (of_new, belongs, indices, data, out_indices, out_data)),
        ("rows", indptr.size, (of_new, search.layout[-1], keys, indptr, out_indptr)),
    ):
        chain.launch_spread(kernels[phase], n, *arguments)


def _with_wide_index(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return a matrix's arrays with values assigned to places, in indices of 64 bits, and the number of new entries."""
    wide = with_index(queue, parts, np.dtype(np.int64))
    return _assign(queue, wide, shape, places.widen(queue), values, inserts=inserts)


def _count_columns(places: Places, values: Values) -> int:
    """Return the number of columns of the matrix of places or, if only listed places get values, the number of listed places."""
    return places.shape[1] if values.listed is None else values.listed.size


def _enqueue_keys(
    chain: Chain, write_keys: Built, index: np.dtype[Any], shape: tuple[int, int], places: Places, values: Values, n: int
) -> tuple[cl_array.Array, cl_array.Array]:
    """Enqueue the sort of places by key, row times A's columns plus column; return the sorted keys, and the places' numbers."""
    keys, numbers = chain.scratch(n, np.int64), chain.scratch(n, index)
    # Where all places get a value, any array stands for the kernel's argument that would list the places with values.
    listed = keys if values.listed is None else values.listed
    axes = (*places.row.arguments(numbers), *places.column.arguments(numbers))
    layout = np.uint64(places.shape[1]), *axes, np.uint32(values.listed is not None), listed, np.int64(shape[1])
    chain.launch_spread(write_keys, n, *layout, keys, numbers)
    if places.ascend:
        return keys, numbers
    ordered, order = chain.scratch(n, np.int64), chain.scratch(n, index)
    bits = max((shape[0] * shape[1] - 1).bit_length(), 1)
    enqueue_radix_sort(chain, keys, ordered, numbers, order, n, (0, bits), overwrites=True)
    return ordered, order
