"""SpMV by the library: the plan that it chooses, and any that is named."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import pyopencl as cl
import pyopencl.array as cla

import clsparse_py as cs
from bench.contestants import Contestant
from bench.opencl_calls import Arrays, OpenclCalls
from bench.problems.spmv import Spmv
from clsparse_py.spmv import KernelChoice


@dataclass(frozen=True)
class Variant:
    """A way of ours to compute a product: ``auto``, ``scheme``, or ``scheme:kernel`` with ``:parameter=number`` after it."""

    name: str
    scheme: str
    kernel: str | KernelChoice | None

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read a variant from the command line.

        Raises
        ------
        ValueError
            If it does not have that form, or there is no such kernel or parameter.
        """
        scheme, *rest = text.split(":")
        if not rest:
            return cls(text, scheme, None)
        kernel, *assignments = rest
        try:
            parameters = {name: int(number) for name, number in (each.split("=") for each in assignments)}
            return cls(text, scheme, KernelChoice(kernel, **parameters) if parameters else kernel)
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
    """Return a contestant for each variant, given as `Variant.parse` reads it."""
    return [_contestant(queue, Variant.parse(text)) for text in variants]


def _contestant(queue: cl.CommandQueue, variant: Variant) -> Contestant:
    return Contestant(f"clsparse/{variant.name}", lambda problem: _prepared(problem, queue, variant))


def _prepared(problem: Spmv, queue: cl.CommandQueue, variant: Variant) -> OpenclCalls:
    """Return y = A @ x by a plan; ``single`` is what the plan's own profiling says."""
    matrix, x, transfer = _on_device(problem, queue)
    y = cla.empty(queue, problem.reference[0].size, problem.x.dtype)
    start = time.perf_counter()
    plan = cs.spmv_plan(matrix, scheme=variant.scheme, kernel=variant.kernel)
    queue.finish()
    once = {"transfer": transfer, "plan": time.perf_counter() - start}

    def multiply(_queue: cl.CommandQueue) -> Arrays:
        cs.spmv(matrix, x, plan=plan, out=y)
        return (y,)

    def on_device() -> dict[str, float]:
        return {"single": plan.profile(matrix, x, y)}

    return OpenclCalls(problem, queue, multiply, once, detail=str(plan), on_device=on_device)
