"""The parameter records of the kernels of triangular systems, and their arithmetic of real and complex numbers."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.numbers import numbers

__all__ = ["Factor", "Levels", "Solve", "work_group_of"]

#: Work-items in a work-group, where that is no CPU device.
_WORK_GROUP = 256


def work_group_of(device: Device) -> int:
    """Return how many work-items a work-group has: one on CPU devices, where it is a core's loop."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1


@kernel
@dataclass(frozen=True)
class Levels(OfStructure):
    """Parameters of ``templates/triangular/levels.mako``.

    Attributes
    ----------
    upper : bool
    """

    template = "triangular/levels"

    upper: bool

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        group = 1 if device.lanes_are_loops else min(64, device.max_work_group)
        for variant, upper in (("", False), ("upper", True)):
            yield variant, cls(group, arithmetic.index, upper)


@dataclass(frozen=True)
class _OfNumbers(OfStructure):
    """Base of the records of kernels that compute with the values.

    Attributes
    ----------
    dtype : str
        NumPy's name of the dtype of values and vectors: float32, float64, complex64 or complex128.
    """

    dtype: str

    @property
    @override
    def prelude(self) -> str:
        return "\n".join([super().prelude, *numbers(np.dtype(self.dtype))])


@kernel
@dataclass(frozen=True)
class Solve(_OfNumbers):
    """Parameters of ``templates/triangular/solve.mako``.

    Attributes
    ----------
    upper, unit : bool
        Whether the matrix is upper triangular, and whether its diagonal is 1, whatever is stored.
    """

    template = "triangular/solve"

    upper: bool
    unit: bool

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        group = 1 if device.lanes_are_loops else min(256, device.max_work_group)
        for variant, flag in (("", False), ("unit", True)):
            yield variant, cls(group, arithmetic.index, arithmetic.floating, flag, flag)


@kernel
@dataclass(frozen=True)
class Factor(_OfNumbers):
    """Parameters of ``templates/triangular/factor.mako``.

    Attributes
    ----------
    hermitian : bool
        Whether the factor is that of IC, else those of ILU.
    """

    template = "triangular/factor"

    hermitian: bool

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        group = 1 if device.lanes_are_loops else min(256, device.max_work_group)
        for variant, hermitian in (("", False), ("hermitian", True)):
            yield variant, cls(group, arithmetic.index, arithmetic.floating, hermitian)
