"""Norms of sparse arrays, by sums on the device."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import scipy.sparse.linalg

from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._build.plain import door
from clsparse_py._matrix.annotations import Found

__all__ = ["norm"]

#: Pairs of axes that stand for a whole matrix: a 1-norm adds up along the first, the other one along the last.
_BOTH_AXES = tuple((row, column) for row in (-2, -1, 0, 1) for column in (-2, -1, 0, 1) if row % 2 != column % 2)


@overload
def norm(x: Any, ord: Any = None, axis: tuple[int, int] | None = None) -> Found: ...


@overload
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any: ...


@door(on_scipy(scipy.sparse.linalg.norm))
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return a norm of a sparse array, or of each row or column.

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
    """Return the root of the sum of all squares, duplicates added up before."""
    rows = x._as_csr()
    canonical = rows if rows.has_canonical_format else rows.copy()
    canonical.sum_duplicates()
    sizes = abs(canonical if canonical.dtype.kind in "fc" else canonical.astype(np.float64))
    return np.sqrt(sizes.multiply(sizes).sum())
