"""Doors of arrays to SciPy: an operation whose plain kernels are refused, too, is done by SciPy as a whole (see `plain`)."""

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

#: Members without a door: members of every object, and attributes that launch nothing. Products have their door inside.
_WITHOUT = {
    *vars(object), "__bool__", "__class_getitem__", "__len__", "__matmul__", "__rmatmul__", "data", "dot", "dtype", "format",
    "indices", "indptr", "maxprint", "ndim", "nnz", "shape", "size",
} - {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"}  # fmt: skip
#: Members without a door that are properties here, and attributes of SciPy's arrays, not of its classes.
_PARTS = ("coords", "data", "indices", "indptr")
#: SciPy's operators in place of the products that arrays define.
_PRODUCTS = {"_times": "__matmul__", "_dense_times": "__rmatmul__", "_times_sparse": "__matmul__"}
#: Methods that change their array in place.
_IN_PLACE = (
    "__imul__", "__itruediv__", "__setitem__", "eliminate_zeros", "prune", "resize", "setdiag", "sort_indices", "sum_duplicates",
)  # fmt: skip


def on_scipy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of SciPy that takes arrays of the device, and a ``queue``, with copies on the host, and returns some."""

    def call(*arguments: Any, queue: Any = None, **named: Any) -> Any:
        queue = queue or queue_in((*arguments, *named.values())) or default_queue()
        return by_scipy(function, *arguments, queue=queue, **named)

    return call


def doors(cls: _Array) -> _Array:
    """Give doors to what a class of arrays shares with its namesake in SciPy, and to its products."""
    for name in (*dir(getattr(scipy.sparse, cls.__name__)), *_PARTS):
        member = inspect.getattr_static(cls, name, None)
        if isinstance(member, property) and member.fset is not None:
            member = property(member.fget, door(_edit_on_host(cls, name, setattr))(member.fset), member.fdel, member.__doc__)
            _put(cls, name, member)
        if name in _WITHOUT or f"A.{name}" in ON_HOST or (name.startswith("_") and not name.endswith("__")):
            continue
        if isinstance(member, property) and member.fget is not None:
            read = door(on_scipy(operator.attrgetter(name)))(member.fget)
            _put(cls, name, property(read, member.fset, member.fdel, member.__doc__))
        elif inspect.isfunction(member):
            setattr(cls, name, door(_edit_on_host(cls, name) if name in _IN_PLACE else on_scipy(_method(name)))(member))
    for name, scipy_name in _PRODUCTS.items():
        setattr(cls, name, door(on_scipy(_method(scipy_name)))(getattr(cls, name)))
    setattr(cls, "__init__", door(_replace_constructor(cls))(cls.__init__))  # noqa: B010 - mypy takes no assignment to it
    return cls


def _put(cls: type[Any], name: str, of_class: property) -> None:
    """Make a property one of a class, as if it stood in its body: errors name it."""
    of_class.__set_name__(cls, name)  # type: ignore[attr-defined]
    setattr(cls, name, of_class)


def _method(name: str) -> Callable[..., Any]:
    """Return a function that calls an array's method."""

    def call(A: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(A, name)(*arguments, **named)

    return call


def _edit_on_host(cls: type[Any], name: str, change: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the host fallback of a method that works in place: SciPy edits a copy, and the array takes over its arrays."""
    make: Callable[..., None] = cls.__init__

    def call(A: Any, *arguments: Any, **named: Any) -> Any:
        host = A.get()
        method = getattr(host, name) if change is None else functools.partial(change, host, name)
        result = method(*map(on_host, arguments), **{key: on_host(argument) for key, argument in named.items()})
        make(A, host, queue=A.queue, check=False, maxprint=A.maxprint)
        return A if result is host else None

    return call


def _replace_constructor(cls: type[Any]) -> Callable[..., Any]:
    """Return a function that has SciPy check and make an array, and puts it on the device."""
    make: Callable[..., None] = cls.__init__

    def call(A: Any, *arguments: Any, queue: Any = None, check: bool = True, **named: Any) -> None:
        queue, own_options = (
            queue or queue_in(arguments),
            {key: named.pop(key) for key in ("maxprint", "zero_copy") if key in named},
        )
        host = getattr(scipy.sparse, cls.__name__)(*map(on_host, arguments), **named)
        if check and hasattr(host, "check_format"):  # coordinates are checked when they are made
            host.check_format()
        make(A, host, queue=queue, check=False, **own_options)

    return call
