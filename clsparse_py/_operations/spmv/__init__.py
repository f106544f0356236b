"""SpMV, ``y = A @ x``: inspect (`features`), decide (`choose`), plan (`builder`); held by `plan`, which records products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from pyopencl import array as cl_array

from clsparse_py._build.plain import are_plain, door
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.operands import check_matrix, check_scale, dense_operand, require_calls, result_for
from clsparse_py._memory.order import note_written
from clsparse_py._operations.spmm import get_spmm_plan
from clsparse_py._operations.spmv.binning import GRANULARITIES, Scheme, SchemeName
from clsparse_py._operations.spmv.choose import KERNELS, Explanation, KernelChoice, KernelName
from clsparse_py._operations.spmv.plan import SpmvPlan
from clsparse_py._precision.semiring import Semiring, plus_times
from clsparse_py._run.launch import Chain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyopencl as cl

    from clsparse_py._matrix.annotations import Scalar
    from clsparse_py._operations.spmv.shared import SharedSpmvPlan

__all__ = [
    "GRANULARITIES",
    "KERNELS",
    "Explanation",
    "KernelChoice",
    "KernelName",
    "Scheme",
    "SchemeName",
    "SpmvPlan",
    "get_spmv_plan",
    "spmv",
    "spmv_plan",
]

#: The message of the error that `spmv` raises for a plan of another structure than A's.
_OF_ANOTHER = "plan: was made for another structure than A's"


def get_spmv_plan(A: Matrix) -> SpmvPlan:
    """Return the plan of ``A @ x`` that A's structure keeps for values of A's dtype; the first call makes the plan."""
    return A.structure.get_plan((SpmvPlan, A.data.dtype), lambda: spmv_plan(A))


@overload
def spmv_plan(
    A: Matrix,
    *,
    scheme: Literal["auto", SchemeName] | Scheme = ...,
    kernel: KernelName | KernelChoice | None = ...,
    expected_calls: int | None = ...,
) -> SpmvPlan: ...


@overload
def spmv_plan(
    A: Matrix,
    *,
    scheme: Literal["auto", SchemeName] | Scheme = ...,
    kernel: KernelName | KernelChoice | None = ...,
    queues: Sequence[cl.CommandQueue],
    expected_calls: int | None = ...,
) -> SharedSpmvPlan: ...


@door()
def spmv_plan(
    A: Matrix,
    *,
    scheme: Literal["auto", SchemeName] | Scheme = "auto",
    kernel: KernelName | KernelChoice | None = None,
    queues: Sequence[cl.CommandQueue] | None = None,
    expected_calls: int | None = None,
) -> SpmvPlan | SharedSpmvPlan:
    """Plan products ``A @ x``: inspect A's structure on the device and decide which kernels take which rows.

    Parameters
    ----------
    A : csr_array
        Its values may change between products, its structure may not.
    scheme : {"auto", "single", "fine", "coarse", "hybrid"} or Scheme
        How rows are binned: "auto" leaves it to the profile that serves the device; "single" (all rows in order); "fine";
        "coarse" or "hybrid" with 100 adjacent rows to a virtual row. ``Scheme.parse("coarse-50")``, or the string itself, has
        another granularity, one of `GRANULARITIES` in the paper.
    kernel : str, optional
        "serial", "subvector2", ..., "subvector128", "vector", "vector_long", "adaptive", "nonzero_split", "narrow", "merge" or
        "chunked". The kernel for all rows, one of `KERNELS` or a KernelChoice; by default the profile
        decides, for each bin.
    queues : sequence of pyopencl.CommandQueue, optional
        Of the devices that share the product; of other contexts and platforms than A's, too. A's rows are cut once, in order,
        into a part for each, whose bytes are in proportion to the devices' speeds: the bytes a second that `clsparse tune`
        measured, if it did on all of them; else ranks of profiles, or compute units times lanes times clock rate. ``explain()``
        says which; nothing is measured here. The host waits for each product that other devices than A's have a part in.
    expected_calls : int, optional
        How many products of a kind there will be. What pays behind so many is made with the first one, which waits for it, and
        what does not is not made; by default it is made behind as many as the profile says. ``plan.explain()`` says what is due.

    Returns
    -------
    SpmvPlan or, with ``queues``, SharedSpmvPlan
        To be given to `spmv`; ``plan.explain()`` says what was decided and why. After values were written into ``A.data`` in
        place, ``refresh(A)`` of a SharedSpmvPlan takes them to the other devices.

    Raises
    ------
    ValueError, TypeError
        An unknown scheme or kernel, or two that do not go together; no queue, or one whose device lacks A's dtype.

    Notes
    -----
    Hou, Feng and Che, "Auto-Tuning Strategies for Parallelizing SpMV on Multi- and Many-Core Processors", Section III-B.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> plan = sp.spmv_plan(sp.csr_array([[1, 2], [0, 3]]), kernel="vector")
    >>> "vector" in str(plan.explain())
    True
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> shared = sp.spmv_plan(A, queues=[A.queue])  # and those of other devices
    >>> sp.spmv(A, [1, 1], plan=shared)
    array([3, 3])
    """
    check_matrix(A)
    require_calls(expected_calls)
    if queues is None:
        return SpmvPlan.of(A, scheme, kernel, expected_calls)
    # The module of plans for several devices is imported at the first call, as few processes need it.
    from clsparse_py._operations.spmv.shared import SharedSpmvPlan, check_queues

    return SharedSpmvPlan(A, check_queues(A, queues), scheme, kernel, expected_calls)


@overload
def spmv(
    A: Matrix,
    x: cl_array.Array,
    *,
    alpha: Scalar | None = ...,
    beta: Scalar | None = ...,
    out: cl_array.Array | None = ...,
    plan: SpmvPlan | SharedSpmvPlan | None = ...,
    semiring: Semiring = ...,
    mask: cl_array.Array | npt.ArrayLike | None = ...,
    complement: bool = ...,
) -> cl_array.Array: ...


@overload
def spmv(
    A: Matrix,
    x: npt.ArrayLike,
    *,
    alpha: Scalar | None = ...,
    beta: Scalar | None = ...,
    out: npt.NDArray[Any] | None = ...,
    plan: SpmvPlan | SharedSpmvPlan | None = ...,
    semiring: Semiring = ...,
    mask: cl_array.Array | npt.ArrayLike | None = ...,
    complement: bool = ...,
) -> npt.NDArray[Any]: ...


def spmv(
    A: Matrix,
    x: Any,
    *,
    alpha: Any = None,
    beta: Any = None,
    out: Any = None,
    plan: SpmvPlan | SharedSpmvPlan | None = None,
    semiring: Semiring = plus_times,
    mask: Any = None,
    complement: bool = False,
) -> Any:
    """Multiply a sparse matrix with a dense vector: ``y = alpha * A @ x + beta * y``.

    Parameters
    ----------
    A : csr_array
        m x n. Rows may be unsorted, empty, and hold duplicates.
    x : pyopencl.array.Array or array_like, shape (n,)
        With a device array nothing waits, and the product is enqueued on its queue.
    alpha, beta : scalar, optional
        With `plus_times` only. ``beta`` needs ``out``, which is not read where it is 0.
    out : pyopencl.array.Array or numpy.ndarray, shape (m,), optional
        Takes the result, whose dtype it must have, and overlaps neither ``x`` nor A's arrays. A device array for a device ``x``,
        else NumPy.
    plan : SpmvPlan or SharedSpmvPlan, optional
        Of `spmv_plan` for this structure; by default the one that is kept on A.
    semiring : Semiring
        Addition and multiplication; see `Semiring`.
    mask : pyopencl.array.Array or array_like, shape (m,), optional
        Booleans or real numbers: rows where it is not zero are computed, and others are not read. Theirs is the value that they
        had in ``out`` or, without it, the identity of the semiring's addition. Not with ``alpha``, ``beta`` or ``plan``.
    complement : bool
        True: rows are computed where the mask is zero.

    Returns
    -------
    pyopencl.array.Array or numpy.ndarray, shape (m,)
        ``out`` where it is given. The dtype is the semiring's result for A's and x's, SciPy's promotion for `plus_times`.

    Raises
    ------
    ValueError, TypeError
        A wrong shape, dtype, context, or a plan of another structure; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1.0, 2.0], [0.0, 3.0]])
    >>> sp.spmv(A, np.ones(2), alpha=2)
    array([6., 6.])
    >>> sp.spmv(A, np.ones(2), mask=[False, True])
    array([0., 3.])
    """
    if plan is None and mask is None and not complement and isinstance(A, Matrix) and isinstance(x, cl_array.Array):
        cached_plan: SpmvPlan | None = A._structure.find_plan((SpmvPlan, A._data.dtype))
        if cached_plan is not None and (repeated := cached_plan.again(A._data, x, alpha, beta, out, semiring)) is not None:
            return repeated  # a repeated product builds no kernel: no `door` is needed
    return _multiply(A, x, alpha, beta, out, plan, semiring, mask, complement)


@door()
def _multiply(
    A: Matrix,
    x: Any,
    alpha: Any,
    beta: Any,
    out: Any,
    plan: SpmvPlan | SharedSpmvPlan | None,
    semiring: Semiring,
    mask: Any,
    complement: bool,
) -> Any:
    """Check `spmv`'s operands, and return ``alpha * A @ x + beta * out``; with a mask, ``A @ x`` in the rows that it selects."""
    check_matrix(A)
    if mask is not None or complement:
        _require_plain(mask, alpha, beta, plan)
        return _multiply_masked_rows(A, x, out, semiring, mask, complement)
    if plan is None:
        plan = get_spmv_plan(A)
    elif not isinstance(plan, SpmvPlan):
        return _require_shared(plan, A).product(A, x, alpha, beta, out, semiring)
    elif not plan.matches(A):
        raise ValueError(_OF_ANOTHER)
    elif are_plain():
        plan = plan.in_force(A)
    elif isinstance(x, cl_array.Array) and (repeated := plan.again(A.data, x, alpha, beta, out, semiring)) is not None:
        return repeated
    operand, on_device = dense_operand(A, "x", x, ndim=1)
    dtype = check_scale(A, operand, alpha, beta, out, semiring)
    result = result_for(A, "x", operand, x, out, dtype, (A.shape[0],), on_device=on_device)
    y = result.array
    if operand.size > 1 and operand.strides != (operand.dtype.itemsize,):
        # SpMV's kernels read adjacent entries of x; SpMM's kernel takes any strides.
        if not y.size:
            return result.deliver()
        get_spmm_plan(A).enqueue(A, operand, y, (y.dtype.itemsize, 0), 1, alpha, beta, semiring)
    else:
        # The event of an SpMV product's last launch comes after the events of the product's earlier launches.
        note_written(y, plan.execute(A, operand, y, alpha=alpha, beta=beta, semiring=semiring)[-1])
        if operand is x:
            plan.note_checked(A, x, y, alpha, beta, semiring, is_new=y is not out)
    return result.deliver()


def _require_shared(plan: Any, A: Matrix) -> SharedSpmvPlan:
    """Return an SpMV plan if it is a SharedSpmvPlan, one for several devices, of A's structure; else raise an error."""
    from clsparse_py._operations.spmv.shared import SharedSpmvPlan

    if not isinstance(plan, SharedSpmvPlan):
        raise TypeError(f"plan: must be an SpmvPlan, is {type(plan).__name__}")
    if not plan.matches(A):
        raise ValueError(_OF_ANOTHER)
    return plan


def _require_plain(mask: Any, alpha: Any, beta: Any, plan: Any) -> None:
    """Raise a ValueError if `spmv`'s caller gives alpha, beta or a plan with a mask of rows, or a complement without a mask."""
    if mask is None:
        raise ValueError("complement: belongs to a mask, which is missing")
    for name, argument in (("alpha", alpha), ("beta", beta), ("plan", plan)):
        if argument is not None:
            raise ValueError(f"{name}: does not go with a mask")


def _multiply_masked_rows(A: Matrix, x: Any, out: Any, semiring: Semiring, mask: Any, complement: bool) -> Any:
    """Return ``A @ x`` in a mask's (or its complement's) rows; others keep ``out``'s value, or without it have the identity."""
    # The module of products of masked rows is imported at the first call, as few processes need it.
    from clsparse_py._operations.spmv.masked import enqueue_masked_rows, prepare_row_mask

    row_marks = prepare_row_mask(A, mask)
    operand, on_device = dense_operand(A, "x", x, ndim=1)
    dtype = check_scale(A, operand, None, None, out, semiring)
    result = result_for(A, "x", operand, x, out, dtype, (A.shape[0],), on_device=on_device)
    y = result.array
    if out is None and y.size:
        chain = Chain(y.queue or A.queue, writes=(y,))
        chain.fill(y, semiring.identity(dtype), y.size)
        chain.finish(y)
    if operand.size > 1 and operand.strides != (operand.dtype.itemsize,):
        operand = convert(A.queue, "x", operand, operand.dtype)
    enqueue_masked_rows(A, operand, y, row_marks, semiring, complement=complement)
    return result.deliver()
