"""Decide which accumulator makes the products at a mask's places: a label. Testable with no device's work."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clsparse_py._decisions.labels import number
from clsparse_py._ground.records import dataclass

if TYPE_CHECKING:
    from clsparse_py._operations.spgemm.masked_rows import Masked

__all__ = ["LABELS", "Accumulator", "features_of", "parse"]

#: Declared accumulators: hash tables of teams, for so many entries of the mask; places of columns, or search, in chunks of rows.
LABELS = ("team:128", "team:64", "team:256", "chunked:places", "chunked:search")
_MAX_WINDOW = 1024


@dataclass(frozen=True)
class Accumulator:
    """How sums at a mask's places are made.

    Attributes
    ----------
    window : int
        Entries of the mask whose columns a team puts into a hash table, a power of two; 0 if workers take chunks of rows.
    places : bool
        Whether such a worker has the place of each column in the mask's row; else rows are searched.
    """

    window: int
    places: bool


@functools.lru_cache(maxsize=64)
def parse(label: str) -> Accumulator:
    """Return the accumulator of a label such as "team:128".

    Raises
    ------
    ValueError
        It names none.
    """
    kind, _, shape = label.partition(":")
    if kind == "team":
        window = number(shape, "the window of team", 16, _MAX_WINDOW)
        if window.bit_count() != 1:
            raise ValueError(f"the window of team must be a power of two, is {window}")
        return Accumulator(window, False)
    if kind == "chunked" and shape in ("places", "search"):
        return Accumulator(0, shape == "places")
    raise ValueError(f"an accumulator of a mask must be one of {', '.join(LABELS)}, is {label[:80]!r}")


def features_of(product: Masked, workers: int) -> Mapping[str, float]:
    """Return the features of a product under a mask; ``workers`` is how many take chunks of rows on its device.

    The room for their places is what marks leave of the mask's structure, and what operands that share arrays leave of the memory
    that they would have apart: with the sums all takes no more than A, B and twice M.
    """
    indptr, indices = product.mask
    rows, nnz = indptr.size - 1, indices.size
    arrays = (*product.a, *product.b, *product.mask)
    shared = sum(each.nbytes for each in arrays) - sum({id(each): each.nbytes for each in arrays}.values())
    room = indptr.nbytes + indices.nbytes + shared - nnz - 4  # the last for the chunks that were claimed
    return {
        "rows": rows,
        "columns": product.n_columns,
        "nnz": nnz,
        "mean": nnz / max(rows, 1),
        "mean_of_a": product.a[1].size / max(rows, 1),
        "mean_of_b": product.b[1].size / max(product.b[0].size - 1, 1),
        "places_by_room": workers * product.n_columns * indptr.dtype.itemsize / max(room, 1),
    }
