"""Features of row lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from platforms import PLATFORMS, queue_on
from pyopencl import array as cl_array

from clsparse_py import csr_array
from clsparse_py._build import programs
from clsparse_py._operations.spmv.features import Features, inspect


def matrix(lengths: Any, n_cols: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    return indptr, np.random.default_rng(seed).integers(0, n_cols, indptr[-1])


def of(
    queue: cl.CommandQueue, lengths: Any, index: Any = np.int32, work_group: int | None = None, n_cols: int = 17, **how: int
) -> Features:
    indptr, indices = (cl_array.to_device(queue, array.astype(index)) for array in matrix(lengths, n_cols))
    return inspect(queue, (len(lengths), n_cols), indices.size, indptr, indices, work_group, **how)


def is_counted(n_rows: int) -> np.ndarray[Any, Any]:
    """Which rows are counted by class."""
    i = np.arange(min(n_rows, 8192))
    return i if n_rows <= 8192 else i // 32 * n_rows // 256 + i % 32


def locality(lengths: np.ndarray[Any, Any], n_cols: int) -> tuple[float, float]:
    """Return the distances of sampled entries from the diagonal, and from the next entry of their row, row by row."""
    indptr, indices = matrix(lengths, n_cols)
    n_rows = lengths.size
    n_samples = min(n_rows, 256)
    distances, gaps = [], []
    for sample in range(n_samples):
        block = sample * n_rows // n_samples
        place = sample % ((sample + 1) * n_rows // n_samples - block)
        diagonal = sample * n_cols // n_samples + place * n_cols // n_rows
        columns = indices[indptr[block + place] : indptr[block + place + 1]]
        for i in range(min(columns.size, 8)):
            k = i * columns.size // min(columns.size, 8)
            distances.append(abs(columns[k] - diagonal))
            if k + 1 < columns.size:
                gaps.append(abs(columns[k + 1] - columns[k]))
    return float(np.mean(distances or 0)), float(np.mean(gaps or 0))


def check(result: Features, lengths: Any, n_cols: int = 17) -> None:
    lengths = np.asarray(lengths, np.int64)
    assert (result.n_rows, result.n_cols, result.nnz) == (lengths.size, n_cols, lengths.sum())
    assert (result.shortest, result.longest) == (lengths.min(), lengths.max())
    assert result.mean == lengths.mean()
    np.testing.assert_allclose(result.variance, lengths.var(), rtol=1e-9, atol=1e-9 * max(1.0, float(lengths.max()) ** 2))
    # Class 0 is empty rows, class c those of more than 2^(c - 2) and up to 2^(c - 1) entries.
    classes = np.where(lengths == 0, 0, 1 + np.ceil(np.log2(np.maximum(lengths, 1))).astype(int))
    np.testing.assert_array_equal(result.classes, np.bincount(classes[is_counted(lengths.size)]))
    np.testing.assert_allclose(result.jumps, np.abs(np.diff(lengths)).sum() / max(lengths.sum(), 1))
    np.testing.assert_allclose((result.distance, result.gap), locality(lengths, n_cols))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("work_group", [None, 1, 7, 48, 64, 1 << 20])
def test_features(queue: cl.CommandQueue, work_group: int | None, index: Any) -> None:
    rng = np.random.default_rng(0)
    for lengths in (
        [0], [1], [3, 1], [5, 0, 5], [0] * 1000, range(8, 17), range(20, 2, -1),
        range(1, 70), [2**k + d for k in range(1, 16) for d in (-1, 0, 1)],
        rng.integers(0, 100, 20_000), np.concatenate((np.zeros(1 << 17, int), [70_000], np.zeros(1 << 17, int))),
    ):  # fmt: skip
        check(of(queue, lengths, index, work_group), lengths)


def test_no_rows(queue: cl.CommandQueue) -> None:
    result = inspect(queue, (0, 17), 0, cl_array.zeros(queue, 1, np.int32), cl_array.zeros(queue, 0, np.int32))
    assert result == Features(0, 17, 0, 0, 0, 0.0, (0,))
    assert result.mean == 0


def of_huge(queue: cl.CommandQueue, lengths: Any) -> Features:
    """Inspect rows that take more memory than there is: with no columns, as none is looked at."""
    indptr = cl_array.to_device(queue, np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))
    return inspect(queue, (len(lengths), 0), sum(lengths), indptr, cl_array.zeros(queue, 1, np.int64), samples=0)


def test_lengths_beyond_32_bits(queue: cl.CommandQueue) -> None:
    result = of_huge(queue, [1 << 31, 1, 0])
    assert (result.longest, result.shortest) == (1 << 31, 0)
    assert result.classes[0] == result.classes[1] == result.classes[32] == 1
    assert result.variance > 1e18


def test_squares_beyond_64_bits(queue: cl.CommandQueue) -> None:
    lengths = [1 << 40, 0, (1 << 40) + 3, 5 << 30]
    np.testing.assert_allclose(of_huge(queue, lengths).variance, np.var(np.array(lengths, np.longdouble)), rtol=1e-12)


@settings(max_examples=30)
@given(
    lengths=st.lists(st.one_of(st.integers(0, 5), st.integers(0, 3000)), min_size=1, max_size=300),
    n_cols=st.sampled_from([1, 17, 1000]),
)
def test_features_of_random_rows(lengths: list[int], n_cols: int) -> None:
    for name in PLATFORMS:
        check(of(queue_on(name), lengths, n_cols=n_cols), lengths, n_cols)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_many_groups_are_put_together_on_the_device(queue: cl.CommandQueue, index: Any) -> None:
    lengths = np.random.default_rng(1).integers(0, 9, 3000)
    with programs.recording() as built:
        result = of(queue, lengths, index, 16, 3000, few_groups=0)
    assert len(built) == 2
    check(result, lengths, 3000)


def test_what_trees_compare(queue: cl.CommandQueue) -> None:
    result = of(queue, [0, 1, 2, 5, 40], n_cols=30)
    numbers = result.numbers(compute_units=4, itemsize=8)
    assert (numbers["rows"], numbers["columns"], numbers["nnz"], numbers["bytes"]) == (5, 30, 48, 576)
    assert numbers["longest_by_mean"] == 40 / 9.6
    assert numbers["longest_by_share"] == 40 / 12
    assert [numbers[name] for name in ("empty", "up_to_1", "up_to_2", "up_to_8", "up_to_32", "up_to_128")] == [
        0.2,
        0.4,
        0.6,
        0.8,
        0.8,
        1,
    ]
    assert numbers["variation"] == pytest.approx(np.std([0, 1, 2, 5, 40]) / 9.6)
    assert all(np.isfinite(number) for number in Features(3, 3, 0, 0, 0, 0.0, (3,)).numbers(1, 4).values())


def test_columns_near_each_other_and_far_apart(queue: cl.CommandQueue) -> None:
    n = 5000
    band = scipy.sparse.diags_array([np.ones(n)] * 3, offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    far = scipy.sparse.random_array((n, n), density=3 / n, rng=np.random.default_rng(2)).tocsr()
    results = [
        inspect(A.queue, A.shape, A.nnz, A.indptr, A.indices)
        for A in (csr_array(operand, queue=queue) for operand in (band, far))
    ]
    assert 0.5 < results[0].distance < 1 < n / 5 < results[1].distance
    assert results[0].gap == 1 < n / 10 < results[1].gap
    assert results[0].jumps < 0.001 < 0.1 < results[1].jumps
