"""Attributes that can be set only once."""

from __future__ import annotations

from typing import Any

__all__ = ["SetOnce"]


class SetOnce:
    """A class whose public attributes are read-only once they are set. Names that begin with an underscore may change."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Plans are made for each product: nothing is called here that need not be.
        if name[0] != "_" and (name in self.__dict__ or hasattr(type(self), name)):
            raise AttributeError(f"{name}: is read-only, as the {type(self).__name__} relies on it")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name[0] != "_":
            raise AttributeError(f"{name}: is read-only, as the {type(self).__name__} relies on it")
        object.__delattr__(self, name)
