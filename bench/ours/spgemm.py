"""SpGEMM by the library: as users write it, with a pool of the caller's, by each method that is named, and by a kept plan."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import pyopencl as cl

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls, to_device
from bench.problems.spgemm import Spgemm
from clsparse_py._operations.spgemm import METHODS

# As users write it: `A @ B`, with matrices made of SciPy's. All others have arrays of the caller's pool.
PLAIN = "plain"
# Not a method: computes new values by a plan that knows the structure of C.
KEPT_PLAN = "kept-plan"
#: Not deterministic: the forms that are allowed to be faster.
LOOSE = "auto-loose"
ALL = (PLAIN, "auto", LOOSE, KEPT_PLAN, *METHODS)
#: Who takes part where no methods are named: all of them take long.
DEFAULT = (PLAIN, "auto", LOOSE, KEPT_PLAN)


def contestants(queue: cl.CommandQueue, methods: list[str] | None) -> list[Contestant]:
    """Return a contestant for each method; those of `DEFAULT` if None are given."""
    return [_contestant(queue, method) for method in (DEFAULT if methods is None else methods)]


def _contestant(queue: cl.CommandQueue, method: str) -> Contestant:
    prepare = {PLAIN: _plain, KEPT_PLAN: _with_kept_plan}.get(method) or functools.partial(_by_method, method)
    return Contestant(f"clsparse/{method}", lambda problem: prepare(problem, queue))


@dataclass(frozen=True)
class Operands:
    """A and B on the device, by the queue and by the profiling one beside it, and the seconds of their transfer."""

    by_queue: dict[cl.CommandQueue, tuple[cs.csr_array, cs.csr_array]]
    transfer: float


def _plain(problem: Spgemm, queue: cl.CommandQueue) -> OpenclCalls:
    start = time.perf_counter()
    by_queue = {on: _operands(problem, problem.matrix, problem.right, on) for on in (queue, opencl.profiling_queue(queue))}
    queue.finish()
    transfer = time.perf_counter() - start

    def multiply(on: cl.CommandQueue) -> Arrays:
        left, right = by_queue[on]
        return _arrays(left @ right)

    return OpenclCalls(problem, queue, multiply, {"transfer": transfer}, detail="A @ B")


def _by_method(method: str, problem: Spgemm, queue: cl.CommandQueue) -> OpenclCalls:
    operands = _on_device(problem, queue)
    name, deterministic = ("auto", False) if method == LOOSE else (method, True)

    def multiply(on: cl.CommandQueue) -> Arrays:
        return _arrays(cs.spgemm(*operands.by_queue[on], method=name, deterministic=deterministic))

    plan = cs.spgemm_plan(*operands.by_queue[queue], method=name, deterministic=deterministic)
    detail = ", ".join(f"{bin_.method} ({bin_.parameters}) {bin_.n_rows}" for bin_ in plan.explain().bins)
    return OpenclCalls(problem, queue, multiply, {"transfer": operands.transfer}, detail=detail)


def _with_kept_plan(problem: Spgemm, queue: cl.CommandQueue) -> OpenclCalls:
    operands = _on_device(problem, queue)
    start = time.perf_counter()
    plans = {queue: cs.spgemm_plan(*operands.by_queue[queue])}
    queue.finish()
    once = {"transfer": operands.transfer, "plan": time.perf_counter() - start}

    def multiply(on: cl.CommandQueue) -> Arrays:
        if on not in plans:
            plans[on] = cs.spgemm_plan(*operands.by_queue[on])
            # Making it is not to be profiled.
            on.finish()
        left, right = operands.by_queue[on]
        return _arrays(plans[on](left.data, right.data))

    multiply(opencl.profiling_queue(queue))
    shared = tuple(part for plan in plans.values() for part in (plan.indptr, plan.indices))
    return OpenclCalls(problem, queue, multiply, once, detail="values alone", shared=shared)


def _arrays(matrix: cs.csr_array) -> Arrays:
    return matrix.indptr, matrix.indices, matrix.data


@functools.lru_cache(maxsize=1)
def _on_device(problem: Spgemm, queue: cl.CommandQueue) -> Operands:
    start = time.perf_counter()
    matrices = {id(matrix): matrix for matrix in (problem.matrix, problem.right)}
    parts = {name: to_device(queue, (matrix.data, matrix.indices, matrix.indptr)) for name, matrix in matrices.items()}
    queue.finish()
    transfer = time.perf_counter() - start
    left, right = (parts[id(matrix)] for matrix in (problem.matrix, problem.right))
    queues = (queue, opencl.profiling_queue(queue))
    return Operands({on: _operands(problem, left, right, on) for on in queues}, transfer)


def _operands(problem: Spgemm, left: Any, right: Any, queue: cl.CommandQueue) -> tuple[cs.csr_array, cs.csr_array]:
    """Return A and B on a queue, made of what they are given as; B is A where that is the same."""
    a = cs.csr_array(left, shape=problem.matrix.shape, queue=queue)
    return a, a if right is left else cs.csr_array(right, shape=problem.right.shape, queue=queue)
