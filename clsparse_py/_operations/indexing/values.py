"""Values assigned by ``A[...] = values``: checked, on the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.base import on_device
from clsparse_py._formats.coordinates import regroup, rows_of
from clsparse_py._ground.errors import warn
from clsparse_py._matrix.matrix import Matrix, Structure
from clsparse_py._operations.elementwise.union import canonical_parts
from clsparse_py._operations.indexing.assignment import Values
from clsparse_py._operations.indexing.columns import columns_at
from clsparse_py._operations.indexing.key import Listed
from clsparse_py._operations.indexing.masks import contiguous
from clsparse_py._operations.indexing.rows import rows_at
from clsparse_py._run.transfer import contexts_match, from_host

__all__ = ["dense_values", "sparse_values"]


def dense_values(queue: cl.CommandQueue, values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Values | None:
    """Return the values that a scalar or a dense array gives places of some shape; None if there are none.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : scalar, array_like or pyopencl.array.Array
    dtype : dtype
        Of the matrix, to which NumPy converts values of the host.
    shape : tuple of int
        Of the places; empty for a single one.

    Raises
    ------
    ValueError, TypeError, OverflowError
        The values cannot be broadcast to the shape, live in another context, or are none that the dtype holds.
    """
    if not isinstance(values, cl_array.Array):
        values = np.asarray(values, dtype)
    values_shape = tuple(values.shape)
    if not shape and values.size != 1:
        raise ValueError(f"values: a single place takes one value, got {values.size} (Trying to assign a sequence to an item)")
    n_columns = shape[-1] if shape else 1
    if _squeeze(values_shape) == _squeeze(shape):
        steps = (n_columns, 1)
    else:
        if len(values_shape) > len(shape) or _broadcast(values_shape, shape) != shape:
            raise ValueError(
                f"values: an array of shape {values_shape} could not be broadcast together with the places, of shape {shape}"
            )
        rows, columns = (1, 1, *values_shape)[-2:]
        steps = (columns if rows > 1 else 0, int(columns > 1))
    if not math.prod(shape) or not values.size:
        return None
    return Values(_on_device(queue, values, dtype), *steps)


def _squeeze(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the axes of length 1."""
    return tuple(length for length in shape if length != 1)


def _broadcast(other: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that two have together, None if there is none."""
    try:
        return np.broadcast_shapes(other, shape)
    except ValueError:
        return None


def _on_device(queue: cl.CommandQueue, values: Any, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return values in C order as a device array of a dtype, which begins its buffer.

    Raises
    ------
    ValueError
        They live in another context.
    """
    if isinstance(values, np.ndarray):
        return from_host(queue, np.ascontiguousarray(values.ravel()), copy=True)
    if not contexts_match(values, queue.context):
        raise ValueError("values: live in another context than the matrix")
    if values.dtype.kind == "c" and dtype.kind not in "cb":
        warn("values: their imaginary parts are left out", np.exceptions.ComplexWarning)
    return contiguous(queue, "values", values, dtype)


def sparse_values(queue: cl.CommandQueue, matrix: Any, dtype: np.dtype[Any], shape: tuple[int, int]) -> Values | None:
    """Return the values that the entries of a sparse array, ours or SciPy's, give places of some shape; None if there are none.

    Duplicates are added up. A row or a column is broadcast.

    Raises
    ------
    ValueError
        Its shape does not fit that of the places, or it lives in another context.
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
    return Values(_on_device(queue, entries.data, dtype), 0, 1, numbers)
