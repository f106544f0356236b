"""LSMR, for least-squares problems, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._solvers.krylov import bidiagonal
from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import LeastSquares

__all__ = ["lsmr"]

#: Names of LSMR's scalars that iterations hand on to the next iteration, as in Fong and Saunders' paper and program.
_CARRIED = (
    "stop", "itn", "normr", "normar", "condA", "alpha", "beta", "alphabar", "rho", "rhobar", "cbar", "sbar", "zeta", "zetabar",
    "betadd", "betad", "rhodold", "tautilde", "thetatilde", "d", "square_of_A", "below_A", "maxrbar", "minrbar",
)  # fmt: skip
#: Names of LSMR's scalars that the host reads.
_TOLD = ("stop", "itn", "normr", "normar", "normA", "condA", "normx")

#: Names of the scalars and sums of LSMR on the device, and of the scalars that the host reads.
LAYOUT = Layout(scalars=bidiagonal.name_scalars(_CARRIED), sums=("uu", "bb", "vv", "xx"), told=_TOLD)

#: The vector pass that computes LSMR's first direction h = v / alpha, and begins the sum for the norm of x.
_FIRST = Pass(
    "lsmr_first", reads=("v", "x"), writes=("h",), takes=("alpha_1",), lines=("h = v / real_part(alpha_1);",),
    sums=(("xx", "of_real(square(x))"),),
)  # fmt: skip
#: The vector pass that computes LSMR's next left vector u, after the tests of the iteration before, which need the norm of x.
_LEFT = bidiagonal.declare_left_pass(
    "lsmr", _CARRIED, _TOLD, totals=("xx",),
    first=(
        "const R normA = sqrt(below_A), normx = itn > 0 ? sqrt(real_part(xx)) : 0;",
        "if (stop == 0 && itn > 0) {",
        "    const R test1 = normr / bnorm, test2 = normA * normr != 0 ? normar / (normA * normr) : INFINITY, test3 = 1 / condA;",
        "    const R of_x = normA * normx / bnorm;",
        "    if (1 + test3 <= 1) stop = 6;",
        "    if (1 + test2 <= 1) stop = 5;",
        "    if (1 + test1 / (1 + of_x) <= 1) stop = 4;",
        "    if (test3 <= ctol) stop = 3;",
        "    if (test2 <= atol) stop = 2;",
        "    if (test1 <= btol + atol * of_x) stop = 1;",
        "    if (isnan(normr) || isnan(normx)) stop = -1;",
        "}",
    ),
)  # fmt: skip
#: The vector pass that computes the next right vector v of LSMR's bidiagonalisation.
_RIGHT = bidiagonal.declare_right_pass("lsmr")
#: The vector pass that ends an iteration of LSMR: the rotations, the estimates of norms, and the step of x.
_UPDATE = Pass(
    "lsmr_update", reads=("v",), updates=("x", "h", "hbar"), totals=("vv",),
    takes=(*(f"{scalar}_0" for scalar in _CARRIED), *(f"{scalar}_set" for scalar in bidiagonal.CONSTANTS), "beta_new"),
    first=(
        "const bool active = real_part(stop_0) == 0;",
        bidiagonal.unpack(_CARRIED),
        "const R damp = real_part(damp_set);",
        "R of_hbar = 0, step = 0, of_h = 0, scale = 0;",
        "if (active) {",
        "    beta = real_part(beta_new);",
        "    if (beta > 0) alpha = sqrt(real_part(vv));",
        "    const R alphahat = hypot(alphabar, damp), chat = alphahat > 0 ? alphabar / alphahat : 0;",
        "    const R shat = alphahat > 0 ? damp / alphahat : 0;",
        "    const R rho_old = rho, rhobar_old = rhobar, zeta_old = zeta;",
        "    rho = hypot(alphahat, beta);",
        "    const R c = rho > 0 ? alphahat / rho : 0, s = rho > 0 ? beta / rho : 0, thetanew = s * alpha;",
        "    alphabar = c * alpha;",
        "    const R thetabar = sbar * rho, rhotemp = cbar * rho;",
        "    rhobar = hypot(rhotemp, thetanew);",
        "    cbar = rhobar > 0 ? rhotemp / rhobar : 0; sbar = rhobar > 0 ? thetanew / rhobar : 0;",
        "    zeta = cbar * zetabar; zetabar *= -sbar;",
        "    of_hbar = -thetabar * rho / (rho_old * rhobar_old); step = zeta / (rho * rhobar); of_h = -thetanew / rho;",
        "    scale = alpha > 0 ? 1 / alpha : 0;",
        "    const R betaacute = chat * betadd, betacheck = -shat * betadd, betahat = c * betaacute;",
        "    betadd = -s * betaacute;",
        "    const R thetatilde_old = thetatilde, rhotilde_old = hypot(rhodold, thetabar);",
        "    const R ctilde_old = rhotilde_old > 0 ? rhodold / rhotilde_old : 0;",
        "    const R stilde_old = rhotilde_old > 0 ? thetabar / rhotilde_old : 0;",
        "    thetatilde = stilde_old * rhobar; rhodold = ctilde_old * rhobar;",
        "    betad = -stilde_old * betad + ctilde_old * betahat;",
        "    tautilde = (zeta_old - thetatilde_old * tautilde) / rhotilde_old;",
        "    const R taud = (zeta - thetatilde * tautilde) / rhodold;",
        "    d += betacheck * betacheck;",
        "    normr = sqrt(d + (betad - taud) * (betad - taud) + betadd * betadd);",
        "    below_A = square_of_A + beta * beta; square_of_A = below_A + alpha * alpha;",
        "    if (itn > 0) { maxrbar = fmax(maxrbar, rhobar_old); minrbar = fmin(minrbar, rhobar_old); }",
        "    condA = fmax(maxrbar, rhotemp) / fmin(minrbar, rhotemp);",
        "    normar = fabs(zetabar);",
        "    itn += 1;",
        "}",
    ),
    lines=("if (active) { hbar = h + hbar * of_hbar; x += hbar * step; h = v * scale + h * of_h; }",),
    sums=(("xx", "of_real(square(x))"),), keeps=tuple((f"{scalar}_1", f"of_real({scalar})") for scalar in _CARRIED), guarded=True,
)  # fmt: skip
# LSMR computes norms for b and A divided by powers of two, their scales.
#: Exponents of b's scale (first tuple) and of A's scale (second) in LSMR's norms: normr, normar, norma, conda, normx.
_UNITS = (1, 1, 0, 0, 1), (0, 1, 1, 0, -1)
declare_passes(LAYOUT, *bidiagonal.START, _FIRST, _LEFT, _RIGHT, _UPDATE)


def lsmr(problem: LeastSquares) -> tuple[Any, ...]:
    """Solve a least-squares problem by LSMR; return istop, itn and SciPy's norms, each with exponents of b's and A's scale."""
    state = bidiagonal.Bidiagonal.begin(problem, LAYOUT)
    alpha, beta, sweeps = state.alpha, state.beta, state.sweeps
    if alpha * beta == 0 or state.bnorm == 0 or problem.maxiter < 1:
        if state.bnorm == 0:
            sweeps.fill(problem.x)
        return 0, 0, *zip((beta, alpha * beta, alpha, 1.0, 0.0), *_UNITS, strict=True)
    values = bidiagonal.name_initial_values(
        _CARRIED, normr=beta, normar=alpha * beta, condA=1, alpha=alpha, beta=beta, alphabar=alpha, rho=1, rhobar=1, cbar=1,
        zetabar=alpha * beta, betadd=beta, rhodold=1, square_of_A=alpha**2, below_A=alpha**2, minrbar=np.finfo(problem.dtype).max,
    )  # fmt: skip
    sweeps.set(**values, **state.constants())
    h, hbar = sweeps.vector(problem.shape[1]), sweeps.vector(problem.shape[1])
    sweeps.fill(hbar)
    sweeps.bind(_FIRST, v=state.v, x=problem.x, h=h)()
    stop, itn, *norms = state.run(_LEFT, _RIGHT, _UPDATE, h=h, hbar=hbar)
    return int(stop) if stop > 0 else 7, int(itn), *zip(norms, *_UNITS, strict=True)
