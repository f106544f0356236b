"""The conjugate gradient method, on the device."""

from __future__ import annotations

import numpy as np

from clsparse_py.krylov.sweep import Layout, Pass, Sweeps
from clsparse_py.krylov.system import System
from clsparse_py.krylov.watch import Watch

__all__ = ["LAYOUT", "PASSES", "cg"]

#: bound and norm are squares; rho is r z; alpha, rho_before and going are of the iteration under way, which counts if going is 1.
LAYOUT = Layout(
    scalars=("bound", "rho", "norm", "going", "alpha", "rho_before"), sums=("pq", "rr", "rz", "bb"), told=("norm", "going")
)

_RR = ("rr", "of_real(square(r))")
_START = Pass("cg_start", reads=("b", "q"), writes=("r",), lines=("r = b - q;",), sums=(_RR, ("bb", "of_real(square(b))")))
_PRECONDITIONED = Pass("cg_preconditioned", reads=("r", "z"), sums=(("rz", "times(conjugate(r), z)"),))
_CURVATURE = Pass("cg_curvature", reads=("p", "q"), sums=(("pq", "times(conjugate(p), q)"),))
# Whether the residual was small enough after the iteration before is decided here: from then on nothing changes.
_RESIDUAL = Pass(
    "cg_residual", reads=("q",), updates=("r",), takes=("bound", "rho", "norm"), totals=("pq",),
    first=(
        "const bool active = real_part(norm) >= real_part(bound) && real_part(norm) > 0;",
        "const T alpha = quotient(rho, pq);",
    ),
    lines=("if (active) r -= times(alpha, q);",), sums=(_RR,),
    keeps=(("going", "of_real(active ? 1 : 0)"), ("alpha", "alpha"), ("rho_before", "rho")), guarded=True,
)  # fmt: skip
# x is updated late, with the direction that is read for the next one anyway.
_DIRECTION = Pass(
    "cg_direction", reads=("r",), updates=("x", "p"), takes=("going", "alpha", "rho_before"), totals=("rr",),
    first=("const bool active = real_part(going) > 0;", "const T beta = quotient(rr, rho_before);"),
    lines=("x += times(alpha, p);", "p = r + times(beta, p);"),
    keeps=(("rho", "rr"), ("norm", "rr")), tells=(("norm", "rr"), ("going", "going")), guarded=True,
)  # fmt: skip
_DIRECTION_OF_M = Pass(
    "cg_direction_m", reads=("z",), updates=("x", "p"), takes=("going", "alpha", "rho_before"), totals=("rr", "rz"),
    first=("const bool active = real_part(going) > 0;", "const T beta = quotient(rz, rho_before);"),
    lines=("x += times(alpha, p);", "p = z + times(beta, p);"),
    keeps=(("rho", "rz"), ("norm", "rr")), tells=(("norm", "rr"), ("going", "going")), guarded=True,
)  # fmt: skip
PASSES = (_START, _PRECONDITIONED, _CURVATURE, _RESIDUAL, _DIRECTION, _DIRECTION_OF_M)


def cg(system: System) -> int:
    """Solve a system by the method, and return info."""
    A, M, x, maxiter = system.A, system.M, system.x, system.maxiter
    sweeps = Sweeps(system.chain, system.n, system.dtype, LAYOUT)
    r, p, q = (sweeps.vector() for _ in range(3))
    z = r if M is None else sweeps.vector()
    curvature, residual = sweeps.bind(_CURVATURE, p=p, q=q), sweeps.bind(_RESIDUAL, q=q, r=r)
    inner = None if M is None else sweeps.bind(_PRECONDITIONED, r=r, z=z)
    last, by = (_DIRECTION, {"r": r}) if M is None else (_DIRECTION_OF_M, {"z": z})
    direction = [sweeps.bind(last, 0, turn, x=x, p=p, **by) for turn in (0, 1)]
    system.begin(_START, sweeps, r=r, q=q)
    if M is not None and inner is not None:
        M(r, z)
        inner()
    sweeps.copy(p, z)
    totals = sweeps.totals()
    norm, bound = totals["rr"].real, system.bound(totals["bb"])
    if totals["bb"] == 0:
        sweeps.fill(x)
        return 0
    if norm < bound:
        return 0
    sweeps.set(bound=bound, rho=totals["rr" if M is None else "rz"], norm=norm)
    watch = Watch(sweeps, system.check_every)
    for iteration in range(maxiter):
        A(p, q)
        curvature()
        residual()
        if M is not None and inner is not None:
            M(r, z)
            inner()
        told = direction[watch.turn]()
        if iteration + 1 == maxiter:
            # The last iteration's norm is not looked at, as in SciPy: but this says whether the last one was needed.
            norm, going = watch.now(told)
            if system.callback is not None and going:
                system.callback(x)
            return maxiter if going or np.isnan(norm) else 0
        if system.callback is None:
            seen = watch.late(iteration, told)
        else:
            seen = watch.now(told)
            system.callback(x)
        if seen is not None and not (seen[0] >= bound and seen[0] > 0):
            return maxiter if np.isnan(seen[0]) else 0
    return maxiter
