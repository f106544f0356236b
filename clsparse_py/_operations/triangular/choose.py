"""The method by which a triangular structure is solved, or a matrix is factorised: row by row, or level set by level set."""

from __future__ import annotations

import pyopencl as cl

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure

__all__ = ["METHODS", "Thresholds", "choose_method"]

#: Names of the methods for triangular systems.
METHODS = ("serial", "levels")


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers by which the method of a triangular system is chosen."""

    operation = "triangular"

    #: Largest triangular system that one work-item solves, row by row.
    max_serial: int = number(0, "rows", on_cores=2**31 - 1)


def choose_method(queue: cl.CommandQueue, structure: Structure) -> str:
    """Return the name of the method for a triangular structure on a queue's device."""
    return "serial" if structure.shape[0] <= Thresholds.of(describe(queue.device)).max_serial else "levels"
