"""Functions of sparse arrays: operators, norms, powers, functions times vectors, and eigenvalues near a number."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import scipy.sparse.linalg

from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._arrays.functions.diagonals import eye_array
from clsparse_py._arrays.functions.kinds import issparse
from clsparse_py._arrays.hosted import by_scipy
from clsparse_py._build.plain import door
from clsparse_py._ground.errors import runs_on_host
from clsparse_py._matrix.annotations import NumPyScalar

__all__ = [
    "aslinearoperator",
    "eigs",
    "expm_multiply",
    "funm_multiply_krylov",
    "matrix_power",
    "norm",
]

#: Pairs of axes that stand for a whole matrix: a 1-norm adds up along the pair's first axis, an infinity norm along its second.
_BOTH_AXES = tuple((row, column) for row in (-2, -1, 0, 1) for column in (-2, -1, 0, 1) if row % 2 != column % 2)


def aslinearoperator(A: Any) -> scipy.sparse.linalg.LinearOperator:
    """Return a `scipy.sparse.linalg.LinearOperator` of an array, whose products run on its device.

    Parameters
    ----------
    A : sparse array
        Of this package; anything else as `scipy.sparse.linalg.aslinearoperator` takes it.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> sp.linalg.aslinearoperator(sp.csr_array([[2.0, 1.0]])) @ np.ones(2)
    array([3.])
    """
    if not isinstance(A, SparseArray):
        return scipy.sparse.linalg.aslinearoperator(A)
    return scipy.sparse.linalg.LinearOperator(
        A.shape, matvec=A.matvec, rmatvec=A.rmatvec, matmat=A.matmat, rmatmat=A.rmatmat, dtype=A.dtype
    )


@runs_on_host("linalg.eigs")
def eigs(A: Any, k: int = 6, M: Any = None, sigma: Any = None, *arguments: Any, **options: Any) -> Any:
    """Return some eigenvalues of a square array, and their eigenvectors, by ARPACK. Runs on the host.

    Parameters
    ----------
    A : sparse array
        Products with it run on its device.
    k : int
        How many.
    M, sigma, *arguments, **options
        As of `scipy.sparse.linalg.eigs`. With ``sigma``, a number near which eigenvalues are wanted, A and M are copied to the
        host and factorised there.

    Returns
    -------
    tuple of numpy.ndarray
        The eigenvalues, and the eigenvectors as columns; the eigenvalues alone with ``return_eigenvectors=False``.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array(np.arange(1.0, 51.0))
    >>> values, vectors = sp.linalg.eigs(A, k=1, v0=np.ones(50))
    >>> np.round(values.real, 6)
    array([50.])
    """
    if sigma is None:  # with a shift, matrices are copied to the host and factorised
        A, M = (aslinearoperator(matrix) if isinstance(matrix, SparseArray) else matrix for matrix in (A, M))
    return by_scipy(scipy.sparse.linalg.eigs, A, k, M, sigma, *arguments, **options)


@runs_on_host("linalg.expm_multiply")
def expm_multiply(
    A: Any, B: Any, start: Any = None, stop: Any = None, num: Any = None, endpoint: Any = None, **options: Any
) -> Any:
    """Return ``expm(A) @ B``, or ``expm(t * A) @ B`` for several t, without the exponential itself. Runs on the host.

    Parameters
    ----------
    A : sparse array
        Square; products with it run on its device.
    B : numpy.ndarray, pyopencl.array.Array or sparse array
        A vector of n entries, or n x k; a sparse one is multiplied as a dense one.
    start, stop, num, endpoint, **options
        As of `scipy.sparse.linalg.expm_multiply`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        As B; NumPy's for a sparse one.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[0.0, 1.0], [0.0, 0.0]])
    >>> sp.linalg.expm_multiply(A, np.ones(2))
    array([2., 1.])
    """
    if issparse(B):
        B = B.toarray()
    if isinstance(A, SparseArray):
        options.setdefault("traceA", A._as_csr().trace())
        A = aslinearoperator(A)
    return by_scipy(scipy.sparse.linalg.expm_multiply, A, B, start, stop, num, endpoint, **options)


def matrix_power(A: Any, power: int) -> Any:
    """Return a square array raised to an integer power, by products on the array's device.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy.
    power : int
        Not negative. 0 gives the identity, as `eye_array` does.

    Returns
    -------
    sparse array
        Of A's format.

    Raises
    ------
    ValueError
        ``power`` is negative, or no integer.
    TypeError
        A is not square, as in SciPy.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.linalg.matrix_power(sp.csr_array([[1, 1], [0, 1]]), 10).toarray()
    array([[ 1, 10],
           [ 0,  1]])
    """
    if not isinstance(A, SparseArray):
        return scipy.sparse.linalg.matrix_power(A, power)
    rows, columns = A.shape
    if rows != columns:
        raise TypeError(f"A: sparse matrix is not square, has shape {A.shape}")
    if int(power) != power:
        raise ValueError(f"power: the exponent must be an integer, is {power!r}")
    power = int(power)
    if power < 0:
        raise ValueError(f"power: must not be negative, is {power}")
    if power == 0:
        return eye_array(rows, dtype=A.dtype, queue=A.queue)
    result: Any = None
    square = A
    while power:
        if power & 1:
            result = square if result is None else result @ square
        power >>= 1
        if power:
            square = square @ square
    return result.copy() if result is A else result


@runs_on_host("linalg.funm_multiply_krylov")
def funm_multiply_krylov(f: Any, A: Any, b: Any, **options: Any) -> Any:
    """Return ``f(A) @ b``, a function of a matrix times a vector, by a Krylov method, without f(A) itself. Runs on the host.

    Parameters
    ----------
    f : callable
        A function of dense matrices.
    A : sparse array
        Square; products with it run on its device.
    b : numpy.ndarray or pyopencl.array.Array
        A vector of n entries.
    **options
        As of `scipy.sparse.linalg.funm_multiply_krylov`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        As b.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.linalg
    >>> import clsparse_py as sp
    >>> numbers = np.linspace(0.0, 1.0, 50)
    >>> y = sp.linalg.funm_multiply_krylov(scipy.linalg.expm, sp.diags_array(numbers), np.ones(50))
    >>> bool(np.allclose(y, np.exp(numbers)))
    True
    """
    return by_scipy(scipy.sparse.linalg.funm_multiply_krylov, f, aslinearoperator(A), b, **options)


@overload
def norm(x: Any, ord: Any = None, axis: tuple[int, int] | None = None) -> NumPyScalar: ...


@overload
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any: ...


@door(on_scipy(scipy.sparse.linalg.norm))
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return a norm of a sparse array, or of each of its rows or columns.

    Parameters
    ----------
    x : sparse array
        Of this package, or of SciPy.
    ord : {None, "fro", 2, -2, 1, -1, numpy.inf, -numpy.inf}, optional
        Which one: of the whole array by default the Frobenius norm, of rows and columns the 2-norm.
    axis : {None, 0, 1} or tuple of int, optional
        0: of each column; 1: of each row; (1, 0): of the transposed array.

    Returns
    -------
    scalar or numpy.ndarray

    Raises
    ------
    TypeError
        x is no sparse array.
    ValueError
        There is no such norm, or no such axis.

    Notes
    -----
    Those of the whole array are computed on the device: the host reads one number for each row or column, or one in all. The
    2-norm, and those of rows and columns, are computed by SciPy on the host.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[3.0, 0.0], [0.0, -4.0]])
    >>> float(sp.linalg.norm(A)), float(sp.linalg.norm(A, 1))
    (5.0, 4.0)
    """
    if not isinstance(x, SparseArray):
        return scipy.sparse.linalg.norm(x, ord, axis)
    axes = (0, 1) if axis is None else axis
    of_any: Any = x  # of each format
    if x.ndim == 2 and all(x.shape) and isinstance(axes, tuple) and axes in _BOTH_AXES:
        if ord in (None, "fro", "f"):
            return _frobenius(x)
        if ord in (1, -1, np.inf, -np.inf) and ord is not True:
            sums = abs(of_any).sum(axis=axes[0 if abs(ord) == 1 else 1])
            return sums.max() if ord > 0 else sums.min()
    return scipy.sparse.linalg.norm(x.get(), ord, axis)


def _frobenius(x: SparseArray) -> Any:
    """Return the Frobenius norm of a sparse array, whose duplicates are added up first."""
    rows = x._as_csr()
    canonical = rows if rows.has_canonical_format else rows.copy()
    canonical.sum_duplicates()
    sizes = abs(canonical if canonical.dtype.kind in "fc" else canonical.astype(np.float64))
    return np.sqrt(sizes.multiply(sizes).sum())
