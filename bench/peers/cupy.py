"""CuPy: the primitives that it has or that one writes with it, in memory of its own pool."""

from __future__ import annotations

import pyopencl as cl

from bench.contestants import Contestant
from bench.peers import cuda
from bench.peers.array_primitives import OPERATIONS, array_primitive
from bench.problems.primitives import Primitive


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return cuda.available()


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return cuda.versions()


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    return [Contestant("cupy", _prepared)] if operation in OPERATIONS else []


def _prepared(problem: Primitive) -> cuda.CudaCalls:
    import cupy

    made = array_primitive(problem)
    operands, transfer = cuda.to_device(made.operands)
    once = {"transfer": transfer}
    return cuda.CudaCalls(problem, lambda: made.compute(cupy, *operands), once, made.detail, unpack=made.unpacked)
