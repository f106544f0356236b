"""Vector passes of multigrid: polynomial smoothers, residuals, sums of K-cycles."""

from __future__ import annotations

from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes

__all__ = [
    "JACOBI", "JACOBI_BEGIN", "JACOBI_OF_RESIDUAL", "K_CROSS", "K_FIRST", "K_ORTHOGONAL", "K_SECOND", "K_SUMS",
    "LAYOUT", "NORM", "POLYNOMIAL_BEGIN", "POLYNOMIAL_END", "POLYNOMIAL_STEP", "RESIDUAL", "RESIDUAL_NORM",
]  # fmt: skip

# Each coefficient of a multigrid smoother is the scalar `gain` of a set of scalars of its own.
# The scalar `curvature` is p^H A p for the first direction p of a multigrid K-cycle.
#: Names of the scalars and sums of a multigrid cycle on the device.
LAYOUT = Layout(scalars=("gain", "curvature"), sums=("rr", "pb", "pq", "cross"))

#: The name of the sum of squares of the residual r, and the expression of a summand.
_RR = ("rr", "of_real(square(r))")
#: The statement that declares the length alpha of a multigrid K-cycle's step along a direction p: 0 if p^H A p is 0.
_ALPHA = ("const T alpha = magnitude(pq) > 0 ? quotient(pb, pq) : ZERO;",)
#: The sums p^H b and p^H A p for the length of a multigrid K-cycle's step: their names, and the expressions of a summand.
_CURVATURES = (("pb", "times(conjugate(p), b)"), ("pq", "times(conjugate(p), q)"))

#: The vector pass that begins the sum for the norm of a vector.
NORM = Pass("amg_norm", reads=("r",), sums=(_RR,))
#: The vector pass that computes the residual b - A x, where q is A x.
RESIDUAL = Pass("amg_residual", reads=("b", "q"), writes=("r",), lines=("r = b - q;",))
#: The vector pass that computes the residual b - A x, where q is A x, and begins the sum for its norm.
RESIDUAL_NORM = Pass("amg_residual_norm", reads=("b", "q"), writes=("r",), lines=("r = b - q;",), sums=(_RR,))

#: The vector pass of a step of the Jacobi smoother from x = 0.
JACOBI_BEGIN = Pass(
    "amg_jacobi_begin", reads=("r", "inverse"), writes=("x",), takes=("gain",), lines=("x = times(gain, times(inverse, r));",)
)  # fmt: skip
#: The vector pass of a step of the Jacobi smoother from a known residual.
JACOBI_OF_RESIDUAL = Pass(
    "amg_jacobi_of_residual", reads=("r", "inverse"), updates=("x",), takes=("gain",),
    lines=("x += times(gain, times(inverse, r));",),
)  # fmt: skip
#: The vector pass of a step of the Jacobi smoother from any x, where q is A x.
JACOBI = Pass(
    "amg_jacobi", reads=("b", "q", "inverse"), updates=("x",), takes=("gain",),
    lines=("x += times(gain, times(inverse, b - q));",),
)  # fmt: skip

#: The vector pass that begins a polynomial smoother by Horner's rule: s = D^-1 r, and h is the highest coefficient times s.
POLYNOMIAL_BEGIN = Pass(
    "amg_polynomial_begin", reads=("r", "inverse"), writes=("s", "h"), takes=("gain",),
    lines=("s = times(inverse, r);", "h = times(gain, s);"),
)  # fmt: skip
#: The vector pass of the next coefficient of a polynomial smoother, where q is A h.
POLYNOMIAL_STEP = Pass(
    "amg_polynomial_step", reads=("s", "q", "inverse"), writes=("h",), takes=("gain",),
    lines=("h = times(gain, s) + times(inverse, q);",),
)  # fmt: skip
#: The vector pass of the last coefficient of a polynomial smoother, and of the step of x.
POLYNOMIAL_END = Pass(
    "amg_polynomial_end", reads=("s", "q", "inverse"), updates=("x",), takes=("gain",),
    lines=("x += times(gain, s) + times(inverse, q);",),
)  # fmt: skip

# A multigrid K-cycle is two conjugate gradient steps on a level, each preconditioned by a cycle on that level.
#: The vector pass that begins the inner products of a multigrid K-cycle's first direction p with b and with q = A p.
K_SUMS = Pass("amg_k_sums", reads=("p", "q", "b"), sums=_CURVATURES)
#: The vector pass of the first conjugate gradient step of a multigrid K-cycle: x, and the residual, which takes b's place.
K_FIRST = Pass(
    "amg_k_first", reads=("p", "q"), updates=("b",), writes=("x",), totals=("pb", "pq"), first=_ALPHA,
    lines=("x = times(alpha, p);", "b -= times(alpha, q);"), keeps=(("curvature", "pq"),),
)  # fmt: skip
#: The vector pass that begins the A-inner product of a multigrid K-cycle's two directions.
K_CROSS = Pass("amg_k_cross", reads=("p", "q"), sums=(("cross", "times(conjugate(p), q)"),))
#: The vector pass that makes the second direction of a multigrid K-cycle A-orthogonal to the first one.
K_ORTHOGONAL = Pass(
    "amg_k_orthogonal", reads=("p_first", "q_first", "b"), updates=("p", "q"), takes=("curvature",), totals=("cross",),
    first=("const T beta = magnitude(curvature) > 0 ? quotient(cross, curvature) : ZERO;",),
    lines=("p -= times(beta, p_first);", "q -= times(beta, q_first);"), sums=_CURVATURES,
)  # fmt: skip
#: The vector pass of the second conjugate gradient step of a multigrid K-cycle.
K_SECOND = Pass(
    "amg_k_second", reads=("p",), updates=("x",), totals=("pb", "pq"), first=_ALPHA, lines=("x += times(alpha, p);",)
)  # fmt: skip
declare_passes(
    LAYOUT,
    NORM, RESIDUAL, RESIDUAL_NORM, JACOBI_BEGIN, JACOBI_OF_RESIDUAL, JACOBI, POLYNOMIAL_BEGIN, POLYNOMIAL_STEP,
    POLYNOMIAL_END, K_SUMS, K_FIRST, K_CROSS, K_ORTHOGONAL, K_SECOND,
)  # fmt: skip
