"""Conversion between CSR entries and dense blocks, and reordering of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.bsr.kernels import BLOCKS_PER_GROUP, MAX_ENTRIES, NONZERO, FromCsr, Gather, ToCsr
from clsparse_py._build.programs import Parameters
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import with_index
from clsparse_py._matrix.loops import enqueue_loop
from clsparse_py._matrix.matrix import Parts
from clsparse_py._memory.memory import allocate, array_of
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain

__all__ = ["Parts", "Size", "choose_blocksize", "count_blocks", "flat", "from_csr", "gather", "mark_nonzero_blocks", "to_csr"]

#: Type of the size of a block: its numbers of rows and columns.
Size = tuple[int, int]

#: Most work-items in a work-group of the kernels that convert between CSR and blocks; a device may allow fewer.
_WORK_GROUP = 64


def flat(queue: cl.CommandQueue, values: cl_array.Array, n: int | None = None) -> cl_array.Array:
    """Return the first n values in a device array's buffer, by default as many as the array has, as a flat array over it."""
    view = array_of(queue, values.size if n is None else n, np.dtype(values.dtype), values.base_data)
    view.events.extend(values.events)
    return view


def _enqueue_over(chain: Chain, record: Parameters, n: int, *arguments: Any) -> None:
    """Enqueue the kernel that a parameter record describes over n items, in as many work-groups as hold n work-items."""
    built, built_record = chain.build(record)
    chain.launch(built, -(-n // built_record.work_group), *arguments)


def _group(chain: Chain) -> int:
    """Return the work-group size of the kernels that convert between CSR and blocks, on the device of a chain of launches."""
    return min(_WORK_GROUP, chain.device.max_work_group)


def _group_of_rows(chain: Chain) -> int:
    """Return the work-group size of conversion kernels whose work-items take a block row each: 1 on CPUs, else `_group`'s."""
    return 1 if chain.device.lanes_are_loops else _group(chain)


def count_blocks(queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], size: Size) -> int:
    """Return in how many blocks of ``size`` (rows, columns) a CSR matrix with sorted rows has entries. The host waits."""
    chain = Chain(queue, *parts)
    return _count_in_rows(chain, parts, shape, size, chain.scratch(shape[0], parts[1].dtype))[1]


def _count_in_rows(
    chain: Chain, parts: Parts, shape: tuple[int, int], size: Size, positions: cl_array.Array
) -> tuple[cl_array.Array, int]:
    """Return the row pointers of a CSR matrix's BSR form, and the number of its blocks, for which the host waits."""
    data, indices, indptr = parts
    n, index = shape[0] // size[0], indptr.dtype
    pointers = allocate(chain.queue, "indptr", n + 1, index)
    record = FromCsr(_group_of_rows(chain), name_of(index), name_of(data.dtype), "count")
    _enqueue_over(
        chain, record, n, *(index.type(number) for number in (n, shape[1], *size)), indptr, indices, positions, pointers
    )
    enqueue_scan(chain, pointers, pointers, n, kind="pointers")
    return pointers, int(chain.read(pointers, 1, n)[0])


def from_csr(queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], size: Size) -> Parts:
    """Return a CSR matrix's BSR arrays (blocks, columns, row pointers), sorted, duplicates summed; the host waits to count them.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    parts : tuple of pyopencl.array.Array
        data, indices and indptr of a matrix with sorted rows.
    shape, size : tuple of int
        The shape of the matrix, and the size of blocks, which divides the shape.
    """
    data, indices, indptr = parts
    chain, index = Chain(queue, *parts), indptr.dtype
    record = FromCsr(_group_of_rows(chain), name_of(index), name_of(data.dtype), "fill")
    chain.build(record)
    positions = chain.scratch(shape[0], index)
    pointers, n_blocks = _count_in_rows(chain, parts, shape, size, positions)
    blocks = allocate(queue, "data", (n_blocks, *size), data.dtype, data.allocator)
    columns = allocate(queue, "indices", n_blocks, index, data.allocator)
    n = shape[0] // size[0]
    numbers = (index.type(number) for number in (n, shape[1], *size))
    _enqueue_over(chain, record, n if n_blocks else 0, *numbers, indptr, indices, positions, data, pointers, columns, blocks)
    chain.finish(blocks, columns, pointers)
    return blocks, columns, pointers


def choose_blocksize(count: Callable[[Size], int], shape: tuple[int, int], nnz: int, efficiency: float = 0.7) -> Size:
    """Return a size of blocks that a matrix's entries fill well: square, of 1, 2, 3, 4 or 6 rows, as SciPy chooses.

    Parameters
    ----------
    count : callable
        Returns the number of blocks of a size in which the matrix has entries.
    shape : tuple of int
    nnz : int
        Number of the matrix's entries.
    efficiency : float
        Least ratio of entries to places of the blocks; SciPy's default.
    """

    def filled(n: int) -> float:
        """Return the ratio of the matrix's entries to the places of its n x n blocks; 0 if n does not divide the shape."""
        divides = not shape[0] % n and not shape[1] % n
        return nnz / (n * n * count((n, n))) if divides and nnz else 0.0

    of_two, of_three = filled(2), filled(3)
    if min(of_two, of_three) > (1 + efficiency) / 2:
        return (6, 6) if filled(6) > efficiency else (3, 3)
    if of_two > efficiency and filled(4) > efficiency:  # blocks of 4 x 4 are never better filled than blocks of 2 x 2
        return 4, 4
    return (3, 3) if of_three > efficiency else (2, 2) if of_two > efficiency else (1, 1)


def to_csr(queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int]) -> Parts:
    """Return the data, indices and indptr of a block matrix's CSR form, zeros of blocks included; ``shape`` counts entries."""
    rows, columns = parts[0].shape[1:]
    n = parts[0].size
    index = index_for(max(n, shape[1]), parts[1].dtype)
    blocks, of_blocks, pointers = with_index(queue, parts, index)
    n_blocks = of_blocks.size
    of_rows = rows_of(queue, pointers, n_blocks)
    # The chain of launches is made after the commands that fill `of_rows`, as a chain waits for earlier commands alone.
    chain = Chain(queue, blocks, of_blocks, pointers, of_rows)
    records = [ToCsr(_group(chain), name_of(index), name_of(blocks.dtype), phase) for phase in ("pointers", "entries")]
    for record in records:
        chain.build(record)
    data, indices, indptr = (
        allocate(queue, name, length, dtype, blocks.allocator)
        for name, length, dtype in (("data", n, blocks.dtype), ("indices", n, index), ("indptr", shape[0] + 1, index))
    )
    size = index.type(rows), index.type(columns)
    _enqueue_over(chain, records[0], shape[0] + 1, np.uint64(shape[0]), *size, pointers, indptr)
    n_stripes = n_blocks * rows
    stripes = pointers, of_rows, of_blocks, blocks, indices, data
    _enqueue_over(chain, records[1], n_stripes, np.uint64(n_stripes), *size, *stripes)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def gather(
    queue: cl.CommandQueue, blocks: cl_array.Array, numbers: cl_array.Array, kind: str, starts: cl_array.Array | None = None
) -> cl_array.Array:
    """Return copies of the blocks that ``numbers`` lists, by ``kind``: moved, transposed, or summed over ranges of ``numbers``.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    blocks : pyopencl.array.Array
    numbers : pyopencl.array.Array
        The numbers of the source's blocks.
    kind : {"moved", "transposed", "summed"}
        "summed": a result is the sum of the blocks ``numbers[starts[k]:starts[k + 1]]``, of which there is at least one.
    starts : pyopencl.array.Array, optional
        The first position in ``numbers`` of each sum, and the end.
    """
    n = numbers.size if starts is None else starts.size - 1
    size = blocks.shape[1:][:: -1 if kind == "transposed" else 1]
    result = allocate(queue, "data", (n, *size), blocks.dtype, blocks.allocator)
    operands = (numbers,) if starts is None else (numbers, starts)
    chain, index = Chain(queue, blocks, *operands), numbers.dtype
    entries = not chain.device.lanes_are_loops and starts is None and size[0] * size[1] <= MAX_ENTRIES
    built, record = chain.build(Gather(_group(chain), name_of(index), name_of(blocks.dtype), kind, entries))
    of_group, items = (BLOCKS_PER_GROUP, n) if entries else (record.work_group, n * size[0])
    chain.launch(built, -(-items // of_group), np.uint64(items), *map(index.type, size), *operands, blocks, result)
    chain.finish(result)
    return result


def mark_nonzero_blocks(queue: cl.CommandQueue, blocks: cl_array.Array) -> cl_array.Array:
    """Return a device array of a byte for each block: 1 if the block has an entry other than 0, else 0."""
    n, rows, columns = blocks.shape
    chain, marks = Chain(queue, blocks), allocate(queue, "marks", n, np.uint8)
    parts = 2 if blocks.dtype.kind == "c" else 1
    real = np.dtype(f"f{blocks.dtype.itemsize // 2}") if parts == 2 else blocks.dtype
    enqueue_loop(chain, NONZERO, n, (name_of(real),), np.uint64(rows * columns * parts), blocks, marks)
    chain.finish(marks)
    return marks
