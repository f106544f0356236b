"""Iterative solvers with SciPy's signatures, whose iterations run on the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import scipy.sparse.linalg

from clsparse_py._ground.errors import warn
from clsparse_py._matrix.annotations import solver
from clsparse_py._solvers.krylov import bicgstab as krylov_bicgstab
from clsparse_py._solvers.krylov import cg as krylov_cg
from clsparse_py._solvers.krylov import gmres as krylov_gmres
from clsparse_py._solvers.krylov import minres as krylov_minres
from clsparse_py._solvers.linalg.options import Options, check_positive
from clsparse_py._solvers.linalg.problem import order_of, solve_problem

__all__ = ["bicgstab", "cg", "gmres", "minres"]


@solver
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    check_every: int = 1,
) -> tuple[Any, int]:
    """Solve ``A x = b`` for a Hermitian positive definite A by the conjugate gradient method, on the device.

    Parameters
    ----------
    A : sparse array or operator
        n x n: a sparse array of this package or of SciPy, or an operator that takes NumPy arrays, such as SciPy's LinearOperator.
    b : numpy.ndarray or pyopencl.array.Array
        n entries, or n x k for k systems, which are solved one after another.
    x0 : array or "Mb", optional
        The first guess, of b's shape, which is copied; by default 0.
    rtol, atol : float
        A solution is found if the norm of b - A x is at most the larger of ``atol`` and ``rtol`` times the norm of b, but for
        rounding.
    maxiter : int, optional
        Iterations at most; by default 10 n.
    M : sparse array, operator or callable, optional
        Approximates the inverse of A; Hermitian positive definite. A callable takes and returns a device array.
    callback : callable, optional
        Called with x after each iteration, which the host waits for then.
    check_every : int
        How many iterations pass between two looks at the norm. The result does not depend on it, as the device stops by itself.

    Returns
    -------
    x : numpy.ndarray or pyopencl.array.Array
        The solution, as b is; of n entries if b is n x 1.
    info : int
        0 if a solution was found, which the residual itself tells at the end; else the number of iterations, as if all had been
        made, and 1 at least. Of several systems, that of the first without a solution.

    Raises
    ------
    ValueError, TypeError
        A is not square, or another argument has a wrong shape, dtype or value.

    Notes
    -----
    Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems". Several ranks have one reduction an
    iteration: without M, Chen and Carson, "Predict-and-recompute conjugate gradient variants"; with M, Chronopoulos and Gear,
    "s-step iterative methods for symmetric linear systems", with residuals replaced as van der Vorst and Ye say, "Residual
    replacement strategies for Krylov subspace iterative methods for the convergence of true residuals". On one device the norm
    of the residual reaches the host while the next iteration runs. Iterations end early, with ``info > 0``, if the norm is not a
    number. If one work-group holds the system, it makes all iterations in one launch: up to 4096 rows and 32768 entries, values
    of the vectors' dtype, M a sparse array, `jacobi` or None, no callback, and a single rank.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.cg(A, np.ones(50), rtol=1e-8)
    >>> info, bool(np.allclose(A @ x, 1))
    (0, True)
    """

    def read() -> Options:
        """Return the options of `cg`, checked."""
        return Options.check(
            "cg", krylov_cg.cg, functools.partial(scipy.sparse.linalg.cg, atol=atol),
            rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, check_every=check_every,
        )  # fmt: skip

    return solve_problem(read, A, b, x0, M)


@solver
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    check_every: int = 1,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by the stabilised biconjugate gradient method, on the device.

    Parameters
    ----------
    A : sparse array or operator
        n x n; as for `cg`, but it need not be Hermitian.
    b, x0, rtol, atol, maxiter, callback, check_every
        As for `cg`.
    M : sparse array, operator or callable, optional
        Approximates the inverse of A.

    Returns
    -------
    x : numpy.ndarray or pyopencl.array.Array
        The solution, as b is; of n entries if b is n x 1.
    info : int
        0 if a solution was found, the number of iterations if not; -10 or -11 if the method broke down, as rho or omega was 0,
        and did so again from there.

    Raises
    ------
    ValueError, TypeError
        A is not square, or another argument has a wrong shape, dtype or value.

    Notes
    -----
    Van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems".
    Small systems are solved in one launch, as by `cg`.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 4.0, -2.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.bicgstab(A, np.ones(50), rtol=1e-8)
    >>> info, bool(np.allclose(A @ x, 1))
    (0, True)
    """

    def read() -> Options:
        """Return the options of `bicgstab`, checked."""
        return Options.check(
            "bicgstab", krylov_bicgstab.bicgstab, functools.partial(scipy.sparse.linalg.bicgstab, atol=atol),
            rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, check_every=check_every,
        )  # fmt: skip

    return solve_problem(read, A, b, x0, M)


@solver
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    callback_type: str | None = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by the generalised minimal residual method, on the device.

    Parameters
    ----------
    A : sparse array or operator
        n x n; as for `cg`, but it need not be Hermitian.
    b, x0, rtol, atol
        As for `cg`.
    restart : int, optional
        Columns of a cycle, for each of which a vector is kept; by default 20, and n at most.
    maxiter : int, optional
        Cycles at most, by default 10 n; columns with the callback type "legacy".
    M : sparse array, operator or callable, optional
        Approximates the inverse of A; the preconditioned residual is minimised.
    callback : callable, optional
        Called as ``callback_type`` says.
    callback_type : {"x", "pr_norm", "legacy"}, optional
        "x": with x after each cycle. "pr_norm": with the norm of the preconditioned residual, by that of b, for each column.
        "legacy", the default: as "pr_norm", and ``maxiter`` counts columns.

    Returns
    -------
    x : numpy.ndarray or pyopencl.array.Array
        The solution, as b is; of n entries if b is n x 1.
    info : int
        0 if a solution was found, else ``maxiter``.

    Raises
    ------
    ValueError, TypeError
        A is not square, or another argument has a wrong shape, dtype or value.

    Notes
    -----
    Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems". A vector is made
    orthogonal to those before by blocks of four, twice. Its products with them reach the host while the next vector is made.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 4.0, -2.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.gmres(A, np.ones(50), rtol=1e-8)
    >>> info, bool(np.allclose(A @ x, 1))
    (0, True)
    """
    if callback is not None and callback_type is None:
        said = "called without specifying `callback_type`: 'legacy' is taken, as SciPy does today; say which is meant"
        warn(f"gmres: {said}", DeprecationWarning)
    kind = "legacy" if callback_type is None else callback_type

    def read() -> Options:
        """Return the options of `gmres`, checked."""
        if kind not in ("x", "pr_norm", "legacy"):
            raise ValueError(f"callback_type: must be 'x', 'pr_norm' or 'legacy', is {callback_type!r}")
        columns = 20 if restart is None else check_positive("restart", restart)
        report, by_columns = callback if kind != "x" else None, kind == "legacy" and callback is not None
        method = functools.partial(krylov_gmres.gmres, restart=min(columns, order_of(A)), report=report, by_columns=by_columns)

        def of_scipy(*operands: Any, **options: Any) -> Any:
            """Return the solution and info by SciPy's `gmres`."""
            options |= {"atol": atol, "restart": restart, "callback": callback, "callback_type": kind}
            return scipy.sparse.linalg.gmres(*operands, **options)

        return Options.check(
            "gmres", method, of_scipy,
            rtol=rtol, atol=atol, maxiter=maxiter, callback=callback if kind == "x" else None,
            restart=columns, callback_type=kind, **{"maxiter counts columns": by_columns},
        )  # fmt: skip

    return solve_problem(read, A, b, x0, M)


@solver
def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    show: bool = False,
    check: bool = False,
    check_every: int = 1,
) -> tuple[Any, int]:
    """Solve ``A x = b`` for a Hermitian A, which may be indefinite or singular, by the minimal residual method, on the device.

    Parameters
    ----------
    A : sparse array or operator
        n x n; as for `cg`, but it need not be positive definite.
    b, x0, callback, check_every
        As for `cg`.
    rtol : float
        A solution is found if the norm of the residual is at most ``rtol`` times that of b, but for rounding. SciPy's docstring
        says so, too, but SciPy compares with norms of A and x that are estimated, and may end far earlier.
    shift : float
        Solve ``(A - shift I) x = b``.
    maxiter : int, optional
        Iterations at most; by default 5 n.
    M : sparse array, operator or callable, optional
        Approximates the inverse of A; Hermitian positive definite.
    show, check : bool
        Print the iterations; test whether A and M are symmetric. With either, SciPy's own method runs, on NumPy vectors.

    Returns
    -------
    x : numpy.ndarray or pyopencl.array.Array
        The solution, as b is; of n entries if b is n x 1. Of least squares, if A is singular and b not in its range.
    info : int
        0 if a solution was found, else ``maxiter``.

    Raises
    ------
    ValueError, TypeError
        M is not positive definite, A is not square, or another argument has a wrong shape, dtype or value.

    Notes
    -----
    Paige and Saunders, "Solution of sparse indefinite systems of linear equations". Inner products are those of complex vectors,
    so complex Hermitian matrices are solved, too.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 0.5, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.minres(A, np.ones(50), rtol=1e-10)
    >>> info, bool(np.allclose(A @ x, 1))
    (0, True)
    """

    def read() -> Options:
        """Return the options of `minres`, checked."""
        method = None if show or check else krylov_minres.minres
        return Options.check(
            "minres", method, functools.partial(scipy.sparse.linalg.minres, shift=shift, show=show, check=check),
            rtol=rtol, maxiter=maxiter, callback=callback, check_every=check_every, iterations_each=5,
            shift=shift, show=bool(show), check=bool(check),
        )  # fmt: skip

    return solve_problem(read, A, b, x0, M)
