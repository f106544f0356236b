"""Vector passes of multigrid: polynomial smoothers, residuals, sums of K-cycles."""

from __future__ import annotations

from clsparse_py._solvers.krylov.sweep import Layout, Pass, declare_passes

__all__ = [
    "JACOBI", "JACOBI_BEGIN", "JACOBI_OF_RESIDUAL", "K_CROSS", "K_FIRST", "K_ORTHOGONAL", "K_SECOND", "K_SUMS",
    "LAYOUT", "NORM", "POLYNOMIAL_BEGIN", "POLYNOMIAL_END", "POLYNOMIAL_STEP", "RESIDUAL", "RESIDUAL_NORM",
]  # fmt: skip

#: A part for each coefficient of the smoothers, its gain; curvature is p q of a K-cycle's first direction.
LAYOUT = Layout(scalars=("gain", "curvature"), sums=("rr", "pb", "pq", "cross"))

_RR = ("rr", "of_real(square(r))")
_ALPHA = ("const T alpha = magnitude(pq) > 0 ? quotient(pb, pq) : ZERO;",)
_CURVATURES = (("pb", "times(conjugate(p), b)"), ("pq", "times(conjugate(p), q)"))

NORM = Pass("amg_norm", reads=("r",), sums=(_RR,))
RESIDUAL = Pass("amg_residual", reads=("b", "q"), writes=("r",), lines=("r = b - q;",))
RESIDUAL_NORM = Pass("amg_residual_norm", reads=("b", "q"), writes=("r",), lines=("r = b - q;",), sums=(_RR,))

# One step of the Jacobi method: from x = 0 (BEGIN), from a known residual (OF_RESIDUAL), and from any x with q = A x.
JACOBI_BEGIN = Pass(
    "amg_jacobi_begin", reads=("r", "inverse"), writes=("x",), takes=("gain",), lines=("x = times(gain, times(inverse, r));",)
)  # fmt: skip
JACOBI_OF_RESIDUAL = Pass(
    "amg_jacobi_of_residual", reads=("r", "inverse"), updates=("x",), takes=("gain",),
    lines=("x += times(gain, times(inverse, r));",),
)  # fmt: skip
JACOBI = Pass(
    "amg_jacobi", reads=("b", "q", "inverse"), updates=("x",), takes=("gain",),
    lines=("x += times(gain, times(inverse, b - q));",),
)  # fmt: skip

# A polynomial of D^-1 A by Horner's rule: q is A h.
POLYNOMIAL_BEGIN = Pass(
    "amg_polynomial_begin", reads=("r", "inverse"), writes=("s", "h"), takes=("gain",),
    lines=("s = times(inverse, r);", "h = times(gain, s);"),
)  # fmt: skip
POLYNOMIAL_STEP = Pass(
    "amg_polynomial_step", reads=("s", "q", "inverse"), writes=("h",), takes=("gain",),
    lines=("h = times(gain, s) + times(inverse, q);",),
)  # fmt: skip
POLYNOMIAL_END = Pass(
    "amg_polynomial_end", reads=("s", "q", "inverse"), updates=("x",), takes=("gain",),
    lines=("x += times(gain, s) + times(inverse, q);",),
)  # fmt: skip

# Two steps of the conjugate gradient method with the coarser cycle as its preconditioner; q is A p.
K_SUMS = Pass("amg_k_sums", reads=("p", "q", "b"), sums=_CURVATURES)
K_FIRST = Pass(
    "amg_k_first", reads=("p", "q"), updates=("b",), writes=("x",), totals=("pb", "pq"), first=_ALPHA,
    lines=("x = times(alpha, p);", "b -= times(alpha, q);"), keeps=(("curvature", "pq"),),
)  # fmt: skip
K_CROSS = Pass("amg_k_cross", reads=("p", "q"), sums=(("cross", "times(conjugate(p), q)"),))
K_ORTHOGONAL = Pass(
    "amg_k_orthogonal", reads=("p_first", "q_first", "b"), updates=("p", "q"), takes=("curvature",), totals=("cross",),
    first=("const T beta = magnitude(curvature) > 0 ? quotient(cross, curvature) : ZERO;",),
    lines=("p -= times(beta, p_first);", "q -= times(beta, q_first);"), sums=_CURVATURES,
)  # fmt: skip
K_SECOND = Pass(
    "amg_k_second", reads=("p",), updates=("x",), totals=("pb", "pq"), first=_ALPHA, lines=("x += times(alpha, p);",)
)  # fmt: skip
declare_passes(
    LAYOUT,
    NORM, RESIDUAL, RESIDUAL_NORM, JACOBI_BEGIN, JACOBI_OF_RESIDUAL, JACOBI, POLYNOMIAL_BEGIN, POLYNOMIAL_STEP,
    POLYNOMIAL_END, K_SUMS, K_FIRST, K_CROSS, K_ORTHOGONAL, K_SECOND,
)  # fmt: skip
