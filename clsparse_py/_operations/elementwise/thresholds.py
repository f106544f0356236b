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

    #: The single work-group of results that one launch makes; 0: none are.
    single_group: int = number(512, "work-items")
    #: Of such a result, to a work-item.
    single_span: int = number(8, "places", least=1, most=16)
    #: The work-groups of larger results, each of which makes a tile.
    tile_group: int = number(128, "work-items", least=1)
    #: Of a tile, to a work-item.
    tile_span: int = number(16, "places", least=1, most=16)
    #: To a compute unit, up to which tiles cut themselves: about twice as many as run at once.
    max_few_places: int = number(1 << 16, "places")
