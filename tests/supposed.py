"""Thresholds in place of a device's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clsparse_py._decisions.thresholds import Thresholds

__all__ = ["supposed"]


def supposed(kind: type[Thresholds], **numbers: float) -> Any:
    """Return what to set as ``of`` of a kind of thresholds, so that some numbers are others."""
    of = kind.of
    return classmethod(lambda _, *key: replace(of(*key), **numbers))  # type: ignore[type-var]
