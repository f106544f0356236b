"""The kernels of SpTRANS by buckets of columns: a parameter record beside each template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._device.device import Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._primitives.permute import Moving
from clsparse_py._primitives.radix_kernels import EXCHANGED, RanksTiles

__all__ = ["ALONE", "RUN", "BucketCount", "BucketMove", "BucketOrder", "BucketSplit", "BucketStarts"]

#: Size of a cache line of GPUs, in bytes.
_LINE = 128
#: Number of loads of entries that a work-item of the transposition's bucket kernels has in flight at a time.
_UNROLL = 8
#: Number of loads of row pointers that a work-item of the transposition's bucket kernels has in flight at a time.
_ROW_UNROLL = 4
#: Least number of parts (ranges of entries of a bucket of columns) in a run, which one work-group counts by column.
RUN = 8
#: Most runs of parts of a bucket of columns; each run's work-group counts the run's entries by column.
_MAX_RUNS = 64
#: Most parts of a bucket of columns for which each part's work-group counts the whole bucket by column; else runs are counted.
ALONE = 3
#: Most adjacent buckets whose counts a work-group of the kernel bucket_starts scans, to read whole memory sectors.
_ADJACENT = 16


@dataclass(frozen=True)
class _OfDigits(OfStructure):
    """Base of the parameter records of bucket kernels that work by digits (groups of bits) of columns.

    Attributes
    ----------
    bits : int
        Of a digit: the number of the bucket, or of a column within one.
    """

    bits: int

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, and ``unroll``, the loads of entries in flight at a time."""
        return {**super().arguments(), "unroll": _UNROLL}


@dataclass(frozen=True)
class BucketCount(_OfDigits):
    """Parameters of ``templates/transpose/bucket_count.mako``.

    Attributes
    ----------
    chunk : int
        Entries of a chunk.
    """

    template = "transpose/bucket_count"

    chunk: int

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `_OfDigits`, and ``row_unroll``, the loads of row pointers in flight."""
        return {**super().arguments(), "row_unroll": _ROW_UNROLL}


@dataclass(frozen=True)
class BucketStarts(_OfDigits):
    """Parameters of ``templates/transpose/bucket_starts.mako``."""

    template = "transpose/bucket_starts"

    @property
    def columns(self) -> int:
        """Number of adjacent buckets of columns whose counts a work-group scans, a power of two."""
        return min(_ADJACENT, 1 << self.bits, 1 << self.work_group.bit_length() - 1)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `_OfDigits`, buckets to a work-group, segments of a bucket's counts."""
        return {**super().arguments(), "columns": self.columns, "segments": self.work_group // self.columns}


@dataclass(frozen=True)
class BucketSplit(_OfDigits):
    """Parameters of ``templates/transpose/bucket_split.mako``.

    Attributes
    ----------
    tile : int
        Entries of a part.
    word : str
        OpenCL's name of the type of words.
    record : bool
        As in `BucketOrder`.
    skips : bool
        Whether work-groups with nothing to do end at once.
    """

    template = "transpose/bucket_split"
    of_prelude: ClassVar[frozenset[str]] = _OfDigits.of_prelude | {"record"}

    tile: int
    word: str
    record: bool
    skips: bool

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the types of indices, words and moved entries, and the macro RUN_OF."""
        word = f"typedef {self.word} W;  // words: a column within its bucket, above a row"
        return f"{_define_runs()}\n{super().prelude}\n{word}\n{_define_records(self.record)}"


def _define_runs() -> str:
    """Return OpenCL C's macro RUN_OF: the number of parts (ranges of entries) of a bucket that one work-group counts as a run."""
    return f"#define RUN_OF(parts) max({RUN}u, ((parts) + {_MAX_RUNS - 1}) / {_MAX_RUNS})"


def _define_records(record: bool) -> str:
    """Return the OpenCL C of a moved entry's type R: a word (column and row) alone, or a word and its value in 64 bits."""
    if not record:
        return "typedef W R;\n#define WORD_OF(r) (r)"
    return (
        "typedef ulong R;  // a value, above a word\n#define WORD_OF(r) ((W)(r))\n#define VALUE_OF(r) ((V)((r) >> 32))\n"
        "#define RECORD(word, value) ((ulong)(uint)(value) << 32 | (word))"
    )


@dataclass(frozen=True)
class _Ranking(RanksTiles, Moving):
    """Base of the parameter records of bucket kernels that sort tiles of entries.

    Attributes
    ----------
    word : str
        OpenCL's name of the type of words.
    small : bool
        As in `Shape`.
    """

    portability: Portability
    bits: int
    items: int
    word: str
    small: bool

    @property
    def skips(self) -> bool:
        """Whether a bucket kernel's idle work-groups return before barriers: only on GPUs with PTX; it is unsafe elsewhere."""
        return self.portability.match == "ptx"

    @property
    def _marks(self) -> int:
        """Bytes of local memory in which a bucket kernel marks the entries at which rows begin; 0 for a kernel without marks."""
        return 0

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Bytes of what work-items exchange of an entry: its word (column and row packed), its index, its value or position."""
        index = np.dtype(self.index).itemsize
        return 8 if self.word == "ulong" else 4, index, self.value_bytes or index

    @property
    def record(self) -> bool:
        """Whether an entry's word (column and row) and value are packed into 64 bits: if neither is above 4 bytes."""
        return self._sizes[0] == 4 and self._sizes[2] <= 4

    @property
    def _record_bytes(self) -> int:
        """Bytes of a moved entry: its word (column and row) alone, or word and value packed into 64 bits."""
        return 8 if self.record else self._sizes[0]

    @property
    @override
    def pool_bytes(self) -> int:
        """Bytes of local memory that the steps of a bucket kernel use in turn, for counters, exchanged entries and sums."""
        counters = 2 * (self.work_group // self.match_width << self.bits)
        exchanged = min(self.tile * max(self._sizes), EXCHANGED)
        sums = 8 * max(self.work_group, 1 << self.bits)
        return -(-max(self._marks, counters, exchanged, sums) // 16) * 16

    @property
    def legal(self) -> bool:
        """Whether a bucket kernel can run: counts fit 16 bits, tile parts are equal; if ``small``, buckets fit a work-group."""
        adds_up = not self.small or self.work_group >= 1 << self.bits
        return (
            adds_up
            and self.tile < 1 << 15
            and all(self.items % self.parts(size) == 0 for size in (*self._sizes, self._record_bytes))
        )

    @property
    def local_memory(self) -> int:
        """Bytes of local memory that a work-group of a bucket kernel takes."""
        return self.pool_bytes + 2 * self.tile + (4 << self.bits) + 4 * self.work_group + 16

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes find equal digits, types of moved entries, and the macro RUN_OF."""
        word = f"typedef {self.word} W;  // words: a column within its bucket, above a row"
        return f"{self.matching}\n{_define_runs()}\n{super().prelude}\n{word}\n{_define_records(self.record)}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and the sizes, parts and types by which a tile's entries are moved."""
        return {
            **super().arguments(),
            "tile": self.tile,
            "match_width": self.match_width,
            "pool_bytes": self.pool_bytes,
            "alone": ALONE,
            "record": self.record,
            "record_parts": self.parts(self._record_bytes),
            "value_parts": self.parts(self._sizes[2]),
            "line": _LINE // self._sizes[2],
            "skips": self.skips,
            "word": self.word,
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of a bucket kernel for a smaller work-group; None if its tile or sums of buckets do not fit."""
        record = super().within(work_group, lane_width)
        return None if record is None or (self.small and record.work_group < 1 << self.bits) else record


@dataclass(frozen=True)
class BucketMove(_Ranking):
    """Parameters of ``templates/transpose/bucket_move.mako``.

    Attributes
    ----------
    capacity : int
        Entries of a part of a bucket.
    last : bool
        Whether a bucket is a column, and rows are written in place of words.
    """

    template = "transpose/bucket_move"

    capacity: int
    last: bool

    @property
    @override
    def record(self) -> bool:
        """Whether an entry's word (column and row) and value are packed into 64 bits; never if buckets are columns (``last``)."""
        return super().record and not self.last

    @property
    @override
    def _marks(self) -> int:
        """Bytes of local memory in which the kernel that moves entries marks the entries at which rows begin."""
        return 4 * (self.tile + self.work_group)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `_Ranking`, whether positions are moved, loads in flight, type of rows."""
        return {
            **super().arguments(),
            "positions": not self.value_bytes,
            "row_unroll": _ROW_UNROLL,
            "row_type": "ulong" if self.index == "int64" else "uint",
        }


@dataclass(frozen=True)
class BucketOrder(_Ranking):
    """Parameters of ``templates/transpose/bucket_order.mako``."""

    template = "transpose/bucket_order"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `_Ranking`, in how many parts rows move, whether idle teams skip ranking."""
        # A team of lanes (a sub-group) without entries skips the ranking of entries if lanes exchange without barriers.
        return {**super().arguments(), "row_parts": self.parts(self._sizes[1]), "apart": self.skips and self.match_width == 32}
