"""The bound of rounding errors in sums of products, for the demo, benchmarks and tests."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["max_share", "rounding_bound"]


def rounding_bound(n_terms: Any, magnitude: Any, dtype: Any, reference: Any) -> np.ndarray[Any, Any]:
    """Return the bound of the rounding error of sums of products, for any order of summation.

    Parameters
    ----------
    n_terms : int or array of int
        Products of each sum.
    magnitude : array
        The sum of the absolute values of the products.
    dtype : dtype
        The dtype in which the sums were computed, float or complex.
    reference : dtype
        The dtype in which the reference was computed.

    Notes
    -----
    A sum of n products is off by at most n u / (1 - n u) times its magnitude, where u is half a unit of the last place: Higham,
    "Accuracy and Stability of Numerical Algorithms", second edition, Section 3.1. A complex product adds three roundings to that
    of a real one (Section 3.6). The bound here is twice that, with one rounding more, as a result may be scaled or added to
    another.
    """
    roundings = (n_terms + 1) * (4 if np.dtype(dtype).kind == "c" else 1)
    return np.asarray(roundings * float(np.finfo(dtype).eps + np.finfo(reference).eps) * magnitude)


def max_share(values: np.ndarray[Any, Any], reference: np.ndarray[Any, Any], bound: np.ndarray[Any, Any]) -> float:
    """Return the largest distance between an element and its reference, in units of the element's bound.

    Equal elements, infinities and NaN included, have distance 0. The result is NaN if an element is NaN and its reference is not.
    """
    with np.errstate(invalid="ignore"):
        distance = np.abs(values - reference)
        is_same = (values == reference) | (np.isnan(values) & np.isnan(reference))
    # The bound of the rounding error of a sum of zeros is zero, by which no distance can be divided.
    share = np.where(is_same, 0.0, distance / np.maximum(bound, np.finfo(np.float64).tiny))
    return float(np.max(share, initial=0.0))
