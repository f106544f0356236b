"""Type predicates (`issparse` and others), and classes of host formats."""

from __future__ import annotations

from typing import Any

import scipy.sparse

from clsparse_py._arrays.base import SparseArray

__all__ = ["dia_array", "dok_array", "issparse", "lil_array", "sparray"]


class _AnySparseArray(type):
    """The metaclass of `sparray`: sparse arrays of this package and of SciPy are instances of `sparray`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (SparseArray, scipy.sparse.sparray))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, (SparseArray, scipy.sparse.sparray))


class sparray(metaclass=_AnySparseArray):  # noqa: N801 - SciPy's name for it
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


class _HostFormat(type):
    """The metaclass of formats that live on the host: their constructors return arrays of SciPy's classes."""

    # `lil_array` and others are no subclasses of SciPy's classes: SciPy would ask them whether an object is a sparse array.
    @property
    def _scipy_class(cls) -> Any:
        """SciPy's class of the same format and name, such as `scipy.sparse.lil_array`."""
        return getattr(scipy.sparse, cls.__name__)

    def __call__(cls, arg1: Any, *arguments: Any, **named: Any) -> Any:
        values = arg1.asformat(cls.__name__[:3]) if isinstance(arg1, SparseArray) else arg1
        return cls._scipy_class(values, *arguments, **named)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._scipy_class, name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._scipy_class)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._scipy_class)


class dia_array(metaclass=_HostFormat):  # noqa: N801 - SciPy's name for it
    """SciPy's `scipy.sparse.dia_array`, on the host, whose constructor takes this package's arrays, too.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.dia_array(sp.csr_array([[1, 0], [0, 2]])).offsets
    array([0], dtype=int32)
    """


class dok_array(metaclass=_HostFormat):  # noqa: N801 - SciPy's name for it
    """SciPy's `scipy.sparse.dok_array`, on the host, whose constructor takes this package's arrays, too.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> int(sp.dok_array(sp.csr_array([[1, 0], [0, 2]]))[1, 1])
    2
    """


class lil_array(metaclass=_HostFormat):  # noqa: N801 - SciPy's name for it
    """SciPy's `scipy.sparse.lil_array`, on the host, whose constructor takes this package's arrays, too.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.lil_array(sp.csr_array([[1, 0], [0, 2]])).rows.tolist()
    [[0], [1]]
    """
