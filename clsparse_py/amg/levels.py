"""A level of a hierarchy: its matrices, its smoothers, and what is known of its matrix."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from pyopencl import array as cl_array

from clsparse_py.amg.products import product
from clsparse_py.amg.smoothers import Smoother
from clsparse_py.csr import csr_array
from clsparse_py.device import in_order
from clsparse_py.krylov import multigrid as passes
from clsparse_py.krylov.radius import spectral_radius
from clsparse_py.krylov.sweep import Sweeps
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.reductions.sums import diagonal_on_device

__all__ = ["Level"]


@dataclasses.dataclass(eq=False)
class Level:
    """One level of a hierarchy, as PyAMG has it.

    Attributes
    ----------
    A : csr_array
        The matrix.
    P, R : csr_array or None
        Prolongation from the next coarser level, and restriction to it; None on the coarsest.
    B : pyopencl.array.Array or None
        The near-nullspace candidates, a column each; None on levels that were taken over.
    blocksize : int
        Unknowns to a node.
    presmoother, postsmoother : Smoother or None

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(500, 500)).tocsr()
    >>> fine, coarse = sp.amg.smoothed_aggregation_solver(A, max_levels=2).levels
    >>> fine.P.shape == (500, coarse.A.shape[0])
    True
    """

    A: csr_array
    P: csr_array | None = None
    R: csr_array | None = None
    B: cl_array.Array | None = dataclasses.field(default=None, repr=False)
    blocksize: int = 1
    presmoother: Smoother | None = None
    postsmoother: Smoother | None = None
    _inverse: cl_array.Array | None = dataclasses.field(default=None, init=False, repr=False)
    _rho: float | None = dataclasses.field(default=None, init=False, repr=False)

    def changed(self) -> None:
        """Take note that the matrix has other values."""
        self._inverse, self._rho = None, None

    def inverse(self) -> cl_array.Array:
        """Return the inverse of the diagonal, 0 where that is 0; made at the first call."""
        if self._inverse is None:
            queue, A = in_order(self.A.queue), self.A
            diagonal = diagonal_on_device(A)
            self._inverse = allocated(queue, "a diagonal", A.shape[0], A.dtype)
            chain = Chain(queue, diagonal)
            if chain.wait_for:
                queue.finish()
            Sweeps(chain, A.shape[0], A.dtype, passes.LAYOUT).bind(passes.INVERSE, d=diagonal, inverse=self._inverse)()
        return self._inverse

    def rho(self) -> float:
        """Return about the largest eigenvalue of D^-1 A; found at the first call.

        Raises
        ------
        ValueError
            A value is not finite, or no row has a diagonal entry.
        """
        if self._rho is None:
            queue, A = in_order(self.A.queue), self.A
            found = spectral_radius(Chain(queue), functools.partial(product, queue, A), self.inverse())
            if not np.isfinite(found):
                raise ValueError("A: has values that are not finite, or too large")
            if not found:
                raise ValueError("A: has no entry on its diagonal that is not 0")
            self._rho = found
        return self._rho
