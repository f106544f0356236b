"""A kind of product is a device and the types of operands: dtypes and thresholds that depend on these alone."""

from __future__ import annotations

import functools

import numpy as np

from clsparse_py._device.device import Device
from clsparse_py._operations.spgemm.arguments import memory_limit_of
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.thresholds import Thresholds, thresholds_of

__all__ = ["Kind", "kind_of"]


class Kind:
    """A device and the types of operands, with dtypes and thresholds that depend on these alone.

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
        Dtypes of the operands' indices, of C's indices, and of C's values.
    entry_bytes : int
        Bytes of an entry of B.
    memory : int
        Default limit of the workspace, in bytes.
    """

    def __init__(self, device: Device, types: KernelTypes) -> None:
        assert types.arithmetic is not None  # of a numeric phase
        self.device, self.types = device, types
        self.index, self.c_index = np.dtype(types.index), np.dtype(types.c_index)
        self.result = types.arithmetic.result
        self.entry_bytes = self.index.itemsize + np.dtype(types.arithmetic.x).itemsize
        self.memory = memory_limit_of(device, None)

    @property
    def thresholds(self) -> Thresholds:
        """SpGEMM's thresholds: those that a tuner tries or, without one, the device's profile's for the dtype of C's values."""
        return thresholds_of(self.device, self.types)


# Kinds of products are cached: a device and types have one `Kind`, as other caches take kinds as keys.
kind_of = functools.lru_cache(maxsize=256)(Kind)
