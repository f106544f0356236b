"""Methods that arrays of other formats delegate to `csr_array`."""

from __future__ import annotations

import abc
import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, overload

import scipy.sparse

from clsparse_py._arrays.base import SparseArray, combine_with_scipy
from clsparse_py._arrays.csr import csr_array
from clsparse_py._operations.elementwise.operators import UFUNCS

if TYPE_CHECKING:
    from pyopencl import array as cl_array
    from typing_extensions import Self

    from clsparse_py._arrays.coo import coo_array
    from clsparse_py._matrix.annotations import Extreme, HasPairType, Number, OfAxis
    from clsparse_py._matrix.matrix import Sparse

_Class = TypeVar("_Class")

__all__ = ["ALONG", "BY_SCALAR", "ENTRYWISE", "NO_LISTS", "OF_SUMS", "OF_VALUES", "Delegating", "delegate", "result_of"]

#: Names of elementwise operations (operators, methods, properties) that arrays of other formats delegate to `csr_array`.
ENTRYWISE = (
    "__abs__", "__neg__", "__pos__", "__round__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__truediv__", "__rtruediv__", "__pow__", "__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__", "multiply", "maximum",
    "minimum", "power", "conj", "conjugate", "real", "imag", *UFUNCS,
)  # fmt: skip
#: Names of the reflected elementwise operators, which Python calls on the right operand.
REFLECTED = ("__radd__", "__rsub__", "__rmul__", "__rtruediv__")
#: Names of operations that change each stored value by itself, without summing duplicates first, such as ``-A``.
OF_VALUES = frozenset(("__neg__", "conj", "conjugate", "real", "imag"))
#: Names of operations that change each stored value by itself, after duplicates were summed, such as ``abs(A)``.
OF_SUMS = frozenset(("__abs__", "__round__", "__pow__", "power", *UFUNCS))
#: Names of operations that change each stored value by itself if the other operand is a scalar, such as ``A * 2``.
BY_SCALAR = frozenset(("multiply", "__mul__", "__rmul__", "__truediv__", "__add__", "__radd__", "__sub__", "__rsub__"))
#: Names of the operators that do not take a Python list as operand, as in SciPy.
NO_LISTS = ("__add__", "__radd__", "__sub__", "__rsub__")
#: Names of the reductions that arrays of other formats delegate to `csr_array`; a reduction's first argument is an axis.
ALONG = ("sum", "mean", "max", "min", "nanmax", "nanmin", "argmax", "argmin", "getnnz", "count_nonzero")


class Delegating(SparseArray):
    """Base of the array classes of other formats, which leave elementwise operations and reductions to a `csr_array`."""

    @abc.abstractmethod
    def _entrywise(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Return the result of the elementwise operation ``name``, one of `ENTRYWISE`, on the array and the arguments."""

    @abc.abstractmethod
    def _along(self, name: str, axis: Any = None, *arguments: Any, **named: Any) -> Any:
        """Return the result of the reduction ``name``, one of `ALONG`, along an axis of the array."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __abs__(self) -> Any: ...
        def __neg__(self) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...

        sum: OfAxis
        mean: OfAxis
        max: Extreme[coo_array]
        min: Extreme[coo_array]

        @overload
        def __add__(self: HasPairType[_Class], other: Sparse) -> _Class: ...
        @overload
        def __add__(self, other: cl_array.Array) -> cl_array.Array: ...
        @overload
        def __add__(self, other: Any) -> Any: ...
        def __add__(self, other: Any) -> Any: ...

        __radd__ = __sub__ = __rsub__ = __add__

        @overload
        def __mul__(self: HasPairType[_Class], other: Sparse) -> _Class: ...
        @overload
        def __mul__(self, other: Number) -> Self: ...
        @overload
        def __mul__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...

        multiply = __rmul__ = __mul__

        @overload
        def __ne__(self, other: Sparse | Number) -> csr_array | Self: ...
        @overload
        def __ne__(self, other: Any) -> Any: ...
        def __ne__(self, other: Any) -> Any: ...

        __eq__ = __ne__


def result_of(A: Any, name: str, *arguments: Any, **named: Any) -> Any:
    """Return the result of the method ``name`` of a sparse array A or, if ``name`` is a property, the value of the property."""
    attribute = getattr(A, name)
    return attribute(*arguments, **named) if callable(attribute) else attribute


def delegate(cls: type[Any]) -> None:
    """Give an array class a delegate for each elementwise operation and reduction of `csr_array` that the class lacks."""
    for names, method in ((ENTRYWISE, "_entrywise"), (ALONG, "_along")):
        for name in names:
            of_csr = inspect.getattr_static(csr_array, name, None)
            if of_csr is not None and name not in vars(cls):
                setattr(cls, name, _make_delegate(name, method, of_csr))


def _make_delegate(name: str, passing: str, of_csr: Any) -> Any:
    """Return the delegate of an operation: a method or property that calls the array's method ``passing`` with the name."""
    if isinstance(of_csr, property):
        return property(lambda self: getattr(self, passing)(name), doc=of_csr.__doc__)

    @functools.wraps(of_csr)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        """Return the operation's result: by the method ``passing`` or, for a left operand of SciPy, by `combine_with_scipy`."""
        if name in REFLECTED and scipy.sparse.issparse(arguments[0]):
            return combine_with_scipy(name, self, arguments[0])
        return getattr(self, passing)(name, *arguments, **named)

    return method
