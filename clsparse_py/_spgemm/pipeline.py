"""C = A @ B from operands to result: inspect, decide, count, fill."""

from __future__ import annotations

import logging
from typing import NamedTuple

from clsparse_py._spgemm.bins import EMPTY, Bins
from clsparse_py._spgemm.count import Counted, count
from clsparse_py._spgemm.fill import Filled, fill
from clsparse_py._spgemm.methods.base import Result
from clsparse_py._spgemm.methods.dense import WINDOWS
from clsparse_py._spgemm.one_launch import in_one_launch
from clsparse_py._spgemm.operands import Operands, operands_of
from clsparse_py._spgemm.request import Request
from clsparse_py._spgemm.timer import UNTIMED, Timer
from clsparse_py.matrix import Matrix
from clsparse_py.workspace import Workspace, counting

__all__ = ["Inspected", "inspected", "made", "multiply"]

_log = logging.getLogger(__name__)

#: The bins that need the least memory.
_IN_WINDOWS = Bins((EMPTY, WINDOWS))
_MISSING = "windows of columns, as memory is missing for what was chosen"


class Inspected(NamedTuple):
    """The operands of a product, and the structure of C but for its columns."""

    operands: Operands
    counted: Counted


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
    if workspace is None:
        C = in_one_launch(A, B, request) if timer is UNTIMED else None
        if C is None:
            return made(A, B, request, timer)[1].C
        if request.max_nnz is not None:
            _require_few(C.data.size, request.max_nnz)
        return C
    with counting(workspace):
        return made(A, B, request, timer)[1].C


def inspected(A: Matrix, B: Matrix, request: Request, *, counting_only: bool = False) -> Inspected:
    """Return the structure of C but for its columns; none of its values is computed.

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
    return _inspected(A, B, request._replace(values_later=True), UNTIMED, counting_only)


def made(A: Matrix, B: Matrix, request: Request, timer: Timer = UNTIMED) -> tuple[Inspected, Filled]:
    """Return the structure of C, and C, which the device may still be writing; rows are counted first only if that is faster.

    Raises
    ------
    ValueError, MemoryError, BuildError
        As for `spgemm`.
    """
    found = _inspected(A, B, request, timer)
    filled = fill(*found, timer)
    found.operands.chain.finish(*filled.C[:3])
    return found, filled


def _inspected(A: Matrix, B: Matrix, request: Request, timer: Timer, counting_only: bool = False) -> Inspected:
    operands = operands_of(A, B, request)
    counted: Counted | None = None
    try:
        counted = count(operands, request, timer, counting_only=counting_only)
    except MemoryError as error:
        _log.info("all rows go through windows of columns: %s", error)
    if counted is None:
        # Not in the handler: the error keeps the memory allocated so far.
        counted = count(operands, request._replace(bins=_IN_WINDOWS, why=_MISSING), timer, counting_only=counting_only)
    if request.max_nnz is not None:
        _require_few(counted.nnz, request.max_nnz)
    return Inspected(operands, counted)


def _require_few(nnz: int, max_nnz: int) -> None:
    if nnz > max_nnz:
        raise ValueError(f"max_nnz: the product has {nnz:,} entries, more than {max_nnz:,}")
