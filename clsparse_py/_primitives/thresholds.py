"""Thresholds of primitives."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of a device for primitives."""

    operation = "primitives"

    #: On CPU devices, smallest chunk of a scan.
    min_scan_chunk: int = number(1 << 14, "entries", least=1)
    #: On CPU devices, chunks of a scan to a core.
    scan_chunks_per_core: int = number(2, "chunks", least=1)
    #: Most earlier tiles to a work-item if a work-group of a scan adds up the tiles before its own, which saves a launch.
    few_tiles: int = number(4, "tiles", least=1)
    #: Most earlier tiles if a work-group of a scan adds up the tiles before its own (quirk 11).
    max_added: int = number(4096, "tiles", least=1)
    #: Most entries that a single work-group scans.
    max_one_tile: int = number(7680, "entries")
    #: Work-items of the single work-group that scans up to `max_one_tile` entries.
    one_tile_group: int = number(512, "work-items", least=1)
    #: Largest digit of a radix sort: counters of a work-group stay in local memory, and counters of a chunk near a core's cache.
    digit_bits: int = number(11, "bits", on_cores=22, least=1, most=22)
    #: Smallest digit of a radix sort by chunks that prefetches: a cache line of each digit exceeds a core's nearest cache.
    far_bits: int = number(10, "bits")
    #: Work-group that scans the counts of a digit.
    starts_group: int = number(128, "work-items", least=1)
    #: Most entries of a segmented sort for which a blocking read takes less time than waiting for an event.
    max_read_at_once: int = number(1 << 17, "entries")
    #: Work-group that scans segments.
    scanning_group: int = number(256, "work-items", least=1)
    #: Work-group that sums segments, or adds the partial sums of one.
    summing_group: int = number(128, "work-items", least=1)
    #: Most entries of the longest segment to a lane if a work-group takes whole segments.
    few_rounds: int = number(16, "entries")
