"""Partitions of A for SpMM: parts of equal work, or groups of rows with equal columns."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._device.device import describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop, enqueue_loop
from clsparse_py._operations.parts import CutRows, cut_into_parts, list_cut_rows
from clsparse_py._operations.spmm.choose import Thresholds
from clsparse_py._operations.spmm.kernels import slack_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host, from_host

__all__ = ["Cut", "Groups", "cut", "find_groups", "group_rows", "rows_as_parts"]


@dataclass(frozen=True)
class Cut:
    """A sparse matrix's structure, cut into parts of rows and entries.

    Attributes
    ----------
    n_parts, n_pieces : int
        The number of parts, and of parts that begin inside a row: later pieces of the row.
    row, entry, slot : pyopencl.array.Array
        The first row and entry of a part, and the number of its later piece: n_parts + 1 numbers each.
    cut_rows : CutRows or None
        The rows that are cut; None if no part begins inside a row.
    """

    n_parts: int
    n_pieces: int
    row: cl_array.Array
    entry: cl_array.Array
    slot: cl_array.Array
    cut_rows: CutRows | None


@dataclass(frozen=True)
class Groups:
    """Groups of a sparse matrix's adjacent rows with the same columns.

    Attributes
    ----------
    rows : int
        Most rows of a group.
    n : int
        The number of groups.
    first : pyopencl.array.Array
        The first row of each group, and the number of rows.
    """

    rows: int
    n: int
    first: cl_array.Array


def rows_as_parts(queue: cl.CommandQueue, n_rows: int, indptr: cl_array.Array) -> Cut:
    """Return a sparse matrix's `Cut` into one part for each row; no kernel is launched."""
    row = from_host(queue, np.arange(n_rows + 1, dtype=indptr.dtype), copy=True)
    return Cut(n_rows, 0, row, indptr, row, None)


def cut(queue: cl.CommandQueue, n_rows: int, nnz: int, indptr: cl_array.Array, step: int, longest: int | None) -> Cut:
    """Return a sparse matrix's `Cut` into parts of ``step`` rows plus entries; waits for the device if rows may exceed a part.

    Parameters
    ----------
    longest : int or None
        Entries of the longest row, if that is known.
    """
    n_parts, (row, entry, slot) = cut_into_parts(queue, indptr, n_rows, nnz, step, 1, slack_of(step))
    if longest is not None and longest <= slack_of(step):  # a cut moves to the end of its row
        return Cut(n_parts, 0, row, entry, slot, None)
    begins_inside = np.flatnonzero(copy_to_host(slot)[:n_parts])
    if not begins_inside.size:
        return Cut(n_parts, 0, row, entry, slot, None)
    slots = np.zeros(n_parts + 1, indptr.dtype)
    slots[begins_inside] = np.arange(begins_inside.size)
    # The number of a cut row is one below that of the first row that begins after the cut; the pieces of a row are adjacent.
    rows, numbers = copy_to_host(row)[begins_inside] - 1, np.arange(begins_inside.size)
    cut_rows = list_cut_rows(queue, indptr.dtype, rows, numbers, Thresholds.of(describe(queue.device)).many_pieces)
    return Cut(n_parts, begins_inside.size, row, entry, from_host(queue, slots, copy=True), cut_rows)


#: Kernel that marks the rows of a matrix that have the columns of the row before, in the same order.
SAME = declare_loop(
    "spmm/same",
    "same[row]: whether a row has the columns of the row before, in the same order; 0 for the first.",
    "const I *indptr, const I *indices, uchar *same",
    "const ulong begin = indptr[row], length = indptr[row + 1] - begin;",
    "bool is_same = row > 0 && indptr[row - 1] + length == begin;",
    "for (ulong k = begin; is_same && k < begin + length; ++k)",
    "    is_same = indices[k] == indices[k - length];",
    "same[row] = is_same;",
    counter="row",
)


def find_groups(
    limits: Thresholds, queue: cl.CommandQueue, n_rows: int, indptr: cl_array.Array, indices: cl_array.Array
) -> Generator[cl.Event, None, Groups | None]:
    """Find groups of adjacent rows with equal columns: yield events to await, return the groups; None if they save little."""
    chain = Chain(queue, indptr, indices)
    flags = chain.scratch(n_rows, np.uint8)
    enqueue_loop(chain, SAME, n_rows, (indptr.dtype.name,), indptr, indices, flags)
    read_flags = chain.read_later(flags, n_rows)
    queue.flush()
    yield chain.events[-1]
    flags_read = read_flags()
    # A bound on the cost of groups of equal rows comes first: the host takes milliseconds to find the lengths of many groups.
    least_cost = (n_rows - np.count_nonzero(flags_read)) * (1 + 2 * limits.cost_together)
    if least_cost >= n_rows * (1 + limits.cost_together):
        return None
    rows, first = group_rows(limits, np.flatnonzero(flags_read == 0), n_rows)
    if rows == 1:
        return None
    chain, host = Chain(queue), first.astype(indptr.dtype)
    sent = chain.send(host)
    chain.finish(sent)
    queue.flush()
    if chain.events:
        yield chain.events[-1]
    return Groups(rows, first.size - 1, sent)


def group_rows(limits: Thresholds, begins: Any, n_rows: int) -> tuple[int, Any]:
    """Return the cheapest limit on a group's rows (of equal columns), and an array: each group's first row, then ``n_rows``.

    Parameters
    ----------
    limits : Thresholds
    begins : numpy.ndarray
        Rows whose columns are not the columns of the row before.
    """
    lengths = np.diff(begins, append=n_rows)
    costs = [(-(-lengths // rows)).sum() * (1 + limits.cost_together * rows) for rows in range(1, limits.max_together + 1)]
    rows = int(np.argmin(costs)) + 1
    # The array ``number`` counts the groups within each run of rows with equal columns.
    n_groups = -(-lengths // rows)
    last = np.cumsum(n_groups)
    number = np.arange(last[-1] if last.size else 0) - np.repeat(last - n_groups, n_groups)
    return rows, np.append(np.repeat(begins, n_groups) + number * rows, n_rows)
