"""Serial references of the primitives, on NumPy arrays: correct results, in as few and as plain steps as can be.

References check no arguments; tests compare the device's results with theirs. Sums are made in order, in the dtype of the
device's sums.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from clsparse_py._primitives.addition import sum_dtype

__all__ = [
    "exclusive_scan",
    "inclusive_scan",
    "radix_sort",
    "reduce_by_key",
    "segmented_merge",
    "segmented_scan",
    "segmented_sort",
    "segmented_sum",
]

Array = np.ndarray[Any, Any]


def exclusive_scan(a: Array) -> Array:
    """Return the exclusive scan of an array: for each entry, the sum of the entries before it."""
    return segmented_scan(np.array([0, a.size]), a, exclusive=True)


def inclusive_scan(a: Array) -> Array:
    """Return the inclusive scan of an array: for each entry, the sum of the entries up to it."""
    return segmented_scan(np.array([0, a.size]), a)


def reduce_by_key(keys: Array, values: Array) -> tuple[Array, Array]:
    """Return the key of each run of equal adjacent keys, and the sum of the run's values."""
    unique: list[Any] = []
    sums: list[Any] = []
    dtype = sum_dtype(values.dtype).type
    for key, value in zip(keys, values, strict=True):
        if not unique or unique[-1] != key:
            unique.append(key)
            sums.append(dtype(0))
        with np.errstate(over="ignore"):
            sums[-1] = sums[-1] + dtype(value)
    return np.array(unique, keys.dtype), np.array(sums, dtype)


def segmented_sum(segment_ptr: Array, values: Array) -> Array:
    """Return the sums of the segments of an array; an empty segment has the sum 0."""
    sums = np.zeros(segment_ptr.size - 1, sum_dtype(values.dtype))
    for segment in range(sums.size):
        for value in values[segment_ptr[segment] : segment_ptr[segment + 1]].astype(sums.dtype):
            with np.errstate(over="ignore"):
                sums[segment] += value
    return sums


def segmented_scan(segment_ptr: Array, values: Array, *, exclusive: bool = False) -> Array:
    """Return the scan of the segments of an array: for each entry, its segment's sum up to it, or before it if ``exclusive``."""
    sums = np.zeros(values.size, sum_dtype(values.dtype))
    for begin, end in itertools.pairwise(segment_ptr):
        total = sums.dtype.type(0)
        for i in range(begin, end):
            with np.errstate(over="ignore"):
                through = total + sums.dtype.type(values[i])
            sums[i] = total if exclusive else through
            total = through
    return sums


def radix_sort(keys: Array, values: Array | None = None, *, bits: tuple[int, int] | None = None) -> Any:
    """Return keys in ascending order or, with ``values``, the pair (keys, values); equal keys keep their order.

    With ``bits``, (low, high), only the bits from low up to high of the keys count; the sign bit is one of them, for a key that
    is not negative.
    """
    if bits is None:
        order = np.argsort(keys, kind="stable")
    else:
        low, high = bits
        # Keys less the smallest value of their dtype are in the order of unsigned numbers.
        digits = [(int(key) - int(np.iinfo(keys.dtype).min)) % (1 << high) >> low for key in keys]
        order = np.array(sorted(range(keys.size), key=digits.__getitem__), np.int64)
    return keys[order] if values is None else (keys[order], values[order])


def segmented_sort(segment_ptr: Array, keys: Array, values: Array | None = None) -> Any:
    """Return each segment's keys in ascending order or, with ``values``, the pair (keys, values); equal keys keep their order."""
    order = np.arange(keys.size)
    for begin, end in itertools.pairwise(segment_ptr):
        order[begin:end] = begin + np.argsort(keys[begin:end], kind="stable")
    return keys[order] if values is None else (keys[order], values[order])


def _merge(keys: Array, a: Array, b: Array) -> Array:
    """Return the positions of two sorted sub-segments' keys in merged order; of equal keys those of ``a`` come first."""
    merged = np.empty(a.size + b.size, np.int64)
    i = j = 0
    for k in range(merged.size):
        if j == b.size or (i < a.size and keys[a[i]] <= keys[b[j]]):
            merged[k] = a[i]
            i += 1
        else:
            merged[k] = b[j]
            j += 1
    return merged


def segmented_merge(segment_ptr: Array, subsegment_ptr: Array, keys: Array, values: Array | None = None) -> Any:
    """Return keys or, with ``values``, the pair (keys, values), after a merge of each segment's sorted sub-segments.

    The serial algorithm of Ji et al., Section 3.2: the sub-segments of a segment are the leaves of a binary tree, whose pairs are
    merged from the bottom up. Equal keys keep the order of their sub-segments.
    """
    order = np.arange(keys.size)
    for first, last in itertools.pairwise(segment_ptr):
        nodes = [np.arange(subsegment_ptr[s], subsegment_ptr[s + 1]) for s in range(first, last)]
        while len(nodes) > 1:
            pairs = zip(nodes[::2], nodes[1::2], strict=False)
            nodes = [_merge(keys, a, b) for a, b in pairs] + nodes[len(nodes) // 2 * 2 :]
        if nodes:
            order[subsegment_ptr[first] : subsegment_ptr[last]] = nodes[0]
    return keys[order] if values is None else (keys[order], values[order])
