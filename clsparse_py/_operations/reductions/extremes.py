"""The largest and smallest values of sparse matrices, and the places of these values, as SciPy's arrays have them."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._formats.canonical import with_marked
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.annotations import of_extreme
from clsparse_py._matrix.matrix import Matrix, Parts
from clsparse_py._matrix.structure import OfStructure, WithValues
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.union import canonical_parts
from clsparse_py._operations.reductions.axes import axis_of, longest_row
from clsparse_py._precision.arithmetic import Arithmetic, extreme, name_of
from clsparse_py._primitives.segmented import enqueue_segmented_sum
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["ExtremeColumns", "ExtremeOfAll", "ExtremePlaces", "Extremes", "RowExtremes"]

#: Most work-items of a work-group in the kernels that find largest and smallest values.
_WORK_GROUP = 128


@dataclass(frozen=True)
class _OfExtremes(WithValues):
    """Base of the parameter records of kernels that read extreme values, the largest or smallest ones.

    Attributes
    ----------
    operation : str
        The reduction: "maximum", "minimum", "fmax" or "fmin".
    """

    operation: str

    @classmethod
    @override
    def usual(cls, device: Device, arithmetic: Arithmetic) -> dict[str, Any]:
        """Return the fields that examples of these kernels' parameters share: the operation "maximum", and booleans as bytes."""
        dtype = "uint8" if arithmetic.a == "bool" else arithmetic.a
        return {**super().usual(device, arithmetic), "dtype": dtype, "operation": "maximum"}


@kernel
@dataclass(frozen=True)
class RowExtremes(_OfExtremes):
    """Parameters of ``templates/reductions/row_extremes.mako``."""

    template = "reductions/row_extremes"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: types of indices and values, and the maximum or minimum of two values."""
        expression = extreme(self.operation, np.dtype(self.dtype))
        return f"{super().prelude}\nV extreme(const V a, const V b) {{ return {expression}; }}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, and ``is_kept``, the condition in OpenCL C that a value is not zero."""
        is_complex = np.dtype(self.dtype).kind == "c"
        return {**super().arguments(), "is_kept": "value.x != 0 || value.y != 0" if is_complex else "value != 0"}


@kernel
@dataclass(frozen=True)
class ExtremeColumns(_OfExtremes):
    """Parameters of ``templates/reductions/extreme_columns.mako``.

    Attributes
    ----------
    of_all : bool
        Whether entries are compared with the extreme value of all rows, not of their own row.
    """

    template = "reductions/extreme_columns"
    variants: ClassVar[Variants] = {"": {"of_all": False}, "of_all": {"of_all": True}}

    of_all: bool

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the types of indices and values, and the index type's largest value."""
        return f"{super().prelude}\n#define I_MAX {'LONG_MAX' if self.index == 'int64' else 'INT_MAX'}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, and ``same``, the condition in OpenCL C that values are equal or both NaN."""
        kind = np.dtype(self.dtype).kind
        # A value equals the extreme (largest or smallest) value also if both are NaN.
        equality = {"c": "(all(a == b) || (any(a != a) && any(b != b)))", "f": "(a == b || (a != a && b != b))"}
        return {**super().arguments(), "same": equality.get(kind, "a == b")}


@kernel
@dataclass(frozen=True)
class ExtremePlaces(_OfExtremes):
    """Parameters of ``templates/reductions/extreme_places.mako``."""

    template = "reductions/extreme_places"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, and OpenCL conditions: a row's maximum is above (minimum below) 0; it is 0."""
        sign = ">" if self.operation == "maximum" else "<"
        if np.dtype(self.dtype).kind == "c":
            terms = {"beyond": f"(a.x {sign} b.x || (a.x == b.x && a.y {sign} b.y))", "is_zero": "all(a == b)"}
        else:
            terms = {"beyond": f"a {sign} b", "is_zero": "a == b"}
        return {**super().arguments(), **terms}


@kernel
@dataclass(frozen=True)
class ExtremeOfAll(OfStructure):
    """Parameters of ``templates/reductions/extreme_of_all.mako``."""

    template = "reductions/extreme_of_all"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}


class Extremes(Matrix):
    """Base of matrices with methods that find the largest and smallest values.

    Values that are not stored count as 0 unless ``explicit`` is set. Duplicates are added up before.
    """

    @abc.abstractmethod
    def _transposed(self) -> Matrix:
        """Return the transposed sparse matrix, which this sparse matrix keeps."""

    @abc.abstractmethod
    def _vector(self, values: cl_array.Array, places: cl_array.Array, n: int) -> Any:
        """Return a one-dimensional `coo_array` of length n from the values of its entries and the entries' places (indices)."""

    @of_extreme
    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the largest value of the matrix, or of each column (axis 0) or row (axis 1); NaN if a value is NaN.

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}
        out : None
            For NumPy's sake.
        explicit : bool
            Whether only stored values count. Columns or rows without any then have no entry in the result.

        Returns
        -------
        scalar or coo_array
            With an axis a one-dimensional `coo_array`, without entries that are 0.

        Raises
        ------
        ValueError
            ``axis`` is no axis, its length is 0, or ``out`` is given.
        """
        return self._extreme("maximum", axis, out, explicit)

    @of_extreme
    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the smallest value of the matrix, or of each column or row; as for `max`."""
        return self._extreme("minimum", axis, out, explicit)

    @of_extreme
    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the largest value of the matrix, or of each column or row, with NaN left out; as for `max`."""
        return self._extreme("fmax", axis, out, explicit)

    @of_extreme
    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the smallest value of the matrix, or of each column or row, with NaN left out; as for `max`."""
        return self._extreme("fmin", axis, out, explicit)

    def argmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the index of the largest value of the matrix, or of each column (axis 0) or row (axis 1); the first if several.

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}
            None: places are counted row by row.
        out : None
            For NumPy's sake.
        explicit : bool
            Whether only stored values count; without an axis the result is then a position among them.

        Returns
        -------
        int or numpy.ndarray
            With an axis a place for each column or row.

        Raises
        ------
        ValueError
            ``axis`` is no axis, its length is 0, ``out`` is given, or no value is stored of those that count.
        """
        return self._place("maximum", "argmax", axis, out, explicit)

    def argmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the index of the smallest value of the matrix, or of each column or row; as for `argmax`."""
        return self._place("minimum", "argmin", axis, out, explicit)

    def _extreme(self, operation: str, axis: Any, out: Any, explicit: bool) -> Any:
        """Return the largest or smallest value of A or, with an axis, of each row or column; of stored ones if ``explicit``.

        Otherwise values that are not stored count as 0.
        """
        if out is not None:
            raise ValueError("out: must be None, as sparse min and max do not support it")
        along = axis_of(axis)
        if 0 in (self.shape if along is None else (self.shape[along],)):
            raise ValueError(
                f"axis: is of length 0, A is {self.shape[0]} x {self.shape[1]} (zero-size array to reduction operation)"
            )
        if along is None:
            return self._extreme_of_all(operation, explicit)
        A = self if along == 1 else self._transposed()
        parts, marks = _reduce_rows(self.queue, _parts_of(A), operation, 0 if explicit else A.shape[1], longest_row(A))
        values, places, _ = with_marked(self.queue, parts, marks) if A.shape[0] else parts
        return self._vector(_view(values, self.dtype), places, A.shape[0])

    def _extreme_of_all(self, operation: str, explicit: bool) -> Any:
        """Return a matrix's largest or smallest value, zeros that are not stored included unless ``explicit``."""
        data, zero = _parts_of(self)[0], self.dtype.type(0)
        if not data.size:
            return zero
        extreme = copy_to_host(_reduce_all(self.queue, data, operation), self.queue).view(self.dtype)[0]
        return extreme if explicit or data.size == math.prod(self.shape) else getattr(np, operation)(zero, extreme)

    def _place(self, operation: str, name: str, axis: Any, out: Any, explicit: bool) -> Any:
        """Return the first index of the largest or smallest value or, with an axis, of each row's or column's; as `argmax`."""
        if out is not None:
            raise ValueError(f"out: must be None, as sparse {name} does not support it")
        along = axis_of(axis)
        if 0 in (self.shape if along is None else (self.shape[along],)):
            shape = f"{self.shape[0]} x {self.shape[1]}"
            raise ValueError(f"axis: Cannot apply {name} along an axis of length 0 or to an empty matrix, A is {shape}")
        A = self._transposed() if along == 0 else self
        parts = _parts_of(A)
        if along is not None:
            return copy_to_host(_locate_in_rows(self.queue, parts, operation, 0 if explicit else A.shape[1]), self.queue)
        if not parts[0].size:
            if explicit:
                raise ValueError(f"A: Cannot apply {name} to a matrix without stored values when explicit=True (zero matrix)")
            return 0
        value, position, place, missing = _locate_in_all(self.queue, parts, operation, self.shape[1])
        if explicit:
            return position
        zero = value.dtype.type(0)
        beyond = getattr(np, operation)(value, zero) == value != zero
        if beyond or parts[0].size == math.prod(self.shape):
            return place
        return min(missing, position) if value == zero else missing


def _parts_of(A: Matrix) -> Parts:
    """Return data, indices and indptr of a matrix in canonical format, boolean values as bytes."""
    data, indices, indptr = canonical_parts(A, A.dtype)
    return _view(data, np.dtype(np.uint8)) if data.dtype.kind == "b" else data, indices, indptr


def _view(values: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return a view of a device array as another dtype of the same size."""
    view: cl_array.Array = values.view(dtype)  # type: ignore[no-untyped-call] # PyOpenCL's
    return view


def _reduce_all(queue: cl.CommandQueue, data: cl_array.Array, operation: str) -> cl_array.Array:
    """Return the largest or smallest value of a device array that is not empty, as a device array of one value."""
    ends = copy_to_device(queue, "segments", np.array([0, data.size], np.int64))
    chain, extreme = Chain(queue, data, ends), allocate(queue, "the extreme value", 1, data.dtype)
    enqueue_segmented_sum(chain, ends, data, extreme, 1, data.size, operation=operation)
    chain.finish(extreme)
    return extreme


def _reduce_rows(
    queue: cl.CommandQueue, parts: Parts, operation: str, n_columns: int, longest: int | None
) -> tuple[Parts, cl_array.Array]:
    """Return each matrix row's largest or smallest value, as one sparse row (data, indices, indptr), and marks of nonzero values.

    Data are the extreme value of each row, 0 if it has no entry; indices the numbers of rows; indptr the ends of the single row.
    Places without an entry count as 0 if a row has less than ``n_columns`` entries.
    """
    data, _, indptr = parts
    chain, n = Chain(queue, *parts), indptr.size - 1
    types = name_of(indptr.dtype), name_of(data.dtype), operation
    built, record = chain.build(RowExtremes(min(_WORK_GROUP, chain.device.max_work_group), *types))
    extremes = allocate(queue, "values of the result", n, data.dtype, data.allocator)
    rows = allocate(queue, "rows of the result", n, indptr.dtype, data.allocator)
    ends, marks = allocate(queue, "ends", 2, indptr.dtype), allocate(queue, "marks", n, np.uint8)
    if n:
        enqueue_segmented_sum(chain, indptr, data, extremes, n, data.size, operation=operation, longest=longest)
        groups, sizes = spread(chain.device, n, record.work_group, 64)
        chain.launch(built, groups, *sizes, np.uint64(n_columns), indptr, extremes, rows, ends, marks)
        chain.finish(extremes, rows, ends, marks)
    return (extremes, rows, ends), marks


def _locate_in_rows(queue: cl.CommandQueue, parts: Parts, operation: str, n_columns: int) -> cl_array.Array:
    """Return the first column of each row's largest or smallest value, 0 for empty rows; of stored ones if ``n_columns`` is 0.

    Otherwise, in a row of fewer than ``n_columns`` entries, values that are not stored count as 0.
    """
    data, indices, indptr = parts
    rows = rows_of(queue, indptr, data.size)
    chain, n = Chain(queue, *parts, rows), indptr.size - 1
    types = name_of(indptr.dtype), name_of(data.dtype), operation
    group = min(_WORK_GROUP, chain.device.max_work_group)
    mark, mark_record = chain.build(ExtremeColumns(group, *types, False))
    settle, settle_record = chain.build(ExtremePlaces(group, *types))
    places = allocate(queue, "places", n, np.dtype(np.int64), data.allocator)
    if not n:
        return places
    extremes, columns = chain.scratch(n, data.dtype), chain.scratch(n, indptr.dtype)
    of_extremes = chain.scratch(data.size, indptr.dtype)
    enqueue_segmented_sum(chain, indptr, data, extremes, n, data.size, operation=operation)
    groups, sizes = spread(chain.device, data.size, mark_record.work_group, 64)
    chain.launch(mark, groups, *sizes, rows, indices, data, extremes, of_extremes)
    enqueue_segmented_sum(chain, indptr, of_extremes, columns, n, data.size, operation="minimum")
    groups, sizes = spread(chain.device, n, settle_record.work_group, 64)
    chain.launch(settle, groups, *sizes, np.uint64(n_columns), indptr, indices, extremes, columns, places)
    chain.finish(places)
    return places


def _locate_in_all(queue: cl.CommandQueue, parts: Parts, operation: str, n_columns: int) -> tuple[Any, int, int, int]:
    """Return the extreme stored value, its first position in data and place in the matrix, and the first place without an entry.

    Places of the matrix are counted row by row.
    """
    data, indices, indptr = parts
    chain, n = Chain(queue, *parts), indptr.size - 1
    types = name_of(indptr.dtype), name_of(data.dtype), operation
    mark, mark_record = chain.build(ExtremeColumns(min(_WORK_GROUP, chain.device.max_work_group), *types, True))
    locate, _ = chain.build(ExtremeOfAll(1, types[0]))
    ends = copy_to_device(queue, "segments", np.array([0, data.size], indptr.dtype))
    extreme, position, places = chain.scratch(1, data.dtype), chain.scratch(1, indptr.dtype), chain.scratch(2, np.int64)
    of_extremes = chain.scratch(data.size, indptr.dtype)
    enqueue_segmented_sum(chain, ends, data, extreme, 1, data.size, operation=operation)
    groups, sizes = spread(chain.device, data.size, mark_record.work_group, 64)
    chain.launch(mark, groups, *sizes, data, extreme, of_extremes)
    enqueue_segmented_sum(chain, ends, of_extremes, position, 1, data.size, operation="minimum")
    chain.launch(locate, 1, np.uint64(n), np.uint64(n_columns), indptr, indices, position, places)
    place, missing = chain.read(places, 2)
    return chain.read(extreme, 1)[0], int(chain.read(position, 1)[0]), int(place), int(missing)
