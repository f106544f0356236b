"""The conjugate gradient method, on the device."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from clsparse_py._solvers.krylov.one_group import Product, Script, declare_scripts, iterate_together
from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import System
from clsparse_py._solvers.krylov.watch import Iteration, iterate

__all__ = ["cg"]

#: Scalars and sums of CG. bound and norm are squares; rho is r z; alpha, rho_before and going are of the iteration under way,
#: which counts if going is 1.
LAYOUT = Layout(
    scalars=("bound", "rho", "norm", "going", "alpha", "rho_before"), sums=("pq", "rr", "rz", "bb", "qq", "rq"),
    told=("norm", "going"),
)  # fmt: skip

#: The sum for the square of the residual's norm.
_RR = ("rr", "of_real(square(r))")
#: The sum for the curvature p^H A p, where q is A p.
_PQ = ("pq", "times(conjugate(p), q)")
#: The residual of the first guess, and the sums for its norm and b's.
_START = Pass("cg_start", reads=("b", "q"), writes=("r",), lines=("r = b - q;",), sums=(_RR, ("bb", "of_real(square(b))")))
#: The inner product of the residual r with z = M r.
_PRECONDITIONED = Pass("cg_preconditioned", reads=("r", "z"), sums=(("rz", "times(conjugate(r), z)"),))
#: The curvature p^H A p without a preconditioner; the residual's norm after the iteration before is ended here, and told.
_CURVATURE = Pass(
    "cg_curvature", reads=("p", "q", "r"), takes=("going",), totals=("rr",),
    sums=(_PQ, ("qq", "of_real(square(q))"), ("rq", "times(conjugate(r), q)")),
    keeps=(("norm", "rr"),), tells=(("norm", "rr"), ("going", "going")),
)  # fmt: skip
#: A step of x and r, and the next direction, without a preconditioner. Whether the residual was small enough after the iteration
#: before is decided here: from then on nothing changes. The residual's norm is predicted for the next direction, which needs no
#: pass of its own then, and computed anew for the next iteration.
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
#: The curvature p^H A p with a preconditioner M.
_CURVATURE_OF_M = Pass(
    "cg_curvature_m", reads=("p", "q"), takes=("going",), totals=("rr",), sums=(_PQ,),
    keeps=(("norm", "rr"),), tells=(("norm", "rr"), ("going", "going")),
)  # fmt: skip
#: The step of the residual alone, with a preconditioner M: x follows in `_DIRECTION`.
_RESIDUAL = Pass(
    "cg_residual", reads=("q",), updates=("r",), takes=("bound", "rho", "norm"), totals=("pq",),
    first=(
        "const bool active = real_part(norm) > real_part(bound);",
        "const T alpha = quotient(rho, pq);",
    ),
    lines=("if (active) r -= times(alpha, q);",), sums=(_RR,),
    keeps=(("going", "of_real(active ? 1 : 0)"), ("alpha", "alpha"), ("rho_before", "rho")), guarded=True,
)  # fmt: skip
#: A step of x and the next direction, with M: x is updated late, as the direction is read for the next one anyway.
_DIRECTION = Pass(
    "cg_direction", reads=("z",), updates=("x", "p"), takes=("going", "alpha", "rho_before"), totals=("rz",),
    first=("const bool active = real_part(going) > 0;", "const T beta = quotient(rz, rho_before);"),
    lines=("x += times(alpha, p);", "p = z + times(beta, p);"), keeps=(("rho", "rz"),), guarded=True,
)  # fmt: skip
#: Whether another iteration follows in the same launch.
_GOING = "real_part(scalar_going) > 0"
#: Iterations in one launch, without a preconditioner.
_TOGETHER = Script("cg", (Product("A", "p", "q"), _CURVATURE, _STEP), _GOING, _CURVATURE)
#: Iterations in one launch, with a preconditioner M.
_TOGETHER_M = Script(
    "cg_m", (Product("A", "p", "q"), _CURVATURE_OF_M, _RESIDUAL, Product("M", "r", "z"), _PRECONDITIONED, _DIRECTION), _GOING,
    _CURVATURE_OF_M,
)  # fmt: skip
declare_scripts(LAYOUT, _TOGETHER, _TOGETHER_M)
declare_passes(LAYOUT, _START, _PRECONDITIONED, _CURVATURE, _STEP, _CURVATURE_OF_M, _RESIDUAL, _DIRECTION)


def cg(system: System) -> int:
    """Solve a system by the conjugate gradient method, and return info."""
    A, M, x, maxiter = system.A, system.M, system.x, system.maxiter
    sweeps = system.sweeps(LAYOUT)
    r, p, q = (sweeps.vector() for _ in range(3))
    z = r if M is None else sweeps.vector()
    inner = None if M is None else sweeps.bind(_PRECONDITIONED, r=r, z=z)

    def start() -> None:
        system.begin(_START, sweeps, r=r, q=q)
        if M is not None and inner is not None:
            M(r, z)
            inner()
        sweeps.copy(p, z)

    totals = system.scaling.begin_sums(start, sweeps)
    norm, bound = totals["rr"].real, system.bound(totals["bb"])
    if totals["bb"] == 0:
        sweeps.fill(x)
        return 0
    if norm <= bound:
        return 0
    sweeps.set(bound=bound, rho=totals["rz"], going=1)

    def info(norm: float, _: float) -> int | None:
        return maxiter if np.isnan(norm) else 0 if norm <= bound else None

    def last(norm: float, _: float) -> int:
        return 0 if norm <= bound else maxiter

    if system.group_matrices is not None:
        vectors = {"x": x, "r": r, "p": p, "q": q, "z": z}
        return iterate_together(
            system, system.group_matrices, sweeps, _TOGETHER if M is None else _TOGETHER_M, vectors, info, last
        )
    if M is None:
        curvature = [sweeps.bind(_CURVATURE, 0, turn, p=p, q=q, r=r) for turn in (0, 1)]
        step = sweeps.bind(_STEP, q=q, x=x, r=r, p=p)
    else:
        curvature = [sweeps.bind(_CURVATURE_OF_M, 0, turn, p=p, q=q) for turn in (0, 1)]
        residual, direction = sweeps.bind(_RESIDUAL, q=q, r=r), sweeps.bind(_DIRECTION, z=z, x=x, p=p)

    def begin(_: int, turn: int, goes_on: bool) -> cl.Event:
        if goes_on:
            A(p, q)
        return curvature[turn]()

    def rest(_: int) -> None:
        if M is None or inner is None:
            step()
            return
        residual()
        M(r, z)
        inner()
        direction()

    return iterate(system, sweeps, Iteration(begin, rest, info, last, early=1))
