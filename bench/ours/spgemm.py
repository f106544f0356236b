"""SpGEMM by the library: what it chooses, each method that is named, and a kept plan with new values."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import pyopencl as cl

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls, to_device
from bench.problems.spgemm import Spgemm
from clsparse_py.spgemm import METHODS

# Not a method: computes new values by a plan that knows the structure of C.
KEPT_PLAN = "kept-plan"
#: Not deterministic: the forms that are allowed to be faster.
LOOSE = "auto-loose"
ALL = ("auto", LOOSE, KEPT_PLAN, *METHODS)
#: Who takes part where no methods are named: all of them take long.
DEFAULT = ("auto", LOOSE, KEPT_PLAN)


def contestants(queue: cl.CommandQueue, methods: list[str] | None) -> list[Contestant]:
    """Return a contestant for each method; those of `DEFAULT` if None are given."""
    return [_contestant(queue, method) for method in (DEFAULT if methods is None else methods)]


def _contestant(queue: cl.CommandQueue, method: str) -> Contestant:
    prepare = _with_kept_plan if method == KEPT_PLAN else functools.partial(_by_method, method)
    return Contestant(f"clsparse/{method}", lambda problem: prepare(problem, queue))


@dataclass(frozen=True)
class Operands:
    """A and B on the device, by the queue and by the profiling one beside it, and the seconds of their transfer."""

    by_queue: dict[cl.CommandQueue, tuple[cs.csr_array, cs.csr_array]]
    transfer: float


def _by_method(method: str, problem: Spgemm, queue: cl.CommandQueue) -> OpenclCalls:
    operands = _on_device(problem, queue)
    name, deterministic = ("auto", False) if method == LOOSE else (method, True)

    def multiply(on: cl.CommandQueue) -> Arrays:
        return _arrays(cs.spgemm(*operands.by_queue[on], method=name, deterministic=deterministic))

    plan = cs.spgemm_plan(*operands.by_queue[queue], method=name, deterministic=deterministic)
    detail = ", ".join(f"{each.method} ({each.parameters}) {each.n_rows}" for each in plan.explain().bins)
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
            # What making it took is not to be profiled.
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
    parts = [to_device(queue, (each.data, each.indices, each.indptr)) for each in (problem.matrix, problem.right)]
    queue.finish()
    transfer = time.perf_counter() - start

    def operands(on: cl.CommandQueue) -> tuple[cs.csr_array, cs.csr_array]:
        shapes = problem.matrix.shape, problem.right.shape
        left, right = (cs.csr_array(each, shape=shape, queue=on) for each, shape in zip(parts, shapes, strict=True))
        return left, right

    return Operands({on: operands(on) for on in (queue, opencl.profiling_queue(queue))}, transfer)
