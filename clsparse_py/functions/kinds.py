"""Questions about what an object is."""

from __future__ import annotations

from typing import Any

import scipy.sparse

from clsparse_py.base import SparseArray

__all__ = ["issparse"]


def issparse(x: Any) -> bool:
    """Return whether an object is a sparse array, of this package or of SciPy.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.issparse(sp.csr_array([[1, 0]])), sp.issparse([[1, 0]])
    (True, False)
    """
    return isinstance(x, SparseArray) or bool(scipy.sparse.issparse(x))
