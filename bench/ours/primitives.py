"""The library's primitives, by their public functions on device arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pyopencl as cl

from bench import opencl
from bench.contestants import Contestant, DeclinedError
from bench.opencl_calls import Arrays, OpenclCalls, operands_on_device
from bench.problems.primitives import Primitive
from clsparse_py import primitives

# Options besides the default; on a GPU the simple algorithm has one work-item merge half of a skewed input in the end.
_ALTERNATIVES: dict[str, list[dict[str, str]]] = {"segmented_merge": [{"algorithm": "simple"}]}
# Most elements of a skewed input that one work-item of a GPU merges.
_LONGEST_SERIAL_MERGE = 10**6


def contestants(operation: str, queue: cl.CommandQueue) -> list[Contestant]:
    """Return a contestant with the default options, and one with others where there are some."""
    return [_contestant(queue, options) for options in ({}, *_ALTERNATIVES.get(operation, []))]


def _contestant(queue: cl.CommandQueue, options: Mapping[str, Any]) -> Contestant:
    name = "-".join(options.values()) or "auto"
    return Contestant(f"clsparse/{name}", lambda problem: _prepare(problem, queue, options))


def _prepare(problem: Primitive, queue: cl.CommandQueue, options: Mapping[str, Any]) -> OpenclCalls:
    """Return a primitive with some options."""
    serial = "simple" in options.values() and "skewed" in problem.input and not opencl.is_cpu(queue.device)
    if serial and problem.sizes["elements"] > _LONGEST_SERIAL_MERGE:
        raise DeclinedError(f"one work-item would merge half of {problem.sizes['elements']} elements")
    function = functools.partial(getattr(primitives, problem.operation), **options)
    operands, transfer = operands_on_device(problem, queue)

    def compute(on: cl.CommandQueue) -> Arrays:
        result = function(**{name: array.with_queue(on) for name, array in operands.items()})
        return result if isinstance(result, tuple) else (result,)

    detail = ", ".join(f"{name} {value}" for name, value in options.items())
    return OpenclCalls(problem, queue, compute, {"transfer": transfer}, detail=detail)
