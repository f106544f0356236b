"""Multigrid by the library, as users write it: A and b are on the device, and so are the hierarchy and x."""

from __future__ import annotations

import functools
import time

import pyopencl as cl
import pyopencl.array as cla

import clsparse_py as cs
from bench.contestants import Contestant
from bench.hierarchies import HierarchyCalls, describe
from bench.problems.multigrid import Multigrid


def contestants(queue: cl.CommandQueue) -> list[Contestant]:
    """Return the library, by its plain call."""
    return [Contestant("clsparse/plain", functools.partial(_prepare, queue))]


def _prepare(queue: cl.CommandQueue, problem: Multigrid) -> HierarchyCalls:
    start = time.perf_counter()
    A, b = cs.csr_array(problem.matrix, queue=queue), cla.to_device(queue, problem.b)
    queue.finish()
    transferred = time.perf_counter()
    ml = cs.amg.smoothed_aggregation_solver(A)
    queue.finish()
    once = {"transfer": transferred - start, "plan": time.perf_counter() - transferred}

    def solve(hierarchy: cs.amg.MultilevelSolver) -> cla.Array:
        return hierarchy.solve(b, tol=problem.tolerance, accel="cg")

    def refresh() -> cs.amg.MultilevelSolver:
        ml.refresh(A.data)
        return ml

    made = {
        "multigrid_setup": lambda: cs.amg.smoothed_aggregation_solver(A),
        "multigrid_refresh": refresh,
        "multigrid_solve": lambda: solve(ml),
    }[problem.operation]
    is_solution = problem.operation == "multigrid_solve"
    result = HierarchyCalls(
        problem, made, lambda left: (left if is_solution else solve(left)).get(), queue.finish, describe(ml, problem, b)
    )
    result.once |= once
    return result
