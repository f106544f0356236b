"""Operands of functions: sparse arrays of this package or of SciPy, and dense ones; and results in the format asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.csr import csr_array
from clsparse_py._device.device import default_queue
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.matrix import Matrix

__all__ = ["as_rows", "format_of", "in_format", "index_dtype", "queue_of"]


def queue_of(operands: Iterable[Any]) -> cl.CommandQueue:
    """Return the queue of the first operand that has one, else the default queue."""
    queues = (
        operand.queue for operand in operands if isinstance(operand, (SparseArray, cl_array.Array)) and operand.queue is not None
    )
    return next(queues, None) or default_queue()


def format_of(operand: Any) -> str:
    """Return the format of a sparse array, of SciPy's too; "" for anything else."""
    name = getattr(operand, "format", "")
    return name if isinstance(name, str) else ""


def as_rows(name: str, operand: Any, queue: cl.CommandQueue) -> csr_array:
    """Return an operand as a two-dimensional `csr_array` on a queue, to be read alone; one dimension is a row.

    Raises
    ------
    ValueError, TypeError
        It lives in another context, or is no array.
    """
    if not isinstance(operand, SparseArray):
        return as_rows(name, csr_array(operand, queue=queue), queue)
    if operand.queue is queue:
        return operand._as_csr()
    if operand.context != queue.context:
        raise ValueError(f"{name}: lives in another context than the operands before it")
    rows = operand._as_csr()
    return rows if rows.queue == queue else csr_array(rows, queue=queue)


def index_dtype(operands: Iterable[Matrix], *numbers: int) -> np.dtype[Any]:
    """Return the index dtype of a result: int64 if an operand has that, or a number needs it, else int32."""
    return index_for(max(numbers), *(operand.indptr.dtype for operand in operands))


def in_format(result: Any, format: str | None) -> Any:
    """Return a result in a format; None for the one that it has."""
    return result.asformat(format)
