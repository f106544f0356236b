"""Features of row lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from platforms import PLATFORMS, queue_on
from pyopencl import array as cl_array

from clsparse_py.spmv.features import Features, inspect


def of(queue: cl.CommandQueue, lengths: Any, index: Any = np.int32, work_group: int = 128) -> Features:
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    return inspect(queue, (len(lengths), 17), int(indptr[-1]), cl_array.to_device(queue, indptr), work_group)


def check(found: Features, lengths: Any) -> None:
    lengths = np.asarray(lengths, np.int64)
    assert (found.n_rows, found.n_cols, found.nnz) == (lengths.size, 17, lengths.sum())
    assert (found.shortest, found.longest) == (lengths.min(), lengths.max())
    assert found.mean == lengths.mean()
    np.testing.assert_allclose(found.variance, lengths.var(), rtol=1e-9, atol=1e-9 * max(1.0, float(lengths.max()) ** 2))
    # Class 0 is empty rows, class c those of more than 2^(c - 2) and up to 2^(c - 1) entries.
    classes = np.where(lengths == 0, 0, 1 + np.ceil(np.log2(np.maximum(lengths, 1))).astype(int))
    np.testing.assert_array_equal(found.classes, np.bincount(classes))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_features(queue: cl.CommandQueue, work_group: int, index: Any) -> None:
    rng = np.random.default_rng(0)
    for lengths in (
        [0], [1], [5, 0, 5], [0] * 1000, range(1, 70), [2**k + d for k in range(1, 16) for d in (-1, 0, 1)],
        rng.integers(0, 100, 20_000), np.concatenate((np.zeros(1 << 17, int), [70_000], np.zeros(1 << 17, int))),
    ):  # fmt: skip
        check(of(queue, lengths, index, work_group), lengths)


def test_no_rows(queue: cl.CommandQueue) -> None:
    found = inspect(queue, (0, 17), 0, cl_array.zeros(queue, 1, np.int32))
    assert found == Features(0, 17, 0, 0, 0, 0.0, (0,))
    assert found.mean == 0


def test_lengths_beyond_32_bits(queue: cl.CommandQueue) -> None:
    found = of(queue, [1 << 31, 1, 0], np.int64)
    assert (found.longest, found.shortest) == (1 << 31, 0)
    assert found.classes[0] == found.classes[1] == found.classes[32] == 1
    assert found.variance > 1e18


def test_squares_beyond_64_bits(queue: cl.CommandQueue) -> None:
    lengths = [1 << 40, 0, (1 << 40) + 3, 5 << 30]
    np.testing.assert_allclose(of(queue, lengths, np.int64, 2).variance, np.var(np.array(lengths, np.longdouble)), rtol=1e-12)


@settings(max_examples=30)
@given(lengths=st.lists(st.one_of(st.integers(0, 5), st.integers(0, 3000)), min_size=1, max_size=300))
def test_features_of_random_rows(lengths: list[int]) -> None:
    for name in PLATFORMS:
        check(of(queue_on(name), lengths), lengths)
