"""NumPy: the primitives that it has or that one writes with it, one thread, a new result at every call."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from bench.contestants import Contestant, HostPrepared
from bench.peers.array_primitives import OPERATIONS, array_primitive
from bench.problems.primitives import Primitive


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"numpy": np.__version__}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    return [Contestant("numpy", _prepare)] if operation in OPERATIONS else []


def _prepare(problem: Primitive) -> HostPrepared:
    made = array_primitive(problem)
    return HostPrepared(problem, lambda: made.compute(np, *made.operands), f"1 thread, {made.detail}", unpack=made.unpacked)
