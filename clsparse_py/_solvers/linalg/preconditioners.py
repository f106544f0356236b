"""Preconditioners on the device: operators that stand for M in the solvers, ours and SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._arrays.base import on_device
from clsparse_py._arrays.hosted import queue_in
from clsparse_py._device.device import default_queue
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device
from clsparse_py._solvers.krylov import polynomials
from clsparse_py._solvers.krylov.system import Apply
from clsparse_py._solvers.linalg.operators import DeviceOperator, Diagonal, bind_operator, cast_to
from clsparse_py._solvers.linalg.options import check_positive
from clsparse_py._solvers.linalg.problem import as_divided

__all__ = ["chebyshev", "jacobi", "nonzero_diagonal", "place_square"]


class _Chebyshev(DeviceOperator):
    """A polynomial of a matrix; see `chebyshev`."""

    def __init__(self, A: Any, inverse: np.ndarray[Any, Any], degree: int, bounds: tuple[float, float]) -> None:
        super().__init__(inverse.dtype, A.shape, A.queue)
        self._A, self._inverse, self._degree, self.bounds = A, inverse, degree, bounds

    @override
    def bound(self, queue: cl.CommandQueue, dtype: np.dtype[Any]) -> Apply:
        """Return the function that enqueues the product with the Chebyshev polynomial of the matrix."""
        inverse = copy_to_device(queue, "a diagonal", cast_to(self._inverse, dtype))
        return polynomials.chebyshev(Chain(queue), bind_operator(self._A, queue, dtype), inverse, self._degree, self.bounds)


def place_square(A: Any) -> Any:
    """Return a square matrix as a sparse array of the device.

    Raises
    ------
    ValueError
        The matrix is not square.
    """
    matrix: Any = on_device(queue_in((A,)) or default_queue(), A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A: must be square, has shape {matrix.shape}")
    return matrix


def nonzero_diagonal(A: Any) -> np.ndarray[Any, Any]:
    """Return the diagonal of a sparse array, on the host, checked to have no 0.

    Raises
    ------
    ValueError
        The diagonal has a 0.
    """
    diagonal: np.ndarray[Any, Any] = A.diagonal()
    zeros = np.flatnonzero(diagonal == 0)
    if zeros.size:
        raise ValueError(f"A: must have no zeros on its diagonal, has {zeros.size}, the first in row {zeros[0]}")
    return diagonal


def _place_with_inverse(A: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a square matrix on the device, and the inverse of its diagonal on the host."""
    matrix = place_square(A)
    diagonal = nonzero_diagonal(matrix)
    return matrix, 1 / (diagonal if diagonal.dtype.kind in "fc" else diagonal.astype(np.float64))


def jacobi(A: Any) -> Any:
    """Return the Jacobi preconditioner of a matrix: the inverse of its diagonal.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy. Later changes of A go unnoticed. Or a `clsparse_py.distributed.csr_array`.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        For ``M`` of the solvers here, which apply it on the device, and of SciPy's. Over ranks what
        `clsparse_py.distributed.by_blocks` returns.

    Raises
    ------
    ValueError
        A is not square, or its diagonal has a 0.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, np.linspace(4.0, 400.0, 50), -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> x, info = sp.linalg.cg(A, np.ones(50), M=sp.linalg.jacobi(A))
    >>> info
    0
    """
    return as_divided(A).by_blocks(_jacobi_on_device)  # the diagonal is in each rank's block


def _jacobi_on_device(A: Any) -> Diagonal:
    """Return the Jacobi preconditioner of a matrix on one device."""
    matrix, inverse = _place_with_inverse(A)
    return Diagonal(matrix.queue, inverse)


def chebyshev(A: Any, degree: int = 3, bounds: tuple[float, float] | None = None) -> DeviceOperator:
    """Return a Chebyshev preconditioner of a Hermitian positive definite matrix: a polynomial in D^-1 A, for A's diagonal D.

    It needs products with A and passes over vectors, but no inner product and no triangular solve.

    Parameters
    ----------
    A : sparse array
        Square; of this package, or of SciPy. It is asked for products: later changes of its values show in them.
    degree : int
        Products with A to each product with the preconditioner, at least 1.
    bounds : tuple of float, optional
        Eigenvalues of D^-1 A between which the polynomial is close to the inverse, both positive. By default the upper one is the
        largest sum of a row's absolute values, which no eigenvalue exceeds, and the lower one a thirtieth of it.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        For ``M`` of the solvers here, which apply it on the device, and of SciPy's. Its attribute ``bounds`` has the bounds.

    Raises
    ------
    ValueError
        A is not square, its diagonal has a 0, or a number is out of range.

    Notes
    -----
    Saad, "Iterative methods for sparse linear systems", Section 12.3. If an eigenvalue is above the upper bound, the
    preconditioner may be indefinite.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
    >>> M = sp.linalg.chebyshev(A, degree=4)
    >>> x, info = sp.linalg.cg(A, np.ones(50), M=M)
    >>> info, M.bounds[1]
    (0, 2.0)
    """
    degree = check_positive("degree", degree)
    matrix, inverse = _place_with_inverse(A)
    if bounds is None:
        # By Gershgorin's theorem no eigenvalue exceeds the largest sum of absolute values of a row of D^-1 A.
        high = float(np.max(np.asarray(abs(matrix).sum(axis=1)) * np.abs(inverse), initial=1))
        bounds = high / 30, high
    low, high = map(float, bounds)
    if not 0 < low < high:
        raise ValueError(f"bounds: must be positive and ascend, are {bounds}")
    return _Chebyshev(matrix, inverse, degree, (low, high))
