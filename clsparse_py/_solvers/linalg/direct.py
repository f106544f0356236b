"""SuperLU's factors, computed on the host; solutions by them on the device; and a direct solver that caches them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray, on_device
from clsparse_py._arrays.hosted import array_on, as_given, by_scipy, on_host
from clsparse_py._build.plain import door
from clsparse_py._ground.errors import require_name, runs_on_host, warn
from clsparse_py._run.transfer import copy_to_host
from clsparse_py._solvers.linalg.problem import check_right_side
from clsparse_py._solvers.linalg.triangular_plan import triangular_plan

__all__ = ["SuperLU", "spsolve", "wrap_solve"]


class _Solution:
    """Solutions by LU factors on the device: a permutation, two triangular systems and another permutation.

    Parameters
    ----------
    factors : scipy.sparse.linalg.SuperLU
        Of a matrix A, ``Pr A Pc = L U``.
    queue : pyopencl.CommandQueue
    trans : {"N", "T", "H"}
        Solve with A, with its transposed, or with its conjugate transposed.
    """

    def __init__(self, factors: Any, queue: cl.CommandQueue, trans: str) -> None:
        of_host = (scipy.sparse.csr_array(part) for part in (factors.L, factors.U))
        lower, upper = (on_device(queue, part.conj() if trans == "H" else part) for part in of_host)
        self._dtype = np.dtype(lower.dtype)
        transposed = trans != "N"
        by_lower = triangular_plan(lower, unit_diagonal=True, transposed=transposed)
        by_upper = triangular_plan(upper, lower=False, transposed=transposed)
        self._first, self._second = (by_upper, by_lower) if transposed else (by_lower, by_upper)
        before, after = (factors.perm_c, factors.perm_r) if transposed else (factors.perm_r, factors.perm_c)
        self._before, self._after = self._permutation(queue, np.argsort(before)), self._permutation(queue, after)

    def _permutation(self, queue: cl.CommandQueue, rows: Any) -> Any:
        """Return the matrix that takes row ``rows[i]`` of a right-hand side to row i."""
        n = rows.size
        parts = np.ones(n, self._dtype), rows.astype(np.int32), np.arange(n + 1, dtype=np.int32)
        return on_device(queue, scipy.sparse.csr_array(parts, shape=(n, n)))

    def __call__(self, rhs: Any) -> Any:
        """Return the solutions for right-hand sides, a NumPy or a device array, in an array of the same kind."""
        right = check_right_side("rhs", rhs, self._before.shape[0])
        if not np.can_cast(right.dtype, self._dtype):
            raise TypeError(f"rhs: must be of a dtype that {self._dtype}, of the factors, holds, is {right.dtype}")
        queue = self._first.queue
        on_the_device = right if isinstance(right, cl_array.Array) else array_on(queue, right.astype(self._dtype, copy=False))
        x = self._after @ self._second(self._first(self._before @ on_the_device))
        return x if right is on_the_device else copy_to_host(x, queue)


class SuperLU:
    """The LU factors of a sparse matrix, computed on the host by `splu` and `spilu`.

    Attributes
    ----------
    shape : tuple of int
    nnz : int
        Entries of both factors.
    perm_r, perm_c : numpy.ndarray
        The orders of rows and columns.
    L, U : csc_array
        The factors, copied to the device when they are asked for.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> factors = sp.linalg.splu(sp.csc_array([[2.0, 1.0], [0.0, 4.0]]))
    >>> factors.U.toarray()
    array([[2., 1.],
           [0., 4.]])
    """

    def __init__(self, factors: Any, queue: cl.CommandQueue | None) -> None:
        self._factors, self._queue = factors, queue
        self._solutions: dict[str, _Solution] = {}
        self.shape: tuple[int, int] = factors.shape
        self.nnz: int = factors.nnz
        self.perm_r: npt.NDArray[np.int32] = factors.perm_r
        self.perm_c: npt.NDArray[np.int32] = factors.perm_c

    @property
    def L(self) -> Any:  # noqa: N802 - SciPy's name for it
        """The lower triangular factor L of ``Pr A Pc = L U``, with ones on its diagonal; Pr and Pc permute rows and columns."""
        return self._part(self._factors.L)

    @property
    def U(self) -> Any:  # noqa: N802 - SciPy's name for it
        """The upper triangular factor U of ``Pr A Pc = L U``; Pr and Pc permute rows and columns."""
        return self._part(self._factors.U)

    def _part(self, part: Any) -> Any:
        """Return a triangular factor in CSC form, on the device if the factorised matrix was there."""
        columns = scipy.sparse.csc_array(part)
        return columns if self._queue is None else on_device(self._queue, columns)

    def _solve_on_host(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solutions of ``A x = rhs``, with A transposed as ``trans`` says, by SuperLU's factors on the host."""
        return as_given(rhs, self._factors.solve(np.asarray(on_host(rhs)), trans))

    @door(_solve_on_host)
    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solutions of ``A x = rhs`` by the LU factors of A: on the device if A was there, else on the host.

        Parameters
        ----------
        rhs : numpy.ndarray or pyopencl.array.Array
            A right-hand side of n entries, or n x k for k of them, which are solved together.
        trans : {"N", "T", "H"}
            Solve with A, with its transposed, or with its conjugate transposed.

        Returns
        -------
        numpy.ndarray or pyopencl.array.Array
            As ``rhs``, of its shape.

        Raises
        ------
        ValueError, TypeError
            ``rhs`` has another number of rows, or a dtype that the factors' dtype does not hold.

        Notes
        -----
        On the device each factor is a `TriangularPlan`. The first call for a ``trans`` copies the factors there.
        """
        if self._queue is None or 0 in np.shape(rhs):
            return self._solve_on_host(rhs, trans)
        require_name("trans", trans, ("N", "T", "H"))
        solution = self._solutions.get(trans)
        if solution is None:
            solution = self._solutions[trans] = _Solution(self._factors, self._queue, trans)
        return solution(rhs)


def wrap_solve(solve: Callable[[Any], Any], queue: cl.CommandQueue | None) -> Callable[[Any], Any]:
    """Return SciPy's function that solves by LU factors, for right-hand sides of the host or of the device."""
    factors = getattr(solve, "__self__", None)
    if factors is not None:
        return SuperLU(factors, queue).solve
    return lambda b: as_given(b, solve(np.asarray(on_host(b))))


@overload
def spsolve(A: Any, b: cl_array.Array, permc_spec: str | None = None, use_umfpack: bool = True) -> cl_array.Array: ...


@overload
def spsolve(A: Any, b: npt.NDArray[Any], permc_spec: str | None = None, use_umfpack: bool = True) -> npt.NDArray[Any]: ...


@overload
def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any: ...


@runs_on_host("linalg.spsolve")
def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Return the solution of ``A x = b`` by a sparse LU factorisation. Runs on the host.

    The factors of a sparse array of the device are kept until it changes, so that to solve with it again takes less time. Whoever
    writes into ``A.data`` in place says ``A.data = A.data``.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy.
    b : array or sparse array
        A right-hand side of n entries, or n x k for k of them.
    permc_spec : str, optional
        The order of columns: "NATURAL", "MMD_ATA", "MMD_AT_PLUS_A" or, by default, "COLAMD".
    use_umfpack : bool
        For a sparse b, as of `scipy.sparse.linalg.spsolve`; factors that are kept are SuperLU's.

    Returns
    -------
    array or sparse array
        x: NumPy's, a device array or a sparse array, as b is. A vector, too, if b is n x 1.

    Raises
    ------
    ValueError
        A is not square, or b has another number of rows.

    Warns
    -----
    MatrixRankWarning
        A is singular: x is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> sp.linalg.spsolve(sp.csr_array([[2.0, 1.0], [0.0, 4.0]]), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    if not isinstance(A, SparseArray) or isinstance(b, SparseArray) or scipy.sparse.issparse(b):
        return by_scipy(scipy.sparse.linalg.spsolve, A, b, permc_spec=permc_spec, use_umfpack=use_umfpack)
    right = np.asarray(on_host(b))
    n = A.shape[0]
    if A.ndim != 2 or A.shape[1] != n:
        raise ValueError(f"A: matrix must be square, has shape {A.shape}")
    if right.ndim not in (1, 2) or right.shape[0] != n:
        raise ValueError(f"b: must have {n} rows, as A has, has shape {right.shape}")
    dtype = np.promote_types(np.promote_types(A.dtype, right.dtype), np.float32 if A.dtype.kind in "fc" else np.float64)
    vector = right.ndim == 1 or right.shape[1] == 1
    try:
        factors = _cached_factors(A, dtype, permc_spec)
    except RuntimeError:
        warn("Matrix is exactly singular", scipy.sparse.linalg.MatrixRankWarning)
        x = np.full(right.shape, np.nan, dtype)
    else:
        # SuperLU's factors are of A^T: the CSR arrays of A are the CSC arrays of A^T, without a conversion.
        x = factors.solve(right.astype(dtype), "T")
    return as_given(b, x.ravel() if vector else x)


class _CachedFactors(NamedTuple):
    """SuperLU's factors of an array, with the array's version, and the dtype and order of columns of the factors."""

    array: weakref.ref[Any]
    version: int
    kind: tuple[Any, ...]
    factors: Any


#: Cached LU factors that SuperLU computed, by the identity (`id`) of the factorised array in CSR form.
_factors: dict[int, _CachedFactors] = {}


def _cached_factors(A: SparseArray, dtype: np.dtype[Any], permc_spec: str | None) -> Any:
    """Return SuperLU's factors of A^T for an array A of the device: cached ones, if A, the dtype and the order are unchanged."""
    rows = A._as_csr()
    key, kind = id(rows), (dtype, permc_spec)
    cached = _factors.get(key)
    if cached is None or cached.array() is not rows or cached.version != rows._version or cached.kind != kind:
        host = rows.get().astype(dtype)
        turned = scipy.sparse.csc_array((host.data, host.indices, host.indptr), shape=host.shape)
        factors = scipy.sparse.linalg.splu(turned, permc_spec=permc_spec)
        cached = _CachedFactors(weakref.ref(rows, lambda _: _factors.pop(key, None)), rows._version, kind, factors)
        _factors[key] = cached
    return cached.factors
