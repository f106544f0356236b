"""Values assigned to places of a sparse matrix: to the entries that are there, and to new ones, which are inserted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.arithmetic import name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.indexing.kernels import Insert, Keys, Locate, kept
from clsparse_py.indexing.points import Places
from clsparse_py.indexing.rows import Parts, new_parts, with_index
from clsparse_py.launch import Chain, spread
from clsparse_py.memory import allocated
from clsparse_py.primitives.radix_sort import enqueue_radix_sort
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.records import dataclass
from clsparse_py.transfer import fetched

__all__ = ["Values", "assigned"]

_WORK_GROUP = 128
_GROUPS_PER_UNIT = 64

_keys, _locate, _insert = kept(Keys), kept(Locate), kept(Insert)


@dataclass(frozen=True, eq=False)
class Values:
    """The values that places are given.

    Attributes
    ----------
    array : pyopencl.array.Array
        Of the matrix's dtype, contiguous, from the beginning of its buffer.
    by_row, by_column : int
        The value of the place in row r and column c of the matrix of places is number ``r * by_row + c * by_column``.
    listed : pyopencl.array.Array or None
        The numbers of the places that are given values, int64, ascending, one for each value, if not all are; the others stay.
    """

    array: cl_array.Array
    by_row: int
    by_column: int
    listed: cl_array.Array | None = None


def assigned(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool = True
) -> tuple[Parts, int]:
    """Return the parts of a matrix with values assigned to places, and how many entries are new.

    Waits for the device once, to learn how many these are.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    parts : tuple of pyopencl.array.Array
        data, indices and indptr, in canonical format; they stay as they are. If no entry is new, the result has the latter two.
    shape : tuple of int
        Of the matrix.
    places : Places
        The last value of a place counts.
    values : Values
    inserts : bool
        False: places without an entry stay so.

    Raises
    ------
    IndexError
        An index of a device array is out of range.
    ValueError
        Places of the matrix cannot be counted in 63 bits.
    MemoryError
        The device has not the memory for the result.
    """
    if shape[0] * shape[1] > np.iinfo(np.int64).max:
        raise ValueError(f"A: a matrix of {shape[0]} x {shape[1]} has too many places to be assigned to")
    return _assigned(queue, parts, shape, places, values, inserts=inserts)


def _assigned_by_host(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return the result of `assigned`, computed by NumPy."""
    for check in places.checked_by(Chain(queue)):
        check()
    data, indices, indptr = (fetched(part, queue) for part in parts)
    there = np.repeat(np.arange(shape[0]), np.diff(indptr)) * shape[1] + indices
    rows, columns = (each.on_host(places.shape, queue).astype(np.int64) for each in (places.row, places.column))
    keys, numbers = rows * shape[1] + columns, np.arange(places.size)
    if values.listed is not None:
        keys, numbers = keys[fetched(values.listed, queue)], np.arange(values.listed.size)
    width = max(_columns(places, values), 1)
    given = fetched(values.array, queue)[numbers // width * values.by_row + numbers % width * values.by_column]
    last, at = np.unique(keys[::-1], return_index=True)
    given, belongs = given[::-1][at], np.searchsorted(there, last)
    is_there = np.zeros(last.size, bool)
    inside = belongs < there.size
    is_there[inside] = there[belongs[inside]] == last[inside]
    data[belongs[is_there]] = given[is_there]
    is_new = ~is_there & inserts
    if not is_new.any():
        return (placed(queue, "data", data), parts[1], parts[2]), 0
    new = last[is_new]
    data, indices = (np.insert(of, belongs[is_new], what) for of, what in ((data, given[is_new]), (indices, new % shape[1])))
    indptr = indptr + np.searchsorted(new, np.arange(shape[0] + 1) * shape[1])
    index = np.dtype(np.int64) if indices.size > np.iinfo(np.int32).max else parts[2].dtype
    made = placed(queue, "indices", indices.astype(index)), placed(queue, "indptr", indptr.astype(index))
    return (placed(queue, "data", data), *made), new.size


@or_by_host(_assigned_by_host)
def _assigned(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return the result of `assigned`."""
    data, indices, indptr = parts
    chain = Chain(queue, *parts, *places.arrays, values.array, *([] if values.listed is None else [values.listed]))
    n, index = places.size if values.listed is None else values.listed.size, indptr.dtype
    if n > np.iinfo(index).max:
        return _with_wide_index(queue, parts, shape, places, values, inserts=inserts)
    group, types = min(_WORK_GROUP, chain.device.max_work_group), (name_of(index), data.dtype.itemsize)
    keyed, located = chain.build(_keys(group, name_of(index))), chain.build(_locate(group, *types))
    insertion = [chain.build(_insert(group, *types, phase))[0] for phase in ("new", "entries", "rows")]
    out = allocated(queue, "data of the result", data.size, data.dtype, data.allocator)
    chain.copy(out, data, data.size)
    keys, numbers = _enqueue_keys(chain, keyed, shape, places, values, n)
    is_new, belongs, counts = (chain.scratch(n + 1, dtype) for dtype in (np.uint8, index, index))
    told = np.uint64(_columns(places, values)), np.int64(values.by_row), np.int64(values.by_column), np.int64(shape[1])
    built, record = located
    groups = -(-n // record.work_group)
    chain.launch(built, groups, np.uint64(n), *told, keys, numbers, values.array, indptr, indices, out, is_new, belongs)
    checks = places.checked_by(chain)
    enqueue_scan(chain, is_new, counts, n, kind="pointers")
    n_new = int(chain.read(counts, 1, n)[0])
    for check in checks:
        check()
    if not n_new or not inserts:
        chain.finish(out)
        return (out, indices, indptr), 0
    nnz = data.size + n_new
    if nnz > np.iinfo(index).max:
        return _with_wide_index(queue, parts, shape, places, values, inserts=inserts)
    found = new_parts(queue, parts, shape[0], nnz)
    new_belongs, new_keys = chain.scratch(n_new, index), chain.scratch(n_new, np.int64)

    def over(length: int, built: Any, *arguments: Any) -> None:
        groups, sizes = spread(chain.device, length, group, _GROUPS_PER_UNIT)
        chain.launch(built, groups, *sizes, *arguments)

    listing = keys, numbers, values.array, belongs, counts, new_belongs, new_keys
    over(n, insertion[0], *told, *listing, found[1], found[0])
    over(data.size, insertion[1], index.type(n_new), new_belongs, indices, out, found[1], found[0])
    over(shape[0] + 1, insertion[2], index.type(n_new), np.int64(shape[1]), new_keys, indptr, found[2])
    chain.finish(*found)
    return found, n_new


def _with_wide_index(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return the result of `assigned` with indices of 64 bits."""
    wide = with_index(queue, parts, np.dtype(np.int64))
    return _assigned(queue, wide, shape, places.widened(queue), values, inserts=inserts)


def _columns(places: Places, values: Values) -> int:
    """Return how many columns the matrix of values has."""
    return places.shape[1] if values.listed is None else values.listed.size


def _enqueue_keys(
    chain: Chain, keyed: tuple[Any, Any], shape: tuple[int, int], places: Places, values: Values, n: int
) -> tuple[cl_array.Array, cl_array.Array]:
    """Enqueue the keys of places, sorted; return them, and the number of each place."""
    built, record = keyed
    index = np.dtype(record.index)
    keys, numbers = chain.scratch(n, np.int64), chain.scratch(n, index)
    # Any array stands for a list that there is none of.
    listed = keys if values.listed is None else values.listed
    axes = (*places.row.arguments(numbers), *places.column.arguments(numbers))
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    told = np.uint64(places.shape[1]), *axes, np.uint32(values.listed is not None), listed, np.int64(shape[1])
    chain.launch(built, groups, *sizes, *told, keys, numbers)
    if places.ascend:
        return keys, numbers
    ordered, order = chain.scratch(n, np.int64), chain.scratch(n, index)
    bits = max((shape[0] * shape[1] - 1).bit_length(), 1)
    enqueue_radix_sort(chain, keys, n, bits=(0, bits), sorted_keys=ordered, values=numbers, sorted_values=order, overwrites=True)
    return ordered, order
