"""The operators and methods of SciPy's arrays that apply entry by entry, for the classes of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py.arithmetic import OPENCL_TYPES, needs_fp64, unsupported
from clsparse_py.convert import copied
from clsparse_py.device import describe
from clsparse_py.elementwise.comparison import with_dense, with_scalar, with_sparse
from clsparse_py.elementwise.union import canonical_parts, combined
from clsparse_py.elementwise.values import add_entries, dense_values, mapped, scaled
from clsparse_py.errors import DtypeError
from clsparse_py.matrix import Matrix, Structure, is_sparse
from clsparse_py.transfer import contexts_match, fetched, from_host

__all__ = ["Elementwise"]


class Elementwise(Matrix):
    """Base of matrices with operators that apply entry by entry.

    With a sparse matrix, ours or one of SciPy's in any format, the result is a matrix in canonical format without entries that
    are 0, as in SciPy; the host waits once, for their number. With a dense array the result is dense: NumPy for NumPy, device
    array for device array. With a scalar it shares the structure.
    """

    def __add__(self, other: Any) -> Any:
        """Return ``A + other``, of a sparse or dense matrix, or 0.

        Raises
        ------
        ValueError
            The shapes differ.
        NotImplementedError
            ``other`` is a scalar other than 0: the sum is dense, as SciPy says.
        """
        return self._sum(other, "plus")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """Return ``A - other``; as for ``A + other``."""
        return self._sum(other, "minus")

    def __rsub__(self, other: Any) -> Any:
        """Return ``other - A``; as for ``A + other``."""
        if _is_scalar(other):
            _require_zero(other, "subtracting a sparse array from")
            return -self
        if scipy.sparse.issparse(other):
            return self._like(other)._sum(self, "minus")
        return self._with_dense(other, 1, "minus")

    def _sum(self, other: Any, operator: str) -> Any:
        if _is_scalar(other):
            _require_zero(other, "adding" if operator == "plus" else "subtracting")
            return self._with_values(self._own_values())
        if is_sparse(other):
            return combined(operator, self, self._of_this_shape(other))
        return self._with_dense(other, 1 if operator == "plus" else -1, "plus")

    def __neg__(self) -> Self:
        """Return ``-A``.

        Raises
        ------
        NotImplementedError
            The values are booleans, as in SciPy.
        """
        if self.dtype.kind == "b":
            raise NotImplementedError("A: booleans have no negative; use A.astype(int)")
        return self._with_values(mapped(self, "negative"))

    def __abs__(self) -> Self:
        """Return the matrix of absolute values; duplicates are summed before, as in SciPy 1.17."""
        summed = self._without_duplicates(self.dtype)
        return summed._with_values(summed._own_values() if self.dtype.kind in "bu" else mapped(summed, "absolute"))

    def multiply(self, other: Any) -> Self:
        """Return the product entry by entry with a sparse matrix of the same shape, or with a scalar.

        Parameters
        ----------
        other : csr_array, SciPy sparse matrix or scalar

        Raises
        ------
        ValueError
            The shapes differ.
        TypeError
            ``other`` is neither.
        """
        if _is_scalar(other):
            return self._with_values(scaled(self, _scalar(other)))
        if is_sparse(other):
            return combined("multiply", self, self._of_this_shape(other))
        raise TypeError(f"other: must be a sparse matrix or a scalar, is {type(other).__name__}")

    def __mul__(self, other: Any) -> Any:
        """Return `multiply`."""
        return self.multiply(other) if _is_scalar(other) or is_sparse(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        """Return ``A / scalar``: as in SciPy, ``1 / scalar`` times the values as float64, or as they are if they are complex."""
        if not _is_scalar(other):
            return NotImplemented
        factor = 1 / _scalar(other)
        if not np.can_cast(self.dtype, np.float64):
            return self._with_values(scaled(self, factor))
        dtype = np.dtype(np.float64)
        # As by SciPy's astype: another dtype brings duplicates together.
        A = self if self.dtype == dtype else self._without_duplicates(dtype)
        return A._with_values(scaled(A, factor, dtype))

    def maximum(self, other: Any) -> Self:
        """Return the larger value of each entry and that of a sparse matrix of the same shape.

        Raises
        ------
        ValueError
            The shapes differ.
        TypeError
            ``other`` is no sparse matrix.
        """
        return self._chosen("maximum", other)

    def minimum(self, other: Any) -> Self:
        """Return the smaller value of each entry and that of a sparse matrix; as for `maximum`."""
        return self._chosen("minimum", other)

    def _chosen(self, operator: str, other: Any) -> Self:
        if not is_sparse(other):
            raise TypeError(f"other: must be a sparse matrix, is {type(other).__name__}")
        return combined(operator, self, self._of_this_shape(other))

    def __eq__(self, other: Any) -> Any:
        """Return where the entries are equal, as a sparse matrix of booleans; beside a dense array as a dense one.

        Warns with SciPy's `SparseEfficiencyWarning` if most of the result is True. Matrices of other shapes are not equal: False.
        """
        return self._compared(other, "eq")

    def __ne__(self, other: Any) -> Any:
        """Return where the entries differ; as for ``==``."""
        return self._compared(other, "ne")

    def __lt__(self, other: Any) -> Any:
        """Return where the entries are less; as for ``==``, but other shapes are an error."""
        return self._compared(other, "lt")

    def __gt__(self, other: Any) -> Any:
        """Return where the entries are greater; as for ``<``."""
        return self._compared(other, "gt")

    def __le__(self, other: Any) -> Any:
        """Return where the entries are less or equal; as for ``<``."""
        return self._compared(other, "le")

    def __ge__(self, other: Any) -> Any:
        """Return where the entries are greater or equal; as for ``<``."""
        return self._compared(other, "ge")

    # As SciPy's and NumPy's arrays, which compare by entries.
    __hash__ = None  # type: ignore[assignment] # the way to say so

    def _compared(self, other: Any, operator: str) -> Any:
        if _is_scalar(other):
            self.require_valid()
            return with_scalar(operator, self, _scalar(other))
        if is_sparse(other):
            if operator in ("eq", "ne") and tuple(other.shape) != self.shape:
                return operator == "ne"
            self.require_valid()
            return with_sparse(operator, self, self._of_this_shape(other))
        if not isinstance(other, (np.ndarray, cl_array.Array)):
            # As in SciPy: a list is an array; of other objects NumPy makes an array of one.
            other = np.asanyarray(other)
            if other.ndim == 0:
                return NotImplemented
        dense = self._of_same_shape(other)
        self.require_valid()
        if isinstance(dense, cl_array.Array):
            return with_dense(operator, self, self._aligned(dense))
        found = with_dense(operator, self, from_host(self.queue, np.ascontiguousarray(dense), copy=False))
        return fetched(found, self.queue)

    def conjugate(self, copy: bool = True) -> Self:
        """Return the matrix of complex conjugates.

        Parameters
        ----------
        copy : bool
            False: a matrix that is not complex is returned as it is.
        """
        if self.dtype.kind == "c":
            return self._with_values(mapped(self, "conjugate"))
        return self._with_values(self._own_values()) if copy else self

    conj = conjugate

    @property
    def real(self) -> Self:
        """The real parts, as a matrix of its own values."""
        return self._with_values(mapped(self, "real") if self.dtype.kind == "c" else self._own_values())

    @property
    def imag(self) -> Self:
        """The imaginary parts, as a matrix of its own values: stored zeros if A is not complex."""
        return self._with_values(mapped(self, "imag"))

    def _like(self, other: Any) -> Self:
        """Return a matrix of this class on this queue of SciPy's matrix."""
        return type(self)(other, queue=self.queue)  # type: ignore[call-arg] # of csr_array

    def _of_this_shape(self, other: Any) -> Matrix:
        """Return a sparse operand on the device, after its shape and context were checked."""
        if tuple(other.shape) != self.shape:
            raise ValueError(f"other: must have shape {self.shape} as A has, has {tuple(other.shape)} (inconsistent shapes)")
        if not isinstance(other, Matrix):
            return self._like(other)
        if other.context != self.context:
            raise ValueError("other: lives in another context than A")
        other.require_valid()
        return other

    def _without_duplicates(self, dtype: np.dtype[Any]) -> Self:
        """Return the matrix in canonical format, of values that were added up in a dtype; itself if it is in that format."""
        if self.has_canonical_format:
            return self
        data, indices, indptr = canonical_parts(self, dtype)
        return self.assembled(Structure.canonical(self.queue, self.shape, indices, indptr), data)

    def _own_values(self) -> cl_array.Array:
        self.require_valid()
        return copied(self.queue, "values of the result", self.data)

    def _with_values(self, values: cl_array.Array) -> Self:
        """Return a matrix of the same structure with other values."""
        structure = self.structure
        if values.dtype != self.dtype:
            # SpMV's plan is chosen for one dtype of values.
            structure = structure.copied(self.queue, self.indices, self.indptr)
        return self.assembled(structure, values)

    def _with_dense(self, other: Any, sign: int, operator: str) -> Any:
        """Return ``sign * other``, a dense operand, plus or minus this matrix."""
        if not isinstance(other, (np.ndarray, cl_array.Array)):
            return NotImplemented
        other = self._of_same_shape(other)
        dtype = np.result_type(self.dtype, other.dtype)
        if dtype.kind == "b" and (sign < 0 or operator == "minus"):
            raise TypeError("other: booleans are not subtracted; use astype(int)")
        if needs_fp64(dtype) and not describe(self.queue.device).fp64:
            raise DtypeError(f"other: {dtype} needs double precision, which {self.queue.device.name} lacks")
        # As in SciPy, which subtracts a dense matrix that it made before, in A's dtype.
        A = self._without_duplicates(self.dtype) if sign < 0 or operator == "minus" else self
        A.require_valid()
        dense = self._dense_copy(other, dtype, sign)
        add_entries(A, dense, operator)
        return dense if isinstance(other, cl_array.Array) else fetched(dense, self.queue)

    def _of_same_shape(self, other: Any) -> Any:
        """Return a dense operand of this shape; NumPy's is broadcast to it.

        Raises
        ------
        ValueError, TypeError
            It has another shape, context, or a dtype that is not supported.
        """
        if isinstance(other, np.ndarray):
            try:
                other = np.broadcast_to(other, self.shape)
            except ValueError:
                raise ValueError(f"other: must have shape {self.shape} or one that gives it, has {other.shape}") from None
        elif other.shape != self.shape:
            raise ValueError(f"other: must have shape {self.shape}, has {other.shape}")
        elif not contexts_match(other, self.context):
            raise ValueError("other: lives in another context than A")
        if other.dtype.name not in OPENCL_TYPES:
            raise unsupported("other", other.dtype)
        if not other.dtype.isnative:
            if isinstance(other, cl_array.Array):
                raise TypeError(f"other: must be in the host's byte order, is {other.dtype.str}")
            other = other.astype(other.dtype.newbyteorder("="))
        return other

    def _aligned(self, dense: cl_array.Array) -> cl_array.Array:
        """Return a device array whose values stand at multiples of their size in the buffer, as kernels count entries."""
        item = dense.dtype.itemsize
        is_aligned = not dense.offset % item and not any(step % item for step in dense.strides)
        return dense if is_aligned else copied(self.queue, "other", dense)

    def _dense_copy(self, other: Any, dtype: np.dtype[Any], sign: int) -> cl_array.Array:
        """Return ``sign * other`` as a C-contiguous device array of its own."""
        if isinstance(other, np.ndarray):
            host = np.ascontiguousarray(other, dtype)
            return from_host(self.queue, host if sign > 0 else -host, copy=True)
        return dense_values(self.queue, self._aligned(other), "positive" if sign > 0 else "negative", dtype)


def _is_scalar(value: Any) -> bool:
    return np.isscalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _scalar(value: Any) -> Any:
    """Return a scalar that is a number.

    Raises
    ------
    TypeError
        It is none.
    """
    found = value[()] if isinstance(value, np.ndarray) else value
    if np.asarray(found).dtype.kind not in "biufc":
        raise TypeError(f"other: must be a number, is {found!r}")
    return found


def _require_zero(scalar: Any, doing: str) -> None:
    if np.asarray(scalar).dtype.kind not in "biufc" or scalar != 0:
        raise NotImplementedError(f"other: {doing} a nonzero scalar is not supported, as the result is dense; is {scalar!r}")
