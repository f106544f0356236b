"""Binning schemes and the lists of rows that they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import array as cl_array

from clsparse_py._operations.spmv.binning import GRANULARITIES, HYBRID_THRESHOLD, N_BINS, Scheme, Side, count_bins, list_rows


def test_granularities_are_the_papers() -> None:
    assert GRANULARITIES[:6] == (10, 20, 50, 100, 200, 500)
    assert GRANULARITIES[-3:] == (200_000, 500_000, 1_000_000)
    assert N_BINS == 101


@pytest.mark.parametrize(
    ("text", "scheme"),
    [("single", Scheme("single")), ("fine", Scheme("fine")), ("coarse-10", Scheme("coarse", 10)),
     ("coarse", Scheme("coarse", 100)),
     ("hybrid-1000000", Scheme("hybrid", 1_000_000)), ("hybrid", Scheme("hybrid", 100)), ("coarse-7", Scheme("coarse", 7))],
)  # fmt: skip
def test_schemes_have_names(text: str, scheme: Scheme) -> None:
    assert Scheme.parse(text) == scheme
    assert Scheme.parse(str(scheme)) == scheme


@pytest.mark.parametrize(
    "text", ["", "Fine", "fine-1", "single-1", "coarse-", "coarse-0", "coarse-x", "coarse--1", "auto", None, 3, "hybrid-1.5"]
)
def test_what_is_no_scheme_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"^scheme: (must be .*hybrid-U|U must be a number from 1 to 2147483647).*, is "):
        Scheme.parse(text)


def test_sides() -> None:
    assert Scheme("single").sides == ()
    assert [side.granularity for side in Scheme("fine").sides] == [1]
    assert [side.granularity for side in Scheme("coarse", 50).sides] == [50]
    assert [(side.granularity, side.block, side.side) for side in Scheme("hybrid", 50).sides] == [(1, 50, 0), (50, 50, 1)]


def bins_of(lengths: np.ndarray, side: Side) -> np.ndarray:
    """Return the bin of each virtual row, -1 for those of another side: Algorithm 2, row by row."""
    results = []
    for first in range(0, lengths.size, side.granularity):
        bin_number = min(int(lengths[first : first + side.granularity].sum()) // side.granularity, N_BINS - 1)
        start = first // side.block * side.block
        is_long = int(lengths[start : start + side.block].sum()) >= side.threshold * side.block
        results.append(bin_number if side.threshold < 0 or is_long == side.side else -1)
    return np.array(results, int)


LENGTHS = np.concatenate(
    (
        np.zeros(300, int),
        np.arange(210),
        np.random.default_rng(1).integers(0, 60, 3000),
        [99, 100, 101, 5000, 0, 0, 20_000],
        np.zeros(77, int),
    )
)
SIDES = [
    *Scheme("fine").sides,
    *(side for u in (10, 1000, 1_000_000) for name in ("coarse", "hybrid") for side in Scheme(name, u).sides),
]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_bins_and_lists(queue: cl.CommandQueue, work_group: int, index: Any) -> None:
    indptr = cl_array.to_device(queue, np.concatenate(([0], np.cumsum(LENGTHS))).astype(index))
    for side in SIDES:
        bins = bins_of(LENGTHS, side)
        counts = count_bins(queue, LENGTHS.size, indptr, side, work_group)
        np.testing.assert_array_equal(counts, np.bincount(bins[bins >= 0], minlength=N_BINS))
        # Three lists, and some bins that go to none.
        list_of_bin = np.where(np.arange(N_BINS) % 5 == 4, -1, np.arange(N_BINS) % 3)
        taken = [np.flatnonzero((bins >= 0) & (list_of_bin[bins] == number)) for number in range(3)]
        rows = list_rows(queue, LENGTHS.size, indptr, side, list_of_bin, sum(part.size for part in taken), work_group)
        assert rows.dtype == index
        np.testing.assert_array_equal(rows.get()[: sum(part.size for part in taken)], np.concatenate(taken))


def test_hybrid_sides_share_all_rows() -> None:
    for granularity in (10, 1000):
        short, long = (bins_of(LENGTHS, side) for side in Scheme("hybrid", granularity).sides)
        covered = np.zeros(LENGTHS.size, int)
        covered[short >= 0] += 1
        for virtual in np.flatnonzero(long >= 0):
            covered[virtual * granularity : (virtual + 1) * granularity] += 1
        assert (covered == 1).all()
    assert HYBRID_THRESHOLD > 0


def test_empty_rows_at_both_ends(queue: cl.CommandQueue) -> None:
    lengths = np.concatenate((np.zeros(1 << 17, int), [5, 0, 200], np.zeros(1 << 17, int)))
    indptr = cl_array.to_device(queue, np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    (side,) = Scheme("fine").sides
    counts = count_bins(queue, lengths.size, indptr, side)
    assert (counts[0], counts[5], counts[100]) == (lengths.size - 2, 1, 1)
    rows = list_rows(queue, lengths.size, indptr, side, np.array([1, *[0] * (N_BINS - 1)]), lengths.size).get()
    np.testing.assert_array_equal(rows[:2], [1 << 17, (1 << 17) + 2])
    np.testing.assert_array_equal(rows[2:], np.flatnonzero(lengths == 0))
