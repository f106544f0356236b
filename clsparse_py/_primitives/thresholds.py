"""The numbers by which primitives share work out."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Those of a device."""

    operation = "primitives"

    #: On CPU devices, of a scan: worth a chunk of their own, and chunks to a core.
    min_scan_chunk: int = number(1 << 14, "entries", least=1)
    scan_chunks_per_core: int = number(2, "chunks", least=1)
    #: To a work-item up to which each work-group of a scan adds up the sums of those before its own, which saves a launch; and
    #: to a work-group (quirk 11).
    few_tiles: int = number(4, "tiles", least=1)
    max_added: int = number(4096, "tiles", least=1)
    #: That a single work-group scans, at most, and its work-items.
    max_one_tile: int = number(7680, "entries")
    one_tile_group: int = number(512, "work-items", least=1)
    #: Of a digit of a radix sort, at most: counters of a work-group stay in local memory, those of a chunk near a core's cache.
    digit_bits: int = number(11, "bits", on_cores=22, least=1, most=22)
    #: Of digits of which chunks have too many for a line of each to stay in a core's nearest cache.
    far_bits: int = number(10, "bits")
    #: That scan the counts of a digit.
    starts_group: int = number(128, "work-items", least=1)
    #: To be sorted in segments, behind which a read that blocks takes less time than to wait for an event.
    max_read_at_once: int = number(1 << 17, "entries")
    #: Of a work-group that scans segments, and of one that sums them, or adds what parts hold of one segment.
    scanning_group: int = number(256, "work-items", least=1)
    summing_group: int = number(128, "work-items", least=1)
    #: Of the longest segment to each lane, up to which work-groups take whole segments.
    few_rounds: int = number(16, "entries")
