"""Thresholds of graph algorithms."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The graph algorithms' thresholds on a device."""

    operation = "graph"

    work_group: int = number(128, "work-items", least=1)
    #: Levels that a search enqueues before the host asks whether the last one found a vertex.
    levels_ahead: int = number(8, "levels", least=1)
