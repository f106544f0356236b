"""The common part of all generators: a sparsity pattern, how to get one, and how it receives its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Integers = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pattern:
    """The structure of a CSR matrix: columns sorted and unique in each row."""

    indptr: Integers
    indices: Integers
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.indptr[-1])

    def with_values(self, values: Floats) -> sp.csr_array:
        """Return the matrix that has these values in the order of ``indices``."""
        matrix = sp.csr_array((values, self.indices, self.indptr), shape=self.shape)
        # Patterns are canonical by construction; saying so saves SciPy a pass over every large matrix.
        matrix.has_canonical_format = True
        return matrix

    def with_random_values(self, rng: np.random.Generator) -> sp.csr_array:
        """Return the matrix with values uniform in (0.5, 1.5)."""
        values = rng.random(self.nnz)
        values += 0.5
        return self.with_values(values)


def offsets_of(lengths: npt.ArrayLike) -> Integers:
    """Return the ``indptr`` of rows of these lengths, in 32 bits where they suffice."""
    counts = np.asarray(lengths)
    indptr = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr


def from_pairs(rows: Integers, columns: Integers, shape: tuple[int, int]) -> Pattern:
    """Return the pattern of all (row, column) pairs, duplicates merged."""
    keys = rows.astype(np.int64) * shape[1] + columns
    keys.sort()
    return from_sorted_keys(keys[first_of_run(keys)], shape)


def from_sorted_keys(keys: Integers, shape: tuple[int, int]) -> Pattern:
    """Return the pattern of sorted, unique keys ``row * n_columns + column``."""
    indptr = np.searchsorted(keys, np.arange(shape[0] + 1, dtype=np.int64) * shape[1])
    rows = np.repeat(np.arange(shape[0], dtype=np.int64), np.diff(indptr))
    return Pattern(indptr.astype(np.int32), (keys - rows * shape[1]).astype(np.int32), shape)


def first_of_run(keys: Integers) -> npt.NDArray[np.bool_]:
    """Return where a sorted array changes, its first element included."""
    first = np.ones(keys.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first


def symmetric_from_pairs(rows: Integers, columns: Integers, size: int, *, diagonal: bool) -> Pattern:
    """Return the pattern that holds each pair and its mirror image, with or without a full diagonal."""
    itself = np.arange(size if diagonal else 0, dtype=rows.dtype)
    return from_pairs(np.concatenate([rows, columns, itself]), np.concatenate([columns, rows, itself]), (size, size))


def blown_up(pattern: Pattern, block: int) -> Pattern:
    """Return ``pattern`` with every entry replaced by a dense ``block`` x ``block`` square."""
    ones = np.ones((pattern.nnz, block, block), dtype=np.int8)
    shape = (pattern.shape[0] * block, pattern.shape[1] * block)
    expanded = sp.bsr_array((ones, pattern.indices, pattern.indptr), shape=shape).tocsr()
    return Pattern(expanded.indptr, expanded.indices, shape)


def distinct_columns(rng: np.random.Generator, n_rows: int, per_row: int, n_columns: int) -> Pattern:
    """Return ``per_row`` different, uniformly random columns in every row."""
    columns = rng.integers(n_columns, size=(n_rows, per_row), dtype=np.int32)
    pending = np.arange(n_rows)
    while pending.size:
        columns[pending] = np.sort(columns[pending], axis=1)
        clash = (columns[pending, 1:] == columns[pending, :-1]).any(axis=1)
        pending = pending[clash]
        columns[pending] = rng.integers(n_columns, size=(pending.size, per_row), dtype=np.int32)
    return Pattern(offsets_of(np.full(n_rows, per_row)), columns.ravel(), (n_rows, n_columns))
