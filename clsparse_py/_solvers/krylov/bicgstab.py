"""The stabilised biconjugate gradient method, on the device."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from clsparse_py._solvers.krylov.one_group import Product, Script, declare_scripts, iterate_together
from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import System
from clsparse_py._solvers.krylov.watch import Iteration, iterate

__all__ = ["bicgstab"]

# BiCGSTAB's state is 1 while iterations go on, 0 for a solution, -10 or -11 after a breakdown.
# The scalar `code` is BiCGSTAB's state at an iteration's begin, `middle` after its first product with A, `code_after` at its end.
# BiCGSTAB's scalars `bound` and `norm` are squares of norms of residuals.
# BiCGSTAB's scalar `tiny` is the least cosine between the vectors s and t = A M s from which the step omega is computed.
# BiCGSTAB's scalar `tolerance` is the least rho, divided by the norm of the residual, that is no breakdown.
# SciPy's BiCGSTAB has one breakdown tolerance for omega and rho, which suits vectors and matrices of norms near 1.
#: Names of the scalars and sums of BiCGSTAB on the device, and of the scalars that the host reads.
LAYOUT = Layout(
    scalars=("bound", "tolerance", "tiny", "code", "code_after", "middle", "rho", "rho_before", "alpha", "omega"),
    sums=("rr", "bb", "shadow_r", "shadow_v", "ts", "tt", "ss"),
    told=("norm", "code", "code_after"),
)

#: The name of the sum of squares of the residual r, and the expression of a summand.
_RR = ("rr", "of_real(square(r))")
#: The vector pass that computes BiCGSTAB's residual of the first guess, and the shadow residual, which is equal to that residual.
_START = Pass(
    "bicgstab_start", reads=("b", "q"), writes=("r", "shadow"), lines=("r = b - q;", "shadow = r;"),
    sums=(_RR, ("bb", "of_real(square(b))"), ("shadow_r", "of_real(square(r))")),
)  # fmt: skip
#: The vector pass that computes BiCGSTAB's next direction p, after the tests of the residual and for breakdown.
_DIRECTION = Pass(
    "bicgstab_direction", reads=("r", "v"), updates=("p",), totals=("shadow_r", "rr"),
    takes=("bound", "tolerance", "code_after", "rho_before", "alpha", "omega"),
    first=(
        "R code = real_part(code_after);",
        "if (code == 1 && real_part(rr) <= real_part(bound)) code = 0;",
        "if (code == 1 && magnitude(shadow_r) <= real_part(tolerance) * sqrt(real_part(rr))) code = -10;",
        "if (code == 1 && magnitude(omega) == 0) code = -11;",
        "const bool active = code == 1;",
        "const T beta = times(quotient(shadow_r, rho_before), quotient(alpha, omega));",
    ),
    lines=("p = r + times(beta, p - times(omega, v));",),
    keeps=(("code", "of_real(code)"), ("rho", "shadow_r")), guarded=True,
    tells=(("norm", "rr"), ("code", "of_real(code)"), ("code_after", "code_after")),
)  # fmt: skip
#: The vector pass that begins the inner product of the shadow residual with v = A M p, from which BiCGSTAB's alpha is computed.
_ALONG = Pass("bicgstab_along", reads=("shadow", "v"), sums=(("shadow_v", "times(conjugate(shadow), v)"),))
#: The vector pass of the half step of BiCGSTAB by alpha: the residual r becomes s = r - alpha v.
_HALF = Pass(
    "bicgstab_half", reads=("v",), updates=("r",), takes=("code", "rho"), totals=("shadow_v",),
    first=(
        "const bool active = real_part(code) == 1 && magnitude(shadow_v) != 0;",
        "const T alpha = quotient(rho, shadow_v);",
    ),
    lines=("if (active) r -= times(alpha, v);",), sums=(("ss", "of_real(square(r))"),),
    keeps=(("alpha", "alpha"), ("middle", "active || real_part(code) != 1 ? code : of_real(-11)")), guarded=True,
)  # fmt: skip
#: The vector pass that begins the inner products of t = A M s with s and with t, from which BiCGSTAB's omega is computed.
_STABILISER = Pass("bicgstab_stabiliser", reads=("t", "r"), sums=(("ts", "times(conjugate(t), r)"), ("tt", "of_real(square(t))")))


def _declare_end(name: str, r_m: str) -> Pass:
    """Return the vector pass that ends an iteration of BiCGSTAB by the step omega of x and r; r_m is M r, or r without M."""
    # If the residual is small enough after the half step by alpha, the solution x takes the half step alone.
    return Pass(
        name, reads=("t", "shadow", "p_m", *((r_m,) if r_m != "r" else ())), updates=("x", "r"), totals=("ss", "ts", "tt"),
        takes=("bound", "tiny", "middle", "alpha", "rho"),
        first=(
            "const bool active = real_part(middle) == 1, found = real_part(ss) <= real_part(bound);",
            "const bool across = magnitude(ts) <= real_part(tiny) * sqrt(real_part(ss)) * sqrt(real_part(tt));",
            "const T omega = across ? ZERO : quotient(ts, tt);",
        ),
        lines=(
            "x += times(alpha, p_m);",
            f"if (active && !found) {{ x += times(omega, {r_m}); r -= times(omega, t); }}",
        ),
        sums=(_RR, ("shadow_r", "times(conjugate(shadow), r)")),
        keeps=(("omega", "omega"), ("rho_before", "rho"), ("code_after", "active && found ? of_real(0) : middle")), guarded=True,
    )  # fmt: skip


#: The vector pass that ends an iteration of BiCGSTAB without a preconditioner.
_END = _declare_end("bicgstab_end", "r")
#: The vector pass that ends an iteration of BiCGSTAB with a preconditioner M.
_END_OF_M = _declare_end("bicgstab_end_m", "r_m")


def _declare_together(name: str, of_p: tuple[Product, ...], of_r: tuple[Product, ...], end: Pass) -> Script:
    """Return the script (steps of an iteration) of BiCGSTAB in one launch; without M the vectors p_m and r_m are p and r."""
    return Script(
        name,
        (
            _DIRECTION, *of_p, Product("A", "p_m", "v"), _ALONG, _HALF, *of_r, Product("A", "r_m", "t"), _STABILISER, end,
        ),
        "real_part(scalar_code) == 1", _DIRECTION,
    )  # fmt: skip


#: The script (passes and products) of BiCGSTAB's iterations in one launch, without a preconditioner.
_TOGETHER = _declare_together("bicgstab", (), (), _END)
#: The script (passes and products) of BiCGSTAB's iterations in one launch, with a preconditioner M.
_TOGETHER_M = _declare_together("bicgstab_m", (Product("M", "p", "p_m"),), (Product("M", "r", "r_m"),), _END_OF_M)
declare_scripts(LAYOUT, _TOGETHER, _TOGETHER_M)
declare_passes(LAYOUT, _START, _DIRECTION, _ALONG, _HALF, _STABILISER, _END, _END_OF_M)


def bicgstab(system: System) -> int:
    """Solve a linear system by BiCGSTAB, and return SciPy's info."""
    A, M, x, maxiter = system.A, system.M, system.x, system.maxiter
    sweeps = system.sweeps(LAYOUT)
    r, shadow, p, v, t = (sweeps.vector() for _ in range(5))
    p_m, r_m = (p, r) if M is None else (sweeps.vector(), sweeps.vector())
    totals = system.scaling.begin_sums(lambda: system.begin(_START, sweeps, q=v, r=r, shadow=shadow), sweeps)
    if system.is_solved(totals, sweeps):
        return 0
    bound = system.bound(totals["bb"])
    for vector in (p, v):
        sweeps.fill(vector)
    tiny = float(np.finfo(system.dtype).eps) ** 2
    sweeps.set(bound=bound, tolerance=tiny * np.sqrt(totals["rr"].real), tiny=tiny, code_after=1, rho_before=1, alpha=1, omega=1)

    def info(norm: float, code: float, _: float) -> int | None:
        """Return SciPy's info for the scalars of an iteration of BiCGSTAB, or None if iterations go on."""
        if np.isnan(norm):
            return maxiter
        return None if code == 1 else int(code)

    def last(norm: float, code: float, code_after: float) -> int:
        """Return SciPy's info for the scalars of the last iteration of BiCGSTAB."""
        if code == 0 and not np.isnan(norm):
            return 0
        return maxiter if code_after == 1 or np.isnan(norm) else int(code_after)

    if system.group_matrices is not None:
        vectors = {"x": x, "r": r, "shadow": shadow, "p": p, "v": v, "t": t, "p_m": p_m, "r_m": r_m, "q": t}
        return iterate_together(
            system, system.group_matrices, sweeps, _TOGETHER if M is None else _TOGETHER_M, vectors, info, last
        )
    direction = [sweeps.bind(_DIRECTION, 0, turn, r=r, v=v, p=p) for turn in (0, 1)]
    along = sweeps.bind(_ALONG, shadow=shadow, v=v)
    half, stabiliser = sweeps.bind(_HALF, v=v, r=r), sweeps.bind(_STABILISER, t=t, r=r)
    end = sweeps.bind(_END if M is None else _END_OF_M, t=t, shadow=shadow, p_m=p_m, r_m=r_m, x=x, r=r)

    def begin(_: int, turn: int, goes_on: bool) -> cl.Event:  # noqa: ARG001 - no product is among it
        """Enqueue the first vector pass of an iteration of BiCGSTAB, and return the event of that pass."""
        return direction[turn]()

    def finish(number: int) -> bool:
        """Enqueue the rest of an iteration of BiCGSTAB; return whether it is the first one and its half step alone is enough."""
        if M is not None:
            M(p, p_m)
        A(p_m, v)
        along()
        half()
        if not number and sweeps.totals()["ss"].real <= bound:
            end()
            return True
        if M is not None:
            M(r, r_m)
        A(r_m, t)
        stabiliser()
        end()
        return False

    return iterate(system, sweeps, Iteration(begin, finish, info, last, lambda _norm, _code, code_after: code_after == 1))
