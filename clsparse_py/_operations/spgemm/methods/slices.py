"""Slices of rows whose intermediate products fit in the workspace: their sizes, and the bytes that each needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._ground.records import dataclass

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
        """Bits of the largest row number within the slice."""
        return (self.n_rows - 1).bit_length()

    def fits(self, column_bits: int) -> bool:
        """Return whether 32 bits hold numbers of the slice's entries and products, and 64 bits a column and a row together."""
        return self.n <= INT32_MAX and self.n_entries <= INT32_MAX and self.row_bits <= min(32, 64 - column_bits)


def cut_into_slices(
    entries_before: np.ndarray[Any, Any],
    products_before: np.ndarray[Any, Any],
    column_bits: int,
    needs: Callable[[Slice], int],
    limit: int,
    aim: int | None = None,
) -> Iterator[Slice]:
    """Iterate over slices of adjacent rows, as large as the workspace allows.

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
    aim : int, optional
        Most bytes that a slice of several rows may take; by default ``limit``.

    Raises
    ------
    MemoryError
        One row does not fit; the message names ``memory_limit``, the bytes needed and the bytes there are.
    """
    n_rows, begin = len(products_before) - 1, 0

    def slice_to(end: int) -> Slice:
        """Return the slice of the rows from ``begin`` to ``end``."""
        entries, products = (int(sums_before[end]) - int(sums_before[begin]) for sums_before in (entries_before, products_before))
        return Slice(begin, end - begin, entries, products)

    while begin < n_rows:
        # The last row after which a slice that begins here fits.
        low, high = begin, n_rows
        while low < high:
            middle = (low + high + 1) // 2
            candidate = slice_to(middle)
            allowed = limit if aim is None or candidate.n_rows == 1 else aim
            if candidate.fits(column_bits) and needs(candidate) <= allowed:
                low = middle
            else:
                high = middle - 1
        if low == begin:
            row = slice_to(begin + 1)
            more = "" if row.n <= INT32_MAX else f", and a slice {INT32_MAX:,} products"
            raise MemoryError(
                f"memory_limit: a row of the product has {row.n:,} intermediate products, whose expansion needs {needs(row):,} "
                f"bytes; the workspace may have {limit:,}{more}"
            )
        yield slice_to(low)
        begin = low
