"""Operators that change the values of an array in place, for arrays of all formats."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._matrix.convert import convert
from clsparse_py._operations.elementwise.operands import is_scalar, scalar_of
from clsparse_py._operations.elementwise.values import scale

__all__ = ["InPlace"]


class InPlace:
    """Base of arrays whose values may be multiplied in place: ``data`` is replaced, and arrays that share it keep the old one."""

    data: Any
    queue: Any

    def __imul__(self, other: Any) -> Self:
        """Multiply the values by a scalar in place; with another operand Python takes ``A * other`` for A.

        Raises
        ------
        TypeError
            The values' dtype does not hold the product, as for NumPy's arrays.
        """
        if not is_scalar(other):
            return NotImplemented
        self._scale(scalar_of("other", other))
        return self

    def __itruediv__(self, other: Any) -> Self:
        """Divide the values by a scalar in place; as for ``A *= 1 / other``."""
        if not is_scalar(other):
            return NotImplemented
        self._scale(1.0 / scalar_of("other", other))
        return self

    def _scale(self, factor: Any) -> None:
        """Replace the stored values of a sparse array by their products with a scalar; the values' dtype stays."""
        values: cl_array.Array = self.data
        own_dtype = np.dtype(values.dtype)
        result = (np.ones(1, own_dtype) * factor).dtype
        if not np.can_cast(result, own_dtype, "same_kind"):
            raise TypeError(f"other: {own_dtype} values times {factor!r} are {result}, which cannot be cast to {own_dtype}")
        scaled = scale(self.queue, values, factor)
        self.data = scaled if scaled.dtype == own_dtype else convert(self.queue, "values", scaled, own_dtype)
