"""The arguments of the constructors of sparse arrays, converted to data, indices and indptr."""

from __future__ import annotations

import abc
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._formats.coordinates import from_coordinates
from clsparse_py._formats.dense_entries import entries_of
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix, Sparse, Structure
from clsparse_py._matrix.placement import (
    Parts,
    index_dtype,
    index_vector,
    place,
    place_part,
    queue_for,
    shape_of,
    value_dtype,
    value_dtype_on,
    vector,
)
from clsparse_py._matrix.structure import Facts, check_structure
from clsparse_py._memory.memory import array_of
from clsparse_py._precision.arithmetic import OPENCL_TYPES, unsupported_dtype

__all__ = [
    "SetStructure",
    "as_row",
    "build_csr_parts",
    "coordinates_of",
    "dense_values",
    "is_one_dimensional",
    "is_shape",
    "matrix_of",
    "require_two_dimensions",
]


def build_csr_parts(
    arg1: Any,
    shape: Any = None,
    dtype: Any = None,
    queue: cl.CommandQueue | None = None,
    *,
    copy: bool = False,
    check: bool = True,
) -> tuple[Structure, cl_array.Array]:
    """Return the structure, not yet checked, and the values of the matrix that the arguments of `csr_array` describe.

    Parameters
    ----------
    arg1, shape, dtype, copy, queue, check
        As for `csr_array`, of two dimensions.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is of no kind that is taken, or its parts do not go together; the message names the part.
    """
    shape = None if shape is None else shape_of(shape)
    is_canonical = False
    if isinstance(arg1, Sparse) and not isinstance(arg1, Matrix):
        arg1, copy = arg1.tocsr(copy=copy), False
    if isinstance(arg1, Matrix):
        parts, own_shape = (arg1.data, arg1.indices, arg1.indptr), arg1.structure.shape
    else:
        parts, own_shape, is_canonical = _parts_of(arg1, shape, dtype, queue)
    if shape is not None and shape[0] == own_shape[0] and shape[1] > own_shape[1]:
        own_shape = shape  # with more columns, as SciPy allows
    if shape not in (None, own_shape):
        raise ValueError(f"shape: {shape} differs from that of arg1, {own_shape} (inconsistent shapes)")
    queue = queue_for(parts, queue)
    # Arrays in canonical format were made by `_parts_of`: nobody else has the arrays, so that they are not copied.
    data, indices, indptr = place(queue, parts, own_shape, dtype, copy=copy and not is_canonical)
    if is_canonical:
        return Structure.canonical(queue, own_shape, indices, indptr), data
    if not isinstance(arg1, Matrix):
        return Structure(queue, own_shape, indices, indptr, vouched=not check), data
    if own_shape != arg1.structure.shape:
        return Structure(queue, own_shape, indices, indptr, arg1.facts), data
    shared = indices is arg1.indices and indptr is arg1.indptr and queue == arg1.queue
    return arg1.structure if shared else arg1.structure.copied(queue, indices, indptr), data


def matrix_of(queue: cl.CommandQueue, value: Any) -> Matrix:
    """Return a sparse array of two dimensions and any format, ours or SciPy's, as a `Matrix`, whose structure is not checked."""
    return value if isinstance(value, Matrix) else Matrix.assembled(*build_csr_parts(value, queue=queue))


def is_shape(arg1: Any) -> bool:
    """Return whether a constructor's first argument is a shape: a tuple of integers."""
    return isinstance(arg1, tuple) and bool(arg1) and all(isinstance(length, (int, np.integer)) for length in arg1)


def coordinates_of(arg1: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the coordinates of a constructor's tuple ``(data, coordinates)``, an array for each axis; None for other tuples."""
    if len(arg1) != 2:
        return None
    is_table = isinstance(arg1[1], np.ndarray | cl_array.Array) and arg1[1].ndim == 2
    return tuple(arg1[1]) if is_table or isinstance(arg1[1], (tuple, list)) else None


def is_one_dimensional(arg1: Any, shape: Any = None) -> bool:
    """Return whether a constructor's arguments describe an array of one dimension."""
    if shape is not None:
        return isinstance(shape, (int, np.integer)) or (hasattr(shape, "__len__") and len(shape) == 1)
    if isinstance(arg1, tuple):
        return len(arg1) == 1 if is_shape(arg1) else len(coordinates_of(arg1) or ()) == 1
    if isinstance(arg1, list):
        return np.ndim(arg1) == 1
    return getattr(arg1, "ndim", 2) == 1


def as_row(arg1: Any, shape: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the constructor arguments of a one-dimensional array as those of a matrix with one row."""
    wide = None
    if shape is not None:
        (n,) = shape if np.ndim(shape) else (shape,)
        wide = 1, operator.index(n)
    if isinstance(arg1, Sparse):
        return arg1.tocsr(), wide
    if scipy.sparse.issparse(arg1):
        return scipy.sparse.coo_array(arg1).reshape(1, -1), wide
    if is_shape(arg1):
        return (1, *arg1), wide
    if isinstance(arg1, tuple):
        coordinates = coordinates_of(arg1)
        if coordinates is None or len(coordinates) != 1:
            return arg1, wide
        return (arg1[0], (np.zeros(np.shape(coordinates[0]), np.int32), *coordinates)), wide
    if isinstance(arg1, cl_array.Array):
        if arg1.ndim == 1:
            queue = queue_for((arg1,), None)
            values = convert(queue, "arg1", arg1, np.dtype(arg1.dtype))
            row = array_of(queue, (1, arg1.size), values.dtype, values.base_data)
            row.events.extend(values.events)
            return row, wide
        return arg1, wide
    return np.atleast_2d(dense_values(arg1, dtype)), wide


def _parts_of(
    arg1: Any, shape: tuple[int, int] | None, dtype: Any, queue: cl.CommandQueue | None
) -> tuple[Parts, tuple[int, int], bool]:
    """Return a constructor's matrix as CSR arrays, on host or device, its shape, and whether the arrays are new and canonical.

    Parameters
    ----------
    arg1, shape, dtype, queue
        As for `csr_array`; ``arg1`` is no sparse array of this package.

    Raises
    ------
    ValueError, TypeError
        ``arg1`` is of no kind that is taken; the message names the part.
    """
    if scipy.sparse.issparse(arg1):
        return *_from_scipy(arg1), False
    if isinstance(arg1, cl_array.Array):
        return _from_device(arg1, queue)
    if not isinstance(arg1, tuple):
        return *_from_scipy(_from_dense(arg1, shape, dtype)), False
    if is_shape(arg1):
        return *_empty(shape_of(arg1), dtype), False
    coordinates = coordinates_of(arg1)
    if coordinates is not None and len(coordinates) == 2:
        return *_from_coordinates(arg1[0], *coordinates, shape, dtype, queue), True
    return *_from_tuple(arg1, shape, dtype), False


def _empty(shape: tuple[int, int], dtype: Any) -> tuple[Parts, tuple[int, int]]:
    """Return the CSR arrays of a matrix without entries, and its shape; the dtype is float64 by default, as in SciPy."""
    index = index_for(max(shape))
    return (np.zeros(0, dtype), np.zeros(0, index), np.zeros(shape[0] + 1, index)), shape


def _from_scipy(matrix: Any) -> tuple[Parts, tuple[int, int]]:
    """Return the CSR arrays and the shape of a sparse matrix of SciPy, on the host."""
    if matrix.ndim != 2:
        raise ValueError(f"arg1: must have two dimensions, has {matrix.ndim}")
    rows = matrix.tocsr()
    return (rows.data, rows.indices, rows.indptr), (int(rows.shape[0]), int(rows.shape[1]))


def dense_values(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return a constructor's first argument as a dense array on the host, which has a dtype that kernels take, or is to get one.

    Raises
    ------
    TypeError, ValueError
        The argument is None, a scalar, or of another dtype although ``dtype`` is None; or kernels do not take ``dtype``.
    """
    if values is None:
        raise TypeError("arg1: must be a sparse matrix, a dense array or a tuple of arrays, is None")
    if np.isscalar(values):
        no_such = "scipy sparse array classes do not support instantiation from a scalar"
        raise ValueError(f"arg1: must be a sparse matrix, a dense array or a tuple of arrays, is {values!r} ({no_such})")
    dense = np.asarray(values)
    value_dtype("arg1" if dtype is None else "dtype", dense.dtype if dtype is None else dtype)
    return dense


def require_two_dimensions(dense: Any) -> None:
    """Raise a ValueError unless a constructor's dense argument, of the host or the device, has two dimensions."""
    if dense.ndim != 2:
        no_such = f"shape {dense.shape}; arrays don't support {dense.ndim}D"
        raise ValueError(f"arg1: a dense array must have two dimensions, has {dense.ndim} ({no_such})")


def _from_device(dense: cl_array.Array, queue: cl.CommandQueue | None) -> tuple[Parts, tuple[int, int], bool]:
    """Return the CSR arrays and the shape of a dense matrix on the device, and True, as the arrays are canonical."""
    if dense.dtype.name not in OPENCL_TYPES or not dense.dtype.isnative:
        raise unsupported_dtype("arg1", dense.dtype)
    require_two_dimensions(dense)
    rows, columns = dense.shape
    if not dense.size:
        return *_empty((rows, columns), dense.dtype), True
    return entries_of(queue_for((dense,), queue), dense), (rows, columns), True


def _from_dense(values: Any, shape: tuple[int, int] | None, dtype: Any) -> scipy.sparse.csr_array:
    """Return a dense host matrix as SciPy's CSR array; a vector becomes one row if ``shape`` is given, else raises an error."""
    dense = dense_values(values, dtype)
    if not dense.ndim:
        raise TypeError("arg1: must be a sparse matrix, a dense array or a tuple of arrays, is an array without dimensions")
    if dense.ndim == 1 and shape is not None:
        dense = dense[None]  # a row of the shape that is asked for
    require_two_dimensions(dense)
    return scipy.sparse.csr_array(dense, dtype=dtype)


def _from_tuple(arg1: tuple[Any, ...], shape: tuple[int, int] | None, dtype: Any) -> tuple[Parts, tuple[int, int]]:
    """Return the data, indices and indptr of a constructor's tuple of these three parts, and the shape of the matrix."""
    if len(arg1) != 3:
        raise ValueError(f"arg1: a tuple must be (data, indices, indptr) or (data, (row, col)) or a shape, has {len(arg1)} parts")
    data = vector("data", arg1[0], dtype)
    indices, indptr = (_integers(name, part) for name, part in zip(("indices", "indptr"), arg1[1:], strict=True))
    if not indptr.size:
        raise ValueError("indptr: must have rows + 1 entries, has none")
    if shape is None:
        if not indices.size:
            raise ValueError("shape: cannot be told from arrays without entries; give it")
        largest = indices.get().max() if isinstance(indices, cl_array.Array) else indices.max()
        shape = indptr.size - 1, max(int(largest) + 1, 0)
    return (data, indices, indptr), shape


def _integers(name: str, part: Any) -> Any:
    """Return `indices` or `indptr` as an array of integers; whole numbers in floats of the host are converted, as by SciPy.

    Raises
    ------
    TypeError
        The index array holds other numbers than integers.
    """
    if isinstance(part, cl_array.Array) or np.asarray(part).dtype.kind != "f":
        return index_vector(name, part)
    floats = np.asarray(part)
    numbers = floats.astype(np.int64)
    return index_vector(name, numbers if np.array_equal(numbers, floats) else floats)


def _from_coordinates(
    data: Any, row: Any, col: Any, shape: tuple[int, int] | None, dtype: Any, queue: cl.CommandQueue | None
) -> tuple[Parts, tuple[int, int]]:
    """Return the CSR arrays, in canonical format, and the shape of a matrix given by coordinates."""
    data, row, col = vector("data", data, dtype), index_vector("row", row), index_vector("col", col)
    queue = queue_for((data, row, col), queue)
    return from_coordinates(queue, data, {"row": row, "col": col}, shape, value_dtype_on(queue, data.dtype, dtype))


class SetStructure:
    """Base of `csr_array` and `bsr_array`, whose `indices` and `indptr` may be set, and be declared sorted or canonical."""

    _structure: Structure
    _data: cl_array.Array
    #: The index arrays that the user set, in their own index types, by name.
    _set_arrays: dict[str, cl_array.Array]

    if TYPE_CHECKING:

        @property
        def queue(self) -> cl.CommandQueue:
            """The command queue of the matrix's device."""

        def _become(self, structure: Structure, data: cl_array.Array) -> None: ...
        def _checked(self) -> Facts: ...
        def copy(self) -> Self: ...
        def require_valid(self) -> None: ...

    @property
    def indices(self) -> cl_array.Array:
        """The column of each entry or block of the matrix, a device array of int32 or int64.

        Setting it replaces the structure: plans are dropped.

        The matrix does not notice if you write into the array in place: it goes on with what it knows of the old columns (whether
        rows are sorted, whether the pattern is symmetric) and with the plans made for them. Say ``A.indices = A.indices`` after
        that: the structure is checked again before its next use. Do the same for other matrices that share the array, and make
        plans anew that you keep yourself.
        """
        return self._structure.indices

    @indices.setter
    def indices(self, columns: Any) -> None:
        """Replace the columns of the matrix's entries or blocks."""
        self._replace("indices", columns)

    @property
    def indptr(self) -> cl_array.Array:
        """The row pointers of the matrix's entries or blocks. Setting `indptr` replaces the structure, as for `indices`.

        If you write into the array in place, say ``A.indptr = A.indptr`` after that, as for `indices`.
        """
        return self._structure.indptr

    @indptr.setter
    def indptr(self, offsets: Any) -> None:
        """Replace the row pointers of the matrix's entries or blocks."""
        n_pointers = self._structure.shape[0] + 1
        if np.size(offsets) != n_pointers:
            raise ValueError(f"indptr: must have {n_pointers} entries, has {np.size(offsets)}")
        self._replace("indptr", offsets)

    def check_format(self, full_check: bool = True) -> None:
        """Check the structure of the matrix: `indices` and `indptr`.

        Parameters
        ----------
        full_check : bool
            True: the structure is checked again, even if it is known to be valid.

        Raises
        ------
        ValueError
            The structure is not valid; the message says why.
        """
        self.require_valid()
        if full_check:
            check_structure(self.queue, self._structure.shape, self.indices, self.indptr)

    def prune(self) -> None:
        """Drop the entries or blocks that are stored after those of the last row of the matrix."""
        self.require_valid()

    @abc.abstractmethod
    def sort_indices(self) -> None:
        """Sort the entries or blocks of each row of the matrix by column, in place."""

    def sorted_indices(self) -> Self:
        """Return a copy of the matrix with the columns of each row in ascending order, as `sort_indices` leaves them."""
        result = self.copy()
        result.sort_indices()
        return result

    def _replace(self, name: str, array: Any) -> None:
        """Replace the matrix's ``indices`` or ``indptr``: it has another structure then, which is checked before its first use.

        The index type of the structure is the wider one of the arrays that were set.
        """
        shape, values = self._structure.shape, index_vector(name, array)
        self._set_arrays[name] = place_part(self.queue, name, values, index_dtype((values,), shape), copy=False)
        parts = {
            part_name: self._set_arrays.get(part_name, getattr(self._structure, part_name)) for part_name in ("indices", "indptr")
        }
        index = index_dtype(parts.values(), shape)
        indices, indptr = (
            part if part.dtype == index else convert(self.queue, part_name, part, index) for part_name, part in parts.items()
        )
        set_arrays = self._set_arrays
        self._become(Structure(self.queue, shape, indices, indptr, vouched=False), self._data)
        self._set_arrays = set_arrays

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the columns of each row of the matrix ascend, perhaps with duplicates. A value that is set is trusted."""
        return self._checked().sorted

    @has_sorted_indices.setter
    def has_sorted_indices(self, is_sorted: bool) -> None:
        """Declare the columns of the matrix's rows sorted, or not sorted."""
        self._believe(is_sorted=bool(is_sorted), is_canonical=bool(is_sorted) and self._checked().canonical)

    @property
    def has_canonical_format(self) -> bool:
        """Whether the columns of each of the matrix's rows are sorted and without duplicates. A value that is set is trusted."""
        return self._checked().canonical

    @has_canonical_format.setter
    def has_canonical_format(self, is_canonical: bool) -> None:
        """Declare the matrix's rows sorted and without duplicates (canonical), or not."""
        self._believe(is_sorted=bool(is_canonical) or self._checked().sorted, is_canonical=bool(is_canonical))

    def _index_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the matrix's `indices` and `indptr`."""
        return np.dtype(self.indptr.dtype)

    def _believe(self, *, is_sorted: bool, is_canonical: bool) -> None:
        """Replace the structure's facts, whether rows are sorted and canonical, by facts that the caller vouches for."""
        facts = self._checked()
        believed = Facts(facts.nnz, sorted=is_sorted, canonical=is_canonical, longest=facts.longest, adjacent=facts.adjacent)
        if believed != facts:
            self._become(Structure(self.queue, self._structure.shape, self.indices, self.indptr, believed), self._data)
