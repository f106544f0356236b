"""SpMM, ``Y = A @ X`` for a dense X of several columns: `choose` decides, `cuts` cuts A into parts, `plan` holds launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.plain import are_plain, door
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.operands import check_matrix, check_scale, dense_operand, require_calls, result_for
from clsparse_py._operations.spmm.plan import Explanation, SpmmPlan
from clsparse_py._precision.semiring import Semiring, plus_times

if TYPE_CHECKING:
    import numpy.typing as npt

    from clsparse_py._matrix.annotations import Scalar

__all__ = ["Explanation", "SpmmPlan", "get_spmm_plan", "spmm", "spmm_plan"]


@door()
def spmm_plan(A: Matrix, *, work_group: int | None = None, expected_calls: int | None = None) -> SpmmPlan:
    """Plan products ``A @ X`` of a sparse A and a dense X; kernels are chosen at the first product with each number of columns.

    Parameters
    ----------
    A : csr_array
        Its values may change between products, its structure may not.
    work_group : int, optional
        Work-items in a work-group, in place of those that the plan would choose; a number that the device does not take becomes
        the nearest that it does.
    expected_calls : int, optional
        How many products there will be, as of `spmv_plan`.

    Returns
    -------
    SpmmPlan
        To be given to `spmm`; ``plan.explain()`` says what was decided and why.

    Raises
    ------
    TypeError
        A is no csr_array, or ``work_group`` no integer.

    Notes
    -----
    Yang, Buluc and Owens, "Design Principles for Sparse Matrix Multiplication on the GPU", Euro-Par 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> plan = sp.spmm_plan(A)
    >>> Y = sp.spmm(A, np.eye(2, dtype=int), plan=plan)
    >>> plan.explain().products[0].columns
    2
    """
    check_matrix(A)
    _check_work_group(work_group)
    require_calls(expected_calls)
    return SpmmPlan(A, work_group, expected_calls)


def _check_work_group(work_group: Any) -> None:
    """Raise a TypeError if a caller's work-group size is neither an integer nor None."""
    if work_group is not None and not isinstance(work_group, (int, np.integer)):
        raise TypeError(f"work_group: must be an integer, is {type(work_group).__name__}")


@overload
def spmm(
    A: Matrix,
    X: cl_array.Array,
    *,
    alpha: Scalar | None = ...,
    beta: Scalar | None = ...,
    out: cl_array.Array | None = ...,
    semiring: Semiring = ...,
    plan: SpmmPlan | None = ...,
    work_group: int | None = ...,
) -> cl_array.Array: ...


@overload
def spmm(
    A: Matrix,
    X: npt.ArrayLike,
    *,
    alpha: Scalar | None = ...,
    beta: Scalar | None = ...,
    out: npt.NDArray[Any] | None = ...,
    semiring: Semiring = ...,
    plan: SpmmPlan | None = ...,
    work_group: int | None = ...,
) -> npt.NDArray[Any]: ...


def spmm(
    A: Matrix,
    X: Any,
    *,
    alpha: Any = None,
    beta: Any = None,
    out: Any = None,
    semiring: Semiring = plus_times,
    plan: SpmmPlan | None = None,
    work_group: int | None = None,
) -> Any:
    """Multiply a sparse matrix with a dense one: ``Y = alpha * A @ X + beta * Y``.

    Parameters
    ----------
    A : csr_array
        m x n. Rows may be unsorted, empty, and hold duplicates.
    X : pyopencl.array.Array or array_like, shape (n, k)
        In C or Fortran order or any other strides. With a device array nothing waits, and the product is enqueued on its queue.
    alpha, beta, out, semiring
        As for `clsparse_py.spmv`; ``out`` has shape (m, k) and is C-contiguous.
    plan : SpmmPlan, optional
        Of `spmm_plan` for this structure; by default the one that is kept on A.
    work_group : int, optional
        Work-items in a work-group, as of `spmm_plan`.

    Returns
    -------
    pyopencl.array.Array or numpy.ndarray, shape (m, k)
        C-contiguous.

    Raises
    ------
    ValueError, TypeError
        A wrong shape, dtype or context, or a plan of another structure; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> sp.spmm(sp.csr_array([[1, 2], [0, 3]]), np.array([[1, 0], [1, 1]]))
    array([[3, 2],
           [3, 3]])
    """
    if plan is None and work_group is None and isinstance(A, Matrix) and isinstance(X, cl_array.Array) and len(A.shape) == 2:
        cached_plan: SpmmPlan | None = A.structure.find_plan(SpmmPlan)
        repeated = None if cached_plan is None else cached_plan.again(A.data, X, alpha, beta, out, semiring)
        if repeated is not None:
            return repeated  # a repeated product builds no kernel: no `door` is needed
    return _multiply(A, X, alpha, beta, out, semiring, plan, work_group)


@door()
def _multiply(
    A: Matrix, X: Any, alpha: Any, beta: Any, out: Any, semiring: Semiring, plan: SpmmPlan | None, work_group: int | None
) -> Any:
    """Check `spmm`'s operands, and return ``alpha * A @ X + beta * out``, by the given plan or A's own."""
    check_matrix(A)
    _check_work_group(work_group)
    if plan is None:
        plan = get_spmm_plan(A)
    elif not isinstance(plan, SpmmPlan):
        raise TypeError(f"plan: must be an SpmmPlan, is {type(plan).__name__}")
    elif not plan.matches(A):
        raise ValueError("plan: was made for another structure than A's")
    elif are_plain():
        plan = get_spmm_plan(A)
    operand, on_device = dense_operand(A, "X", X, ndim=2)
    dtype = check_scale(A, operand, alpha, beta, out, semiring)
    shape = (A.shape[0], int(operand.shape[1]))
    result = result_for(A, "X", operand, X, out, dtype, shape, on_device=on_device)
    y = result.array
    if y.size:
        item = y.dtype.itemsize
        is_new = y is not out if operand is X and work_group is None else None
        plan.enqueue(A, operand, y, (shape[1] * item, item), shape[1], alpha, beta, semiring, work_group, is_new=is_new)
    return result.deliver()


def get_spmm_plan(A: Matrix) -> SpmmPlan:
    """Return the plan of ``A @ X`` that A's structure keeps; the first call makes the plan."""
    return A.structure.get_plan(SpmmPlan, lambda: SpmmPlan(A))
