"""`csc_array`: a sparse matrix in CSC form on an OpenCL device, held as the CSR of its transposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._arrays.base import SparseArray, require_reversed
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.delegation import NO_LISTS, Delegating, delegate, result_of
from clsparse_py._arrays.doors import doors
from clsparse_py._formats.coordinates import from_coordinates
from clsparse_py._formats.parts import coordinates_of, dense_values, is_one_dimensional, is_shape, require_two_dimensions
from clsparse_py._matrix.matrix import Structure, is_sparse
from clsparse_py._matrix.placement import index_vector, queue_for, value_dtype_on, vector
from clsparse_py._operations.elementwise.operands import is_scalar
from clsparse_py._operations.elementwise.products import format_of_product
from clsparse_py._operations.indexing.methods import Indexing
from clsparse_py._operations.reductions.axes import axis_of
from clsparse_py._operations.spgemm import spgemm
from clsparse_py._operations.spmm import SpmmPlan
from clsparse_py._operations.spmv import SpmvPlan
from clsparse_py._operations.transpose import transpose
from clsparse_py._operations.transpose_cache import MemoryReport, TransposeCache, report_memory

if TYPE_CHECKING:
    from clsparse_py._arrays.coo import coo_array

__all__ = ["csc_array"]

#: Names of the operators and the method for elementwise products, whose operands are broadcast.
_PRODUCTS = ("multiply", "__mul__", "__rmul__")
#: Names of elementwise operations whose dense results are in C order (row by row), as in SciPy; ``+`` may give Fortran order.
_DENSE = (
    "__sub__", "__rsub__", "maximum", "minimum", "__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__", "__truediv__",
)  # fmt: skip


@doors
class csc_array(Indexing, Delegating, one_dimensional=False):  # noqa: N801 - SciPy's name for it
    """A sparse matrix in Compressed Sparse Column form on an OpenCL device.

    Parameters
    ----------
    arg1 : scipy.sparse array or matrix, array of ours, array_like or tuple
        A sparse array of any format, SciPy's or ours; a dense two-dimensional array; ``(data, indices, indptr)``, NumPy or
        `pyopencl.array.Array`; ``(data, (row, col))``, whose duplicates are summed; or ``(rows, columns)``, for no entries.
    shape : tuple of int, optional
        Rows and columns. By default what ``arg1`` has, or the smallest that holds its entries.
    dtype, copy, queue, check, maxprint
        As for `csr_array`.

    Attributes
    ----------
    format : str
        "csc".
    shape : tuple of int
    dtype : numpy.dtype
        Of the values.
    nnz : int
        Stored entries, explicit zeros and duplicates included.
    ndim : int
        2.
    queue : pyopencl.CommandQueue
    context : pyopencl.Context
        Of the queue.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is no such thing or no valid structure, or its parts live in another context; the message names the part.

    See Also
    --------
    csr_array.T : A `csc_array` over the arrays of a `csr_array`, without a kernel.

    Notes
    -----
    Operations are those of the transposed matrix, whose CSR has the same arrays. Products with dense operands at the right need
    the matrix itself in CSR form, which is made by SpTRANS, and kept until the matrix changes.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csc_array([[1, 2], [0, 3]])
    >>> A.indptr.get(), A.indices.get()
    (array([0, 1, 3], dtype=int32), array([0, 0, 1], dtype=int32))
    >>> (A @ A).format
    'csc'
    """

    _format = "csc"
    _pair_type: Self  # for type checkers: see `annotations.HasPairType`
    _columns: csr_array | None
    _rows: csr_array | None = None

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
        if is_one_dimensional(arg1, shape):
            raise ValueError("arg1: a csc_array has two dimensions, not one (CSC arrays don't support 1D input)")
        turned = None if shape is None else tuple(shape)[::-1]
        self._columns = _make_transposed(arg1, turned, dtype, copy=copy, queue=queue, check=check)
        self._print_at_most(maxprint)

    @classmethod
    def over(cls, transposed: csr_array) -> Self:
        """Return the transposed of a `csr_array` as a `csc_array` over its arrays; nobody else may change the `csr_array`."""
        array = object.__new__(cls)
        array._columns = transposed
        return array

    @classmethod
    def _from_rows(cls, rows: csr_array) -> Self:
        """Return the `csc_array` of a product that SpGEMM made in CSR form; the CSC form is made when an operation needs it."""
        array = object.__new__(cls)
        array._columns, array._rows = None, rows
        return array

    @property
    def _t(self) -> csr_array:
        """The transposed matrix in CSR form, which has the same device arrays as this matrix in CSC form."""
        if self._columns is None:
            assert self._rows is not None
            self._columns = transpose(self._rows)
            self._columns._transpose_cache, self._rows = TransposeCache(self._rows), None
        return self._columns

    @property
    def _either(self) -> csr_array:
        """The matrix or the transposed matrix in CSR form, whichever is there without a conversion."""
        return self._t if self._rows is None else self._rows

    @override
    def _alias(self) -> Self:
        """Return another `csc_array` over the same device arrays as this one."""
        return self.over(self._t._alias())

    # ---- attributes

    @property
    @override
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of the matrix."""
        if self._rows is not None:
            return self._rows.shape
        columns, rows = self._t.shape
        return rows, columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the matrix's values."""
        return self._either.dtype

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue on which operations on the matrix run, unless a dense operand on the device has another queue."""
        return self._either.queue

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self._either.nnz

    @property
    def data(self) -> cl_array.Array:
        """The matrix's values, a device array of ``nnz`` entries. May be set to another, as for `csr_array.data`."""
        return self._t.data

    @data.setter
    def data(self, values: Any) -> None:
        """Replace the values of the matrix."""
        self._t.data = values

    @property
    def indices(self) -> cl_array.Array:
        """The row of each entry, a device array of int32 or int64. Setting `indices` replaces the structure and its plans."""
        return self._t.indices

    @indices.setter
    def indices(self, rows: Any) -> None:
        """Replace the row indices of the matrix's entries."""
        self._t.indices = rows

    @property
    def indptr(self) -> cl_array.Array:
        """The column pointers, a device array of ``columns + 1`` entries. Setting `indptr` replaces the structure."""
        return self._t.indptr

    @indptr.setter
    def indptr(self, offsets: Any) -> None:
        """Replace the matrix's column pointers."""
        self._t.indptr = offsets

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the row indices of each column ascend. A value that is set is trusted."""
        return self._t.has_sorted_indices

    @has_sorted_indices.setter
    def has_sorted_indices(self, is_sorted: bool) -> None:
        """Declare the row indices of each column sorted, or not."""
        self._t.has_sorted_indices = is_sorted

    @property
    def has_canonical_format(self) -> bool:
        """Whether the row indices of each column ascend strictly. A value that is set is trusted."""
        return self._t.has_canonical_format

    @has_canonical_format.setter
    def has_canonical_format(self, is_canonical: bool) -> None:
        """Declare the row indices of each column sorted and without duplicates (canonical), or not."""
        self._t.has_canonical_format = is_canonical

    # ---- methods that change the array in place, and copies

    def sort_indices(self) -> None:
        """Sort the row indices of each column, in place; as `csr_array.sort_indices`."""
        self._t.sort_indices()

    def sum_duplicates(self) -> None:
        """Sort the row indices of each column, and sum duplicates, in place; as `csr_array.sum_duplicates`."""
        self._t.sum_duplicates()

    def eliminate_zeros(self) -> None:
        """Remove explicit zeros from the matrix, in place."""
        self._t.eliminate_zeros()

    def prune(self) -> None:
        """Drop the entries that are stored after those of the last column."""
        self._t.prune()

    def check_format(self, full_check: bool = True) -> None:
        """Check the structure of the matrix; as `csr_array.check_format`."""
        self._t.check_format(full_check)

    def sorted_indices(self) -> Self:
        """Return a copy of the matrix with the row indices of each column in ascending order."""
        return self.over(self._t.sorted_indices())

    @override
    def copy(self) -> Self:
        """Return a copy of the matrix, with device arrays of its own."""
        return self.over(self._t.copy())

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """Return the matrix with values of another dtype; as `csr_array.astype`."""
        converted = self._t.astype(dtype, casting, copy)
        return self if converted is self._t else self.over(converted)

    # ---- conversions

    @property
    def T(self) -> csr_array:  # noqa: N802 - SciPy's name for it
        """The transposed matrix: a `csr_array` over the same arrays, without a kernel."""
        return self._t._alias()

    def transpose(self, axes: Any = None, copy: bool = False) -> csr_array:
        """Return the transposed matrix as a `csr_array`, over the same arrays or, with ``copy``, with arrays of its own."""
        require_reversed(axes)
        return self._t.copy() if copy else self.T

    @override
    def get(self) -> Any:
        """Return the matrix as a `scipy.sparse.csc_array` with memory of its own."""
        return self._t.get().T

    @override
    def tocsr(self, copy: bool = False) -> csr_array:
        """Return the matrix in CSR form, the columns of each row sorted: SpTRANS, see `clsparse_py.transpose`."""
        cached: csr_array | None = self._rows if self._rows is not None else self._t._transpose_cache.transposed
        return transpose(self._t) if cached is None else cached.copy()

    @override
    def tocsc(self, copy: bool = False) -> csc_array:
        """Return the matrix itself or, with ``copy``, a copy with device arrays of its own."""
        return self.copy() if copy else self

    @override
    def tocoo(self, copy: bool = True) -> coo_array:
        """Return the matrix in COO form, in the order of its entries; without ``copy``, values and rows are not copied."""
        return self._t.tocoo(copy=copy).T

    @override
    def _as_csr(self) -> csr_array:
        """Return the matrix in cached CSR form, which callers do not change."""
        return self._t._transposed() if self._rows is None else self._rows

    # ---- indexing

    @override
    def _compressed(self) -> tuple[csr_array, bool]:
        """Return the CSR form that is indexed in place of the matrix; True says that the CSR form is transposed."""
        return self._t, True

    @override
    def _of_compressed(self, rows: csr_array) -> Self:
        """Return a selection that indexing made from the matrix as a `csc_array`; ``rows`` is its transposed in CSR form."""
        return self.over(rows)

    # ---- products

    @override
    def _dense_times(self, dense: Any) -> Any:
        """Return the product ``dense @ A`` of a dense vector or matrix and A, computed by the transposed matrix in CSR form."""
        return self._t._times(dense) if dense.ndim == 1 else self._t._times(dense.T).T

    @override
    def _times_sparse(self, other: SparseArray) -> Any:
        """Return the product ``A @ other`` of A and another sparse array of this package: SpGEMM."""
        if other.ndim == 1:
            return self._as_csr()._times_sparse(other)
        if isinstance(other, csc_array):
            return self.over(spgemm(other._t, self._t))
        return self._from_rows(spgemm(self._as_csr(), other._as_csr()))

    # ---- entry by entry, and along axes

    def diagonal(self, k: int = 0) -> np.ndarray[Any, Any]:
        """Return the values on the k-th diagonal, where duplicates are added up; as `csr_array.diagonal`."""
        return self._t.diagonal(-k)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the values on a diagonal; ``offset`` is the number k of `diagonal`."""
        return self._t.trace(-offset)

    def nonzero(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the rows and the columns of stored entries that are not 0, row by row, as NumPy arrays."""
        return self._as_csr().nonzero()

    @override
    def _entrywise(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return an elementwise operation's result, by the CSR form of A.T; by A's if rows are broadcast or the result is dense.

        Sums with dense operands are computed by the CSR form of A.T all the same.
        """
        if name in NO_LISTS and isinstance(arguments[0], (list, tuple)):
            return NotImplemented
        if name not in _PRODUCTS and arguments and is_sparse(arguments[0]) and arguments[0].ndim == 1:
            # A one-dimensional sparse operand is broadcast along rows: the CSR form of the matrix does the operation.
            return result_of(self._as_csr(), name, *arguments, **named)
        if name in _DENSE and not is_scalar(arguments[0]) and is_sparse(arguments[0]) == (name == "__truediv__"):
            # A dense result is made row by row by the CSR form: the transposed matrix would make it column by column.
            return result_of(self._as_csr(), name, *arguments, **named)
        turned = {key: _transpose_operand(argument) for key, argument in named.items()}
        result = result_of(self._t, name, *map(_transpose_operand, arguments), **turned)
        if name not in _PRODUCTS or not is_sparse(arguments[0]) or arguments[0].shape == self.shape:
            return _transpose_operand(result) if getattr(result, "ndim", 0) > 1 else result
        target = format_of_product(("csc", arguments[0].format), self.shape, tuple(arguments[0].shape))
        return result.T.asformat(target if target in ("csc", "coo") else "csr")

    @override
    def _along(self, name: str, axis: Any = None, *arguments: Any, **named: Any) -> Any:
        """Return the result of a reduction along an axis, computed by the transposed matrix in CSR form along the other axis."""
        along = axis_of(axis)
        if along is None and name.startswith("arg"):
            # The flat positions that `argmax` and `argmin` return count places row by row, as in the CSR form.
            return getattr(self._as_csr(), name)(None, *arguments, **named)
        return getattr(self._t, name)(None if along is None else 1 - along, *arguments, **named)

    def spmv_plan(self) -> SpmvPlan:
        """Return the plan of ``A @ x``: the plan of A's CSR form, cached until A changes."""
        return self._as_csr().spmv_plan()

    def spmm_plan(self) -> SpmmPlan:
        """Return the plan of ``A @ X`` with several columns: the plan of A's CSR form, cached until A changes."""
        return self._as_csr().spmm_plan()

    def explain(self) -> MemoryReport:
        """Return a report, shown as a table, of the bytes of device memory that the array and its caches hold."""
        A = self._t
        arrays = {"data": A.data, "indices": A.indices, "indptr": A.indptr}
        caches = {"CSR": (A._transpose_cache.transposed, "A @ x, A @ B, sums of columns of A.T")}
        return report_memory(repr(self), arrays, A, caches)

    @override
    def _index_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the matrix's indices: int32 or int64."""
        return self._either._index_dtype()

    @override
    def _n_stored(self) -> int:
        """Return the number of the matrix's stored values, without a check of the structure."""
        return self._either._n_stored()


def _transpose_operand(operand: Any) -> Any:
    """Return an operand of a matrix as an operand of the transposed matrix: arrays transposed, scalars unchanged."""
    if isinstance(operand, (list, tuple)):
        operand = np.asarray(operand)
    if getattr(operand, "ndim", 0) == 1:
        return operand.reshape(1, operand.shape[0]).T
    if isinstance(operand, np.ndarray) and operand.ndim > 2:
        return operand.swapaxes(-1, -2)
    return operand.T if getattr(operand, "ndim", 0) == 2 else operand


def _make_transposed(
    arg1: Any, shape: tuple[Any, ...] | None, dtype: Any, *, copy: bool, queue: cl.CommandQueue | None, check: bool
) -> csr_array:
    """Return the transposed of the matrix that a constructor's ``arg1`` describes, in CSR form; ``shape`` is the result's."""
    if isinstance(arg1, SparseArray) or scipy.sparse.issparse(arg1):
        columns = arg1.asformat("csc", copy=copy)
        arg1, copy = columns._t if isinstance(columns, csc_array) else columns.T, False
    elif isinstance(arg1, cl_array.Array):
        arg1 = arg1.T
    elif not isinstance(arg1, tuple):
        dense = dense_values(arg1, dtype)
        require_two_dimensions(dense)
        arg1 = scipy.sparse.csr_array(dense.T, dtype=dtype)
    elif is_shape(arg1):
        arg1 = arg1[::-1]
    elif coordinates_of(arg1) is not None:
        return _from_coordinates(arg1[0], coordinates_of(arg1), shape, dtype, queue)
    return csr_array(arg1, shape, dtype, queue=queue, check=check, copy=copy)


def _from_coordinates(data: Any, coordinates: Any, shape: Any, dtype: Any, queue: cl.CommandQueue | None) -> csr_array:
    """Return the transposed of a matrix that is given by coordinates, in CSR form; ``shape`` is the shape of the result."""
    values = vector("data", data, dtype)
    row, col = (index_vector(*named) for named in zip(("row", "col"), coordinates, strict=True))
    queue = queue_for((values, row, col), queue)
    numbers, value = {"col": col, "row": row}, value_dtype_on(queue, values.dtype, dtype)
    (data, indices, indptr), turned = from_coordinates(queue, values, numbers, shape, value)
    return csr_array.assembled(Structure.canonical(queue, turned, indices, indptr), data)


delegate(csc_array)
