"""The conjugate gradient method, on the device; over ranks in the form of `one_reduction`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._solvers.krylov.one_group import Product, Script, declare_scripts, iterate_together
from clsparse_py._solvers.krylov.one_reduction import cg_of_ranks
from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import System
from clsparse_py._solvers.krylov.watch import Iteration, iterate

__all__ = ["cg"]

# CG's scalars `bound` and `norm` are squares of norms of residuals; `rho` is the inner product of r and z = M r.
# CG's scalars `alpha`, `rho_before` and `going` belong to the iteration under way, which counts if `going` is 1.
#: Names of the scalars and sums of CG on the device, and of the scalars that the host reads.
LAYOUT = Layout(
    scalars=("bound", "rho", "norm", "going", "alpha", "rho_before"), sums=("pq", "rr", "rz", "bb", "qq", "rq"),
    told=("norm", "going"),
)  # fmt: skip

#: The name of the sum of squares of the residual r, and the expression of a summand.
_RR = ("rr", "of_real(square(r))")
#: The name of the sum for the curvature p^H A p, and the expression of a summand, where q is A p.
_PQ = ("pq", "times(conjugate(p), q)")
#: The vector pass that computes CG's residual of the first guess, and begins the sums for the norms of the residual and b.
_START = Pass("cg_start", reads=("b", "q"), writes=("r",), lines=("r = b - q;",), sums=(_RR, ("bb", "of_real(square(b))")))
#: The vector pass that begins the inner product of the residual r with z = M r.
_PRECONDITIONED = Pass("cg_preconditioned", reads=("r", "z"), sums=(("rz", "times(conjugate(r), z)"),))
#: The vector pass that begins CG's sum for the curvature p^H A p, without preconditioner, and ends the residual's sum of squares.
_CURVATURE = Pass(
    "cg_curvature", reads=("p", "q", "r"), takes=("going",), totals=("rr",),
    sums=(_PQ, ("qq", "of_real(square(q))"), ("rq", "times(conjugate(r), q)")),
    keeps=(("norm", "rr"),), tells=(("norm", "rr"), ("going", "going")),
)  # fmt: skip
# CG's vectors no longer change once the residual of the iteration before is small enough.
# CG's next direction uses a predicted norm of the residual, so the direction needs no separate pass; the norm is computed
# afterwards.
#: The vector pass of CG's step of x and r, and of the next direction, without a preconditioner.
_STEP = Pass(
    "cg_step", reads=("q",), updates=("x", "r", "p"), takes=("bound", "norm"), totals=("pq", "qq", "rq"),
    first=(
        "const R size = real_part(norm);",
        "const bool active = size > real_part(bound);",
        "const T alpha = quotient(norm, pq);",
        "const R predicted = size - 2 * real_part(times(alpha, rq)) + square(alpha) * real_part(qq);",
        "const R beta = fmax(predicted, (R)0) / size;",
    ),
    lines=("x += times(alpha, p);", "if (active) r -= times(alpha, q);", "p = r + p * beta;"), sums=(_RR,),
    keeps=(("going", "of_real(active ? 1 : 0)"),), guarded=True,
)  # fmt: skip
#: The vector pass that begins CG's sum for the curvature p^H A p, with preconditioner M, and ends the residual's sum of squares.
_CURVATURE_OF_M = Pass(
    "cg_curvature_m", reads=("p", "q"), takes=("going",), totals=("rr",), sums=(_PQ,),
    keeps=(("norm", "rr"),), tells=(("norm", "rr"), ("going", "going")),
)  # fmt: skip
#: The vector pass of CG's step of the residual alone, with a preconditioner M: x follows in `_DIRECTION`.
_RESIDUAL = Pass(
    "cg_residual", reads=("q",), updates=("r",), takes=("bound", "rho", "norm"), totals=("pq",),
    first=(
        "const bool active = real_part(norm) > real_part(bound);",
        "const T alpha = quotient(rho, pq);",
    ),
    lines=("if (active) r -= times(alpha, q);",), sums=(_RR,),
    keeps=(("going", "of_real(active ? 1 : 0)"), ("alpha", "alpha"), ("rho_before", "rho")), guarded=True,
)  # fmt: skip
#: The vector pass of CG's step of x, and of the next direction, with a preconditioner M: both read the direction p.
_DIRECTION = Pass(
    "cg_direction", reads=("z",), updates=("x", "p"), takes=("going", "alpha", "rho_before"), totals=("rz",),
    first=("const bool active = real_part(going) > 0;", "const T beta = quotient(rz, rho_before);"),
    lines=("x += times(alpha, p);", "p = z + times(beta, p);"), keeps=(("rho", "rz"),), guarded=True,
)  # fmt: skip
#: The expression of OpenCL C for whether another iteration of CG follows in the same launch.
_GOING = "real_part(scalar_going) > 0"
#: The script (passes and products) of CG's iterations in one launch, without a preconditioner.
_TOGETHER = Script("cg", (Product("A", "p", "q"), _CURVATURE, _STEP), _GOING, _CURVATURE)
#: The script (passes and products) of CG's iterations in one launch, with a preconditioner M.
_TOGETHER_M = Script(
    "cg_m", (Product("A", "p", "q"), _CURVATURE_OF_M, _RESIDUAL, Product("M", "r", "z"), _PRECONDITIONED, _DIRECTION), _GOING,
    _CURVATURE_OF_M,
)  # fmt: skip
declare_scripts(LAYOUT, _TOGETHER, _TOGETHER_M)
declare_passes(LAYOUT, _START, _PRECONDITIONED, _CURVATURE, _STEP, _CURVATURE_OF_M, _RESIDUAL, _DIRECTION)


def cg(system: System) -> int:
    """Solve a linear system by the conjugate gradient method, and return SciPy's info."""
    if system.all_sum is not None:
        return cg_of_ranks(system)
    A, M, x = system.A, system.M, system.x
    sweeps = system.sweeps(LAYOUT)
    r, p, q = (sweeps.vector() for _ in range(3))
    z = r if M is None else sweeps.vector()
    inner = None if M is None else sweeps.bind(_PRECONDITIONED, r=r, z=z)

    def start() -> None:
        """Enqueue the computation of the residual of CG's first guess, and of the first direction."""
        system.begin(_START, sweeps, r=r, q=q)
        if M is not None and inner is not None:
            M(r, z)
            inner()
        sweeps.copy(p, z)

    totals = system.scaling.begin_sums(start, sweeps)
    if system.is_solved(totals, sweeps):
        return 0
    bound = system.bound(totals["bb"])
    sweeps.set(bound=bound, rho=totals["rz"], going=1)
    info = _test_norm(system, bound)
    if system.group_matrices is not None:
        vectors = {"x": x, "r": r, "p": p, "q": q, "z": z}
        return iterate_together(system, system.group_matrices, sweeps, _TOGETHER if M is None else _TOGETHER_M, vectors, info)
    if M is None:
        curvature = [sweeps.bind(_CURVATURE, 0, turn, p=p, q=q, r=r) for turn in (0, 1)]
        step = sweeps.bind(_STEP, q=q, x=x, r=r, p=p)
    else:
        curvature = [sweeps.bind(_CURVATURE_OF_M, 0, turn, p=p, q=q) for turn in (0, 1)]
        residual, direction = sweeps.bind(_RESIDUAL, q=q, r=r), sweeps.bind(_DIRECTION, z=z, x=x, p=p)

    def begin(_: int, turn: int, goes_on: bool) -> cl.Event:
        """Enqueue the product of A with CG's direction and the pass of the curvature, and return the event of that pass."""
        if goes_on:
            A(p, q)
        return curvature[turn]()

    def finish(_: int) -> None:
        """Enqueue CG's steps of x and of the residual, and the computation of the next direction."""
        if M is None or inner is None:
            step()
            return
        residual()
        M(r, z)
        inner()
        direction()

    return iterate(system, sweeps, Iteration(begin, finish, info, early=1))


def _test_norm(system: System, bound: np.floating[Any]) -> Callable[[float, float], int | None]:
    """Return the test of the residual's squared norm: a function that returns SciPy's info, or None if iterations go on."""
    maxiter = system.maxiter
    return lambda norm, _: maxiter if np.isnan(norm) else 0 if norm <= bound else None
