"""Operators entry by entry and reductions by the library, as users write them: matrices and results are on the device."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import pyopencl as cl

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant, HostPrepared
from bench.opencl_calls import Arrays, OpenclCalls
from bench.problems.elementwise import CALLS, Extremes, Sums, Union
from bench.problems.indexing import parts


def contestants(operation: str, queue: cl.CommandQueue) -> list[Contestant]:
    """Return the library, by its plain call; of sums also by that which NumPy's result is waited for."""
    plain = Contestant("clsparse/plain", functools.partial(_prepare, queue))
    return [plain, Contestant("clsparse/numpy", functools.partial(_to_numpy, queue))] if operation.startswith("sum") else [plain]


def _prepare(queue: cl.CommandQueue, problem: Union | Sums | Extremes) -> OpenclCalls:
    start = time.perf_counter()
    hosts = (problem.matrix, problem.right) if isinstance(problem, Union) else (problem.matrix,)
    matrices = {on: tuple(cs.csr_array(host, queue=on) for host in hosts) for on in (queue, opencl.profiling_queue(queue))}
    queue.finish()
    once = {"transfer": time.perf_counter() - start}
    call, detail = _call_of(problem)
    shared = tuple(part for of in matrices.values() for A in of for part in (A.indptr, A.indices, A.data))
    return OpenclCalls(problem, queue, lambda on: call(matrices[on]), once, detail=detail, shared=shared)


def _call_of(problem: Union | Sums | Extremes) -> tuple[Callable[[tuple[cs.csr_array, ...]], Arrays], str]:
    """Return the call, and what it is."""
    operate = CALLS[problem.operation]
    if isinstance(problem, Union):
        return lambda of: parts(operate(*of)), "plain call"
    if isinstance(problem, Extremes):

        def largest(of: tuple[cs.csr_array, ...]) -> Arrays:
            result = operate(of[0], None)
            return *result.coords, result.data

        return largest, "plain call"
    axis = _axis_of(problem)
    return lambda of: (of[0].sum(axis=axis, like=of[0].queue),), "plain call, result on the device"


def _axis_of(problem: Sums) -> int:
    return int(problem.operation == "sum_rows")


def _to_numpy(queue: cl.CommandQueue, problem: Sums) -> HostPrepared:
    A, axis = cs.csr_array(problem.matrix, queue=queue), _axis_of(problem)
    return HostPrepared(problem, lambda: (A.sum(axis=axis),), detail="plain call, result in NumPy")
