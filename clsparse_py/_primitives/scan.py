"""Exclusive and inclusive scans (prefix sums) of device arrays.

Reduce-then-scan: the sums of tiles, the scan of those, the scan of each tile. No work-group waits for another, so that a scan is
right on every device, and sums are always made in the same order. On CPU devices a tile is a long chunk, and a work-item's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.plain import door
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._primitives import arguments
from clsparse_py._primitives.addition import Addition, Tiles, fit_record, sum_dtype
from clsparse_py._primitives.thresholds import Thresholds
from clsparse_py._run.launch import Chain, needs_no_events
from clsparse_py._run.recording import find_recording, run

__all__ = [
    "ScanChunks",
    "ScanTiles",
    "TileSums",
    "add_up",
    "choose_summed_tile",
    "count_chunks",
    "enqueue_carries",
    "enqueue_scan",
    "enqueue_tiles",
    "exclusive_scan",
    "inclusive_scan",
    "legal_tiles",
]


@dataclass(frozen=True)
class OfEntries(Addition):
    """Base of the records of a scan's kernels.

    Attributes
    ----------
    runs : bool
        Whether an entry is 1 where a run of equal keys begins, else 0, and the kernel lists the runs.
    """

    runs: bool

    @property
    @override
    def entry(self) -> str:
        """The OpenCL C expression for entry ``i`` of a scan: a value, or 1 where a run of equal keys begins and else 0."""
        return "(T)(i == 0 || source[i] != source[i - 1])" if self.runs else super().entry

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the work-group's size, and ``runs``: whether runs of equal keys are counted."""
        return {**super().arguments(), "runs": self.runs}


@kernel
@dataclass(frozen=True)
class TileSums(OfEntries):
    """Parameters of ``templates/primitives/tile_sums.mako``.

    Attributes
    ----------
    tile : int
        Entries that a work-group adds up.
    by_key : bool
        As in `ScanTiles`.
    """

    template = "primitives/tile_sums"

    tile: int
    by_key: bool

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name for the entries ("runs_", "by_key_" or none) and a tile's size, such as ``runs_n3840_``."""
        return f"{'runs_' if self.runs else ''}{'by_key_' if self.by_key else ''}n{self.tile}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `OfEntries`, ``tile``, and whether a scan is by key."""
        return {**super().arguments(), "tile": self.tile, "by_key": self.by_key}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the records of tile sums that belong to `ScanTiles`' examples "", "runs" and "by_key"."""
        for variant, record in ScanTiles.examples(device, arithmetic):
            if variant in ("", "runs", "by_key") and isinstance(record, ScanTiles):
                yield variant, record.sums


@kernel
@dataclass(frozen=True)
class ScanTiles(Tiles, OfEntries):
    """Parameters of ``templates/primitives/scan_tiles.mako``.

    Attributes
    ----------
    carried : bool
        Whether the kernel reads sums of earlier tiles.
    adds : bool
        Whether the kernel reads the sum of each tile, and a work-group adds up the sums of the tiles before its own.
    by_key : bool
        Whether entries with different keys have sums of their own.
    """

    template = "primitives/scan_tiles"

    carried: bool
    by_key: bool
    adds: bool = False

    @classmethod
    def legal(
        cls,
        device: Device,
        source: str,
        target: str,
        inclusive: bool,
        work_group: int | None = None,
        *,
        runs: bool = False,
        by_key: bool = False,
        operation: str = "plus",
    ) -> ScanTiles:
        """Return the record of a scan that reads no sums of earlier tiles, with a tile that fits in the device's local memory."""
        record = cls(
            work_group or 256,
            source,
            target,
            device.portability,
            runs=runs,
            items=1,
            inclusive=inclusive,
            carried=False,
            by_key=by_key,
            operation=operation,
        )
        return fit_record(device, record)

    @property
    def sums(self) -> TileSums:
        """The record of the kernel that adds up the entries of each tile of the scan."""
        types, operation = (self.source, self.target, self.portability), self.operation
        return TileSums(self.work_group, *types, runs=self.runs, tile=self.tile, by_key=self.by_key, operation=operation)

    @property
    @override
    def segmented(self) -> bool:
        """Whether the sums of the scan begin anew inside a tile: where another key begins."""
        return self.by_key

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name for kind of scan, flags and entries of a work-item, such as ``exclusive_carried_n15_``."""
        kind = "runs" if self.runs else "inclusive" if self.inclusive else "exclusive"
        sums = "carried_adds_" if self.adds else "carried_" if self.carried else ""
        return f"{kind}_{'by_key_' if self.by_key else ''}{sums}n{self.items}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `Tiles`' and `OfEntries`', and flags (reads earlier sums, adds them up, is by key)."""
        return {**super().arguments(), "carried": self.carried, "by_key": self.by_key, "adds": self.adds}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "", "carried", "adds", "runs" and "by_key"."""
        types = arithmetic.result.name, sum_dtype(arithmetic.result).name
        tiles = cls.legal(device, *types, inclusive=False)
        yield "", tiles
        yield "carried", replace(tiles, carried=True)
        yield "adds", replace(tiles, carried=True, adds=True)
        yield "runs", replace(cls.legal(device, arithmetic.index, arithmetic.index, inclusive=True, runs=True), carried=True)
        yield "by_key", cls.legal(device, tiles.total, tiles.total, inclusive=True, by_key=True)


@kernel
@dataclass(frozen=True)
class ScanChunks(OfEntries):
    """Parameters of ``templates/primitives/scan_chunks.mako``.

    Attributes
    ----------
    step : str
        "sums" or "scan".
    inclusive : bool
        Whether an entry is part of its own sum.
    """

    template = "primitives/scan_chunks"

    step: str
    inclusive: bool

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells the step and the kind of the scan, such as ``sums_exclusive_``."""
        return f"{self.step}_{'runs' if self.runs else 'inclusive' if self.inclusive else 'exclusive'}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `OfEntries`, the step, and whether the scan is inclusive."""
        return {**super().arguments(), "step": self.step, "inclusive": self.inclusive}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel that scans (""), that makes "sums", and that scans "runs" of keys."""
        types = arithmetic.result.name, sum_dtype(arithmetic.result).name
        index, serial = arithmetic.index, device.portability.at_most(1)
        yield "", cls(1, *types, serial, False, "scan", False)
        yield "sums", cls(1, *types, serial, False, "sums", False)
        yield "runs", cls(1, index, index, serial, True, "scan", True)


def count_chunks(device: Device, n: int) -> int:
    """Return the number of chunks into which a scan on a CPU device cuts ``n`` entries."""
    limits = Thresholds.of(device)
    return max(1, min(device.compute_units * limits.scan_chunks_per_core, n // limits.min_scan_chunk))


def choose_summed_tile(device: Device, source: np.dtype[Any], target: np.dtype[Any], n_target: int) -> int:
    """Return the entries of a tile if a scan with ``n_target`` results can take the sums of its tiles from the caller, else 0."""
    if device.lanes_are_loops or n_target <= Thresholds.of(device).max_one_tile:
        return 0
    record = legal_tiles(device, *_types_of(source, target), False, None)
    adds = np.dtype(record.total).itemsize == 4 and _adds_tiles(device, record, -(-n_target // record.tile))
    return record.tile if adds else 0


def _types_of(source: np.dtype[Any], target: np.dtype[Any]) -> tuple[str, str]:
    """Return the dtypes of a scan's kernels by name; integers of the same size have the same sums, signed or not."""
    is_same = source.kind in "iu" and target.kind in "iu" and source.itemsize == target.itemsize
    return name_of(target if is_same else source), name_of(target)


def _adds_tiles(device: Device, record: ScanTiles, n_tiles: int) -> bool:
    """Return whether a work-group of a scan of ``n_tiles`` tiles adds up the sums of the tiles before its own."""
    limits = Thresholds.of(device)
    return n_tiles <= limits.few_tiles * record.work_group <= limits.max_added


def enqueue_scan(
    chain: Chain,
    source: cl_array.Array,
    target: cl_array.Array,
    n: int,
    kind: str,
    *,
    work_group: int | None = None,
    tile_sums: tuple[cl_array.Array, int] | None = None,
) -> None:
    """Enqueue the scan (prefix sums) of the first ``n`` entries of an array's buffer.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    source, target : pyopencl.array.Array
        Used from the beginning of their buffers; they may be the same. Sums are made in ``target``'s dtype, which is no bool.
    n : int
        Entries of ``source``.
    kind : str
        "exclusive": ``target[i]`` is the sum of the entries before i. "inclusive": of those up to i. "pointers": as "exclusive",
        with an entry n, the sum of all; ``target`` has ``n + 1`` entries.
    work_group : int, optional
        Work-items of a work-group; by default a number that suits the device.
    tile_sums : tuple of pyopencl.array.Array and int, optional
        The sums of tiles in 32 bits, behind a zero, and the size of a tile as `choose_summed_tile` says, if known.
    """
    inclusive, n_target, types = kind == "inclusive", n + (kind == "pointers"), _types_of(source.dtype, target.dtype)
    if not n_target:
        return
    if not chain.device.lanes_are_loops:
        record = legal_tiles(chain.device, *types, inclusive, work_group)
        limits = Thresholds.of(chain.device)
        if record.tile < n_target <= limits.max_one_tile and work_group is None:
            # One larger work-group scans all entries in less time than a second launch takes.
            record = legal_tiles(chain.device, *types, inclusive, limits.one_tile_group)
        enqueue_tiles(chain, record, source, target, n, n_target, tile_sums=tile_sums)
        return
    scan = ScanChunks(work_group or 1, *types, chain.device.portability.at_most(1), False, "scan", inclusive)
    built, scan = chain.build(scan)
    n_chunks = count_chunks(chain.device, n_target)
    sums = chain.scratch(n_chunks, scan.total)
    sizes = np.uint64(n), np.uint64(n_target), np.uint64(n_chunks)
    if n_chunks > 1:
        # No chunk of the scan needs the sum of the last chunk.
        chain.launch(chain.build(replace(scan, step="sums"))[0], -(-(n_chunks - 1) // scan.work_group), *sizes, source, sums)
    chain.launch(built, -(-n_chunks // scan.work_group), *sizes, source, sums, target)


#: `ScanTiles.legal` with its results kept: making a record legal takes longer than launching its kernel.
legal_tiles = functools.lru_cache(maxsize=256)(ScanTiles.legal)


def enqueue_tiles(
    chain: Chain,
    record: ScanTiles,
    source: cl_array.Array,
    target: cl_array.Array,
    n: int,
    n_target: int,
    keys: tuple[cl_array.Array, ...] = (),
    tile_sums: tuple[cl_array.Array, int] | None = None,
) -> None:
    """Enqueue a scan, tile by tile, from ``n`` entries to ``n_target`` sums; keys, if the scan is by key, are uint64 and ascend.

    ``tile_sums`` is a parameter of `enqueue_scan`.
    """
    n_tiles = -(-n_target // record.tile)
    adds = not keys and _adds_tiles(chain.device, record, n_tiles)
    built, record = chain.build(replace(record, carried=adds or n_tiles > 1, adds=adds))
    n_tiles = -(-n_target // record.tile)
    if n_tiles > 1 and not record.carried:
        built, record = chain.build(replace(record, carried=True))
    if n_tiles == 1:
        carries = source  # which a scan of one tile does not read
    elif record.adds and tile_sums is not None and tile_sums[1] == record.tile:
        carries = tile_sums[0]
    elif record.adds:
        carries = _enqueue_sums(chain, record.sums, source, n, n_tiles)
    else:
        carries = enqueue_carries(chain, record, source, n, n_tiles, keys)
    carried = (carries,) if record.carried else ()
    chain.launch(built, n_tiles, np.uint64(n), np.uint64(n_target), source, *keys, *carried, target)


def _enqueue_sums(
    chain: Chain,
    sums: TileSums,
    source: cl_array.Array,
    n: int,
    n_sums: int,
    keys: tuple[cl_array.Array, ...] = (),
    sums_out: cl_array.Array | None = None,
) -> cl_array.Array:
    """Enqueue the sums of a scan's tiles of entries; return an array of ``n_sums`` numbers: a zero, then the first tiles' sums.

    ``keys``: the keys of entries, and the array that takes the last keys of tiles.
    """
    built, _ = chain.build(sums)
    if sums_out is None:
        sums_out = chain.scratch(n_sums, sums.total)
    chain.launch(built, n_sums - 1, np.uint64(n), source, *keys, sums_out)
    return sums_out


def add_up(chain: Chain, source: cl_array.Array, n: int) -> int:
    """Return the sum, in 64 bits, of the first ``n`` (at least 1) integers of an array's buffer, after waiting for the device."""
    types = name_of(source.dtype), "int64"
    if chain.device.lanes_are_loops:
        built, record = chain.build(ScanChunks(1, *types, chain.device.portability.at_most(1), False, "sums", False))
        n_sums = count_chunks(chain.device, n)
        partial_sums = chain.scratch(n_sums, np.int64)
        chain.launch(built, -(-n_sums // record.work_group), *map(np.uint64, (n, n, n_sums)), source, partial_sums)
    else:
        tiles = legal_tiles(chain.device, *types, False, None)
        n_sums = 1 + -(-n // tiles.tile)
        partial_sums = _enqueue_sums(chain, tiles.sums, source, n, n_sums)
    return int(chain.read(partial_sums, n_sums).sum())


def enqueue_carries(
    chain: Chain,
    record: ScanTiles,
    source: cl_array.Array,
    n: int,
    n_carries: int,
    keys: tuple[cl_array.Array, ...] = (),
    sums_out: cl_array.Array | None = None,
) -> cl_array.Array:
    """Enqueue the first steps of a scan by tiles; return the carries: for each of ``n_carries`` tiles, the sum of all before it.

    The carries go to ``sums_out``, if it is given, of the dtype of sums.
    """
    last_keys = tuple(chain.scratch(n_carries, np.uint64) for _ in keys)
    carries = _enqueue_sums(chain, record.sums, source, n, n_carries, (*keys, *last_keys), sums_out)
    types, operation = (record.total, record.total), record.operation
    scan = ScanTiles.legal(chain.device, *types, True, record.work_group, by_key=bool(keys), operation=operation)
    enqueue_tiles(chain, scan, carries, carries, n_carries, n_carries, last_keys)
    return carries


@door()
def exclusive_scan(a: cl_array.Array, *, out: cl_array.Array | None = None) -> cl_array.Array:
    """Return the exclusive scan of an array: for each entry, the sum of the entries before it.

    Parameters
    ----------
    a : pyopencl.array.Array
        One-dimensional, of any supported dtype.
    out : pyopencl.array.Array, optional
        Where the result goes, as long as ``a``; may be ``a`` itself. By default a new array.

    Returns
    -------
    pyopencl.array.Array
        ``result[i]`` is ``a[0] + ... + a[i - 1]``, and ``result[0]`` is 0. Of the dtype of ``a``, in which sums are made; of
        int64 where that is bool. The device may still be writing it.

    Raises
    ------
    TypeError, ValueError
        ``a`` or ``out`` is no such array, or of a dtype that is not supported; the message names the argument.

    Notes
    -----
    The order of the additions depends on the length alone, so results are bitwise the same at each call on a device. It is not
    that of `numpy.cumsum`: floating-point sums round differently.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> values = cl_array.to_device(sp.default_queue(), np.array([1, 2, 3], np.int32))
    >>> sp.primitives.exclusive_scan(values).get().tolist()
    [0, 1, 3]
    """
    return _scan(a, out, "exclusive")


@door()
def inclusive_scan(a: cl_array.Array, *, out: cl_array.Array | None = None) -> cl_array.Array:
    """Return the inclusive scan of an array: for each entry, the sum of the entries up to it.

    Parameters
    ----------
    a : pyopencl.array.Array
        One-dimensional, of any supported dtype.
    out : pyopencl.array.Array, optional
        Where the result goes, as long as ``a``; may be ``a`` itself. By default a new array.

    Returns
    -------
    pyopencl.array.Array
        ``result[i]`` is ``a[0] + ... + a[i]``, in the dtypes of `exclusive_scan`. The device may still be writing it.

    Raises
    ------
    TypeError, ValueError
        As for `exclusive_scan`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> values = cl_array.to_device(sp.default_queue(), np.array([1, 2, 3], np.int32))
    >>> sp.primitives.inclusive_scan(values).get().tolist()
    [1, 3, 6]
    """
    return _scan(a, out, "inclusive")


def _scan(a: cl_array.Array, out: Any, kind: str) -> cl_array.Array:
    """Return the scan (prefix sums) of an array, exclusive or inclusive as ``kind`` says."""
    if out is None and (repeated := _replay_scan(a, kind)) is not None:
        return repeated
    queue = arguments.find_queue(a=a)
    entries = arguments.prepare_values(queue, "a", a, added=True)
    chain = arguments.start_chain(queue, entries, outs=(out,))
    result = arguments.prepare_output(chain, "out", out, a.size, sum_dtype(a.dtype), entries, in_place=entries)
    run(chain, enqueue_scan, (entries, result.array), a.size, kind)
    return result.deliver(chain)


def _replay_scan(a: Any, kind: str) -> cl_array.Array | None:
    """Return the scan of an array by an earlier call's recorded commands; None without these, or if the array needs checks."""
    if not isinstance(a, cl_array.Array) or a.queue is None or len(a.shape) != 1 or a.offset or a.allocator is not None:
        return None
    dtype, (n,), target = a.dtype, a.shape, sum_dtype(a.dtype)
    memory: Any = a.base_data
    if a.strides != (dtype.itemsize,) or memory is None or (arena := needs_no_events(a.queue, a)) is None:
        return None
    recording = find_recording(arena, enqueue_scan, (dtype, target), n, kind)
    if recording is None or memory.size < a.nbytes:
        return None
    result = allocate(a.queue, "the scan", n, target)
    result.events = [recording.replay(a.queue, (memory, result.base_data))]
    return result
