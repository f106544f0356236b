"""Values whose results are exact whatever the order of a sum, and their comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

__all__ = ["INDEX_TYPES", "numbers", "same"]

Array = np.ndarray[Any, Any]

INDEX_TYPES = (np.int32, np.int64)


def numbers(n: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return whole numbers from 0 to 3, complex ones with such an imaginary part."""
    rng = np.random.default_rng(1)
    result = rng.integers(0, 4, n).astype(dtype)
    return result + np.asarray(1j * rng.integers(0, 4, n)).astype(dtype) if dtype.kind == "c" else result


def same(result: Any, wanted: Array) -> None:
    """Raise where two results differ in dtype, shape or value."""
    result = result.get() if isinstance(result, cl_array.Array) else result
    np.testing.assert_array_equal(result, wanted, strict=True)
