"""One-dimensional `csr_array`, which delegates operations to a matrix of one row."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from typing_extensions import Self, override

from clsparse_py._arrays.base import SparseArray, class_of_format
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.delegation import NO_LISTS, delegate, result_of
from clsparse_py._formats.parts import as_row, build_csr_parts
from clsparse_py._formats.zero_copy import on_memory_of
from clsparse_py._matrix.matrix import Sparse, is_sparse
from clsparse_py._operations.spgemm import spgemm
from clsparse_py._operations.spmv import SpmvPlan

if TYPE_CHECKING:
    from clsparse_py._arrays.coo import coo_array
    from clsparse_py._arrays.csc import csc_array

__all__ = ["csr_vector"]

#: Results of ``==`` and ``!=`` between a one-dimensional array and a matrix, whose shapes differ, by the operator's method.
_OTHER_SHAPES = {"__eq__": False, "__ne__": True}


class csr_vector(csr_array, one_dimensional=True):  # noqa: N801 - a csr_array
    """A `csr_array` of one dimension, which the constructor of `csr_array` returns; the structure is a matrix of one row."""

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
        zero_copy: bool = False,
    ) -> None:
        row: tuple[Any, Any] = on_memory_of(arg1, shape, dtype, queue, copy=copy) if zero_copy else as_row(arg1, shape, dtype)
        self._hold(*build_csr_parts(*row, dtype, queue, copy=copy, check=check))
        self.require_valid()
        self._print_at_most(maxprint)

    @property
    @override
    def shape(self) -> tuple[int]:  # type: ignore[override] # of one dimension
        """The array's length, as a tuple of one integer."""
        return (self._structure.shape[1],)

    @property
    def _row(self) -> csr_array:
        """The one-dimensional array as a matrix of one row, over the same device arrays."""
        matrix = csr_array.sharing(self)
        matrix._transpose_cache = self._transpose_cache
        return matrix

    def as_column(self) -> csr_array:
        """Return the array as a cached matrix of one column, which callers do not change; it is dropped if the array changes."""
        return self._row._transposed()

    @override
    def _as_csr(self) -> csr_array:
        """Return the array as a matrix of one row, in CSR form."""
        return self._row

    @property
    @override
    def T(self) -> Self:  # type: ignore[override] # of one dimension
        """The array itself, as an array of one dimension is its own transposed."""
        return self

    @override
    def transpose(self, axes: Any = None, copy: bool = False) -> Self:  # type: ignore[override] # of one dimension
        """Return the array itself or, with ``copy``, a copy with device arrays of its own."""
        if axes is not None and tuple(np.atleast_1d(axes)) not in ((0,), (-1,)):
            raise ValueError(f"axes: must be None or (0,), are {axes!r}")
        return self.copy() if copy else self

    @override
    def tocsc(self, copy: bool = False) -> csc_array:
        """Raise a ValueError, as in SciPy: a `csc_array` has two dimensions."""
        raise ValueError("A: Cannot convert an array of one dimension; csc_array takes two")

    @override
    def tocoo(self, copy: bool = True) -> coo_array:
        """Return the array in COO form; without ``copy``, over the same device arrays."""
        self.require_valid()
        A = self.copy() if copy else self
        array: coo_array = class_of_format("coo").over(A.queue, self.shape, (A.indices,), A.data)
        array.has_canonical_format = self.facts is not None and self.facts.canonical
        return array

    @override
    def _compressed(self) -> tuple[csr_array, bool]:
        """Return the matrix of one row that is indexed in place of the array; False says that the matrix is not transposed."""
        return self._row, False

    @override
    def _apply_change(self, A: csr_array) -> None:
        """Take over the arrays of A, the matrix of one row to which values were assigned."""
        self._become(A.structure, A.data)

    @override
    def _of_compressed(self, rows: csr_array) -> Self:
        """Return a selection from the array, which indexing made as ``rows``, a matrix of one row, as a one-dimensional array."""
        return self.sharing(rows)

    @override
    def spmv_plan(self) -> SpmvPlan:
        """Return the plan of ``A @ x``, made at the first call and kept until the structure is replaced."""
        return self._row.spmv_plan()

    @override
    def diagonal(self, k: int = 0) -> np.ndarray[Any, Any]:
        """Raise a ValueError, as in SciPy: a diagonal takes two dimensions."""
        raise ValueError("A: has one dimension; a diagonal requires two dimensions")

    @override
    def nonzero(self) -> tuple[np.ndarray[Any, Any], ...]:  # type: ignore[override] # of one dimension
        """Return the positions of stored entries that are not 0, as a NumPy array in a tuple."""
        return self._row.nonzero()[1:]

    @override
    def _times(self, dense: Any) -> Any:
        """Return the product ``A @ dense`` of the one-dimensional array A and a dense vector or matrix."""
        return self._row._times(dense)[0]

    @override
    def _dense_times(self, dense: Any) -> Any:
        """Return the product ``dense @ A`` of a dense vector or matrix and the one-dimensional array A."""
        return self._times(dense.T)

    @override
    def _times_sparse(self, other: SparseArray) -> Any:
        """Return the product ``A @ other`` of the one-dimensional array A and another sparse array of this package."""
        if other.ndim == 1:
            return spgemm(self._row, other.tocsr().as_column()).toarray().reshape(())
        return _drop_rows(spgemm(self._row, other._as_csr())).tocoo(copy=False)

    def _entrywise(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return the result of an elementwise operation, computed with one-dimensional operands as matrices of one row.

        A sparse matrix as operand is for products alone: ``==`` and ``!=`` give False and True, others raise a ValueError.
        """
        if any(is_sparse(argument) and argument.ndim == 2 for argument in arguments) and name not in (
            "multiply",
            "__mul__",
            "__rmul__",
        ):
            if name in _OTHER_SHAPES:
                return _OTHER_SHAPES[name]
            raise ValueError(f"other: must have shape {self.shape} as A has, has {arguments[0].shape} (inconsistent shapes)")
        if name in NO_LISTS and isinstance(arguments[0], (list, tuple)):
            return NotImplemented
        result = result_of(self._row, name, *map(_as_row, arguments), **named)
        is_flat = all(
            np.ndim(argument) < 2 if isinstance(argument, (list, tuple)) else getattr(argument, "ndim", 0) < 2
            for argument in arguments
        )
        return _drop_rows(result) if is_flat and getattr(result, "ndim", 0) == 2 else result

    def _along(self, name: str, axis: Any = None, *arguments: Any, **named: Any) -> Any:
        """Return the result of a reduction, such as a sum, over the whole one-dimensional array."""
        try:
            axes = None if axis is None else [operator.index(number) for number in (axis if isinstance(axis, tuple) else (axis,))]
        except TypeError:
            raise TypeError(f"axis: must be None or an integer, is {axis!r} (axis must be an integer)") from None
        if axes not in (None, [0], [-1]):
            raise ValueError(f"axis: must be None, 0 or -1, is {axis!r} (axis out of range)")
        return getattr(self._row, name)(None, *arguments, **named)


def _as_row(operand: Any) -> Any:
    """Return an operand of one dimension as a matrix of one row; other operands unchanged."""
    if isinstance(operand, csr_vector):
        return operand._row
    if isinstance(operand, Sparse) and operand.ndim == 1:
        return _as_row(operand.tocsr())
    if isinstance(operand, (list, tuple)):
        operand = np.asarray(operand)
    if getattr(operand, "ndim", 0) != 1:
        return operand
    if scipy.sparse.issparse(operand):
        return operand.reshape(1, -1)
    return operand.reshape(1, operand.shape[0])


def _drop_rows(row: Any) -> Any:
    """Return a matrix of one row, sparse or dense, as an array of one dimension."""
    if isinstance(row, csr_array):
        return csr_vector.sharing(row)
    return row.reshape(row.shape[1])


delegate(csr_vector)
csr_vector.__name__ = csr_vector.__qualname__ = "csr_array"  # the name that users know
