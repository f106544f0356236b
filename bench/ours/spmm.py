"""SpMM by the library, as users write it: A, X and Y are on the device."""

from __future__ import annotations

import functools
import time

import pyopencl as cl
import pyopencl.array as cla

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls
from bench.problems.spmm import Spmm


def contestants(queue: cl.CommandQueue) -> list[Contestant]:
    """Return the library, by its plain call."""
    return [Contestant("clsparse/plain", functools.partial(_prepare, queue))]


def _prepare(queue: cl.CommandQueue, problem: Spmm) -> OpenclCalls:
    start = time.perf_counter()
    queues = (queue, opencl.profiling_queue(queue))
    operands = {on: (cs.csr_array(problem.matrix, queue=on), cla.to_device(on, problem.X)) for on in queues}
    queue.finish()
    once = {"transfer": time.perf_counter() - start}

    def multiply(on: cl.CommandQueue) -> Arrays:
        A, X = operands[on]
        return (A @ X,)

    # Made by the first call, which is not to be profiled.
    multiply(queues[1])
    return OpenclCalls(problem, queue, multiply, once, detail="A @ X")
