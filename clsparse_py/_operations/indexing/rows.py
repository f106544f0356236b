"""Select rows of a sparse matrix: adjacent rows by copy, others by gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.programs import note_asked
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import with_index
from clsparse_py._matrix.matrix import MatrixT, Parts, Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate, allocate_each, shorten
from clsparse_py._operations.indexing.kernels import (
    MASKED,
    MASKED_POINTERS,
    OFFSETS,
    Lengths,
    Rows,
    RowsAtOnce,
    RowsChunked,
)
from clsparse_py._operations.indexing.positions import Listed, move_to_device
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.partition import OfPath, enqueue_parts, has_few_rows
from clsparse_py._primitives.scan import choose_summed_tile, enqueue_scan
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = ["Parts", "Thresholds", "assemble_like", "choose_chunk", "new_parts", "rows_at", "take_listed_rows", "take_marked_rows"]

#: Greatest number of work-items of a work-group that selects rows of a sparse matrix.
_WORK_GROUP = 128


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of the selection of rows."""

    operation = "indexing"

    #: Work-items of a work-group that looks up the lengths of listed rows: a work-group has many rows, a work-item few.
    lengths_group: int = number(512, "work-items", on_cores=128, least=1)
    #: Most work-groups per compute unit of the kernel that looks up the lengths of listed rows, whose counts the host reads.
    telling_groups: int = number(8, "work-groups", least=1)
    #: Most work-groups per compute unit of kernels that select rows by a mask, whose counts the host does not read.
    groups_per_unit: int = number(64, "work-groups", least=1)
    #: Most counts of work-groups that Python adds up faster than NumPy.
    few_numbers: int = number(64, "numbers")
    #: Chunks of rows and entries per core of a CPU device.
    chunks_per_core: int = number(4, "chunks", least=1)
    #: Least rows and entries of a chunk on CPU devices.
    min_chunk: int = number(64, "rows and entries", least=1)
    #: Most listed rows that one launch gathers.
    max_rows_at_once: int = number(1 << 10, "rows")
    #: Most entries that listed rows would have, were each as long as the matrix's longest row, for one launch to gather them.
    max_at_once: int = number(1 << 14, "entries")
    #: Entries to a work-group of the one launch that gathers few listed rows.
    entries_of_group: int = number(1 << 10, "entries", least=1)


def rows_at(A: MatrixT, rows: range | Listed) -> MatrixT:
    """Return selected rows of a matrix, in the order of ``rows``; the order of entries within a row stays.

    Waits for the device once, for the number of entries.

    Parameters
    ----------
    A : Matrix
        Valid.
    rows : range or Listed

    Raises
    ------
    IndexError
        An index of a device array is out of range.
    MemoryError
        The device has not the memory for the result.
    """
    if not isinstance(rows, range):
        return take_listed_rows(A, rows.values)
    if rows and rows.step != 1:
        return take_listed_rows(A, np.arange(rows.start, rows.stop, rows.step))
    parts = A.parts
    return assemble_like(A, (len(rows), A.shape[1]), _copy_adjacent(A.queue, parts, rows.start if rows else 0, len(rows)))


def take_listed_rows(A: MatrixT, rows: np.ndarray[Any, Any] | cl_array.Array) -> MatrixT:
    """Return the rows of a matrix that an array of integers lists, on host or device; negative numbers count from the end.

    Waits for the device once, for the number of entries. Raises as `rows_at`.
    """
    row_list: np.ndarray[Any, Any] | cl_array.Array
    if isinstance(rows, np.ndarray):
        row_list = rows if rows.ndim == 1 and rows.flags.c_contiguous else rows.ravel()
    else:
        row_list = move_to_device(A.queue, Listed(rows), A.indptr.dtype)
    n, n_columns, facts, parts = row_list.size, A.shape[1], A.facts, A.parts
    longest = A.indices.size if facts is None or facts.longest is None else facts.longest
    if facts is not None and facts.canonical:
        longest = min(longest, n_columns)
    parts_of_rows = _gather_in_one_launch(A.queue, parts, row_list, n * longest)
    return assemble_like(A, (n, n_columns), _gather(A.queue, parts, row_list) if parts_of_rows is None else parts_of_rows)


def take_marked_rows(A: MatrixT, mask: cl_array.Array) -> MatrixT | None:
    """Return the rows of a matrix that a device mask of booleans selects; None if A has no row, or 2^31 rows or entries or more.

    Waits for the device once, for the numbers of rows and entries.

    Raises
    ------
    ValueError
        The mask lives in another context.
    """
    if max(A.shape[0], A.indices.size) > INT32_MAX or not A.shape[0]:
        return None
    marks = move_to_device(A.queue, Listed(mask), np.dtype(bool))
    parts = _gather_marked(A.queue, A.parts, marks)
    return assemble_like(A, (parts[2].size - 1, A.shape[1]), parts)


def assemble_like(A: MatrixT, shape: tuple[int, int], parts: Parts, *, in_order: bool = True) -> MatrixT:
    """Return a matrix of A's class from a selection's arrays, known as canonical if A is and columns are ``in_order``."""
    data, indices, indptr = parts
    facts_of_a, facts = A.facts, None
    # Selected rows of a matrix that is not canonical may be canonical by chance: no fact about the result's format is noted.
    if facts_of_a is not None and facts_of_a.canonical and in_order:
        facts = Facts(indices.size, sorted=True, canonical=True)
    return A.assembled(Structure(A.queue, shape, indices, indptr, facts), data)


def choose_chunk(device: Device, n: int) -> int:
    """Return how many of a matrix's n rows and entries a work-item of a CPU device takes in a selection of rows or columns."""
    limits = Thresholds.of(device)
    return max(-(-n // (device.compute_units * limits.chunks_per_core)), limits.min_chunk)


def new_parts(queue: cl.CommandQueue, parts: Parts, n_rows: int, nnz: int) -> Parts:
    """Allocate data, indices and indptr of a new matrix, of the dtypes and by the allocator of another matrix's arrays."""
    data, _, indptr = parts
    offsets = allocate(queue, "indptr of the result", n_rows + 1, indptr.dtype, data.allocator)
    return *_allocate_entries(queue, parts, nnz), offsets


def _allocate_entries(queue: cl.CommandQueue, parts: Parts, nnz: int) -> tuple[cl_array.Array, cl_array.Array]:
    """Allocate data and indices of ``nnz`` new entries, of the dtypes and by the allocator of a matrix's arrays."""
    data, indices, _ = parts
    sizes_and_dtypes = (nnz, data.dtype), (nnz, indices.dtype)
    values, columns = allocate_each(queue, "the entries of the result", sizes_and_dtypes, data.allocator)
    return values, columns


def _copy_adjacent(queue: cl.CommandQueue, parts: Parts, first: int, n: int) -> Parts:
    """Return data, indices and indptr of n adjacent rows of a matrix, by copies."""
    data, indices, indptr = parts
    chain, index = Chain(queue, *parts), indptr.dtype
    built, _ = chain.build(OFFSETS.record(min(_WORK_GROUP, chain.device.max_work_group), name_of(index)))
    offsets = allocate(queue, "indptr of the result", n + 1, index, data.allocator)
    bounds = chain.scratch(2, index)
    chain.launch_spread(built, n + 1, np.uint64(first), indptr, offsets, bounds, groups_per_unit=16)
    begin, nnz = (int(bound) for bound in chain.read(bounds, 2))
    entries = _allocate_entries(queue, parts, nnz)
    chain.copy(entries[0], data, nnz, 0, begin)
    chain.copy(entries[1], indices, nnz, 0, begin)
    chain.finish(*entries, offsets)
    return *entries, offsets


def _gather(queue: cl.CommandQueue, parts: Parts, row_list: np.ndarray[Any, Any] | cl_array.Array) -> Parts:
    """Return data, indices and indptr of listed rows of a matrix, by a gather.

    Parameters
    ----------
    queue, parts
        Of the matrix.
    row_list : numpy.ndarray or pyopencl.array.Array
        Indices of rows, of any integer dtype; contiguous.
    """
    data, _, indptr = parts
    n, n_rows, index = row_list.size, indptr.size - 1, indptr.dtype
    chain, row_list = _begin_chain(queue, parts, row_list)
    gather = _build_gather(chain, index, data.dtype, n, name_of(row_list.dtype))
    groups = _share_rows(chain.device, n, index)[0]
    starts = allocate(queue, "indptr of the result", n + 1, index, data.allocator)
    totals = chain.scratch(2 * groups, np.int64)
    run(chain, _enqueue_lengths, (row_list, indptr, starts, totals), n, n_rows)
    nnz, n_outside = _sum_totals(chain.device, chain.read(totals, 2 * groups))
    if n_outside:
        raise _range_error(n_outside, n, n_rows)
    if nnz > np.iinfo(index).max:
        return _gather(queue, with_index(queue, parts, np.dtype(np.int64)), row_list)
    entries = _allocate_entries(queue, parts, nnz)
    if nnz:
        _enqueue_gather(chain, gather, row_list, n, starts, parts, entries)
    chain.finish(*entries, starts)
    return *entries, starts


def _sum_totals(device: Device, numbers_of_groups: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return two sums of work-groups' counts: the number of listed rows' entries, and the number of row indices out of range."""
    if numbers_of_groups.size <= Thresholds.of(device).few_numbers:  # NumPy takes microseconds to begin a sum
        numbers = numbers_of_groups.tolist()
        return sum(numbers[::2]), sum(numbers[1::2])
    entries, outside = numbers_of_groups.reshape(-1, 2).sum(axis=0).tolist()
    return entries, outside


def _range_error(n_outside: int, n: int, n_rows: int) -> IndexError:
    """Return the IndexError for row indices out of range."""
    return IndexError(f"index out of range: {n_outside} of {n} are; axis 0 has {n_rows} positions")


def _begin_chain(
    queue: cl.CommandQueue, parts: Parts, row_list: np.ndarray[Any, Any] | cl_array.Array
) -> tuple[Chain, cl_array.Array]:
    """Return a new chain for commands that read a matrix and a list of row indices, and that list as a device array."""
    if not isinstance(row_list, np.ndarray):
        return Chain(queue, row_list, *parts), row_list
    chain = Chain(queue, *parts)
    return chain, chain.send(row_list)


def _gather_in_one_launch(
    queue: cl.CommandQueue, parts: Parts, row_list: np.ndarray[Any, Any] | cl_array.Array, room: int
) -> Parts | None:
    """Return few listed rows' data, indices and indptr by one launch, in memory for ``room`` entries; None if that cannot be.

    It cannot be beyond the thresholds of rows and entries, for ``room`` 0, and where work-groups have one work-item.
    """
    data, indices, indptr = parts
    n, n_rows, index, limits = row_list.size, indptr.size - 1, indptr.dtype, Thresholds.of(describe(queue.device))
    if n > limits.max_rows_at_once or not 0 < room <= limits.max_at_once:
        return None
    chain, listed = _begin_chain(queue, parts, row_list)
    kind = _gather_in_one_launch, index, data.dtype, row_list.dtype
    kernel = chain.worked_out(kind, lambda: _build_gather_in_one_launch(chain, *kind[1:]))
    if not kernel or n > kernel[1]:
        return None
    note_asked(kernel[:1])
    starts = allocate(chain.queue, "indptr of the result", n + 1, index, data.allocator)
    values, columns = _allocate_entries(chain.queue, parts, room)
    groups = min(-(-room // limits.entries_of_group), chain.device.compute_units)
    chain.launch(kernel[0], groups, np.uint32(n), np.int64(n_rows), listed, indptr, indices, data, starts, columns, values)
    nnz = int(chain.read(starts, 1, n)[0])
    if nnz < 0:
        raise _range_error(-nnz, n, n_rows)
    shorten(columns, nnz)
    shorten(values, nnz)
    return values, columns, starts


def _build_gather_in_one_launch(
    chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any], list_dtype: np.dtype[Any]
) -> tuple[Built, int] | tuple[()]:
    """Return the kernel that gathers listed rows in one launch, and its most rows; () if work-groups have one work-item only."""
    if chain.device.is_plain:
        return ()
    built, record = chain.build(RowsAtOnce.legal(chain.device, name_of(index), dtype.itemsize, name_of(list_dtype)))
    return built, record.work_group * record.items


def _share_rows(device: Device, n: int, index: np.dtype[Any]) -> tuple[int, int, int]:
    """Return how n listed rows are divided to look up their lengths: number of work-groups, rows and work-items to each.

    A work-group takes as many rows as a tile of the scan has, so that the scan needs no launch for sums of tiles.
    """
    group = min(Thresholds.of(device).lengths_group, device.max_work_group)
    tile = choose_summed_tile(device, index, index, n + 1) or group * -(
        -n // (group * device.compute_units * Thresholds.of(device).telling_groups)
    )
    return -(-n // max(tile, 1)), tile, group


def _enqueue_lengths(
    chain: Chain,
    row_list: cl_array.Array,
    indptr: cl_array.Array,
    starts: cl_array.Array,
    totals: cl_array.Array,
    n: int,
    n_rows: int,
) -> None:
    """Enqueue the kernels that compute row pointers of n listed rows, and work-groups' counts of entries and invalid indices."""
    groups, tile, group = _share_rows(chain.device, n, indptr.dtype)
    built, record = chain.build(Lengths(group, name_of(indptr.dtype), name_of(row_list.dtype)))
    # A work-item looks up adjacent listed rows on CPU devices, listed rows at a stride elsewhere.
    span = -(-tile // record.work_group)
    how = (span, 1, span) if chain.device.lanes_are_loops else (1, record.work_group, tile)
    sums = chain.scratch(groups + 1, indptr.dtype)
    chain.launch(built, groups, *map(np.uint64, (n, tile, *how)), np.int64(n_rows), row_list, indptr, starts, sums, totals)
    enqueue_scan(chain, starts, starts, n, kind="pointers", tile_sums=(sums, tile))


def _gather_marked(queue: cl.CommandQueue, parts: Parts, marks: cl_array.Array) -> Parts:
    """Return data, indices and indptr of the rows of a matrix that a mask marks, for fewer than 2^31 rows and entries."""
    data, _, indptr = parts
    chain, n, index = Chain(queue, marks, *parts), indptr.size - 1, indptr.dtype
    gather = _build_gather(chain, index, data.dtype, n)
    pointing, _ = chain.build(MASKED_POINTERS.record(_work_group_of(chain.device), name_of(index)))
    places = allocate(queue, "workspace", n + 1, np.dtype(np.int64))
    run(chain, _enqueue_masked, (marks, indptr, places), n)
    n_rows, nnz = divmod(int(chain.read(places, 1, n)[0]), 1 << 32)
    offsets = allocate(queue, "indptr of the result", n_rows + 1, index, data.allocator)
    entries = _allocate_entries(queue, parts, nnz)
    starts = chain.scratch(n + 1, index)
    groups_per_unit = Thresholds.of(chain.device).groups_per_unit
    chain.launch_spread(pointing, n + 1, np.uint64(n), places, starts, offsets, groups_per_unit=groups_per_unit)
    if nnz:
        _enqueue_gather(chain, gather, None, n, starts, parts, entries)
    chain.finish(*entries, offsets)
    return *entries, offsets


def _enqueue_masked(chain: Chain, marks: cl_array.Array, indptr: cl_array.Array, places: cl_array.Array, n: int) -> None:
    """Enqueue the scan that computes positions in the result for the rows that a mask marks, and for these rows' entries."""
    built, _ = chain.build(MASKED.record(_work_group_of(chain.device), name_of(indptr.dtype)))
    chain.launch_spread(built, n, marks, indptr, places, groups_per_unit=Thresholds.of(chain.device).groups_per_unit)
    enqueue_scan(chain, places, places, n, kind="pointers")


def _work_group_of(device: Device) -> int:
    """Return the work-group size of the kernels that write row pointers of the rows that a mask marks."""
    return min(_WORK_GROUP, device.max_work_group)


def _build_gather(
    chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any], n_rows: int, list_dtype: str = ""
) -> tuple[Built, Rows | RowsChunked]:
    """Return the kernel that gathers selected rows, and its record; ``list_dtype``: of the row list, "" if a mask selects."""
    if chain.device.lanes_are_loops:
        return chain.build(RowsChunked(1, name_of(index), dtype.itemsize, list_dtype))
    is_few = has_few_rows(n_rows)
    key = Rows, index, dtype.itemsize, list_dtype, is_few
    return chain.build_once(key, lambda: Rows.legal(chain.device, name_of(index), dtype.itemsize, list_dtype, is_few))


def _enqueue_gather(
    chain: Chain,
    gather: tuple[Built, Rows | RowsChunked],
    row_list: cl_array.Array | None,
    n: int,
    starts: cl_array.Array,
    parts: Parts,
    out_entries: tuple[cl_array.Array, cl_array.Array],
) -> None:
    """Enqueue the gather of the n rows of ``row_list`` or, without a list, of the rows with entries in the result."""
    data, indices, indptr = parts
    out_data, out_indices = out_entries
    nnz, of_index = out_indices.size, indptr.dtype.type
    built, record = gather
    listed = () if row_list is None else (of_index(indptr.size - 1), row_list)
    arrays = starts, *listed, indptr, indices, data, out_indices, out_data
    if isinstance(record, OfPath):
        chain.launch(built, -(-(n + nnz) // record.tile), of_index(n), *arrays)
        return
    n_parts, *cut = enqueue_parts(chain, starts, n, nnz, choose_chunk(chain.device, n + nnz))
    chain.launch(built, -(-n_parts // record.work_group), of_index(n_parts), *cut, *arrays)
