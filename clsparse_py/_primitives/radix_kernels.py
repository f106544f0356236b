"""The kernels of radix sort: a parameter record beside each template."""

from __future__ import annotations

import abc
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import MOVED_TYPES, OPENCL_TYPES, Arithmetic

__all__ = [
    "AHEAD",
    "EXCHANGED",
    "RadixChunkCount",
    "RadixChunkScatter",
    "RadixChunkStarts",
    "RadixCount",
    "RadixScatter",
    "RadixStarts",
    "RanksTiles",
]

#: Most bytes of a tile's entries that a radix sort exchanges through local memory at once; larger tiles go in parts.
EXCHANGED = 1 << 15
#: Prefetch distance of a radix sort on CPU devices: the target of the entry that is moved so many entries later is prefetched.
AHEAD = 48
#: Number of adjacent tiles' digit counts that a work-item of the kernel `RadixStarts` adds up at a time.
_COUNTS = 4


def _define_types(index: str, value_bytes: int) -> str:
    """Return a radix sort's lines of OpenCL C: the type I of positions and, unless ``value_bytes`` is 0, the type V of values."""
    value = f"\ntypedef {MOVED_TYPES[value_bytes]} V;" if value_bytes else ""
    return f"typedef {OPENCL_TYPES[index]} I;  // {index}: positions, offsets, items{value}"


def _is_wide(index: str) -> bool:
    """Return whether an index type, by NumPy's name, has 64 bits."""
    return np.dtype(index).itemsize == 8


@dataclass(frozen=True)
class _OfPositions(Parameters):
    """Base of the records of kernels of radix sort whose prelude is the type of positions.

    Attributes
    ----------
    index : str
        NumPy's name of the type of positions.
    """

    index: str

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the type I of positions."""
        return _define_types(self.index, 0)


@kernel
@dataclass(frozen=True)
class RadixCount(_OfPositions):
    """Parameters of ``templates/primitives/radix_count.mako``.

    Attributes
    ----------
    word : str
        NumPy's name of the type of the words that are sorted.
    """

    template = "primitives/radix_count"

    word: str

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, types of words and positions, and work-group size."""
        return f"radix_count_{self.word}_{self.index}_wg{self.work_group}"

    @override
    def arguments(self) -> dict[str, object]:
        """Return the template's arguments: the record's fields, the OpenCL type of a word, and the number of loads in flight."""
        return {**super().arguments(), "word": OPENCL_TYPES[self.word], "unroll": 8}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(512, device.max_work_group), arithmetic.index, "uint32")


@dataclass(frozen=True)
class RadixStarts(Parameters):
    """Parameters of ``templates/primitives/radix_starts.mako``.

    Attributes
    ----------
    portability : Portability
        How lanes exchange values.
    index : str
        NumPy's name of the type of positions.
    bits : int
        Bits of a digit.
    """

    template = "primitives/radix_starts"

    portability: Portability
    index: str
    bits: int

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, bits of a digit, type of positions, and work-group size."""
        return f"radix_starts_b{self.bits}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes exchange values, and the type I of positions."""
        return f"{self.portability.defines}\n{_define_types(self.index, 0)}"

    @override
    def arguments(self) -> dict[str, object]:
        """Return the template's arguments: fields, counts that a work-item adds at a time, and whether indices have 64 bits."""
        return {**super().arguments(), "items": _COUNTS, "wide": _is_wide(self.index)}


class RanksTiles(Parameters):
    """Base of the records of kernels that put the entries of a tile in order by a digit; the records have these fields.

    Attributes
    ----------
    portability : Portability
        How lanes compare their digits.
    bits : int
        Bits of a digit.
    items : int
        Entries to a work-item; a tile is ``work_group * items`` entries.
    """

    portability: Portability
    bits: int
    items: int

    @property
    def match_width(self) -> int:
        """Number of lanes of a radix sort's kernel that compare the digits of their entries at once."""
        if self.portability.match == "ptx" and self.work_group % 32 == 0:
            return 32
        return min(8, self.work_group & -self.work_group)

    @property
    def tile(self) -> int:
        """Number of entries of a tile, which a work-group puts in order by a digit at once."""
        return self.work_group * self.items

    @property
    @abc.abstractmethod
    def pool_bytes(self) -> int:
        """Bytes of local memory that the steps of a radix sort's kernel use one after another."""

    def parts(self, size: int) -> int:
        """Return the number of parts, a power of two, in which a tile of entries of ``size`` bytes goes through local memory."""
        return 1 << (-(-self.tile * size // self.pool_bytes) - 1).bit_length() if size else 1

    @property
    def matching(self) -> str:
        """The OpenCL C macros by which ``cl/match.cl`` finds lanes with equal digits."""
        by_ptx = "#define MATCH_BY_PTX\n" if self.match_width == 32 else ""
        return f"{self.portability.defines}\n#define MATCH_BITS {self.bits}\n{by_ptx}#define MATCH_WIDTH {self.match_width}"

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record for the largest work-group up to ``work_group`` whose size divides the tile's; None for 0."""
        # The size of a tile stays the same: all kernels of a pass of the radix sort have to agree on that size.
        group = next((group for group in range(work_group, 0, -1) if self.tile % group == 0), 0)
        if not group:
            return None
        adapted: dict[str, Any] = {"items": self.tile // group, "portability": self.portability.at_most(lane_width)}
        return replace(self, work_group=group, **adapted)


@dataclass(frozen=True)
class RadixScatter(RanksTiles):
    """Parameters of ``templates/primitives/radix_scatter.mako``.

    Attributes
    ----------
    index, word, result : str
        NumPy's names of the types of positions, of the words that are sorted, and of the result.
    source : str
        "rows", "items" and "positions" if the kernel makes words of keys and rows, items or positions; "words" if it reads them.
    last : bool
        Whether the kernel writes only the items (or whole words).
    value_bytes : int
        Bytes of a value, 0 if there are none.
    positions : bool
        Whether the values are the entries' positions.
    pointers : bool
        Whether the kernel writes where the entries of each key begin.
    few : bool
        Whether there are few tiles, so that a work-group adds up the counts of the tiles before its own.
    """

    template = "primitives/radix_scatter"

    portability: Portability
    index: str
    word: str
    result: str
    bits: int
    items: int
    source: str
    first: bool
    last: bool
    value_bytes: int
    positions: bool
    pointers: bool
    few: bool = field(default=False, kw_only=True)

    @property
    @override
    def pool_bytes(self) -> int:
        """Bytes of local memory that the steps of a radix sort's scattering kernel use one after another."""
        marks = 4 * (self.tile + self.work_group) if self.source == "rows" else 0
        counters = 2 * (self.work_group // self.match_width << self.bits)
        exchanged = min(self.tile * max(self.entry_bytes, self.value_bytes), EXCHANGED)
        scanned = 8 * self.work_group if _is_wide(self.index) else 0
        sums = 2 * np.dtype(self.index).itemsize * max(self.work_group, 1 << self.bits) if self.few else 0
        return -(-max(marks, counters, 2 * self.tile, exchanged, scanned, sums) // 16) * 16

    @property
    def divides(self) -> bool:
        """Whether the number of parts, in which a tile goes through local memory, divides the entries of a work-item."""
        return self.items % max(self.parts(self.entry_bytes), self.parts(self.value_bytes)) == 0

    @property
    def entry_bytes(self) -> int:
        """Bytes of a sorted entry, without its value, as work-items exchange entries through local memory."""
        return np.dtype(self.word if self.source == "words" else self.result).itemsize

    @property
    def local_memory(self) -> int:
        """Bytes of local memory that a work-group takes to put a radix sort's tile in order by a digit and move the entries."""
        return self.pool_bytes + (np.dtype(self.index).itemsize + 2 << self.bits) + 4 * self.work_group + 16

    @property
    @override
    def name(self) -> str:
        """The kernel's name: source of words, kind of pass, digit bits, a work-item's entries, values, types, work-group size."""
        payload = f"_v{self.value_bytes}{'p' if self.positions else ''}" if self.value_bytes else ""
        role = f"{'first' if self.first else 'next'}{'_last' if self.last else ''}{'_pointers' if self.pointers else ''}"
        types = f"{'few_' if self.few else ''}{self.word}_{self.result}_{self.index}"
        return f"radix_scatter_{self.source}_{role}_b{self.bits}_x{self.items}{payload}_{types}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes find equal digits, and the types of positions and values."""
        return f"{self.matching}\n{_define_types(self.index, self.value_bytes)}"

    @override
    def arguments(self) -> dict[str, object]:
        """Return the template's arguments by name: fields, and the sizes, parts and types by which a tile's entries are moved."""
        return {
            **super().arguments(),
            "word": OPENCL_TYPES[self.word],
            "result": OPENCL_TYPES[self.result],
            "tile": self.tile,
            "match_width": self.match_width,
            "pool_bytes": self.pool_bytes,
            "entry_parts": self.parts(self.entry_bytes),
            "value_parts": self.parts(self.value_bytes),
            "value": _name_values(self.value_bytes, self.positions),
            "wide": _is_wide(self.index),
        }


@kernel
@dataclass(frozen=True)
class RadixChunkCount(_OfPositions):
    """Parameters of ``templates/primitives/radix_chunk_count.mako``.

    Attributes
    ----------
    word : str
        NumPy's name of the type of the words that are sorted.
    """

    template = "primitives/radix_chunk_count"

    word: str

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, types of words and positions, and work-group size."""
        return f"radix_chunk_count_{self.word}_{self.index}_wg{self.work_group}"

    @override
    def arguments(self) -> dict[str, object]:
        """Return the template's arguments: the record's fields, and ``word``, the OpenCL type of a word."""
        return {**super().arguments(), "word": OPENCL_TYPES[self.word]}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(1, arithmetic.index, arithmetic.index)


@kernel
@dataclass(frozen=True)
class RadixChunkStarts(_OfPositions):
    """Parameters of ``templates/primitives/radix_chunk_starts.mako``."""

    template = "primitives/radix_chunk_starts"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, type of positions, and work-group size."""
        return f"radix_chunk_starts_{self.index}_wg{self.work_group}"


@kernel
@dataclass(frozen=True)
class RadixChunkScatter(_OfPositions):
    """Parameters of ``templates/primitives/radix_chunk_scatter.mako``, most of them as in `RadixScatter`.

    Attributes
    ----------
    highest : bool
        Whether the digit is the key's highest, so that words keep the bits below the digit in place of those above.
    far : bool
        Whether digits are so many that the kernel prefetches the cache lines that it writes.
    """

    template = "primitives/radix_chunk_scatter"

    word: str
    result: str
    source: str
    last: bool
    value_bytes: int
    positions: bool
    pointers: bool
    highest: bool = False
    far: bool = False

    @property
    @override
    def name(self) -> str:
        """The kernel's name: source of words, flags ("last", ...), bytes of a value, types, and work-group size."""
        payload = f"_v{self.value_bytes}{'p' if self.positions else ''}" if self.value_bytes else ""
        flags = {"last": self.last, "pointers": self.pointers, "highest": self.highest, "far": self.far}
        role = "_".join((self.source, *(flag for flag, is_set in flags.items() if is_set)))
        return f"radix_chunk_scatter_{role}{payload}_{self.word}_{self.result}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the type I of positions and, if there are values, their type V."""
        return _define_types(self.index, self.value_bytes)

    @override
    def arguments(self) -> dict[str, object]:
        """Return the template's arguments: types, sources of words and values, flags of the pass, and the prefetch distance."""
        return {
            "work_group": self.work_group,
            "word": OPENCL_TYPES[self.word],
            "result": OPENCL_TYPES[self.result],
            "source": self.source,
            "last": self.last,
            "value": _name_values(self.value_bytes, self.positions),
            "pointers": self.pointers,
            "highest": self.highest,
            "ahead": AHEAD if self.far else 0,
        }

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records by source of words: rows ("", "highest" for the highest digit), positions ("listed"), "words"."""
        types, value_bytes = 3 * (arithmetic.index,), arithmetic.result.itemsize
        rows = cls(1, *types, source="rows", last=True, value_bytes=value_bytes, positions=False, pointers=False, far=True)
        yield "", rows
        yield "highest", replace(rows, last=False, result="uint32", highest=True, far=False)
        yield "listed", replace(rows, source="positions", value_bytes=0)
        yield "words", replace(rows, source="words", word="uint32", pointers=True)


def _name_values(value_bytes: int, positions: bool) -> str:
    """Return the templates' word for the source of the values that a radix sort moves: "positions", "loaded", or "" for none."""
    return "" if not value_bytes else "positions" if positions else "loaded"
