"""SciPy: one thread, a new result at every call, as its users have it."""

from __future__ import annotations

import scipy

from bench.contestants import Contestant, HostPrepared
from bench.problem import Problem


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"scipy": scipy.__version__}


def contestants(operation: str) -> list[Contestant]:
    """Return who can compute an operation."""
    return [Contestant("scipy", _spmv)] if operation == "spmv" else []


def _spmv(problem: Problem) -> HostPrepared:
    return HostPrepared(problem, lambda: problem.matrix @ problem.x, detail="1 thread")
