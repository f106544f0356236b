"""The largest eigenvalue of D^-1 A by the Lanczos method, on the device, for a Hermitian or symmetric A and its diagonal D."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from pyopencl import array as cl_array

from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.sweep import AllSum, Layout, Pass, Sweeps, declare_passes

__all__ = ["spectral_radius"]

# For a Lanczos vector u, the sum `along` is u A u, and `size` is u D u; the scalar `shift` is the index of a rank's first entry.
#: Names of the scalars and sums of a step of the Lanczos method on the device.
LAYOUT = Layout(scalars=("shift",), sums=("along", "size"))
#: How many integers from 0 on single precision represents exactly: a rank's first entry's index is passed modulo this number.
_NUMBERS = 1 << 24

#: The vector pass that fills the first Lanczos vector with hashes of the entries' indices, or 0 in rows without a diagonal entry.
_START = Pass(
    "radius_start", reads=("inverse",), writes=("u", "before"), takes=("shift",), numbered=True,
    lines=(
        "uint key = ((uint)number + (uint)real_part(shift) + 1) * 2654435761u;",
        "key = (key ^ key >> 15) * 2246822519u;",
        "u = of_real(magnitude(inverse) > 0 ? (R)((key >> 8) & 0xffff) / 65536 + (R)(-0.5) : 0);",
        "before = ZERO;",
    ),
)  # fmt: skip
#: The vector pass that begins the sums of a Lanczos step for a Hermitian A: u^H A u and u^H D u.
_SUMS = Pass(
    "radius_sums", reads=("u", "q", "inverse"),
    sums=(
        ("along", "times(conjugate(u), q)"),
        ("size", "of_real(magnitude(inverse) > 0 ? square(u) / magnitude(inverse) : 0)"),
    ),
)  # fmt: skip
# For a symmetric A, D^-1 A is self-adjoint in the bilinear form u^T D v, which gives no norm if A is complex.
#: The vector pass that begins the sums of a Lanczos step for a symmetric A: u^T A u and u^T D u.
_SYMMETRIC_SUMS = Pass(
    "radius_symmetric_sums", reads=("u", "q", "inverse"),
    sums=(("along", "times(u, q)"), ("size", "magnitude(inverse) > 0 ? quotient(times(u, u), inverse) : ZERO")),
)  # fmt: skip
# The norm `nu` of the Lanczos vector u, which is not scaled to 1, is the off-diagonal entry of the tridiagonal matrix.
# If the bilinear form gives no norm, v^T D v has a phase, by which the previous Lanczos vector is divided.
#: The vector pass of a step of the Lanczos method, which computes the next Lanczos vector.
_STEP = Pass(
    "radius_step", reads=("q", "inverse"), updates=("u", "before"), totals=("along", "size"),
    first=(
        "const R nu = sqrt(magnitude(size)), factor = nu > 0 ? 1 / nu : 0;",
        "const T alpha = nu > 0 ? quotient(along, size) : ZERO, phase = size * factor * factor;",
    ),
    lines=(
        "const T v = u * factor;", "u = times(inverse, q) * factor - times(v, alpha) - times(before, phase) * nu;",
        "before = times(v, conjugate(phase));",
    ),
)  # fmt: skip
declare_passes(LAYOUT, _START, _SUMS, _SYMMETRIC_SUMS, _STEP)


def spectral_radius(
    chain: Chain,
    A: Callable[[cl_array.Array, cl_array.Array], Callable[[], object]],
    inverse: cl_array.Array,
    steps: int,
    begin: int = 0,
    all_sum: AllSum | None = None,
    *,
    symmetric: bool = False,
) -> float:
    """Return an estimate from below of the largest absolute eigenvalue of D^-1 A, for A's diagonal D; waits once.

    The estimate is not finite if a value of A is not.

    Parameters
    ----------
    chain : Chain
        Of a queue in order.
    A : callable
        Returns what enqueues ``q = A u`` for vectors u and q.
    inverse : pyopencl.array.Array
        That of A's diagonal D; 0 for rows that do not count.
    steps : int
        Products with A, at most as many as it has rows.
    begin : int
        The row of the first entry, if ranks share the vectors.
    all_sum : callable, optional
        Adds numbers up over these ranks.
    symmetric : bool
        A is equal to its transposed; else to its conjugate transposed.
    """
    symmetric = symmetric and inverse.dtype.kind == "c"
    sweeps = Sweeps(chain, inverse.size, inverse.dtype, LAYOUT, steps, all_sum)
    sweeps.fill(sweeps.scalars, begin % _NUMBERS)
    u, previous, q = (sweeps.vector() for _ in range(3))
    sweeps.bind(_START, inverse=inverse, u=u, before=previous)()
    multiply, sums_of = A(u, q), sweeps.bind(_SYMMETRIC_SUMS if symmetric else _SUMS, u=u, q=q, inverse=inverse)
    advance = sweeps.bind(_STEP, q=q, inverse=inverse, u=u, before=previous)
    for step in range(steps):
        multiply()
        for step_command in (sums_of, advance):
            step_command.use(step)
            step_command()
    sums = chain.read(sweeps.sums, steps * len(LAYOUT.sums) * sweeps.groups).reshape(steps, len(LAYOUT.sums), sweeps.groups)
    along, size = np.moveaxis(sums.sum(axis=2, dtype=np.complex128), 1, 0)
    return _largest_eigenvalue(along, size, float(np.finfo(inverse.dtype).eps), symmetric=symmetric)


def _largest_eigenvalue(along: np.ndarray[Any, Any], size: np.ndarray[Any, Any], eps: float, *, symmetric: bool) -> float:
    """Return the largest absolute eigenvalue of the tridiagonal matrix of Lanczos steps, from the sums u A u and u D u."""
    if not (np.isfinite(along).all() and np.isfinite(size).all()):
        return float("nan")
    squares = np.abs(size)
    if not squares[0]:
        return 0.0
    with np.errstate(all="ignore"):
        diagonal, phases = along / size, size / squares
    # Leave out the Lanczos steps after the Krylov space is exhausted: they have rounding errors alone.
    least = eps**2 * max(abs(diagonal[0]) ** 2, *squares[1:2])
    used = 1 + int(np.argmin(np.append(squares[1:] > least, False)))
    diagonal, phases, off_diagonal = diagonal[:used], phases[:used], np.sqrt(squares[1:used])
    if symmetric:
        T = np.diag(diagonal) + np.diag(off_diagonal, -1) + np.diag(off_diagonal * phases[1:] / phases[:-1], 1)
        return float(np.abs(np.linalg.eigvals(T)).max())
    return float(np.abs(scipy.linalg.eigvalsh_tridiagonal(diagonal.real, off_diagonal)).max())
