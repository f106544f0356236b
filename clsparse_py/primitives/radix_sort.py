"""Stable radix sort of device arrays, a digit a pass: of keys, and of the entries of a matrix by column.

On devices with local memory of their own a pass takes tiles: each tile is put in order in local memory first, so that the entries
of a digit leave side by side. On CPU devices a pass takes a few long chunks, each with counters of its own, and many more digits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py.arithmetic import OPENCL_TYPES, name_of
from clsparse_py.device import Device, Portability
from clsparse_py.launch import Chain
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.programs import Parameters

__all__ = [
    "MOVED_TYPES",
    "RadixChunkCount",
    "RadixChunkScatter",
    "RadixChunkStarts",
    "RadixCount",
    "RadixScatter",
    "Shape",
    "enqueue_radix_sort",
    "enqueue_sort_by_key",
]

#: Values that are moved and not computed with: an unsigned word, or a pair, by their size in bytes.
MOVED_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
# Local memory that is left to the driver.
_RESERVED = 1024
# Entries that are exchanged at once, in bytes: all in parts where there are more.
_EXCHANGED = 1 << 15
# Bits of a digit, at most: counters of a work-group stay in local memory, those of a chunk near a core's cache.
_TILE_BITS = 11
_CHUNK_BITS = 22


def _prelude(index: str, value_bytes: int) -> str:
    value = f"\ntypedef {MOVED_TYPES[value_bytes]} V;" if value_bytes else ""
    return f"typedef {OPENCL_TYPES[index]} I;  // {index}: positions, offsets, items{value}"


@dataclass(frozen=True)
class RadixCount(Parameters):
    """Parameters of ``templates/primitives/radix_count.mako``.

    Attributes
    ----------
    index, word : str
        NumPy's names of the types of positions, and of what is sorted.
    bits : int
        Of a digit.
    tile, tiles : int
        Entries of a tile, and tiles that a work-group takes.
    """

    template = "primitives/radix_count"

    index: str
    word: str
    bits: int
    tile: int
    tiles: int

    @property
    @override
    def name(self) -> str:
        return f"radix_count_b{self.bits}_n{self.tile}x{self.tiles}_{self.word}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return _prelude(self.index, 0)

    @override
    def arguments(self) -> dict[str, object]:
        return {
            "work_group": self.work_group,
            "word": OPENCL_TYPES[self.word],
            "bits": self.bits,
            "tile": self.tile,
            "tiles": self.tiles,
            "unroll": 8,
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group) if work_group else None


@dataclass(frozen=True)
class RadixScatter(Parameters):
    """Parameters of ``templates/primitives/radix_scatter.mako``.

    Attributes
    ----------
    portability : Portability
        How equal digits are found among lanes.
    index, word, result : str
        NumPy's names of the types of positions, of what is sorted, and of what is written.
    bits : int
        Of a digit.
    items : int
        Entries to a work-item; a tile is ``work_group * items`` entries.
    source : str
        "rows" and "items" where words are made of keys and of rows or items; "words" where they are there.
    last : bool
        Whether what is written is the items (or whole words) alone.
    value_bytes : int
        Bytes of a value, 0 where there are none.
    positions : bool
        Whether the values are the entries' positions.
    pointers : bool
        Whether the pass tells where the entries of each key begin.
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

    @property
    def match_width(self) -> int:
        """Lanes of which equal digits are found at once."""
        if self.portability.match == "ptx" and self.work_group % 32 == 0:
            return 32
        return min(8, self.work_group & -self.work_group)

    @property
    @override
    def lane_width(self) -> int:
        return self.portability.lane_width

    @property
    def tile(self) -> int:
        """Entries that a work-group takes."""
        return self.work_group * self.items

    @property
    def pool_bytes(self) -> int:
        """Local memory that the steps of the kernel use one after another."""
        marks = 4 * (self.tile + self.work_group) if self.source == "rows" else 0
        counters = 2 * (self.work_group // self.match_width << self.bits)
        exchanged = min(self.tile * max(self.entry_bytes, self.value_bytes), _EXCHANGED)
        return -(-max(marks, counters, 2 * self.tile, exchanged) // 16) * 16

    def parts(self, size: int) -> int:
        """In how many equal parts, a power of two, a tile of entries of so many bytes is exchanged."""
        return 1 << (-(-self.tile * size // self.pool_bytes) - 1).bit_length() if size else 1

    @property
    def divides(self) -> bool:
        """Whether the entries of a work-item can be exchanged in parts."""
        return self.items % max(self.parts(self.entry_bytes), self.parts(self.value_bytes)) == 0

    @property
    def entry_bytes(self) -> int:
        """Bytes of what is exchanged of an entry beside its value."""
        return np.dtype(self.word if self.source == "words" else self.result).itemsize

    @property
    def local_bytes(self) -> int:
        """All local memory."""
        return self.pool_bytes + (np.dtype(self.index).itemsize + 2 << self.bits) + 4 * self.work_group + 16

    @property
    @override
    def name(self) -> str:
        payload = f"_v{self.value_bytes}{'p' if self.positions else ''}" if self.value_bytes else ""
        role = f"{'first' if self.first else 'next'}{'_last' if self.last else ''}{'_pointers' if self.pointers else ''}"
        types = f"{self.word}_{self.result}_{self.index}"
        return f"radix_scatter_{self.source}_{role}_b{self.bits}_x{self.items}{payload}_{types}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        match = f"{self.portability.defines}\n" + "#define MATCH_BY_PTX\n" * (self.match_width == 32)
        return f"{match}#define MATCH_WIDTH {self.match_width}\n{_prelude(self.index, self.value_bytes)}"

    @override
    def arguments(self) -> dict[str, object]:
        return {
            "work_group": self.work_group,
            "word": OPENCL_TYPES[self.word],
            "result": OPENCL_TYPES[self.result],
            "bits": self.bits,
            "items": self.items,
            "tile": self.tile,
            "match_width": self.match_width,
            "pool_bytes": self.pool_bytes,
            "entry_parts": self.parts(self.entry_bytes),
            "value_parts": self.parts(self.value_bytes),
            "source": self.source,
            "first": self.first,
            "last": self.last,
            "value": _value(self.value_bytes, self.positions),
            "pointers": self.pointers,
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        # The chunk stays what it is: both halves of a pass have to agree on it.
        group = next((group for group in range(work_group, 0, -1) if self.tile % group == 0), 0)
        portability = self.portability.at_most(lane_width)
        return replace(self, work_group=group, items=self.tile // group, portability=portability) if group else None


@dataclass(frozen=True)
class _Chunked(Parameters):
    """What the kernels for CPU devices share: chunks of adjacent entries, a work-item each.

    Attributes
    ----------
    index : str
        NumPy's name of the type of positions.
    """

    index: str

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group) if work_group else None


@dataclass(frozen=True)
class RadixChunkCount(_Chunked):
    """Parameters of ``templates/primitives/radix_chunk_count.mako``.

    Attributes
    ----------
    word : str
        NumPy's name of the type of what is sorted.
    """

    template = "primitives/radix_chunk_count"

    word: str

    @property
    @override
    def name(self) -> str:
        return f"radix_chunk_count_{self.word}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return _prelude(self.index, 0)

    @override
    def arguments(self) -> dict[str, object]:
        return {"work_group": self.work_group, "word": OPENCL_TYPES[self.word]}


@dataclass(frozen=True)
class RadixChunkStarts(_Chunked):
    """Parameters of ``templates/primitives/radix_chunk_starts.mako``.

    Attributes
    ----------
    step : str
        "sum" or "scan".
    """

    template = "primitives/radix_chunk_starts"

    step: str

    @property
    @override
    def name(self) -> str:
        return f"radix_chunk_starts_{self.step}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return _prelude(self.index, 0)

    @override
    def arguments(self) -> dict[str, object]:
        return {"work_group": self.work_group, "step": self.step}


@dataclass(frozen=True)
class RadixChunkScatter(_Chunked):
    """Parameters of ``templates/primitives/radix_chunk_scatter.mako``; as in `RadixScatter`."""

    template = "primitives/radix_chunk_scatter"

    word: str
    result: str
    source: str
    last: bool
    value_bytes: int
    positions: bool
    pointers: bool

    @property
    @override
    def name(self) -> str:
        payload = f"_v{self.value_bytes}{'p' if self.positions else ''}" if self.value_bytes else ""
        role = f"{self.source}{'_last' if self.last else ''}{'_pointers' if self.pointers else ''}"
        return f"radix_chunk_scatter_{role}{payload}_{self.word}_{self.result}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return _prelude(self.index, self.value_bytes)

    @override
    def arguments(self) -> dict[str, object]:
        return {
            "work_group": self.work_group,
            "word": OPENCL_TYPES[self.word],
            "result": OPENCL_TYPES[self.result],
            "source": self.source,
            "last": self.last,
            "value": _value(self.value_bytes, self.positions),
            "pointers": self.pointers,
        }


def _value(value_bytes: int, positions: bool) -> str:
    return "" if not value_bytes else "positions" if positions else "given"


@dataclass(frozen=True)
class Shape:
    """How a radix sort is cut: what the tests vary, and tuning may.

    Attributes
    ----------
    chunked : bool
        Whether a pass takes chunks, a work-item each, or tiles, a work-group each.
    work_group : int
        Of all kernels.
    items : int
        Entries to a work-item in a tile.
    bits : int
        Of a digit, at most.
    chunks : int
        Chunks of a pass, at most.
    """

    chunked: bool
    work_group: int
    items: int
    bits: int
    chunks: int

    @classmethod
    def defaults(cls, device: Device, n: int) -> tuple[Shape, ...]:
        """Return the shapes for ``n`` entries on a device; the one that makes the fewest passes is best, else the first."""
        if not device.is_cpu:
            # Tiles as large as their counters allow: the longer are the runs that leave side by side.
            return tuple(cls(False, min(group, device.max_work_group), 16, _TILE_BITS, 0) for group in (512, 256))
        # A few counters to an entry at most: more would take longer to scan than another pass takes.
        bits = min(max((8 * n // device.compute_units).bit_length(), 8), _CHUNK_BITS)
        return (cls(True, 1, 1, bits, device.compute_units),)

    @functools.lru_cache(maxsize=256)  # noqa: B019 - a shape is a small value, and the same few are asked for again and again
    def legal(self, device: Device, index: str, value_bytes: int, *, pointers: bool, word_bytes: int) -> Shape:
        """Return the nearest shape whose kernels fit a device's local memory."""
        if self.chunked:
            return replace(self, work_group=min(self.work_group, device.max_work_group))
        group = min(self.work_group, device.max_work_group)
        # Fewer digits to a pass, down to a number that makes few passes, before fewer entries to a work-item.
        for items, bits in _cuts(self.items, self.bits):
            widest = RadixScatter(
                group, device.portability, index, f"uint{8 * word_bytes}", f"uint{8 * word_bytes}", bits, items,
                "rows", False, False, value_bytes, False, pointers,
            )  # fmt: skip
            if widest.local_bytes + _RESERVED <= device.local_memory and widest.tile < 1 << 15 and widest.divides:
                return replace(self, work_group=group, items=items, bits=bits)
        raise ValueError(f"radix sort: {device.name} has {device.local_memory} bytes of local memory, too little for a tile")


def _cuts(items: int, bits: int) -> Iterator[tuple[int, int]]:
    """Iterate over items to a work-item and bits of a digit, what is asked for first."""
    for fewest in (8, 1):
        for halvings in range(items.bit_length()):
            yield from ((items >> halvings, fewer) for fewer in range(bits, fewest - 1, -1))


def _seen_as(keys: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return an array whose entries are read as another type of the same size."""
    return cl_array.Array(keys.queue, keys.shape, dtype, data=keys.base_data, events=keys.events)


def _digits(bits: int, limit: int) -> list[int]:
    """Return the bits of each pass's digit, as equal as can be."""
    passes = -(-bits // limit)
    return [bits // passes + (i < bits % passes) for i in range(passes)]


@dataclass
class _Pass:
    """One pass: what goes in, and what comes out."""

    n: int
    shift: int
    bits: int
    flip: int
    source: str
    first: bool
    last: bool
    words: cl_array.Array
    sorted: cl_array.Array
    making: tuple[Any, ...]  # arguments that words are made of
    kept: int
    values: cl_array.Array | None  # None where there are none, and where they are the entries' positions
    sorted_values: cl_array.Array | None
    n_lower: int
    lower: cl_array.Array | None
    n_keys: int
    pointers: cl_array.Array | None

    @property
    def value_bytes(self) -> int:
        return 0 if self.sorted_values is None else self.sorted_values.dtype.itemsize

    @property
    def positions(self) -> bool:
        return self.sorted_values is not None and self.values is None

    def arguments(self, *, lower: bool) -> list[Any]:
        """Return the arguments after the counts, in the kernels' order; ``lower`` where the kernel asks for lower keys."""
        found: list[Any] = list(self.making)
        if self.values is not None:
            found.append(self.values)
        if self.pointers is not None:
            if lower:
                found += [np.int64(self.n_lower), self.lower]
            found += [np.int64(self.n_keys), self.pointers]
        if self.last and self.source == "words":
            found.append(np.uint64(self.kept))
        found.append(self.sorted)
        if self.sorted_values is not None:
            found.append(self.sorted_values)
        return found


def _enqueue_tiles(chain: Chain, each: _Pass, shape: Shape, index: np.dtype[Any]) -> None:
    types = name_of(index), name_of(each.words.dtype)
    wanted = RadixScatter(
        shape.work_group, chain.device.portability, *types, name_of(each.sorted.dtype), bits=each.bits, items=shape.items,
        source=each.source, first=each.first, last=each.last, value_bytes=each.value_bytes, positions=each.positions,
        pointers=each.pointers is not None,
    )  # fmt: skip
    scatter, parameters = chain.build(wanted)
    tiles = -(-each.n // parameters.tile)
    # Counts of adjacent tiles leave together, as long as that leaves work-groups enough.
    together = next(size for size in (8, 4, 2, 1) if size == 1 or tiles >= 4 * size * chain.device.compute_units)
    while together > 1 and 4 * together << each.bits > chain.device.local_memory - _RESERVED:
        together //= 2
    count, _ = chain.build(RadixCount(shape.work_group, *types, each.bits, parameters.tile, together))
    counts = chain.scratch(tiles << each.bits, index)
    n, digit = np.uint64(each.n), (np.uint32(each.shift), np.uint64(each.flip), each.words, counts)
    chain.launch(count, -(-tiles // together), n, np.uint64(tiles), *digit)
    enqueue_scan(chain, counts, counts, tiles << each.bits, kind="exclusive")
    chain.launch(scatter, tiles, n, *digit, *each.arguments(lower=not each.first))


def _enqueue_chunks(chain: Chain, each: _Pass, shape: Shape, index: np.dtype[Any]) -> None:
    group, word = shape.work_group, name_of(each.words.dtype)
    count, _ = chain.build(RadixChunkCount(group, name_of(index), word))
    sum_ranges, _ = chain.build(RadixChunkStarts(group, name_of(index), "sum"))
    scan, _ = chain.build(RadixChunkStarts(group, name_of(index), "scan"))
    tells = each.pointers is not None and not each.first
    scatter, _ = chain.build(
        RadixChunkScatter(
            group,
            name_of(index),
            word,
            name_of(each.sorted.dtype),
            each.source,
            each.last,
            each.value_bytes,
            each.positions,
            tells,
        )
    )
    chunks = max(1, min(shape.chunks, each.n))
    groups = -(-chunks // group)
    ranges = chain.device.compute_units * 4
    counts, sums = chain.scratch(chunks << each.bits, index), chain.scratch(ranges, index)
    bits, n_chunks = np.uint32(each.bits), np.uint64(chunks)
    common = np.uint64(each.n), np.uint64(-(-each.n // chunks)), n_chunks, np.uint32(each.shift), bits, np.uint64(each.flip)
    chain.launch(count, groups, *common, each.words, counts)
    range_groups = -(-ranges // group)
    chain.launch(sum_ranges, range_groups, n_chunks, bits, np.uint64(ranges), counts, sums)
    # The first pass's keys are its digits: where they begin is where the scan says.
    known = each.first and each.pointers is not None
    told = np.uint64(each.n_keys if known else 0), each.pointers if known else sums
    chain.launch(scan, range_groups, n_chunks, bits, np.uint64(ranges), counts, sums, *told)
    arguments = replace(each, pointers=each.pointers if tells else None).arguments(lower=True)
    chain.launch(scatter, groups, *common, each.words, counts, *arguments)


def _enqueue_pass(chain: Chain, each: _Pass, shape: Shape, index: np.dtype[Any]) -> None:
    (_enqueue_chunks if shape.chunked else _enqueue_tiles)(chain, each, shape, index)


def enqueue_sort_by_key(
    chain: Chain,
    keys: cl_array.Array,
    n: int,
    n_keys: int,
    *,
    n_items: int,
    sorted_items: cl_array.Array,
    indptr: cl_array.Array | None = None,
    items: cl_array.Array | None = None,
    values: cl_array.Array | None = None,
    sorted_values: cl_array.Array | None = None,
    pointers: cl_array.Array | None = None,
    shape: Shape | None = None,
) -> None:
    """Enqueue a stable sort of entries by key: an entry has a key, an item and maybe a value. Nothing is checked.

    Parameters
    ----------
    chain : Chain
        Where the launches go.
    keys : pyopencl.array.Array
        n keys in [0, n_keys), of the index type: int32 or int64.
    n, n_keys, n_items : int
        Entries; what keys, and items, are below.
    sorted_items : pyopencl.array.Array
        Takes the items, of the index type.
    indptr : pyopencl.array.Array, optional
        n_items + 1 offsets: the item of an entry is the row that it lies in. Else ``items`` gives them.
    items : pyopencl.array.Array, optional
        n items of the index type.
    values : pyopencl.array.Array, optional
        n values of any dtype. Without them ``sorted_values``, of the index type, takes the entries' positions.
    sorted_values : pyopencl.array.Array, optional
        Takes the values, or the positions: the permutation.
    pointers : pyopencl.array.Array, optional
        Takes n_keys + 1 offsets of the index type: where the entries of each key begin.
    shape : Shape, optional
        How it is cut; by default `Shape.defaults`.
    """
    index = np.dtype(keys.dtype)
    if not n:
        if pointers is not None:
            chain.fill(pointers, 0, n_keys + 1)
        return
    value_bytes = 0 if sorted_values is None else sorted_values.dtype.itemsize
    total, item_bits = max(1, (n_keys - 1).bit_length()), max(1, (n_items - 1).bit_length())
    wanted = (shape,) if shape else Shape.defaults(chain.device, n)
    for word_bytes in (4, 8):
        cuts = (
            each.legal(chain.device, name_of(index), value_bytes, pointers=pointers is not None, word_bytes=word_bytes)
            for each in wanted
        )
        cut = min(cuts, key=lambda each: -(-total // each.bits))
        digits = _digits(total, cut.bits)
        if total - digits[0] + item_bits <= 8 * word_bytes or len(digits) == 1:
            break
    else:
        raise ValueError(f"keys and items: {n_keys} keys and {n_items} items do not fit in 64 bits")
    word = np.dtype(f"uint{8 * word_bytes}")
    source, making = ("rows", (np.int64(n_items), indptr)) if items is None else ("items", (items,))
    words, moved, lower, n_lower, shift = keys, values, None, 1, 0
    for i, bits in enumerate(digits):
        first, last = i == 0, i + 1 == len(digits)
        target = sorted_items if last else chain.scratch(n, word)
        target_values = sorted_values if last or sorted_values is None else chain.scratch(n, sorted_values.dtype)
        told = pointers if last or pointers is None else chain.scratch((n_lower << bits) + 1, index)
        each = _Pass(
            n=n, shift=shift, bits=bits, flip=0, source=source if first else "words", first=first, last=last, words=words,
            sorted=target, making=(np.uint32(item_bits), *making) if first else (), kept=(1 << item_bits) - 1, values=moved,
            sorted_values=target_values, n_lower=n_lower, lower=lower, n_keys=n_keys if last else n_lower << bits, pointers=told,
        )  # fmt: skip
        _enqueue_pass(chain, each, cut, index)
        words, moved, lower, n_lower = target, target_values, told, n_lower << bits
        shift = item_bits if first else shift + bits


def enqueue_radix_sort(
    chain: Chain,
    keys: cl_array.Array,
    n: int,
    *,
    bits: tuple[int, int],
    sorted_keys: cl_array.Array,
    values: cl_array.Array | None = None,
    sorted_values: cl_array.Array | None = None,
    shape: Shape | None = None,
) -> None:
    """Enqueue a stable sort of integers by the bits from ``bits[0]`` up to, not including, ``bits[1]``. Nothing is checked.

    Parameters
    ----------
    chain : Chain
        Where the launches go.
    keys : pyopencl.array.Array
        n integers of 32 or 64 bits; not ``sorted_keys``.
    n : int
        Entries.
    bits : tuple of int
        The lowest bit, and the one above the highest.
    sorted_keys : pyopencl.array.Array
        Takes the keys.
    values, sorted_values : pyopencl.array.Array, optional
        n values of any dtype, moved with their keys.
    shape : Shape, optional
        How it is cut; by default `Shape.defaults`.
    """
    if not n:
        return
    low, high = bits
    if low == high:
        chain.copy(sorted_keys, keys, n)
        if values is not None and sorted_values is not None:
            chain.copy(sorted_values, values, n)
        return
    index = np.dtype(np.int64 if n > np.iinfo(np.int32).max else np.int32)
    word = np.dtype(f"uint{8 * keys.dtype.itemsize}")
    value_bytes = 0 if sorted_values is None else sorted_values.dtype.itemsize
    cut = (shape or Shape.defaults(chain.device, n)[0]).legal(
        chain.device, name_of(index), value_bytes, pointers=False, word_bytes=word.itemsize
    )
    flip = 1 << 8 * word.itemsize - 1 if keys.dtype.kind == "i" else 0
    words, moved, shift = _seen_as(keys, word), values, low
    digits = _digits(high - low, cut.bits)
    for i, digit in enumerate(digits):
        last = i + 1 == len(digits)
        target = _seen_as(sorted_keys, word) if last else chain.scratch(n, word)
        target_values = sorted_values if last or sorted_values is None else chain.scratch(n, sorted_values.dtype)
        each = _Pass(
            n=n, shift=shift, bits=digit, flip=flip, source="words", first=i == 0, last=last, words=words, sorted=target,
            making=(), kept=(1 << 8 * word.itemsize) - 1, values=moved, sorted_values=target_values, n_lower=1, lower=None,
            n_keys=0, pointers=None,
        )  # fmt: skip
        _enqueue_pass(chain, each, cut, index)
        words, moved, shift = target, target_values, shift + digit
