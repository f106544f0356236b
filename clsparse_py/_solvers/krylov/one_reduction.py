"""Conjugate gradients with one reduction an iteration, for ranks.

Chronopoulos and Gear, "s-step iterative methods for symmetric linear systems": products with A are made of the residual (or of
what M makes of it), and those of the direction follow by recurrence, at the cost of a vector more.
"""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import System
from clsparse_py._solvers.krylov.watch import Iteration, iterate

__all__ = ["cg_one_reduction"]

#: Scalars and sums of CG with one reduction. bound and norm are squares; rho is r z. alpha, rho and going are of the
#: iteration under way, which counts if going is 1; those of the iteration before are alpha_before, rho_before and counted.
LAYOUT = Layout(
    scalars=("bound", "alpha", "rho", "going", "alpha_before", "rho_before", "counted"), sums=("rr", "rz", "zw", "bb"),
    told=("norm", "going"),
)  # fmt: skip

#: The sum for the square of the residual's norm.
_RR = ("rr", "of_real(square(r))")
#: The residual of the first guess, and the sums for its norm and b's.
_START = Pass(
    "one_reduction_start", reads=("b", "q"), writes=("r",), lines=("r = b - q;",), sums=(_RR, ("bb", "of_real(square(b))"))
)  # fmt: skip


def _sums(name: str, z: str) -> Pass:
    """Return the pass that begins all inner products of an iteration; z is M r, or r without a preconditioner."""
    return Pass(
        name, reads=("r", "w", *((z,) if z != "r" else ())), takes=("alpha", "rho", "going"),
        sums=(_RR, ("rz", f"times(conjugate(r), {z})"), ("zw", f"times(conjugate({z}), w)")),
        keeps=(("alpha_before", "alpha"), ("rho_before", "rho"), ("counted", "going")),
    )  # fmt: skip


def _step(name: str, z: str) -> Pass:
    """Return the pass that makes the next direction and residual; x takes the step of the iteration before."""
    return Pass(
        name, reads=("w", *((z,) if z != "r" else ())), updates=("x", "r", "p", "s"),
        takes=("bound", "alpha_before", "rho_before", "counted"), totals=("rr", "rz", "zw"),
        first=(
            "const bool was_active = real_part(counted) > 0;",
            "const bool active = was_active && real_part(rr) > real_part(bound);",
            "const bool first = !(square(alpha_before) > 0);",
            "const T beta = first ? ZERO : quotient(rz, rho_before);",
            "const T alpha = quotient(rz, first ? zw : zw - times(beta, quotient(rz, alpha_before)));",
        ),
        lines=(
            "if (was_active) x += times(alpha_before, p);",
            f"if (active) {{ p = {z} + times(beta, p); s = w + times(beta, s); r -= times(alpha, s); }}",
        ),
        keeps=(("alpha", "alpha"), ("rho", "rz"), ("going", "of_real(active ? 1 : 0)")),
        tells=(("norm", "rr"), ("going", "counted")),
    )  # fmt: skip


#: The inner products of an iteration without a preconditioner.
_SUMS = _sums("one_reduction_sums", "r")
#: The inner products of an iteration with a preconditioner M.
_SUMS_OF_M = _sums("one_reduction_sums_m", "z")
#: The step of an iteration without a preconditioner.
_STEP = _step("one_reduction_step", "r")
#: The step of an iteration with a preconditioner M.
_STEP_OF_M = _step("one_reduction_step_m", "z")
declare_passes(LAYOUT, _START, _SUMS, _SUMS_OF_M, _STEP, _STEP_OF_M)


def cg_one_reduction(system: System) -> int:
    """Solve a system by conjugate gradients with one reduction an iteration, and return info."""
    A, M, x, maxiter = system.A, system.M, system.x, system.maxiter
    sweeps = system.sweeps(LAYOUT)
    r, p, s, w = (sweeps.vector() for _ in range(4))
    z = r if M is None else sweeps.vector()
    preconditioned = {} if M is None else {"z": z}
    sums = sweeps.bind(_SUMS if M is None else _SUMS_OF_M, 0, 0, r=r, w=w, **preconditioned)
    step = [
        sweeps.bind(_STEP if M is None else _STEP_OF_M, 0, turn, w=w, x=x, r=r, p=p, s=s, **preconditioned) for turn in (0, 1)
    ]
    totals = system.scaling.begin_sums(lambda: system.begin(_START, sweeps, r=r, q=w), sweeps)
    norm, bound = totals["rr"].real, system.bound(totals["bb"])
    if totals["bb"] == 0:
        sweeps.fill(x)
        return 0
    if norm <= bound:
        return 0
    for vector in (p, s):
        sweeps.fill(vector)
    sweeps.set(bound=bound, going=1)
    if M is not None:
        M(r, z)

    def begin(_: int, turn: int, goes_on: bool) -> cl.Event:
        # After the last iteration the residual alone is asked for, and x has the last step to come.
        if goes_on:
            A(z, w)
        sums()
        return step[turn]()

    def rest(number: int) -> bool:
        if M is not None:
            M(r, z)
        if number:
            return False
        # These sums are begun again with the product, unless the first residual is small enough.
        sums()
        return bool(sweeps.totals()["rr"].real <= bound)

    def info(norm: float, _: float) -> int | None:
        return maxiter if np.isnan(norm) else 0 if norm <= bound else None

    def last(norm: float, _: float) -> int:
        return 0 if norm <= bound else maxiter

    return iterate(system, sweeps, Iteration(begin, rest, info, last))
