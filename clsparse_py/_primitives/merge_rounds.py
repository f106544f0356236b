"""Pairwise merge rounds of long segments.

The balanced algorithm of Ji et al., "Segmented merge" (Algorithm 2): a tile holds a fixed number of elements of one segment, and
its work-items find their entries by merge path. Merged runs stay within their segment, so that the same tiles serve all rounds,
and a round computes only the splits of tiles anew. Rounds write to two arrays in turn, the last round to the result; a segment
that takes fewer rounds begins later, and its first round reads the input: no segment is ever copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._device.device import RESERVED, Device
from clsparse_py._ground.records import dataclass
from clsparse_py._primitives.segment_classes import Tiles
from clsparse_py._primitives.segments import Elements, OfElements, Runs, Segments, Shape
from clsparse_py._run.launch import Chain

__all__ = ["Arrays", "MergeChunks", "MergeSplits", "MergeTiles", "allocate_spare", "enqueue_rounds"]

#: An array of keys and, if there are values, one of values.
Arrays = tuple[cl_array.Array, ...]


def allocate_spare(chain: Chain, n: int, x: Arrays) -> Arrays:
    """Return as many scratch arrays of ``n`` entries as ``x`` has (keys, values if any); every second merge round writes them."""
    return tuple(chain.scratch(n, array.dtype) for array in x)


@dataclass(frozen=True)
class MergeSplits(OfElements):
    """Parameters of ``templates/primitives/merge_splits.mako``."""

    template = "primitives/merge_splits"


@dataclass(frozen=True)
class MergeTiles(OfElements):
    """Parameters of ``templates/primitives/merge_tiles.mako``.

    Attributes
    ----------
    staged : bool
        Whether values go through local memory; else the kernel gathers them from global memory.
    """

    template = "primitives/merge_tiles"

    staged: bool

    @classmethod
    def legal(cls, device: Device, index: str, runs: Runs, elements: Elements, work_group: int) -> MergeTiles:
        """Return the record of the kernel that merges sorted runs by tiles; values pass through local memory if they fit there.

        Values that do not fit are gathered from global memory. The keys of a legal shape's tiles do fit.
        """
        record = cls(min(work_group, device.max_work_group), index, runs, elements, elements.value_bytes > 0)
        return device.fitting((record, replace(record, staged=False)), lambda candidate: candidate.local_memory, RESERVED)

    @property
    def items(self) -> int:
        """Number of elements of a tile that a work-item merges, at most."""
        return -(-self.runs.tile // self.work_group)

    @property
    def local_memory(self) -> int:
        """Bytes of local memory that a work-group takes to merge a tile."""
        return 8 * self.pool_words + 2 * self.n_origins

    @property
    def pool_words(self) -> int:
        """Number of words of 64 bits in local memory for the keys of a merged tile and later, if ``staged``, for its values."""
        most = max(self.elements.key_bytes, self.elements.value_bytes if self.staged else 0)
        return -(-most * self.runs.tile // 16) * 2

    @property
    def n_origins(self) -> int:
        """Length, in numbers of 16 bits with padding, of the table in local memory of where each element of a tile comes from."""
        return self.runs.tile + (self.runs.tile // self.items * 2 if self.items % 4 == 0 else 0) + 2

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: `OfElements`' own, a work-item's elements, ``staged``, and sizes in local memory."""
        wide = self.staged and self.elements.value_bytes == 16
        return {
            **OfElements.arguments(self),
            "items": self.items,
            "staged": self.staged,
            "local_memory": self.local_memory,
            "pool_entries": self.pool_words // 2 if wide else self.pool_words,
            "n_origins": self.n_origins,
        }


@dataclass(frozen=True)
class MergeChunks(OfElements):
    """Parameters of ``templates/primitives/merge_chunks.mako``."""

    template = "primitives/merge_chunks"


def enqueue_rounds(
    chain: Chain,
    segments: Segments,
    tiles: Tiles,
    n_rounds: int,
    x: Arrays,
    target: Arrays,
    spare: Arrays,
    runs: Runs,
    shape: Shape,
) -> None:
    """Enqueue the rounds that merge the sorted runs of long segments pair by pair.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    segments : Segments
        Segments, with their runs if ``runs`` are given.
    tiles : Tiles
        The tiles of long segments.
    n_rounds : int
        Most rounds of a long segment, at least 1.
    x : tuple of pyopencl.array.Array
        Keys, and values if there are any: the input, from which given runs are read. Not used if no runs are given.
    target, spare : tuple of pyopencl.array.Array
        The arrays of the result, and arrays as long. The tiles of segments that are cut are in ``spare`` if the segment takes an
        odd number of rounds, else in ``target``. ``spare`` may be ``x`` if there is one round and nothing is cut.
    runs : Runs
    shape : Shape
        Legal on the device.
    """
    elements = Elements.of(*x)
    kinds = segments.index, runs, elements
    splitting, split = chain.build(MergeSplits(min(64, chain.device.max_work_group), *kinds))
    if shape.chunked:
        merging, chunks = chain.build(MergeChunks(shape.merge_group, *kinds))
        groups = -(-tiles.n // chunks.work_group)
    else:
        merging, _ = chain.build(MergeTiles.legal(chain.device, *kinds, shape.merge_group))
        groups = tiles.n
    splits = chain.scratch(tiles.n, segments.bounds.dtype)
    n = np.uint64(tiles.n)
    tile_arrays = tiles.segment, tiles.first, *segments.given, segments.bounds, *tiles.run
    for n_done in range(n_rounds):
        to, origin = (target, spare) if (n_rounds - n_done) % 2 else (spare, target)
        number = np.uint32(n_done), np.uint32(n_rounds)
        run_arrays = x if runs.given else ()
        chain.launch(splitting, -(-tiles.n // split.work_group), n, *number, *tile_arrays, *run_arrays[:1], origin[0], splits)
        chain.launch(merging, groups, *number, n, *tile_arrays, *run_arrays, *origin, splits, *to)
