"""Norms of sparse arrays, by sums on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

from clsparse_py.base import SparseArray

__all__ = ["norm"]


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return a norm of a sparse array, or of each row or column.

    Parameters
    ----------
    x : sparse array
        Of this package, or of SciPy.
    ord : {None, "fro", 2, -2, 1, -1, numpy.inf, -numpy.inf}, optional
        Which one: of the whole array by default the Frobenius norm, of rows and columns the 2-norm.
    axis : {None, 0, 1} or tuple of int, optional
        0: of each column; 1: of each row.

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
    of_all = x.ndim == 2 and (axis is None or (isinstance(axis, tuple) and sorted(axis) == [0, 1]))
    of_any: Any = x  # of each format
    if of_all and all(x.shape):
        if ord in (None, "fro", "f"):
            return _frobenius(x)
        if ord in (1, -1, np.inf, -np.inf) and ord is not True:
            sums = abs(of_any).sum(axis=0 if abs(ord) == 1 else 1)
            return sums.max() if ord > 0 else sums.min()
    return scipy.sparse.linalg.norm(x.get(), ord, axis)


def _frobenius(x: SparseArray) -> Any:
    """Return the root of the sum of all squares, duplicates added up before."""
    rows = x._as_csr()
    values = rows if rows.dtype.kind in "fc" else rows.astype(np.float64)
    canonical = values if values.has_canonical_format else values.copy()
    canonical.sum_duplicates()
    sizes = abs(canonical)
    return np.sqrt(sizes.multiply(sizes).sum())
