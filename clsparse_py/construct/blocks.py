"""CSR of a grid of sparse blocks: where each entry stands is known from the blocks' row pointers, so nothing is sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.arithmetic import name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.construct.tiles import tiles, work_group_of
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated
from clsparse_py.primitives.permute import Moving
from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure
from clsparse_py.transfer import fetched

__all__ = ["Block", "BlockEntries", "BlockRow", "BlockRows", "stacked"]

Parts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]


@dataclass(frozen=True)
class BlockRows(OfStructure):
    """Parameters of ``templates/construct/block_rows.mako``."""

    template = "construct/block_rows"


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
    lengths = {"data": (nnz, dtype), "indices": (nnz, index), "indptr": (n_rows + 1, index)}
    allocator = blocks[0].data.allocator if blocks else None
    data, indices, indptr = (allocated(queue, f"{name} of the blocks", *each, allocator) for name, each in lengths.items())
    chain.build(BlockRows(min(128, chain.device.max_work_group), name_of(index)))
    chain.build(BlockEntries(work_group_of(chain.device), name_of(index), dtype.itemsize))
    first_row = first_entry = 0
    for row in grid:
        _enqueue_row(chain, row, (data, indices, indptr), first_row, first_entry)
        first_row += row.n_rows
        first_entry += sum(block.indices.size for block in row.blocks)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def _enqueue_row(chain: Chain, row: BlockRow, made: Parts, first_row: int, first_entry: int) -> None:
    """Enqueue making the rows of a row of blocks, the first of which begins with an entry."""
    blocks, n_rows = row
    data, indices, indptr = made
    index = indptr.dtype
    built, record = chain.build(BlockRows(min(128, chain.device.max_work_group), name_of(index)))
    pointers, alone = _pointers(chain, row, index), len(blocks) == 1
    shifts = chain.scratch(n_rows * len(blocks), index)
    sizes = np.uint64(n_rows), np.uint64(len(blocks)), index.type(first_entry), np.uint64(first_row)
    chain.launch(built, n_rows // record.work_group + 1, *sizes, pointers, indptr, shifts)
    for place, block in enumerate(blocks):
        n = block.indices.size
        if alone and not block.column:
            chain.copy(data, block.data, n, first_entry)
            chain.copy(indices, block.indices, n, first_entry)
        else:
            moving, taken = chain.build(BlockEntries(work_group_of(chain.device), name_of(index), data.dtype.itemsize))
            groups, spans = tiles(chain.device, n, taken.work_group)
            numbers = *spans, index.type(n_rows), index.type(block.column), np.uint64(place * n_rows)
            chain.launch(moving, groups, *numbers, block.indptr, block.indices, block.data, shifts, indices, data)


def _pointers(chain: Chain, row: BlockRow, index: np.dtype[Any]) -> cl_array.Array:
    """Return the row pointers of blocks side by side, one after another."""
    if len(row.blocks) == 1:
        return row.blocks[0].indptr
    length = row.n_rows + 1
    together = chain.scratch(len(row.blocks) * length, index)
    for place, block in enumerate(row.blocks):
        chain.copy(together, block.indptr, length, place * length)
    return together
