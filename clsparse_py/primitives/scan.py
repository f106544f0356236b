"""Exclusive and inclusive scans (prefix sums) of device arrays.

Reduce-then-scan: the sums of tiles, the scan of those, the scan of each tile. No work-group waits for another, so that a scan is
right on every device, and sums are always made in the same order. On CPU devices a tile is a long chunk, and a work-item's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py.arithmetic import OPENCL_TYPES, conversion, needs_fp64, type_of_sums
from clsparse_py.device import Device, Portability
from clsparse_py.launch import Chain
from clsparse_py.programs import Parameters

__all__ = ["KINDS", "Addition", "ScanChunks", "ScanTiles", "TileSums", "enqueue_scan", "sum_dtype"]

#: What `enqueue_scan` makes of n entries: n sums of the entries before; n sums that include the entry; 0 and the latter.
KINDS = ("exclusive", "inclusive", "pointers")
#: On CPU devices, entries that are worth a chunk of their own, and chunks to a core.
_CHUNK = 1 << 14
_CHUNKS_PER_CORE = 2


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of sums of values: their own, but int64 for bool, whose True counts as one."""
    return np.dtype(np.int64) if dtype.kind == "b" else dtype


@dataclass(frozen=True)
class Addition(Parameters):
    """What kernels that add values up share.

    Attributes
    ----------
    source, target : str
        NumPy's names of the dtypes of the values and of their sums, in which all is computed.
    portability : Portability
        How lanes exchange values, and how far.
    """

    source: str
    target: str
    portability: Portability

    @property
    def shape_name(self) -> str:
        """The part of the name that tells the kernel's own parameters."""
        return ""

    @property
    @override
    def name(self) -> str:
        types = self.target if self.source == self.target else f"{self.source}_{self.target}"
        return f"{self.template.replace('/', '_')}_{self.shape_name}{types}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        source, target = np.dtype(self.source), np.dtype(self.target)
        lines = [self.portability.defines]
        if needs_fp64(source, target):
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        lines += [
            f"typedef {OPENCL_TYPES[source.name]} SOURCE;  // {source.name}",
            *type_of_sums(target),
            f"T from_source(SOURCE v) {{ return {conversion(source, target)}; }}",
            "#define ZERO ((T)(0))",
            "#define ADD(a, b) ((a) + (b))",
        ]
        return "\n".join(lines)

    @property
    @override
    def lane_width(self) -> int:
        return self.portability.lane_width

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, portability=self.portability.at_most(lane_width)) if work_group else None


@dataclass(frozen=True)
class TileSums(Addition):
    """Parameters of ``templates/primitives/tile_sums.mako``.

    Attributes
    ----------
    tile : int
        Entries that a work-group adds up.
    """

    template = "primitives/tile_sums"

    tile: int

    @property
    @override
    def shape_name(self) -> str:
        return f"n{self.tile}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**Addition.arguments(self), "tile": self.tile}


@dataclass(frozen=True)
class ScanTiles(Addition):
    """Parameters of ``templates/primitives/scan_tiles.mako``.

    Attributes
    ----------
    items : int
        Entries to a work-item.
    inclusive : bool
        Whether an entry is part of its own sum.
    carried : bool
        Whether there are tiles before, whose sums are given.
    """

    template = "primitives/scan_tiles"

    items: int
    inclusive: bool
    carried: bool

    @classmethod
    def legal(cls, device: Device, source: str, target: str, inclusive: bool, work_group: int = 256) -> ScanTiles:
        """Return the legal record nearest to what is asked for: it fits in the local memory."""
        # Odd, so that lanes which walk through adjacent entries of their own do not meet in a bank.
        items = {1: 15, 2: 15, 4: 15, 8: 11}.get(np.dtype(target).itemsize, 5)
        record = cls(min(work_group, device.max_work_group), source, target, device.portability, items, inclusive, False)
        while record.local_memory > device.local_memory and record.work_group > 1:
            record = replace(record, work_group=record.work_group // 2)
        return record

    @property
    def tile(self) -> int:
        """Entries that a work-group takes."""
        return self.work_group * self.items

    @property
    def local_memory(self) -> int:
        """Bytes of local memory of a work-group."""
        return self.work_group * (self.items + 1) * np.dtype(self.target).itemsize

    @property
    @override
    def shape_name(self) -> str:
        kind = "inclusive" if self.inclusive else "exclusive"
        return f"{kind}_{'carried_' if self.carried else ''}n{self.items}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {
            **Addition.arguments(self),
            "items": self.items,
            "inclusive": self.inclusive,
            "carried": self.carried,
        }


@dataclass(frozen=True)
class ScanChunks(Addition):
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
        return f"{self.step}_{'inclusive' if self.inclusive else 'exclusive'}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**Addition.arguments(self), "step": self.step, "inclusive": self.inclusive}


def enqueue_scan(
    chain: Chain, source: cl_array.Array, target: cl_array.Array, n: int, *, kind: str, work_group: int | None = None
) -> None:
    """Enqueue the scan of the first ``n`` entries of an array's buffer.

    Parameters
    ----------
    chain : Chain
        What comes before and after it.
    source, target : pyopencl.array.Array
        Used from the beginning of their buffers; they may be the same. Sums are made in ``target``'s dtype, which is no bool.
    n : int
        Entries of ``source``.
    kind : str
        "exclusive": ``target[i]`` is the sum of the entries before i. "inclusive": of those up to i. "pointers": as "exclusive",
        with an entry n, the sum of all; ``target`` has ``n + 1`` entries.
    work_group : int, optional
        Work-items in a work-group, if not those that suit the device.
    """
    inclusive, lengths = kind == "inclusive", (n, n + (kind == "pointers"))
    if lengths[1]:
        scan = _enqueue_chunks if chain.device.is_cpu else _enqueue_tiles
        scan(chain, source, target, lengths, inclusive, work_group)


def _enqueue_tiles(
    chain: Chain,
    source: cl_array.Array,
    target: cl_array.Array,
    lengths: tuple[int, int],
    inclusive: bool,
    work_group: int | None,
) -> None:
    n, n_target = (np.uint64(length) for length in lengths)
    record = ScanTiles.legal(chain.device, source.dtype.name, target.dtype.name, inclusive, work_group or 256)
    built, record = chain.build(record)
    if n_target <= record.tile:
        chain.launch(built, 1, n, n_target, source, target)
        return
    built, record = chain.build(replace(record, carried=True))
    n_tiles = -(-lengths[1] // record.tile)
    summing, _ = chain.build(TileSums(record.work_group, record.source, record.target, record.portability, record.tile))
    carries = chain.scratch(n_tiles, target.dtype)
    chain.launch(summing, n_tiles - 1, n, source, carries)
    _enqueue_tiles(chain, carries, carries, (n_tiles - 1, n_tiles), False, work_group)
    chain.launch(built, n_tiles, n, n_target, source, carries, target)


def _enqueue_chunks(
    chain: Chain,
    source: cl_array.Array,
    target: cl_array.Array,
    lengths: tuple[int, int],
    inclusive: bool,
    work_group: int | None,
) -> None:
    types = source.dtype.name, target.dtype.name
    built, record = chain.build(ScanChunks(work_group or 1, *types, chain.device.portability.at_most(1), "scan", inclusive))
    n_chunks = max(1, min(chain.device.compute_units * _CHUNKS_PER_CORE, lengths[1] // _CHUNK))
    sums = chain.scratch(n_chunks, target.dtype)
    sizes = tuple(np.uint64(size) for size in (*lengths, n_chunks))
    groups = -(-n_chunks // record.work_group)
    if n_chunks > 1:
        summing, _ = chain.build(replace(record, step="sums"))
        chain.launch(summing, groups, *sizes, source, sums)
    chain.launch(built, groups, *sizes, source, sums, target)
