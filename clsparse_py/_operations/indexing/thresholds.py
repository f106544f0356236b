"""Thresholds of indexing."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of a device for indexing."""

    operation = "indexing"

    #: Work-group of the kernel that looks up the lengths of rows: many rows to a work-group, few to a work-item.
    lengths_group: int = number(512, "work-items", on_cores=128, least=1)
    #: Most work-groups to a compute unit, of kernels whose counts the host reads.
    telling_groups: int = number(8, "work-groups", least=1)
    #: Most work-groups to a compute unit, of other kernels.
    groups_per_unit: int = number(64, "work-groups", least=1)
    #: Numbers that Python adds up sooner than NumPy.
    few_numbers: int = number(64, "numbers")
    #: On CPU devices, chunks to a core.
    chunks_per_core: int = number(4, "chunks", least=1)
    #: On CPU devices, smallest chunk.
    min_chunk: int = number(64, "rows and entries", least=1)
    #: Most rows of a result that one launch makes.
    max_rows_at_once: int = number(1 << 10, "rows")
    #: Most entries of a result that one launch makes.
    max_at_once: int = number(1 << 14, "entries")
    #: Entries to each work-group of that launch.
    entries_of_group: int = number(1 << 10, "entries", least=1)
