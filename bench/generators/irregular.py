"""Matrices made by their row lengths: long rows, empty rows, bands, rectangles, dense rows, columns and blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from bench.generators.patterns import (
    Integers,
    Pattern,
    blown_up,
    distinct_columns,
    from_pairs,
    offsets_of,
    symmetric_from_pairs,
)


def replace_rows(short: Pattern, places: Integers, long_rows: Sequence[Integers]) -> Pattern:
    """Return ``short`` with the rows at ``places`` (increasing) replaced by ``long_rows``."""
    lengths = np.diff(short.indptr).astype(np.int64)
    pieces = []
    done = 0
    for place, columns in zip(places.tolist(), long_rows, strict=True):
        pieces += [short.indices[short.indptr[done] : short.indptr[place]], columns.astype(np.int32)]
        lengths[place] = columns.size
        done = place + 1
    pieces.append(short.indices[short.indptr[done] :])
    return Pattern(offsets_of(lengths), np.concatenate(pieces), short.shape)


def random_rows(rng: np.random.Generator, lengths: Integers, n_columns: int) -> Pattern:
    """Return uniformly random columns in rows of about these lengths: what is drawn twice counts once."""
    rows = np.repeat(np.arange(lengths.size, dtype=np.int64), lengths)
    return from_pairs(rows, rng.integers(n_columns, size=rows.size), (lengths.size, n_columns))


def long_rows(rng: np.random.Generator) -> Pattern:
    """Return 200 rows of 10**5 to 10**6 entries among a million rows of 1 to 8."""
    size = 1_000_000
    places = np.sort(rng.choice(size, size=200, replace=False))
    # A coin for each column gives sorted, unique columns in one pass; drawing and sorting them takes ten times as long.
    long = [np.flatnonzero(rng.random(size, dtype=np.float32) < share) for share in rng.uniform(0.1, 1.0, places.size)]
    return replace_rows(random_rows(rng, rng.integers(1, 9, size=size), size), places, long)


def long_rows_40(rng: np.random.Generator, size: int) -> Pattern:
    """Return 3 random columns a row, and 40 rows of a fifteenth of the width more."""
    rows = np.repeat(np.arange(size, dtype=np.int64), 3)
    long = np.repeat(np.sort(rng.choice(size, size=40, replace=False)), size // 15)
    all_rows = np.concatenate([rows, long])
    return from_pairs(all_rows, rng.integers(size, size=all_rows.size), (size, size))


def protein(rng: np.random.Generator) -> Pattern:
    """Return 12 139 nodes with 40 draws around the diagonal each, merged, and 3 degrees of freedom a node."""
    size, draws = 12_139, 40
    rows = np.repeat(np.arange(size), draws)
    columns = np.clip(np.rint(rows + rng.normal(0.0, 60.0, rows.size)), 0, size - 1).astype(np.int64)
    return blown_up(from_pairs(rows, columns, (size, size)), 3)


def accelerator(rng: np.random.Generator) -> Pattern:
    """Return scattered points of uneven density, coupled where near, in shuffled order, with isolated ones left empty."""
    size, n_used, reach = 121_192, 99_843, 0.0389
    points = rng.random((n_used, 3))
    # Squeezed towards one face: couplings per point then range up to four times their mean.
    points[:, 0] **= 1.35
    pairs = cKDTree(points).query_pairs(reach, output_type="ndarray")
    number = rng.permutation(size)[:n_used]
    used = symmetric_from_pairs(number[pairs[:, 0]], number[pairs[:, 1]], size, diagonal=False)
    return with_diagonal_of(used, number)


def with_diagonal_of(pattern: Pattern, places: Integers) -> Pattern:
    """Return ``pattern`` with a diagonal entry in the rows at ``places``."""
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int64), np.diff(pattern.indptr))
    return from_pairs(np.concatenate([rows, places]), np.concatenate([pattern.indices, places]), pattern.shape)


def economics(rng: np.random.Generator) -> Pattern:
    """Return short, uneven rows: entries near the diagonal and at multiples of a sector's size from it."""
    size, sector = 206_500, 500
    lengths = np.minimum(rng.geometric(1 / 6.4, size=size), 44)
    rows = np.repeat(np.arange(size, dtype=np.int64), lengths)
    near = rows + rng.integers(-60, 61, size=rows.size)
    far = rows + sector * rng.integers(-20, 21, size=rows.size)
    return from_pairs(rows, np.where(rng.random(rows.size) < 0.6, near, far) % size, (size, size))


def dense_row(size: int) -> Pattern:
    """Return a diagonal and one dense row, the middle one."""
    diagonal = Pattern(np.arange(size + 1, dtype=np.int32), np.arange(size, dtype=np.int32), (size, size))
    return replace_rows(diagonal, np.array([size // 2]), [np.arange(size, dtype=np.int32)])


def dense_column(size: int) -> Pattern:
    """Return a diagonal and one dense column, the middle one."""
    here = np.arange(size, dtype=np.int64)
    return from_pairs(np.concatenate([here, here]), np.concatenate([here, np.full(size, size // 2)]), (size, size))


def hypersparse(rng: np.random.Generator, size: int) -> Pattern:
    """Return two entries in one row out of ten, and none in the others."""
    filled = np.sort(rng.choice(size, size=size // 10, replace=False))
    lengths = np.zeros(size, dtype=np.int64)
    lengths[filled] = 2
    return Pattern(offsets_of(lengths), distinct_columns(rng, filled.size, 2, size).indices, (size, size))


def sparse_rectangle(rng: np.random.Generator, shape: tuple[int, int], mean: float) -> Pattern:
    """Return rows of one or two entries, ``mean`` on average."""
    return random_rows(rng, 1 + (rng.random(shape[0]) < mean - 1).astype(np.int64), shape[1])


def transpose(pattern: Pattern) -> Pattern:
    """Return the pattern mirrored at its diagonal."""
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int64), np.diff(pattern.indptr))
    return from_pairs(pattern.indices, rows, (pattern.shape[1], pattern.shape[0]))


def blocks(rng: np.random.Generator, longest: int, n_entries: int) -> Pattern:
    """Return dense diagonal blocks of 1 to ``longest`` rows, until there are ``n_entries``."""
    # Twice the expected number of blocks is more than enough to draw.
    sizes = rng.integers(1, longest + 1, size=int(6 * n_entries / longest**2) + 2)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes**2), n_entries)) + 1]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    lengths = np.repeat(sizes, sizes)
    columns = [np.tile(np.arange(f, f + s, dtype=np.int32), s) for f, s in zip(first.tolist(), sizes.tolist(), strict=True)]
    return Pattern(offsets_of(lengths), np.concatenate(columns), (lengths.size, lengths.size))


def small(rng: np.random.Generator, *, size: int) -> Pattern:
    """Return a matrix of 10 to 100 rows: one entry in 5 of the smallest is nonzero, one in 23 of the largest, each at random."""
    one_in = 5 + 18 * (size - 10) / 90
    places = np.flatnonzero(rng.random(size * size) * one_in < 1)
    return from_pairs(places // size, places % size, (size, size))


def products_a_row(rng: np.random.Generator, *, products: int, size: int = 1 << 17) -> Pattern:
    """Return a matrix whose square has the same number of intermediate products in every row, a power of two.

    Even rows name odd ones and odd rows even ones, at random among the nearest; the two numbers of entries multiply to that of
    products.
    """
    few = 1 << (products.bit_length() - 1) // 2
    lengths = (few, products // few)
    window = 4 * max(lengths)
    pieces = []
    for parity, length in enumerate(lengths):
        rows = np.arange(parity, size, 2)
        drawn = rng.random((rows.size, window), dtype=np.float32).argsort(axis=1)[:, :length]
        # Places in the window to columns of the other parity; past the ends they go around.
        columns = (rows[:, None] + 2 * drawn - window + 1) % size
        pieces.append((np.repeat(rows, length), columns.ravel()))
    rows, columns = (np.concatenate(arrays).astype(np.int64) for arrays in zip(*pieces, strict=True))
    return from_pairs(rows, columns, (size, size))
