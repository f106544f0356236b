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

    #: Least entries of a chunk of a scan on CPU devices.
    min_scan_chunk: int = number(1 << 14, "entries", least=1)
    #: Most chunks of a scan per core of a CPU device.
    scan_chunks_per_core: int = number(2, "chunks", least=1)
    #: Most tiles of a scan per work-item of a work-group if each work-group adds up the tiles before its own, saving a launch.
    few_tiles: int = number(4, "tiles", least=1)
    #: Most tiles (`few_tiles` times a work-group's work-items) with which work-groups add up tiles before their own (quirk 11).
    max_added: int = number(4096, "tiles", least=1)
    #: Most results of a scan for which a single work-group scans all entries.
    max_one_tile: int = number(7680, "entries")
    #: Work-items of the single work-group that scans up to `max_one_tile` entries.
    one_tile_group: int = number(512, "work-items", least=1)
    #: Most bits of a radix sort's digit: a work-group's counters stay in local memory, a chunk's in or near a core's cache.
    digit_bits: int = number(11, "bits", on_cores=22, least=1, most=22)
    #: Least bits of a digit for which a radix sort by chunks prefetches, as lines for all digits exceed the nearest cache.
    far_bits: int = number(10, "bits")
    #: Work-items of the work-group that scans the counts of a digit.
    starts_group: int = number(128, "work-items", least=1)
    #: Most entries of a segmented sort for which a blocking read takes less time than waiting for an event.
    max_read_at_once: int = number(1 << 17, "entries")
    #: Work-items of a work-group that scans segments.
    scanning_group: int = number(256, "work-items", least=1)
    #: Work-items of a work-group that sums segments, or adds the partial sums of one segment.
    summing_group: int = number(128, "work-items", least=1)
    #: Most rounds (entries of the longest segment, divided by the lanes that sum it) for which work-groups take whole segments.
    few_rounds: int = number(16, "entries")
