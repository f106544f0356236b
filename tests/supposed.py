"""Made-up devices and thresholds, in place of those that there are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from clsparse_py._decisions.thresholds import Thresholds
from clsparse_py._device import device as devices
from clsparse_py._device.device import Device

__all__ = ["describe_as", "suppose"]


@contextmanager
def describe_as(change: Callable[[Device], Device] | None = None, **fields: Any) -> Iterator[None]:
    """Have the whole package take each device for one with other fields, or for the one that ``change`` makes of it."""
    described = devices._describe
    changed = functools.cache(lambda of: replace(described(of), **fields) if change is None else change(described(of)))
    with patch.object(devices, "_describe", changed):
        yield


def suppose(kind: type[Thresholds], **numbers: float) -> Any:
    """Return a replacement for ``of`` of a class of thresholds that changes some of its numbers."""
    of = kind.of
    return classmethod(lambda _, *key: replace(of(*key), **numbers))  # type: ignore[type-var]
