"""Options of iterative solvers, checked."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from clsparse_py._ground.records import dataclass
from clsparse_py._solvers.krylov.system import System

__all__ = ["Options", "check_limit", "check_positive", "check_tolerance"]


def check_tolerance(name: str, value: Any) -> float:
    """Return a solver's tolerance as a number, checked to be at least 0.

    Raises
    ------
    ValueError
        The tolerance is below 0, or no number; the message has its name.
    """
    number = math.nan if value is None or isinstance(value, str) else float(value)
    if not number >= 0:
        raise ValueError(f"{name}: must be a number that is not negative, is {value!r}")
    return number


def check_limit(name: str, value: Any) -> int:
    """Return the most iterations of a solver as an integer, checked to be at least 0.

    Raises
    ------
    ValueError
        The limit is below 0; the message has its name.
    """
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"{name}: must not be negative, is {number}")
    return number


def check_positive(name: str, value: Any) -> int:
    """Return an option of a solver, such as the rows of a block, as an integer, checked to be at least 1.

    Raises
    ------
    ValueError
        The option is less than 1; the message has its name.
    """
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"{name}: must be at least 1, is {value}")
    return number


@dataclass(frozen=True)
class Options:
    """How a solver iterates.

    Attributes
    ----------
    name : str
        The solver's.
    method : callable or None
        Solves a `System`, whose x becomes the solution, and returns info. None: ``of_scipy`` solves.
    of_scipy : callable or None
        SciPy's solver, which takes the place of ``method`` if the device's compiler refuses plain kernels.
    rtol, atol : float
    maxiter : int or None
    check_every : int
    callback : callable or None
    iterations_each : int
        The default of ``maxiter`` for each unknown.
    own : mapping
        The other options of the method, by name.
    """

    name: str
    method: Callable[[System], int] | None
    of_scipy: Callable[..., tuple[Any, int]] | None
    rtol: float
    atol: float
    maxiter: int | None
    check_every: int
    callback: Callable[[Any], object] | None
    iterations_each: int
    own: Mapping[str, Any]

    @classmethod
    def check(
        cls,
        name: str,
        method: Callable[[System], int] | None,
        of_scipy: Callable[..., tuple[Any, int]] | None,
        *,
        rtol: Any,
        maxiter: Any,
        callback: Callable[[Any], object] | None,
        check_every: Any = 1,
        atol: Any = 0.0,
        iterations_each: int = 10,
        **of_method: Any,
    ) -> Options:
        """Return the options of an iterative solver, checked.

        Raises
        ------
        ValueError, TypeError
            An option is wrong; the message names it.
        """
        bounds, every = (check_tolerance("rtol", rtol), check_tolerance("atol", atol)), check_positive("check_every", check_every)
        max_iterations = None if maxiter is None else check_limit("maxiter", maxiter)
        return cls(name, method, of_scipy, *bounds, max_iterations, every, callback, iterations_each, of_method)

    @property
    def facts(self) -> dict[str, Any]:
        """The options of a solver that all ranks of a system have to agree on, by name."""
        callback = None if self.callback is None else "given"
        limits = {
            "solver": self.name,
            "rtol": self.rtol,
            "atol": self.atol,
            "maxiter": self.maxiter,
            "check_every": self.check_every,
        }
        return {**limits, "callback": callback, **self.own}

    def max_iterations(self, n: int) -> int:
        """Return the most iterations for a system of n unknowns: the user's ``maxiter`` or, by default, a multiple of n."""
        return self.iterations_each * n if self.maxiter is None else self.maxiter

    def by_scipy(self, A: Any, b: Any, x0: Any, M: Any) -> tuple[Any, int]:
        """Return the solution of ``A x = b`` for a right-hand side b of the host, and info, by SciPy's solver."""
        assert self.of_scipy is not None
        return self.of_scipy(A, b, x0, M=M, rtol=self.rtol, maxiter=self.maxiter, callback=self.callback)
