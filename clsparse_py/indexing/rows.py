"""Some rows of a sparse matrix: adjacent ones are copied, others gathered, with as many entries to each work-group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.arithmetic import name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.convert import converted, with_index
from clsparse_py.device import Device
from clsparse_py.index_types import INT32_MAX, index_for
from clsparse_py.indexing.kernels import Lengths, Offsets, Rows, RowsChunked, kept
from clsparse_py.indexing.key import Listed
from clsparse_py.indexing.positions import on_device
from clsparse_py.launch import Chain, spread
from clsparse_py.lowering import run
from clsparse_py.matrix import MatrixT, Structure
from clsparse_py.memory import allocated, array_of
from clsparse_py.primitives.partition import enqueue_parts
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.structure import Facts
from clsparse_py.transfer import fetched

__all__ = ["Parts", "chunk", "like", "new_parts", "rows_at"]

Parts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]

_WORK_GROUP = 128
#: Work-groups to a compute unit, at most, of which each tells a number to the host.
_GROUPS_PER_UNIT = 8
#: Entries for which there is room, to one that the rows have on average; and for how many there may always be room.
_MAX_WASTE, _FEW = 1.5, 1 << 10
#: On CPU devices, chunks of entries to a core.
_CHUNKS_PER_CORE = 4
#: Rows and entries that are worth a chunk.
_MIN_CHUNK = 64

_lengths, _offsets, _chunked, _tiled = kept(Lengths), kept(Offsets), kept(RowsChunked), kept(Rows.legal)


def rows_at(A: MatrixT, rows: range | Listed) -> MatrixT:
    """Return some rows of a matrix, in the order in which they are given; entries of a row keep theirs.

    Waits for the device once, to learn how many entries there are.

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
    n, parts = len(rows) if isinstance(rows, range) else rows.size, (A.data, A.indices, A.indptr)
    if isinstance(rows, range):
        if not n or rows.step == 1:
            return like(A, (n, A.shape[1]), _adjacent(A.queue, parts, rows.start if n else 0, n))
        rows = Listed(np.arange(rows.start, rows.stop, rows.step))
    longest = A.facts.longest if A.facts is not None and A.facts.longest is not None else A.indices.size
    wide = index_for(n * longest, A.indptr.dtype)
    # Where rows are alike, room for the longest of them is little more than they need: the device need not be waited for before.
    room = n * longest
    if room > max(_MAX_WASTE * n * A.indices.size / max(A.shape[0], 1), _FEW):
        room = 0
    return like(A, (n, A.shape[1]), _gathered(A.queue, parts, on_device(A.queue, rows, A.indptr.dtype), wide, room))


def like(A: MatrixT, shape: tuple[int, int], parts: Parts, *, in_order: bool = True) -> MatrixT:
    """Return a matrix of A's class, whose rows are sorted or canonical if A's are and entries were taken ``in_order``."""
    data, indices, indptr = parts
    known, facts = A.facts, None
    # Of a matrix that is unsorted, or has duplicates, some rows may be neither.
    if known is not None and known.canonical and in_order:
        facts = Facts(indices.size, sorted=True, canonical=True)
    return A.assembled(Structure(A.queue, shape, indices, indptr, facts), data)


def chunk(device: Device, n: int) -> int:
    """Return how many of n rows and entries a work-item takes on a CPU device."""
    return max(-(-n // (device.compute_units * _CHUNKS_PER_CORE)), _MIN_CHUNK)


def new_parts(queue: cl.CommandQueue, parts: Parts, n_rows: int, nnz: int) -> Parts:
    """Return arrays of a matrix, of the dtypes and from the allocator of another's."""
    data, _, indptr = parts
    offsets = allocated(queue, "indptr of the result", n_rows + 1, indptr.dtype, data.allocator)
    return *_new_entries(queue, parts, nnz), offsets


def _new_entries(queue: cl.CommandQueue, parts: Parts, nnz: int) -> tuple[cl_array.Array, cl_array.Array]:
    """Return arrays for the values and the columns of entries, of the dtypes and from the allocator of a matrix."""
    data, indices, _ = parts
    values = allocated(queue, "data of the result", nnz, data.dtype, data.allocator)
    return values, allocated(queue, "indices of the result", nnz, indices.dtype, data.allocator)


def _adjacent_by_host(queue: cl.CommandQueue, parts: Parts, first: int, n: int) -> Parts:
    """Return the result of `_adjacent`, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    begin, end = indptr[first], indptr[first + n]
    found = data[begin:end], indices[begin:end], indptr[first : first + n + 1] - begin
    return placed(queue, "data", found[0]), placed(queue, "indices", found[1]), placed(queue, "indptr", found[2])


@or_by_host(_adjacent_by_host)
def _adjacent(queue: cl.CommandQueue, parts: Parts, first: int, n: int) -> Parts:
    """Return the parts of n rows from the first on: copies."""
    data, indices, indptr = parts
    chain, index = Chain(queue, *parts), indptr.dtype
    built, record = chain.build(_offsets(min(_WORK_GROUP, chain.device.max_work_group), name_of(index)))
    offsets = allocated(queue, "indptr of the result", n + 1, index, data.allocator)
    told = chain.scratch(2, index)
    groups, sizes = spread(chain.device, n + 1, record.work_group)
    chain.launch(built, groups, *sizes, np.uint64(first), indptr, offsets, told)
    begin, nnz = (int(each) for each in chain.read(told, 2))
    found = _new_entries(queue, parts, nnz)
    chain.copy(found[0], data, nnz, 0, begin)
    chain.copy(found[1], indices, nnz, 0, begin)
    chain.finish(*found, offsets)
    return *found, offsets


def _gathered_by_host(
    queue: cl.CommandQueue,
    parts: Parts,
    given: cl_array.Array,
    wide: np.dtype[Any],  # noqa: ARG001 - of the kernels'
    room: int,  # noqa: ARG001 - of the kernels'
) -> Parts:
    """Return the result of `_gathered`, computed by NumPy."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    rows, n_rows = fetched(given, queue).astype(np.int64), indptr.size - 1
    _require_in_range(int(np.sum((rows < -n_rows) | (rows >= n_rows))), rows.size, n_rows)
    begins = np.where(rows < 0, rows + n_rows, rows)
    lengths = indptr[begins + 1].astype(np.int64) - indptr[begins]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    sources = np.arange(starts[-1]) + np.repeat(indptr[begins] - starts[:-1], lengths)
    index = index_for(starts[-1], indices.dtype)
    found = data[sources], indices[sources].astype(index), starts.astype(index)
    return placed(queue, "data", found[0]), placed(queue, "indices", found[1]), placed(queue, "indptr", found[2])


@or_by_host(_gathered_by_host)
def _gathered(queue: cl.CommandQueue, parts: Parts, given: cl_array.Array, wide: np.dtype[Any], room: int) -> Parts:
    """Return the parts of rows in any order.

    Parameters
    ----------
    queue, parts
        Of the matrix.
    given : pyopencl.array.Array
        Indices of rows, of any integer dtype.
    wide : dtype
        int64 if the result may have too many entries for 32-bit offsets.
    room : int
        Entries that the result has at most, if there is memory for these; 0 if the number is to be read before it is allocated.
    """
    data, _, indptr = parts
    chain, n, index = Chain(queue, given, *parts), given.size, indptr.dtype
    groups = spread(chain.device, n, _group(chain.device), _GROUPS_PER_UNIT)[0]
    # Behind the offsets stand the counts of indices that are out of range: both are read at once.
    told = allocated(queue, "indptr of the result", n + 1 + groups, wide, data.allocator)
    if room and not chain.device.is_cpu and wide == index:
        found = _new_entries(queue, parts, room)
        run(chain, _enqueue_all, (given, indptr, *parts[:2], told, *found), n, indptr.size - 1, room)
        nnz = _read_length(chain, told, n, groups, indptr.size - 1)
        chain.finish(*found, told)
        return _first(found[0], nnz), _first(found[1], nnz), _first(told, n + 1)
    rows = allocated(queue, "workspace", n, index)
    _build_gather(chain, index, data.dtype)
    run(chain, _enqueue_lengths, (given, indptr, rows, told), n, indptr.size - 1)
    nnz = _read_length(chain, told, n, groups, indptr.size - 1)
    starts = _first(told, n + 1)
    if wide != index:
        chain.finish(starts, rows)
        if nnz <= INT32_MAX:
            starts = converted(queue, "indptr", starts, index)
        else:
            parts, rows = with_index(queue, parts, wide), converted(queue, "rows", rows, wide)
        chain = Chain(queue, starts, rows, *parts)
    found = _new_entries(queue, parts, nnz)
    if nnz:
        _enqueue_gather(chain, rows, n, starts, parts, found)
    chain.finish(*found, starts)
    return *found, starts


def _group(device: Device) -> int:
    """Return how many work-items a work-group of the kernel for lengths has."""
    return min(_WORK_GROUP, device.max_work_group)


def _first(array: cl_array.Array, n: int) -> cl_array.Array:
    """Return the first n entries of an array."""
    found = array_of(array.queue, n, np.dtype(array.dtype), array.base_data, array.allocator)  # type: ignore[arg-type] # it has one
    found.events = array.events
    return found


def _read_length(chain: Chain, told: cl_array.Array, n: int, groups: int, n_rows: int) -> int:
    """Wait for the number of entries of n rows, after all indices were found to be in range."""
    nnz, *outside = (int(each) for each in chain.read(told, 1 + groups, n))
    _require_in_range(sum(outside), n, n_rows)
    return nnz


def _enqueue_lengths(
    chain: Chain,
    given: cl_array.Array,
    indptr: cl_array.Array,
    rows: cl_array.Array,
    told: cl_array.Array,
    n: int,
    n_rows: int,
) -> None:
    """Enqueue the positions of n rows, and where each begins in the result."""
    types = name_of(indptr.dtype), name_of(given.dtype), name_of(told.dtype)
    built, record = chain.build(_lengths(_group(chain.device), *types))
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, np.int64(n_rows), given, indptr, rows, told)
    enqueue_scan(chain, told, told, n, kind="pointers")


def _enqueue_all(
    chain: Chain,
    given: cl_array.Array,
    indptr: cl_array.Array,
    data: cl_array.Array,
    indices: cl_array.Array,
    told: cl_array.Array,
    out_data: cl_array.Array,
    out_indices: cl_array.Array,
    n: int,
    n_rows: int,
    room: int,
) -> None:
    """Enqueue the gather of n rows that have room for all entries which they may have; not on CPU devices."""
    rows = chain.scratch(n, indptr.dtype)
    _enqueue_lengths(chain, given, indptr, rows, told, n, n_rows)
    built, record = _build_gather(chain, indptr.dtype, data.dtype)
    groups = -(-(n + room) // (record.work_group * record.items))
    chain.launch(built, groups, indptr.dtype.type(n), told, rows, indptr, indices, data, out_indices, out_data)


def _require_in_range(n_outside: int, n: int, n_rows: int) -> None:
    """Raise an IndexError if some of n indices of rows are out of range."""
    if n_outside:
        raise IndexError(f"index out of range: {n_outside} of {n} are; axis 0 has {n_rows} positions")


def _build_gather(chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the built kernel that gathers rows, and its record."""
    if chain.device.is_cpu:
        return chain.build(_chunked(1, name_of(index), dtype.itemsize))
    return chain.build(_tiled(chain.device, name_of(index), dtype.itemsize))


def _enqueue_gather(
    chain: Chain, rows: cl_array.Array, n: int, starts: cl_array.Array, parts: Parts, found: tuple[cl_array.Array, cl_array.Array]
) -> None:
    """Enqueue the gather of rows, whose places in the result are known."""
    data, indices, indptr = parts
    out_data, out_indices = found
    nnz = out_indices.size
    built, record = _build_gather(chain, indptr.dtype, data.dtype)
    arrays = starts, rows, indptr, indices, data, out_indices, out_data
    if isinstance(record, Rows):
        chain.launch(built, -(-(n + nnz) // (record.work_group * record.items)), indptr.dtype.type(n), *arrays)
        return
    n_parts, *cut = enqueue_parts(chain, starts, n, nnz, chunk(chain.device, n + nnz))
    chain.launch(built, -(-n_parts // record.work_group), indptr.dtype.type(n_parts), *cut, *arrays)
