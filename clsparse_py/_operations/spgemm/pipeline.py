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
from clsparse_py._operations.spgemm.bins import EMPTY, Bins
from clsparse_py._operations.spgemm.count import Counted, count
from clsparse_py._operations.spgemm.methods.dense import WINDOWS
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.new_arrays import new_part
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

#: The bins that need the least memory.
_IN_WINDOWS = Bins((EMPTY, WINDOWS))
#: The reason for bins of windows.
_MISSING = "windows of columns, as memory is missing for what was chosen"


def multiply(A: Matrix, B: Matrix, request: Request, timer: Timer = UNTIMED, workspace: Workspace | None = None) -> Result:
    """Return C's arrays, which the device may still be writing.

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
        return _repeat(A, B, request)
    if request.max_nnz is not None:
        _require_at_most(C.data.size, request.max_nnz)
    return C


def _repeat(A: Matrix, B: Matrix, request: Request) -> Result:
    """Return C's arrays as `compute` does: from the third time on by the commands of the second, if they could be recorded."""
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
    with contextlib.suppress(MemoryError):  # a tape keeps what was allocated in vain: once more without
        recorded_call = compute(A, B, request, chain_of=functools.partial(Tape, results=PARTS))
    if recorded_call is None:
        return compute(A, B, request)[2]
    operands, _, C = recorded_call
    former.product = take_recording(A, B, operands, C)
    return C


def inspect_structure(A: Matrix, B: Matrix, request: Request, *, counting_only: bool = False) -> tuple[Operands, Counted]:
    """Return the operands, and the structure of C but for its columns; none of its values is computed.

    Parameters
    ----------
    A, B, request
        As for `multiply`.
    counting_only : bool
        Whether C is not to be made afterwards.

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
    """Return the operands, the structure of C, and C, which the device may still be writing.

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
    """Return the structure of C but for its columns, as `count` does; by windows of columns if memory is missing else."""
    counted: Counted | None = None
    try:
        counted = count(operands, request, timer, counting_only=counting_only)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    if counted is None:
        # Not in the handler: the error keeps the memory allocated so far.
        counted = count(operands, request._replace(bins=_IN_WINDOWS, why=_MISSING), timer, counting_only=counting_only)
    if request.max_nnz is not None:
        _require_at_most(counted.nnz, request.max_nnz)
    return counted


def _require_at_most(nnz: int, max_nnz: int) -> None:
    """Refuse a product of more than ``max_nnz`` entries."""
    if nnz > max_nnz:
        raise ValueError(f"max_nnz: the product has {nnz:,} entries, more than {max_nnz:,}")


def fill(operands: Operands, counted: Counted, timer: Timer) -> Result:
    """Return C's arrays, and enqueue the commands that make them; ``counted`` has the steps that do so then.

    Raises
    ------
    MemoryError
        There is none for C, or for the workspace of any step.
    """
    try:
        C = _allocate(operands, counted)
    except MemoryError:
        if counted.loose is None:
            raise
        # The upper-bound buffer may hold the missing memory: free it, and make the rows again.
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
    """Return C's arrays."""
    product, n = counted.product, counted.nnz
    indices = new_indices(operands, counted)
    data = new_part(operands.chain, "values", product.shape, n, product.kind.result, operands.allocator)
    return Result(counted.indptr, indices, data)


def new_indices(operands: Operands, counted: Counted) -> cl_array.Array:
    """Return a new array for C's columns."""
    return new_part(operands.chain, "indices", counted.product.shape, counted.nnz, counted.indptr.dtype, operands.allocator)
