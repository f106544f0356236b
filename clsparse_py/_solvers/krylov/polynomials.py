"""Polynomial preconditioners: Jacobi (degree 0) and Chebyshev."""

from __future__ import annotations

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.sweep import Layout, Pass, Passes, Sweeps, declare_passes
from clsparse_py._solvers.krylov.system import Apply

__all__ = ["chebyshev", "jacobi"]

#: Names of the scalars of a Chebyshev step: the factor `kept` of the old direction, and the factor `gain` of the residual.
LAYOUT = Layout(scalars=("kept", "gain"), sums=())

#: The vector pass of the Jacobi preconditioner: multiplies a vector by the inverse of a diagonal, and by a factor.
_JACOBI = Pass("jacobi", reads=("x", "inverse"), writes=("y",), takes=("gain",), lines=("y = times(gain, times(inverse, x));",))
#: The vector pass of the first step of the Chebyshev iteration, from y = 0, for the scaled residual r.
_FIRST = Pass(
    "chebyshev_first", reads=("x", "inverse"), writes=("r", "d", "y"), takes=("gain",),
    lines=("r = times(inverse, x);", "d = times(gain, r);", "y = d;"),
)  # fmt: skip
#: The vector pass of a further step of the Chebyshev iteration, where q is A d.
_STEP = Pass(
    "chebyshev_step", reads=("q", "inverse"), updates=("r", "d", "y"), takes=("kept", "gain"),
    lines=("r -= times(inverse, q);", "d = times(kept, d) + times(gain, r);", "y += d;"),
)  # fmt: skip
declare_passes(LAYOUT, _JACOBI, _FIRST, _STEP)


def jacobi(chain: Chain, inverse: cl_array.Array) -> Apply:
    """Return the function that enqueues the product ``y = alpha * inverse * x`` with the inverse of a diagonal."""
    sweeps, gain = Sweeps(chain, inverse.size, inverse.dtype, LAYOUT), 1.0
    sweeps.fill(sweeps.scalars, gain)
    passes = Passes(sweeps)

    def apply(x: cl_array.Array, y: cl_array.Array, alpha: float = 1.0) -> None:
        """Enqueue the product ``y = alpha * inverse * x`` with the inverse of a diagonal."""
        nonlocal gain
        if alpha != gain:
            gain = alpha
            sweeps.fill(sweeps.scalars, gain)
        passes.enqueue(_JACOBI, x=x, inverse=inverse, y=y)

    apply.takes_alpha = True  # type: ignore[attr-defined] # see `clsparse_py._solvers.krylov.scaling`

    return apply


def chebyshev(chain: Chain, A: Apply, inverse: cl_array.Array, degree: int, bounds: tuple[float, float]) -> Apply:
    """Return the function that enqueues the product with a Chebyshev polynomial in D^-1 A, times D^-1, close to A's inverse.

    Parameters
    ----------
    chain : Chain
    A : callable
        Enqueues the product with A.
    inverse : pyopencl.array.Array
        That of A's diagonal D.
    degree : int
        Products with A.
    bounds : tuple of float
        Bounds of the eigenvalues of D^-1 A for which no polynomial of this degree is closer.
    """
    low, high = bounds
    middle, half = (high + low) / 2, (high - low) / 2
    sweeps = Sweeps(chain, inverse.size, inverse.dtype, LAYOUT, degree + 1)
    factors, rho = [(0.0, 1 / middle)], half / middle
    for _ in range(degree):
        next_rho = 1 / (2 * middle / half - rho)
        factors.append((next_rho * rho, 2 * next_rho / half))
        rho = next_rho
    sweeps.set_all(np.array(factors, inverse.dtype))
    r, d, q = (sweeps.vector() for _ in range(3))

    passes = Passes(sweeps)

    def apply(x: cl_array.Array, y: cl_array.Array) -> None:
        """Enqueue the product y of the Chebyshev polynomial with x."""
        passes.enqueue(_FIRST, x=x, inverse=inverse, r=r, d=d, y=y)
        for part in range(1, degree + 1):
            A(d, q)
            passes.enqueue(_STEP, part, q=q, inverse=inverse, r=r, d=d, y=y)

    return apply
