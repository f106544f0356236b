"""Questions about what an object is."""

from __future__ import annotations

from typing import Any

import scipy.sparse

from clsparse_py.base import SparseArray

__all__ = ["issparse", "sparray"]


class _Kind(type):
    """The class of `sparray`, of which this package's arrays are instances as well as SciPy's."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (SparseArray, scipy.sparse.sparray))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, (SparseArray, scipy.sparse.sparray))


class sparray(metaclass=_Kind):  # noqa: N801 - SciPy's name for it
    """Any sparse array, of this package or of SciPy, for ``isinstance``.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> isinstance(sp.csr_array([[1, 2]]), sp.sparray)
    True
    """


def issparse(x: Any) -> bool:
    """Return whether an object is a sparse array, of this package or of SciPy.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.issparse(sp.csr_array([[1, 0]])), sp.issparse([[1, 0]])
    (True, False)
    """
    return isinstance(x, SparseArray) or bool(scipy.sparse.issparse(x))
