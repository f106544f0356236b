"""``A[...]``, read and written, for the classes of sparse matrices."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._arrays.base import class_of_format
from clsparse_py._device.device import describe
from clsparse_py._formats.canonical import without_zeros
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._ground.errors import warn
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix, MatrixT, Structure, is_sparse
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.indexing.assignment import Values, assign_to_parts, dense_values, sparse_values
from clsparse_py._operations.indexing.columns import columns_at
from clsparse_py._operations.indexing.key import Axis, Key, parse
from clsparse_py._operations.indexing.points import Places, Spread, places_of, values_at
from clsparse_py._operations.indexing.positions import Listed
from clsparse_py._operations.indexing.rows import rows_at, take_listed_rows, take_marked_rows
from clsparse_py._precision.arithmetic import OPENCL_TYPES, needs_fp64
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host, from_host

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import HasVectorType, NumPyScalar

_Row = TypeVar("_Row")

__all__ = ["Indexing"]

#: Dtypes of NumPy arrays of row indices whose range the device checks; the host checks arrays of other dtypes.
_CHECKED_THERE = (np.dtype(np.int64), np.dtype(np.int32))


def select(A: MatrixT, rows: Axis, columns: Axis) -> MatrixT:
    """Return the submatrix of selected rows and columns, with arrays of its own.

    Parameters
    ----------
    A : Matrix
    rows, columns : Axis
        A position selects one row or column, a list of any shape all its items.
    """
    A.require_valid()
    row, column = (
        range(axis_indices, axis_indices + 1) if isinstance(axis_indices, int) else axis_indices
        for axis_indices in (rows, columns)
    )
    all_columns = column == range(A.shape[1])
    rows_taken = A if row == range(A.shape[0]) and not all_columns else rows_at(A, row)
    return rows_taken if all_columns else columns_at(rows_taken, column)


def matrix_of_values(A: MatrixT, values: cl_array.Array, shape: tuple[int, int]) -> MatrixT:
    """Return a sparse matrix of A's class and a given shape from the values of all its places, row by row; zeros are left out."""
    rows, columns = shape
    index = index_for(rows * columns, A.indptr.dtype)
    indices = copy_to_device(A.queue, "indices", np.tile(np.arange(columns, dtype=index), rows))
    indptr = copy_to_device(A.queue, "indptr", np.arange(rows + 1, dtype=index) * index.type(columns))
    data, indices, indptr = without_zeros(A.queue, (values, indices, indptr))
    return A.assembled(Structure.canonical(A.queue, shape, indices, indptr), data)


def _are_points(rows: Axis, columns: Axis) -> bool:
    """Return whether indices of rows and columns are paired to single places; else each row is combined with each column."""
    if isinstance(rows, int) and isinstance(columns, int):
        return True
    if not (isinstance(rows, Listed) and isinstance(columns, Listed)):
        return False
    of_rows, of_columns = rows.shape, columns.shape
    return not (len(of_rows) == 2 and of_rows[1] == 1 and (len(of_columns) == 1 or of_columns[0] == 1))


class Indexing:
    """Base of sparse arrays that are indexed as SciPy's."""

    if TYPE_CHECKING:

        @property
        def format(self) -> str:
            """The name of the array's sparse format, such as "csr"."""

        @property
        def queue(self) -> cl.CommandQueue:
            """The command queue on which the array's operations run."""

        @property
        def shape(self) -> tuple[int, ...]:
            """The array's numbers of rows and columns; the length of a one-dimensional array."""

    # ---- Indexing's methods that sparse classes of other formats override; the methods below serve a CSR matrix

    def _compressed(self) -> tuple[Any, bool]:
        """Return the `csr_array` that is indexed in place of this array, and whether it is this array's transpose."""
        return self, False

    def _to_change(self) -> tuple[Any, bool]:
        """Return the `csr_array` to which ``A[...] = values`` assigns, and whether it is this array's transpose."""
        return self._compressed()

    def _apply_change(self, A: Any) -> None:
        """Take over the changed arrays of the `csr_array` that `_to_change` returned; here do nothing: it is this array."""

    def _prepare_for(self, shape: tuple[int, ...]) -> None:
        """Change the number of dimensions in place before a resize; here raise a ValueError: only some formats override it."""
        raise ValueError(f"shape: must have {len(self.shape)} lengths, has {len(shape)}; use reshape")

    def _of_compressed(self, result: Any) -> Any:
        """Return rows and columns selected from the `csr_array` of `_compressed` as an array of this format; here unchanged."""
        return result

    # ----

    @overload
    def __getitem__(self, key: slice | tuple[slice, slice]) -> Self: ...

    @overload
    def __getitem__(self, key: tuple[int, int]) -> NumPyScalar: ...

    @overload
    def __getitem__(self: HasVectorType[_Row], key: tuple[int, slice] | tuple[slice, int]) -> _Row: ...

    @overload  # of one dimension it is a number
    def __getitem__(self: HasVectorType[_Row], key: int) -> _Row | Any: ...

    @overload
    def __getitem__(self, key: Any) -> Any: ...

    def __getitem__(self, key: Any) -> Any:
        """Return ``A[key]``: a scalar, a dense array of values for places one by one, else a sparse array.

        Parameters
        ----------
        key
            For each axis an integer, a slice, or an array, of integers or of booleans, on host or device; or a mask of A's shape,
            dense or sparse; besides these ``None`` and ``...``. The host waits once for rows, once for columns.

        Returns
        -------
        scalar, numpy.ndarray, pyopencl.array.Array or sparse array
            In SciPy's formats: of one dimension `coo_array`, of two A's own. ``A[rows, columns]`` of arrays is an array on the
            device if one of these is.

        Raises
        ------
        IndexError
            An index is out of range, of another type or shape, there are too many, or the result has more than two dimensions.
        ValueError
            An index is a number that is no integer.
        """
        if isinstance(key, (np.ndarray, cl_array.Array)) and (rows_taken := self._get_listed_rows(key)) is not None:
            return rows_taken
        parsed = parse(key, self.shape, self.queue)
        if len(parsed.shape) > 2:
            raise IndexError(
                f"index: gives {len(parsed.shape)} dimensions, a sparse array has at most two (>2D is not supported)"
            )
        A, is_transposed = self._compressed()
        rows, columns = _split_axes(parsed)
        if _are_points(rows, columns) or (len(self.shape) == 1 and isinstance(columns, Listed) and len(columns.shape) == 2):
            return self._get_points(rows, columns, parsed.shape)
        if parsed.shape == self.shape and parsed.index == tuple(map(range, self.shape)):
            return self.copy()  # type: ignore[attr-defined] # of each format
        result = select(A, columns, rows) if is_transposed else select(A, rows, columns)
        if len(parsed.shape) == 1 and len(self.shape) == 2:
            return _flatten(result)
        result = self._of_compressed(result)
        return result if result.shape == parsed.shape else result.reshape(parsed.shape)

    def _get_listed_rows(self, key: np.ndarray[Any, Any] | cl_array.Array) -> Any:
        """Return ``A[key]`` for an array of row indices or a device mask of rows, not parsed; None if ``key`` must be parsed."""
        if key.ndim != 1 or len(self.shape) != 2:
            return None
        on_host = isinstance(key, np.ndarray)
        if key.dtype not in _CHECKED_THERE if on_host else key.dtype.kind not in "biu":
            return None
        A, is_transposed = self._compressed()
        if is_transposed:
            return None
        A.require_valid()
        if isinstance(key, cl_array.Array) and key.dtype.kind == "b":
            result = take_marked_rows(A, key) if key.size == A.shape[0] else None
            return None if result is None else self._of_compressed(result)
        try:
            return self._of_compressed(take_listed_rows(A, key))
        except IndexError:
            if on_host:
                parse(key, self.shape)  # its error message has the index
            raise

    def _get_points(self, rows: Any, columns: Any, shape: tuple[int, ...]) -> Any:
        """Return ``A[rows, columns]`` of paired places: a scalar or dense array; sparse if A is 1-D or COO or places are 2-D.

        A single place gives a scalar, no places a sparse array.
        """
        A, is_transposed = self._compressed()
        places = _locate(A, is_transposed, rows, columns)
        listed = [positions for positions in (rows, columns) if isinstance(positions, Listed)]
        is_matrix = any(len(positions.shape) == 2 for positions in listed) or not places.size
        if shape and (is_matrix or self.format == "coo" or len(self.shape) == 1):
            places = places.transpose() if is_transposed else places
            matrix = matrix_of_values(A, values_at(A, places), places.shape)
            result = matrix.asformat(self.format) if len(self.shape) == 1 and is_matrix else self._of_compressed(matrix)
            return result if result.shape == shape else result.reshape(shape)
        values = values_at(A, places)
        if any(positions.is_given for positions in listed):
            return values.reshape(shape)  # type: ignore[no-untyped-call]
        return copy_to_host(values).reshape(shape)[()]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows as vectors in CSR form (those of a `coo_array` in COO form), or over the values of a vector."""
        if len(self.shape) == 1:
            return iter(self._compressed()[0].toarray()[0])
        rows = (self[i] for i in range(self.shape[0]))
        return rows if self.format == "coo" else (row.tocsr() for row in rows)

    def __setitem__(self, key: Any, values: Any) -> None:
        """Set ``A[key]``, see `__getitem__`, to a scalar, or to a dense or sparse array that is broadcast.

        The pattern stays as it is if all places have entries: then `data` is a new array, and plans stay. Else entries are
        inserted, also zeros, and all arrays are new. Of a place that is given several times, the last value counts. Of a sparse
        array the entries are assigned, and other places that have entries become 0. A coo array stores no zeros after that,
        but at single places and those of a sparse array, as SciPy's.

        Raises
        ------
        IndexError
            As for `__getitem__`.
        ValueError, TypeError, OverflowError
            The values cannot be broadcast to the places, or are none that the dtype holds.
        """
        rows, columns = _split_axes(parse(key, self.shape, self.queue))
        A, is_transposed = self._to_change()
        places = _locate(A, is_transposed, rows, columns)
        is_single = isinstance(rows, int) and isinstance(columns, int)
        drops_zeros = self.format == "coo" and not is_single
        if is_sparse(values) and not is_single:
            new_values = sparse_values(A.queue, values, A.dtype, places.shape)
            if places.size and 0 not in values.shape:
                zero = from_host(A.queue, np.zeros(1, A.dtype), copy=True)
                is_box = not _are_points(rows, columns)
                # Only places with entries are set to 0: a block of rows and columns may have far more places than entries.
                old_values = sparse_values(A.queue, self[key], A.dtype, places.shape) if is_box else None
                if old_values is not None or not is_box:
                    assign(A, places, Values(zero, 0, 0, None if old_values is None else old_values.listed), inserts=False)
            if drops_zeros:
                A.eliminate_zeros()
        else:
            dense = values.toarray() if is_sparse(values) else values
            new_values = dense_values(A.queue, dense, A.dtype, () if is_single else places.shape)
        n_new = 0 if new_values is None else assign(A, places, new_values)
        if drops_zeros and not is_sparse(values):
            A.eliminate_zeros()
        self._apply_change(A)
        if n_new:
            message = f"Inserting entries into a {self.format}_array is expensive; it is better made of all its entries at once"
            warn(message, scipy.sparse.SparseEfficiencyWarning)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the values on a diagonal of the matrix, in place; as for ``A[rows, columns] = values``.

        As in SciPy: an array of values changes the dtype to one that holds them too, but not that of a csr or csc array which had
        all places but a few.

        Parameters
        ----------
        values : scalar or array_like
            Of the first places of the diagonal: others stay, and values beyond it are left out.
        k : int
            Place i is in row i and column i + k or, if k is negative, in row i - k and column i.

        Raises
        ------
        ValueError
            The matrix has no such diagonal, or one dimension; or values have more than one.

        Examples
        --------
        >>> import clsparse_py as sp
        >>> A = sp.csr_array([[1, 2, 0], [0, 0, 3]])
        >>> A.setdiag([7, 8])
        >>> A.toarray()
        array([[7, 2, 0],
               [0, 8, 3]])
        """
        k = operator.index(k)
        if len(self.shape) != 2:
            raise ValueError("A: must have two dimensions, has one")
        n_rows, n_columns = self.shape
        if (k > 0 and k >= n_columns) or (k < 0 and -k >= n_rows):
            raise ValueError(f"k: exceeds the matrix of {n_rows} x {n_columns}, is {k}")
        diagonal_values = values if isinstance(values, cl_array.Array) else np.asarray(values)
        if diagonal_values.ndim > 1:
            raise ValueError(f"values: must be a scalar or have one dimension, have shape {diagonal_values.shape}")
        n = min(n_rows + min(k, 0), n_columns - max(k, 0))
        n = min(n, diagonal_values.size) if diagonal_values.ndim else n
        if n <= 0:
            return
        A, is_transposed = self._to_change()
        diagonal = Places((1, n), Spread(max(-k, 0), 0, 1), Spread(max(k, 0), 0, 1))
        own_dtype, wide = A.dtype, _common_dtype(A, diagonal_values)
        if wide != own_dtype:
            A.data = convert(A.queue, "data", A.data, wide)
        of_places = dense_values(A.queue, diagonal_values[:n] if diagonal_values.ndim else diagonal_values, wide, (n,))
        if of_places is not None:
            n_new = assign(A, diagonal.swap_axes() if is_transposed else diagonal, of_places)
            if wide != own_dtype and self.format != "coo" and 1000 * n_new < A.nnz - n_new:
                A.data = convert(A.queue, "data", A.data, own_dtype)
            self._apply_change(A)

    def resize(self, *shape: Any) -> None:
        """Change the shape of the array in place; entries outside of the new shape are dropped.

        Parameters
        ----------
        shape : int or tuple of int
            One or two; a csc array has two. A csr array of one dimension is a single row of one of two; those of a coo array
            count places row by row.

        Raises
        ------
        ValueError, TypeError
            They are no lengths, or of another number.

        Examples
        --------
        >>> import clsparse_py as sp
        >>> A = sp.csr_array([[1, 2, 0], [0, 0, 3]])
        >>> A.resize(3, 2)
        >>> A.toarray()
        array([[1, 2],
               [0, 0],
               [0, 0]])
        """
        new_shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        lengths = tuple(operator.index(length) for length in new_shape)
        if any(length < 0 for length in lengths):
            raise ValueError(f"shape: elements must not be negative, is {lengths}")
        if len(lengths) not in (1, 2):
            raise ValueError(f"shape: must have one or two lengths, has {len(lengths)}")
        if len(lengths) != len(self.shape):
            self._prepare_for(lengths)
        A, is_transposed = self._to_change()
        rows, columns = (1, *lengths)[-2:]
        resize(A, (columns, rows) if is_transposed else (rows, columns))
        self._apply_change(A)


def _split_axes(key: Key) -> tuple[Any, Any]:
    """Return the row indices and the column indices of a parsed key ``A[...]``; of an array of one dimension the row is 0."""
    return key.index if len(key.index) == 2 else (0, key.index[0])


def _locate(A: Matrix, is_transposed: bool, rows: Axis, columns: Axis) -> Places:
    """Return the places in A that indices of rows and columns select; if ``is_transposed``, the indices are of A's transpose."""
    shape = A.shape[::-1] if is_transposed else A.shape
    places = places_of(A.queue, shape, A.indptr.dtype, rows, columns)
    return places.swap_axes() if is_transposed else places


def _flatten(A: Matrix) -> Any:
    """Return a matrix of one row or column as a one-dimensional `coo_array`."""
    n_rows, n_columns = A.shape
    places = A.indices if n_rows == 1 else rows_of(A.queue, A.indptr, A.indices.size)
    vector = class_of_format("coo").over(A.queue, (n_columns if n_rows == 1 else n_rows,), (places,), A.data)
    vector.has_canonical_format = A.facts is not None and A.facts.canonical
    return vector


def assign(A: Any, places: Places, values: Values, *, inserts: bool = True) -> int:
    """Assign values to places of a `csr_array`, in place, and return the number of new entries; see `assign_to_parts`."""
    if not places.size:
        return 0
    A.sum_duplicates()
    parts = A.parts
    (data, indices, indptr), n_new = assign_to_parts(A.queue, parts, A.shape, places, values, inserts=inserts)
    if n_new:
        A._become(Structure.canonical(A.queue, A.shape, indices, indptr), data)
    else:
        A.data = data
    return n_new


def resize(A: Any, shape: tuple[int, int]) -> None:
    """Change the shape of a `csr_array` in place; entries outside of the new shape are dropped."""
    A.require_valid()
    rows, columns = shape
    resized = rows_at(A, range(rows)) if rows < A.shape[0] else A
    if columns < A.shape[1]:
        resized = columns_at(resized, range(columns))
    indptr = resized.indptr if rows <= A.shape[0] else _lengthen(A.queue, resized.indptr, rows + 1, resized.indices.size)
    structure = Structure(A.queue, shape, resized.indices, indptr, resized.facts)
    A._become(structure, resized.data)


def _lengthen(queue: cl.CommandQueue, offsets: cl_array.Array, n: int, end: int) -> cl_array.Array:
    """Return a matrix's row pointers lengthened to n numbers by repetitions of ``end``, for empty rows."""
    chain = Chain(queue, offsets)
    longer = allocate(queue, "indptr", n, offsets.dtype, offsets.allocator)
    chain.fill(longer, end, n)
    chain.copy(longer, offsets, offsets.size)
    chain.finish(longer)
    return longer


def _common_dtype(A: Matrix, values: Any) -> np.dtype[Any]:
    """Return the dtype that holds A's and assigned values: A's own for a scalar, or if the device lacks the common dtype."""
    wide: np.dtype[Any] = np.result_type(A.dtype, values.dtype) if values.ndim else A.dtype
    is_there = wide.name in OPENCL_TYPES and (not needs_fp64(wide) or describe(A.queue.device).fp64)
    return wide if is_there else A.dtype
