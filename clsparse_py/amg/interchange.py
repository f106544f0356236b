"""Hierarchies from PyAMG and back."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py.amg.by_host import smoothed
from clsparse_py.amg.levels import Level
from clsparse_py.amg.products import whole
from clsparse_py.amg.smoothers import Smoother, smoother_of
from clsparse_py.amg.solver import MultilevelSolver
from clsparse_py.csr import csr_array
from clsparse_py.linalg.problem import Divided

__all__ = ["from_pyamg", "to_pyamg"]

#: Coarse solvers of PyAMG that solve exactly, as the inverse here does.
_EXACT = ("pinv", "lu", "cholesky", "splu")


def from_pyamg(ml: Any, smoother: Any = None, *, queue: cl.CommandQueue | None = None) -> MultilevelSolver:
    """Copy a hierarchy of PyAMG to the device, with its smoothers: the same cycles, and residuals but for rounding.

    Parameters
    ----------
    ml : pyamg.multilevel.MultilevelSolver
        Of any method. BSR matrices become CSR.
    smoother : str or tuple, optional
        Takes the place of all smoothers, before and after: "jacobi" or "chebyshev", or one with options, as
        `smoothed_aggregation_solver` takes it. By default PyAMG's are taken over with their numbers: Jacobi, Richardson and
        Chebyshev smoothers, and none.
    queue : pyopencl.CommandQueue, optional
        Where it lives; by default `clsparse_py.default_queue`.

    Returns
    -------
    MultilevelSolver

    Raises
    ------
    ValueError
        A smoother that does not run on the device, such as Gauss-Seidel, if ``smoother`` is None; or an iterative coarse solver.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> import pyamg  # doctest: +SKIP
    >>> of_pyamg = pyamg.smoothed_aggregation_solver(A, presmoother="jacobi", postsmoother="jacobi")  # doctest: +SKIP
    >>> ml = sp.amg.from_pyamg(of_pyamg)  # doctest: +SKIP
    """
    exact = ml.coarse_solver.name().strip("'\"")
    if exact not in _EXACT:
        raise ValueError(f"ml: its coarse solver is {exact}; set it to one of {', '.join(_EXACT)}")
    levels = []
    for at, given in enumerate(ml.levels):
        is_last = at == len(ml.levels) - 1
        parts = (given.A, None, None) if is_last else (given.A, given.P, given.R)
        level = Level(*(None if each is None else _csr(each, queue) for each in parts))  # type: ignore[arg-type]
        if not is_last and smoother is not None:
            level.presmoother = level.postsmoother = smoother_of("smoother", smoother, level.rho)
        elif not is_last:
            level.presmoother, level.postsmoother = (_smoother(at, each) for each in (given.presmoother, given.postsmoother))
        levels.append(level)
    return MultilevelSolver(levels)


def _csr(A: Any, queue: cl.CommandQueue | None) -> csr_array:
    found = A.tocsr()
    return csr_array(found if found.dtype.kind in "fc" else found.astype(np.float64), queue=queue)


def _smoother(at: int, given: Any) -> Smoother | None:
    """Return a smoother of PyAMG, a function that it made."""
    function = given.func if isinstance(given, functools.partial) else given
    name = getattr(function, "__name__", "")
    if isinstance(given, functools.partial) and name == "jacobi":
        return Smoother("jacobi", (complex(given.keywords["omega"]),), True, given.keywords["iterations"])
    if name in ("chebyshev", "richardson"):
        known = inspect.getclosurevars(function).nonlocals
        coefficients = (known["omega"],) if name == "richardson" else known["coefficients"]
        return Smoother(name, tuple(map(complex, coefficients)), False, known["iterations"])
    if name == "none":
        return None
    shown = getattr(given, "__name__", name) or type(given).__name__
    raise ValueError(
        f"ml: the smoother {shown} of level {at} does not run on the device; smoother=('jacobi', {{'omega': 4 / 3}}) replaces it"
    )


def to_pyamg(ml: MultilevelSolver) -> Any:
    """Return a hierarchy as PyAMG's, with copies of its matrices on the host and the same smoothers.

    Parameters
    ----------
    ml : MultilevelSolver

    Returns
    -------
    pyamg.multilevel.MultilevelSolver
        Of a hierarchy over ranks, which all of them have to ask for, whole on each, without candidates.

    Raises
    ------
    ImportError
        PyAMG is not installed.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500))
    >>> ml = sp.amg.to_pyamg(sp.amg.smoothed_aggregation_solver(A))  # doctest: +SKIP
    """
    from pyamg.multilevel import MultilevelSolver as OfPyamg

    levels = []
    for level in ml.levels:
        made = OfPyamg.Level()
        made.A = whole(level.A)
        if level.P is not None and level.R is not None:
            made.P, made.R = whole(level.P), whole(level.R)
            made.presmoother, made.postsmoother = (_on_host(each, made.A) for each in (level.presmoother, level.postsmoother))
        if level.B is not None and not isinstance(level.A, Divided):
            made.B = level.B.get()
        levels.append(made)
    found = OfPyamg(levels, coarse_solver="pinv")
    found.symmetric_smoothing = all(level.presmoother == level.postsmoother for level in ml.levels[:-1])
    return found


def _on_host(smoother: Smoother | None, A: Any) -> Any:
    """Return a smoother as a function that PyAMG calls: of a matrix, x, which it writes to, and b."""
    from pyamg.relaxation import relaxation

    if smoother is None:
        return lambda A, x, b: None  # noqa: ARG005 - as PyAMG calls it
    if smoother.scaled and len(smoother.coefficients) == 1:
        omega = smoother.coefficients[0]
        keywords = {"iterations": smoother.iterations, "omega": omega if A.dtype.kind == "c" else np.real(omega)}
        return functools.partial(relaxation.jacobi, **keywords)
    diagonal = A.diagonal()
    inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal != 0) if smoother.scaled else 1

    def polynomial(A: Any, x: Any, b: Any) -> None:
        x[...] = smoothed(A, inverse, smoother, b, x)

    return polynomial
