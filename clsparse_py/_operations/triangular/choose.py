"""The method by which a triangular system is solved, or a matrix is factorised: serially, without synchronisation, by levels."""

from __future__ import annotations

import pyopencl as cl

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure
from clsparse_py._operations.triangular.grids import Grid

__all__ = ["METHODS", "Thresholds", "choose_method", "work_group_of_tasks"]

#: Names of the methods for triangular systems: one work-item solves row by row; one launch solves each row once the unknowns that
#: it needs are known; work-items solve level set by level set; they solve tiles of a grid.
METHODS = ("serial", "sync-free", "levels", "tiles")


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers by which the method of a triangular system is chosen."""

    operation = "triangular"

    #: Largest triangular system that one work-item solves, row by row.
    max_serial: int = number(0, "rows", on_cores=2**31 - 1)
    #: Most compute units of a CPU device on which one work-item solves alone; on more, work-items share each level set's rows.
    max_serial_units: int = number(8, "compute units")
    #: Turns in which a work-item of the method "sync-free" finds nothing new before the launch is given up: some seconds.
    max_polls: int = number(1 << 22, "turns", on_cores=1 << 30, most=(1 << 32) - 1)
    #: Work-items of a work-group of the method "sync-free"; as many share a row at most.
    work_group: int = number(32, "work-items", least=1, most=256, power=True)
    #: Most entries of a row to a work-item of the method "sync-free" before more work-items share the row.
    entries_per_lane: int = number(8, "entries", least=1)
    #: Most rows of a supernode, whose rows a launch of the method "sync-free" solves without a wait; 1: there are no supernodes.
    supernode_rows: int = number(4, "rows", least=1, most=8)
    #: Least share of rows that continue a supernode for the method "sync-free" to solve by supernodes.
    min_continued: float = number(0.3, "share of rows", least=0, most=1)
    #: Most adjacent right-hand sides that neighbouring work-items of the method "sync-free" solve together.
    columns_at_once: int = number(16, "columns", least=1, most=256, power=True)
    #: Level sets whose rows work-groups of the method "sync-free" hold at the same time.
    levels_ahead: int = number(16, "level sets", least=1)
    #: Most work-groups of the method "sync-free" to a compute unit: more would hinder each other by looking for unknowns.
    max_groups_per_unit: int = number(8, "work-groups", least=1)
    #: Fewest rows of a grid that is solved by tiles.
    min_tiled: int = number(1 << 14, "rows", on_cores=1 << 16)
    #: Most points of a stencil, beside the row's own, whose grid is solved by tiles.
    max_tiled_points: int = number(8, "points", on_cores=16, most=16)
    #: Most unknowns that do not depend on each other, in the mean and for all right-hand sides, for tiles to be faster than rows.
    max_tiled_at_once: int = number(1 << 15, "unknowns", on_cores=1 << 62)
    #: Most work-groups to a compute unit of a launch that solves tiles of a plane: more would hinder each other by looking for
    #: unknowns.
    tiles_per_unit: int = number(2, "work-groups", least=1)
    #: The same for tiles in space.
    tiles_per_unit_in_space: int = number(3, "work-groups", least=1)


def choose_method(queue: cl.CommandQueue, structure: Structure, grid: Grid | None = None, columns: int = 1) -> str:
    """Return the name of the method for a triangular structure on a queue's device: one of `METHODS`.

    With ``grid``, the structure is a stencil on it, and can be solved by tiles. There are ``columns`` right-hand sides.
    """
    device = describe(queue.device)
    limits = Thresholds.of(device)
    # Without waiting a work-item solves a tile alone, as a core does.
    suits = device.compute_units > 1 if device.lanes_are_loops else device.forward_progress
    if grid is not None and suits and grid.n >= limits.min_tiled:
        at_once = grid.n * columns // grid.n_levels
        if at_once <= limits.max_tiled_at_once and len(grid.stencil.offsets) <= limits.max_tiled_points:
            return "tiles"
    if structure.shape[0] <= limits.max_serial and device.compute_units <= limits.max_serial_units:
        return "serial"
    # On CPU devices a launch waits whenever the system takes a core away, and level sets are faster.
    return "sync-free" if device.forward_progress and not device.lanes_are_loops else "levels"


def work_group_of_tasks(device: Device) -> int:
    """Return the work-group size of the method "sync-free": a power of two, 1 on CPU devices."""
    return 1 if device.lanes_are_loops else min(Thresholds.of(device).work_group, 1 << device.max_work_group.bit_length() - 1)
