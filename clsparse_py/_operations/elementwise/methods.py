"""The operators and methods of SciPy's arrays that apply entry by entry, for the classes of sparse matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._device.device import describe
from clsparse_py._ground.errors import DtypeError
from clsparse_py._matrix.annotations import Number
from clsparse_py._matrix.matrix import Matrix, Sparse, is_sparse
from clsparse_py._operations.elementwise.comparison import (
    choose_with_dense,
    choose_with_scalar,
    compare_with_dense,
    compare_with_scalar,
    compare_with_sparse,
)
from clsparse_py._operations.elementwise.functions import Functions
from clsparse_py._operations.elementwise.operands import align, broadcast, dense_operand, is_scalar, scalar_of
from clsparse_py._operations.elementwise.products import (
    divide_by_dense,
    divide_by_sparse,
    format_of_product,
    times_dense,
    times_vector,
)
from clsparse_py._operations.elementwise.union import canonical_of, combine
from clsparse_py._operations.elementwise.values import add_entries, dense_values, scale
from clsparse_py._precision.arithmetic import needs_fp64, unsupported_dtype
from clsparse_py._run.transfer import copy_to_host, from_host

__all__ = ["Elementwise"]


class Elementwise(Functions):
    """Base of matrices with operators that apply entry by entry.

    With a sparse matrix, ours or one of SciPy's in any format, the result is a matrix in canonical format without entries that
    are 0, as in SciPy; the host waits once, for their number. With a dense array the result is dense: NumPy for NumPy, device
    array for device array. With a scalar it shares the structure.
    """

    @overload
    def __add__(self, other: Sparse) -> Self: ...

    @overload
    def __add__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __add__(self, other: Any) -> Any: ...

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

    @overload
    def __sub__(self, other: Sparse) -> Self: ...

    @overload
    def __sub__(self, other: cl_array.Array) -> cl_array.Array: ...

    @overload
    def __sub__(self, other: Any) -> Any: ...

    def __sub__(self, other: Any) -> Any:
        """Return ``A - other``; as for ``A + other``."""
        return self._sum(other, "minus")

    def __rsub__(self, other: Any) -> Any:
        """Return ``other - A``; as for ``A + other``."""
        if is_scalar(other):
            _require_zero(other, "subtracting a sparse array from")
            return -self
        if scipy.sparse.issparse(other):
            return self._from_scipy(other)._sum(self, "minus")
        return self._with_dense(other, 1, "minus")

    def _sum(self, other: Any, operator: str) -> Any:
        """Return A plus or minus a sparse matrix, a dense operand or the scalar 0, as ``operator`` says."""
        if isinstance(other, Matrix):  # the fastest check comes first
            return combine(operator, self, self._require_same_shape(other))
        if is_scalar(other):
            _require_zero(other, "adding" if operator == "plus" else "subtracting")
            return self.with_values(self._own_values())
        if is_sparse(other):
            return combine(operator, self, self._require_same_shape(other))
        return self._with_dense(other, 1 if operator == "plus" else -1, "plus")

    @overload
    def multiply(self, other: Matrix | Number) -> Self: ...

    @overload
    def multiply(self, other: Any) -> Any: ...

    def multiply(self, other: Any) -> Any:
        """Return the elementwise product of this matrix with a sparse or dense matrix or a scalar.

        Parameters
        ----------
        other : sparse array, array_like, pyopencl.array.Array or scalar
            A row or a column is multiplied with each row or column of A, and A, if it is one, with each of ``other``.

        Returns
        -------
        csr_array or coo_array
            Of a sparse operand in CSR form, without entries that are 0. Of a dense one in COO form, with A's entries; dense if A
            has one place, or if ``other`` has more than two dimensions, with which NumPy multiplies.

        Raises
        ------
        ValueError
            The shapes do not go together.
        TypeError
            The dtype is not supported, or the device lacks that of the result.
        """
        product = self._multiply(other)
        if product is NotImplemented:
            raise TypeError(f"other: must be a sparse or dense array of numbers or a scalar, is {type(other).__name__}")
        return product

    def _multiply(self, other: Any) -> Any:
        """Return the elementwise product of `multiply`; NotImplemented if ``other`` is no number and no array of numbers."""
        if isinstance(other, Matrix) and other.shape == self.shape:
            return combine("multiply", self, self._require_same_shape(other))
        if is_scalar(other):
            self.require_valid()
            return self.with_values(scale(self.queue, self.data, scalar_of("other", other)))
        if is_sparse(other):
            if tuple(other.shape) == self.shape:
                return combine("multiply", self, self._require_same_shape(other))
            result_format = format_of_product(("csr", other.format), self.shape, tuple(other.shape))
            product = self._multiply_repeated(other)
            return product.asformat(result_format) if result_format in ("csc", "coo") else product
        return self._operate_with_dense(other, times_dense)

    @overload
    def __mul__(self, other: Matrix | Number) -> Self: ...

    @overload
    def __mul__(self, other: Any) -> Any: ...

    def __mul__(self, other: Any) -> Any:
        """Return `multiply`."""
        return self._multiply(other)

    __rmul__ = __mul__

    def _multiply_repeated(self, other: Any) -> Any:
        """Return the elementwise product with a sparse operand of another shape; A or the operand is repeated along an axis."""
        B = other if isinstance(other, Elementwise) and len(other.shape) == 2 else self._from_scipy(_as_matrix(other))
        rows, columns = self.shape
        if B.shape == (1, 1):
            return self.multiply(B.toarray()[0, 0])  # type: ignore[attr-defined] # of csr_array
        if self.shape == (1, 1):
            return B.multiply(self.sum())  # type: ignore[attr-defined] # of csr_array
        if (rows, B.shape[1]) == (1, 1):
            return B @ self  # type: ignore[operator] # of csr_array
        if (columns, B.shape[0]) == (1, 1):
            return self @ B  # type: ignore[operator] # of csr_array
        for matrix, vector in ((self, B), (B, self)):
            if vector.shape in ((1, matrix.shape[1]), (matrix.shape[0], 1)):
                return times_vector(matrix, vector)
        raise ValueError(f"other: must have shape {self.shape}, a row or a column of it, has {other.shape} (inconsistent shapes)")

    def _operate_with_dense(self, other: Any, operate: Callable[[Any, Any], Any]) -> Any:
        """Return the elementwise product or quotient with a dense operand; NotImplemented if ``other`` is no array.

        ``operate`` is `times_dense` or `divide_by_dense`.
        """
        dense = dense_operand(self.context, other)
        if dense is None:
            return NotImplemented
        if dense.ndim > 2:
            if isinstance(dense, cl_array.Array):
                raise ValueError(f"other: must have at most two dimensions, has {dense.ndim}")
            factor = dense if operate is times_dense else np.divide(1, dense)
            return np.multiply(self.toarray(), factor)  # type: ignore[attr-defined] # of csr_array
        if dense.size == 1:
            value = (dense.get() if isinstance(dense, cl_array.Array) else dense).reshape(())[()]
            return self.multiply(value if operate is times_dense else np.divide(1, value))
        try:
            np.broadcast_shapes(self.shape, dense.shape)
        except ValueError:
            raise ValueError(f"other: must go with shape {self.shape}, has {dense.shape} (inconsistent shapes)") from None
        self.require_valid()
        return operate(self, dense)

    @overload
    def __truediv__(self, other: Number) -> Self: ...

    @overload
    def __truediv__(self, other: Any) -> Any: ...

    def __truediv__(self, other: Any) -> Any:
        """Return ``A / other``.

        By a scalar it is ``1 / scalar`` times the values as float64, or as they are if they are complex; by a dense matrix
        `multiply` of the inverse of each of its values, with A's entries; by a sparse matrix a dense NumPy array, NaN where both
        are 0: as in SciPy.
        """
        if is_sparse(other):
            return divide_by_sparse(self, self._require_same_shape(other))
        if not is_scalar(other):
            return self._operate_with_dense(other, divide_by_dense)
        factor = 1 / scalar_of("other", other)
        dtype = np.dtype(np.float64)
        if np.can_cast(self.dtype, dtype) and not describe(self.queue.device).fp64:
            instead = "use A.astype(dtype=np.float32) * (1 / other)"
            raise DtypeError(f"dtype: {self.dtype} / {other!r} is float64, which {self.queue.device.name} lacks; {instead}")
        # SciPy's astype adds up duplicates if the dtype changes.
        A = self if self.dtype == dtype or not np.can_cast(self.dtype, dtype) else canonical_of(self, dtype)
        A.require_valid()
        return A.with_values(scale(self.queue, A.data, factor, dtype if np.can_cast(self.dtype, dtype) else None))

    @overload
    def maximum(self, other: Sparse | Number) -> Self: ...

    @overload
    def maximum(self, other: Any) -> Any: ...

    def maximum(self, other: Any) -> Any:
        """Return the elementwise maximum of A and a sparse matrix of its shape, a dense one that broadcasts with it, or a scalar.

        Returns
        -------
        csr_array, numpy.ndarray or pyopencl.array.Array
            Sparse of a sparse operand and of a scalar: with a positive one it has an entry at each place, which draws SciPy's
            warning. Dense of a dense operand, and NaN if one of both is.

        Raises
        ------
        ValueError
            The shapes do not go together.
        NotImplementedError
            ``other`` is none of these, as in SciPy.
        """
        return self._choose("maximum", other)

    @overload
    def minimum(self, other: Sparse | Number) -> Self: ...

    @overload
    def minimum(self, other: Any) -> Any: ...

    def minimum(self, other: Any) -> Any:
        """Return the elementwise minimum of A and ``other``, as `maximum`; a negative scalar gives an entry at each place."""
        return self._choose("minimum", other)

    def _choose(self, operator: str, other: Any) -> Any:
        """Return the elementwise `maximum` or `minimum` of A and ``other``, as ``operator`` says."""
        self.require_valid()
        if is_scalar(other):
            return choose_with_scalar(operator, self, scalar_of("other", other))
        if is_sparse(other):
            return combine(operator, self, self._require_same_shape(other))
        dense = dense_operand(self.context, other)
        if dense is None:
            raise NotImplementedError(f"other: must be a sparse or dense array or a scalar, is {type(other).__name__}")
        return choose_with_dense(operator, self, dense)

    @overload
    def __eq__(self, other: Sparse | Number) -> Self: ...

    @overload
    def __eq__(self, other: Any) -> Any: ...

    def __eq__(self, other: Any) -> Any:
        """Return where the entries are equal, as a sparse matrix of booleans; beside a dense array as a dense one.

        Warns with SciPy's `SparseEfficiencyWarning` if most of the result is True. Matrices of other shapes are not equal: False.
        """
        return self._compare_with(other, "eq")

    @overload
    def __ne__(self, other: Sparse | Number) -> Self: ...

    @overload
    def __ne__(self, other: Any) -> Any: ...

    def __ne__(self, other: Any) -> Any:
        """Return where the entries differ; as for ``==``."""
        return self._compare_with(other, "ne")

    @overload
    def __lt__(self, other: Sparse | Number) -> Self: ...

    @overload
    def __lt__(self, other: Any) -> Any: ...

    def __lt__(self, other: Any) -> Any:
        """Return where the entries are less; as for ``==``, but other shapes are an error."""
        return self._compare_with(other, "lt")

    @overload
    def __gt__(self, other: Sparse | Number) -> Self: ...

    @overload
    def __gt__(self, other: Any) -> Any: ...

    def __gt__(self, other: Any) -> Any:
        """Return where the entries are greater; as for ``<``."""
        return self._compare_with(other, "gt")

    @overload
    def __le__(self, other: Sparse | Number) -> Self: ...

    @overload
    def __le__(self, other: Any) -> Any: ...

    def __le__(self, other: Any) -> Any:
        """Return where the entries are less or equal; as for ``<``."""
        return self._compare_with(other, "le")

    @overload
    def __ge__(self, other: Sparse | Number) -> Self: ...

    @overload
    def __ge__(self, other: Any) -> Any: ...

    def __ge__(self, other: Any) -> Any:
        """Return where the entries are greater or equal; as for ``<``."""
        return self._compare_with(other, "ge")

    # Arrays that compare by entries are not hashable, like SciPy's and NumPy's.
    __hash__ = None  # type: ignore[assignment] # the way to say so

    def _compare_with(self, other: Any, operator: str) -> Any:
        """Return the elementwise comparison of A with a scalar, a sparse or a dense operand, as ``operator`` says."""
        if is_scalar(other):
            self.require_valid()
            return compare_with_scalar(operator, self, other if isinstance(other, int) else scalar_of("other", other))
        if is_sparse(other):
            if operator in ("eq", "ne") and tuple(other.shape) != self.shape:
                return operator == "ne"
            self.require_valid()
            return compare_with_sparse(operator, self, self._require_same_shape(other))
        # NumPy makes an array of an operand that is a list, and an array of one object of other operands, as in SciPy.
        dense = dense_operand(self.context, other)
        if dense is None:
            return NotImplemented
        self.require_valid()
        return compare_with_dense(operator, self, dense)

    def _from_scipy(self, other: Any) -> Self:
        """Return one of SciPy's sparse matrices as a matrix of this class, on this matrix's queue."""
        return type(self)(other, queue=self.queue)  # type: ignore[call-arg] # of csr_array

    def _require_same_shape(self, other: Any) -> Matrix:
        """Return a sparse operand as a matrix on the device, after checks that it has this matrix's shape and context."""
        if tuple(other.shape) != self.shape:
            raise ValueError(f"other: must have shape {self.shape} as A has, has {tuple(other.shape)} (inconsistent shapes)")
        if not isinstance(other, Matrix):
            return self._from_scipy(other)
        if other.context != self.context:
            raise ValueError("other: lives in another context than A")
        other.require_valid()
        return other

    def _with_dense(self, other: Any, sign: int, operator: str) -> Any:
        """Return ``sign * other`` plus or minus this matrix, as ``operator`` says, for a dense ``other``; else NotImplemented."""
        if not isinstance(other, (np.ndarray, cl_array.Array)):
            return NotImplemented
        other = self._require_broadcastable(other)
        dtype = np.result_type(self.dtype, other.dtype)
        if dtype.kind == "b" and (sign < 0 or operator == "minus"):
            raise TypeError("other: booleans are not subtracted; use astype(int)")
        if needs_fp64(dtype) and not describe(self.queue.device).fp64:
            raise DtypeError(f"other: {dtype} needs double precision, which {self.queue.device.name} lacks")
        # Before a sum or difference with a dense operand SciPy makes A dense, in A's dtype, in which duplicates are summed.
        A = canonical_of(self, self.dtype) if sign < 0 or operator == "minus" else self
        A.require_valid()
        dense = self._dense_copy(other, dtype, sign)
        add_entries(A, dense, operator)
        return dense if isinstance(other, cl_array.Array) else copy_to_host(dense, self.queue)

    def _require_broadcastable(self, other: Any) -> Any:
        """Return a dense operand, checked to broadcast to this matrix's shape: a NumPy array broadcast, a device array as it is.

        Raises
        ------
        ValueError, TypeError
            It has another shape, context, or a dtype that is not supported.
        """
        if not _broadcasts(other.shape, self.shape):
            raise ValueError(f"other: must have shape {self.shape} or one that gives it, has {other.shape}")
        dense = dense_operand(self.context, other)
        if dense is None:
            raise unsupported_dtype("other", other.dtype)
        return np.broadcast_to(dense, self.shape) if isinstance(dense, np.ndarray) else dense

    def _dense_copy(self, other: Any, dtype: np.dtype[Any], sign: int) -> cl_array.Array:
        """Return a new C-contiguous device array: a dense operand, or 0 minus it if ``sign`` < 0, broadcast to A's shape."""
        if isinstance(other, np.ndarray):
            host = np.ascontiguousarray(other, dtype)
            return from_host(self.queue, host if sign > 0 else 0 - host, copy=True)
        dense = align(self.queue, other)
        repeated = dense if dense.shape == self.shape else broadcast(dense, self.shape)
        return dense_values(self.queue, repeated, "positive" if sign > 0 else "from_zero", dtype)


def _broadcasts(shape: tuple[int, ...], result_shape: tuple[int, ...]) -> bool:
    """Return whether NumPy broadcasts an array of ``shape`` to ``result_shape``."""
    return len(shape) <= len(result_shape) and all(n in (1, m) for n, m in zip(shape[::-1], result_shape[::-1], strict=False))


def _as_matrix(other: Any) -> Any:
    """Return a sparse operand of one dimension as a matrix of one row, other operands unchanged."""
    return other.reshape((1, *other.shape)) if other.ndim == 1 else other


def _require_zero(scalar: Any, doing: str) -> None:
    """Raise NotImplementedError unless a scalar is 0: a sum or difference with any other one is dense."""
    if np.asarray(scalar).dtype.kind not in "biufc" or scalar != 0:
        raise NotImplementedError(f"other: {doing} a nonzero scalar is not supported, as the result is dense; is {scalar!r}")
