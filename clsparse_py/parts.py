"""The first argument of `csr_array`, of each kind that it takes, as data, indices and indptr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py.arithmetic import OPENCL_TYPES, unsupported
from clsparse_py.canonical import from_coordinates
from clsparse_py.matrix import Matrix, Structure
from clsparse_py.placement import Parts, index_vector, place, queue_for, shape_of, value_dtype, value_dtype_on, vector
from clsparse_py.structure import Facts

__all__ = ["made_of"]


def made_of(
    arg1: Any,
    shape: Any = None,
    dtype: Any = None,
    queue: cl.CommandQueue | None = None,
    *,
    copy: bool = False,
    check: bool = True,
) -> tuple[Structure, cl_array.Array]:
    """Return the structure and the values of the matrix that `csr_array` is asked to make; the structure is still to be checked.

    Parameters
    ----------
    arg1, shape, dtype, copy, queue, check
        As for `csr_array`.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is of no kind that is taken, or its parts do not go together; the message names the part.
    """
    shape = None if shape is None else shape_of(shape)
    facts: Facts | None = None
    if isinstance(arg1, Matrix):
        parts, own_shape = (arg1.data, arg1.indices, arg1.indptr), arg1.shape
    else:
        parts, own_shape, facts = _parts_of(arg1, shape, dtype, queue)
    if shape not in (None, own_shape):
        raise ValueError(f"shape: {shape} differs from that of arg1, {own_shape}")
    queue = queue_for(parts, queue)
    # Arrays that were made here, with facts, are private already: they are not copied.
    data, indices, indptr = place(queue, parts, own_shape, dtype, copy=copy and facts is None)
    if not isinstance(arg1, Matrix):
        return Structure(queue, own_shape, indices, indptr, facts, vouched=not check), data
    # SpMV's plan is chosen for one dtype of values: a matrix of another dtype does not share the structure, which keeps the plan.
    shared = indices is arg1.indices and indptr is arg1.indptr and queue == arg1.queue and data.dtype == arg1.dtype
    return arg1.structure if shared else arg1.structure.copied(queue, indices, indptr), data


def _parts_of(
    arg1: Any, shape: tuple[int, int] | None, dtype: Any, queue: cl.CommandQueue | None
) -> tuple[Parts, tuple[int, int], Facts | None]:
    """Return ``(data, indices, indptr)``, on host or device, the shape, and what is known of the structure.

    Parameters
    ----------
    arg1, shape, dtype, queue
        As for `csr_array`; ``arg1`` is not a `csr_array` itself.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is of no kind that is taken; the message names the part.
    """
    if scipy.sparse.issparse(arg1):
        return *_from_scipy(arg1), None
    if not isinstance(arg1, tuple):
        return *_from_scipy(_from_dense(arg1)), None
    if arg1 and all(isinstance(each, (int, np.integer)) for each in arg1):
        return *_empty(shape_of(arg1), dtype), None
    if len(arg1) == 2 and isinstance(arg1[1], (tuple, list)) and len(arg1[1]) == 2:
        data, (row, col) = arg1
        return _from_coordinates(data, row, col, shape, dtype, queue)
    return *_from_tuple(arg1, shape), None


def _empty(shape: tuple[int, int], dtype: Any) -> tuple[Parts, tuple[int, int]]:
    """Return the parts of a matrix without entries; of float64 if no dtype is given, as in SciPy."""
    index = np.int64 if max(shape) > np.iinfo(np.int32).max else np.int32
    return (np.zeros(0, dtype), np.zeros(0, index), np.zeros(shape[0] + 1, index)), shape


def _from_scipy(matrix: Any) -> tuple[Parts, tuple[int, int]]:
    if matrix.ndim != 2:
        raise ValueError(f"arg1: must have two dimensions, has {matrix.ndim}")
    rows = matrix.tocsr()
    return (rows.data, rows.indices, rows.indptr), (int(rows.shape[0]), int(rows.shape[1]))


def _from_dense(values: Any) -> scipy.sparse.csr_array:
    if isinstance(values, cl_array.Array):
        values = values.get()
    if values is None or isinstance(values, (str, bytes)):
        raise TypeError(f"arg1: must be a sparse matrix, a dense array or a tuple of arrays, is {type(values).__name__}")
    dense = np.asarray(values)
    if dense.dtype.name not in OPENCL_TYPES:
        raise unsupported("arg1", dense.dtype)
    if dense.ndim != 2:
        raise ValueError(f"arg1: a dense array must have two dimensions, has {dense.ndim} (shape {dense.shape})")
    return scipy.sparse.csr_array(dense)


def _from_tuple(arg1: tuple[Any, ...], shape: tuple[int, int] | None) -> tuple[Parts, tuple[int, int]]:
    """Return the three arrays and the shape of a tuple of three parts."""
    if len(arg1) != 3:
        raise ValueError(f"arg1: a tuple must be (data, indices, indptr) or (data, (row, col)) or a shape, has {len(arg1)} parts")
    data, indices, indptr = vector("data", arg1[0]), index_vector("indices", arg1[1]), index_vector("indptr", arg1[2])
    value_dtype("data", data.dtype)
    if not indptr.size:
        raise ValueError("indptr: must have rows + 1 entries, has none")
    if shape is None:
        if not indices.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it")
        largest = indices.get().max() if isinstance(indices, cl_array.Array) else indices.max()
        shape = indptr.size - 1, max(int(largest) + 1, 0)
    if isinstance(indices, np.ndarray) and isinstance(indptr, np.ndarray):
        # As SciPy does with arrays from outside: 32 bits if all fits. Done here, as a `csr_array` keeps its own index type.
        index = _narrowest(indices, indptr, shape)
        indices, indptr = indices.astype(index, copy=False), indptr.astype(index, copy=False)
    return (data, indices, indptr), shape


def _from_coordinates(
    data: Any, row: Any, col: Any, shape: tuple[int, int] | None, dtype: Any, queue: cl.CommandQueue | None
) -> tuple[Parts, tuple[int, int], Facts]:
    """Return the parts and the shape of a matrix given by coordinates, duplicates summed, and the facts of its structure."""
    data, row, col = vector("data", data), index_vector("row", row), index_vector("col", col)
    value_dtype("data", data.dtype)
    if shape is None and not data.size:
        raise ValueError("shape: cannot be told from arrays without entries; give it")
    for name, part in (("row", row), ("col", col)):
        if part.size != data.size:
            raise ValueError(f"{name}: must have as many entries as data, has {part.size}, not {data.size}")
    queue = queue_for((data, row, col), queue)
    return from_coordinates(queue, data, row, col, shape, value_dtype_on(queue, data.dtype, dtype))


def _narrowest(indices: np.ndarray[Any, Any], indptr: np.ndarray[Any, Any], shape: tuple[int, int]) -> type:
    """Return int32 if the dimensions and all indices fit, else int64."""
    limit = np.iinfo(np.int32)
    for part in (indices, indptr):
        if part.dtype != np.int32 and part.size and (part.max() > limit.max or part.min() < limit.min):
            return np.int64
    return np.int64 if max(shape) > limit.max else np.int32
