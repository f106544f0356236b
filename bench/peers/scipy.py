"""SciPy: one thread, a new result at every call, as its users have it."""

from __future__ import annotations

import pyopencl as cl
import scipy

from bench.contestants import Contestant, HostPrepared
from bench.problems.base import Result
from bench.problems.spmv import Spmv
from bench.problems.sptrans import Sptrans


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"scipy": scipy.__version__}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    calls = {"spmv": _spmv, "sptrans": _sptrans}
    return [Contestant("scipy", calls[operation])] if operation in calls else []


def _spmv(problem: Spmv) -> HostPrepared:
    return HostPrepared(problem, lambda: (problem.matrix @ problem.x,), detail="1 thread")


def _sptrans(problem: Sptrans) -> HostPrepared:
    def transpose() -> Result:
        columns = problem.matrix.tocsc()
        return columns.indptr, columns.indices, columns.data

    return HostPrepared(problem, transpose, detail="1 thread")
