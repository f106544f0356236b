"""Systems scaled by exact powers of two, so that no sum of squares leaves the range of numbers, and their solutions checked.

b is scaled by its exponent, A and M by the exponent of their first product with a vector: ``2^-a A (2^(a - b) x) = 2^-b b``. A
method's numbers are thus the same for (s A, s b) as for (A, b). The first product with A is one that the method needs anyway.

A power of two changes no bit of a number's fraction, so b stays as it is if no sum of its squares comes near the limits, and so
do A and M if the method allows it.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._memory.memory import allocate
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.sweep import Layout, Pass, Passes, Sweeps, declare_passes
from clsparse_py._solvers.krylov.system import Apply, LeastSquares, System
from clsparse_py._solvers.krylov.thresholds import Thresholds

__all__ = ["RESIDUAL", "Scaling", "Vectors", "is_solution", "max_unscaled_exponent", "solve", "solve_least_squares"]

# The scalars `exponent` and `shift`, of a power of two and of A - shift I, have a set for vectors, one for A and one for M.
#: Names of the scalars and sums, on the device, of a linear system scaled by powers of two.
LAYOUT = Layout(scalars=("exponent", "shift"), sums=("top", "rr", "xx", "qq", "bb"))
#: Index of the set of scalars and sums that belongs to the power of two by which vectors are scaled.
_OF_VECTORS = 0
#: Index of the set of scalars and sums that belongs to the power of two by which A is scaled.
_OF_A = 1
#: Index of the set of scalars and sums that belongs to the power of two by which the preconditioner M is scaled.
_OF_M = 2
#: Largest rounding error of a solution's residual b - A x, in units of machine epsilon times |A| |x| + |b|.
_ROUNDING = 10

#: The vector pass that begins the reduction to the largest absolute value of a vector's entries.
_TOP = Pass("scaling_top", reads=("y",), sums=(("top", "fabs(y)"),), largest=True)
#: The vector pass that multiplies a vector by a power of two.
_LDEXP = Pass("scaling_ldexp", updates=("y",), takes=("exponent",), lines=("y = times_power(y, (int)real_part(exponent));",))
#: The vector pass that computes the product y of A - shift I with x, where y is A x before.
_SHIFTED = Pass("scaling_shifted", reads=("x",), updates=("y",), takes=("shift",), lines=("y -= times(shift, x);",))
#: The vector pass that computes the residual b - A x, and begins the sums for the norms of the residual, x, A x and b.
RESIDUAL = Pass(
    "scaling_residual", reads=("b", "x"), updates=("q",), lines=("const T product = q;", "q = b - q;"),
    sums=(
        ("rr", "of_real(square(q))"), ("xx", "of_real(square(x))"), ("qq", "of_real(square(product))"),
        ("bb", "of_real(square(b))"),
    ),
)  # fmt: skip
declare_passes(LAYOUT, _TOP, _LDEXP, _SHIFTED, RESIDUAL)


def max_unscaled_exponent(dtype: np.dtype[Any]) -> int:
    """Return the largest absolute binary exponent of an operator's size at which it is not scaled: squares are in range."""
    return int(np.finfo(dtype).maxexp) // 16


class Power:
    """The power of two by which operators are scaled: ``2^-exponent``, which is not known before the first product."""

    exponent: int | None = None

    def __init__(self, part: int) -> None:
        self.part = part

    @property
    def alpha(self) -> float:
        """The power of two by which an operator is scaled, as a number, to be a factor of its products."""
        return 2.0 ** -(self.exponent or 0)


class Vectors(NamedTuple):
    """The queue and dtype of the vectors that operators are scaled for, if there is no system."""

    chain: Chain
    dtype: np.dtype[Any]
    x: None = None
    guessed: bool = False


class Scaling:
    """The powers of two of a system, whose right-hand side, guess and operators are scaled; or of operators alone.

    Attributes
    ----------
    b : int
        The exponent of the right-hand side.
    A, M : Power
    near : int
        As `max_unscaled_exponent`; less than 0 for methods that compare numbers of different units.
    """

    def __init__(self, system: Any, n: int, all_max: Callable[[Any], Any] | None = None) -> None:
        # A weak reference to the system: in a reference cycle its vectors' memory would wait for Python's garbage collector.
        self._of: Any = system if isinstance(system, Vectors) else weakref.proxy(system)
        self._n, self._all_max = n, all_max
        self.A, self.M = Power(_OF_A), Power(_OF_M)
        self.near = max_unscaled_exponent(system.dtype) if isinstance(system, System) else -1
        # The host's copy of the scaled system's scalars, a row for each set: NaN makes each set be written before it is used.
        self._values = np.full((3, 2), np.nan, system.dtype)
        self.b, self._is_b_scaled = 0, False

    @functools.cached_property
    def sweeps(self) -> Sweeps:
        """The scalars and sums of the scaled system on the device, allocated when a first vector pass needs them."""
        return Sweeps(self._of.chain, self._n, self._of.dtype, LAYOUT, 3)

    @functools.cached_property
    def _passes(self) -> Passes:
        """The vector passes of the scaled system, each bound once for its vectors."""
        return Passes(self.sweeps)

    def scale_product(self, apply: Apply, power: Power, shift: float = 0.0) -> Apply:
        """Return a function for products with a scaled operator; its first call finds the scale, a power of two, and waits."""
        takes_alpha = getattr(apply, "takes_alpha", False)

        def product(x: cl_array.Array, y: cl_array.Array) -> None:
            """Enqueue the scaled product y of the operator with x."""
            if takes_alpha and power.exponent is not None:
                # Pass the factor alpha even if it is 1: without alpha another kernel multiplies, and may round differently.
                apply(x, y, power.alpha)  # type: ignore[call-arg] # which this one takes
            else:
                apply(x, y)
            if shift:
                factor = power.alpha if takes_alpha else 1.0
                self.enqueue(_SHIFTED, power.part, -(power.exponent or 0), shift * factor, x=x, y=y)
            if power.exponent and not takes_alpha:
                self.enqueue(_LDEXP, power.part, -power.exponent, shift, y=y)
            if power.exponent is None:
                self.find(power, x, y)

        return product

    @property
    def x(self) -> int:
        """The exponent of the power of two by which the scaled solution has to be multiplied."""
        return self.b - (self.A.exponent or 0)

    def scale_b(self) -> None:
        """Scale the right-hand side, the first guess and the tolerance by b's exponent, unless that is done already; waits."""
        if self._is_b_scaled:
            return
        system, self._is_b_scaled = self._of, True
        (self.b,) = self._exponents(system.b) or (0,)
        self.ldexp(system.b, -self.b)
        if system.guessed:
            self.ldexp(system.x, -self.b)
        if isinstance(system, System) and np.isfinite(system.atol):
            system.atol = math.ldexp(system.atol, -self.b)

    def begin_sums(self, enqueue: Callable[[], object], sweeps: Sweeps) -> dict[str, Any]:
        """Return the sums that a Krylov method's first commands begin, ``bb`` of the right-hand side among them; waits.

        If ``bb`` is large or small, b is scaled, and the commands run again.
        """
        if self._of.guessed:
            # The product of A with a first guess may have entries of any size, so b is scaled first.
            self.scale_b()
        enqueue()
        totals = sweeps.totals()
        limit = 2.0 ** (np.finfo(sweeps.dtype).maxexp // 4)
        if not (self._is_b_scaled or 1 / limit <= totals["bb"].real <= limit):
            self.scale_b()
            if self.b:
                # Products with A and M in a method's first commands may have overflowed, as b was unscaled: drop their exponents.
                self.A.exponent = self.M.exponent = None
                enqueue()
                totals = sweeps.totals()
        self._is_b_scaled = True
        return totals

    def find(self, power: Power, x: cl_array.Array, y: cl_array.Array) -> None:
        """Determine the power of two that scales an operator, by its first product y with x; scale y, or a first guess x.

        If an entry of x or y is not finite, or one of them is 0, the power stays unknown, and nothing is scaled.
        """
        exponents = self._exponents(x, y)
        if exponents is None:
            return
        max_exponent = np.finfo(self._of.dtype).maxexp - 2
        exponent = max(min(exponents[1] - exponents[0], max_exponent), -max_exponent)
        power.exponent = exponent = 0 if abs(exponent) <= self.near else exponent
        if x is not self._of.x:
            self.ldexp(y, -exponent)
        if power is self.A and (x is self._of.x or self._of.guessed):
            self.ldexp(self._of.x, exponent)

    def ldexp(self, y: cl_array.Array, exponent: int) -> None:
        """Enqueue the multiplication of a vector y, in place, by two to the power of an exponent."""
        if exponent:
            self.enqueue(_LDEXP, _OF_VECTORS, exponent, y=y)

    def enqueue(self, step: Pass, part: int, exponent: int, shift: float = 0.0, **vectors: cl_array.Array) -> None:
        """Enqueue a vector pass of the scaled system, after the pass's exponent and shift, scalars of set ``part``, are set."""
        if step.takes and not np.array_equal(self._values[part], [exponent, shift]):
            self._values[part] = exponent, shift
            self.sweeps.set_all(self._values.ravel())
        self._passes.enqueue(step, part, **vectors)

    def _exponents(self, *vectors: cl_array.Array) -> list[int] | None:
        """Return the binary exponent of each vector's largest entry, or None if an entry is not finite or a vector 0; waits."""
        for part, vector in enumerate(vectors):
            self.sweeps.bind(_TOP, part, 0, y=vector)()
        parts = self.sums()[: len(vectors), 0]
        tops = parts.view(np.zeros(0, parts.dtype).real.dtype).max(axis=1)
        if self._all_max is not None:
            tops = self._all_max(tops)
        return [math.frexp(top)[1] for top in tops] if np.isfinite(tops).all() and tops.all() else None

    def sums(self) -> np.ndarray[Any, Any]:
        """Return the partial sums that the passes of the scaled system wrote, by set, sum and work-group; waits."""
        sweeps = self.sweeps
        shape = sweeps.parts, len(LAYOUT.sums), sweeps.groups
        return sweeps.chain.read(sweeps.sums, math.prod(shape)).reshape(shape)


def _norms(system: System, scaling: Scaling, b: cl_array.Array, x: cl_array.Array, q: cl_array.Array) -> np.ndarray[Any, Any]:
    """Return the norms of the residual b - A x, of x, of A x and of b; the vector q becomes the residual. Waits."""
    system.A(x, q)
    scaling.enqueue(RESIDUAL, 0, 0, b=b, x=x, q=q)
    with np.errstate(all="ignore"):
        squares = scaling.sums()[0, 1:].sum(axis=1).real
        return np.sqrt(squares if system.all_sum is None else system.all_sum(squares)).astype(np.float64)


def _limit_residual(system: System, b: float, rounded: float) -> float:
    """Return the largest norm that a solution's residual may have, from b's norm and the sum of rounded vectors' norms."""
    return max(system.rtol * b, system.atol) + _ROUNDING * float(np.finfo(system.dtype).eps) * rounded


def is_solution(system: System, squares: np.ndarray[Any, Any], size: float = 0.0) -> bool:
    """Return whether x is finite and its residual small enough, rounding allowed, by the sums of `RESIDUAL` over all ranks.

    ``size`` is an estimate of the norm of A, for the rounding of products in which terms cancel.
    """
    with np.errstate(all="ignore"):
        r, x, product, b = np.sqrt(squares.astype(np.float64))
        return bool(np.isfinite([r, x]).all() and r <= _limit_residual(system, b, max(product, size * x) + b))


def _check_solution(system: System, scaling: Scaling) -> tuple[bool, bool, float]:
    """Return whether a solution's residual is small enough, rounding allowed; whether x is finite; and the residual's norm."""
    squares, system.checked = system.checked, None
    if squares is not None and is_solution(system, squares):
        return True, True, float(np.sqrt(squares[0]))
    q = scaling.sweeps.vector()
    r, x, product, b = _norms(system, scaling, system.b, system.x, q)
    if not np.isfinite(r):
        return False, bool(np.isfinite(x)), r
    if r <= _limit_residual(system, b, product + b):
        return True, bool(np.isfinite(x)), r
    # Rounding errors are rich in eigenvectors of large eigenvalues, so their product with A shows the norm of A.
    _, size, of_r, _ = _norms(system, scaling, q, q, scaling.sweeps.vector())
    return bool(r <= _limit_residual(system, b, of_r / size * x + b)), bool(np.isfinite(x)), r


def solve(system: System, method: Callable[[System], int]) -> int:
    """Solve a linear system by a method, and return SciPy's info: 0 only if the residual itself, computed anew, is small enough.

    If the residual is too large though the method ended or broke down, the method goes on once, from its x. If a number of x is
    not finite in the end, x is the first guess again.
    """
    first, maxiter = None, system.maxiter
    if system.guessed:
        first = allocate(system.chain.queue, "x0", system.n, system.dtype)
        system.chain.copy(first, system.x, system.n)
    scaling = system.scaling = Scaling(system, system.n, system.all_max)
    system.A = scaling.scale_product(system.A, scaling.A, system.shift)
    if system.M is not None:
        system.M = scaling.scale_product(system.M, scaling.M)
    if system.callback is not None:
        system.callback = _scale_callback(scaling, system.callback)
    if maxiter:
        info = method(system)
    else:
        info = 0
        scaling.scale_b()
    is_small, is_finite, norm = _check_solution(system, scaling)
    # After a breakdown of a method a new start, from the current residual, may help.
    if info <= 0 and not is_small:
        system.maxiter, system.guessed, system.again = max(maxiter - system.made, 0), True, True
        if system.maxiter and is_finite:
            info, is_small, is_finite = _solve_further(system, method, norm)
        if info == 0 and not is_small:
            info = max(maxiter, 1)
    if is_finite:
        scaling.ldexp(system.x, scaling.x)
    elif first is None:
        scaling.sweeps.fill(system.x)
    else:
        scaling.sweeps.copy(system.x, first)
    return info


def _scale_callback(scaling: Scaling, callback: Callable[[cl_array.Array], object]) -> Callable[[cl_array.Array], None]:
    """Return a callback for the scaled solution x, which calls the user's callback with x in the units of the system."""
    unscaled = scaling.sweeps.vector()

    def show(x: cl_array.Array) -> None:
        """Call the user's callback with the solution x in the units of the system."""
        scaling.sweeps.copy(unscaled, x)
        scaling.ldexp(unscaled, scaling.x)
        callback(unscaled)

    return show


def _solve_further(system: System, method: Callable[[System], int], norm: float) -> tuple[int, bool, bool]:
    """Solve a system further from its x of residual norm ``norm``; return info, whether the residual is small and x finite."""
    sweeps = system.scaling.sweeps
    previous_x = sweeps.vector()
    sweeps.copy(previous_x, system.x)
    info = method(system)
    is_small, is_finite, new_norm = _check_solution(system, system.scaling)
    if not is_small and not new_norm < Thresholds.of(sweeps.chain.device).better * norm:
        # A singular system keeps the former solution x, as the rounding error of an update has no bound there.
        sweeps.copy(system.x, previous_x)
        is_finite = True
    return info, is_small, is_finite


def solve_least_squares(problem: LeastSquares, method: Callable[[LeastSquares], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Solve a least-squares problem by a method; return the reason to stop, the iterations, and the norms in the problem's units.

    The method returns the reason to stop, the number of iterations, and norms with the powers of b and A in them.
    """
    scaling = problem.scaling = Scaling(problem, max(problem.shape))
    problem.A, problem.adjoint = scaling.scale_product(problem.A, scaling.A), scaling.scale_product(problem.adjoint, scaling.A)
    stop, itn, *units = method(problem)
    scaling.ldexp(problem.x, scaling.x)
    of_A = scaling.A.exponent or 0
    return stop, itn, *(float(np.ldexp(value, in_b * scaling.b + in_A * of_A)) for value, in_b, in_A in units)
