"""Operands of functions around sparse arrays: their queue, and their CSR form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyopencl as cl

from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.hosted import queue_in
from clsparse_py._device.device import default_queue

__all__ = ["as_rows", "queue_of"]


def queue_of(operands: Iterable[Any]) -> cl.CommandQueue:
    """Return the queue of the first operand that is on a device, else the default queue."""
    return queue_in(operands) or default_queue()


def as_rows(name: str, operand: Any, queue: cl.CommandQueue) -> csr_array:
    """Return an operand as a two-dimensional `csr_array` on a queue, which callers do not change; a vector becomes one row.

    Raises
    ------
    ValueError, TypeError
        The operand lives in another context, or is no array.
    """
    if not isinstance(operand, SparseArray):
        return as_rows(name, csr_array(operand, queue=queue), queue)
    if operand.queue is queue:
        return operand._as_csr()
    if operand.context != queue.context:
        raise ValueError(f"{name}: lives in another context than the operands before it")
    rows = operand._as_csr()
    return rows if rows.queue == queue else csr_array(rows, queue=queue)
