"""How kernels that take stretches of entries, and look up their rows, share the entries out."""

from __future__ import annotations

import numpy as np

from clsparse_py.device import Device

__all__ = ["tiles", "work_group_of"]

#: Entries of a work-item at most, so that the look-up of a stretch's first row is one of many loads.
_MAX_ITEMS = 16
#: Work-groups to a compute unit below which work-items take fewer entries.
_GROUPS_PER_UNIT = 8
#: On CPU devices: stretches to a core, and their entries at least.
_GROUPS_PER_CORE, _MIN_TILE = 16, 64


def work_group_of(device: Device) -> int:
    """Return the work-group size: one on CPU devices, whose work-items take long stretches."""
    return 1 if device.lanes_are_loops else min(128, device.max_work_group)


def tiles(device: Device, n: int, work_group: int) -> tuple[int, tuple[np.uint64, np.uint64]]:
    """Return how to share n entries out: work-groups, and the arguments n and tile of the kernels of this package."""
    if device.lanes_are_loops:
        tile = max(-(-n // (device.compute_units * _GROUPS_PER_CORE)), _MIN_TILE) * work_group
    else:
        tile = work_group * min(max(n // (work_group * device.compute_units * _GROUPS_PER_UNIT), 1), _MAX_ITEMS)
    return -(-n // tile), (np.uint64(n), np.uint64(tile))
