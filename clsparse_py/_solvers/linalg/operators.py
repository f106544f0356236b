"""Linear operators of any origin (matrices, operators, functions) as functions of device vectors."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyopencl as cl
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.base import SparseArray, on_device
from clsparse_py._arrays.bsr import bsr_array
from clsparse_py._arrays.bsr.products import enqueue_product
from clsparse_py._build.plain import are_plain, door
from clsparse_py._device.device import describe
from clsparse_py._memory.memory import allocate, submit
from clsparse_py._operations.spmv import get_spmv_plan
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host
from clsparse_py._solvers.krylov import polynomials
from clsparse_py._solvers.krylov.system import Apply, GroupMatrices
from clsparse_py._solvers.krylov.thresholds import Thresholds

if TYPE_CHECKING:
    from clsparse_py._arrays.csr import csr_array

__all__ = ["DeviceOperator", "Diagonal", "bind_adjoint", "bind_operator", "cast_to", "fit_one_group", "is_function"]


class DeviceOperator(scipy.sparse.linalg.LinearOperator):  # type: ignore[misc] # SciPy has no types
    """A `scipy.sparse.linalg.LinearOperator` whose product is made on the device: the base of the preconditioners here.

    Solvers of this package give it device vectors; SciPy's, and PyAMG's, see an operator on NumPy arrays.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        Of the device that it lives on.
    """

    def __init__(self, dtype: Any, shape: tuple[int, int], queue: cl.CommandQueue) -> None:
        super().__init__(np.dtype(dtype), shape)
        self.queue = queue

    @abc.abstractmethod
    def bound(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
        """Return the function that enqueues the operator's product with vectors of a dtype, on a queue in order."""

    @override
    @door()
    def _matvec(self, x: Any) -> Any:
        """Return the product of the operator with a NumPy vector, made on the device."""
        dtype, queue = np.result_type(self.dtype, x.dtype), self.queue
        operand = copy_to_device(queue, "x", np.ravel(x).astype(dtype, copy=False))
        result = allocate(queue, "the product", operand.size, dtype)
        self.bound(queue, dtype)(operand, result)
        return copy_to_host(result, queue).reshape(x.shape)


class Diagonal(DeviceOperator):
    """The product with a diagonal matrix, whose entries are on the host."""

    def __init__(self, queue: cl.CommandQueue, diagonal: np.ndarray[Any, Any]) -> None:
        super().__init__(diagonal.dtype, (diagonal.size, diagonal.size), queue)
        self._diagonal = diagonal

    def diagonal_in(self, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return the diagonal's entries in the dtype of the preconditioned system."""
        diagonal: np.ndarray[Any, Any] = cast_to(self._diagonal, dtype)
        return diagonal

    @override
    def bound(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
        """Return the function that enqueues the product with the diagonal matrix."""
        return polynomials.jacobi(Chain(queue), copy_to_device(queue, "a diagonal", self.diagonal_in(dtype)))

    @override
    def _adjoint(self) -> Diagonal:
        """Return the conjugate transposed of the diagonal matrix, as an operator."""
        return Diagonal(self.queue, self._diagonal.conj())


def cast_to(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return the values of a preconditioner, a NumPy array or a sparse array, in the dtype of the preconditioned system.

    Raises
    ------
    TypeError
        The values are complex, and the system is real.
    """
    if values.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"M: is complex ({values.dtype}), but the system is real ({dtype})")
    return values.astype(dtype, copy=False)


def is_function(A: Any) -> bool:
    """Return whether an operator is a function of a vector: callable, without a shape and without ``matvec``."""
    return callable(A) and not hasattr(A, "shape") and not hasattr(A, "matvec")


def bind_operator(A: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
    """Return the function that enqueues an operator's product with device vectors of a dtype, on a queue in order.

    Sparse arrays, ours and SciPy's, are multiplied on the device, SciPy's from a copy there. A function takes a device array, and
    returns one, or a NumPy array. Any other operator, such as PyAMG's, is asked for ``matvec`` of a NumPy array: each product
    copies a vector to the host and one back.
    """
    if isinstance(A, DeviceOperator):
        return A.bound(queue, dtype)
    if scipy.sparse.issparse(A):
        A = on_device(queue, A)
    if isinstance(A, SparseArray):
        return _bind_array(A, queue, dtype)
    if is_function(A):
        return _wrap_function(A, queue, dtype)
    operator = _as_linear_operator(A)
    return _wrap_function(lambda x: operator.matvec(copy_to_host(x, queue)), queue, dtype)


def bind_adjoint(A: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
    """Return the function that enqueues the product of an operator's conjugate transposed with device vectors of a dtype.

    A sparse array is transposed once; any other operator is asked for ``rmatvec`` of a NumPy array.
    """
    if scipy.sparse.issparse(A):
        A = on_device(queue, A)
    if isinstance(A, SparseArray):
        turned = cast("Any", A).T.tocsr()
        return _bind_array(turned.conj() if turned.dtype.kind == "c" else turned, queue, dtype)
    operator = _as_linear_operator(A)
    return _wrap_function(lambda x: operator.rmatvec(copy_to_host(x, queue)), queue, dtype)


def _as_linear_operator(A: Any) -> scipy.sparse.linalg.LinearOperator:
    """Return SciPy's linear operator of a matrix or operator."""
    try:
        return scipy.sparse.linalg.aslinearoperator(A)
    except TypeError as error:
        kind = f"{type(A).__module__}.{type(A).__name__}"
        message = f"A, M: must be matrices of the host or one device, or operators, one is {kind}"
        raise TypeError(message) from error


def fit_one_group(A: Any, M: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> GroupMatrices | None:
    """Return the arrays of A and the preconditioner M if one work-group iterates sooner than launches of many, else None.

    A is a sparse array of the device; M is a sparse array, a diagonal, or None. Plain kernels have no work-groups: None.
    """
    arrays_of_A = None if are_plain() else _small_arrays(A, dtype)
    if arrays_of_A is None:
        return None
    if M is None:
        return {"A": arrays_of_A}
    arrays_of_M = (
        (copy_to_device(queue, "a diagonal", M.diagonal_in(dtype)),) if isinstance(M, Diagonal) else _small_arrays(M, dtype)
    )
    return None if arrays_of_M is None else {"A": arrays_of_A, "M": arrays_of_M}


def _small_arrays(A: Any, dtype: np.dtype[Any]) -> tuple[cl_array.Array, ...] | None:
    """Return the CSR arrays of a small sparse array, which one work-group can hold; None for any other size, dtype or operand."""
    if not isinstance(A, SparseArray) or A.dtype != dtype:
        return None
    limits = Thresholds.of(describe(A.queue.device))
    if A.nnz > limits.max_entries_together or A.shape[0] > limits.max_rows_together:
        return None
    rows = _ready_rows(A, dtype)
    return (rows.indptr, rows.indices, rows.data) if rows.data.offset == 0 else None


def _ready_rows(A: SparseArray, dtype: np.dtype[Any]) -> csr_array:
    """Return a sparse array as checked CSR, cast if products with vectors of a dtype would have another one; waits for writes."""
    rows = A._as_csr()
    if np.result_type(rows.dtype, dtype) != dtype:
        rows = cast_to(rows, dtype)
    rows.require_valid()
    for part in rows.parts:
        # Wait once for the events of the sparse array's parts, as every product would look for pending events again.
        for event in part.events:
            event.wait()
    return rows


def _bind_array(A: SparseArray, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
    """Return the function that enqueues a sparse array's product with vectors of a dtype, which is the product's dtype, too.

    Raises
    ------
    TypeError
        The array is complex, and the vectors are real.
    """
    if isinstance(A, bsr_array) and A.has_kernels:
        blocks = cast_to(A, dtype) if np.result_type(A.dtype, dtype) != dtype else A
        blocks.require_valid()
        return lambda x, y: enqueue_product(queue, blocks.data, blocks.structure, x, y)
    rows = _ready_rows(A, dtype)
    plan = get_spmv_plan(rows)

    def apply(x: cl_array.Array, y: cl_array.Array, alpha: float | None = None) -> None:
        """Enqueue ``y = alpha A x`` by the SpMV plan of A."""
        plan.execute(rows, x, y, alpha=alpha, queue=queue)

    apply.takes_alpha = True  # type: ignore[attr-defined] # see `clsparse_py._solvers.krylov.scaling`
    return apply


def _wrap_function(function: Callable[[Any], Any], queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
    """Return a function of vectors x and y that calls a user's function with x, and copies the result to y.

    Raises
    ------
    ValueError
        When the product is called: the function's result has another number of entries.
    """

    def apply(x: cl_array.Array, y: cl_array.Array) -> None:
        """Call the user's function with the vector x, and copy the product that it returns to y."""
        result = function(x)
        if isinstance(result, cl_array.Array) and result.dtype == dtype and result.size == y.size and result.flags.c_contiguous:
            chain = Chain(queue, result)
            begin = result.offset // dtype.itemsize
            chain.copy(y, result, y.size, 0, begin)
            return
        host = np.asarray(result.get() if isinstance(result, cl_array.Array) else result)
        if host.size != y.size:
            raise ValueError(f"M: gave a result of shape {host.shape} for a vector of {x.size} entries")
        if host.dtype.kind == "c" and dtype.kind != "c":
            raise TypeError(f"M: gave a result of dtype {host.dtype} for a vector of {dtype}")
        contiguous = np.ascontiguousarray(host.ravel(), dtype)
        submit("a vector", cl.enqueue_copy, queue, y.base_data, contiguous, is_blocking=True)

    return apply
