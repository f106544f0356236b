"""Frozen dataclasses that import quickly, and objects whose attributes are set once.

`dataclasses` compiles six functions for each frozen class, which took most of the time of importing the package. Here only
``__init__`` is compiled; the others are the same code for all classes. `dataclasses` takes them for its own: ``fields``,
``replace`` and ``asdict`` work. A class that inherits from one of these is made by this module, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["SetOnce", "dataclass"]

#: Name of the attribute in which a frozen record keeps its hash.
_HASH = "_hash"


class SetOnce:
    """A class whose public attributes are read-only once they are set. Names that begin with an underscore may change."""

    def __setattr__(self, name: str, value: Any) -> None:
        # `__setattr__` calls as little as it can, as it sets the attributes of plans, one of which a product may make.
        if name[0] != "_" and (name in self.__dict__ or hasattr(type(self), name)):
            raise AttributeError(f"{name}: is read-only, as the {type(self).__name__} relies on it")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name[0] != "_":
            raise AttributeError(f"{name}: is read-only, as the {type(self).__name__} relies on it")
        object.__delattr__(self, name)


def _freeze(cls: type, *, eq: bool = True) -> type:
    """Turn a class into a frozen dataclass, as ``dataclass(frozen=True, eq=eq)`` of the standard library does."""
    own_names = vars(cls).keys()
    frozen: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    frozen.__init__ = _make_init(frozen)
    frozen.__setattr__, frozen.__delattr__ = _refuse_to_set, _refuse_to_delete
    if "__repr__" not in own_names:
        frozen.__repr__ = _repr
    compared = [field.name for field in fields(frozen) if field.compare]
    if eq and compared:
        key = attrgetter(*compared)

        def equals(self: Any, other: object) -> bool:
            """Return whether two records of one class have equal fields."""
            return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

        if "__eq__" not in own_names:
            frozen.__eq__ = equals
        if "__hash__" not in own_names:
            frozen.__hash__ = _make_hash(key)
        if "__getstate__" not in own_names:
            frozen.__getstate__ = _get_state
    return cls


def _make_hash(key: Callable[[Any], Any]) -> Callable[[Any], int]:
    """Return a ``__hash__`` that hashes a record once and keeps the hash: every launch looks up records."""

    def hash_once(self: Any) -> int:
        """Return the hash of a record, which the record keeps; the first call computes the hash from the fields."""
        members: dict[str, Any] = self.__dict__
        value: int | None = members.get(_HASH)
        if value is None:
            value = members[_HASH] = hash(key(self))
        return value

    return hash_once


def _get_state(self: Any) -> dict[str, Any]:
    """Return the state of a record to pickle: without the hash, as strings have other hashes in another process."""
    return {name: value for name, value in self.__dict__.items() if name != _HASH}


def _make_init(cls: Any) -> Callable[..., None]:
    """Return the ``__init__`` of a dataclass, compiled from its fields."""
    namespace: dict[str, Any] = {"MISSING": MISSING}
    positional: list[str] = []
    by_name: list[str] = []
    lines = ["__values = self.__dict__"]  # in half of the time that `object.__setattr__` takes
    for field in fields(cls):
        name = field.name
        value, parameter = name, name
        if field.default_factory is not MISSING:
            namespace[f"make_{name}"] = field.default_factory
            value = f"make_{name}()" if not field.init else f"make_{name}() if {name} is MISSING else {name}"
            parameter = f"{name}=MISSING"
        elif field.default is not MISSING:
            namespace[f"default_{name}"] = field.default
            parameter = f"{name}=default_{name}"
        if field.init:
            (by_name if field.kw_only else positional).append(parameter)
        if field.init or field.default_factory is not MISSING:
            lines.append(f"__values[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n  " + "\n  ".join(lines), namespace)
    init: Callable[..., None] = namespace["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:  # noqa: ARG001 - as Python calls it
    """Raise the error of a frozen dataclass whose field is assigned."""
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:  # noqa: ARG001 - as Python calls it
    """Raise the error of a frozen dataclass whose field is deleted."""
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:
    """Return the ``repr`` of a record: its class with the values of its fields."""
    shown: tuple[Field[Any], ...] = fields(self)
    return (
        f"{type(self).__qualname__}({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in shown if field.repr)})"
    )


if TYPE_CHECKING:
    # Type checkers know the decorator of dataclasses by the name `dataclass` of the standard library alone.
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True) -> Callable[[type], type]:
        """Return the decorator that makes a class a frozen dataclass, by `_freeze`."""
        assert frozen
        return lambda cls: _freeze(cls, eq=eq)
