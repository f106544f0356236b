"""The conjugate gradient method over ranks: one reduction an iteration, whose sums the host adds up, and so has all scalars.

Without a preconditioner: the recurrences of one device, with the same accuracy. The next direction takes the norm of the next
residual as the inner products predict it; the reduction after it has the norm itself (Chen and Carson, "Predict-and-recompute
conjugate gradient variants").

With a preconditioner M: Chronopoulos and Gear, "s-step iterative methods for symmetric linear systems". A multiplies z = M r, and
s = A p follows by recurrence. No inner product does: with p and s of the iteration before, the curvature of the direction
z + beta p is <z, A z> + 2 Re(beta <z, s>) + |beta|² <p, s>. Errors of s accumulate in r: van der Vorst and Ye, "Residual
replacement strategies for Krylov subspace iterative methods for the convergence of true residuals". A running bound of the
distance of r from b - A x tells when r = b - A x and s = A p are computed. Steps since then are added up in y, whose rounding
errors are small, and then y is added to x.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._solvers.krylov.scaling import RESIDUAL, is_solution
from clsparse_py._solvers.krylov.sweep import Layout, Pass, Sweeps, declare_passes
from clsparse_py._solvers.krylov.system import Apply, System

__all__ = ["cg_of_ranks"]

#: Names of the scalars and sums, on the device, of CG over ranks.
LAYOUT = Layout(scalars=("alpha", "beta"), sums=("rr", "ps", "ss", "rs", "rz", "zw", "zs", "pp", "yy", "xx", "qq", "bb"))

#: The sum of squares of the residual r: its name, and the expression of a summand.
_RR = ("rr", "of_real(square(r))")
#: The sum of squares of the direction p, and the expression of a summand.
_PP = ("pp", "of_real(square(p))")
#: The sum of squares of s = A p, and the expression of a summand.
_SS = ("ss", "of_real(square(s))")
#: The sum of squares of y, the steps since a replacement, and the expression of a summand.
_YY = ("yy", "of_real(square(y))")
#: The sum for the curvature p^H A p, and the expression of a summand, where s is A p.
_PS = ("ps", "times(conjugate(p), s)")
#: The vector pass that computes the true residual q from A x, stored in q before, and begins the sums that judge a solution.
_RESIDUAL = dataclasses.replace(RESIDUAL, name="cg_ranks_residual")
#: The vector pass that begins the inner products of s = A p, without a preconditioner.
_SUMS = Pass("cg_ranks_sums", reads=("p", "s", "r"), sums=(_PS, _SS, ("rs", "times(conjugate(r), s)")))
#: The vector pass of the step of x and r, and of the next direction, without a preconditioner.
_STEP = Pass(
    "cg_ranks_step", reads=("s",), updates=("x", "r", "p"), takes=("alpha", "beta"),
    lines=("x += times(alpha, p);", "r -= times(alpha, s);", "p = r + times(beta, p);"), sums=(_RR,),
)  # fmt: skip
#: The vector pass that begins the inner products of z = M r and w = A z.
_SUMS_OF_M = Pass(
    "cg_ranks_sums_m", reads=("r", "z", "w", "s"),
    sums=(("rz", "times(conjugate(r), z)"), ("zw", "times(conjugate(z), w)"), ("zs", "times(conjugate(z), s)")),
)  # fmt: skip
#: The vector pass of the next direction and the step along it, with a preconditioner M.
_STEP_OF_M = Pass(
    "cg_ranks_step_m", reads=("z", "w"), updates=("y", "r", "p", "s"), takes=("alpha", "beta"),
    lines=("p = z + times(beta, p);", "s = w + times(beta, s);", "y += times(alpha, p);", "r -= times(alpha, s);"),
    sums=(_RR, _PP, _SS, _YY, _PS),
)  # fmt: skip
#: The vector pass that adds the sum of steps to the solution.
_ADD = Pass("cg_ranks_add", updates=("x", "y"), lines=("x += y;", "y = ZERO;"))
#: The vector pass that computes the solution for the user's callback.
_SHOWN = Pass("cg_ranks_shown", reads=("x", "y"), writes=("shown",), lines=("shown = x + y;",))
declare_passes(LAYOUT, _RESIDUAL, _SUMS, _STEP, _SUMS_OF_M, _STEP_OF_M, _ADD, _SHOWN)


class _Deviation:
    """Van der Vorst and Ye's running bound of the distance of r from b - A x; ranks, which have the same sums, decide alike.

    Attributes
    ----------
    size : float
        The largest ratio of the norms of s = A p and p so far, which stands for the norm of A.
    is_new : bool
        Whether r was computed from x, and the bound begins anew with the next iteration.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._eps, self.size, self.is_new = float(np.finfo(dtype).eps) / 2, 0.0, True
        self._first = self._bound = self._norm = 0.0

    def requires_replacement(self, totals: dict[str, Any]) -> bool:
        """Return whether r has to be replaced, from the sums of an iteration; called once for each iteration but the first."""
        with np.errstate(all="ignore"):
            r, p, s, y, x = (float(np.sqrt(totals[name].real)) for name in ("rr", "pp", "ss", "yy", "xx"))
        self.size = max(self.size, s / p if p else 0.0)
        rounding = self._eps * (self.size * (x if self.is_new else y) + r)
        if self.is_new:
            self._first, self._bound, self._norm, self.is_new = rounding, rounding, r, False
            return False
        was_small = self._bound <= math.sqrt(self._eps) * self._norm
        self._bound, self._norm = self._bound + rounding, r
        # All numbers are van der Vorst and Ye's.
        return was_small and self._bound > max(math.sqrt(self._eps) * r, 1.1 * self._first)


def cg_of_ranks(system: System) -> int:
    """Solve a linear system by conjugate gradients with one reduction an iteration, and return SciPy's info."""
    sweeps = system.sweeps(LAYOUT)
    r = sweeps.vector()
    totals = system.scaling.begin_sums(lambda: system.begin(_RESIDUAL, sweeps, q=r, x=system.x), sweeps)
    if system.is_solved(totals, sweeps):
        return 0
    bound = float(system.bound(totals["bb"]))
    return _predict(system, sweeps, r, bound) if system.M is None else _replace(system, sweeps, r, system.M, bound)


def _predict(system: System, sweeps: Sweeps, r: cl_array.Array, bound: float) -> int:
    """Iterate from the residual r until its squared norm is at most a bound, without a preconditioner; return SciPy's info."""
    p, s = sweeps.vector(), sweeps.vector()
    sums, step = sweeps.bind(_SUMS, p=p, s=s, r=r), sweeps.bind(_STEP, s=s, x=system.x, r=r, p=p)
    sweeps.copy(p, r)

    def multiply() -> None:
        """Enqueue the product with the direction p, and its inner products."""
        system.A(p, s)
        sums()

    def go(totals: dict[str, Any]) -> float:
        """Enqueue a step, and return the squared norm of the residual that the inner products predict for the next iteration."""
        rr = totals["rr"].real
        alpha = rr / totals["ps"]
        predicted = max(rr - 2 * (alpha * totals["rs"]).real + (alpha * alpha.conjugate()).real * totals["ss"].real, 0 * rr)
        sweeps.set(alpha=alpha, beta=predicted / rr)
        step()
        return float(predicted)

    return _iterate(system, sweeps, bound, multiply, go, lambda: True, lambda: system.x)


def _replace(system: System, sweeps: Sweeps, r: cl_array.Array, M: Apply, bound: float) -> int:
    """Iterate from the residual r until its squared norm is at most a bound, by replacement; return SciPy's info."""
    A, x = system.A, system.x
    p, s, w, y, z = (sweeps.vector() for _ in range(5))
    for vector in (p, s, y):
        sweeps.fill(vector)
    sums, step = sweeps.bind(_SUMS_OF_M, r=r, z=z, w=w, s=s), sweeps.bind(_STEP_OF_M, z=z, w=w, y=y, r=r, p=p, s=s)
    add, residual = sweeps.bind(_ADD, x=x, y=y), sweeps.bind(_RESIDUAL, b=system.b, x=x, q=r)
    deviation = _Deviation(system.dtype)
    before: dict[str, Any] = {}
    true_before = math.inf

    def multiply() -> None:
        """Enqueue the products with M and A, and their inner products."""
        M(r, z)
        A(z, w)
        sums()

    def compute_residual() -> None:
        """Enqueue the addition of the steps to x, and the computation of the true residual r and of s = A p."""
        add()
        A(x, r)
        residual()
        deviation.is_new = True

    def go(totals: dict[str, Any]) -> float:
        """Enqueue a step, and a replacement if it is due; return an estimate of the residual's next squared norm."""
        nonlocal before
        beta, curvature, expected = system.dtype.type(0), totals["zw"], 0.0
        if before:
            beta = totals["rz"] / before["rz"]
            curvature = curvature + 2 * (beta * totals["zs"]).real + (beta * beta.conjugate()).real * totals["ps"]
            expected = float(totals["rr"].real) * float(totals["rr"].real / before["rr"].real)
        sweeps.set(alpha=totals["rz"] / curvature, beta=beta)
        step()
        if before and deviation.requires_replacement(totals):
            compute_residual()
            A(p, s)
        before = totals
        return expected

    def is_solved() -> bool:
        """Return whether the true residual, which replaces r, is small enough or hardly falls; waits."""
        nonlocal true_before
        compute_residual()
        totals = sweeps.totals()
        norm = float(totals["rr"].real)
        system.checked = np.array([totals[name].real for name in ("rr", "xx", "qq", "bb")])
        # A residual that hardly falls is left to the check of the solution.
        if is_solution(system, system.checked, deviation.size) or not norm < true_before / 2:
            return True
        true_before = norm
        A(p, s)
        return False

    shown = x if system.callback is None else sweeps.vector()
    show = None if system.callback is None else sweeps.bind(_SHOWN, x=x, y=y, shown=shown)
    info = _iterate(system, sweeps, bound, multiply, go, is_solved, lambda: (show and show(), shown)[1])
    add()
    return info


def _iterate(
    system: System,
    sweeps: Sweeps,
    bound: float,
    multiply: Callable[[], None],
    go: Callable[[dict[str, Any]], float],
    is_solved: Callable[[], bool],
    show: Callable[[], cl_array.Array],
) -> int:
    """Iterate until the sum ``rr`` is at most a bound and ``is_solved`` agrees, and return SciPy's info.

    ``multiply`` begins the sums of an iteration, ``go`` makes its step from them and returns an estimate of ``rr`` after it. If
    that is small enough, ``rr`` is looked at before the next products. ``show`` returns x for the user's callback.
    """
    is_early, system.made = False, 0
    while True:
        if not is_early:
            multiply()
        totals = sweeps.totals()
        norm = float(totals["rr"].real)
        if norm <= bound:
            if is_solved():
                return 0
            is_early = False
        elif math.isnan(norm) or system.made == system.maxiter:
            return system.maxiter
        elif is_early:
            is_early = False
        else:
            with np.errstate(all="ignore"):
                expected = go(totals)
            system.made += 1
            if system.callback is not None:
                system.callback(show())
            is_early = expected <= bound or system.made == system.maxiter
