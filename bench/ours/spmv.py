"""SpMV by the library: as users write it, by a plan of its choice into memory that is kept, and by any plan that is named."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace
from unittest.mock import patch

import pyopencl as cl
import pyopencl.array as cla

import clsparse_py as cs
from bench import opencl
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls
from bench.problems.spmv import Spmv
from clsparse_py._operations.spmv import KernelChoice
from clsparse_py._operations.spmv.choose import Thresholds

# As users write it: `A @ x`, a new y each time. The plan that A itself keeps is part of that.
PLAIN = "plain"
# Calls before the samples of `PLAIN`: samples begin with the 64th, when A's plan has all the forms that later calls use.
_EARLIER_CALLS = 63
# Behind the name of a plan: it looks for row patterns, whatever the device's profile says.
PATTERNS = "+row_patterns"


@dataclass(frozen=True)
class Variant:
    """A plan: ``auto``, ``scheme``, or ``scheme:kernel`` with ``:parameter=number`` after it, and with or without `PATTERNS`."""

    name: str
    scheme: str
    kernel: str | KernelChoice | None
    patterns: bool

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read a variant from the command line.

        Raises
        ------
        ValueError
            If it does not have that form, or there is no such kernel or parameter.
        """
        patterns = text.endswith(PATTERNS)
        scheme, *rest = text.removesuffix(PATTERNS).split(":")
        if not rest:
            return cls(text, scheme, None, patterns)
        kernel, *assignments = rest
        try:
            parameters = {name: int(number) for name, number in (assignment.split("=") for assignment in assignments)}
            return cls(text, scheme, KernelChoice(kernel, **parameters) if parameters else kernel, patterns)
        except (TypeError, ValueError) as error:
            raise ValueError(f"variant: {text!r} is not scheme:kernel:parameter=number: {error}") from error


@functools.lru_cache(maxsize=1)
def _on_device(problem: Spmv, queue: cl.CommandQueue) -> tuple[cs.csr_array, cla.Array, float]:
    """Return A and x on the device, once for all variants, and the seconds that this took."""
    start = time.perf_counter()
    matrix, x = cs.csr_array(problem.matrix, queue=queue), cla.to_device(queue, problem.x)
    queue.finish()
    return matrix, x, time.perf_counter() - start


def contestants(queue: cl.CommandQueue, variants: list[str]) -> list[Contestant]:
    """Return a contestant for each variant: ``plain``, or one that `Variant.parse` reads."""
    return [_plain_contestant(queue) if text == PLAIN else _contestant(queue, Variant.parse(text)) for text in variants]


def _plain_contestant(queue: cl.CommandQueue) -> Contestant:
    return Contestant(f"clsparse/{PLAIN}", lambda problem: _plain(problem, queue))


def _plain(problem: Spmv, queue: cl.CommandQueue) -> OpenclCalls:
    start = time.perf_counter()
    queues = (queue, opencl.profiling_queue(queue))
    operands = {on: (cs.csr_array(problem.matrix, queue=on), cla.to_device(on, problem.x)) for on in queues}
    queue.finish()
    once = {"transfer": time.perf_counter() - start}

    def multiply(on: cl.CommandQueue) -> Arrays:
        matrix, x = operands[on]
        return (matrix @ x,)

    calls = OpenclCalls(problem, queue, multiply, once, detail="A @ x")
    for on in queues:
        for _ in range(_EARLIER_CALLS):
            multiply(on)
        on.finish()
    return calls


def _contestant(queue: cl.CommandQueue, variant: Variant) -> Contestant:
    return Contestant(f"clsparse/{variant.name}", lambda problem: _prepare(problem, queue, variant))


def _prepare(problem: Spmv, queue: cl.CommandQueue, variant: Variant) -> OpenclCalls:
    """Return y = A @ x by a plan; ``single`` is what the plan's own profiling says."""
    matrix, x, transfer = _on_device(problem, queue)
    y = cla.empty(queue, problem.reference[0].size, problem.x.dtype)
    start = time.perf_counter()
    plan = cs.spmv_plan(matrix, scheme=variant.scheme, kernel=variant.kernel)
    if variant.patterns:
        looking = replace(Thresholds.of(plan.device), min_patterned_rows=1, max_patterned_row=255)
        with patch.object(Thresholds, "of", lambda *_: looking):
            plan.settle(matrix, x, y)
    queue.finish()
    once = {"transfer": transfer, "plan": time.perf_counter() - start}

    def multiply(_queue: cl.CommandQueue) -> Arrays:
        cs.spmv(matrix, x, plan=plan, out=y)
        return (y,)

    def on_device() -> dict[str, float]:
        return {"single": plan.profile(matrix, x, y)}

    return OpenclCalls(problem, queue, multiply, once, detail=str(plan), on_device=on_device)
