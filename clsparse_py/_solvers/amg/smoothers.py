"""Smoothers of multigrid cycles, from a user's names and options: polynomials of a matrix, and Gauss-Seidel by colours."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import dataclass

__all__ = ["Smoother", "list_by_level", "make_smoother", "unpack"]

#: Optimal weights of the steps of a Chebyshev smoother of the fourth kind, by degree from 1 on (Lottes, Table 1).
_FOURTH_WEIGHTS = (
    (1.125,),
    (1.02387287570313, 1.26408905371085),
    (1.00842544782028, 1.08867839208730, 1.33753125909618),
    (1.00391310427285, 1.04035811188593, 1.14863498546254, 1.38268869241000),
    (1.00212930146164, 1.02173711549260, 1.07872433192603, 1.19810065292663, 1.41322542791682),
    (1.00128517255940, 1.01304293035233, 1.04678215124113, 1.11616489419675, 1.23829020218444, 1.43524297106744),
)


@dataclass(frozen=True)
class Smoother:
    """A smoother: ``x += p(S A) S (b - A x)``, where S is a diagonal matrix, or steps of Gauss-Seidel's method by colours.

    Attributes
    ----------
    name : str
        As a user gives it, and PyAMG.
    coefficients : tuple of complex
        Of p, from that of the highest power on; a Jacobi method has one, Gauss-Seidel's none.
    scaling : str
        S is the inverse of A's "diagonal", or of the diagonal matrix of A's row sums of absolute values ("l1"), or 1 ("none").
    iterations : int
        Steps.
    sweep : str
        Order of the colours in steps of Gauss-Seidel's method: "forward", "backward", or "symmetric", both.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500)).tocsr()
    >>> sp.amg.smoothed_aggregation_solver(A).levels[0].presmoother.name
    'jacobi'
    """

    name: str
    coefficients: tuple[complex, ...]
    scaling: str
    iterations: int
    sweep: str = ""


def unpack(option: Any) -> tuple[Any, dict[str, Any]]:
    """Return the name and the options of a method of multigrid, from a name or from PyAMG's pair (name, options)."""
    if isinstance(option, tuple):
        name, options = option
        return name, dict(options)
    return option, {}


def list_by_level(name: str, option: Any) -> list[Any]:
    """Return an option of multigrid as a list of entries by level, finest first; a tuple is one entry if it is (name, options).

    Raises
    ------
    ValueError
        The option is no name, no name with options, not None, and no list of such.
    """
    of_levels = isinstance(option, list) or (isinstance(option, tuple) and not (len(option) == 2 and isinstance(option[1], dict)))
    entries = list(option) if of_levels else [option]
    if not entries or not all(entry is None or isinstance(entry, (str, tuple)) for entry in entries):
        raise ValueError(f"{name}: must be a name, (name, options), None or a list of these, is {option!r}")
    return entries


def _make_jacobi(rho: Callable[[], float], iterations: int = 1, omega: float = 1.0, withrho: bool = True) -> Smoother:
    """Return the Jacobi smoother with the damping omega, divided by the eigenvalue estimate rho if ``withrho``."""
    return Smoother("jacobi", (omega / rho() if withrho else omega,), "diagonal", _check_iterations(iterations))


def _make_chebyshev(
    rho: Callable[[], float],
    degree: int = 3,
    lower_bound: float | None = None,
    upper_bound: float = 1.1,
    iterations: int = 1,
    kind: str = "first",
) -> Smoother:
    """Return the Chebyshev smoother of a degree: of the first kind, for eigenvalues between two bounds, or of the fourth."""
    degree = operator.index(degree)
    if kind != "first":
        if lower_bound is not None:
            raise ValueError(f"chebyshev: lower_bound belongs to the kind 'first', has {lower_bound} with {kind!r}")
        return Smoother("chebyshev", _list_fourth(degree, kind, rho() * upper_bound), "diagonal", _check_iterations(iterations))
    lower_bound = 1 / 30 if lower_bound is None else lower_bound
    if degree < 1 or not 0 < lower_bound < upper_bound:
        raise ValueError(
            f"chebyshev: needs a degree of at least 1 and bounds that ascend, has {degree}, {lower_bound}, {upper_bound}"
        )
    low, high = rho() * lower_bound, rho() * upper_bound
    roots = (high + low) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
    # The polynomial 1 - t p(t) of a smoother p is 1 at t = 0, and vanishes at Chebyshev's roots.
    polynomial = np.poly(roots)
    return Smoother("chebyshev", tuple((-polynomial / polynomial[-1])[:-1].tolist()), "diagonal", _check_iterations(iterations))


def _list_fourth(degree: int, kind: str, high: float) -> tuple[complex, ...]:
    """Return the coefficients, highest power first, of a Chebyshev smoother of the fourth kind for eigenvalues up to ``high``."""
    if kind not in ("fourth", "opt_fourth"):
        raise ValueError(f"chebyshev: kind must be 'first', 'fourth' or 'opt_fourth', is {kind!r}")
    most = len(_FOURTH_WEIGHTS) if kind == "opt_fourth" else 32
    if not 1 <= degree <= most or not high > 0:
        raise ValueError(f"chebyshev: kind {kind!r} needs a degree from 1 to {most} and a positive bound, has {degree}, {high}")
    weights = _FOURTH_WEIGHTS[degree - 1] if kind == "opt_fourth" else (1.0,) * degree
    # The residual and the step of the iteration, and the smoother p, as polynomials of an eigenvalue t.
    t, residual, step = Polynomial([0.0, 1.0]), Polynomial([1.0]), Polynomial([4 / (3 * high)])
    p = weights[0] * step
    for i in range(1, degree):
        residual = residual - t * step
        step = (2 * i - 1) / (2 * i + 3) * step + (8 * i + 4) / ((2 * i + 3) * high) * residual
        p = p + weights[i] * step
    return tuple(p.coef[::-1].tolist())


def _make_l1_jacobi(_: Callable[[], float], iterations: int = 1, omega: float = 1.0) -> Smoother:
    """Return the l1-Jacobi smoother (Baker et al.), which converges for any Hermitian positive definite matrix if omega is 1."""
    return Smoother("l1_jacobi", (omega,), "l1", _check_iterations(iterations))


def _make_multicolour_gauss_seidel(_: Callable[[], float], iterations: int = 1, sweep: str = "symmetric") -> Smoother:
    """Return the smoother of Gauss-Seidel's method, one colour of unknowns after another."""
    require_name("sweep", sweep, ("forward", "backward", "symmetric"))
    return Smoother("multicolour_gauss_seidel", (), "none", _check_iterations(iterations), sweep)


def _check_iterations(iterations: Any) -> int:
    """Return a smoother's number of iterations, checked to be an integer from 0 on."""
    number = operator.index(iterations)
    if number < 0:
        raise ValueError(f"iterations: must not be negative, is {number}")
    return number


#: Functions that make the multigrid smoothers, by name: PyAMG's name of a smoother that PyAMG has.
_KINDS: Mapping[str, Callable[..., Smoother]] = {
    "jacobi": _make_jacobi,
    "chebyshev": _make_chebyshev,
    "l1_jacobi": _make_l1_jacobi,
    "multicolour_gauss_seidel": _make_multicolour_gauss_seidel,
}


def make_smoother(name: str, option: Any, rho: Callable[[], float]) -> Smoother | None:
    """Return the smoother of a multigrid level from a user's option, or None if the user wants no smoother.

    Parameters
    ----------
    name : str
        The argument's, for messages.
    option : str, tuple or None
        In `_KINDS`, with options if a tuple.
    rho : callable
        Returns the largest eigenvalue of D^-1 A.

    Raises
    ------
    ValueError
        The device has no such smoother, or an option is wrong.
    TypeError
        An option is unknown.
    """
    kind, options = unpack(option)
    if kind is None:
        if options:
            raise TypeError(f"{name}: has no option {', '.join(options)}")
        return None
    if kind not in _KINDS:
        raise ValueError(f"{name}: {kind!r} does not run on the device; use one of {', '.join(_KINDS)}")
    return _KINDS[kind](rho, **options)
