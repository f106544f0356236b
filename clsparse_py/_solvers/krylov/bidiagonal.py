"""The bidiagonalisation of Golub and Kahan, on the device, and the iterations of the methods that rest on it.

``beta u = A v - alpha u`` and ``alpha v = A^H u - beta v``. The vectors are stored before they are scaled: u is beta times, and v
alpha times the vector of the method.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._solvers.krylov.sweep import Layout, Pass, Sweeps
from clsparse_py._solvers.krylov.system import LeastSquares
from clsparse_py._solvers.krylov.watch import Iteration, iterate

__all__ = [
    "CONSTANTS",
    "START",
    "Bidiagonal",
    "declare_left_pass",
    "declare_right_pass",
    "name_initial_values",
    "name_scalars",
    "unpack",
]

# Names of LSQR's and LSMR's scalars end in "_set" for constants, "_0" for the current iteration, "_1" for the next iteration.
#: Names of the constant scalars of LSQR and LSMR, without the suffix "_set".
CONSTANTS = ("damp", "atol", "btol", "ctol", "bnorm", "eps")

#: The vector pass that computes the first left vector u = b - A x, not scaled yet, and begins the sums for the norms of u and b.
_LEFT = Pass(
    "bidiagonal_start", reads=("b", "q"), writes=("u",), lines=("u = b - q;",),
    sums=(("uu", "of_real(square(u))"), ("bb", "of_real(square(b))")),
)  # fmt: skip
#: The vector pass that computes the first right vector v = A^H u / |u|, not scaled yet, and begins the sum for the norm of v.
_RIGHT = Pass(
    "bidiagonal_first", reads=("t",), writes=("v",), totals=("uu",),
    first=("const R beta = sqrt(real_part(uu)), scale = beta > 0 ? 1 / beta : 0;",),
    lines=("v = t * scale;",), sums=(("vv", "of_real(square(v))"),),
)  # fmt: skip
#: The vector passes of the first step of Golub and Kahan's bidiagonalisation.
START = (_LEFT, _RIGHT)


def unpack(names: tuple[str, ...], suffix: str = "_0") -> str:
    """Return OpenCL C that declares a real variable for each scalar of a method, named like the scalar without its suffix."""
    return f"R {', '.join(f'{name} = real_part({name}{suffix})' for name in names)};"


def declare_left_pass(
    name: str,
    carried: tuple[str, ...],
    tells: tuple[str, ...],
    *,
    totals: tuple[str, ...],
    first: tuple[str, ...] = (),
    keeps: tuple[tuple[str, str], ...] = (),
) -> Pass:
    """Return the vector pass that computes the next left vector u, and writes the previous iteration's outcome for the host.

    Parameters
    ----------
    name : str
        Of the method.
    carried : tuple of str
        Scalars that an iteration takes over from the one before; they are copied, as other passes write them.
    tells : tuple of str
        Scalars that the host reads, of ``carried`` and of what ``first`` declares.
    totals, first, keeps : tuple
        Of the pass: sums that are ended here, statements that may change the scalars, and further scalars that are written.
    """
    return Pass(
        f"{name}_left", reads=("q",), updates=("u",), totals=totals,
        takes=(*(f"{scalar}_1" for scalar in carried), *(f"{scalar}_set" for scalar in CONSTANTS)),
        first=(
            unpack(carried, "_1"), unpack(CONSTANTS, "_set"), *first, "const bool active = stop == 0;",
            "const R scale = alpha > 0 ? 1 / alpha : 0, back = beta > 0 ? alpha / beta : 0;",
        ),
        lines=("if (active) u = q * scale - u * back;",), sums=(("uu", "of_real(square(u))"),),
        keeps=(*((f"{scalar}_0", f"of_real({scalar})") for scalar in carried), *keeps),
        tells=tuple((scalar, f"of_real({scalar})") for scalar in tells), guarded=True,
    )  # fmt: skip


def declare_right_pass(name: str) -> Pass:
    """Return the vector pass that computes the next right vector v of the bidiagonalisation."""
    return Pass(
        f"{name}_right", reads=("t",), updates=("v",), takes=("alpha_0", "stop_0"), totals=("uu",),
        first=(
            "const R beta = sqrt(real_part(uu)), alpha = real_part(alpha_0);",
            "const bool active = real_part(stop_0) == 0 && beta > 0;",
            "const R scale = beta > 0 ? 1 / beta : 0, back = alpha > 0 ? beta / alpha : 0;",
        ),
        lines=("if (active) v = t * scale - v * back;",), sums=(("vv", "of_real(square(v))"),),
        keeps=(("beta_new", "of_real(beta)"),), guarded=True,
    )  # fmt: skip


@dataclasses.dataclass
class Bidiagonal:
    """Vectors and scalars of a method that rests on the bidiagonalisation, after its first step.

    Attributes
    ----------
    sweeps : Sweeps
    u, v, q, t : pyopencl.array.Array
        q and t are room for the products.
    alpha, beta, bnorm : float
        beta is the norm of the first guess's residual, bnorm that of b.
    """

    problem: LeastSquares
    sweeps: Sweeps
    u: cl_array.Array
    v: cl_array.Array
    q: cl_array.Array
    t: cl_array.Array
    alpha: float
    beta: float
    bnorm: float

    @classmethod
    def begin(cls, problem: LeastSquares, layout: Layout) -> Bidiagonal:
        """Return the bidiagonalisation after its first step; waits for the norms."""
        (m, n), A, adjoint = problem.shape, problem.A, problem.adjoint
        sweeps = Sweeps(problem.chain, max(m, n), problem.dtype, layout)
        u, q, v, t = sweeps.vector(m), sweeps.vector(m), sweeps.vector(n), sweeps.vector(n)

        def start() -> None:
            """Enqueue the computation of the first left and right vectors of the bidiagonalisation."""
            if problem.guessed:
                A(problem.x, q)
            else:
                sweeps.fill(q)
            sweeps.bind(_LEFT, b=problem.b, q=q, u=u)()
            adjoint(u, t)
            sweeps.bind(_RIGHT, t=t, v=v)()

        totals = problem.scaling.begin_sums(start, sweeps)
        alpha, beta, bnorm = (float(np.sqrt(totals[name].real)) for name in ("vv", "uu", "bb"))
        return cls(problem, sweeps, u, v, q, t, alpha, beta, bnorm)

    def constants(self) -> dict[str, float]:
        """Return the values of the constant scalars of LSQR and LSMR, by the names of the scalars."""
        problem = self.problem
        ctol = 1 / problem.conlim if problem.conlim > 0 else 0.0
        eps = float(np.finfo(problem.dtype).eps)
        values = problem.damp * problem.scaling.A.alpha, problem.atol, problem.btol, ctol, self.bnorm, eps
        return {f"{name}_set": value for name, value in zip(CONSTANTS, values, strict=True)}

    def run(self, of_left: Pass, of_right: Pass, update: Pass, **vectors: cl_array.Array) -> tuple[float, ...]:
        """Run iterations of LSQR or LSMR until a test ends them, ``maxiter`` at most; return the scalars that the host read last.

        The pass ``update`` takes v, x and ``vectors``. The first scalar is the reason to stop: 0 if there is none, -1 if a norm
        is not a number.
        """
        problem, sweeps = self.problem, self.sweeps
        to_left = [sweeps.bind(of_left, 0, turn, q=self.q, u=self.u) for turn in (0, 1)]
        to_right = sweeps.bind(of_right, t=self.t, v=self.v)
        to_solution = sweeps.bind(update, 0, 0, v=self.v, x=problem.x, **vectors)
        report: list[tuple[float, ...]] = []

        def begin(_: int, turn: int, goes_on: bool) -> cl.Event:
            """Enqueue the product with A and the next left vector, and return the event of the left vector's pass."""
            if goes_on:
                problem.A(self.v, self.q)
            return to_left[turn]()

        def finish(_: int) -> None:
            """Enqueue the product with A^H, the next right vector, and the step of the solution x."""
            problem.adjoint(self.u, self.t)
            to_right()
            to_solution()

        def info(*values: float) -> int | None:
            """Note the scalars that the host read, and return the reason to stop iterations, or None if they go on."""
            report[:] = [tuple(map(float, values))]
            return int(values[0]) or None

        iterate(problem, sweeps, Iteration(begin, finish, info))
        return report[0]


def name_scalars(carried: tuple[str, ...], *further: str) -> tuple[str, ...]:
    """Return the names of LSQR's or LSMR's scalars: carried ones with "_1" and "_0", constants with "_set", further ones."""
    of_iterations = (f"{name}_{parity}" for parity in (1, 0) for name in carried)
    return (*of_iterations, *(f"{name}_set" for name in CONSTANTS), "beta_new", *further)


def name_initial_values(carried: tuple[str, ...], **values: Any) -> dict[str, Any]:
    """Return the given first values of scalars that LSQR's or LSMR's iterations carry over, by the scalars' names with "_1"."""
    return {f"{name}_1": values[name] for name in carried if name in values}
