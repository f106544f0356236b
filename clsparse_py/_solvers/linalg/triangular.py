"""Triangular systems with SciPy's signature, solved on the device."""

from __future__ import annotations

from typing import Any, overload

import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py._arrays.hosted import by_scipy, on_host
from clsparse_py._build.plain import door
from clsparse_py._solvers.linalg.problem import check_right_side, order_of, place_of_solution
from clsparse_py._solvers.linalg.triangular_plan import make_plan

__all__ = ["spsolve_triangular"]


def _by_scipy(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,  # noqa: ARG001 - a copy is
    overwrite_b: bool = False,  # noqa: ARG001 - neither is
    unit_diagonal: bool = False,
) -> Any:
    """Return the solution of a triangular system by SciPy's `spsolve_triangular`, without the entries of the other triangle."""
    part = (scipy.sparse.tril if lower else scipy.sparse.triu)(on_host(A), format="csr")
    return by_scipy(scipy.sparse.linalg.spsolve_triangular, part, b, lower, unit_diagonal=unit_diagonal)


@overload
def spsolve_triangular(
    A: Any, b: cl_array.Array, lower: bool = ..., overwrite_A: bool = ..., overwrite_b: bool = ..., unit_diagonal: bool = ...
) -> cl_array.Array: ...


@overload
def spsolve_triangular(
    A: Any, b: npt.ArrayLike, lower: bool = ..., overwrite_A: bool = ..., overwrite_b: bool = ..., unit_diagonal: bool = ...
) -> npt.NDArray[Any]: ...


@door(_by_scipy)
def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,  # noqa: ARG001 - SciPy's
    overwrite_b: bool = False,  # noqa: ARG001 - SciPy's
    unit_diagonal: bool = False,
) -> Any:
    """Return the solution of ``A x = b`` for a triangular A, on the device.

    Parameters
    ----------
    A : sparse array
        n x n; of this package, or of SciPy. Entries on the other side of the diagonal are passed over.
    b : numpy.ndarray or pyopencl.array.Array
        A right-hand side of n entries, or n x k for k of them, which are solved together.
    lower : bool
        Whether A is lower triangular, else upper.
    overwrite_A, overwrite_b : bool
        As of `scipy.sparse.linalg.spsolve_triangular`; neither is written to.
    unit_diagonal : bool
        Whether A's diagonal is taken for ones, whatever is stored.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        x, of b's shape, and as b is.

    Raises
    ------
    LinAlgError
        A's diagonal has a zero; the message names the first such row.
    ValueError, TypeError
        A is not square, or b has another number of rows or a wrong dtype.

    Notes
    -----
    This is one call of a `triangular_plan`, whose analysis A's structure keeps. Stencils on grids are solved by tiles (Irigoin
    and Triolet, "Supernode partitioning"). Of other matrices CPU devices of few cores solve row by row; GPUs on which work-groups
    were seen to run on while others wait solve each row as soon as the unknowns that it needs are known (Liu et al., "A
    synchronization-free algorithm for parallel sparse triangular solves"); other devices by level sets, of rows that do not
    depend on each other (Anderson and Saad, "Solving sparse triangular linear systems on parallel computers").

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[2.0, 0.0], [1.0, 4.0]])
    >>> sp.linalg.spsolve_triangular(A, np.array([2.0, 9.0]))
    array([1., 2.])
    """
    n = order_of(A)
    right = check_right_side("b", b, n)
    plan = make_plan(A, lower, unit_diagonal, False, "auto", place_of_solution(A, {"b": right}))
    x = plan(right)
    plan.check()
    if isinstance(x, cl_array.Array):
        plan.queue.finish()
    return x
