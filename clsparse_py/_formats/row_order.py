"""Row pointers of coordinates that are sorted by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain, spread

__all__ = ["EntryOrder", "RowBegins", "RowOrder", "order_of", "row_begins"]

_WORK_GROUP = 256
#: Most work-groups to a compute unit, of kernels whose counts the host reads.
_TELLING_GROUPS = 8
#: Most work-groups to a compute unit, of other kernels.
_GROUPS_PER_UNIT = 64


@kernel
@dataclass(frozen=True)
class RowOrder(OfStructure):
    """Parameters of ``templates/canonical/order.mako``."""

    template = "canonical/order"


@kernel
@dataclass(frozen=True)
class RowBegins(OfStructure):
    """Parameters of ``templates/canonical/row_begins.mako``."""

    template = "canonical/row_begins"


class EntryOrder(NamedTuple):
    """How entries are sorted.

    Attributes
    ----------
    by_row : bool
        Whether rows ascend.
    by_column : bool
        Whether columns ascend within rows, if rows do.
    canonical : bool
        Whether there are no duplicates besides.
    """

    by_row: bool
    by_column: bool
    canonical: bool


def _order(fallen: int, unsorted: int, repeated: int) -> EntryOrder:
    """Return how entries are sorted, by the numbers of entries out of row order, of column order, and repeated."""
    return EntryOrder(not fallen, not fallen and not unsorted, not (fallen or unsorted or repeated))


def order_of(queue: cl.CommandQueue, row: cl_array.Array, col: cl_array.Array) -> EntryOrder:
    """Return how entries with these rows and columns, of one index type, are sorted. Waits for the device."""
    chain, n = Chain(queue, row, col), row.size
    built, record = chain.build(RowOrder(min(_WORK_GROUP, chain.device.max_work_group), name_of(row.dtype)))
    groups, sizes = spread(chain.device, n, record.work_group, _TELLING_GROUPS)
    report = chain.scratch(3 * groups, np.int64)
    chain.launch(built, groups, *sizes, row, col, report)
    return _order(*chain.read(report, 3 * groups).reshape(groups, 3).sum(axis=0).tolist())


def row_begins(queue: cl.CommandQueue, row: cl_array.Array, n_rows: int) -> cl_array.Array:
    """Return the row pointers of entries whose rows ascend, of the dtype of ``row``."""
    chain, indptr = Chain(queue, row), allocate(queue, "indptr", n_rows + 1, row.dtype, row.allocator)
    built, record = chain.build(RowBegins(min(_WORK_GROUP, chain.device.max_work_group), name_of(row.dtype)))
    groups, sizes = spread(chain.device, n_rows + 1, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, np.uint64(row.size), row, indptr)
    chain.finish(indptr)
    return indptr
