"""A kind of product is a device and the types of operands: records and choices that depend on these alone are worked out once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from clsparse_py._spgemm.arguments import memory_limit_of
from clsparse_py._spgemm.kernels import KernelTypes
from clsparse_py._spgemm.thresholds import Thresholds, supposed, thresholds_of
from clsparse_py.device import Device
from clsparse_py.tuning import profiles

__all__ = ["Kind", "kind_of"]

#: Answers that are kept for a kind, at most: some are asked for by sizes, which differ from product to product.
_MAX_KEPT = 1024
_NOTHING: Any = object()

T = TypeVar("T")


class Kind:
    """A device and the types of operands, with all that depends on these alone: dtypes, records and bins.

    Parameters
    ----------
    device : Device
    types : KernelTypes
        Of the numeric phase.

    Attributes
    ----------
    device : Device
    types : KernelTypes
    index, c_index, result : numpy.dtype
        Of the operands' indices, of C's, and of C's values.
    entry_bytes : int
        Of an entry of B.
    memory : int
        Bytes that the workspace may have by default.
    """

    def __init__(self, device: Device, types: KernelTypes) -> None:
        assert types.arithmetic is not None  # of a numeric phase
        self.device, self.types = device, types
        self.index, self.c_index = np.dtype(types.index), np.dtype(types.c_index)
        self.result = types.arithmetic.result
        self.entry_bytes = self.index.itemsize + np.dtype(types.arithmetic.x).itemsize
        self.memory = memory_limit_of(device, None)
        self._kept: dict[Hashable, Any] = {}

    @property
    def thresholds(self) -> Thresholds:
        """The numbers that the device's profile decides by."""
        found: Thresholds | None = supposed() or profiles.kept.get(self)
        if found is None:
            found = profiles.kept[self] = thresholds_of(self.device, self.types)
        return found

    def once(self, find: Callable[..., T], *arguments: Hashable) -> T:
        """Return the result of a function for this kind and some arguments; it is called once and its result kept."""
        return self.kept((find, arguments), lambda: find(self, *arguments))

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` makes when it is first asked for by a key."""
        kept = self._kept
        found: T = kept.get(key, _NOTHING)
        if found is _NOTHING:
            if len(kept) >= _MAX_KEPT:
                kept.clear()
            found = kept[key] = make()
        return found


# Kept, as a kind keeps results.
kind_of = functools.lru_cache(maxsize=256)(Kind)
