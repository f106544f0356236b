"""SpGEMM, ``C = A @ B``: a `pipeline` (inspect, decide, `count`, `fill`) above a folder of `methods`, and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, overload

from typing_extensions import Unpack

from clsparse_py._build.plain import door
from clsparse_py._device.device import describe
from clsparse_py._ground.errors import require_name
from clsparse_py._matrix.matrix import Matrix, MatrixT, Structure
from clsparse_py._memory.workspace import Workspace, counting
from clsparse_py._operations.spgemm.accumulator import Result
from clsparse_py._operations.spgemm.arguments import check_limits, check_operands, memory_limit_of, types_of
from clsparse_py._operations.spgemm.estimate import Estimate, min_bytes, spgemm_estimate
from clsparse_py._operations.spgemm.explanation import Explanation
from clsparse_py._operations.spgemm.pipeline import multiply
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.registry import METHODS, Method
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.timer import UNTIMED, Timer
from clsparse_py._precision.semiring import Semiring, plus_times

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import SciPySparse
    from clsparse_py._operations.spgemm.mask import Accumulation
    from clsparse_py._operations.spgemm.masked_plan import MaskedPlan

__all__ = ["METHODS", "Estimate", "Explanation", "Method", "SpgemmPlan", "spgemm", "spgemm_estimate", "spgemm_plan"]

#: Names of SpGEMM methods, "auto" first.
_METHODS = get_args(Method)
#: Request of a product by the operator ``A @ B``: every argument of `spgemm` has its default.
_PLAIN = Request()


class _Asked(TypedDict, total=False):
    """The keyword arguments of `spgemm` and `spgemm_plan` on which no return type depends."""

    method: Method
    semiring: Semiring
    deterministic: bool
    memory_limit: int | None
    max_nnz: int | None
    complement: bool
    structural: bool
    accum: Accumulation | None


class _Written(_Asked, total=False):
    """The keyword arguments of `spgemm` but ``out`` and ``profile``: those of `_Asked`, ``mask`` and ``replace``."""

    mask: Matrix | SciPySparse | None
    replace: bool


@overload
def spgemm(
    A: MatrixT, B: Matrix | SciPySparse, *, out: MatrixT | None = ..., profile: Literal[False] = ..., **options: Unpack[_Written]
) -> MatrixT: ...


@overload
def spgemm(
    A: MatrixT, B: Matrix | SciPySparse, *, out: MatrixT | None = ..., profile: Literal[True], **options: Unpack[_Written]
) -> tuple[MatrixT, dict[str, float]]: ...


@overload
def spgemm(
    A: MatrixT, B: Matrix | SciPySparse, *, out: MatrixT | None = ..., profile: bool, **options: Unpack[_Written]
) -> MatrixT | tuple[MatrixT, dict[str, float]]: ...


@door()
def spgemm(
    A: MatrixT,
    B: Matrix | SciPySparse,
    *,
    method: Method = "auto",
    semiring: Semiring = plus_times,
    deterministic: bool = True,
    memory_limit: int | None = None,
    max_nnz: int | None = None,
    mask: Matrix | SciPySparse | None = None,
    complement: bool = False,
    structural: bool = True,
    accum: Accumulation | None = None,
    out: MatrixT | None = None,
    replace: bool = False,
    profile: bool = False,
) -> MatrixT | tuple[MatrixT, dict[str, float]]:
    """Multiply two sparse matrices; if asked, under a mask or into an existing matrix, as GraphBLAS: ``C<M> = C accum A @ B``.

    Parameters
    ----------
    A : csr_array
        m x k. Rows may be unsorted, empty, and hold duplicates; so may B's.
    B : csr_array or SciPy sparse matrix
        k x n.
    method : {"auto", "reg-merge", "merge", "reg-sort", "sort", "dense", "esc", "hash", "reg-hash", "large-hash", ...}
        "auto", the choice of the device's profile, or a name in `METHODS`. Rows that a named method cannot hold are made by the
        methods of "auto"; `SpgemmPlan.explain` lists them.
    semiring : Semiring
        The operations that stand for ``+`` and ``*``.
    deterministic : bool
        True: bitwise the same result each time on one device. False: faster forms are allowed, if a method has one.
    memory_limit : int, optional
        Bytes that the workspace may have, C not counted; by default half of the device's memory.
    max_nnz : int, optional
        The most entries that the product may have.
    mask : csr_array or SciPy sparse array, optional
        m x n: the product has entries at the mask's places alone, and others are not computed.
    complement : bool
        True: entries at all places but the mask's. The whole product is made, and they are taken out of it.
    structural : bool
        True: a stored entry of the mask counts whatever its value. False: only if it is not zero.
    accum : {"plus", "minus", "times", "min", "max", "any", "or", "and", "xor", "first", "second", "pair"}, optional
        Of ``out``'s entry and the product's: the value that is written where both have one.
    out : csr_array, optional
        m x n: takes the result, and is returned. Its arrays become others, its dtype stays. With ``accum`` it keeps its entries,
        and takes those of the product. Without, its entries at places that the mask lets through are replaced by the product's,
        and deleted if it has none. Entries at other places stay.
    replace : bool
        True: entries of ``out`` that the mask keeps out are deleted.
    profile : bool
        True: the seconds of each phase are returned too; the queue is finished between phases.

    Returns
    -------
    csr_array, m x n, or (csr_array, dict of str to float)
        Rows sorted, without duplicates. Entries whose products cancel to zero are kept: the structure is that of the product of
        the patterns, where SciPy drops them (`csr_array.eliminate_zeros` does too). With ``profile`` the seconds too.

    Raises
    ------
    ValueError, TypeError
        Shapes, contexts or dtypes that do not go together, an unknown method, a product with more than ``max_nnz`` entries.
    MemoryError
        The device or ``memory_limit`` has not the memory for C or for one row's workspace; the message says how much is needed.

    See Also
    --------
    spgemm_plan : For several sets of values.
    spgemm_estimate : The memory that a product takes, before it is made.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> sp.spgemm(A, A).toarray()
    array([[1, 8],
           [0, 9]])
    >>> sp.spgemm(A, A, semiring=sp.min_plus).toarray()
    array([[2, 3],
           [0, 6]])
    >>> sp.spgemm(A, A, mask=sp.eye_array(2, format="csr")).toarray()
    array([[1, 0],
           [0, 9]])
    """
    request = Request(method, semiring, deterministic, memory_limit, max_nnz)
    A, B = _check(A, B, request, sums=mask is None or complement)
    timer = Timer(A.queue) if profile else UNTIMED
    if mask is not None or out is not None or complement or not structural or accum is not None or replace:
        # The module of products under masks is loaded late, as few processes use it.
        from clsparse_py._operations.spgemm.mask import check_write, require_no_method, write_product

        write = check_write(A, B, mask, complement, structural, accum, out, replace)
        if mask is not None:
            require_no_method(method, complement=complement)
        with counting(None if memory_limit is None else Workspace(memory_limit)):
            product = write_product(A, B, request, write, timer)
        return (product, timer.seconds) if profile else product
    # Bytes of workspace (memory beside A, B and C) are not counted for a product without a memory limit, as counting takes time.
    product = _assemble(A, B, multiply(A, B, request, timer, None if memory_limit is None else Workspace(memory_limit)))
    return (product, timer.seconds) if profile else product


def plain_product(A: MatrixT, B: Matrix) -> MatrixT:
    """Return the sparse product ``A @ B`` as `spgemm` does without keyword arguments, whose defaults need no check."""
    A, B = check_operands(A, B, plus_times)
    return _assemble(A, B, multiply(A, B, _PLAIN))


def _assemble(A: MatrixT, B: Matrix, C: Result) -> MatrixT:
    """Return the arrays of a product C as a matrix of A's class, in canonical format (rows sorted, no duplicates)."""
    structure = A.structure
    queue, shape = structure.queue, (structure.shape[0], B.shape[1])
    return A.assembled(Structure.canonical(queue, shape, C.indices, C.indptr), C.data)


@overload
def spgemm_plan(A: MatrixT, B: Matrix | SciPySparse, *, mask: None = ..., **options: Unpack[_Asked]) -> SpgemmPlan[MatrixT]: ...


@overload
def spgemm_plan(
    A: MatrixT, B: Matrix | SciPySparse, *, mask: Matrix | SciPySparse, **options: Unpack[_Asked]
) -> MaskedPlan[MatrixT]: ...


@door()
def spgemm_plan(
    A: MatrixT,
    B: Matrix | SciPySparse,
    *,
    method: Method = "auto",
    semiring: Semiring = plus_times,
    deterministic: bool = True,
    memory_limit: int | None = None,
    max_nnz: int | None = None,
    mask: Matrix | SciPySparse | None = None,
    complement: bool = False,
    structural: bool = True,
    accum: Accumulation | None = None,
) -> SpgemmPlan[MatrixT] | MaskedPlan[MatrixT]:
    """Plan the sparse product C = A @ B for any values: find the structure of C, and share its rows out among methods.

    Parameters
    ----------
    A, B, method, semiring, deterministic, memory_limit, max_nnz, mask, complement, structural
        As for `spgemm`.
    accum : {"plus", "minus", "times", "min", "max", "any", "or", "and", "xor", "first", "second", "pair"}, optional
        With a mask: ``plan(a_data, b_data, out=C)`` writes this operation of C's old values and the product's, in that order.

    Returns
    -------
    SpgemmPlan or, with a mask, MaskedPlan
        ``plan(a_data, b_data)`` is the product of new values, with no analysis and, from the second on, no wait;
        ``plan(a_data, b_data, out=C)`` writes them into an earlier result; ``plan.explain()`` says how it is made. With
        ``structural=False`` a plan takes new values of the mask, too: ``plan(a_data, b_data, mask_data)``.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As for `spgemm`.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> plan = sp.spgemm_plan(A, A)
    >>> plan(A.data, A.data).toarray()
    array([[1, 8],
           [0, 9]])
    >>> plan = sp.spgemm_plan(A, A, mask=sp.eye_array(2, format="csr"))
    >>> plan(2 * A.data).toarray()
    array([[ 2,  0],
           [ 0, 18]])
    """
    request = Request(method, semiring, deterministic, memory_limit, max_nnz)
    A, B = _check(A, B, request, sums=mask is None or complement)
    workspace = Workspace(memory_limit_of(describe(A.queue.device), memory_limit))
    if mask is not None or complement or not structural or accum is not None:
        # The module of plans for products under masks is loaded late, as few processes use it.
        from clsparse_py._operations.spgemm.masked_plan import MaskedPlan

        return MaskedPlan(A, B, request, workspace, mask, complement=complement, structural=structural, accum=accum)
    return SpgemmPlan(A, B, request, workspace)


def plan_and_multiply(A: MatrixT, B: Matrix) -> tuple[SpgemmPlan[MatrixT], MatrixT]:
    """Return a plan of C = A @ B for any values, and the present C, which may be made uncounted in memory for all products."""
    request = Request(allow_upper_bound=True)
    A, B = _check(A, B, request)
    plan = SpgemmPlan(A, B, request, at_once=True)
    return plan, plan.take_product()


def _check(A: MatrixT, B: Any, request: Request, *, sums: bool = True) -> tuple[MatrixT, Matrix]:
    """Return A and B of ``A @ B`` after checks of both and of the request; ``sums``: whether addition needs an identity."""
    A, B = check_operands(A, B, request.semiring)
    if request.semiring.is_given:
        # The module of users' semirings is loaded late, as few processes use it.
        from clsparse_py._matrix.given_semirings import require_semiring

        require_semiring(A.queue, request.semiring, A.dtype, B.dtype, sums=sums)
    memory_limit = request.memory_limit
    require_name("method", request.method, _METHODS)
    check_limits(memory_limit, request.max_nnz)
    if memory_limit is not None:
        device = describe(A.queue.device)
        least = min_bytes(device, types_of(A, B, request.semiring), A, B)
        if memory_limit < least:
            raise MemoryError(f"memory_limit: the product needs {least:,} bytes of workspace, the limit is {memory_limit:,}")
    return A, B
