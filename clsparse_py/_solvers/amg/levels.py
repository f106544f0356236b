"""A level of a multigrid hierarchy: matrices, smoothers, facts."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._operations.spmv import get_spmv_plan
from clsparse_py._run.launch import Chain
from clsparse_py._solvers.aggregation.graph import compute_smoothing_values, invert_diagonal
from clsparse_py._solvers.amg.products import bind_product
from clsparse_py._solvers.amg.smoothers import Smoother
from clsparse_py._solvers.krylov import multigrid as passes
from clsparse_py._solvers.krylov.radius import spectral_radius
from clsparse_py._solvers.krylov.sweep import Sweeps
from clsparse_py._solvers.linalg.problem import as_divided

__all__ = ["Level"]

# The eigenvalue that 8 Lanczos steps estimate is at most 6 % too small for grids, elasticity and ten real matrices.
# Multigrid-preconditioned conjugate gradients take the same iterations after 8 Lanczos steps as after 15, or one less.
#: Lanczos steps that estimate the largest eigenvalue of D^-1 A, for a level's matrix A and its diagonal D.
_STEPS = 8


@dataclasses.dataclass(eq=False)
class Level:
    """A level of a multigrid hierarchy, with PyAMG's attributes.

    Attributes
    ----------
    A : csr_array
        The matrix. Over ranks it is a `clsparse_py.distributed.csr_array`, or one of which each rank has all.
    P, R : csr_array or None
        Prolongation from the next coarser level, and restriction to it; None on the coarsest. From a level over ranks to one
        that each rank has whole, they only have a ``shape``, and ``whole()`` on all ranks returns the SciPy matrix.
    B : pyopencl.array.Array or None
        The near-nullspace candidates, a column each, of this rank's rows of A; None on levels that were taken over.
    blocksize : int
        Unknowns to a node.
    presmoother, postsmoother : Smoother or None
    symmetric : bool
        A is equal to its transposed; else to its conjugate transposed.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500)).tocsr()
    >>> fine, coarse = sp.amg.smoothed_aggregation_solver(A, max_levels=2).levels
    >>> fine.P.shape == (500, coarse.A.shape[0])
    True
    """

    A: Any
    P: Any = None
    R: Any = None
    B: cl_array.Array | None = dataclasses.field(default=None, repr=False)
    blocksize: int = 1
    presmoother: Smoother | None = None
    postsmoother: Smoother | None = None
    symmetric: bool = False
    _inverses: dict[bool, cl_array.Array] = dataclasses.field(default_factory=dict, init=False, repr=False)
    _rho: float | None = dataclasses.field(default=None, init=False, repr=False)

    def changed(self) -> None:
        """Forget the cached inverses of the diagonal and the eigenvalue of a level's matrix, as that matrix has other values."""
        self._inverses, self._rho = {}, None

    def inverse(self, *, l1: bool = False) -> cl_array.Array:
        """Return the inverse of the diagonal of the level's matrix A, for this rank's rows, 0 where the diagonal is 0; cached.

        ``l1``: in place of the diagonal, of the sums of the absolute values of each row's entries in this rank's columns.
        """
        if l1 not in self._inverses:
            self._inverses[l1] = invert_diagonal(as_divided(self.A).local, l1=l1)
        return self._inverses[l1]

    def longest_row(self) -> int:
        """Return the number of entries of the longest row of the level's matrix A, which is on one device."""
        return get_spmv_plan(self.A).features.longest

    def rho(self) -> float:
        """Return an estimate of the largest eigenvalue of ``D^-1 A``, for the level's matrix A and its diagonal D; cached.

        Raises
        ------
        ValueError
            A value is not finite, or no row has a diagonal entry.
        """
        if self.has_zero_diagonal():
            self._fail("A: has no entry on its diagonal that is not 0")
        assert self._rho is not None
        return self._rho

    def has_zero_diagonal(self) -> bool:
        """Return whether the level's matrix has no entry on its diagonal that is not 0; a ValueError if a value is not finite."""
        if self._rho is None:
            A = self.A
            queue, steps, begin = A.queue, min(_STEPS, A.shape[0]), as_divided(A).begin
            multiply = functools.partial(bind_product, queue, A)
            radius = spectral_radius(
                Chain(queue), multiply, self.inverse(), steps, begin, as_divided(A).all_sum, symmetric=self.symmetric
            )
            if not np.isfinite(radius):
                self._fail("A: has values that are not finite, or too large")
            self._rho = radius
        return not self._rho

    def _fail(self, message: str) -> None:
        """Raise a ValueError on all ranks that share the level's matrix."""
        as_divided(self.A).raise_alike(ValueError(message))

    def relaxed(self, x: cl_array.Array, omega: float, iterations: int) -> cl_array.Array:
        """Return a copy of the vector x after ``iterations`` Jacobi steps for ``A x = 0``, where A is the level's matrix."""
        A, gain = self.A, omega / self.rho()
        queue = A.queue
        for event in Chain(queue, x).wait_for or ():
            event.wait()
        sweeps = Sweeps(Chain(queue), x.size, x.dtype, passes.LAYOUT)
        sweeps.fill(sweeps.scalars, -gain)
        relaxed, q = sweeps.vector(), sweeps.vector()
        sweeps.copy(relaxed, x)
        commands = (
            bind_product(queue, A, relaxed, q),
            sweeps.bind(passes.JACOBI_OF_RESIDUAL, r=q, inverse=self.inverse(), x=relaxed),
        )
        for command in iterations * commands:
            command()
        return relaxed.reshape(x.shape)  # type: ignore[no-any-return, no-untyped-call] # PyOpenCL's

    def smoothing(self, omega: float) -> Any:
        """Return the matrix of a Jacobi step, ``1 - omega / rho D^-1 A``, with A's structure; rho is as `rho` returns it."""
        inverse, gain = self.inverse(), omega / self.rho()

        def smoothed(part: csr_array, first: int = 0) -> csr_array:
            """Return a block of the matrix of a Jacobi step, ``1 - gain D^-1 A``, for a block of A's columns."""
            return part.with_values(compute_smoothing_values(part, inverse, gain, first) if part.nnz else part.data)

        # The block of a rank's rows of A in other ranks' columns has no diagonal entries.
        return as_divided(self.A).mapped(smoothed, lambda part: smoothed(part, part.shape[1]))
