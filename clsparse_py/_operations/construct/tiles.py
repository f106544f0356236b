"""Tiles of entries: how kernels that look up the rows of their entries divide the entries among work-groups."""

from __future__ import annotations

import numpy as np

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds", "tiles", "work_group_of"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers by which constructors share work out."""

    operation = "construct"

    #: Most entries to a work-item, so that the look-up of a stretch's first row is one of many loads.
    max_items: int = number(16, "entries", least=1)
    #: Work-groups to a compute unit below which work-items take fewer entries; on CPU devices, stretches to a core.
    groups_per_unit: int = number(8, "work-groups", on_cores=16, least=1)
    #: Fewest entries of a stretch on a CPU device.
    min_tile: int = number(64, "entries", least=1)
    #: Most entries of blocks without neighbours that a kernel moves on devices other than CPUs; more are copied.
    max_moved: int = number(1 << 25, "entries")
    #: Work-groups to a compute unit, at most, of the kernel that moves blocks without neighbours.
    moving_groups_per_unit: int = number(64, "work-groups", on_cores=4, least=1)
    #: Most blocks of a call whose commands are recorded.
    max_recorded: int = number(8, "blocks")


def work_group_of(device: Device) -> int:
    """Return the work-group size: one on CPU devices, whose work-items take long stretches."""
    return 1 if device.lanes_are_loops else min(128, device.max_work_group)


def tiles(device: Device, n: int, work_group: int) -> tuple[int, tuple[np.uint64, np.uint64]]:
    """Return how to share n entries out: work-groups, and the arguments n and tile of the kernels of this package."""
    limits = Thresholds.of(device)
    if device.lanes_are_loops:
        tile = max(-(-n // (device.compute_units * limits.groups_per_unit)), limits.min_tile) * work_group
    else:
        tile = work_group * min(max(n // (work_group * device.compute_units * limits.groups_per_unit), 1), limits.max_items)
    return -(-n // tile), (np.uint64(n), np.uint64(tile))
