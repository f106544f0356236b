"""CSR of a grid of sparse blocks: where each entry stands is known from the blocks' row pointers, so nothing is sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py.arithmetic import name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.construct.tiles import tiles, work_group_of
from clsparse_py.launch import Chain, spread
from clsparse_py.memory import allocated
from clsparse_py.primitives.permute import Moving
from clsparse_py.programs import Built, note_asked
from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure
from clsparse_py.transfer import fetched

__all__ = ["Block", "BlockAlone", "BlockEntries", "BlockPair", "BlockRow", "BlockRows", "stacked"]

Parts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]

#: Entries of a block without neighbours that a work-item moves at a time.
_ITEMS = 4


@dataclass(frozen=True)
class BlockRows(OfStructure):
    """Parameters of ``templates/construct/block_rows.mako``."""

    template = "construct/block_rows"


@dataclass(frozen=True)
class BlockPair(OfStructure):
    """Parameters of ``templates/construct/block_pair.mako``."""

    template = "construct/block_pair"


@dataclass(frozen=True)
class BlockAlone(Moving):
    """Parameters of ``templates/construct/block_alone.mako``."""

    template = "construct/block_alone"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "items": _ITEMS}


@dataclass(frozen=True)
class BlockEntries(Moving):
    """Parameters of ``templates/construct/block_entries.mako``."""

    template = "construct/block_entries"


class Block(NamedTuple):
    """A block of a row of blocks.

    Attributes
    ----------
    data, indices, indptr : pyopencl.array.Array
    column : int
        The first column of the block in the result.
    """

    data: cl_array.Array
    indices: cl_array.Array
    indptr: cl_array.Array
    column: int


class BlockRow(NamedTuple):
    """Blocks that stand side by side, from the left to the right, and how many rows they have."""

    blocks: Sequence[Block]
    n_rows: int


def _stacked_by_host(queue: cl.CommandQueue, grid: Sequence[BlockRow], index: np.dtype[Any], dtype: np.dtype[Any]) -> Parts:
    """Return the result of `stacked`, computed by NumPy."""
    data, indices, lengths = [np.zeros(0, dtype)], [np.zeros(0, index)], [np.zeros(1, index)]
    for blocks, n_rows in grid:
        hosts = [tuple(fetched(part, queue) for part in block[:3]) for block in blocks]
        of_rows = [np.zeros(0, np.int64), *(np.repeat(np.arange(n_rows), np.diff(host[2])) for host in hosts)]
        order = np.argsort(np.concatenate(of_rows), kind="stable")
        data.append(np.concatenate([np.zeros(0, dtype), *(host[0] for host in hosts)])[order])
        moved = (host[1] + block.column for host, block in zip(hosts, blocks, strict=True))
        indices.append(np.concatenate([np.zeros(0, index), *moved])[order])
        lengths.append(np.sum([np.zeros(n_rows, index), *(np.diff(host[2]) for host in hosts)], axis=0))
    found = np.concatenate(data), np.concatenate(indices), np.cumsum(np.concatenate(lengths))
    names = {"data": dtype, "indices": index, "indptr": index}
    of_data, of_indices, of_indptr = (
        placed(queue, name, each.astype(kind)) for (name, kind), each in zip(names.items(), found, strict=True)
    )
    return of_data, of_indices, of_indptr


@or_by_host(_stacked_by_host)
def stacked(queue: cl.CommandQueue, grid: Sequence[BlockRow], index: np.dtype[Any], dtype: np.dtype[Any]) -> Parts:
    """Return data, indices and indptr of rows of blocks, one below the other. Entries of a row keep their order.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    grid : sequence of BlockRow
        At least one. Structures are valid; all arrays are of the same two dtypes. Places without a block are left out.
    index, dtype : dtype
        Of indices and of values; the index dtype holds the numbers of the result's entries and columns.
    """
    blocks = [block for row in grid for block in row.blocks]
    chain = Chain(queue, *(part for block in blocks for part in block[:3]))
    nnz, n_rows = sum(block.indices.size for block in blocks), sum(row.n_rows for row in grid)
    allocator = blocks[0].data.allocator if blocks else None
    data = allocated(queue, "data of the blocks", nnz, dtype, allocator)
    indices = allocated(queue, "indices of the blocks", nnz, index, allocator)
    indptr = allocated(queue, "indptr of the blocks", n_rows + 1, index, allocator)
    side_by_side = frozenset([min(len(row.blocks), 3) for row in grid])
    kernels = chain.worked_out((_Kernels, index, dtype, side_by_side), lambda: _Kernels(chain, index, dtype, side_by_side))
    note_asked(kernels.all)
    first_row = first_entry = 0
    for row in grid:
        _enqueue_row(chain, kernels, row, (data, indices, indptr), first_row, first_entry)
        first_row += row.n_rows
        first_entry += sum(block.indices.size for block in row.blocks)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


class _Kernels:
    """The kernels that rows of one, two and more blocks (3) need, all built before the first of them is enqueued.

    Attributes
    ----------
    all : tuple of programs.Built
    """

    def __init__(self, chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any], blocks: frozenset[int]) -> None:
        group, name, moved = min(128, chain.device.max_work_group), name_of(index), dtype.itemsize
        if 1 in blocks:
            self.alone, self.of_alone = chain.build(BlockAlone(group, name, moved))
        if 2 in blocks:
            self.pair, self.of_pair = chain.build(BlockPair(group, name))
        if blocks & {0, 3}:
            self.rows, self.of_rows = chain.build(BlockRows(group, name))
        if blocks & {2, 3}:
            self.entries, self.of_entries = chain.build(BlockEntries(work_group_of(chain.device), name, moved))
        self.all = tuple(each for each in vars(self).values() if isinstance(each, Built))


def _enqueue_row(chain: Chain, kernels: _Kernels, row: BlockRow, made: Parts, first_row: int, first_entry: int) -> None:
    """Enqueue making the rows of a row of blocks, the first of which begins with an entry."""
    if len(row.blocks) == 1:
        _enqueue_alone(chain, kernels, row, made, first_row, first_entry)
        return
    blocks, n_rows = row
    data, indices, indptr = made
    of_index, begin = indptr.dtype.type, np.uint64(first_row)
    base, shifts = of_index(first_entry), [(block.indptr, 0) for block in blocks]
    if len(blocks) == 2:
        left, right = (block.indptr for block in blocks)
        groups = n_rows // kernels.of_pair.work_group + 1
        chain.launch(kernels.pair, groups, np.uint64(n_rows), base, begin, left, right, indptr)
        # Before an entry come those of its block, and those of the other: up to its row, or with its row.
        shifts = [(right, 0), (left, 1)]
    else:
        moved = chain.scratch(n_rows * len(blocks), indptr.dtype)
        sizes = np.uint64(n_rows), np.uint64(len(blocks)), base, begin
        pointers = _pointers(chain, row, indptr.dtype)
        chain.launch(kernels.rows, n_rows // kernels.of_rows.work_group + 1, *sizes, pointers, indptr, moved)
        base, shifts = of_index(0), [(moved, place * n_rows) for place in range(len(blocks))]
    for block, (shift, shift_begin) in zip(blocks, shifts, strict=True):
        groups, spans = tiles(chain.device, block.indices.size, kernels.of_entries.work_group)
        numbers = *spans, of_index(n_rows), of_index(block.column), base, np.uint64(shift_begin)
        chain.launch(kernels.entries, groups, *numbers, block.indptr, block.indices, block.data, shift, indices, data)


def _enqueue_alone(chain: Chain, kernels: _Kernels, row: BlockRow, made: Parts, first_row: int, first_entry: int) -> None:
    """Enqueue making the rows of one block."""
    (block,), n_rows = row
    data, indices, indptr = made
    n, n_pointers = block.indices.size, n_rows + 1
    groups, sizes = spread(chain.device, max(n, n_pointers), kernels.of_alone.work_group, 64)
    numbers = *sizes, *map(np.uint64, (n, n_pointers, first_entry, first_row)), indptr.dtype.type(block.column)
    chain.launch(kernels.alone, groups, *numbers, block.indptr, block.indices, block.data, indptr, indices, data)


def _pointers(chain: Chain, row: BlockRow, index: np.dtype[Any]) -> cl_array.Array:
    """Return the row pointers of blocks side by side, one after another."""
    length = row.n_rows + 1
    together = chain.scratch(len(row.blocks) * length, index)
    for place, block in enumerate(row.blocks):
        chain.copy(together, block.indptr, length, place * length)
    return together
