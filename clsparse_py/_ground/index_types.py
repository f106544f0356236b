"""The dtypes of indices and of row pointers: int32 as far as it reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["INT32_MAX", "index_for"]

#: Largest index that int32 holds.
INT32_MAX = 2**31 - 1
#: NumPy dtype int32, the narrow dtype of index arrays.
_INT32 = np.dtype(np.int32)
#: NumPy dtype int64, the wide dtype of index arrays.
_INT64 = np.dtype(np.int64)


def index_for(largest: float, *dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of indices up to ``largest``: int64 if the number needs it or one of ``dtypes`` is int64, else int32."""
    if largest <= INT32_MAX:
        for dtype in dtypes:
            if dtype.itemsize > 4:
                return _INT64
        return _INT32
    return _INT64
