"""Triangular systems with SciPy's signature, solved on the device."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray, on_device
from clsparse_py._arrays.hosted import array_on, by_scipy, on_host
from clsparse_py._build.plain import door
from clsparse_py._matrix.convert import convert
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.triangular import make_solver
from clsparse_py._run.transfer import copy_to_device, copy_to_host
from clsparse_py._solvers.linalg.problem import check_right_side, dtype_of_solution, order_of, place_of_solution

__all__ = ["spsolve_triangular"]


def _by_scipy(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,  # noqa: ARG001 - a copy is
    overwrite_b: bool = False,  # noqa: ARG001 - neither is
    unit_diagonal: bool = False,
) -> Any:
    """Return the solution of a triangular system by SciPy's `spsolve_triangular`, which needs the other triangle to be empty."""
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
        A's diagonal has a zero.
    ValueError, TypeError
        A is not square, or b has another number of rows or a wrong dtype.

    Notes
    -----
    Anderson and Saad, "Solving sparse triangular linear systems on parallel computers": rows that need none of each other make a
    level. The levels are found at the first call and kept with A's structure. A wide level has a launch of its own, and narrow
    ones that follow each other are solved by one work-group, so that no work-group waits for another one.

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
    queue = place_of_solution(A, {"b": right})
    matrix: Any = A if isinstance(A, SparseArray) else on_device(queue, scipy.sparse.csr_array(A))
    rows = matrix._as_csr()
    if not unit_diagonal and not rows.diagonal().all():
        raise np.linalg.LinAlgError("A: is singular, as its diagonal has a zero")
    # As in SciPy, b counts as at least float32; an integer diagonal, whose inverse is float64, counts only if it is inverted.
    of_b = np.promote_types(np.float32, right.dtype)
    of_A = np.empty(0, np.promote_types(A.dtype, of_b)) if unit_diagonal else A
    dtype = dtype_of_solution(of_A, np.empty(0, of_b), queue)
    if right.size == 0:
        return array_on(queue, np.zeros(right.shape, dtype)) if isinstance(b, cl_array.Array) else np.zeros(right.shape, dtype)
    rows.require_valid()
    # Convert the factor's values alone: the structure, which keeps the levels of its rows, stays the same.
    has_dtype = rows.dtype == dtype
    factor = rows if has_dtype else rows.with_values(convert(queue, "A", rows.data, dtype))
    solve = make_solver(queue, factor, upper=not lower, unit=unit_diagonal)
    if not isinstance(right, cl_array.Array):
        values = copy_to_device(queue, "b", np.ascontiguousarray(right, dtype).ravel())
    elif right.ndim == 1:
        values = convert(queue, "b", right, dtype)
    else:
        values = copy_to_device(queue, "b", np.ascontiguousarray(on_host(right), dtype).ravel())
    x = allocate(queue, "x", values.size, dtype)
    solve(values, x)
    if not isinstance(b, cl_array.Array):
        return copy_to_host(x, queue).reshape(right.shape)
    queue.finish()
    return x.reshape(right.shape)  # type: ignore[no-untyped-call] # PyOpenCL's
