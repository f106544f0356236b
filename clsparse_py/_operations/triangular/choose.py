"""The method by which a triangular system is solved, or a matrix is factorised: serially, without synchronisation, by levels."""

from __future__ import annotations

import pyopencl as cl

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure

__all__ = ["METHODS", "Thresholds", "choose_method"]

#: Names of the methods for triangular systems: one work-item solves row by row; one launch solves each row once the unknowns that
#: it needs are known; work-items solve level set by level set.
METHODS = ("serial", "sync-free", "levels")


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
    #: Work-items of a work-group of the method "sync-free".
    work_group: int = number(256, "work-items", least=1, most=1024, power=True)
    #: Rows that a work-item of the method "sync-free" solves, one after another, if it has whole rows.
    rows: int = number(1, "rows", least=1, most=64)
    #: Most work-items that share a row in the method "sync-free".
    max_lanes: int = number(32, "work-items", least=1, most=64, power=True)
    #: Entries of the mean row for each work-item that shares a row in the method "sync-free".
    entries_per_lane: int = number(8, "entries", least=1)


def choose_method(queue: cl.CommandQueue, structure: Structure) -> str:
    """Return the name of the method for a triangular structure on a queue's device: one of `METHODS`."""
    device = describe(queue.device)
    limits = Thresholds.of(device)
    if structure.shape[0] <= limits.max_serial and device.compute_units <= limits.max_serial_units:
        return "serial"
    # On CPU devices a launch waits whenever the system takes a core away, and level sets are faster.
    return "sync-free" if device.forward_progress and not device.lanes_are_loops else "levels"
