"""Tiles of the merge path of rows and entries: equal work for each work-group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from typing_extensions import Self, override

from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure

__all__ = ["OfPath", "has_few_rows", "path_shape"]

#: Work-items that look for the beginning of a tile, at most: each loads from a place of its own.
_SEARCHERS = 64
#: Bits of the number of rows of most matrices.
_FEW_BITS = 24
#: Bits of the number of rows of any matrix, by index type.
_BITS = {"int32": 32, "int64": 40}
#: Bytes of local memory to an entry or row: two numbers of 16 bits.
_ITEM_BYTES = 4
#: Work-items of a work-group at least.
_LEAST = 4


@dataclass(frozen=True)
class OfPath(OfStructure):
    """Base of the records of kernels that take tiles of the path; see ``cl/path_tile.cl``.

    Attributes
    ----------
    items : int
        Rows and entries to a work-item.
    few : bool
        Whether there are fewer than 2^24 rows, which shortens a search.
    """

    items: int
    few: bool

    @property
    def tile(self) -> int:
        """Rows and entries to a work-group."""
        return self.work_group * self.items

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=_power_of_two(work_group)) if work_group >= _LEAST else None

    @override
    def arguments(self) -> Mapping[str, object]:
        searchers, steps = min(_SEARCHERS, self.work_group // 2), 1
        while searchers**steps <= 1 << (_FEW_BITS if self.few else _BITS[self.index]):
            steps += 1
        return {**super().arguments(), "searchers": searchers, "steps": steps}


def has_few_rows(n: int) -> bool:
    """Return whether so many rows are few."""
    return n < 1 << _FEW_BITS


def path_shape(device: Device, work_group: int, items: int, own_bytes: int = 0) -> tuple[int, int]:
    """Return the nearest legal work-group and items to a work-item: a work-group has at most half of the local memory.

    ``own_bytes``: of local memory for each entry or row, besides what `OfPath` takes.
    """
    most = min(device.local_memory // (2 * (_ITEM_BYTES + own_bytes)), np.iinfo(np.uint16).max) - 2
    group = max(_LEAST, _power_of_two(min(work_group, device.max_work_group, most)))
    return group, max(1, min(items, most // group))


def _power_of_two(n: int) -> int:
    """Return the largest power of two that is at most n."""
    return 1 << (n.bit_length() - 1)
