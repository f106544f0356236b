"""Conversion of PyAMG's multigrid hierarchies."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._solvers.amg.levels import Level
from clsparse_py._solvers.amg.smoothers import Smoother, make_smoother
from clsparse_py._solvers.amg.solver import MultilevelSolver

__all__ = ["from_pyamg"]

#: PyAMG's names of direct solvers for a hierarchy's coarsest level, in place of which the coarsest matrix is inverted here.
_EXACT = ("pinv", "lu", "cholesky", "splu")


@door()
def from_pyamg(ml: Any, smoother: Any = None, *, queue: cl.CommandQueue | None = None) -> MultilevelSolver:
    """Return a copy of PyAMG's hierarchy on the device, whose cycles differ by rounding alone unless ``smoother`` is given.

    Parameters
    ----------
    ml : pyamg.multilevel.MultilevelSolver
        Of any method. BSR matrices become CSR.
    smoother : str or tuple, optional
        Takes the place of all smoothers, before and after: a name or one with options, as
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
    return MultilevelSolver([_copy_level(ml, number, smoother, queue) for number in range(len(ml.levels))])


def _copy_level(ml: Any, number: int, smoother: Any, queue: cl.CommandQueue | None) -> Level:
    """Return a copy of a level of PyAMG's hierarchy on the device, with the user's smoother, or by default PyAMG's smoothers."""
    theirs = ml.levels[number]
    is_last = number == len(ml.levels) - 1
    parts = (theirs.A, None, None) if is_last else (theirs.A, theirs.P, theirs.R)
    level = Level(*(None if matrix is None else _copy_matrix(matrix, queue) for matrix in parts))  # type: ignore[arg-type]
    level.symmetric = getattr(theirs.A, "symmetry", None) == "symmetric"
    if not is_last and smoother is not None:
        level.presmoother = level.postsmoother = make_smoother("smoother", smoother, level.rho)
    elif not is_last:
        level.presmoother, level.postsmoother = (
            _read_smoother(number, of_pyamg) for of_pyamg in (theirs.presmoother, theirs.postsmoother)
        )
    return level


def _copy_matrix(A: Any, queue: cl.CommandQueue | None) -> csr_array:
    """Return a SciPy matrix as a `csr_array` on the device, with values of a floating dtype."""
    rows = A.tocsr()
    return csr_array(rows if rows.dtype.kind in "fc" else rows.astype(np.float64), queue=queue)


def _read_smoother(number: int, theirs: Any) -> Smoother | None:
    """Return the smoother that a function of PyAMG stands for, with its coefficients and iterations; None for no smoothing.

    Raises
    ------
    ValueError
        The smoother of the level does not run on the device.
    """
    function = theirs.func if isinstance(theirs, functools.partial) else theirs
    name = getattr(function, "__name__", "")
    if isinstance(theirs, functools.partial) and name == "jacobi":
        return Smoother("jacobi", (complex(theirs.keywords["omega"]),), "diagonal", theirs.keywords["iterations"])
    if name in ("chebyshev", "richardson"):
        closure = inspect.getclosurevars(function).nonlocals
        coefficients = (closure["omega"],) if name == "richardson" else closure["coefficients"]
        return Smoother(name, tuple(map(complex, coefficients)), "none", closure["iterations"])
    if name == "none":
        return None
    shown = getattr(theirs, "__name__", name) or type(theirs).__name__
    raise ValueError(
        f"ml: the smoother {shown} of level {number} does not run on the device; "
        "smoother=('jacobi', {'omega': 4 / 3}) replaces it"
    )
