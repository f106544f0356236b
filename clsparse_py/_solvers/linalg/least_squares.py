"""Least-squares solvers with SciPy's signatures, whose iterations run on the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py._arrays.hosted import by_scipy
from clsparse_py._build.plain import door
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.order import note_written
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host
from clsparse_py._solvers.krylov import lsmr as krylov_lsmr
from clsparse_py._solvers.krylov import lsqr as krylov_lsqr
from clsparse_py._solvers.krylov.scaling import solve_least_squares
from clsparse_py._solvers.krylov.system import LeastSquares
from clsparse_py._solvers.linalg.operators import bind_adjoint, bind_operator
from clsparse_py._solvers.linalg.options import check_limit, check_positive, check_tolerance
from clsparse_py._solvers.linalg.problem import check_right_side, copy_vector, dtype_of_solution, place_of_solution

__all__ = ["lsmr", "lsqr"]


class _Operands:
    """The arguments of a least-squares solver, checked."""

    def __init__(self, A: Any, b: Any, x0: Any, limits: tuple[float, float, float, float], every: int) -> None:
        operator_of = A if hasattr(A, "shape") else scipy.sparse.linalg.aslinearoperator(A)
        if len(operator_of.shape) != 2:
            raise ValueError(f"A: must have two dimensions, has shape {operator_of.shape}")
        self.A, self.shape = A, (int(operator_of.shape[0]), int(operator_of.shape[1]))
        self.b, self.x0 = self._vector("b", b, self.shape[0]), None if x0 is None else self._vector("x0", x0, self.shape[1])
        self.limits, self.every = limits, check_positive("check_every", every)
        self.queue = place_of_solution(A, {"b": self.b, "x0": self.x0})
        self.dtype = dtype_of_solution(A, self.b, self.queue)

    @staticmethod
    def _vector(name: str, values: Any, n: int) -> Any:
        """Return a right-hand side or first guess in one dimension, checked to have n entries."""
        vector = check_right_side(name, values if isinstance(values, cl_array.Array) else np.atleast_1d(values), n)
        if vector.ndim > 1 and vector.shape[1] != 1:
            raise ValueError(f"{name}: must be one vector, has shape {vector.shape}")
        return vector if vector.ndim == 1 else vector[:, 0]

    def problem(self, maxiter: int) -> LeastSquares:
        """Return the least-squares problem with all vectors on the device."""
        chain = Chain(self.queue)
        if self.x0 is None:
            x = allocate(self.queue, "x", self.shape[1], self.dtype)
            chain.fill(x, 0, x.size)
        else:
            x = self.on_device("x0", self.x0)
        A, adjoint = bind_operator(self.A, self.queue, self.dtype), bind_adjoint(self.A, self.queue, self.dtype)
        b, guessed = self.on_device("b", self.b), self.x0 is not None
        return LeastSquares(chain, self.shape, self.dtype, A, adjoint, b, x, guessed, *self.limits, maxiter, self.every)

    def on_device(self, name: str, values: Any) -> cl_array.Array:
        """Return a copy, on the device, of a right-hand side or first guess of the least-squares problem."""
        return copy_vector(self.queue, name, values, self.dtype)

    def deliver(self, x: cl_array.Array) -> Any:
        """Return the solution x of the least-squares problem as b is: a device array, or a NumPy array."""
        if not isinstance(self.b, cl_array.Array):
            return copy_to_host(x, self.queue)
        note_written(x, cl.enqueue_marker(self.queue))
        return x


def _solve(operands: _Operands, method: Callable[[LeastSquares], tuple[Any, ...]], maxiter: int) -> tuple[Any, ...]:
    """Return the solution x of a least-squares problem and the method's reason to stop, number of iterations, and norms."""
    problem = operands.problem(maxiter)
    report = solve_least_squares(problem, method)
    return operands.deliver(problem.x), *report


def _by_scipy(function: Callable[..., Any], *arguments: Any, check_every: int = 1, **named: Any) -> Any:  # noqa: ARG001 - ours
    """Return the result of SciPy's least-squares solver, whose products with sparse arrays run on the device."""
    return by_scipy(function, *arguments, multiplies=True, **named)


@door(functools.partial(_by_scipy, scipy.sparse.linalg.lsqr))
def lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
    *,
    check_every: int = 1,
) -> tuple[Any, ...]:
    """Solve ``min |b - A x|² + damp² |x - x0|²`` by LSQR, on the device.

    Parameters
    ----------
    A : sparse array or operator
        m x n: a sparse array of this package or of SciPy, or an operator with ``rmatvec`` that takes NumPy arrays, such as
        SciPy's LinearOperator. A sparse array is transposed once.
    b : numpy.ndarray or pyopencl.array.Array
        m entries, or m x 1.
    damp : float
    atol, btol : float
        Iterations end if the residual's norm is at most ``btol |b| + atol |A| |x|``, or that of A^H times it at most ``atol |A|``
        times the residual's.
    conlim : float
        They end, too, if the estimate of A's condition exceeds this; 0 stands for no limit.
    iter_lim : int, optional
        Iterations at most; by default 2 n.
    show : bool
        Print the iterations; SciPy's own function runs then, on NumPy vectors.
    calc_var : bool
        Whether to estimate the diagonal of ``(A^H A + damp² I)^-1``.
    x0 : array, optional
        The first guess, of n entries; by default 0.
    check_every : int
        How many iterations pass between two looks at the tests. The result does not depend on it.

    Returns
    -------
    x : numpy.ndarray or pyopencl.array.Array
        The solution, as b is.
    istop : int
        1 if x solves ``A x = b``, 2 if it does by least squares, 3 if ``conlim`` was exceeded; 4, 5 and 6 are as these, as far as
        the precision reaches; 7 if ``iter_lim`` was, or a norm is not a number; 0 if x0 is the solution.
    itn : int
        Iterations made.
    r1norm, r2norm : float
        Norms of ``b - A x``, and of that with ``damp (x - x0)`` below it.
    anorm, acond : float
        Estimates of the norm and condition of A with ``damp I`` below it.
    arnorm, xnorm : float
        Estimates of the norms of ``A^H r - damp² (x - x0)`` and of ``x - x0``.
    var : numpy.ndarray or pyopencl.array.Array
        What ``calc_var`` asks for, else zeros.

    Raises
    ------
    ValueError, TypeError
        An argument has a wrong shape, dtype or value.

    Notes
    -----
    Paige and Saunders, "LSQR: an algorithm for sparse linear equations and sparse least squares".

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> x, istop, *norms = sp.linalg.lsqr(A, np.array([1.0, 0.0, -1.0]))
    >>> np.round(x, 6), istop
    (array([ 1., -1.]), 1)
    """
    operands = _Operands(
        A, b, x0, (float(damp), check_tolerance("atol", atol), check_tolerance("btol", btol), float(conlim)), check_every
    )
    max_iterations = 2 * operands.shape[1] if iter_lim is None else check_limit("iter_lim", iter_lim)
    if show or 0 in operands.shape:
        return _by_scipy(scipy.sparse.linalg.lsqr, A, operands.b, *operands.limits, max_iterations, show, calc_var, operands.x0)  # type: ignore[no-any-return]
    variance = allocate(operands.queue, "var", operands.shape[1], operands.dtype) if calc_var else None
    report = _solve(operands, functools.partial(krylov_lsqr.lsqr, variance=variance), max_iterations)
    var = np.zeros(operands.shape[1]) if variance is None else copy_to_host(variance, operands.queue).real.astype(np.float64)
    return *report, cl_array.to_device(operands.queue, var) if isinstance(b, cl_array.Array) else var


@door(functools.partial(_by_scipy, scipy.sparse.linalg.lsmr))
def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
    *,
    check_every: int = 1,
) -> tuple[Any, ...]:
    """Solve ``min |b - A x|² + damp² |x - x0|²`` by LSMR, on the device.

    The norm of A^H times the residual falls with each iteration, so that it may end earlier than `lsqr`.

    Parameters
    ----------
    A, b, damp, atol, btol, conlim, show, x0, check_every
        As for `lsqr`.
    maxiter : int, optional
        Iterations at most; by default the smaller of m and n.

    Returns
    -------
    x : numpy.ndarray or pyopencl.array.Array
        The solution, as b is.
    istop, itn : int
        As of `lsqr`.
    normr, normar, norma, conda, normx : float
        Norms of the residual, with ``damp x`` below it, and of A^H times that; estimates of A's norm and condition; the norm of
        x.

    Raises
    ------
    ValueError, TypeError
        An argument has a wrong shape, dtype or value.

    Notes
    -----
    Fong and Saunders, "LSMR: an iterative algorithm for sparse least-squares problems".

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> x, istop, *norms = sp.linalg.lsmr(A, np.array([1.0, 0.0, -1.0]))
    >>> np.round(x, 6), istop
    (array([ 1., -1.]), 1)
    """
    operands = _Operands(
        A, b, x0, (float(damp), check_tolerance("atol", atol), check_tolerance("btol", btol), float(conlim)), check_every
    )
    max_iterations = min(operands.shape) if maxiter is None else check_limit("maxiter", maxiter)
    if show or 0 in operands.shape:
        return _by_scipy(scipy.sparse.linalg.lsmr, A, operands.b, *operands.limits, max_iterations, show, operands.x0)  # type: ignore[no-any-return]
    return _solve(operands, krylov_lsmr.lsmr, max_iterations)
