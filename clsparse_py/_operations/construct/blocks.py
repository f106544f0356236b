"""CSR of a grid of sparse blocks: the blocks' row pointers give the places of all entries, so nothing is sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.built import Built
from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.matrix import Parts
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._memory.memory import allocate_each
from clsparse_py._operations.construct.tiles import Thresholds, divide_tiles, work_group_of
from clsparse_py._precision.arithmetic import Arithmetic, name_of
from clsparse_py._primitives.permute import Moving
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = ["BLOCK_PAIR", "Block", "BlockAlone", "BlockEntries", "BlockRow", "BlockRows", "stack"]

#: Number of entries that a work-item copies at a time from a sparse block that stands alone in its row of blocks.
_ITEMS = 4
#: Key of a row of blocks: its number of rows, and for each block its number of entries and its first column in the result.
_RowKind = tuple[int, tuple[tuple[int, int], ...]]


@kernel
@dataclass(frozen=True)
class BlockRows(OfStructure):
    """Parameters of ``templates/construct/block_rows.mako``."""

    template = "construct/block_rows"


#: Loop that writes the row pointers of the matrix that two sparse blocks, side by side, make.
BLOCK_PAIR = declare_loop(
    "construct/block_pair",
    "Row pointers of two sparse matrices that stand side by side, from row_begin on, and of one row more, the end; base: how "
    "many entries come before the first row.",
    "I base, ulong row_begin, const I *left, const I *right, I *indptr",
    "indptr[row_begin + row] = base + left[row] + right[row];",
    counter="row",
)


@kernel
@dataclass(frozen=True)
class BlockAlone(Moving):
    """Parameters of ``templates/construct/block_alone.mako``."""

    template = "construct/block_alone"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, and ``items``, the entries that a work-item copies at a time."""
        return {**super().arguments(), "items": _ITEMS}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(128, device.max_work_group), arithmetic.index, arithmetic.result.itemsize)


@kernel
@dataclass(frozen=True)
class BlockEntries(Moving):
    """Parameters of ``templates/construct/block_entries.mako``."""

    template = "construct/block_entries"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(work_group_of(device), arithmetic.index, arithmetic.result.itemsize)


class Block(NamedTuple):
    """A sparse block, and its place in a row of blocks.

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
    """A row of blocks: blocks side by side, from left to right, and their number of rows."""

    blocks: Sequence[Block]
    n_rows: int

    @property
    def kind(self) -> _RowKind:
        """Key by which a row of blocks' launches are recorded: its number of rows, each block's entry count and first column."""
        return self.n_rows, tuple([(block.indices.size, block.column) for block in self.blocks])


def stack(queue: cl.CommandQueue, grid: Sequence[BlockRow], index: np.dtype[Any], dtype: np.dtype[Any]) -> Parts:
    """Return data, indices and indptr of a matrix made of rows of blocks, one below the other. Entries of a row keep their order.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    grid : sequence of BlockRow
        One row at least. Structures are valid; all arrays are of the same two dtypes. Places without a block are left out.
    index, dtype : dtype
        Of indices and of values; the index dtype holds the numbers of the result's entries and columns.
    """
    blocks = [block for row in grid for block in row.blocks]
    parts = [part for block in blocks for part in block[:3]]
    chain = Chain(queue, *parts)
    rows = tuple([row.kind for row in grid])
    nnz, n_rows = sum([block.indices.size for block in blocks]), sum([row.n_rows for row in grid])
    sizes_and_dtypes = (nnz, dtype), (nnz, index), (n_rows + 1, index)
    results = allocate_each(queue, "the blocks", sizes_and_dtypes, blocks[0].data.allocator if blocks else None)
    arrays = *results, *parts
    if len(blocks) <= Thresholds.of(chain.device).max_recorded:
        run(chain, _enqueue_rows, arrays, rows)
    else:
        _enqueue_rows(chain, *arrays, rows)
    chain.finish(*results)
    data, indices, indptr = results
    return data, indices, indptr


def _build_kernels(chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any], blocks: set[int]) -> dict[str, Built]:
    """Return, by name, the kernels that copy rows of blocks; ``blocks``: the numbers of blocks in a row, 3 for three and more."""
    group, name, value_bytes = min(128, chain.device.max_work_group), name_of(index), dtype.itemsize
    records: dict[str, Parameters] = {}
    if 1 in blocks:
        records["alone"] = BlockAlone(group, name, value_bytes)
    if 2 in blocks:
        records["pair"] = BLOCK_PAIR.record(group, name)
    if blocks & {0, 3}:
        records["rows"] = BlockRows(group, name)
    if blocks & {2, 3}:
        records["entries"] = BlockEntries(work_group_of(chain.device), name, value_bytes)
    return {kernel_name: chain.build(record)[0] for kernel_name, record in records.items()}


def _enqueue_rows(
    chain: Chain, data: cl_array.Array, indices: cl_array.Array, indptr: cl_array.Array, *parts_and_rows: Any
) -> None:
    """Enqueue the kernels that copy all rows of blocks into a matrix; ``parts_and_rows``: blocks' arrays, then the rows' keys."""
    *parts, rows = parts_and_rows
    kernels = _build_kernels(chain, indptr.dtype, data.dtype, {min(len(blocks), 3) for _, blocks in rows})
    result, first_row, first_entry, first_block, i = (data, indices, indptr), 0, 0, 0, 0
    while i < len(rows):
        # One launch copies two sparse blocks, one below the other, that stand alone in their rows of blocks.
        n_taken = 2 if all(len(blocks) == 1 for _, blocks in rows[i : i + 2]) and i + 1 < len(rows) else 1
        taken_rows = rows[i : i + n_taken]
        n_blocks = sum(len(blocks) for _, blocks in taken_rows)
        of_blocks = [tuple(parts[3 * block : 3 * block + 3]) for block in range(first_block, first_block + n_blocks)]
        if len(taken_rows[0][1]) == 1:
            _enqueue_alone(chain, kernels, taken_rows, of_blocks, result, first_row, first_entry)
        else:
            _enqueue_row(chain, kernels, taken_rows[0], of_blocks, result, first_row, first_entry)
        first_row += sum(n_rows for n_rows, _ in taken_rows)
        first_entry += sum(nnz for _, blocks in taken_rows for nnz, _ in blocks)
        first_block, i = first_block + n_blocks, i + n_taken


def _enqueue_row(
    chain: Chain,
    kernels: dict[str, Built],
    row: _RowKind,
    of_blocks: list[Parts],
    result: Parts,
    first_row: int,
    first_entry: int,
) -> None:
    """Enqueue the kernels that copy a row of sparse blocks (none, or two or more) into a matrix, from its ``first_row`` on."""
    n_rows, blocks = row
    data, indices, indptr = result
    of_index, begin = indptr.dtype.type, np.uint64(first_row)
    pointers = [pointer[2] for pointer in of_blocks]
    base = of_index(first_entry)
    if len(blocks) == 2:
        left_pointers, right_pointers = pointers
        chain.launch_spread(kernels["pair"], n_rows + 1, base, begin, left_pointers, right_pointers, indptr)
        # A row of the left block stands behind the right block's earlier rows, a row of the right block behind the left's row.
        shifts = [(right_pointers, 0), (left_pointers, 1)]
    else:
        offsets = chain.scratch(n_rows * len(blocks), indptr.dtype)
        shape = np.uint64(n_rows), np.uint64(len(blocks))
        together = chain.scratch(len(blocks) * (n_rows + 1), indptr.dtype)
        for place, pointer in enumerate(pointers):
            chain.copy(together, pointer, n_rows + 1, place * (n_rows + 1))
        groups = n_rows // kernels["rows"].parameters.work_group + 1
        chain.launch(kernels["rows"], groups, *shape, base, begin, together, indptr, offsets)
        base, shifts = of_index(0), [(offsets, place * n_rows) for place in range(len(blocks))]
    for (nnz, column), block, (shift, shift_begin) in zip(blocks, of_blocks, shifts, strict=True):
        groups, spans = divide_tiles(chain.device, nnz, kernels["entries"].parameters.work_group)
        numbers = *spans, of_index(n_rows), of_index(column), base, np.uint64(shift_begin)
        chain.launch(kernels["entries"], groups, *numbers, block[2], block[1], block[0], shift, indices, data)


def _enqueue_alone(
    chain: Chain,
    kernels: dict[str, Built],
    rows: Sequence[_RowKind],
    of_blocks: list[Parts],
    result: Parts,
    first_row: int,
    first_entry: int,
) -> None:
    """Enqueue the copy of one sparse block, or of two, one below the other: each is the only block of its row of blocks."""
    data, indices, indptr = result
    lengths, columns = zip(*(blocks[0] for _, blocks in rows), strict=True)
    n_all, n_pointers = sum(lengths), sum(n_rows for n_rows, _ in rows) + 1
    # The driver copies a block's many entries faster than the kernel, which then writes row pointers alone.
    limits = Thresholds.of(chain.device)
    copied = not chain.device.lanes_are_loops and n_all > limits.max_moved and not any(columns)
    n_moved = 0 if copied else n_all
    numbers = map(np.uint64, (n_moved, n_pointers, lengths[0], rows[0][0], first_entry, first_row))
    of_columns = map(indptr.dtype.type, (columns[0], columns[-1]))
    arrays = (part for block in (of_blocks[0], of_blocks[-1]) for part in block[::-1])
    arguments = *numbers, *of_columns, *arrays, indptr, indices, data
    chain.launch_spread(kernels["alone"], max(n_moved, n_pointers), *arguments, groups_per_unit=limits.moving_groups_per_unit)
    if copied:
        for length, block in zip(lengths, of_blocks, strict=True):
            chain.copy(data, block[0], length, first_entry)
            chain.copy(indices, block[1], length, first_entry)
            first_entry += length
