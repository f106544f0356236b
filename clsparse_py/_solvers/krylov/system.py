"""A system ``A x = b``, square or of least squares: all vectors on the device, and operators as functions of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._run.launch import Chain
from clsparse_py._solvers.krylov.sweep import AllSum, Layout, Pass, Sweeps

__all__ = ["Apply", "GroupMatrices", "LeastSquares", "System"]

#: A function that enqueues ``y = A x`` for vectors x and y of a solve, on its queue.
Apply: TypeAlias = Callable[[cl_array.Array, cl_array.Array], None]
#: Arrays by a matrix's name, "A" or "M": indptr, indices and data, each of which begins its buffer, or a diagonal alone.
GroupMatrices: TypeAlias = dict[str, tuple[cl_array.Array, ...]]


@dataclasses.dataclass
class System:
    """A system with one right-hand side, ready to be solved.

    Attributes
    ----------
    chain : Chain
        Of a queue in order, for all commands.
    n : int
        Entries of all vectors: unknowns, or this rank's part of them.
    dtype : dtype
        Of all vectors: float32, float64, complex64 or complex128.
    A : callable
        Enqueues ``y = A x``.
    M : callable or None
        Enqueues ``y = M x`` for the preconditioner, if there is one.
    b : pyopencl.array.Array
        The right-hand side; not to be written to.
    x : pyopencl.array.Array
        The first guess, to become the solution.
    guessed : bool
        Whether the first guess was given; else it is 0.
    rtol, atol : float
    maxiter : int
    callback : callable or None
        Takes a device vector, and calls the user's callback with it in the form of b.
    check_every : int
        Iterations between two looks of the host at the norm.
    group_matrices : GroupMatrices or None
        The matrices, in the dtype of the vectors, if one work-group iterates sooner than launches of many.
    all_sum, all_max : callable, optional
        If ranks share the system: functions that return sums, and maxima, of numbers over ranks.
    shift : float
        The system is ``(A - shift I) x = b``.
    again : bool
        Whether the method goes on from a solution of its own that is not good enough.
    made : int
        Iterations that were enqueued one by one.
    scaling : Scaling
        Set when the system is solved.
    checked : numpy.ndarray or None
        The sums of `scaling.RESIDUAL` for x, if the method computed them itself.
    """

    chain: Chain
    n: int
    dtype: np.dtype[Any]
    A: Apply
    M: Apply | None
    b: cl_array.Array
    x: cl_array.Array
    guessed: bool
    rtol: float
    atol: float
    maxiter: int
    callback: Callable[[cl_array.Array], object] | None
    check_every: int
    group_matrices: GroupMatrices | None = None
    all_sum: AllSum | None = None
    all_max: Callable[[Any], Any] | None = None
    shift: float = 0.0
    again: bool = False
    made: int = 0
    scaling: Any = None
    checked: np.ndarray[Any, Any] | None = None

    def sweeps(self, layout: Layout) -> Sweeps:
        """Return new scalars and sums on the device, in a method's layout, for passes over the system's vectors."""
        return Sweeps(self.chain, self.n, self.dtype, layout, all_sum=self.all_sum)

    def begin(self, start: Pass, sweeps: Sweeps, *, q: cl_array.Array, **vectors: cl_array.Array) -> None:
        """Enqueue a vector pass that computes the residual of the first guess x from b and the product A x, stored in q."""
        if self.guessed:
            self.A(self.x, q)
        else:
            sweeps.fill(q)
        sweeps.bind(start, 0, 0, b=self.b, q=q, **vectors)()

    def bound(self, bb: Any) -> np.floating[Any]:
        """Return the largest squared norm that a solution's residual may have, from the tolerances and the square of b's norm."""
        real = np.zeros(0, self.dtype).real.dtype.type
        with np.errstate(all="ignore"):
            limit = real(max(self.atol, self.rtol * float(np.sqrt(bb.real))))
            square: np.floating[Any] = limit * limit
        return square

    def is_solved(self, totals: dict[str, Any], sweeps: Sweeps) -> bool:
        """Return whether the first guess, or x = 0 if b is 0, solves the system, by the sums rr of the residual and bb of b.

        If b is 0, x is filled with 0.
        """
        if totals["bb"] == 0:
            sweeps.fill(self.x)
        return bool(totals["bb"] == 0 or totals["rr"].real <= self.bound(totals["bb"]))


@dataclasses.dataclass
class LeastSquares:
    """The least-squares problem ``min |b - A x|² + damp² |x|²``, ready to be solved.

    Attributes
    ----------
    chain, dtype, b, x, guessed, maxiter, callback, check_every, made, scaling
        As of a `System`.
    shape : tuple of int
        Of A, which need not be square; neither is 0.
    A, adjoint : callable
        Enqueue ``y = A x`` and ``y = A^H x``.
    damp : float
    atol, btol, conlim : float
        Bounds of the tests that end iterations.
    """

    chain: Chain
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    A: Apply
    adjoint: Apply
    b: cl_array.Array
    x: cl_array.Array
    guessed: bool
    damp: float
    atol: float
    btol: float
    conlim: float
    maxiter: int
    check_every: int
    callback: Callable[[cl_array.Array], object] | None = None
    made: int = 0
    scaling: Any = None
