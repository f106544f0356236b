"""What products with several columns read beside A: parts of equal rows and entries, or groups of rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._spmm.kernels import Same, slack_of
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.primitives.partition import enqueue_partition
from clsparse_py.records import dataclass
from clsparse_py.transfer import fetched, from_host

__all__ = ["Cut", "CutRows", "Groups", "Together", "cut", "grouped", "rows_as_parts"]

_log = logging.getLogger(__name__)

#: Later pieces of a row that one work-item adds one after another for each column, at most.
_MANY_PIECES = 16
#: Rows that have the same columns are looked for behind this product: to load the kernels, once a process, takes the host
#: milliseconds.
_BEHIND = 16
#: Rows with the same columns that a team takes at most, and what each takes of the time that their columns take.
_TOGETHER, _OF_A_ROW = 4, 0.25


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


@dataclass(frozen=True)
class Groups:
    """Adjacent rows with the same columns.

    Attributes
    ----------
    rows : int
        Of a group, at most.
    n : int
        Groups.
    first : pyopencl.array.Array
        The first row of each, and the number of rows.
    """

    rows: int
    n: int
    first: cl_array.Array


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


class Together:
    """Groups of adjacent rows with the same columns, found behind some products; none waits for them.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Keeps the order of its commands.
    n_rows : int
    indptr, indices : pyopencl.array.Array

    Attributes
    ----------
    groups : Groups or None
        None if few rows have the same columns, or if that is not known yet.
    """

    def __init__(self, queue: cl.CommandQueue, n_rows: int, indptr: cl_array.Array, indices: cl_array.Array) -> None:
        self._queue, self._n_rows, self._indptr, self._indices = queue, n_rows, indptr, indices
        self._products = 0
        self._steps: list[Callable[[], list[cl.Event]]] = [self._compared, self._grouped]
        self._events: list[cl.Event] = []
        self.groups: Groups | None = None

    def due(self) -> bool:
        """Take note of a product, and return whether it is known by now if there are groups."""
        self._products += 1
        while self._products >= _BEHIND:
            if any(each.command_execution_status != cl.command_execution_status.COMPLETE for each in self._events):
                return False
            if not self._steps:
                return True
            self._events = self._tried(self._steps.pop(0))
        return False

    def _tried(self, step: Callable[[], list[cl.Event]]) -> list[cl.Event]:
        """Enqueue a step, if its kernel builds and memory suffices."""
        try:
            events = step()
        except (BuildError, MemoryError) as error:
            _log.info("rows are not computed together: %s", error)
            self._steps.clear()
            return []
        self._queue.flush()
        return events

    def _compared(self) -> list[cl.Event]:
        """Enqueue the comparison of each row with the one before."""
        chain = Chain(self._queue, self._indptr, self._indices)
        index = self._indptr.dtype
        built, record = chain.build(Same(min(256, chain.device.max_work_group), index.name))
        same = chain.scratch(self._n_rows, np.uint8)
        groups = -(-self._n_rows // record.work_group)
        chain.launch(built, groups, index.type(self._n_rows), self._indptr, self._indices, same)
        self._same = chain.read_later(same, self._n_rows)
        return chain.events[-1:]

    def _grouped(self) -> list[cl.Event]:
        """Enqueue the beginnings of groups, if there are."""
        same = self._same()
        del self._same
        # Of pairs at best; to look at the lengths of many groups takes the host milliseconds.
        least = (self._n_rows - np.count_nonzero(same)) * (1 + 2 * _OF_A_ROW)
        rows, first = (1, same) if least >= self._n_rows * (1 + _OF_A_ROW) else grouped(np.flatnonzero(same == 0), self._n_rows)
        if rows == 1:
            return []
        chain = Chain(self._queue)
        self._host = first.astype(self._indptr.dtype)
        sent = chain.sent(self._host)
        chain.finish(sent)
        self.groups = Groups(rows, first.size - 1, sent)
        return chain.events


def grouped(begins: Any, n_rows: int) -> tuple[int, Any]:
    """Return how many rows at most to compute together, and where each group of so many begins, with the number of rows behind.

    Parameters
    ----------
    begins : numpy.ndarray
        Rows whose columns are not those of the row before.
    """
    lengths = np.diff(begins, append=n_rows)
    times = [(-(-lengths // rows)).sum() * (1 + _OF_A_ROW * rows) for rows in range(1, _TOGETHER + 1)]
    rows = int(np.argmin(times)) + 1
    # Of each group, its number among those of its run.
    n_groups = -(-lengths // rows)
    last = np.cumsum(n_groups)
    number = np.arange(last[-1] if last.size else 0) - np.repeat(last - n_groups, n_groups)
    return rows, np.append(np.repeat(begins, n_groups) + number * rows, n_rows)
