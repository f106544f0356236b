"""Thresholds of SpTRANS."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of a device for transposition, beside its tree."""

    operation = "transpose"

    #: Least bytes that are moved for buckets: fewer fit the caches of two cores.
    min_bucket_bytes: int = number(16 << 20, "bytes")
    #: Least columns for buckets: the counters of fewer fit the caches.
    min_bucket_columns: int = number(1 << 13, "columns")
    #: Most cores for buckets: more of them wait for the one with the largest bucket.
    max_bucket_cores: int = number(16, "cores")
    #: Most of 256 sampled entries with a near column shortly before them, if columns count as scattered.
    max_near_samples: int = number(127, "entries")
    #: Ranges of buckets that a core scans.
    ranges_per_core: int = number(4, "ranges", least=1)
    #: Largest digit for which the largest tiles fit.
    moderate_bits: int = number(10, "bits", least=1, most=11)
    #: Most entries for which buckets have few bits: launches take longer than repeated sums of counts.
    max_few_entries: int = number(3 << 18, "entries")
    #: Bits of the number of a bucket for so few entries.
    few_entries_bits: int = number(7, "bits", least=1, most=11)
    #: Work-group that scans the counts of buckets.
    starts_group: int = number(512, "work-items", least=1)
    #: Most rows, columns and entries together that one work-group transposes in one launch.
    max_at_once: int = number(1 << 12, "places")
    #: Parts to a core.
    parts_per_core: int = number(4, "parts", least=1)
