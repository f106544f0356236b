"""The serial references against examples worked out by hand, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clsparse_py._primitives import reference

KEYS = np.array([5, -1, 5, 0, -1, 7, 0], np.int32)
VALUES = np.array([1, 2, 3, 4, 5, 6, 7], np.float32)


def test_scans() -> None:
    np.testing.assert_array_equal(reference.exclusive_scan(VALUES), [0, 1, 3, 6, 10, 15, 21])
    np.testing.assert_array_equal(reference.inclusive_scan(VALUES), [1, 3, 6, 10, 15, 21, 28])
    assert reference.inclusive_scan(np.ones(3, bool)).dtype == np.int64
    np.testing.assert_array_equal(reference.inclusive_scan(np.array([100, 100], np.int8)), np.array([100, -56], np.int8))


def test_reduce_by_key() -> None:
    unique, sums = reference.reduce_by_key(np.array([3, 3, 1, 3, 3, 3, 2]), VALUES)
    np.testing.assert_array_equal(unique, [3, 1, 3, 2])
    np.testing.assert_array_equal(sums, [3, 3, 15, 7])


def test_segments() -> None:
    ptr = np.array([0, 0, 3, 3, 7, 7])
    np.testing.assert_array_equal(reference.segmented_sum(ptr, VALUES), [0, 6, 0, 22, 0])
    np.testing.assert_array_equal(reference.segmented_scan(ptr, VALUES), [1, 3, 6, 4, 9, 15, 22])
    np.testing.assert_array_equal(reference.segmented_scan(ptr, VALUES, exclusive=True), [0, 1, 3, 0, 4, 9, 15])


def test_sorts_are_stable() -> None:
    keys, values = reference.radix_sort(KEYS, VALUES)
    np.testing.assert_array_equal(keys, [-1, -1, 0, 0, 5, 5, 7])
    np.testing.assert_array_equal(values, [2, 5, 4, 7, 1, 3, 6])
    keys, values = reference.segmented_sort(np.array([0, 0, 3, 7]), KEYS, VALUES)
    np.testing.assert_array_equal(keys, [-1, 5, 5, -1, 0, 0, 7])
    np.testing.assert_array_equal(values, [2, 1, 3, 5, 4, 7, 6])


def test_a_window_of_bits() -> None:
    keys = np.array([0b1101, 0b0110, 0b1011, 0b0001], np.uint32)
    np.testing.assert_array_equal(reference.radix_sort(keys, bits=(1, 3)), [0b0001, 0b1011, 0b1101, 0b0110])
    np.testing.assert_array_equal(reference.radix_sort(keys, bits=(2, 2)), keys)
    signed = np.array([3, -1, -(2**31), 0], np.int32)
    np.testing.assert_array_equal(reference.radix_sort(signed, bits=(0, 32)), np.sort(signed))
    np.testing.assert_array_equal(reference.radix_sort(signed, bits=(31, 32)), [-1, -(2**31), 3, 0])


def test_merge_keeps_the_order_of_sub_segments() -> None:
    # Two segments: of three sub-segments, one of them empty, and of one.
    keys = np.array([1, 4, 4, 0, 4, 9, 2, 3], np.int64)
    merged, values = reference.segmented_merge(np.array([0, 3, 4]), np.array([0, 3, 3, 6, 8]), keys, np.arange(8))
    np.testing.assert_array_equal(merged, [0, 1, 4, 4, 4, 9, 2, 3])
    np.testing.assert_array_equal(values, [3, 0, 1, 2, 4, 5, 6, 7])


@given(st.lists(st.lists(st.lists(st.integers(-4, 4), max_size=6), max_size=6), max_size=6))
def test_a_merge_is_a_stable_sort_of_each_segment(segments: list[list[list[int]]]) -> None:
    pieces = [sorted(piece) for segment in segments for piece in segment]
    keys = np.array([key for piece in pieces for key in piece], np.int32)
    segment_ptr = np.cumsum([0, *(len(segment) for segment in segments)])
    subsegment_ptr = np.cumsum([0, *(len(piece) for piece in pieces)])
    places = np.arange(keys.size)
    merged = reference.segmented_merge(segment_ptr, subsegment_ptr, keys, places)
    wanted = reference.segmented_sort(subsegment_ptr[segment_ptr], keys, places)
    for result, expected in zip(merged, wanted, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("keys", [KEYS, KEYS[:0], KEYS[:1]])
def test_keys_alone(keys: np.ndarray) -> None:
    ptr = np.array([0, keys.size])
    for result in (
        reference.radix_sort(keys),
        reference.segmented_sort(ptr, keys),
        reference.segmented_merge(ptr, np.arange(keys.size + 1), keys),
    ):
        np.testing.assert_array_equal(result, np.sort(keys), strict=True)
