"""The minimal residual method for Hermitian matrices, on the device."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from clsparse_py._solvers.krylov.sweep import BoundPass, Layout, Pass, declare_passes
from clsparse_py._solvers.krylov.system import System
from clsparse_py._solvers.krylov.watch import Iteration, iterate

__all__ = ["minres"]

# MINRES's scalar `beta` is the norm of the newest Lanczos vector before scaling; `c`, `s`, `d` and `e` belong to the rotations.
# MINRES's scalar `phi` is the norm of the residual r, `size` the square of A's norm, `root` the norm of A r divided by `phi`.
# MINRES's scalars `largest` and `smallest` are entries of the diagonal of the triangular factor R.
#: Names of MINRES's scalars that an iteration takes over from the iteration before.
_CARRIED = ("beta", "old_beta", "c", "s", "d", "e", "phi", "size", "largest", "smallest", "root", "count", "stop")
#: Reasons why MINRES stops, by the scalar `stop`: none; a test holds; M is not positive definite; a norm is not a number.
_WHY = ("", "found", "indefinite", "not a number")
#: Factor by which a second run of MINRES lowers its goal for the preconditioned residual, as the first run's was too large.
_SAFETY = 0.1
#: Largest |A r| / (|A| |r|), in machine epsilons, at which a second run of MINRES ends with a least-squares solution.
_ROUNDING = 10

# Names of MINRES's scalars of the current iteration end in "_0"; `beta_1` is the norm of the first Lanczos vector before scaling.
#: Names of the scalars and sums of MINRES on the device, and of the scalar that the host reads.
LAYOUT = Layout(
    scalars=(*_CARRIED, *(f"{name}_0" for name in _CARRIED), "beta_1", "rtol", "eps", "goal"),
    sums=("rr", "bb", "alpha", "bz", "xx"),
    told=("stop",),
)

#: The vector pass that computes MINRES's residual of the first guess, and begins the sums for the norms of the residual and b.
_START = Pass(
    "minres_start", reads=("b", "q"), writes=("r",), lines=("r = b - q;",),
    sums=(("rr", "of_real(square(r))"), ("bb", "of_real(square(b))")),
)  # fmt: skip
#: The vector pass that begins the inner product of the unscaled Lanczos vector y with z = M y, the square of the next beta.
_PRECONDITIONED = Pass("minres_preconditioned", reads=("y", "z"), sums=(("bz", "of_real(real_part(times(conjugate(y), z)))"),))
#: The vector pass that scales the first Lanczos vector of MINRES to norm 1, and begins the sum for the norm of x.
_FIRST = Pass(
    "minres_first", reads=("z", "x"), writes=("v",), takes=("beta",), lines=("v = z / real_part(beta);",),
    sums=(("xx", "of_real(square(x))"),),
)  # fmt: skip
#: The vector pass of MINRES's Lanczos step, after the tests of the iteration before, which need the norm of x.
_LANCZOS = Pass(
    "minres_lanczos", reads=("v", "r1"), updates=("y",), totals=("xx",), takes=(*_CARRIED, "beta_1", "rtol", "eps", "goal"),
    first=(
        "const R a_norm = sqrt(real_part(size)), x_norm = sqrt(real_part(xx)), tiny = real_part(eps);",
        "const R by_residual = a_norm > 0 && x_norm > 0 ? real_part(phi) / (a_norm * x_norm) : INFINITY;",
        "const R by_normal = a_norm > 0 ? real_part(root) / a_norm : INFINITY;",
        "R why = real_part(stop);",
        "if (why == 0 && real_part(count) > 0) {",
        "    if (isnan(real_part(phi)) || isnan(x_norm)) why = 3;",
        "    else if (real_part(phi) <= real_part(goal) || by_normal <= real_part(rtol) || 1 + by_residual <= 1",
        "        || 1 + by_normal <= 1 || real_part(largest) >= (R)0.1 / tiny * real_part(smallest)",
        "        || a_norm * x_norm * tiny >= real_part(beta_1)",
        "        || (real_part(count) == 1 && real_part(beta) <= 10 * tiny * real_part(beta_1))) why = 1;",
        "}",
        "const bool active = why == 0;",
        "const R back = real_part(beta) / real_part(old_beta);",
    ),
    lines=("if (active) y -= r1 * back;",), sums=(("alpha", "of_real(real_part(times(conjugate(v), y)))"),),
    keeps=(*((f"{name}_0", name) for name in _CARRIED[:-1]), ("stop_0", "of_real(why)")), tells=(("stop", "of_real(why)"),),
    guarded=True,
)  # fmt: skip
#: The vector pass that makes the next Lanczos vector orthogonal to the newest, and begins its sum of squares: beta^2 without M.
_ORTHOGONAL = Pass(
    "minres_orthogonal", reads=("r2",), updates=("y",), totals=("alpha",), takes=("beta_0", "stop_0"),
    first=("const bool active = real_part(stop_0) == 0;", "const R back = real_part(alpha) / real_part(beta_0);"),
    lines=("if (active) y -= r2 * back;",), sums=(("bz", "of_real(square(y))"),), guarded=True,
)  # fmt: skip
#: The vector pass that ends an iteration of MINRES: applies the plane rotation, and updates x and the next Lanczos vector v.
_END = Pass(
    "minres_end", reads=("z", "w2"), updates=("x", "w1", "v"), totals=("alpha", "bz"),
    takes=(*(f"{name}_0" for name in _CARRIED if name != "old_beta"), "eps"),
    first=(
        "const bool active = real_part(stop_0) == 0;",
        "const R square_of_beta = real_part(bz), beta = sqrt(square_of_beta), a = real_part(alpha), b0 = real_part(beta_0);",
        "const R old_e = real_part(e_0), delta = real_part(c_0) * real_part(d_0) + real_part(s_0) * a;",
        "const R g = real_part(s_0) * real_part(d_0) - real_part(c_0) * a;",
        "const R e = real_part(s_0) * beta, d = -real_part(c_0) * beta;",
        "const R gamma = fmax(sqrt(g * g + beta * beta), real_part(eps)), c = g / gamma, s = beta / gamma;",
        "const R along = c * real_part(phi_0), scale = beta > 0 ? 1 / beta : 0;",
        "const R why = active ? (square_of_beta < 0 ? 2 : 0) : real_part(stop_0);",
    ),
    lines=("w1 = (v - w1 * old_e - w2 * delta) / gamma;", "x += w1 * along;", "v = z * scale;"),
    sums=(("xx", "of_real(square(x))"),),
    keeps=(
        ("beta", "of_real(active ? beta : b0)"), ("old_beta", "beta_0"), ("c", "of_real(c)"), ("s", "of_real(s)"),
        ("d", "of_real(d)"), ("e", "of_real(e)"), ("phi", "of_real(active ? s * real_part(phi_0) : real_part(phi_0))"),
        ("size", "of_real(active ? real_part(size_0) + a * a + b0 * b0 + beta * beta : real_part(size_0))"),
        ("largest", "of_real(fmax(real_part(largest_0), gamma))"), ("smallest", "of_real(fmin(real_part(smallest_0), gamma))"),
        ("root", "of_real(sqrt(g * g + d * d))"), ("count", "count_0 + of_real(1)"), ("stop", "of_real(why)"),
    ),
    guarded=True,
)  # fmt: skip
declare_passes(LAYOUT, _START, _PRECONDITIONED, _FIRST, _LANCZOS, _ORTHOGONAL, _END)


def minres(system: System) -> int:
    """Solve a linear system by MINRES, and return SciPy's info.

    Raises
    ------
    ValueError
        M is not positive definite, or A and M are not Hermitian.
    """
    A, M, x, maxiter = system.A, system.M, system.x, system.maxiter
    sweeps = system.sweeps(LAYOUT)
    # The matrix A is scaled in any case, as MINRES's tests compare the norms of A and b.
    system.scaling.near = -1
    v, *older = (sweeps.vector() for _ in range(6))
    y, w = older[:3], older[3:]
    z = [*y] if M is None else [sweeps.vector()] * 3
    inner = (
        [sweeps.bind(_PRECONDITIONED, y=vector, z=target) for vector, target in zip(y, z, strict=True)] if M is not None else []
    )

    def start() -> None:
        """Enqueue the residual of the first guess, and the inner product of that residual with M times the residual."""
        system.begin(_START, sweeps, q=y[0], r=y[2])
        if M is not None:
            M(y[2], z[2])
            inner[2]()

    system.scaling.scale_b()
    totals = system.scaling.begin_sums(start, sweeps)
    square = float(totals["rr" if M is None else "bz"].real)
    if square < 0:
        raise ValueError("M: is not positive definite")
    if square == 0:
        return 0
    if totals["bb"] == 0:
        sweeps.fill(x)
        return 0
    if np.isnan(square):
        return maxiter
    for vector in (y[1], *w):
        sweeps.fill(vector)
    eps = np.finfo(system.dtype)
    beta = np.sqrt(square)
    # ``fall`` is the factor by which the residual's norm has to fall; beta, which is that norm if there is no M, falls alike.
    with np.errstate(all="ignore"):
        fall = float(np.sqrt(system.bound(totals["bb"]) / totals["rr"].real)) * (_SAFETY if system.again and M is not None else 1)
    sweeps.set(
        beta=beta, old_beta=1, c=-1, phi=beta, smallest=eps.max, beta_1=beta, eps=eps.eps,
        goal=beta * fall, rtol=_ROUNDING * eps.eps if system.again else system.rtol,
    )  # fmt: skip
    sweeps.bind(_FIRST, z=z[2], x=x, v=v)()
    lanczos: dict[tuple[int, int], BoundPass] = {
        (i, turn): sweeps.bind(_LANCZOS, 0, turn, v=v, r1=y[(i + 1) % 3], y=y[i]) for i in range(3) for turn in (0, 1)
    }
    orthogonal = [sweeps.bind(_ORTHOGONAL, r2=y[(i + 2) % 3], y=y[i]) for i in range(3)]
    end = [sweeps.bind(_END, z=z[i % 3], w2=w[1 - i % 2], x=x, w1=w[i % 2], v=v) for i in range(6)]

    def begin(number: int, turn: int, goes_on: bool) -> cl.Event:
        """Enqueue the product with A and the Lanczos step of MINRES, and return the event of the step's pass."""
        if goes_on:
            A(v, y[number % 3])
        # After MINRES's last iteration only the convergence tests in the Lanczos step's pass are of use.
        return lanczos[number % 3, turn]()

    def finish(number: int) -> None:
        """Enqueue the orthogonalisation of the Lanczos vector, the product with M, and the step of the solution x."""
        slot = number % 3
        orthogonal[slot]()
        if M is not None:
            M(y[slot], z[slot])
            inner[slot]()
        end[number % 6]()

    def info(stop: float) -> int | None:
        """Return SciPy's info for MINRES's reason to stop, or None if iterations go on."""
        why = _WHY[int(stop)]
        if why == "indefinite":
            raise ValueError("M: is not positive definite, or A or M is not Hermitian")
        return {"": None, "found": 0}.get(why, maxiter)

    return iterate(system, sweeps, Iteration(begin, finish, info, early=2))
