"""Attributes that are set once, so that what the code relies on cannot be changed behind its back."""

from __future__ import annotations

from typing import Any

__all__ = ["SetOnce"]


class SetOnce:
    """A class whose public attributes are read-only once they are set. Names that begin with an underscore may change."""

    def __setattr__(self, name: str, value: Any) -> None:
        self._require_new(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._require_new(name)
        super().__delattr__(name)

    def _require_new(self, name: str) -> None:
        if not name.startswith("_") and name in self.__dict__:
            raise AttributeError(f"{name}: is read-only, as the {type(self).__name__} relies on it")
