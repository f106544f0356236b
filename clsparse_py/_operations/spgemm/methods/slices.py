"""Slices of rows whose intermediate products fit in the workspace: their sizes, and the bytes that each needs."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Rows

__all__ = ["Slice", "cut_into_slices"]


@dataclass(frozen=True)
class Slice:
    """Adjacent rows of a list.

    Attributes
    ----------
    begin, n_rows : int
        The position of the first row in the list, and the number of rows.
    n_entries, n : int
        The number of entries of A in these rows, and of their intermediate products.
    """

    begin: int
    n_rows: int
    n_entries: int
    n: int

    @property
    def row_bits(self) -> int:
        """Bits of the largest number of a row within the slice, a list of adjacent rows of C."""
        return (self.n_rows - 1).bit_length()

    def where(self, rows: Rows) -> tuple[Any, ...]:
        """Return the kernel arguments ``SPGEMM_ROWS``, with the slice's number of rows, and its first row's place in the list."""
        return *rows._replace(n=self.n_rows).where, np.uint64(self.begin)

    def fits(self, column_bits: int) -> bool:
        """Return whether 32 bits can number the slice's entries of A and products, and 64 bits hold a column and a row."""
        return self.n <= INT32_MAX and self.n_entries <= INT32_MAX and self.row_bits <= min(32, 64 - column_bits)


def cut_into_slices(
    entries_before: np.ndarray[Any, Any],
    products_before: np.ndarray[Any, Any],
    column_bits: int,
    needs: Callable[[Slice], int],
    limit: int,
    aim: int,
) -> Iterator[Slice]:
    """Iterate over slices of adjacent rows of C whose products are expanded together, as large as the workspace allows.

    Parameters
    ----------
    entries_before, products_before : numpy.ndarray
        The number of entries of A and of products before each row; the last number is that of all rows.
    column_bits : int
        Bits of the largest column of C.
    needs : callable
        Returns the bytes that a slice takes.
    limit : int
        Most bytes that a slice may take.
    aim : int
        Most bytes that a slice of several rows may take.

    Raises
    ------
    MemoryError
        One row does not fit; the message names ``memory_limit``, the bytes needed and the bytes there are.
    """
    n_rows, begin = len(products_before) - 1, 0

    def slice_to(end: int) -> Slice:
        """Return the slice of adjacent rows of C from ``begin`` to ``end``."""
        entries, products = (int(sums_before[end]) - int(sums_before[begin]) for sums_before in (entries_before, products_before))
        return Slice(begin, end - begin, entries, products)

    def exceeds(end: int) -> bool:
        """Return whether the adjacent rows of C from ``begin`` to ``end`` are too many for a slice."""
        candidate = slice_to(end)
        return not candidate.fits(column_bits) or needs(candidate) > (limit if candidate.n_rows == 1 else aim)

    while begin < n_rows:
        n_fitting = bisect.bisect_left(range(begin + 1, n_rows + 1), True, key=exceeds)
        if not n_fitting:
            row = slice_to(begin + 1)
            more = "" if row.n <= INT32_MAX else f", and a slice {INT32_MAX:,} products"
            raise MemoryError(
                f"memory_limit: a row of the product has {row.n:,} intermediate products, whose expansion needs {needs(row):,} "
                f"bytes; the workspace may have {limit:,}{more}"
            )
        yield slice_to(begin + n_fitting)
        begin += n_fitting
