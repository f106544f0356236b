"""SpTRSV and SpTRSM by the library: SciPy's function on arrays of the device, and a kept plan."""

from __future__ import annotations

import time

import pyopencl as cl
from pyopencl import array as cl_array

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls
from bench.problems.sptrsv import Sptrsv


def contestants(queue: cl.CommandQueue) -> list[Contestant]:
    """Return the plain call and the kept plan."""
    return [
        Contestant("clsparse/plain", lambda problem: _plain(problem, queue)),
        Contestant("clsparse/kept-plan", lambda problem: _with_kept_plan(problem, queue)),
    ]


def _operands(problem: Sptrsv, on: cl.CommandQueue) -> tuple[cs.csr_array, cl_array.Array]:
    return cs.csr_array(problem.matrix, queue=on), cl_array.to_device(on, problem.b)


def _plain(problem: Sptrsv, queue: cl.CommandQueue) -> OpenclCalls:
    operands = {on: _operands(problem, on) for on in (queue, opencl.profiling_queue(queue))}

    def solve(on: cl.CommandQueue) -> Arrays:
        return (cs.linalg.spsolve_triangular(*operands[on]),)

    return OpenclCalls(problem, queue, solve, {}, detail="spsolve_triangular(L, b)")


def _with_kept_plan(problem: Sptrsv, queue: cl.CommandQueue) -> OpenclCalls:
    operands = {on: _operands(problem, on) for on in (queue, opencl.profiling_queue(queue))}
    start = time.perf_counter()
    plans = {on: cs.linalg.triangular_plan(L) for on, (L, _) in operands.items()}
    queue.finish()
    once = {"plan": (time.perf_counter() - start) / len(plans)}

    def solve(on: cl.CommandQueue) -> Arrays:
        return (plans[on](operands[on][1]),)

    return OpenclCalls(problem, queue, solve, once, detail=plans[queue].explain().method)
