"""Products ``y = A x`` and ``y += A x`` with all arguments set: what a cycle enqueues again and again."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._spmm import enqueue_spmm
from clsparse_py._spmv import kept_plan
from clsparse_py.csr import csr_array
from clsparse_py.errors import BuildError
from clsparse_py.memory import submit
from clsparse_py.semiring import plus_times

__all__ = ["Command", "product"]

#: Enqueues a command, or several.
Command = Callable[[], object]


def product(queue: cl.CommandQueue, A: csr_array, x: cl_array.Array, y: cl_array.Array, *, adds: bool = False) -> Command:
    """Return what enqueues ``y = A x`` or, with ``adds``, ``y += A x``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order; of all commands that use these arrays.
    A : csr_array
        Its values are those of now.
    x, y : pyopencl.array.Array
        Begin their buffers. y has the dtype of the product.
    """
    plan, scale = kept_plan(A), (1, 1) if adds else (None, None)
    try:
        launches = plan.launches(A, x, y, *scale)
    except BuildError:
        # The kernel of SpMM is another one; the plan has tried all of its own.
        return functools.partial(enqueue_spmm, A, x, y, (y.dtype.itemsize, 0), 1, scale[0], scale[1], plus_times)
    if len(launches) != 1:
        # They hand partial sums to each other, which belong to one product at a time.
        return functools.partial(plan.execute, A, x, y, alpha=scale[0], beta=scale[1], queue=queue)
    kernel, sizes = launches[0]
    # A kernel does not keep the memory of its arguments alive.
    return functools.partial(_submit, kernel, queue, sizes, (A, x, y))


def _submit(kernel: cl.Kernel, queue: cl.CommandQueue, sizes: tuple[tuple[int], tuple[int]], kept: object) -> None:  # noqa: ARG001
    submit(kernel, cl.enqueue_nd_range_kernel, queue, kernel, *sizes)
