"""Sparse arrays from diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._arrays.functions.operands import queue_of
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue
from clsparse_py._formats.canonical import without_zeros
from clsparse_py._ground.errors import warn
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.placement import shape_of, value_dtype_on
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.diagonals import Diagonal, from_diagonals
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import from_host

__all__ = ["diags_array", "eye_array"]

#: Default of the argument ``dtype`` of `diags_array`, as None has a meaning of its own.
_NOT_GIVEN: Any = object()


def eye_array(
    m: int,
    n: int | None = None,
    *,
    k: int = 0,
    dtype: Any = float,
    format: str | None = None,
    queue: cl.CommandQueue | None = None,
) -> csr_array | Any:
    """Return a sparse array with ones on its k-th diagonal and nothing elsewhere.

    Parameters
    ----------
    m : int
        Rows.
    n : int, optional
        Columns; by default as many.
    k : int
        The diagonal: above the main one if positive, below it if negative.
    dtype : dtype
        Of the values.
    format : str, optional
        Of the result; "csr" by default, as SciPy's "dia" lives on the host.
    queue : pyopencl.CommandQueue, optional
        Where it is made; `clsparse_py.default_queue` by default.

    Returns
    -------
    csr_array, or as ``format`` says
        Of shape (m, n).

    Raises
    ------
    ValueError
        The diagonal lies outside.
    TypeError
        ``dtype`` needs double precision, which the device lacks.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.eye_array(2, 3, k=1, dtype=int).toarray()
    array([[0, 1, 0],
           [0, 0, 1]])
    """
    columns = int(m) if n is None else int(n)
    return diags_array([np.ones(1, dtype)], offsets=[k], shape=(int(m), columns), format=format, dtype=dtype, queue=queue)


@door(on_scipy(scipy.sparse.diags_array))
def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: Any = _NOT_GIVEN,
    queue: cl.CommandQueue | None = None,
) -> csr_array | Any:
    """Return a sparse array with the given diagonals.

    Parameters
    ----------
    diagonals : sequence of array_like
        The values of each diagonal, NumPy's or `pyopencl.array.Array`, from its first place on; one value for a whole diagonal.
    offsets : int or sequence of int
        Which diagonals they are, no two alike: above the main one if positive, below it if negative.
    shape : tuple of int, optional
        By default square, as large as the first diagonal asks for.
    format : str, optional
        Of the result; "csr" by default, as SciPy's "dia" lives on the host. Zeros on the diagonals are not stored.
    dtype : dtype, optional
        Of the values. None: the one that holds all. By default that too, but float64 for integers, as in SciPy until 1.19.
    queue : pyopencl.CommandQueue, optional
        Where it is made; by default the queue of a diagonal on a device, else `clsparse_py.default_queue`.

    Returns
    -------
    csr_array, or as ``format`` says

    Raises
    ------
    ValueError
        There are not as many offsets as diagonals, two are alike, one lies outside, or a diagonal has too few values.
    TypeError
        The dtype needs double precision, which the device lacks.

    Warns
    -----
    FutureWarning
        Integers become float64, as no dtype was given.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.diags_array([1, 2, 3], offsets=[-1, 0, 1], shape=(3, 3), dtype=int).toarray()
    array([[2, 3, 0],
           [1, 2, 3],
           [0, 1, 2]])
    """
    values, offset_list = _pair_with_offsets(diagonals, offsets)
    queue = queue or (queue_of(values) if values else default_queue())
    if shape is None:
        m = len(values[0]) + abs(offset_list[0])
        shape = m, m
    rows, columns = (int(length) for length in shape)
    lengths = [
        _length_of(j, diagonal, offset, rows, columns)
        for j, (diagonal, offset) in enumerate(zip(values, offset_list, strict=True))
    ]
    if len(set(offset_list)) < len(offset_list):
        raise ValueError(f"offset array contains duplicate values: {offset_list}")
    shape_of((rows, columns))
    value = value_dtype_on(queue, _common_dtype(values, dtype), None if dtype is _NOT_GIVEN else dtype)
    table, joined = _join_diagonals(queue, values, offset_list, lengths, value)
    index = index_for(max(rows, columns, sum(lengths)))
    parts = from_diagonals(queue, table, joined, rows, index)
    data, indices, indptr = parts if _is_full(values) else without_zeros(queue, parts)
    return csr_array.assembled(Structure.canonical(queue, (rows, columns), indices, indptr), data).asformat(format)


def _pair_with_offsets(diagonals: Any, offsets: Any) -> tuple[list[Any], list[int]]:
    """Return `diags_array`'s diagonals as one-dimensional arrays, and their offsets; raise an error if their numbers differ."""
    if np.ndim(offsets) == 0:
        # If `offsets` is a number, `diagonals` holds the values of one diagonal.
        if not isinstance(diagonals, cl_array.Array) and len(diagonals) and np.ndim(diagonals[0]):
            raise ValueError(
                "Different number of diagonals and offsets: offsets is one number, diagonals is a sequence of arrays"
            )
        arrays = [diagonals]
    else:
        arrays = list(diagonals)
    values = [diagonal if isinstance(diagonal, cl_array.Array) else np.atleast_1d(diagonal) for diagonal in arrays]
    offset_list = [int(offset) for offset in np.atleast_1d(offsets)]
    if len(values) != len(offset_list):
        raise ValueError(f"Different number of diagonals and offsets: {len(values)} and {len(offset_list)}")
    if not values:
        raise IndexError("diagonals: there are none")
    for j, diagonal in enumerate(values):
        if diagonal.ndim != 1:
            raise ValueError(f"diagonals[{j}]: must have one dimension, has shape {diagonal.shape}")
    return values, offset_list


def _length_of(j: int, values: Any, offset: int, rows: int, columns: int) -> int:
    """Return a diagonal's length; raise a ValueError if the diagonal lies outside, or ``values`` are neither one nor enough."""
    length = min(rows + offset, columns - offset, rows, columns)
    if length < 0:
        raise ValueError(f"Offset {offset} (index {j}) out of bounds for shape ({rows}, {columns})")
    if len(values) != 1 and len(values) < length:
        agree = f"does not agree with array size ({rows}, {columns})"
        raise ValueError(
            f"Diagonal length (index {j}: {len(values)} at offset {offset}) {agree}, which has {length} places there"
        )
    return length


def _common_dtype(values: list[Any], dtype: Any) -> np.dtype[Any]:
    """Return the diagonals' common dtype; if no ``dtype`` is given, by today's rule of SciPy, warning if 1.19's differs."""
    future: np.dtype[Any] = np.result_type(*(diagonal.dtype for diagonal in values))
    if dtype is not _NOT_GIVEN:
        return future
    common = np.dtype(np.common_type(*(np.empty(0, diagonal.dtype) for diagonal in values)))
    if common != future:
        said = f"diagonals: values of {future} become {common}, as no dtype is given (output has been cast to {common})"
        warn(f"{said}; from SciPy 1.19 on they stay. Use dtype=None for that, or name the dtype", FutureWarning)
    return common


def _join_diagonals(
    queue: cl.CommandQueue, values: list[Any], offset_list: list[int], lengths: list[int], dtype: np.dtype[Any]
) -> tuple[list[Diagonal], cl_array.Array]:
    """Return descriptions of the diagonals by ascending offset, and the values of all diagonals in one device array."""
    trimmed = [diagonal if len(diagonal) == 1 else diagonal[:length] for diagonal, length in zip(values, lengths, strict=True)]
    begins = np.cumsum([0, *(len(diagonal) for diagonal in trimmed)])
    table = [
        Diagonal(offset, max(-offset, 0), length, int(begin), int(len(diagonal) > 1))
        for diagonal, offset, length, begin in zip(trimmed, offset_list, lengths, begins[:-1], strict=True)
    ]
    if not any(isinstance(diagonal, cl_array.Array) for diagonal in trimmed):
        joined = from_host(queue, np.concatenate(trimmed, dtype=dtype, casting="unsafe"), copy=False)
    else:
        joined = allocate(queue, "values of diagonals", int(begins[-1]), dtype)
        for diagonal, begin in zip(trimmed, begins[:-1], strict=True):
            on_device = diagonal if isinstance(diagonal, cl_array.Array) else from_host(queue, diagonal.astype(dtype), copy=True)
            part = convert(queue, "diagonals", on_device, dtype) if len(diagonal) else on_device
            chain = Chain(queue, part, writes=(joined,))
            chain.copy(joined, part, len(diagonal), int(begin))
            chain.finish(joined)
    return sorted(table), joined


def _is_full(values: list[Any]) -> bool:
    """Return whether no diagonal holds a zero; False also if a diagonal's values are on the device, as they are not read."""
    return all(isinstance(diagonal, np.ndarray) and bool(diagonal.all()) for diagonal in values)
