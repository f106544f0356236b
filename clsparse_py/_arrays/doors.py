"""Doors of arrays, their fallbacks to SciPy: SciPy does an operation whose plain kernels a driver refuses, too (see `plain`)."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import scipy.sparse

from clsparse_py._arrays.hosted import by_scipy, on_host, queue_in
from clsparse_py._build.plain import door
from clsparse_py._device.device import default_queue
from clsparse_py._ground.errors import ON_HOST

__all__ = ["doors", "on_scipy"]

_Array = TypeVar("_Array", bound=type[Any])

#: Names of array members without a door (fallback to SciPy): every object's but comparisons, those without kernels, `@`, `dot`.
_WITHOUT = {
    *vars(object), "__bool__", "__class_getitem__", "__len__", "__matmul__", "__rmatmul__", "data", "dot", "dtype", "format",
    "indices", "indptr", "maxprint", "ndim", "nnz", "shape", "size",
} - {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"}  # fmt: skip
#: Names of the properties for the parts of an array (values, indices), which in SciPy are attributes of objects, not of classes.
_PARTS = ("coords", "data", "indices", "indptr")
#: Names of SciPy's operators that stand in for this package's methods for products, by the method's name.
_PRODUCTS = {"_times": "__matmul__", "_dense_times": "__rmatmul__", "_times_sparse": "__matmul__"}
#: Names of the methods that change a sparse array in place.
_IN_PLACE = (
    "__imul__", "__itruediv__", "__setitem__", "eliminate_zeros", "prune", "resize", "setdiag", "sort_indices", "sum_duplicates",
)  # fmt: skip


def on_scipy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a SciPy function as a function of device arrays: operands are copied to the host, results as `by_scipy` says."""

    def call(*arguments: Any, queue: Any = None, **named: Any) -> Any:
        """Return the SciPy function's result for host copies of the arguments, copied back as `by_scipy` says."""
        queue = queue or queue_in((*arguments, *named.values())) or default_queue()
        return by_scipy(function, *arguments, queue=queue, **named)

    return call


def doors(cls: _Array) -> _Array:
    """Give a class doors (fallbacks to SciPy) for its constructor, products, setters and most members that SciPy's class has.

    Private members, those of `_WITHOUT` and those that always run on the host (`ON_HOST`) get none.
    """
    for name in (*dir(getattr(scipy.sparse, cls.__name__)), *_PARTS):
        member = inspect.getattr_static(cls, name, None)
        if isinstance(member, property) and member.fset is not None:
            member = property(member.fget, door(_edit_on_host(cls, name, setattr))(member.fset), member.fdel, member.__doc__)
            _set_property(cls, name, member)
        if name in _WITHOUT or f"A.{name}" in ON_HOST or (name.startswith("_") and not name.endswith("__")):
            continue
        if isinstance(member, property) and member.fget is not None:
            read = door(on_scipy(operator.attrgetter(name)))(member.fget)
            _set_property(cls, name, property(read, member.fset, member.fdel, member.__doc__))
        elif inspect.isfunction(member):
            setattr(cls, name, door(_edit_on_host(cls, name) if name in _IN_PLACE else on_scipy(_method(name)))(member))
    for name, scipy_name in _PRODUCTS.items():
        setattr(cls, name, door(on_scipy(_method(scipy_name)))(getattr(cls, name)))
    setattr(cls, "__init__", door(_replace_constructor(cls))(cls.__init__))  # noqa: B010 - mypy takes no assignment to it
    return cls


def _set_property(cls: type[Any], name: str, of_class: property) -> None:
    """Set a property of a class as if it stood in the class body, so that error messages have the name of the property."""
    of_class.__set_name__(cls, name)  # type: ignore[attr-defined]
    setattr(cls, name, of_class)


def _method(name: str) -> Callable[..., Any]:
    """Return a function that calls the method ``name`` of its first argument, an array of SciPy."""

    def call(A: Any, *arguments: Any, **named: Any) -> Any:
        """Return the result of the method ``name`` of A, an array of SciPy."""
        return getattr(A, name)(*arguments, **named)

    return call


def _edit_on_host(cls: type[Any], name: str, change: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the host fallback of a method or setter that changes an array in place: SciPy changes a copy, which replaces it."""
    make: Callable[..., None] = cls.__init__

    def call(A: Any, *arguments: Any, **named: Any) -> Any:
        """Change the array A in place: SciPy's method ``name``, or ``change``, changes a host copy, which A takes over."""
        host = A.get()
        method = getattr(host, name) if change is None else functools.partial(change, host, name)
        result = method(*map(on_host, arguments), **{key: on_host(argument) for key, argument in named.items()})
        make(A, host, queue=A.queue, check=False, maxprint=A.maxprint)
        return A if result is host else None

    return call


def _replace_constructor(cls: type[Any]) -> Callable[..., Any]:
    """Return the host fallback of a constructor: SciPy checks and makes the array, which is then copied to the device."""
    make: Callable[..., None] = cls.__init__

    def call(A: Any, *arguments: Any, queue: Any = None, check: bool = True, **named: Any) -> None:
        """Construct the array A by SciPy's constructor, on the host."""
        queue = queue or queue_in(arguments)
        own_options = {key: named.pop(key) for key in ("maxprint", "zero_copy") if key in named}
        host = getattr(scipy.sparse, cls.__name__)(*map(on_host, arguments), **named)
        if check and hasattr(host, "check_format"):  # SciPy's coo_array, which has no such method, checks its arguments
            host.check_format()
        make(A, host, queue=queue, check=False, **own_options)

    return call
