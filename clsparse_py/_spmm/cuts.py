"""Parts of equal rows and entries for products with several columns, and the rows that several parts share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._spmm.kernels import slack_of
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.primitives.partition import enqueue_partition
from clsparse_py.records import dataclass
from clsparse_py.transfer import fetched, from_host

__all__ = ["Cut", "CutRows", "cut", "rows_as_parts"]

#: Later pieces of a row that one work-item adds one after another for each column, at most.
_MANY_PIECES = 16


@dataclass(frozen=True)
class CutRows:
    """Rows that several parts share.

    Attributes
    ----------
    n : int
        How many.
    n_long : int
        How many of them have many pieces; these come first.
    rows, first, last : pyopencl.array.Array
        Each row, and which pieces are its later ones.
    """

    n: int
    n_long: int
    rows: cl_array.Array
    first: cl_array.Array
    last: cl_array.Array


@dataclass(frozen=True)
class Cut:
    """A structure cut into parts.

    Attributes
    ----------
    n_parts, n_pieces : int
        Parts, and those that begin inside a row: later pieces of it.
    row, entry, slot : pyopencl.array.Array
        Where each part begins, n_parts + 1 numbers each, and the number of its piece.
    cut_rows : CutRows or None
        None if no part begins inside a row.
    """

    n_parts: int
    n_pieces: int
    row: cl_array.Array
    entry: cl_array.Array
    slot: cl_array.Array
    cut_rows: CutRows | None


def rows_as_parts(queue: cl.CommandQueue, n_rows: int, indptr: cl_array.Array) -> Cut:
    """Return the cut that has a part for each row; no kernel makes it."""
    row = from_host(queue, np.arange(n_rows + 1, dtype=indptr.dtype), copy=True)
    return Cut(n_rows, 0, row, indptr, row, None)


def cut(queue: cl.CommandQueue, n_rows: int, nnz: int, indptr: cl_array.Array, step: int, longest: int | None) -> Cut:
    """Cut a structure into parts of ``step`` rows and entries; waits for the device if a row may be too long for a part.

    Parameters
    ----------
    longest : int or None
        Entries of the longest row, if that is known.
    """
    n_parts = max(1, -(-(nnz + n_rows) // step))
    chain = Chain(queue, indptr)
    row, entry, slot = found = [allocated(queue, "ends of parts", n_parts + 1, indptr.dtype) for _ in range(3)]
    enqueue_partition(chain, indptr, n_rows, nnz, n_parts, step, found, slack=slack_of(step))
    chain.finish(*found)
    if longest is not None and longest <= slack_of(step):  # a cut moves to the end of its row
        return Cut(n_parts, 0, row, entry, slot, None)
    begins_inside = np.flatnonzero(fetched(slot)[:n_parts])
    if not begins_inside.size:
        return Cut(n_parts, 0, row, entry, slot, None)
    slots = np.zeros(n_parts + 1, indptr.dtype)
    slots[begins_inside] = np.arange(begins_inside.size)

    def upload(values: Any) -> cl_array.Array:
        return from_host(queue, np.ascontiguousarray(values, dtype=indptr.dtype), copy=True)

    # A cut row's number is one below that of the first row to begin after the cut; its pieces are adjacent.
    rows = fetched(row)[begins_inside] - 1
    first = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    last = np.concatenate((first[1:], [rows.size])) - 1
    # Rows of many pieces come first.
    order = np.argsort(last - first < _MANY_PIECES, kind="stable")
    n_long = int((last - first >= _MANY_PIECES).sum())
    cut_rows = CutRows(int(first.size), n_long, *(upload(each[order]) for each in (rows[first], first, last)))
    return Cut(n_parts, int(begins_inside.size), row, entry, upload(slots), cut_rows)
