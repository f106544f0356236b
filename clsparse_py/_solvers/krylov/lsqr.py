"""LSQR, for least-squares problems, on the device."""

from __future__ import annotations

from typing import Any

from pyopencl import array as cl_array

from clsparse_py._solvers.krylov import bidiagonal
from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import LeastSquares

__all__ = ["lsqr"]

#: Names of LSQR's scalars that the host reads, as in Paige and Saunders' paper and program.
_TOLD = ("stop", "itn", "r1norm", "r2norm", "anorm", "acond", "arnorm", "xnorm")
#: Names of LSQR's scalars that iterations hand on to the next iteration, as in Paige and Saunders' paper and program.
_CARRIED = (*_TOLD, "alpha", "beta", "rhobar", "phibar", "ddnorm", "res2", "xxnorm", "z", "cs2", "sn2")

#: Names of the scalars and sums of LSQR on the device, and of the scalars that the host reads.
LAYOUT = Layout(scalars=bidiagonal.name_scalars(_CARRIED, "of_w"), sums=("uu", "bb", "vv", "ww"), told=_TOLD)

#: The vector pass that computes LSQR's first direction w = v / alpha, and begins the sum for the norm of w.
_FIRST = Pass(
    "lsqr_first", reads=("v",), writes=("w",), takes=("alpha_1",), lines=("w = v / real_part(alpha_1);",),
    sums=(("ww", "of_real(square(w))"),),
)  # fmt: skip
#: The vector pass that computes LSQR's next left vector u, and ends the sum of squares of w that the update before began.
_LEFT = bidiagonal.declare_left_pass("lsqr", _CARRIED, _TOLD, totals=("ww",), keeps=(("of_w", "ww"),))
#: The vector pass that computes the next right vector v of LSQR's bidiagonalisation.
_RIGHT = bidiagonal.declare_right_pass("lsqr")


def _declare_update(name: str, *, variance: bool) -> Pass:
    """Return the vector pass that ends an iteration of LSQR: the rotation, the steps of x and w, and the tests."""
    return Pass(
        name, reads=("v",), updates=("x", "w", *(("var",) if variance else ())), totals=("vv",),
        takes=(
            *(f"{scalar}_0" for scalar in _CARRIED), *(f"{scalar}_set" for scalar in bidiagonal.CONSTANTS), "beta_new", "of_w",
        ),
        first=(
            "const bool active = real_part(stop_0) == 0;",
            bidiagonal.unpack(_CARRIED),
            bidiagonal.unpack(bidiagonal.CONSTANTS, "_set"),
            "R step = 0, kept = 0, scale = 0, inverse = 0;",
            "if (active) {",
            "    beta = real_part(beta_new);",
            "    if (beta > 0) {",
            "        anorm = sqrt(anorm * anorm + alpha * alpha + beta * beta + damp * damp);",
            "        alpha = sqrt(real_part(vv));",
            "    }",
            "    const R diagonal = hypot(rhobar, damp), psi = damp > 0 ? damp / diagonal * phibar : 0;",
            "    if (damp > 0) phibar *= rhobar / diagonal;",
            "    const R damped = damp > 0 ? diagonal : rhobar, rho = hypot(damped, beta);",
            "    const R cs = rho > 0 ? damped / rho : 0, sn = rho > 0 ? beta / rho : 0;",
            "    const R theta = sn * alpha, phi = cs * phibar, tau = sn * phi;",
            "    rhobar = -cs * alpha;",
            "    phibar *= sn;",
            "    step = phi / rho; kept = -theta / rho; scale = alpha > 0 ? 1 / alpha : 0; inverse = 1 / rho;",
            "    ddnorm += real_part(of_w) / (rho * rho);",
            "    const R gambar = -cs2 * rho, rhs = phi - sn2 * rho * z, zbar = rhs / gambar, gamma = hypot(gambar, theta);",
            "    xnorm = sqrt(xxnorm + zbar * zbar);",
            "    cs2 = gambar / gamma; sn2 = theta / gamma; z = rhs / gamma;",
            "    xxnorm += z * z;",
            "    acond = anorm * sqrt(ddnorm);",
            "    res2 += psi * psi;",
            "    r2norm = sqrt(phibar * phibar + res2);",
            "    arnorm = alpha * fabs(tau);",
            "    const R undamped = r2norm * r2norm - damp * damp * xxnorm;",
            "    r1norm = damp > 0 ? copysign(sqrt(fabs(undamped)), undamped) : r2norm;",
            "    itn += 1;",
            "    const R test1 = r2norm / bnorm, test2 = arnorm / (anorm * r2norm + eps), test3 = 1 / (acond + eps);",
            "    const R of_x = anorm * xnorm / bnorm;",
            "    if (1 + test3 <= 1) stop = 6;",
            "    if (1 + test2 <= 1) stop = 5;",
            "    if (1 + test1 / (1 + of_x) <= 1) stop = 4;",
            "    if (test3 <= ctol) stop = 3;",
            "    if (test2 <= atol) stop = 2;",
            "    if (test1 <= btol + atol * of_x) stop = 1;",
            "    if (isnan(r2norm)) stop = -1;",
            "}",
        ),
        lines=(
            *(("var += of_real(square(w) * inverse * inverse);",) if variance else ()),
            "if (active) { x += w * step; w = v * scale + w * kept; }",
        ),
        sums=(("ww", "of_real(square(w))"),),
        keeps=tuple((f"{scalar}_1", f"of_real({scalar})") for scalar in _CARRIED), guarded=True,
    )  # fmt: skip


#: The vector pass that ends an iteration of LSQR, without the variance of x.
_UPDATE = _declare_update("lsqr_update", variance=False)
#: The vector pass that ends an iteration of LSQR, with the variance of x.
_UPDATE_OF_VARIANCE = _declare_update("lsqr_update_var", variance=True)
# LSQR computes norms for b and A divided by powers of two, their scales.
#: Exponents of b's scale (first tuple) and of A's scale (second) in LSQR's norms: r1norm, r2norm, anorm, acond, arnorm, xnorm.
_UNITS = (1, 1, 0, 0, 1, 1), (0, 0, 1, 0, 1, -1)
declare_passes(LAYOUT, *bidiagonal.START, _FIRST, _LEFT, _RIGHT, _UPDATE, _UPDATE_OF_VARIANCE)


def lsqr(problem: LeastSquares, variance: cl_array.Array | None) -> tuple[Any, ...]:
    """Solve a least-squares problem by LSQR; return istop, itn and SciPy's norms, each with exponents of b's and A's scale."""
    state = bidiagonal.Bidiagonal.begin(problem, LAYOUT)
    alpha, beta, sweeps = state.alpha, state.beta, state.sweeps
    if variance is not None:
        sweeps.fill(variance)
    if alpha * beta == 0 or problem.maxiter < 1:
        return 0, 0, *zip((beta, beta, 0.0, 0.0, alpha * beta, 0.0), *_UNITS, strict=True)
    values: dict[str, Any] = {"alpha": alpha, "beta": beta, "rhobar": alpha, "phibar": beta, "cs2": -1}
    sweeps.set(
        **bidiagonal.name_initial_values(_CARRIED, r1norm=beta, r2norm=beta, arnorm=alpha * beta, **values), **state.constants()
    )
    w = sweeps.vector(problem.shape[1])
    sweeps.bind(_FIRST, v=state.v, w=w)()
    if variance is None:
        stop, itn, *norms = state.run(_LEFT, _RIGHT, _UPDATE, w=w)
    else:
        stop, itn, *norms = state.run(_LEFT, _RIGHT, _UPDATE_OF_VARIANCE, w=w, var=variance)
        problem.scaling.ldexp(variance, -2 * (problem.scaling.A.exponent or 0))
    return int(stop) if stop > 0 else 7, int(itn), *zip(norms, *_UNITS, strict=True)
