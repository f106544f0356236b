"""`coo_array`: coordinates on the device, in any order; most operations convert to CSR."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._arrays.base import SparseArray, cast_target, on_device
from clsparse_py._arrays.csc import csc_array
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.delegation import BY_SCALAR, OF_SUMS, OF_VALUES, Delegating, delegate, result_of
from clsparse_py._arrays.doors import doors
from clsparse_py._arrays.vector import csr_vector
from clsparse_py._device.device import describe
from clsparse_py._formats.canonical import without_zeros
from clsparse_py._formats.coordinates import Thresholds, place_coordinates, regroup, rows_of, sort_entries
from clsparse_py._formats.parts import coordinates_of, dense_values, is_shape
from clsparse_py._ground.fork_guard import use_device
from clsparse_py._matrix.convert import convert, copied
from clsparse_py._matrix.matrix import Structure, is_sparse
from clsparse_py._matrix.placement import index_dtype, index_vector, place_part, queue_for, shape_of, value_dtype_on, vector
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.elementwise.operands import is_scalar
from clsparse_py._operations.indexing.methods import Indexing
from clsparse_py._operations.reductions.axes import axis_of, find_summed_axes
from clsparse_py._operations.transpose_cache import MemoryReport, report_memory
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host

if TYPE_CHECKING:
    from clsparse_py._matrix.matrix import Parts

__all__ = ["coo_array"]

#: Names of a `coo_array`'s coordinate arrays, by the array's number of dimensions.
_NAMES = {1: ("col",), 2: ("row", "col")}


@doors
class coo_array(Indexing, Delegating):  # noqa: N801 - SciPy's name for it
    """A sparse array in coordinate form on an OpenCL device, of one or two dimensions.

    Parameters
    ----------
    arg1 : scipy.sparse array or matrix, array of ours, array_like or tuple
        A sparse array of any format, SciPy's or ours; a dense array; ``(data, (row, col))`` or, of one dimension,
        ``(data, (col,))``, NumPy or `pyopencl.array.Array`; or a shape, for no entries.
    shape : tuple of int, optional
        By default what ``arg1`` has, or the smallest that holds its entries.
    dtype, copy, queue, maxprint
        As for `csr_array`.
    check : bool
        True, the default: the coordinates are checked on the device (one kernel and one read for each axis). With False the
        caller, who gives the shape, vouches for them.

    Attributes
    ----------
    format : str
        "coo".
    coords : tuple of pyopencl.array.Array
        The rows and the columns of entries, or their places.
    shape : tuple of int
    dtype : numpy.dtype
        Of the values.
    nnz : int
        Stored entries, explicit zeros and duplicates included.
    ndim : int
        1 or 2.
    has_canonical_format : bool
        Whether the entries are known to be sorted, without duplicates. A value that is set is trusted.
    queue : pyopencl.CommandQueue
    context : pyopencl.Context
        Of the queue.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is no such thing, coordinates lie outside of the shape, or parts live in another context; the message names the
        part.

    Notes
    -----
    Operations convert the array to CSR form: entries are sorted and duplicates summed. That of products is kept until the array
    changes: until `data`, `row`, `col` or `coords` is set. Values written into `data` in place go unnoticed by products: after
    that say ``A.data = A.data``.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.coo_array((np.array([1, 2, 3]), ([0, 1, 0], [1, 0, 1])), shape=(2, 2))
    >>> A.toarray()
    array([[0, 4],
           [2, 0]])
    >>> A.nnz, A.tocsr().nnz
    (3, 2)
    """

    _format = "coo"
    _pair_type: csr_array  # for type checkers: see `annotations.HasPairType`

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        queue: cl.CommandQueue | None = None,
        check: bool = True,
        maxprint: int | None = None,
    ) -> None:
        expected_shape = None if shape is None else _shape_of(shape)
        is_own = isinstance(arg1, cl_array.Array)
        if is_own:
            arg1 = csr_array(arg1, queue=queue)
        values, coordinates, own_shape, is_canonical = _parse_entries(arg1, expected_shape, dtype)
        if expected_shape not in (None, own_shape) and own_shape is not None:
            raise ValueError(f"shape: {expected_shape} differs from that of arg1, {own_shape} (inconsistent shapes)")
        queue = queue_for((values, *coordinates), queue)
        if own_shape is None and not values.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it")
        data = place_part(queue, "data", values, value_dtype_on(queue, values.dtype, dtype), copy=copy)
        names = _NAMES[len(coordinates)]
        numbers = dict(zip(names, coordinates, strict=True))
        placed, shape = place_coordinates(queue, numbers, own_shape, copy=copy, check=check, n=values.size)
        # A `coo_array` that shares the device arrays of ``arg1`` is not marked as canonical, as in SciPy.
        self._hold(queue, shape, placed, data, is_canonical=is_canonical and (copy or is_own or not is_sparse(arg1)))
        self._print_at_most(maxprint)

    @classmethod
    def over(
        cls, queue: cl.CommandQueue, shape: tuple[int, ...], coordinates: tuple[cl_array.Array, ...], data: cl_array.Array
    ) -> Self:
        """Return a `coo_array` of coordinates and values on the device, which are neither checked nor copied."""
        array = object.__new__(cls)
        array._hold(queue, shape, coordinates, data, is_canonical=False)
        return array

    def _hold(
        self,
        queue: cl.CommandQueue,
        shape: tuple[int, ...],
        coordinates: tuple[cl_array.Array, ...],
        data: cl_array.Array,
        *,
        is_canonical: bool,
    ) -> None:
        """Set the queue, the shape, the coordinates and the values of a new `coo_array`."""
        self._queue, self._shape = queue, shape
        self._context: cl.Context = queue.context  # a queue may not keep its context alive: quirk 9
        self._become(coordinates, data, is_canonical=is_canonical)

    def _become(self, coordinates: tuple[cl_array.Array, ...], data: cl_array.Array, *, is_canonical: bool) -> None:
        """Replace the coordinates and the values of the `coo_array`, and drop its cached CSR form."""
        self._coords, self._data, self._canonical = coordinates, data, is_canonical
        self._csr: csr_array | None = None
        self._checked = True

    @override
    def _alias(self) -> Self:
        """Return another `coo_array` over the same device arrays, with the same cached CSR form."""
        alias = self._with_values(self._data)
        alias._csr = self._csr
        return alias

    # ---- attributes

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        """The array's numbers of rows and columns, or its length."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array's values."""
        return np.dtype(self._data.dtype)

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue on which operations on the array run, unless a dense operand on the device has another queue."""
        return self._queue

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        self._require_valid()
        return int(self._data.size)

    @property
    def data(self) -> cl_array.Array:
        """The array's values, a device array of ``nnz`` entries. May be set to another, NumPy's or the device's."""
        return self._data

    @data.setter
    def data(self, values: Any) -> None:
        """Replace the values of the array."""
        part = vector("data", values)
        on_device = place_part(self._queue, "data", part, value_dtype_on(self._queue, part.dtype, None), copy=False)
        self._become(self._coords, on_device, is_canonical=self._canonical)
        self._checked = False

    @property
    def coords(self) -> tuple[cl_array.Array, ...]:
        """The coordinates of the stored entries: for each axis a device array of int32 or int64, which may be replaced."""
        return self._coords

    @coords.setter
    def coords(self, coordinates: Any) -> None:
        """Replace the coordinates of the array's entries."""
        if len(coordinates) != self.ndim:
            raise ValueError(f"coords: must have {self.ndim} arrays, has {len(coordinates)}")
        by_name = {name: index_vector(name, part) for name, part in zip(_NAMES[self.ndim], coordinates, strict=True)}
        placed, _ = place_coordinates(self._queue, by_name, self._shape, check=False)
        self._become(placed, self._data, is_canonical=False)
        self._checked = False

    @property
    def row(self) -> cl_array.Array:
        """The row of each stored entry, a device array; zeros if the array has one dimension."""
        return self._coords[0] if self.ndim == 2 else self._make_row_zeros()

    @row.setter
    def row(self, rows: Any) -> None:
        """Replace the rows of the array's entries."""
        if self.ndim == 1:
            raise ValueError("row: cannot set row attribute, as A has one dimension")
        self.coords = rows, self._coords[1]

    @property
    def col(self) -> cl_array.Array:
        """The column of each stored entry, or its position in an array of one dimension: a device array."""
        return self._coords[-1]

    @col.setter
    def col(self, columns: Any) -> None:
        """Replace the columns of the array's entries."""
        self.coords = (*self._coords[:-1], columns)

    @property
    def has_canonical_format(self) -> bool:
        """Whether the entries are known to be sorted, without duplicates. A value that is set is trusted."""
        return self._canonical

    @has_canonical_format.setter
    def has_canonical_format(self, is_canonical: bool) -> None:
        """Declare the entries sorted and without duplicates (canonical), or not."""
        self._canonical = bool(is_canonical)

    def _make_row_zeros(self) -> cl_array.Array:
        """Return the rows of a one-dimensional array's entries: a device array of zeros."""
        n = self._data.size
        zeros = allocate(self._queue, "rows", n, self._coords[0].dtype)
        if n:
            chain = Chain(self._queue, writes=(zeros,))
            chain.fill(zeros, 0, n)
            chain.finish(zeros)
        return zeros

    def _require_valid(self) -> None:
        """Check the array's coordinates and values, if some of them were set since the last check."""
        if self._checked:
            return
        n, numbers = int(self._data.size), dict(zip(_NAMES[self.ndim], self._coords, strict=True))
        for name, part in numbers.items():
            if part.size != n:
                raise ValueError(f"{name}: must have as many entries as data, has {part.size}, not {n}")
        place_coordinates(self._queue, numbers, self._shape)
        self._checked = True

    # ---- methods that change the array in place, and copies

    def sum_duplicates(self) -> None:
        """Sort entries by row, then by column, and sum duplicates, in place: all arrays are new.

        Values are added in the order of the entries; the sum of booleans is whether one of them is True. An array that is known
        to be in canonical format stays as it is.
        """
        if self._canonical:
            return
        if self._has_many_rows():
            flat = self._flatten()
            flat.sum_duplicates()
            columns, index = flat._coords[0], self._coords[0].dtype
            self._become(regroup(self._queue, columns, columns, (0, 1), self._shape[1], index), flat._data, is_canonical=True)
            return
        data, indices, indptr = self._sort_to_csr(by_column=False)
        coordinates = (indices,) if self.ndim == 1 else (rows_of(self._queue, indptr, indices.size), indices)
        self._become(coordinates, data, is_canonical=True)

    def _has_many_rows(self) -> bool:
        """Return whether the array has so many more rows than entries that entries are sorted by flat (row-major) positions."""
        limits = Thresholds.of(describe(self._queue.device))
        if self.ndim == 1 or self._shape[0] <= max(limits.min_rows_by_entries * self._data.size, limits.min_many_rows):
            return False
        return 0 < math.prod(self._shape) <= np.iinfo(np.int64).max

    def _flatten(self) -> Self:
        """Return the array's entries as an array of one dimension, at their flat positions in row-major order."""
        return self._reshaped((math.prod(self._shape),), "C")

    def _sort_to_csr(self, *, by_column: bool) -> Parts:
        """Return the CSR arrays of the entries or, ``by_column``, of the transposed array; an array of one dimension is a row."""
        self._require_valid()
        if self.ndim == 1:
            return sort_entries(self._queue, self._data, self._make_row_zeros(), self._coords[0], (1, self._shape[0]))
        (row, col), (rows, columns) = self._coords, self._shape
        if by_column:
            return sort_entries(self._queue, self._data, col, row, (columns, rows))
        return sort_entries(self._queue, self._data, row, col, (rows, columns))

    def eliminate_zeros(self) -> None:
        """Remove explicit zeros in place: if there are any, all arrays are new."""
        self._require_valid()
        n, index = int(self._data.size), self._coords[0].dtype
        ends = place_part(self._queue, "segment", np.array([0, n], index), index, copy=False)
        remaining = [without_zeros(self._queue, (self._data, coordinate, ends)) for coordinate in self._coords]
        if remaining[0][0] is not self._data:
            self._become(tuple(coordinate[1] for coordinate in remaining), remaining[0][0], is_canonical=self._canonical)

    @override
    def copy(self) -> Self:
        """Return a copy of the array, with device arrays of its own."""
        coordinates = tuple(copied(self._queue, "coordinates", coordinate) for coordinate in self._coords)
        return self._with_values(copied(self._queue, "data", self._data), coordinates)

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """Return the array with values of another dtype; duplicates are summed then, as in SciPy. See `csr_array.astype`."""
        target = cast_target(self.dtype, dtype, casting)
        if target == self.dtype:
            return self.copy() if copy else self
        value_dtype_on(self._queue, target, None)
        result = self._with_values(convert(self._queue, "data", self._data, target))
        result.sum_duplicates()
        return result

    def _with_values(self, values: cl_array.Array, coordinates: tuple[cl_array.Array, ...] | None = None) -> Self:
        """Return a `coo_array` of other values at the coordinates of this array, or at their copies, ``coordinates``."""
        array = self.over(self._queue, self._shape, coordinates or self._coords, values)
        array._canonical, array._checked = self._canonical, self._checked
        return array

    # ---- conversions

    @property
    def T(self) -> Self:  # noqa: N802 - SciPy's name for it
        """The transposed array, over the same device arrays; of one dimension, the array itself."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Self:
        """Return the array with its axes in another order, by default the reverse.

        Parameters
        ----------
        axes : None, int or tuple of int
            The axes of the array, in the order that they have in the result.
        copy : bool
            True: the result has device arrays of its own.

        Raises
        ------
        ValueError
            ``axes`` are not the axes of the array, each once.
        """
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(np.atleast_1d(axes).tolist())
        if len(order) != self.ndim or any(not -self.ndim <= axis < self.ndim for axis in order):
            raise ValueError(f"axes: axes don't match matrix dimensions, A has {self.ndim}, are {axes!r}")
        order = tuple(axis % self.ndim for axis in order)
        if len(set(order)) < self.ndim:
            raise ValueError(f"axes: repeated axis in transpose, are {axes!r}")
        if self.ndim == 1 and not copy:
            return self
        A = self.copy() if copy else self
        result = self.over(
            self._queue, tuple(self._shape[axis] for axis in order), tuple(A._coords[axis] for axis in order), A._data
        )
        result._checked = self._checked
        result._canonical = self._canonical and order == tuple(range(self.ndim))
        return result

    @override
    def get(self) -> Any:
        """Return the array as a `scipy.sparse.coo_array` with memory of its own."""
        use_device()
        self._require_valid()
        data, *coordinates = (copy_to_host(part, self._queue) for part in (self._data, *self._coords))
        array = scipy.sparse.coo_array((data, tuple(coordinates)), shape=self._shape)
        array.has_canonical_format = self._canonical
        return array

    @override
    def tocsr(self, copy: bool = False) -> csr_array:
        """Return the array in CSR form, sorted, duplicates summed."""
        data, indices, indptr = self._sort_to_csr(by_column=False)
        shape = (1, self._shape[0]) if self.ndim == 1 else (self._shape[0], self._shape[1])
        cls = csr_vector if self.ndim == 1 else csr_array
        return cls.assembled(Structure.canonical(self._queue, shape, indices, indptr), data)

    @override
    def tocsc(self, copy: bool = False) -> csc_array:
        """Return the array in CSC form, sorted, duplicates summed.

        Raises
        ------
        ValueError
            The array has one dimension.
        """
        if self.ndim == 1:
            raise ValueError("A: Cannot convert an array of one dimension; csc_array takes two")
        data, indices, indptr = self._sort_to_csr(by_column=True)
        rows, columns = self._shape
        return csc_array.over(csr_array.assembled(Structure.canonical(self._queue, (columns, rows), indices, indptr), data))

    @override
    def tocoo(self, copy: bool = False) -> Self:
        """Return the array itself or, with ``copy``, a copy with device arrays of its own."""
        return self.copy() if copy else self

    def _reshaped(self, shape: tuple[int, ...], order: str) -> Self:
        """Return the array's entries as a `coo_array` of another shape with as many places; ``order`` is that of `reshape`."""
        self._require_valid()
        if math.prod(shape) > np.iinfo(np.int64).max:
            raise ValueError(f"shape: {self._shape} has more places than 63 bits number")
        rows, columns = self._shape if self.ndim == 2 else (1, self._shape[0])
        factors = (columns, 1) if order == "C" else (1, rows)
        if self.ndim == 1:
            factors = 0, 1
        divisor = max(1, shape[-1] if order == "C" or len(shape) == 1 else shape[0])
        index = index_dtype(self._coords, (*shape, self._data.size))
        quotients, rests = regroup(self._queue, self._coords[0], self._coords[-1], factors, divisor, index)
        coordinates = (rests,) if len(shape) == 1 else ((quotients, rests) if order == "C" else (rests, quotients))
        return self.over(self._queue, shape, coordinates, self._data)

    # ---- indexing

    @override
    def _compressed(self) -> tuple[csr_array, bool]:
        """Return the CSR form that is indexed in place of the array; False says that the CSR form is not transposed."""
        return self._as_csr(), False

    @override
    def _to_change(self) -> tuple[csr_array, bool]:
        """Return the CSR form to which values are assigned in place of the array; False says that it is not transposed."""
        return self._as_csr()._alias(), False

    @override
    def _apply_change(self, A: csr_array) -> None:
        """Take over the entries of A, the CSR form to which values were assigned, as coordinates and values."""
        n_rows, n_columns = A.shape
        is_flat = self.ndim == 1
        self._shape = (n_columns,) if is_flat else (n_rows, n_columns)
        coordinates = (A.indices,) if is_flat else (rows_of(A.queue, A.indptr, A.indices.size), A.indices)
        self._become(coordinates, A.data, is_canonical=A.has_canonical_format)

    @override
    def _prepare_for(self, shape: tuple[int, ...]) -> None:
        """Change the number of dimensions of the array in place, before the array is resized to ``shape``."""
        if len(shape) == 2:
            columns = max(shape[1], 1)
            self.resize(-(-self._shape[0] // columns) * columns)
            reshaped = self._reshaped((self._shape[0] // columns, columns), "C")
        else:
            reshaped = self._flatten()
        self._shape = reshaped.shape
        self._become(reshaped._coords, reshaped._data, is_canonical=self._canonical)

    @override
    def _of_compressed(self, rows: csr_array) -> Self:
        """Return ``rows``, the CSR form of a selection that indexing made, as a `coo_array`; it has as many dimensions as A."""
        if self.ndim == 2:
            return rows.tocoo(copy=False)  # type: ignore[return-value] # a coo_array
        return self.over(rows.queue, rows.shape[1:], (rows.indices,), rows.data)

    # ---- operations

    def _cached_csr(self) -> csr_array:
        """Return the array's cached CSR form, which callers do not change; it is dropped when the array changes."""
        self._require_valid()
        if self._csr is None:
            self._csr = self.tocsr()
        return self._csr

    @override
    def _as_csr(self) -> csr_array:
        """Return the array's cached CSR form with two dimensions (a vector as one row), which callers must not change."""
        return self._cached_csr()._as_csr()

    def _csr_for_dense(self, dtype: np.dtype[Any]) -> csr_array:
        """Return the CSR form for an operation with a dense operand of a dtype; duplicates are summed in the result's dtype."""
        rows, wide = self._cached_csr(), np.result_type(self.dtype, dtype)
        is_exact = self.dtype.kind not in "biu" or wide == self.dtype or rows.nnz == self.nnz
        return rows if is_exact else self.astype(wide).tocsr()

    @override
    def _times(self, dense: Any) -> Any:
        """Return the product ``A @ dense`` of the array A and a dense vector or matrix."""
        return self._csr_for_dense(dense.dtype)._times(dense)

    @override
    def _dense_times(self, dense: Any) -> Any:
        """Return the product ``dense @ A`` of a dense vector or matrix and the array A."""
        return self._csr_for_dense(dense.dtype)._dense_times(dense)

    @override
    def _times_sparse(self, other: SparseArray) -> Any:
        """Return the product ``A @ other`` of the array A and another sparse array of this package."""
        return self._cached_csr()._times_sparse(other)

    def tensordot(self, other: Any, axes: Any = 2) -> Any:
        """Return the tensor product of the array and ``other``, summed over some axes of both (a contraction).

        Parameters
        ----------
        other : sparse array or array_like
            Of one or two dimensions.
        axes : int or pair of sequences of int
            The number of A's last axes that are summed over together with the first axes of ``other``; or the axes of A, and the
            axes of ``other``.

        Returns
        -------
        coo_array, numpy.ndarray or scalar
            An array of A's remaining axes, then the remaining axes of ``other``: at most two. Dense if ``other`` is.

        Raises
        ------
        ValueError
            The axes differ in length, or more than two axes remain.
        """
        B = on_device(self._queue, other).tocoo() if is_sparse(other) else np.asarray(other)
        of_A, of_B = find_summed_axes(axes, self.shape, B.shape)
        free_of_A, free_of_B = (
            [axis for axis in range(operand.ndim) if axis not in summed] for operand, summed in ((self, of_A), (B, of_B))
        )
        shape = tuple(self.shape[axis] for axis in free_of_A) + tuple(B.shape[axis] for axis in free_of_B)
        if len(shape) > 2:
            raise ValueError(f"axes: leave {len(shape)} axes of A and other, at most 2 are possible")
        n, rows = (math.prod(self.shape[axis] for axis in summed) for summed in (of_A, free_of_A))
        columns = math.prod(B.shape[axis] for axis in free_of_B)
        product: Any = self.transpose((*free_of_A, *of_A)).reshape(rows, n) @ B.transpose((*of_B, *free_of_B)).reshape(n, columns)
        if not shape:
            return np.asarray((product.toarray() if is_sparse(product) else product)[0, 0])
        return product.reshape(shape).tocoo(copy=False) if is_sparse(product) else product.reshape(shape)

    def diagonal(self, k: int = 0) -> np.ndarray[Any, Any]:
        """Return the values on the k-th diagonal, where duplicates are added up; as `csr_array.diagonal`."""
        return self.tocsr().diagonal(k)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the values on a diagonal; ``offset`` is the number k of `diagonal`."""
        return self.tocsr().trace(offset)

    def nonzero(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Return the coordinates of stored entries that are not 0, in the order of storage, as NumPy arrays."""
        self._require_valid()
        data, *coordinates = (copy_to_host(part, self._queue) for part in (self._data, *self._coords))
        return tuple(coordinate[data != 0] for coordinate in coordinates)

    @override
    def _entrywise(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return an elementwise operation's result: in COO form if only values change or SciPy's is COO, else the CSR form's."""
        of_values = name in OF_VALUES or (name in BY_SCALAR and is_scalar(arguments[0]))
        if not of_values and name not in OF_SUMS:
            is_dense_sum = name in ("__add__", "__radd__") and isinstance(arguments[0], (np.ndarray, cl_array.Array))
            rows = self._csr_for_dense(arguments[0].dtype) if is_dense_sum else self.tocsr()
            result = result_of(rows, name, *arguments, **named)
            return result.tocoo(copy=False) if _is_coo_in_scipy(name, arguments) else result
        A = self
        if not self._canonical and not of_values:
            A = self.copy()
            A.sum_duplicates()
        elif not self._canonical and name == "__truediv__" and self.dtype.kind != "c" and describe(self._queue.device).fp64:
            A = self.astype(np.float64, copy=False)  # the quotient's dtype; as in SciPy, a cast sums duplicates
        result = result_of(A._values_as_row(), name, *arguments, **named)
        return A._with_values(result.data) if isinstance(result, csr_array) else result

    def _values_as_row(self) -> csr_array:
        """Return a matrix of one row with the array's stored values, for operations that read values alone."""
        self._require_valid()
        # This row's structure is a dummy that operations on values never read: any array of the right length is its `indices`.
        indices, shape = self._coords[-1], (1, max(1, math.prod(self._shape)))
        structure = Structure.canonical(self._queue, shape, indices, indices)
        return csr_array.assembled(structure, self._data)

    @override
    def _along(self, name: str, axis: Any = None, *arguments: Any, **named: Any) -> Any:
        """Return the result of the reduction ``name``, such as a sum, along an axis, computed from the CSR form."""
        if name == "getnnz" and axis is None:
            return self.nnz
        A = self
        if not self._canonical and self.dtype.kind in "biu" and (name == "mean" or (name == "sum" and axis is not None)):
            # Before a reduction, duplicates are summed in the dtype of the reduction's result, as in SciPy.
            A = self.astype(np.float64 if name == "mean" else np.zeros(0, self.dtype).sum().dtype)
        along = axis_of(axis)
        if along is None and A._has_many_rows():
            return getattr(A._flatten(), name)(None, *arguments, **named)
        if along == 0 and A.ndim == 2:
            # Columns are reduced as the rows of the transposed array.
            A, axis = A.T, 1
        result = getattr(A.tocsr(), name)(axis, *arguments, **named)
        return result if name not in ("count_nonzero", "getnnz") or along is None else result.astype(np.int64)

    def explain(self) -> MemoryReport:
        """Return a report, shown as a table, of the bytes of device memory that the array and its caches hold."""
        arrays = {"data": self._data, **dict(zip(_NAMES[self.ndim], self._coords, strict=True))}
        return report_memory(repr(self), arrays, None, {"CSR": (self._csr, "products")})

    @override
    def _index_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the coordinates: int32 or int64."""
        return np.dtype(self._coords[0].dtype)


def _is_coo_in_scipy(name: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether SciPy's result of ``name`` on a `coo_array` and a scalar is in COO form; False for other operands."""
    if not arguments or not is_scalar(arguments[0]):
        return False
    if name in ("maximum", "minimum"):
        return bool(getattr(np, name)(0, arguments[0]))
    return name in ("__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__") and bool(arguments[0] != arguments[0])


def _shape_of(shape: Any) -> tuple[int, ...]:
    """Return a shape of one or two dimensions as a tuple of Python integers."""
    lengths = tuple(np.atleast_1d(shape).tolist()) if np.ndim(shape) == 0 else tuple(shape)
    return shape_of((1, *lengths))[1:] if len(lengths) == 1 else shape_of(lengths)


def _parse_entries(
    arg1: Any, shape: tuple[int, ...] | None, dtype: Any
) -> tuple[Any, tuple[Any, ...], tuple[int, ...] | None, bool]:
    """Return values, coordinates and, if known, shape of a constructor's ``arg1``, and whether entries are known canonical."""
    if isinstance(arg1, SparseArray) or scipy.sparse.issparse(arg1):
        entries = arg1.tocoo(copy=False)
        if entries.ndim > 2:
            raise ValueError(f"arg1: must have one or two dimensions, has {entries.ndim}")
        return entries.data, entries.coords, tuple(map(int, entries.shape)), entries.has_canonical_format
    if not isinstance(arg1, tuple):
        dense = dense_values(arg1, dtype)
        if not dense.ndim:
            raise TypeError("arg1: must be a sparse array, a dense array or a tuple of arrays, is an array without dimensions")
        if dense.ndim > 2:
            raise ValueError(f"arg1: a dense array must have one or two dimensions, has {dense.ndim} (shape {dense.shape})")
        entries = scipy.sparse.coo_array(dense, dtype=dtype)
        return entries.data, entries.coords, tuple(map(int, entries.shape)), True
    if is_shape(arg1):
        own_shape = _shape_of(arg1)
        return np.zeros(0), (np.zeros(0, np.int32),) * len(own_shape), own_shape, True
    coordinates = coordinates_of(arg1)
    if coordinates is None or len(coordinates) not in (1, 2):
        raise ValueError("arg1: a tuple must be (data, (row, col)), (data, (col,)) or a shape")
    values = vector("data", arg1[0], dtype)
    vectors = tuple(
        index_vector(name, coordinate) for name, coordinate in zip(_NAMES[len(coordinates)], coordinates, strict=True)
    )
    for name, part in zip(_NAMES[len(vectors)], vectors, strict=True):
        if part.size != values.size:
            raise ValueError(f"{name}: must have as many entries as data, has {part.size}, not {values.size}")
    if shape is not None and len(shape) != len(vectors):
        raise ValueError(f"shape: must have {len(vectors)} lengths, as there are so many coordinates, is {shape}")
    return values, vectors, shape, False


delegate(coo_array)
