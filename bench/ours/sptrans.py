"""SpTRANS by the library: as users write it, again, with a pool of the caller's, by each method that is named, by a kept plan."""

from __future__ import annotations

import functools
import time

import pyopencl as cl

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant, DeclinedError
from bench.opencl_calls import Arrays, OpenclCalls, to_device
from bench.problems.sptrans import Sptrans
from clsparse_py._operations.transpose import METHODS

# As users write it: `transpose(A)`, with a matrix made of SciPy's that was not transposed before: what is found out about it
# is forgotten after each call.
PLAIN = "plain"
# The same, but what the transpositions before found out is known. All others have arrays of the caller's pool, and know it too.
AGAIN = "again"
# Not a method: transposes new values by a plan that knows the structure's permutation.
KEPT_PLAN = "kept-plan"
ALL = (PLAIN, "auto", AGAIN, *METHODS, KEPT_PLAN)


def contestants(queue: cl.CommandQueue, methods: list[str] | None) -> list[Contestant]:
    """Return a contestant for each method, all if None are given."""
    return [_contestant(queue, method) for method in (ALL if methods is None else methods)]


def _contestant(queue: cl.CommandQueue, method: str) -> Contestant:
    prepare = {PLAIN: _plain, AGAIN: _again, KEPT_PLAN: _with_kept_plan}.get(method) or functools.partial(_by_method, method)
    return Contestant(f"clsparse/{method}", lambda problem: prepare(problem, queue))


def _plain(problem: Sptrans, queue: cl.CommandQueue) -> OpenclCalls:
    return _of_scipy(problem, queue, forgets=True)


def _again(problem: Sptrans, queue: cl.CommandQueue) -> OpenclCalls:
    return _of_scipy(problem, queue, forgets=False)


def _of_scipy(problem: Sptrans, queue: cl.CommandQueue, *, forgets: bool) -> OpenclCalls:
    start = time.perf_counter()
    matrices = {on: cs.csr_array(problem.matrix, queue=on) for on in (queue, opencl.profiling_queue(queue))}
    queue.finish()
    once = {"transfer": time.perf_counter() - start}

    def transpose(on: cl.CommandQueue) -> Arrays:
        matrix = matrices[on]
        if forgets:
            structure = matrix.structure.copied(matrix.queue, matrix.indices, matrix.indptr)
            matrix = cs.csr_array.assembled(structure, matrix.data)
        return _arrays(cs.transpose(matrix))

    shared = tuple(part for matrix in matrices.values() for part in _arrays(matrix))
    return OpenclCalls(problem, queue, transpose, once, detail="transpose(A)", shared=shared)


def _by_method(method: str, problem: Sptrans, queue: cl.CommandQueue) -> OpenclCalls:
    matrices, transfer = _on_device(problem, queue)
    a = matrices[queue]
    try:
        chosen = str(cs.transpose_plan(a, method=method))
    except ValueError as error:
        raise DeclinedError(str(error)) from error

    def transpose(on: cl.CommandQueue) -> Arrays:
        return _arrays(cs.transpose(matrices[on], method=method))

    # The transposed of a symmetric pattern shares A's own structure.
    return OpenclCalls(problem, queue, transpose, {"transfer": transfer}, detail=chosen, shared=_arrays(a))


def _with_kept_plan(problem: Sptrans, queue: cl.CommandQueue) -> OpenclCalls:
    matrices, transfer = _on_device(problem, queue)
    a = matrices[queue]
    start = time.perf_counter()
    plan = cs.transpose_plan(a)
    queue.finish()
    once = {"transfer": transfer, "plan": time.perf_counter() - start}

    def transpose(on: cl.CommandQueue) -> Arrays:
        return _arrays(plan(a.data.with_queue(on)))

    return OpenclCalls(problem, queue, transpose, once, detail=str(plan), shared=(plan.indptr, plan.indices))


def _arrays(matrix: cs.csr_array) -> Arrays:
    return matrix.indptr, matrix.indices, matrix.data


@functools.lru_cache(maxsize=1)
def _on_device(problem: Sptrans, queue: cl.CommandQueue) -> tuple[dict[cl.CommandQueue, cs.csr_array], float]:
    """Return A on the device, by the queue and by the profiling one beside it, and the seconds of its transfer."""
    start = time.perf_counter()
    a = problem.matrix
    parts = to_device(queue, (a.data, a.indices, a.indptr))
    matrix = cs.csr_array(parts, shape=a.shape, queue=queue)
    queue.finish()
    transfer = time.perf_counter() - start
    profiling = opencl.profiling_queue(queue)
    return {queue: matrix, profiling: cs.csr_array(parts, shape=a.shape, queue=profiling)}, transfer
