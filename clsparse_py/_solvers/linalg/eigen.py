"""Eigensolvers with SciPy's signatures, whose iterations run on the device."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import scipy.sparse.csgraph
import scipy.sparse.linalg
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.hosted import array_on, on_host
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue
from clsparse_py._ground.errors import warn
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host
from clsparse_py._solvers.krylov import lobpcg as krylov_lobpcg
from clsparse_py._solvers.krylov.lanczos import WANTED, Eigenpairs, lanczos
from clsparse_py._solvers.krylov.lobpcg import Problem
from clsparse_py._solvers.krylov.panel import Panel
from clsparse_py._solvers.krylov.system import Apply
from clsparse_py._solvers.linalg.functions import aslinearoperator
from clsparse_py._solvers.linalg.operators import bind_operator, is_function
from clsparse_py._solvers.linalg.problem import (
    check_right_side,
    copy_vector,
    dtype_of_solution,
    join_columns,
    order_of,
    place_of_solution,
)
from clsparse_py._solvers.linalg.solvers import minres

__all__ = ["eigsh", "lobpcg"]

#: Rounding floor: the error of an eigenvalue that counts as rounding, in machine epsilons of the largest eigenvalue.
_FLOOR = 4.0
#: Number of positional arguments after v0 that SciPy's `eigsh` takes in every version.
_OPTIONS_OF_ARPACK = 7


def _by_arpack(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    *options: Any,
    rng: Any = None,  # noqa: ARG001 - of our own v0
    **named: Any,
) -> Any:
    """Return eigenpairs by SciPy's `eigsh` (ARPACK), on the host; with ``sigma``, matrices are copied there and factorised."""
    if sigma is not None:
        A, M = on_host(A), on_host(M)
    elif isinstance(A, SparseArray):
        A = aslinearoperator(A)
    v0 = None if v0 is None else np.asarray(on_host(v0))
    return scipy.sparse.linalg.eigsh(A, k, M, sigma, which, v0, *options[:_OPTIONS_OF_ARPACK], **named)


@door(_by_arpack)
def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | Any] | Any:
    """Return some eigenvalues of a Hermitian matrix, and their eigenvectors, by Lanczos' method on the device.

    Parameters
    ----------
    A : sparse array or operator
        n x n; as for `cg`, but it need not be positive definite.
    k : int
        How many eigenvalues, less than n.
    M, Minv, mode
        As of `scipy.sparse.linalg.eigsh`: ``A x = w M x``, and other transformations. With any of them, ARPACK solves on
        the host.
    sigma : float, optional
        Find eigenvalues near this number: those for which ``1 / (w - sigma)`` is as ``which`` says. Systems with ``A - sigma I``
        are solved by ``OPinv``; else a matrix is factorised once, on the host, and an operator's systems are solved by `minres`
        on the device. Each solution is checked, and each pair by products with A.
    which : {"LM", "SM", "LA", "SA", "BE"}
        The largest or smallest magnitudes, the largest or smallest values, or half of them from each end.
    v0 : array, optional
        The vector to begin with, of n entries; by default a random one.
    ncv : int, optional
        Vectors of the basis, more than k; by default the smaller of n and max(2 k + 1, 20).
    maxiter : int, optional
        Restarts at most; by default 10 n.
    tol : float
        Relative error of eigenvalues; 0 stands for the precision.
    return_eigenvectors : bool
    OPinv : sparse array, operator or callable, optional
        ``(A - sigma I)^-1``. A callable takes and returns a device array.
    rng : numpy.random.Generator or int, optional
        For ``v0``.

    Returns
    -------
    w : numpy.ndarray
        The k eigenvalues, which ascend.
    v : numpy.ndarray or pyopencl.array.Array
        Eigenvectors, as columns; on the device if ``v0`` is. Only with ``return_eigenvectors``.

    Raises
    ------
    ValueError, TypeError
        An argument has a wrong shape, dtype or value, or `minres` has not solved a system.
    MemoryError
        The factors of ``A - sigma I`` may not fit the host's free memory, by a bound that the message names.
    RuntimeError
        ``A - sigma I`` is singular, or was not solved well.
    ArpackNoConvergence
        Not all eigenvalues converged; its attributes ``eigenvalues`` and ``eigenvectors`` have those that did.

    Notes
    -----
    Wu and Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", with each vector made orthogonal to all
    others, twice. The host reads a column of the small projected matrix for each product.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array(np.arange(1.0, 51.0))
    >>> values, vectors = sp.linalg.eigsh(A, k=2, v0=np.ones(50))
    >>> np.round(values, 6)
    array([49., 50.])
    """
    n, k = order_of(A), operator.index(k)
    if M is not None or Minv is not None or mode != "normal" or not 0 < k < n:
        return _by_arpack(A, k, M, sigma, which, v0, ncv, maxiter, tol, return_eigenvectors, Minv, OPinv, mode)
    if which not in WANTED:
        raise ValueError(f"which: must be one of {', '.join(WANTED)}, is {which!r}")
    if OPinv is not None and sigma is None:
        raise ValueError("OPinv: is for a sigma")
    size = min(n, max(2 * k + 1, 20)) if ncv is None else operator.index(ncv)
    if not k < size <= n:
        raise ValueError(f"ncv: must be more than k = {k}, and at most {n}, is {size}")
    maxiter = 10 * n if maxiter is None else operator.index(maxiter)
    if maxiter < 1:
        raise ValueError(f"maxiter: must be positive, is {maxiter}")
    if not tol >= 0:
        raise ValueError(f"tol: must be a number that is not negative, is {tol}")
    if sigma is not None and not np.isfinite(sigma):
        raise ValueError(f"sigma: must be a finite number, is {sigma}")
    generator = np.random.default_rng(rng)
    first = generator.standard_normal(n) if v0 is None else check_right_side("v0", v0, n)
    queue = place_of_solution(A, {"b": v0, "v0": v0})
    dtype = dtype_of_solution(A, A if hasattr(A, "dtype") else first, queue)
    multiplied = bind_operator(A, queue, dtype) if sigma is None else _bind_inverse(A, float(sigma), OPinv, queue, dtype)
    floor = _FLOOR if sigma is None else 0.0
    start = copy_vector(queue, "v0", first if v0 is not None else first.astype(dtype), dtype)
    pairs = lanczos(Chain(queue), multiplied, start, k, size, maxiter, float(tol), which, generator, floor)
    values = pairs.values
    if sigma is not None:
        values = sigma + 1 / values
        belongs = _check_pairs(A, values, [copy_to_host(vector, queue) for vector in pairs.vectors], generator)
        pairs = dataclasses.replace(pairs, converged=pairs.converged & belongs)
    return _deliver(pairs, values, queue, isinstance(v0, cl_array.Array), dtype, n, return_eigenvectors)


def _deliver(
    pairs: Eigenpairs,
    values: np.ndarray[Any, Any],
    queue: cl.CommandQueue,
    on_device: bool,
    dtype: np.dtype[Any],
    n: int,
    with_vectors: bool,
) -> Any:
    """Return eigenvalues and eigenvectors as `eigsh` does, or raise ArpackNoConvergence if an eigenpair has not converged."""
    values = values.astype(np.zeros(0, dtype).real.dtype)
    order = np.argsort(values, kind="stable")
    fine = bool(pairs.converged.all())
    if not fine:
        order = order[pairs.converged[order]]
    vectors: Any = None
    if with_vectors or not fine:
        # Without any converged pair the matrix of eigenvectors, which has no columns, is NumPy's.
        vectors = join_columns(queue, [pairs.vectors[i] for i in order], n, dtype, on_device=on_device and order.size > 0)
    if not fine:
        raise scipy.sparse.linalg.ArpackNoConvergence(
            f"No convergence ({pairs.restarts} restarts, %d/%d eigenvectors converged)" % (order.size, pairs.converged.size),
            values[order],
            vectors,
        )
    return (values[order], vectors) if with_vectors else values[order]


def _bind_inverse(A: Any, sigma: float, OPinv: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
    """Return the function for products with ``(A - sigma I)^-1``: by ``OPinv``, a matrix's LU factors, or `minres`."""
    if OPinv is not None:
        return bind_operator(OPinv, queue, dtype)
    rough = float(np.sqrt(np.finfo(dtype).eps))
    if isinstance(A, SparseArray) or scipy.sparse.issparse(A):
        return bind_operator(_factorise_shifted(A, sigma, rough, queue, dtype), queue, dtype)
    A = scipy.sparse.linalg.aslinearoperator(A)

    def solve(x: cl_array.Array) -> Any:
        """Return the solution of ``(A - sigma I) y = x`` by `minres`; raise a ValueError if the residual is large."""
        y, info = minres(A, x, shift=sigma, rtol=float(np.finfo(dtype).eps), maxiter=20 * x.size)
        right, solution = copy_to_host(x, queue), on_host(y)
        # The least-squares solution of a singular system ends minres, too, so the residual is checked here.
        residual = np.linalg.norm(right - (A @ solution - sigma * solution))
        if info or not residual <= rough * np.linalg.norm(right):
            raise ValueError(f"sigma: minres has not solved a system with A - {sigma} I; give OPinv")
        return y

    return bind_operator(solve, queue, dtype)


def _check_pairs(
    A: Any, values: np.ndarray[Any, Any], vectors: list[np.ndarray[Any, Any]], generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return a mask of pairs (value, vector) that are eigenpairs of A: pairs by a wrong or nearly singular inverse are not."""
    A = scipy.sparse.linalg.aslinearoperator(on_host(A) if isinstance(A, SparseArray) else A)
    # The mean square of the norm of A times a random vector is the square of A's Frobenius norm.
    size = np.linalg.norm(A @ generator.standard_normal(vectors[0].size).astype(vectors[0].dtype))
    limit = float(np.sqrt(np.finfo(vectors[0].dtype).eps)) * float(size)
    return np.array([np.linalg.norm(A @ v - w * v) <= limit for w, v in zip(values, vectors, strict=True)])


def _factorise_shifted(A: Any, sigma: float, rough: float, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Return a function that solves systems with ``A - sigma I`` by LU factors on the host.

    The pattern is symmetric: minimum degree on it and pivots on the diagonal leave half the fill of SuperLU's own choice.
    """
    host = scipy.sparse.csc_array(on_host(A)).astype(dtype)
    shifted = scipy.sparse.csc_array(host - dtype.type(sigma) * scipy.sparse.eye_array(host.shape[0], dtype=dtype))
    n_bytes, free = _bytes_of_factors(shifted), _free_host_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"sigma: factors of A - {sigma} I may take {n_bytes / 1e6:,.0f} MB, by a bound of their fill, and the host has "
            f"{free / 1e6:,.0f} MB; give OPinv=, such as minres on the device or multigrid (amg.solve)"
        )
    options = {"SymmetricMode": True}
    factors = scipy.sparse.linalg.splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options=options)
    size = float(scipy.sparse.linalg.norm(shifted))

    def solve(x: cl_array.Array) -> cl_array.Array:
        """Return the solution of ``(A - sigma I) y = x`` by LU factors; raise a RuntimeError if the residual is large."""
        right = copy_to_host(x, queue)
        solution = factors.solve(right)
        residual = np.linalg.norm(right - shifted @ solution)
        if not residual <= rough * (size * np.linalg.norm(solution) + np.linalg.norm(right)):
            raise RuntimeError(f"sigma: a system with A - {sigma} I was not solved (residual {residual:.1e}); give OPinv")
        return array_on(queue, solution)

    return solve


def _bytes_of_factors(A: Any) -> int:
    """Return an upper bound of the bytes of both LU factors of a matrix of symmetric pattern.

    With pivots on the diagonal, an order that makes the band narrow fills no more than its envelope; minimum degree, as a
    rule, less.
    """
    n = A.shape[0]
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(scipy.sparse.csr_array(A), symmetric_mode=True)
    positions = np.empty(n, np.int64)
    positions[order] = np.arange(n)
    entries = A.tocoo()
    first = np.arange(n)
    np.minimum.at(first, positions[entries.row], positions[entries.col])
    entries_of_factors = 2 * int((np.arange(n) - first + 1).sum())
    # An entry of an LU factor takes the bytes of a value and of the index of its row.
    return entries_of_factors * int(A.dtype.itemsize + np.dtype(np.int32).itemsize)


def _free_host_memory() -> int | None:
    """Return the bytes of the host's free memory, or None if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def _by_scipys_lobpcg(A: Any, X: Any, B: Any = None, M: Any = None, Y: Any = None, *options: Any, **named: Any) -> Any:
    """Return eigenpairs by SciPy's `lobpcg`, on the host."""
    A, B, M = (aslinearoperator(operand) if isinstance(operand, SparseArray) else operand for operand in (A, B, M))
    results = scipy.sparse.linalg.lobpcg(A, on_host(X), B, M, on_host(Y), *options, **named)
    return (
        (results[0], array_on(X.queue or default_queue(), results[1]), *results[2:]) if isinstance(X, cl_array.Array) else results
    )


@door(_by_scipys_lobpcg)
def lobpcg(
    A: Any,
    X: Any,
    B: Any = None,
    M: Any = None,
    Y: Any = None,
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
    verbosityLevel: int = 0,
    retLambdaHistory: bool = False,
    retResidualNormsHistory: bool = False,
    restartControl: int = 20,
) -> Any:
    """Return some of the largest or smallest eigenvalues of ``A x = w B x``, and their eigenvectors, by LOBPCG on the device.

    Parameters
    ----------
    A : sparse array, operator or callable
        n x n, Hermitian; as for `cg`. A callable takes and returns NumPy matrices of n rows, as SciPy's.
    X : numpy.ndarray or pyopencl.array.Array
        n x k: first guesses of eigenvectors, as columns.
    B : sparse array, operator or callable, optional
        The other side of the problem, Hermitian positive definite; by default the identity.
    M : sparse array, operator or callable, optional
        Approximates the inverse of A; Hermitian positive definite.
    Y : array, optional
        n x l: eigenvectors are sought among vectors that are B-orthogonal to its columns.
    tol : float, optional
        Iterations end once the norms of all residuals ``A x - w B x`` are at most this; by default n times the root of the
        precision.
    maxiter : int, optional
        Iterations at most, by default 20.
    largest : bool
        Whether the largest eigenvalues are sought, or the smallest.
    verbosityLevel, restartControl : int
        As of `scipy.sparse.linalg.lobpcg`, which solves on the host if it is to print. The second one has no effect here: the
        vectors' products are taken anew for each iteration.
    retLambdaHistory, retResidualNormsHistory : bool
        Return the eigenvalues, or the norms of residuals, of each iteration, too.

    Returns
    -------
    w : numpy.ndarray
        The k eigenvalues, the most extreme first.
    v : numpy.ndarray or pyopencl.array.Array
        n x k: their vectors, B-orthonormal; as X is.
    lambdas, norms : list of numpy.ndarray
        If they were asked for.

    Raises
    ------
    ValueError, TypeError
        An argument has a wrong shape, dtype or value, or columns of X or Y depend on each other.

    Warns
    -----
    UserWarning
        The residuals are not as small as they should be. Or k is more than a fifth of n: SciPy solves, by a dense method.

    Notes
    -----
    Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient method". The
    host reads a few small matrices an iteration, and solves the eigenproblem of at most 3 k rows.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array(np.arange(1.0, 51.0))
    >>> X = np.random.default_rng(0).random((50, 2))
    >>> values, vectors = sp.linalg.lobpcg(A, X, maxiter=100, tol=1e-9)
    >>> np.round(values, 6)
    array([50., 49.])
    """
    histories = retLambdaHistory, retResidualNormsHistory
    shape = np.shape(X)
    n_constraints = 0 if Y is None else np.shape(Y)[1] if np.ndim(Y) == 2 else 0
    if verbosityLevel or len(shape) != 2 or shape[0] - n_constraints < 5 * shape[1] or (Y is not None and not n_constraints):
        return _by_scipys_lobpcg(A, X, B, M, Y, tol, maxiter, largest, verbosityLevel, *histories, restartControl)
    n, k = shape
    for name, operand in (("A", A), ("B", B), ("M", M)):
        if operand is not None and not is_function(operand) and order_of(operand) != n:
            raise ValueError(f"{name}: must be {n} x {n}, as X has {n} rows, has shape {tuple(operand.shape)}")
    if Y is not None and np.shape(Y)[0] != n:
        raise ValueError(f"Y: must have {n} rows, as X has, has shape {np.shape(Y)}")
    queue = place_of_solution(A, {"b": X, "X": X, "B": B, "M": M, "Y": Y})
    dtype = dtype_of_solution(X if is_function(A) else A, X if isinstance(X, cl_array.Array) else np.asarray(X), queue)
    chain = Chain(queue)
    panel = Panel(chain, n, dtype, 3 * max(k, n_constraints))
    A_, B_, M_ = (None if operand is None else _bind_columns(operand, queue, dtype) for operand in (A, B, M))
    assert A_ is not None
    limit = float(np.sqrt(np.finfo(dtype).eps)) * n if tol is None or tol <= 0 else float(tol)
    constraints = [] if Y is None else _split_columns(Y, queue, dtype)
    problem = Problem(panel, A_, B_, M_, constraints, limit, 20 if maxiter is None else operator.index(maxiter), largest)
    block = krylov_lobpcg.lobpcg(problem, _split_columns(X, queue, dtype))
    if not (block.norms <= limit).all():
        message = f"lobpcg: ended with residuals of norms {block.norms}, not all at most {limit}"
        warn(message, UserWarning)
    values = block.values.astype(np.zeros(0, dtype).real.dtype)
    vectors = join_columns(queue, block.vectors, n, dtype, on_device=isinstance(X, cl_array.Array) and k > 0)
    histories_asked = [
        operand for is_asked, operand in zip(histories, (block.all_values, block.all_norms), strict=True) if is_asked
    ]
    return values, vectors, *histories_asked


def _bind_columns(A: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
    """Return the function that enqueues an operator's, or NumPy function's, product with a column on the device."""
    return bind_operator((lambda x: A(copy_to_host(x, queue)[:, None])) if is_function(A) else A, queue, dtype)


def _split_columns(values: Any, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> list[cl_array.Array]:
    """Return copies of the columns of a dense matrix, as vectors of the device, cast to a dtype."""
    host = values if isinstance(values, cl_array.Array) else np.asarray(values)
    return [copy_vector(queue, "X", host[:, i], dtype) for i in range(host.shape[1])]
