"""Bins of products whose rows one kernel merges in order, without a row list."""

from __future__ import annotations

import math

from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.features import Features
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.merge import Merge, merges
from clsparse_py._operations.spgemm.thresholds import Thresholds

__all__ = ["alone", "compresses", "is_light", "max_item_length", "merge_all", "small", "small_merge", "staged_entries"]

#: Staged entries of B are a multiple of this, as each number has a kernel of its own.
_INPUTS = 128


def merge_all(accumulator: Merge) -> Bin:
    """Return the bin by which an accumulator merges all rows that it holds."""
    return Bin("reg-merge", accumulator, max_length=accumulator.length, takes_empty=True)


def small(kind: Kind, thresholds: Thresholds, longest_row: int) -> Bin | None:
    """Return the bin that makes all rows of a small product by one launch a phase; None if rows of A are long."""
    accumulator = small_merge(kind, thresholds, longest_row)
    return merge_all(accumulator) if accumulator else None


def small_merge(kind: Kind, thresholds: Thresholds, longest_row: int) -> Merge | None:
    """Return the accumulator that makes all rows of a small product; None if rows of A are long."""
    shapes = merges(kind.device, kind.types, thresholds, registers=True)
    fitting = (
        shape for shape in shapes if shape.lanes <= thresholds.max_small_lanes and shape.items <= thresholds.max_small_items
    )
    return next((shape for shape in fitting if shape.length >= longest_row), None)


def alone(thresholds: Thresholds, longest_row: int, max_products: int, inputs: int) -> Bin | None:
    """Return the bin by which one work-item each merges all rows, in their order; None if they are too long.

    ``inputs``: as `staged_entries` says.
    """
    if not 0 < longest_row <= thresholds.max_item_length or max_products > thresholds.max_item_products:
        return None
    return Bin("reg-merge", Merge(1, longest_row, staged_b=inputs), max_length=longest_row, takes_empty=True)


def max_item_length(limits: Thresholds) -> float:
    """Return the longest row that one work-item ever merges without analysis."""
    return max(limits.max_item_length, limits.max_light_length)


def is_light(thresholds: Thresholds, longest_row: int, mean_row_of_b: float) -> bool:
    """Return whether one work-item merges the longest row of A in little time, by the heads that it compares."""
    return longest_row * longest_row * mean_row_of_b <= thresholds.max_item_steps


def compresses(thresholds: Thresholds, A: Facts | None) -> bool:
    """Return whether rows of C are likely to compress, as rows of B that a row of A names have columns in common."""
    return A is not None and A.adjacent >= thresholds.min_adjacent_share * A.nnz


def staged_entries(kind: Kind, features: Features) -> int:
    """Return how many entries the rows of B have that neighbouring rows of A name together; 0 if they share few of them.

    Neighbouring columns of A are those that the next row has too, as in grids: of a row, only the others are new.
    """
    portability, A = kind.device.portability, features.A
    if portability.lanes == "local" or A is None or A.adjacent < max(kind.thresholds.min_staged_share * A.nnz, 1):
        return 0
    n_named = ((A.nnz - A.adjacent) * portability.lane_width + A.adjacent) / features.shape[0]
    return math.ceil(n_named * features.mean_row_of_b / _INPUTS) * _INPUTS
