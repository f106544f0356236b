"""Select columns of a sparse matrix: entries of selected columns are counted, then placed in the order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._ground.index_types import INT32_MAX, index_for
from clsparse_py._matrix.convert import convert, with_index
from clsparse_py._matrix.matrix import MatrixT
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.indexing.kernels import Columns, ColumnsChunked, Targets
from clsparse_py._operations.indexing.positions import Listed, Placed, move_to_device, place
from clsparse_py._operations.indexing.rows import Parts, assemble_like, choose_chunk, new_parts
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.partition import enqueue_parts
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import run

__all__ = ["columns_at"]

#: Greatest number of work-items of a work-group that selects columns of a sparse matrix.
_WORK_GROUP = 128
#: Most work-groups per compute unit of kernels that select columns; the kernel that looks up listed columns has the next limit.
_GROUPS_PER_UNIT = 64
#: Most work-groups per compute unit of the kernel that looks up listed columns: the host reads counts of each work-group.
_TELLING_GROUPS = 8

#: Names of the kernel variants for the two phases of a selection of columns: entries are counted, then copied.
_PHASES = ("count", "fill")


def columns_at(A: MatrixT, columns: range | Listed) -> MatrixT:
    """Return selected columns of a matrix, in the order of ``columns``; the order of entries within a row stays, as in SciPy.

    An entry of a repeated column becomes several adjacent entries. Waits for the device once, for the number of entries.

    Parameters
    ----------
    A : Matrix
        Valid.
    columns : range or Listed

    Raises
    ------
    IndexError
        An index of a device array is out of range.
    MemoryError
        The device has not the memory for the result.
    """
    n = len(columns) if isinstance(columns, range) else columns.size
    shape, parts, index = (A.shape[0], n), A.parts, A.indptr.dtype
    if isinstance(columns, range):
        return assemble_like(
            A, shape, _select_columns(A.queue, parts, columns, A.shape[1], index), in_order=columns.step > 0 or n < 2
        )
    if max(*shape, A.shape[1], A.indices.size) <= INT32_MAX:
        selected = _select_distinct(A.queue, parts, move_to_device(A.queue, columns, index), A.shape[1])
        if selected is not None:
            return assemble_like(A, shape, selected, in_order=columns.ascends)
    wide = index_for(A.indices.size * _bound_repeats(columns), index)
    listed = place(A.queue, columns, 1, A.shape[1], index)
    return assemble_like(A, shape, _select_columns(A.queue, parts, listed, A.shape[1], wide), in_order=columns.ascends)


def _bound_repeats(columns: Listed) -> int:
    """Return an upper bound of the number of times that one column stands in a list of selected columns."""
    if isinstance(columns.values, np.ndarray) and columns.size > 1 and not columns.ascends:
        return int(np.unique(columns.values, return_counts=True)[1].max())
    return 1 if isinstance(columns.values, np.ndarray) else columns.size


def _select_distinct(queue: cl.CommandQueue, parts: Parts, listed: cl_array.Array, n_columns: int) -> Parts | None:
    """Return data, indices and indptr of listed columns of a matrix; None if a column is listed twice, and on CPU devices.

    Parameters
    ----------
    queue, parts
        Of the matrix.
    listed : pyopencl.array.Array
        Indices of columns, of any integer dtype.
    n_columns : int
        Of the matrix.
    """
    data, indices, indptr = parts
    chain, n, index = Chain(queue, listed, *parts), indices.size, indptr.dtype
    if chain.device.lanes_are_loops:
        return None
    group = min(_WORK_GROUP, chain.device.max_work_group)
    groups = spread(chain.device, listed.size, group, _TELLING_GROUPS)[0]
    targets = allocate(queue, "columns", n_columns, np.dtype(np.int32))
    # Counts of indices out of range and of repeated columns stand behind entries' positions in the result: one read gets all.
    places = allocate(queue, "places", n + 1 + 2 * groups, index)
    filling, _ = chain.build(Columns(group, name_of(index), data.dtype.itemsize, "fill", False, name_of(index), True))
    run(chain, _enqueue_map, (listed, indices, targets, places), listed.size, n_columns, n, data.dtype.itemsize)
    counts = chain.read(places, 1 + 2 * groups, n)
    nnz = int(counts[0])
    if n_outside := int(counts[1::2].sum()):
        raise IndexError(f"index out of range: {n_outside} of {listed.size} are; axis 1 has {n_columns} positions")
    if counts[2::2].any():
        return None
    result = new_parts(queue, parts, indptr.size - 1, nnz)
    chain.launch_spread(filling, n, targets, indices, data, places, result[1], result[0])
    enqueue_permute(chain, indptr, places, result[2], indptr.size)
    chain.finish(*result)
    return result


def _enqueue_map(
    chain: Chain,
    listed: cl_array.Array,
    indices: cl_array.Array,
    targets: cl_array.Array,
    places: cl_array.Array,
    n_listed: int,
    n_columns: int,
    n: int,
    value_bytes: int,
) -> None:
    """Enqueue the kernels that write each column's number in the result, -1 if not selected, and entries' positions there."""
    group, index = min(_WORK_GROUP, chain.device.max_work_group), name_of(indices.dtype)
    mapping, _ = chain.build(Targets(group, index, name_of(listed.dtype)))
    counting, _ = chain.build(Columns(group, index, value_bytes, "count", False, index, True))
    chain.fill(targets, -1, n_columns)
    arguments = np.int64(n_columns), np.uint64(n + 1), listed, targets, places
    chain.launch_spread(mapping, n_listed, *arguments, groups_per_unit=_TELLING_GROUPS)
    counts = chain.scratch(n, np.uint8)
    chain.launch_spread(counting, n, targets, indices, counts)
    enqueue_scan(chain, counts, places, n, kind="pointers")


def _select_columns(queue: cl.CommandQueue, parts: Parts, columns: range | Placed, n_columns: int, wide: np.dtype[Any]) -> Parts:
    """Return data, indices and indptr of evenly spaced or listed columns of a sparse matrix.

    ``wide``: int64 if the result may have too many entries for 32-bit offsets.
    """
    indptr = parts[2]
    index = indptr.dtype
    chain, check = Chain(queue, *parts), None
    targets: tuple[cl_array.Array, ...] = ()
    if isinstance(columns, range):
        # The step of a range of one column may be too large for the index type.
        selection: tuple[Any, ...] = tuple(
            map(index.type, (columns.start, columns.step if len(columns) > 1 else 1, len(columns)))
        )
    else:
        chain = Chain(queue, columns.positions, *parts)
        selection, targets = _group_targets(chain, columns.positions, n_columns)
        check = columns.enqueue_checks(chain)
    count = _count_by_chunks if chain.device.lanes_are_loops else _count_by_entries
    nnz, fill = count(chain, parts, selection, targets, wide)
    if check is not None and not isinstance(columns, range):
        check()
        if nnz > np.iinfo(index).max:
            return _select_columns(queue, with_index(queue, parts, wide), columns.as_dtype(queue, wide), n_columns, wide)
    return fill(new_parts(queue, parts, indptr.size - 1, nnz))


def _group_targets(chain: Chain, columns: cl_array.Array, n_columns: int) -> tuple[tuple[cl_array.Array], tuple[cl_array.Array]]:
    """Return, for each column of a matrix, the list of the result's columns that copy it: where lists begin, and the lists."""
    offsets, targets = chain.scratch(n_columns + 1, columns.dtype), chain.scratch(columns.size, columns.dtype)
    enqueue_sort_by_key(chain, columns, columns.size, n_columns, n_items=columns.size, sorted_items=targets, pointers=offsets)
    return (offsets,), (targets,)


def _count_by_entries(
    chain: Chain, parts: Parts, selection: tuple[Any, ...], targets: tuple[cl_array.Array, ...], wide: np.dtype[Any]
) -> tuple[int, Callable[[Parts], Parts]]:
    """Count the entries of selected columns, a work-item per entry; return their number, and a function that copies them.

    Parameters
    ----------
    chain, parts
        Of the matrix.
    selection : tuple
        The selected columns as arguments of kernels: the first column, step and number; or the beginnings of lists.
    targets : tuple
        The lists of columns of the result; empty for evenly spaced columns.
    wide : dtype
        The dtype of places in the result.
    """
    data, indices, indptr = parts
    n, index = indices.size, indptr.dtype
    group, types = min(_WORK_GROUP, chain.device.max_work_group), (name_of(index), data.dtype.itemsize)
    counting, filling = (chain.build(Columns(group, *types, phase, bool(targets), name_of(wide))) for phase in _PHASES)
    places = chain.scratch(n + 1, wide)
    counts = places if targets else chain.scratch(n, np.uint8)
    groups, sizes = spread(chain.device, n, counting[1].work_group, _GROUPS_PER_UNIT)
    chain.launch(counting[0], groups, *sizes, *selection, indices, counts)
    enqueue_scan(chain, counts, places, n, kind="pointers")

    def fill(result: Parts) -> Parts:
        """Enqueue the kernels that write data, indices and indptr of the selected columns, and return these arrays."""
        out_data, out_indices, out_indptr = result
        # Entries' positions in the result tell which entries are selected: evenly spaced columns need no number of columns.
        of_columns = selection if targets else selection[:2]
        chain.launch(filling[0], groups, *sizes, *of_columns, indices, *targets, data, places, out_indices, out_data)
        offsets = out_indptr if wide == index else chain.scratch(out_indptr.size, wide)
        enqueue_permute(chain, indptr, places, offsets, out_indptr.size)
        chain.finish(out_data, out_indices, offsets)
        return out_data, out_indices, offsets if wide == index else convert(chain.queue, "indptr", offsets, index)

    return int(chain.read(places, 1, n)[0]), fill


def _count_by_chunks(
    chain: Chain, parts: Parts, selection: tuple[Any, ...], targets: tuple[cl_array.Array, ...], wide: np.dtype[Any]
) -> tuple[int, Callable[[Parts], Parts]]:
    """Count the entries of selected columns as `_count_by_entries` does, but with a work-item per chunk of entries."""
    data, indices, indptr = parts
    n_rows, index = indptr.size - 1, indptr.dtype
    types = name_of(index), data.dtype.itemsize
    counting, filling = (chain.build(ColumnsChunked(1, *types, phase, bool(targets), name_of(wide))) for phase in _PHASES)
    step = choose_chunk(chain.device, n_rows + indices.size)
    n_parts, part_row, part_entry = enqueue_parts(chain, indptr, n_rows, indices.size, step)
    starts = chain.scratch(n_parts + 1, wide)
    groups, sizes = -(-n_parts // counting[1].work_group), (index.type(n_parts), part_entry, *selection, indices)
    chain.launch(counting[0], groups, *sizes, starts)
    enqueue_scan(chain, starts, starts, n_parts, kind="pointers")

    def fill(result: Parts) -> Parts:
        """Enqueue the kernels that write data, indices and indptr of the selected columns, and return these arrays."""
        out_data, out_indices, out_indptr = result
        if not n_parts:
            chain.fill(out_indptr, 0, out_indptr.size)
        rows = part_row, index.type(n_rows), indptr
        chain.launch(filling[0], groups, *sizes, *rows, *targets, data, starts, out_indptr, out_indices, out_data)
        chain.finish(*result)
        return result

    return int(chain.read(starts, 1, n_parts)[0]), fill
