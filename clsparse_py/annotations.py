"""Types that signatures name: what type checkers are told of arguments."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from pyopencl import array as cl_array

__all__ = ["Pair", "Scalar", "SciPySparse", "Values"]

#: A number: Python's, NumPy's, or an array without dimensions.
Scalar: TypeAlias = complex | np.number[Any] | np.bool_ | npt.NDArray[Any]
#: Keys, and the values that moved with them.
Pair: TypeAlias = tuple[cl_array.Array, cl_array.Array]
#: Values on the device, or what NumPy makes an array of.
Values: TypeAlias = cl_array.Array | npt.ArrayLike


class SciPySparse(Protocol):
    """A sparse matrix or array of SciPy, which has no types of its own unless its stubs are installed."""

    @property
    def ndim(self) -> int:
        """Dimensions."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """Return it in CSR form."""
