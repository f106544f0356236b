"""C = A @ B from operands to result: inspect, decide, count, fill."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable

from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Matrix
from clsparse_py._memory.workspace import Workspace, counting
from clsparse_py._operations.spgemm.accumulator import Result
from clsparse_py._operations.spgemm.arguments import require_at_most
from clsparse_py._operations.spgemm.bins import EMPTY, Bins
from clsparse_py._operations.spgemm.count import Counted, count
from clsparse_py._operations.spgemm.methods.dense import WINDOWS
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.one_launch import in_one_launch
from clsparse_py._operations.spgemm.operands import Operands, operands_of
from clsparse_py._operations.spgemm.repeated import PARTS, former_of, take_recording
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.steps import enqueue
from clsparse_py._operations.spgemm.timer import UNTIMED, Timer
from clsparse_py._operations.spgemm.upper_bound import enqueue_compaction
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Tape

__all__ = ["compute", "fill", "inspect_structure", "multiply", "new_indices"]

_log = logging.getLogger(__name__)

#: Bins (classes of rows) of a product whose rows are all made by windows (ranges) of columns, which needs the least memory.
_IN_WINDOWS = Bins((EMPTY, WINDOWS))
#: Reason that explanations give for a product whose rows are all made by windows (ranges) of columns.
_WINDOWS_REASON = "windows of columns, as memory is missing for what was chosen"


def multiply(A: Matrix, B: Matrix, request: Request, timer: Timer = UNTIMED, workspace: Workspace | None = None) -> Result:
    """Return the arrays of C = A @ B, which the device may still be writing.

    Parameters
    ----------
    A, B : Matrix
    request : Request
    timer : Timer, optional
    workspace : Workspace, optional
        Counts the memory that is in use beside operands and results.

    Raises
    ------
    ValueError, MemoryError, BuildError
        As for `spgemm`.
    """
    if workspace is not None:
        with counting(workspace):
            return compute(A, B, request, timer)[2]
    if timer is not UNTIMED:
        return compute(A, B, request, timer)[2]
    C = in_one_launch(A, B, request)
    if C is None:
        return _multiply_again(A, B, request)
    require_at_most(C.data.size, request.max_nnz)
    return C


def _multiply_again(A: Matrix, B: Matrix, request: Request) -> Result:
    """Return the arrays of A @ B; from the third product of two structures on, by the recorded commands of the second."""
    former = former_of(A, B, request)
    if former is None:
        return compute(A, B, request)[2]
    former.calls += 1
    if former.product is not None:
        C = former.product.repeat(A, B)
        if C is not None:
            return C
    if former.calls != 2:
        return compute(A, B, request)[2]
    recorded_call = None
    with contextlib.suppress(MemoryError):  # a tape keeps all memory it allocated: once more without one
        recorded_call = compute(A, B, request, chain_of=functools.partial(Tape, results=PARTS))
    if recorded_call is None:
        return compute(A, B, request)[2]
    operands, _, C = recorded_call
    former.product = take_recording(A, B, operands, C)
    return C


def inspect_structure(A: Matrix, B: Matrix, request: Request, *, counting_only: bool = False) -> tuple[Operands, Counted]:
    """Return the operands of A @ B as kernels take them, and C's structure but for columns; no values are computed.

    Parameters
    ----------
    A, B, request
        As for `multiply`.
    counting_only : bool
        Whether the structure is all that is needed, and C is not made afterwards.

    Raises
    ------
    ValueError, MemoryError, BuildError
        As for `spgemm`.
    """
    request = request._replace(values_later=True)
    operands = operands_of(A, B, request)
    return operands, _count(operands, request, UNTIMED, counting_only)


def compute(
    A: Matrix, B: Matrix, request: Request, timer: Timer = UNTIMED, chain_of: Callable[..., Chain] = Chain
) -> tuple[Operands, Counted, Result]:
    """Return the operands of a product, the structure of C, and C's arrays, which the device may still be writing.

    Rows are counted first only if that is faster.

    Raises
    ------
    ValueError, MemoryError, BuildError
        As for `spgemm`.
    """
    operands = operands_of(A, B, request, chain_of)
    counted = _count(operands, request, timer)
    C = fill(operands, counted, timer)
    operands.chain.finish(*C[:3])
    return operands, counted, C


def _count(operands: Operands, request: Request, timer: Timer, counting_only: bool = False) -> Counted:
    """Count C's entries, and return C's structure but for columns; by windows of columns if memory is missing for the bins."""
    counted: Counted | None = None
    try:
        counted = count(operands, request, timer, counting_only=counting_only)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    if counted is None:
        # Rows are counted by windows of columns after the ``except`` block, where the error still holds memory allocated so far.
        counted = count(operands, request._replace(bins=_IN_WINDOWS, why=_WINDOWS_REASON), timer, counting_only=counting_only)
    require_at_most(counted.nnz, request.max_nnz)
    return counted


def fill(operands: Operands, counted: Counted, timer: Timer) -> Result:
    """Enqueue C's columns and values, made bin by bin or, if made uncounted, moved to their places; return C's arrays.

    ``counted`` keeps the steps (the rows of each bin) that were taken.

    Raises
    ------
    MemoryError
        There is no memory for C, or for the workspace of a step.
    """
    try:
        C = _allocate(operands, counted)
    except MemoryError:
        if counted.loose is None:
            raise
        # Rows of C that were made uncounted may hold the missing memory: they are freed, and made anew.
        counted.loose = None
        C = _allocate(operands, counted)
    timer.end_phase("allocation")
    chain, product = operands.chain, counted.product
    if counted.loose is None:
        counted.steps = enqueue(chain, product, counted.steps, C, "numeric")
    else:
        bin_, _, state, _ = counted.steps[0]
        chunks = bin_.accumulator.chunks(state) if isinstance(bin_.accumulator, DenseChunked) else None
        enqueue_compaction(chain, product, counted.loose, C, counted.nnz, chunks)
    timer.end_phase("numeric")
    return C


def _allocate(operands: Operands, counted: Counted) -> Result:
    """Return C's arrays: the row pointers, which counting made, and new arrays for columns and values."""
    data = operands.new_part("values", counted.nnz, counted.product.kind.result)
    return Result(counted.indptr, new_indices(operands, counted), data)


def new_indices(operands: Operands, counted: Counted) -> cl_array.Array:
    """Return a new array for the columns of C."""
    return operands.new_part("indices", counted.nnz, counted.indptr.dtype)
