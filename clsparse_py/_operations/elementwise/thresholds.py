"""Thresholds of element-wise operations on two sparse matrices."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of a device for operations entry by entry. A place is a row, or an entry of one of the two matrices."""

    operation = "elementwise"

    #: Work-group size of the launch that makes a whole small result; 0: there is no such launch.
    single_group: int = number(512, "work-items")
    #: Places to a work-item of the launch that makes a whole small result.
    single_span: int = number(8, "places", least=1, most=16)
    #: Work-group size of kernels that make larger results by tiles, a tile to a work-group.
    tile_group: int = number(128, "work-items", least=1)
    #: Places of a tile to a work-item.
    tile_span: int = number(16, "places", least=1, most=16)
    #: Places to a compute unit, up to which tiles cut themselves: about twice as many as run at once.
    max_few_places: int = number(1 << 16, "places")
