"""Tiles of entries, by which kernels that look up the rows of entries divide entries among work-groups."""

from __future__ import annotations

import numpy as np

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds", "divide_tiles", "work_group_of"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of constructors of matrices."""

    operation = "construct"

    #: Most entries to a work-item of a GPU; the look-up of the row of its first entry is then one of many loads.
    max_items: int = number(16, "entries", least=1)
    #: Work-groups per compute unit of a GPU below which a work-item takes fewer than ``max_items`` entries; on CPU devices: most
    #: tiles per core.
    groups_per_unit: int = number(8, "work-groups", on_cores=16, least=1)
    #: Least entries of a tile on CPU devices.
    min_tile: int = number(64, "entries", least=1)
    #: Most entries that a GPU's kernel copies from sparse blocks alone in their rows of blocks; the driver copies larger blocks.
    max_moved: int = number(1 << 25, "entries")
    #: Most work-groups per compute unit of the kernel that copies sparse blocks that stand alone in their rows of blocks.
    moving_groups_per_unit: int = number(64, "work-groups", on_cores=4, least=1)
    #: Most sparse blocks of a matrix whose construction from blocks is recorded for repetition.
    max_recorded: int = number(8, "blocks")


def work_group_of(device: Device) -> int:
    """Return the work-group size of kernels that take tiles of entries: 1 on CPU devices, 128 at most on others."""
    return 1 if device.lanes_are_loops else min(128, device.max_work_group)


def divide_tiles(device: Device, n: int, work_group: int) -> tuple[int, tuple[np.uint64, np.uint64]]:
    """Return the number of work-groups that share n entries, and two kernel arguments: n, and the entries to a work-group."""
    limits = Thresholds.of(device)
    if device.lanes_are_loops:
        tile = max(-(-n // (device.compute_units * limits.groups_per_unit)), limits.min_tile) * work_group
    else:
        tile = work_group * min(max(n // (work_group * device.compute_units * limits.groups_per_unit), 1), limits.max_items)
    return -(-n // tile), (np.uint64(n), np.uint64(tile))
