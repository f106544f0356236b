"""Sums, means and diagonals of sparse matrices, and counts of their entries, as SciPy's arrays have them."""

from __future__ import annotations

import abc
import functools
import math
import operator
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._formats.canonical import without_zeros
from clsparse_py._ground.errors import DtypeError
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.annotations import of_axis
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.placement import value_dtype
from clsparse_py._matrix.structure import WithValues
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.pool import arena_of
from clsparse_py._operations.elementwise.union import canonical_parts
from clsparse_py._operations.elementwise.values import scale
from clsparse_py._operations.reductions.axes import axis_of, longest_row
from clsparse_py._precision.arithmetic import name_of, needs_fp64
from clsparse_py._primitives.segmented import enqueue_segmented_sum
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import contexts_match, copy_to_device, copy_to_host

__all__ = ["Diagonal", "Sums", "diagonal_on_device"]

#: The dtypes in which long sums of values of single precision are added up, by the names of the values' dtypes.
_ACCUMULATORS = {"float32": np.dtype(np.float64), "complex64": np.dtype(np.complex128)}


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds of reductions."""

    operation = "reductions"

    #: Most entries of a sum that single precision adds up; longer sums take double precision, if the device has it: in single
    #: precision a sum of 2 million equal values loses three of seven digits.
    max_in_single: int = number(1024, "entries")


@kernel
@dataclass(frozen=True)
class Diagonal(WithValues):
    """Parameters of ``templates/reductions/diagonal.mako``."""

    template = "reductions/diagonal"


class Sums(Matrix):
    """Base of matrices with sums, means, diagonals and counts of entries.

    Results are NumPy's, for which the host waits, unless ``out`` or ``like`` says that they stay on the device.
    """

    @abc.abstractmethod
    def _transposed(self) -> Matrix:
        """Return the transposed sparse matrix, which this sparse matrix keeps."""

    @of_axis
    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, *, like: Any = None) -> Any:
        """Return the sum of all entries, or of each column's (axis 0) or row's (axis 1).

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}
            None: over all entries; 0: over each column, by way of the transposed matrix, which is kept; 1: over each row.
        dtype : dtype, optional
            The dtype of the result. By default that of the values, or int64 or uint64 for booleans and shorter integers. As in
            SciPy, values are converted before all of them are summed, and sums of rows or columns after they were.
        out : numpy.ndarray or pyopencl.array.Array, optional
            Where the result goes, converted from ``dtype`` to its own. Of shape (n,) for axis 0, (m,) for axis 1.
        like : pyopencl.array.Array or pyopencl.CommandQueue, optional
            Says that the result is a new device array, on A's queue, without a wait; as NumPy's argument of that name.

        Returns
        -------
        scalar or array
            ``out`` if it is given, a device array of ``like``; else, without an axis, a NumPy scalar.

        Raises
        ------
        ValueError, TypeError
            ``axis`` is no axis, ``out`` has another shape, a dtype is not supported, or ``like`` is neither array nor queue.
        """
        along, sum_dtype = axis_of(axis), _numpy_sum_dtype(self.dtype)
        if along is None:
            # As in SciPy, duplicate entries are added up first, in the dtype of the matrix's values.
            data, _, indptr = canonical_parts(self, self.dtype)
            ends = copy_to_device(self.queue, "segments", np.array([0, data.size], indptr.dtype))
            # As in NumPy, values are converted to the dtype of the sum before they are added up.
            inner = _check_dtype(self, sum_dtype if dtype is None else dtype)
            data = convert(self.queue, "data", data, inner) if inner.kind == "b" else data
            return _Destination(self, (), out, like).sum_segments(ends, data, inner, dtype)
        A = self if along == 1 else self._transposed()
        A.require_valid()
        destination = _Destination(self, (A.shape[0],), out, like)
        return destination.sum_segments(A.indptr, A.data, _check_dtype(self, sum_dtype), dtype, longest_row(A))

    @of_axis
    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, *, like: Any = None) -> Any:
        """Return the mean of the values at all places, stored or not, or at the places of each column or row.

        Parameters
        ----------
        axis, out, like
            As for `sum`.
        dtype : dtype, optional
            The dtype of the result; by default float64 for booleans and integers, else that of the values.

        Raises
        ------
        TypeError
            float64 is needed, and the device lacks double precision: use ``dtype=np.float32``.
        """
        along = axis_of(axis)
        n = math.prod(self.shape) if along is None else self.shape[along]
        inner = _mean_dtype(self, dtype)
        self.require_valid()
        shares = self.with_values(scale(self.queue, self.data, inner.type(1 / n), inner))
        means = shares.sum(axis, out=out, like=like)
        return means if dtype is None or out is not None else _cast(self.queue, means, np.dtype(dtype))

    def diagonal(self, k: int = 0) -> np.ndarray[Any, Any]:
        """Return the values on the matrix's k-th diagonal, where duplicates are added up.

        Parameters
        ----------
        k : int
            Entry i of the diagonal is in row i and column i + k or, if k is negative, in row i - k and column i.
        """
        k = operator.index(k)
        rows, columns = self.shape
        n = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        sorted_rows = self.has_sorted_indices
        if not n:
            return np.empty(0, self.dtype)
        parts = self.parts
        return copy_to_host(_read_diagonal(self.queue, parts, (n, max(-k, 0), max(k, 0)), is_sorted=sorted_rows), self.queue)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the values on a diagonal of the matrix; ``offset`` is its number, as ``k`` of `diagonal`."""
        return self.diagonal(offset).sum()

    def getnnz(self, axis: Any = None) -> Any:
        """Return the number of stored entries, of the matrix or of each column (axis 0) or row (axis 1).

        Raises
        ------
        ValueError
            ``axis`` is none of None, 0, 1, -1, -2.
        """
        along = axis_of(axis)
        if along is None:
            return self.nnz
        A = self if along == 1 else self._transposed()
        A.require_valid()
        lengths = np.diff(copy_to_host(A.indptr, self.queue))
        return lengths if along == 1 else lengths.astype(np.int64)

    def count_nonzero(self, axis: Any = None) -> Any:
        """Return the number of entries that are not 0 once duplicates are added up, by ``axis`` as `getnnz`; A is not changed."""
        along = axis_of(axis)
        parts = canonical_parts(self, self.dtype)
        _, indices, indptr = without_zeros(self.queue, parts)
        if along is None:
            return np.int64(indices.size)
        if along == 0:
            return np.bincount(copy_to_host(indices, self.queue), minlength=self.shape[1])
        lengths = np.diff(copy_to_host(indptr, self.queue))
        return lengths if indices is parts[1] else lengths.astype(np.int64)

    def nonzero(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the rows and the columns of stored entries that are not 0, as NumPy arrays."""
        self.require_valid()
        data, indices, indptr = (copy_to_host(part, self.queue) for part in self.parts)
        is_nonzero = data != 0
        return np.repeat(np.arange(self.shape[0], dtype=indices.dtype), np.diff(indptr))[is_nonzero], indices[is_nonzero]


@functools.lru_cache(maxsize=32)
def _numpy_sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of NumPy's sum of an array of a dtype."""
    sum_dtype: np.dtype[Any] = np.zeros(0, dtype).sum().dtype
    return sum_dtype


def _check_dtype(A: Matrix, dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as a NumPy dtype that the matrix's device can compute in.

    Raises
    ------
    TypeError
        The dtype is not supported, or needs double precision, which the device lacks.
    """
    result_dtype = value_dtype("dtype", dtype)
    if needs_fp64(result_dtype) and not describe(arena_of(A.queue).pool.device).fp64:
        raise DtypeError(f"dtype: {result_dtype} needs double precision, which {A.queue.device.name} lacks; use dtype=np.float32")
    return result_dtype


def _mean_dtype(A: Matrix, dtype: Any) -> np.dtype[Any]:
    """Return the dtype a mean is computed in: A's or, for integers, float64; float32 if asked for on devices without float64."""
    is_single = dtype is not None and value_dtype("dtype", dtype).name in ("float32", "complex64")
    if A.dtype.kind not in "biu":
        return _check_dtype(A, A.dtype)
    return _check_dtype(A, np.float32 if is_single and not describe(A.queue.device).fp64 else np.float64)


def _enqueue_sums(
    queue: cl.CommandQueue,
    ends: cl_array.Array,
    data: cl_array.Array,
    target: cl_array.Array,
    longest: int | None,
    is_given: bool,
) -> cl_array.Array:
    """Enqueue the sums of the segments that ``ends`` bounds; return the sums: ``target`` or, if that is boolean, a new array."""
    n = ends.size - 1
    sums = allocate(queue, "sums", n, np.int64) if target.dtype.kind == "b" else target
    if n:
        chain = Chain(queue, ends, data, writes=(target,) if is_given else ())
        enqueue_segmented_sum(chain, ends, data, sums, n, data.size, longest=longest)
        chain.finish(sums)
    return sums if sums is target else convert(queue, "sums", sums, target.dtype)


def _cast(queue: cl.CommandQueue, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the means of a matrix (a NumPy array or scalar, or a device array) cast to a dtype."""
    if not isinstance(value, cl_array.Array):
        return value.astype(dtype, copy=False)
    flat = value.reshape(value.size)  # type: ignore[no-untyped-call] # PyOpenCL's
    converted = convert(queue, "the result", flat, dtype)
    return converted if value.shape else converted[0]


class _Destination:
    """The destination of sums: NumPy, ``out``, or a new device array if there is a ``like``.

    Raises
    ------
    ValueError, TypeError
        ``out`` has another shape, is in another context, or is no array; ``like`` is neither a device array nor a queue.
    """

    def __init__(self, A: Matrix, shape: tuple[int, ...], out: Any, like: Any) -> None:
        self._queue, self._shape, self._out, self._like = A.queue, shape, out, like
        if like is not None and not isinstance(like, (cl_array.Array, cl.CommandQueue)):
            raise TypeError(f"like: must be a pyopencl.array.Array or a pyopencl.CommandQueue, is {type(like).__name__}")
        if out is None:
            return
        if not isinstance(out, (np.ndarray, cl_array.Array)):
            raise TypeError(f"out: must be a numpy.ndarray or a pyopencl.array.Array, is {type(out).__name__}")
        if out.shape != shape:
            raise ValueError(
                f"out: must have shape {shape}, has {out.shape} (output parameter of wrong dimensions: out does not match shape)"
            )
        if isinstance(out, cl_array.Array):
            if not contexts_match(out, A.context):
                raise ValueError("out: lives in another context than A")
            if out.offset or (out.size and out.strides != (out.dtype.itemsize,) * len(shape)):
                raise ValueError("out: must be contiguous and begin its buffer")

    def sum_segments(
        self, ends: cl_array.Array, data: cl_array.Array, inner: np.dtype[Any], dtype: Any, longest: int | None = None
    ) -> Any:
        """Return the sums of segments of values where the caller wants them: on the host, in ``out`` or in a new device array.

        Parameters
        ----------
        ends : pyopencl.array.Array
            The first entry of each segment, and the number of entries.
        data : pyopencl.array.Array
            The values.
        inner : numpy.dtype
            The dtype of NumPy's sums.
        dtype : dtype or None
            The dtype of the result, if it is not ``inner``.
        longest : int, optional
            Entries of the longest segment.
        """
        out, result_dtype = self._out, inner if dtype is None else np.dtype(dtype)
        accumulator = inner
        device = describe(self._queue.device)
        if (data.size if longest is None else longest) > Thresholds.of(device).max_in_single and device.fp64:
            accumulator = _ACCUMULATORS.get(inner.name, inner)
        is_given = isinstance(out, cl_array.Array) and out.dtype == accumulator == result_dtype
        target = out if is_given else allocate(self._queue, "sums", ends.size - 1, accumulator)
        sums = _enqueue_sums(self._queue, ends, data, target, longest, is_given)
        if isinstance(out, np.ndarray) or (out is None and self._like is None):
            host_sums = copy_to_host(sums, self._queue).reshape(self._shape)[()]
            host_sums = host_sums.astype(inner, copy=False).astype(result_dtype, copy=False)
            if out is None:
                return host_sums
            out[...] = host_sums
        else:
            for step in (inner, result_dtype):
                sums = sums if sums.dtype == step else convert(self._queue, "sums", sums, step)
        if out is None:
            return sums if self._shape else sums[0]
        if isinstance(out, cl_array.Array) and sums is not out:
            values = sums if out.dtype == sums.dtype else convert(self._queue, "out", sums, np.dtype(out.dtype))
            chain = Chain(self._queue, values, out, writes=(out,))
            chain.copy(out, values, out.size)
            chain.finish(out)
        return out


def diagonal_on_device(A: Matrix) -> cl_array.Array:
    """Return the values on the main diagonal of a matrix as a device array; duplicates are added up."""
    is_sorted = A.has_sorted_indices
    return _read_diagonal(A.queue, A.parts, (min(A.shape), 0, 0), is_sorted=is_sorted)


def _read_diagonal(
    queue: cl.CommandQueue, parts: tuple[cl_array.Array, ...], places: tuple[int, int, int], *, is_sorted: bool
) -> cl_array.Array:
    """Return the values on a matrix's diagonal; ``places``: the number of values, and the row and the column of the first."""
    data, indices, indptr = parts
    chain, index = Chain(queue, *parts), indptr.dtype.type
    n, row, column = places
    group = 1 if chain.device.lanes_are_loops else min(128, chain.device.max_work_group)
    built, _ = chain.build(Diagonal(group, name_of(indptr.dtype), name_of(data.dtype)))
    diagonal = allocate(queue, "diagonal", n, data.dtype, data.allocator)
    groups, sizes = spread(chain.device, n, group, 64)
    chain.launch(built, groups, *sizes, index(row), index(column), np.uint32(is_sorted), indptr, indices, data, diagonal)
    chain.finish(diagonal)
    return diagonal
