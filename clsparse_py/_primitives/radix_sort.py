"""Stable radix sort of device arrays, a digit a pass: of keys, and of the entries of a matrix by column.

On devices with local memory of their own a pass takes tiles: a tile is put in order in local memory first, so that its entries of
a digit leave side by side. On CPU devices a pass takes a few long chunks with counters of their own, and many more digits.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.declaration import Examples, kernels
from clsparse_py._build.plain import door
from clsparse_py._device.device import RESERVED, Device
from clsparse_py._ground.index_types import index_for
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._primitives import arguments
from clsparse_py._primitives.radix_kernels import (
    RadixChunkCount,
    RadixChunkScatter,
    RadixChunkStarts,
    RadixCount,
    RadixScatter,
    RadixStarts,
)
from clsparse_py._primitives.thresholds import Thresholds
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Pair

__all__ = ["Shape", "enqueue_radix_sort", "enqueue_sort_by_key", "radix_sort", "scratch_bytes"]


@dataclass(frozen=True)
class Shape:
    """The shape of a radix sort: tests vary it, and tuning may.

    Attributes
    ----------
    chunked : bool
        Whether a pass takes chunks, which are a work-item's, or tiles, which are a work-group's.
    work_group : int
        Work-items of a work-group of all kernels.
    items : int
        Entries to a work-item in a tile.
    bits : int
        Most bits of a digit.
    chunks : int
        Most chunks of a pass.
    counts : int
        Most counts that all work-groups together read to add up the counts of all tiles, which saves a launch.
    """

    chunked: bool
    work_group: int
    items: int
    bits: int
    chunks: int
    counts: int = 1 << 22

    @classmethod
    def defaults(cls, device: Device, n: int) -> tuple[Shape, ...]:
        """Return the default shapes of a radix sort of ``n`` entries; the best is the first of those with the fewest passes."""
        most = Thresholds.of(device).digit_bits
        if not device.lanes_are_loops:
            # Tiles of a radix sort are as large as their digit counters allow: more entries of a digit leave side by side.
            return tuple(cls(False, min(group, device.max_work_group), 16, most, 0) for group in (512, 256))
        # A radix sort's pass has few digit counters per entry: to scan more counters takes longer than another pass.
        bits = min(max((8 * n // device.compute_units).bit_length(), 8), most)
        return (cls(True, 1, 1, bits, device.compute_units),)

    def narrow(self, device: Device, bits: int, n: int, value_bytes: int) -> Shape:
        """Return this shape for digits of ``bits`` bits: few bits get half or a quarter of the tile, unless that adds a launch.

        Half a tile has runs of four entries of a digit then, and more tiles are resident at a time; but their counts are soon too
        many for every work-group to add them up.
        """
        if self.items <= 8 or bits >= Thresholds.of(device).digit_bits - 1:
            return self
        half = replace(self, items=self.items // 2)
        if half.is_few(n, bits):
            return half
        if self.is_few(n, bits):
            return self
        if value_bytes:
            return half
        return replace(half, work_group=max(self.work_group // 2, min(self.work_group, 256)))

    def is_few(self, n: int, bits: int) -> bool:
        """Return whether the tiles of ``n`` entries are so few that each work-group adds up the digit counts of all tiles."""
        tiles = -(-n // (self.work_group * self.items))
        return tiles * tiles << bits <= self.counts

    @functools.lru_cache(maxsize=256)  # noqa: B019 - a shape is a small value, and the same few are asked for again and again
    def legal(self, device: Device, index: str, value_bytes: int, *, pointers: bool, word_bytes: int) -> Shape:
        """Return the shape of a radix sort that is nearest to this shape and whose kernels fit a device's local memory."""
        if self.chunked:
            return replace(self, work_group=min(self.work_group, device.max_work_group))
        if device.is_plain:
            return replace(self, chunked=True, work_group=1, items=1, chunks=device.compute_units)
        group = min(self.work_group, device.max_work_group)
        # To fit local memory, the bits of a radix sort's digit are reduced first (8 at least), then the entries to a work-item.
        # Each pass of the radix sort writes words; the last pass writes items of the index type.
        widest_result = f"uint{8 * max(word_bytes, np.dtype(index).itemsize)}"
        widest = (
            RadixScatter(
                group, device.portability, index, f"uint{8 * word_bytes}", widest_result, bits, items,
                "rows", False, False, value_bytes, False, pointers,
            )
            for items, bits in _cuts(self.items, self.bits)
        )  # fmt: skip

        def needed(record: RadixScatter) -> int:
            """Return the bytes of local memory that a record's kernel takes; for an illegal record more than any device has."""
            return record.local_memory if record.tile < 1 << 15 and record.divides else sys.maxsize

        fitted = device.fitting(widest, needed, RESERVED)
        if needed(fitted) + RESERVED <= device.local_memory:
            return replace(self, work_group=group, items=fitted.items, bits=fitted.bits)
        raise ValueError(f"radix sort: {device.name} has {device.local_memory} bytes of local memory, too little for a tile")


def _cuts(items: int, bits: int) -> Iterator[tuple[int, int]]:
    """Iterate over pairs (entries to a work-item, bits of a digit) for a radix sort, from the requested pair down."""
    for fewest in (8, 1):
        for halvings in range(items.bit_length()):
            yield from ((items >> halvings, fewer) for fewer in range(bits, fewest - 1, -1))


def _digits(bits: int, limit: int) -> list[int]:
    """Return the bits of the digit of each pass of a sort by ``bits`` bits: as equal as can be, and ``limit`` at most."""
    passes = -(-bits // limit)
    return [bits // passes + (i < bits % passes) for i in range(passes)]


class _Pass(NamedTuple):
    """The input and the output of a pass of a radix sort."""

    n: int
    shift: int
    bits: int
    flip: int
    source: str
    first: bool
    last: bool
    words: cl_array.Array
    sorted: cl_array.Array
    making: tuple[Any, ...]  # arguments by which the kernel makes words
    kept: int
    values: cl_array.Array | None  # None without values, and if the entries' positions are the values
    sorted_values: cl_array.Array | None
    n_lower: int
    lower: cl_array.Array | None
    n_keys: int
    pointers: cl_array.Array | None

    @property
    def word(self) -> str:
        """NumPy's name of the type as which the pass of a radix sort reads words: unsigned, also for keys of a signed type."""
        return f"uint{8 * self.words.dtype.itemsize}"

    @property
    def value_bytes(self) -> int:
        """Bytes of a value that the pass of a radix sort moves with its key; 0 without values."""
        return 0 if self.sorted_values is None else self.sorted_values.dtype.itemsize

    @property
    def positions(self) -> bool:
        """Whether the pass of a radix sort moves the positions of entries in place of values."""
        return self.sorted_values is not None and self.values is None

    def arguments(self, *, lower: bool) -> list[Any]:
        """Return the scattering kernel's arguments that follow the digit counts.

        If the pass writes pointers, ``lower`` adds the earlier pass's pointers.
        """
        arguments: list[Any] = list(self.making)
        if self.values is not None:
            arguments.append(self.values)
        if self.pointers is not None:
            if lower:
                arguments += [np.int64(self.n_lower), self.lower]
            arguments += [np.int64(self.n_keys), self.pointers]
        if self.last and self.source == "words":
            arguments.append(np.uint64(self.kept))
        arguments.append(self.sorted)
        if self.sorted_values is not None:
            arguments.append(self.sorted_values)
        return arguments


#: `RadixScatter` with its records kept: making a record takes longer than launching its kernel.
_scatter = functools.lru_cache(maxsize=256)(RadixScatter)
#: `RadixCount` with its records kept: making a record takes longer than launching its kernel.
_count = functools.lru_cache(maxsize=256)(RadixCount)
#: `RadixStarts` with its records kept: making a record takes longer than launching its kernel.
_starts = functools.lru_cache(maxsize=256)(RadixStarts)


def _tiles_per_group(device: Device, tiles: int, bits: int) -> int:
    """Return how many adjacent tiles' digits a work-group counts: the most, up to 8, that fit and leave 4 groups to a core."""
    sizes = (size for size in (8, 4, 2, 1) if size == 1 or tiles >= 4 * size * device.compute_units)
    return device.fitting(sizes, lambda size: 4 * size << bits, RESERVED)


def _build_tiled(chain: Chain, radix_pass: _Pass, shape: Shape, index: np.dtype[Any]) -> Callable[[], None]:
    """Build the kernels of a radix sort's pass by tiles, as on GPUs; return a function that enqueues these kernels."""
    types = name_of(index), radix_pass.word
    is_few = shape.is_few(radix_pass.n, radix_pass.bits)
    scatter, parameters = chain.build(
        _scatter(
            shape.work_group, chain.device.portability, *types, name_of(radix_pass.sorted.dtype), radix_pass.bits,
            shape.items, radix_pass.source, radix_pass.first, radix_pass.last, radix_pass.value_bytes, radix_pass.positions,
            radix_pass.pointers is not None, few=is_few,
        )
    )  # fmt: skip
    tiles = -(-radix_pass.n // parameters.tile)
    together = 1 if is_few else _tiles_per_group(chain.device, tiles, radix_pass.bits)
    count, _ = chain.build(_count(shape.work_group, *types))
    # The kernel that scans digit counts has a barrier in a loop: on CPU devices its work-group is one work-item (quirk 4).
    group = 1 if chain.device.lanes_are_loops else min(Thresholds.of(chain.device).starts_group, chain.device.max_work_group)
    starts = None if is_few else chain.build(_starts(group, chain.device.portability, types[0], radix_pass.bits))[0]

    def enqueue() -> None:
        """Enqueue a radix sort's pass: counts of digits by tile, the counts' scan unless tiles are few, the move of entries."""
        counts = chain.scratch(tiles + 1 << radix_pass.bits, index)  # the totals of digits stand behind the counts of tiles
        n, n_tiles = np.uint64(radix_pass.n), np.uint64(tiles)
        digit = np.uint32(radix_pass.shift), np.uint64(radix_pass.flip), radix_pass.words, counts
        sizes = np.uint32(radix_pass.bits), np.uint64(parameters.tile), np.uint32(together.bit_length() - 1), np.uint32(is_few)
        room = cl.LocalMemory(4 * together << radix_pass.bits)
        chain.launch(count, -(-tiles // together), n, n_tiles, *sizes, *digit, room)
        if starts is not None:
            chain.launch(starts, 1 << radix_pass.bits, n_tiles, counts)
        chain.launch(scatter, tiles, n, *digit, *radix_pass.arguments(lower=not radix_pass.first))

    return enqueue


def _count_ranges(device: Device) -> int:
    """Return the number of ranges of digits, each scanned by a work-item, into which the scan of chunks' digit counts is cut."""
    return device.compute_units * 4


def _build_chunked(chain: Chain, radix_pass: _Pass, shape: Shape, index: np.dtype[Any]) -> Callable[[], None]:
    """Build the kernels of a radix sort's pass by chunks, as on CPU devices; return a function that enqueues these kernels."""
    group, word = shape.work_group, radix_pass.word
    count, _ = chain.build(RadixChunkCount(group, name_of(index), word))
    starts, _ = chain.build(RadixChunkStarts(group, name_of(index)))
    tells = radix_pass.pointers is not None and not radix_pass.first
    scattered = name_of(radix_pass.sorted.dtype), radix_pass.source, radix_pass.last, radix_pass.value_bytes, radix_pass.positions
    is_far = radix_pass.bits >= Thresholds.of(chain.device).far_bits
    scatter, _ = chain.build(RadixChunkScatter(group, name_of(index), word, *scattered, tells, far=is_far))

    def enqueue() -> None:
        """Enqueue the kernels of a radix sort's pass: counts of digits by chunk, the scan of the counts, the move of entries."""
        per_chunk = -(-radix_pass.n // min(shape.chunks, radix_pass.n))
        chunks = -(-radix_pass.n // per_chunk)  # no chunk is empty: the last writes the pointers of keys without later entries
        groups = -(-chunks // group)
        ranges = _count_ranges(chain.device)
        counts, sums = chain.scratch(chunks << radix_pass.bits, index), chain.scratch(ranges, index)
        bits, n_chunks = np.uint32(radix_pass.bits), np.uint64(chunks)
        common = (
            np.uint64(radix_pass.n),
            np.uint64(per_chunk),
            n_chunks,
            np.uint32(radix_pass.shift),
            bits,
            np.uint64(radix_pass.flip),
        )
        chain.launch(count, groups, *common, radix_pass.words, counts)
        # In a radix sort's first pass keys are digits: the scan of digit counts writes the pointers to the keys' first entries.
        from_pointers = radix_pass.first and radix_pass.pointers is not None
        key_ends = np.uint64(radix_pass.n_keys if from_pointers else 0), radix_pass.pointers if from_pointers else sums
        for scans in (0, 1):
            of_digits = n_chunks, bits, np.uint64(ranges), counts, sums, *key_ends, np.uint32(scans)
            chain.launch(starts, -(-ranges // group), *of_digits)
        arguments = radix_pass._replace(pointers=radix_pass.pointers if tells else None).arguments(lower=True)
        chain.launch(scatter, groups, *common, radix_pass.words, counts, *arguments)

    return enqueue


def _build_pass(chain: Chain, radix_pass: _Pass, shape: Shape, index: np.dtype[Any]) -> Callable[[], None]:
    """Build the kernels of a pass of a radix sort; return a function that enqueues these kernels."""
    return (_build_chunked if shape.chunked else _build_tiled)(chain, radix_pass, shape, index)


@functools.lru_cache(maxsize=256)  # plans are kept, as the device waits while a list of rows is planned
def _plan_sort_by_key(
    device: Device, shape: Shape | None, n: int, n_keys: int, n_items: int, index: str, value_bytes: int, pointers: bool
) -> tuple[Shape, list[int], np.dtype[Any]]:
    """Return the shape of a sort by key, the bits of the digit of each pass, and the dtype of the words that passes sort."""
    total, item_bits = max(1, (n_keys - 1).bit_length()), max(1, (n_items - 1).bit_length())
    shapes = (shape,) if shape else Shape.defaults(device, n)
    for word_bytes in (4, 8):
        cuts = (candidate.legal(device, index, value_bytes, pointers=pointers, word_bytes=word_bytes) for candidate in shapes)
        cut = min(cuts, key=lambda candidate: -(-total // candidate.bits))
        digits = _digits(total, cut.bits)
        if total - digits[0] + item_bits <= 8 * word_bytes or len(digits) == 1:
            return cut if shape else cut.narrow(device, digits[0], n, value_bytes), digits, np.dtype(f"uint{8 * word_bytes}")
    raise ValueError(f"keys and items: {n_keys} keys and {n_items} items do not fit in 64 bits")


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
        The number of entries; the bounds of keys and of items.
    sorted_items : pyopencl.array.Array
        The sorted items, of the index type.
    indptr : pyopencl.array.Array, optional
        n_items + 1 offsets, by which the item of an entry is its row. Else ``items`` are given.
    items : pyopencl.array.Array, optional
        n items of the index type. Without ``indptr`` and ``items`` an entry's item is its position, and ``n_items`` is n.
    values : pyopencl.array.Array, optional
        n values of any dtype. Without them ``sorted_values``, of the index type, takes the entries' positions.
    sorted_values : pyopencl.array.Array, optional
        The sorted values, or the sorted positions: the permutation.
    pointers : pyopencl.array.Array, optional
        The first sorted entries of keys, and n: n_keys + 1 offsets of the index type.
    shape : Shape, optional
        The shape of the sort; by default one of `Shape.defaults`.
    """
    index = np.dtype(keys.dtype)
    if not n:
        if pointers is not None:
            chain.fill(pointers, 0, n_keys + 1)
        return
    value_bytes = 0 if sorted_values is None else sorted_values.dtype.itemsize
    item_bits = max(1, (n_items - 1).bit_length())
    cut, digits, word = _plan_sort_by_key(
        chain.device, shape, n, n_keys, n_items, name_of(index), value_bytes, pointers is not None
    )
    source: str = "positions" if items is None else "items"
    making: tuple[Any, ...] = () if items is None else (items,)
    if indptr is not None:
        source, making = "rows", (np.int64(n_items), indptr)
    words, moved_values, lower, n_lower, shift = keys, values, None, 1, 0
    for i, bits in enumerate(digits):
        first, last = i == 0, i + 1 == len(digits)
        target = sorted_items if last else chain.scratch(n, word)
        target_values = sorted_values if last or sorted_values is None else chain.scratch(n, sorted_values.dtype)
        pass_pointers = pointers if last or pointers is None else chain.scratch((n_lower << bits) + 1, index)
        radix_pass = _Pass(
            n=n, shift=shift, bits=bits, flip=0, source=source if first else "words", first=first, last=last, words=words,
            sorted=target, making=(np.uint32(item_bits), *making) if first else (), kept=(1 << item_bits) - 1,
            values=moved_values, sorted_values=target_values, n_lower=n_lower, lower=lower,
            n_keys=n_keys if last else n_lower << bits, pointers=pass_pointers,
        )  # fmt: skip
        _build_pass(chain, radix_pass, cut, index)()
        words, moved_values, lower, n_lower = target, target_values, pass_pointers, n_lower << bits
        shift = item_bits if first else shift + bits


def enqueue_radix_sort(
    chain: Chain,
    keys: cl_array.Array,
    sorted_keys: cl_array.Array,
    values: cl_array.Array | None,
    sorted_values: cl_array.Array | None,
    n: int,
    bits: tuple[int, int],
    *,
    overwrites: bool = False,
    shape: Shape | None = None,
) -> None:
    """Enqueue a stable sort of integers by the bits from ``bits[0]`` up to, not including, ``bits[1]``. Nothing is checked.

    Parameters
    ----------
    chain : Chain
        Where the launches go.
    keys : pyopencl.array.Array
        n integers of 32 or 64 bits; not ``sorted_keys``.
    sorted_keys : pyopencl.array.Array
        The sorted keys.
    values, sorted_values : pyopencl.array.Array or None
        n values of any dtype, moved with their keys.
    n : int
        Entries.
    bits : tuple of int
        The lowest bit that counts, and the bit above the highest.
    overwrites : bool
        Whether ``keys`` and ``values`` may be overwritten: then passes alternate between two arrays, and take less memory.
    shape : Shape, optional
        The shape of the sort; by default one of `Shape.defaults`.
    """
    if not n:
        return
    low, high = bits
    if low == high:
        chain.copy(sorted_keys, keys, n)
        if values is not None and sorted_values is not None:
            chain.copy(sorted_values, values, n)
        return
    word = np.dtype(f"uint{8 * keys.dtype.itemsize}")
    value_bytes = 0 if sorted_values is None else sorted_values.dtype.itemsize
    index, cut, digits = _plan_sort(chain.device, n, high - low, word.itemsize, value_bytes, shape)
    flip = 1 << 8 * word.itemsize - 1 if keys.dtype.kind == "i" else 0
    words, moved_values, shift = chain.view_as(keys, word), values, low
    inputs, results = (words, values), (chain.view_as(sorted_keys, word), sorted_values)

    def allocate_pass() -> tuple[cl_array.Array, cl_array.Array | None]:
        """Return scratch arrays for the keys and the values that a radix sort's pass writes; None without values."""
        return chain.scratch(n, word), None if sorted_values is None else chain.scratch(n, sorted_values.dtype)

    # Passes of a radix sort that overwrite their input alternate between two arrays; the last pass writes the array of results.
    alternate = None if not overwrites else results if len(digits) % 2 else allocate_pass()
    # All kernels of the radix sort are built before a pass overwrites its input.
    passes: list[Callable[[], None]] = []
    for i, digit in enumerate(digits):
        last = i + 1 == len(digits)
        target, target_values = results if last else allocate_pass() if alternate is None else inputs if i % 2 else alternate
        radix_pass = _Pass(
            n=n, shift=shift, bits=digit, flip=flip, source="words", first=i == 0, last=last, words=words, sorted=target,
            making=(), kept=(1 << 8 * word.itemsize) - 1, values=moved_values, sorted_values=target_values, n_lower=1, lower=None,
            n_keys=0, pointers=None,
        )  # fmt: skip
        enqueue = _build_pass(chain, radix_pass, cut, index)
        if overwrites:
            passes.append(enqueue)
        else:
            enqueue()
        del radix_pass, enqueue  # they keep the input of the pass alive, whose memory the next pass may use
        words, moved_values, shift = target, target_values, shift + digit
    for enqueue in passes:
        enqueue()


def _plan_sort(
    device: Device, n: int, bits: int, word_bytes: int, value_bytes: int, shape: Shape | None
) -> tuple[np.dtype[Any], Shape, list[int]]:
    """Return, for a sort by ``bits`` bits, the dtype of counters, the shape of the sort, and the bits of each pass's digit."""
    index = index_for(n)
    requested = shape or Shape.defaults(device, n)[0]
    cut = requested.legal(device, name_of(index), value_bytes, pointers=False, word_bytes=word_bytes)
    digits = _digits(bits, cut.bits)
    return index, cut if shape else cut.narrow(device, digits[0], n, value_bytes), digits


def scratch_bytes(device: Device, n: int, bits: int, key_bytes: int, value_bytes: int) -> int:
    """Return the most bytes of scratch memory that `enqueue_radix_sort` takes if it overwrites its input."""
    if not n or not bits:
        return 0
    index, cut, digits = _plan_sort(device, n, bits, key_bytes, value_bytes, None)
    parts = min(cut.chunks, n) if cut.chunked else -(-n // (cut.work_group * cut.items))
    # Scratch memory holds the digit counters of each tile or chunk, and the totals of digits or of ranges of digits.
    counters = (parts << digits[0]) + max(1 << digits[0], _count_ranges(device))
    return (n * (key_bytes + value_bytes) if len(digits) % 2 == 0 else 0) + counters * index.itemsize


@overload
def radix_sort(
    keys: cl_array.Array,
    values: None = ...,
    *,
    bits: tuple[int, int] | None = ...,
    out: cl_array.Array | None = ...,
) -> cl_array.Array: ...


@overload
def radix_sort(
    keys: cl_array.Array,
    values: cl_array.Array,
    *,
    bits: tuple[int, int] | None = ...,
    out: Pair | None = ...,
) -> Pair: ...


@door()
def radix_sort(
    keys: cl_array.Array,
    values: cl_array.Array | None = None,
    *,
    bits: tuple[int, int] | None = None,
    out: cl_array.Array | Pair | None = None,
) -> cl_array.Array | Pair:
    """Return integers, the keys, in stable ascending order; with ``values``, which move with their keys, the pair (keys, values).

    Parameters
    ----------
    keys : pyopencl.array.Array
        Shape (n,); int32, uint32, int64 or uint64.
    values : pyopencl.array.Array, optional
        Shape (n,); any supported dtype.
    bits : tuple of int, optional
        (low, high): only the bits from ``low`` up to, not including, ``high`` count; each about ten of them take a pass over the
        keys. By default all bits. The sign bit counts as one that is set in keys that are not negative.
    out : pyopencl.array.Array, or a tuple of two, optional
        Where the result goes: of the shape and dtype of ``keys``, with values a tuple (keys, values). It may be the arguments
        themselves.

    Returns
    -------
    pyopencl.array.Array, or a tuple of two
        The keys in ascending order; with values, (keys, values). Keys that are equal in these bits keep their order.

    Raises
    ------
    TypeError
        A dtype is not supported, an argument is no device array, or ``bits`` are not two integers.
    ValueError
        ``values`` or ``out`` has another length, or the keys do not have these bits.

    Notes
    -----
    Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs", which the expand, sort and contract
    method of Dalton et al., "Optimizing sparse matrix-matrix multiplication for the GPU", builds on.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> keys = cl_array.to_device(sp.default_queue(), np.array([3, 1, 2], np.int32))
    >>> sp.primitives.radix_sort(keys).get()
    array([1, 2, 3], dtype=int32)
    """
    outs = arguments.split_outputs(out, values is not None)
    queue = arguments.find_queue(keys=keys, values=values)
    chain = arguments.start_chain(queue, keys, values, outs=outs)
    n, inputs = keys.size, arguments.prepare_elements(queue, keys, values)
    bit_range = _check_bits(bits, 8 * keys.dtype.itemsize)
    results = [arguments.prepare_output(chain, "out", to, n, part.dtype, *inputs) for to, part in zip(outs, inputs, strict=False)]
    moved_values, to_values = (inputs[1], results[1].array) if values is not None else (None, None)
    run(chain, enqueue_radix_sort, (inputs[0], results[0].array, moved_values, to_values), n, bit_range)
    return arguments.deliver(chain, results)


def _check_bits(bits: Any, width: int) -> tuple[int, int]:
    """Return the range of bits by which keys of ``width`` bits are sorted: the checked argument ``bits``; all bits for None."""
    if bits is None:
        return 0, width
    try:
        low, high = (operator.index(bit) for bit in bits)
    except (TypeError, ValueError):
        raise TypeError(f"bits: must be two integers (low, high), is {bits!r}") from None
    if not 0 <= low <= high <= width:
        raise ValueError(f"bits: must be (low, high) with 0 <= low <= high <= {width}, is {(low, high)}")
    return low, high


@kernels
def _examples(device: Device, arithmetic: Arithmetic) -> Examples:
    """Yield example records of a radix sort's kernels, for keys of an arithmetic's index type and values of its result."""
    index, value_bytes = arithmetic.index, arithmetic.result.itemsize
    widest = Shape(False, min(512, device.max_work_group), 16, 10, 0)
    tiles = widest.legal(device, index, value_bytes, pointers=True, word_bytes=4)
    tiles = tiles.narrow(device, tiles.bits, 1 << 30, value_bytes)
    record = RadixScatter(
        tiles.work_group, device.portability, index, index, "uint32", bits=tiles.bits, items=tiles.items, source="rows",
        first=True, last=False, value_bytes=value_bytes, positions=False, pointers=True,
    )  # fmt: skip
    yield "", record
    words = replace(record, word="uint32", result=index, source="words", first=False, last=True)
    yield "few", replace(words, few=True)
    yield "items", replace(record, source="items", result=index, last=True)
    yield "listed", replace(record, source="positions", result=index, last=True, value_bytes=0, pointers=False)
    yield "positions", replace(record, value_bytes=np.dtype(index).itemsize, positions=True)
    yield "words", words
    starts = 1 if device.lanes_are_loops else min(128, device.max_work_group)
    yield "", RadixStarts(starts, device.portability, index, tiles.bits)
