"""The numbers by which transposition decides."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Those of a device, beside its tree."""

    operation = "transpose"

    #: What is moved fits the caches of two cores if it takes fewer bytes, or if columns are fewer: buckets are no faster then.
    min_bucket_bytes: int = number(16 << 20, "bytes")
    min_bucket_columns: int = number(1 << 13, "columns")
    #: Of more cores, many may wait for the one that has the largest bucket.
    max_bucket_cores: int = number(16, "cores")
    #: Of 256 sampled entries, those that have a near column shortly before them, so that columns count as scattered.
    max_near_samples: int = number(127, "entries")
    #: Ranges of buckets that a core scans.
    ranges_per_core: int = number(4, "ranges", least=1)
    #: Bits of a digit for which the largest tiles fit.
    moderate_bits: int = number(10, "bits", least=1, most=11)
    #: Entries up to which launches take longer than to add counts up again and again, and bits of the number of a bucket then.
    max_few_entries: int = number(3 << 18, "entries")
    few_entries_bits: int = number(7, "bits", least=1, most=11)
    #: Work-items that scan the counts of buckets.
    starts_group: int = number(512, "work-items", least=1)
    #: Rows, columns and entries that one work-group transposes in one launch, at most.
    max_at_once: int = number(1 << 12, "places")
    #: Parts that a core takes.
    parts_per_core: int = number(4, "parts", least=1)
