"""PyAMG: hierarchies on the host, one thread, with its defaults and with Jacobi's smoothers in place of Gauss and Seidel's."""

from __future__ import annotations

import functools

import pyopencl as cl

from bench.contestants import Contestant
from bench.hierarchies import HierarchyCalls, describe
from bench.machine import version_of
from bench.problems.multigrid import OPERATIONS, Multigrid

_JACOBI = ("jacobi", {"omega": 4 / 3})


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    return None if version_of("pyamg") else "pyamg is not installed"


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {"pyamg": version_of("pyamg") or "unknown"}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation not in OPERATIONS:
        return []
    jacobi = functools.partial(_prepare, smoothers={"presmoother": _JACOBI, "postsmoother": _JACOBI})
    return [Contestant("pyamg", functools.partial(_prepare, smoothers={})), Contestant("pyamg/jacobi", jacobi)]


def _prepare(problem: Multigrid, smoothers: dict[str, object]) -> HierarchyCalls:
    import pyamg

    set_up = functools.partial(pyamg.smoothed_aggregation_solver, problem.matrix, **smoothers)
    ml = set_up()

    def solve(hierarchy: pyamg.MultilevelSolver) -> object:
        return hierarchy.solve(problem.b, tol=problem.tolerance, accel="cg")

    # It has no refresh: other values are another set-up.
    is_solution = problem.operation == "multigrid_solve"
    call = functools.partial(solve, ml) if is_solution else set_up
    solution = (lambda left: left) if is_solution else solve
    return HierarchyCalls(problem, call, solution, lambda: None, describe(ml, problem, problem.b))
