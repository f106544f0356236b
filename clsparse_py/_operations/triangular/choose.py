"""The method by which a triangular structure is solved, or a matrix is factorised: row by row, or level set by level set."""

from __future__ import annotations

import pyopencl as cl

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure

__all__ = ["METHODS", "Thresholds", "choose_method"]

#: Names of the methods for triangular systems: one work-item solves row by row, or work-items solve level set by level set.
METHODS = ("serial", "levels")


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers by which the method of a triangular system is chosen."""

    operation = "triangular"

    #: Largest triangular system that one work-item solves, row by row.
    max_serial: int = number(0, "rows", on_cores=2**31 - 1)
    #: Most compute units of a CPU device on which one work-item solves alone; on more, work-items share each level set's rows.
    max_serial_units: int = number(8, "compute units")


def choose_method(queue: cl.CommandQueue, structure: Structure) -> str:
    """Return the name of the method for a triangular structure on a queue's device: "serial" or "levels"."""
    device = describe(queue.device)
    limits = Thresholds.of(device)
    is_serial = structure.shape[0] <= limits.max_serial and device.compute_units <= limits.max_serial_units
    return "serial" if is_serial else "levels"
