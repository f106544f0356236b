"""The entries at a mask's places that have a product, side by side: in the memory of the sums and of the mask's structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate, shorten
from clsparse_py._primitives.permute import Moving
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread

__all__ = ["Marked", "MaskedEntries", "find_marked", "move", "pointers"]

#: Work-items of a work-group, at most.
_WORK_GROUP = 128
#: Work-groups to a compute unit, at most.
_GROUPS_PER_UNIT = 64
#: Marks that a work-item counts.
_TILE = 64


@kernel
@dataclass(frozen=True)
class MaskedEntries(Moving):
    """Parameters of ``templates/spgemm/masked_entries.mako``.

    Attributes
    ----------
    phase : str
        "count", "list", "move" or "rows"; values are of "move" alone.
    """

    template = "spgemm/masked_entries"
    variants: ClassVar[Variants] = {
        "": {"value_bytes": 0, "phase": "count"},
        "list": {"value_bytes": 0, "phase": "list"},
        "move": {"phase": "move"},
        "rows": {"value_bytes": 0, "phase": "rows"},
    }

    phase: str

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "tile": _TILE}


class Marked(NamedTuple):
    """The marked entries of a matrix.

    Attributes
    ----------
    n : int
        How many.
    positions : pyopencl.array.Array
        Of the marked entries or, if these are fewer, of the others; in ascending order.
    there : bool
        Whether positions are those of marked entries.
    """

    n: int
    positions: cl_array.Array
    there: bool


def find_marked(queue: cl.CommandQueue, marks: cl_array.Array, index: np.dtype[Any]) -> Marked:
    """Return the marked entries, of a byte for each entry: 1 if it is marked, else 0. Waits for their number."""
    n, n_tiles = marks.size, -(-marks.size // _TILE)
    chain = Chain(queue, marks)
    (counting, record), (listing, _) = (chain.build(_record(chain, index, phase)) for phase in ("count", "list"))
    offsets, groups = chain.scratch(n_tiles + 1, index), -(-n_tiles // record.work_group)
    chain.launch(counting, groups, np.uint64(n), marks, offsets)
    enqueue_scan(chain, offsets, offsets, n_tiles, kind="pointers")
    n_marked = int(chain.read(offsets, 1, n_tiles)[0])
    lists_marked = 2 * n_marked <= n
    n_positions = n_marked if lists_marked else n - n_marked
    positions = allocate(queue, "positions", n_positions, index)
    if n_positions:
        chain.launch(listing, groups, np.uint64(n), np.uint32(lists_marked), marks, offsets, positions)
    chain.finish(positions)
    return Marked(n_marked, positions, lists_marked)


def _record(chain: Chain, index: np.dtype[Any], phase: str, value_bytes: int = 0) -> MaskedEntries:
    """Return the record of the marked entries' kernel for a phase."""
    return MaskedEntries(min(_WORK_GROUP, chain.device.max_work_group), index.name, value_bytes, phase)


def move(
    queue: cl.CommandQueue, values: cl_array.Array, marked: Marked, allocator: Any, room: int | None = None
) -> cl_array.Array:
    """Return the values of marked entries.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    values : pyopencl.array.Array
        From the beginning of its buffer.
    marked : Marked
    allocator : callable or None
        Of the result.
    room : int, optional
        Bytes that may be taken. If they are too few for the result, it takes the place of ``values``, part by part, and all of
        their memory stays. By default a new array is returned.
    """
    n, item, positions = marked.n, values.dtype.itemsize, marked.positions
    in_place = room is not None and n * item > room
    chain = Chain(queue, positions, values, writes=(values,) if in_place else ())
    built, record = chain.build(_record(chain, positions.dtype, "move", item))
    part = max((room or 0) // item, 1) if in_place else n
    entries = chain.scratch(part, values.dtype) if in_place else allocate(queue, "entries", n, values.dtype, allocator)
    # An entry never moves behind its place: no part is written to what a later one reads.
    for first in range(0, n, max(part, 1)):
        n_moved = min(part, n - first)
        groups, sizes = spread(chain.device, n_moved, record.work_group, _GROUPS_PER_UNIT)
        marked_arguments = np.uint64(first), np.uint32(marked.there), np.uint64(positions.size), positions
        chain.launch(built, groups, *sizes, *marked_arguments, values, entries)
        if in_place:
            chain.copy(values, entries, n_moved, first)
    result = values if in_place else entries
    chain.finish(result)
    shorten(result, n)
    return result


def pointers(queue: cl.CommandQueue, indptr: cl_array.Array, marked: Marked, allocator: Any) -> cl_array.Array:
    """Return the ``indptr`` of the marked entries alone."""
    n, positions = indptr.size, marked.positions
    chain = Chain(queue, indptr, positions)
    built, record = chain.build(_record(chain, indptr.dtype, "rows"))
    new_indptr = allocate(queue, "indptr", n, indptr.dtype, allocator)
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, np.uint32(marked.there), np.uint64(positions.size), positions, indptr, new_indptr)
    chain.finish(new_indptr)
    return new_indptr
