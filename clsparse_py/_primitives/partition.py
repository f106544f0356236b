"""Parts of equal weight: where rows and entries are cut so that each part of a matrix takes as long as any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["Partition", "enqueue_partition", "enqueue_parts"]


@kernel
@dataclass(frozen=True)
class Partition(OfStructure):
    """Parameters of ``templates/primitives/partition.mako``."""

    template = "primitives/partition"
    variants: ClassVar[Variants] = {"": {"work_group": 64}}


def enqueue_partition(
    chain: Chain,
    indptr: cl_array.Array,
    n_rows: int,
    n: int,
    n_parts: int,
    step: int,
    starts: Sequence[cl_array.Array],
    *,
    row_weight: int = 1,
    slack: int = 0,
    work_group: int = 64,
) -> None:
    """Enqueue the cut of a matrix into parts of equal weight: an entry weighs 1, a row ``row_weight``.

    Parameters
    ----------
    chain : Chain
    indptr : pyopencl.array.Array, shape (n_rows + 1,)
        Where each row begins, from 0; it ends with n.
    n_rows, n : int
        Rows and entries.
    n_parts, step : int
        Parts, and the weight of each; together they hold all rows and entries.
    starts : three pyopencl.array.Array, of n_parts + 1 numbers of indptr's dtype each
        Becomes where parts begin, as rows and as entries, and whether that is inside the row before.
    row_weight : int
        0: parts have equal entries; 1: parts are diagonals of the merge path of rows and entries.
    slack : int
        A cut inside a row moves to the row's end where that is at most so many entries on.
    work_group : int
        Work-items in a work-group.
    """
    index = indptr.dtype.type
    built, record = chain.build(Partition(min(work_group, chain.device.max_work_group), name_of(indptr.dtype)))
    groups = -(-(n_parts + 1) // record.work_group)
    sizes = index(n_rows), index(n), np.int64(step), np.int64(row_weight), index(slack), index(n_parts)
    chain.launch(built, groups, *sizes, indptr, *starts)


def enqueue_parts(
    chain: Chain, indptr: cl_array.Array, n_rows: int, n: int, step: int, *, slack: int = 0, work_group: int = 64
) -> tuple[int, cl_array.Array, cl_array.Array]:
    """Enqueue the cut of a matrix into parts of ``step`` rows and entries.

    Returns how many parts there are, and where each begins, as rows and as entries. A cut inside a row moves to the row's end
    where that is at most ``slack`` entries on.
    """
    n_parts = -(-(n + n_rows) // step)
    starts = part_row, part_entry, _ = [chain.scratch(n_parts + 1, indptr.dtype) for _ in range(3)]
    enqueue_partition(chain, indptr, n_rows, n, n_parts, step, starts, slack=slack, work_group=work_group)
    return n_parts, part_row, part_entry
