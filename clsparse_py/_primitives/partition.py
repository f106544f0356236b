"""Parts of equal weight on the merge path of a matrix's rows and entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain

__all__ = ["OfPath", "Partition", "enqueue_partition", "enqueue_parts", "fit_path_shape", "has_few_rows"]

#: Most work-items that search together for the beginning of a tile of the merge path of rows and entries.
_SEARCHERS = 64
#: Most bits of the number of rows of a matrix with few rows, for which the search for a tile's beginning takes fewer steps.
_FEW_BITS = 24
#: Most bits of the number of rows of any matrix, by NumPy's name of the dtype of the matrix's indices.
_BITS = {"int32": 32, "int64": 40}
#: Bytes of local memory for a row or entry of a tile of the merge path: two numbers of 16 bits.
_ITEM_BYTES = 4
#: Fewest work-items of a work-group that takes a tile of the merge path of rows and entries.
_LEAST = 4


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
        The row pointer, from 0 to n.
    n_rows, n : int
        Rows and entries.
    n_parts, step : int
        The number of parts, and the weight of a part; together they hold all rows and entries.
    starts : three pyopencl.array.Array, of n_parts + 1 numbers of indptr's dtype each
        The first rows of parts, their first entries, and whether a part begins inside the row before.
    row_weight : int
        0: parts have equal entries; 1: parts are diagonals of the merge path of rows and entries.
    slack : int
        A cut inside a row moves to the row's end if that is at most so many entries on.
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
    """Enqueue the cut of a matrix into parts of ``step`` rows plus entries; return their number, first rows and first entries.

    A cut inside a row moves to the row's end if that is at most ``slack`` entries on.
    """
    n_parts = -(-(n + n_rows) // step)
    starts = part_row, part_entry, _ = [chain.scratch(n_parts + 1, indptr.dtype) for _ in range(3)]
    enqueue_partition(chain, indptr, n_rows, n, n_parts, step, starts, slack=slack, work_group=work_group)
    return n_parts, part_row, part_entry


@dataclass(frozen=True)
class OfPath(OfStructure):
    """Base of the records of kernels that take tiles of the path of rows and entries; see ``cl/path_tile.cl``.

    Attributes
    ----------
    items : int
        Rows and entries to a work-item.
    few : bool
        Whether the matrix has fewer than 2^24 rows, which shortens a search.
    """

    items: int
    few: bool

    @property
    def tile(self) -> int:
        """Number of rows and entries together of a tile of the merge path, which a work-group takes."""
        return self.work_group * self.items

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record with as many work-items as the largest power of two up to ``work_group``; None if that is below 4."""
        return replace(self, work_group=_power_of_two(work_group)) if work_group >= _LEAST else None

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and the work-items and steps of the search for a tile's beginning."""
        searchers, steps = min(_SEARCHERS, self.work_group // 2), 1
        while searchers**steps <= 1 << (_FEW_BITS if self.few else _BITS[self.index]):
            steps += 1
        return {**super().arguments(), "searchers": searchers, "steps": steps}


def has_few_rows(n_rows: int) -> bool:
    """Return whether a matrix of ``n_rows`` rows has few rows: fewer than 2^24."""
    return n_rows < 1 << _FEW_BITS


def fit_path_shape(device: Device, work_group: int, items: int, own_bytes: int = 0) -> tuple[int, int]:
    """Return the most work-items, and the most rows plus entries to each, up to the given, with which a merge-path tile fits.

    A tile takes at most half of the local memory; ``own_bytes`` of it are the kernel's own for each row or entry.
    """
    max_tile = min(device.local_memory // (2 * (_ITEM_BYTES + own_bytes)), np.iinfo(np.uint16).max) - 2
    group = max(_LEAST, _power_of_two(min(work_group, device.max_work_group, max_tile)))
    return group, max(1, min(items, max_tile // group))


def _power_of_two(n: int) -> int:
    """Return the largest power of two that is at most ``n``."""
    return 1 << (n.bit_length() - 1)
