"""The numbers by which indexing shares work out."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Those of a device."""

    operation = "indexing"

    #: Of the kernel that looks up the lengths of rows: many rows to a work-group, few to a work-item.
    lengths_group: int = number(512, "work-items", on_cores=128, least=1)
    #: To a compute unit, at most: of those that tell numbers to the host, and of others.
    telling_groups: int = number(8, "work-groups", least=1)
    groups_per_unit: int = number(64, "work-groups", least=1)
    #: That Python adds up in less time than NumPy.
    few_numbers: int = number(64, "numbers")
    #: On CPU devices: chunks to a core, and what is worth one.
    chunks_per_core: int = number(4, "chunks", least=1)
    min_chunk: int = number(64, "rows and entries", least=1)
    #: Of a result that is made at once: its rows, at most; the entries that it has room for; those of a work-group.
    max_rows_at_once: int = number(1 << 10, "rows")
    max_at_once: int = number(1 << 14, "entries")
    entries_of_group: int = number(1 << 10, "entries", least=1)
