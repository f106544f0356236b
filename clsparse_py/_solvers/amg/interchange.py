"""Hierarchies from PyAMG."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.smoothers import Smoother, smoother_of
from clsparse_py._solvers.amg.solver import MultilevelSolver

__all__ = ["from_pyamg"]

#: Coarse solvers of PyAMG that solve exactly, as the inverse here does.
_EXACT = ("pinv", "lu", "cholesky", "splu")


@door()
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
        level.symmetric = getattr(given.A, "symmetry", None) == "symmetric"
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
