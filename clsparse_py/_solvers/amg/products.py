"""Products ``y = A x`` and ``y += A x`` with bound arguments, also over ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._operations.spmv import get_spmv_plan
from clsparse_py._run.launch import enqueue_fill
from clsparse_py._solvers.linalg.problem import as_divided

__all__ = ["Command", "bind_product"]

#: A function that enqueues one command or several.
Command = Callable[[], object]


def bind_product(queue: cl.CommandQueue, A: Any, x: cl_array.Array, y: cl_array.Array, *, adds: bool = False) -> Command:
    """Return the command that enqueues the product ``y = A x`` or, with ``adds``, ``y += A x``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order; the queue of all commands on x and y.
    A : csr_array
        On one device or over ranks. The command reads the values at the time of each run.
    x, y : pyopencl.array.Array
        Begin their buffers. y has the dtype of the product.
    """
    of_ranks = as_divided(A)
    local, around = of_ranks.local, of_ranks.around(queue, x, y)
    if not around:
        return _bind_local_product(queue, local, x, y, adds) if y.size else lambda: None
    command = _bind_local_product(queue, local, x, y, adds) if local.nnz else None
    begin, end = around

    def enqueue() -> None:
        """Enqueue the product of a matrix over ranks; the local block is multiplied while ranks exchange entries of x."""
        begin()
        if command is not None:
            command()
        elif not adds and y.size:
            enqueue_fill(queue, y.base_data, np.zeros((), y.dtype), y.nbytes, None)
        queue.flush()
        end()

    return enqueue


@door()
def _bind_local_product(queue: cl.CommandQueue, A: csr_array, x: cl_array.Array, y: cl_array.Array, adds: bool) -> Command:
    """Return the command of ``y = A x`` or, if ``adds``, ``y += A x``, for a matrix on one device, such as a rank's own block."""
    return get_spmv_plan(A).bound(queue, A, x, y, *((1, 1) if adds else (None, None)))
