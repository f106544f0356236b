"""Assign values to positions of a sparse matrix, and insert new entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import with_index
from clsparse_py._matrix.loops import LoopKernel
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.indexing.kernels import KEYS, Insert, Locate
from clsparse_py._operations.indexing.points import Places
from clsparse_py._operations.indexing.rows import Parts, new_parts
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.radix_sort import enqueue_radix_sort
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain, spread

__all__ = ["Values", "assign_to_parts"]

#: Work-items of a work-group, at most.
_WORK_GROUP = 128
#: Work-groups to a compute unit, at most.
_GROUPS_PER_UNIT = 64


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


def assign_to_parts(
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
    return _assign(queue, parts, shape, places, values, inserts=inserts)


def _assign(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return the result of `assign_to_parts`."""
    data, indices, indptr = parts
    chain = Chain(queue, *parts, *places.arrays, values.array, *([] if values.listed is None else [values.listed]))
    n, index = places.size if values.listed is None else values.listed.size, indptr.dtype
    if n > np.iinfo(index).max:
        return _with_wide_index(queue, parts, shape, places, values, inserts=inserts)
    kernels = _kernels(chain, index, data.dtype)
    out = allocate(queue, "data of the result", data.size, data.dtype, data.allocator)
    chain.copy(out, data, data.size)
    search = _enqueue_search(chain, kernels, (out, indices, indptr), shape, places, values, n)
    checks = places.enqueue_checks(chain)
    enqueue_scan(chain, search.is_new, search.counts, n, kind="pointers")
    n_new = int(chain.read(search.counts, 1, n)[0])
    for check in checks:
        check()
    if not n_new or not inserts:
        chain.finish(out)
        return (out, indices, indptr), 0
    if data.size + n_new > np.iinfo(index).max:
        return _with_wide_index(queue, parts, shape, places, values, inserts=inserts)
    new_arrays = new_parts(queue, parts, shape[0], data.size + n_new)
    _enqueue_insertion(chain, kernels, (out, indices, indptr), values.array, search, n_new, new_arrays)
    chain.finish(*new_arrays)
    return new_arrays, n_new


class _Kernels(NamedTuple):
    """The built kernels, and the records that they were built with."""

    keys: tuple[Built, LoopKernel]
    locate: tuple[Built, Locate]
    insert: Mapping[str, tuple[Built, Insert]]


def _kernels(chain: Chain, index: np.dtype[Any], dtype: np.dtype[Any]) -> _Kernels:
    """Return the kernels for an index type and a dtype of values: all are built before one of them runs."""
    group, types = min(_WORK_GROUP, chain.device.max_work_group), (name_of(index), dtype.itemsize)
    insert = {phase: chain.build(Insert(group, *types, phase)) for phase in ("new", "entries", "rows")}
    return _Kernels(chain.build(KEYS.record(group, types[0])), chain.build(Locate(group, *types)), insert)


class _Search(NamedTuple):
    """Results of the search of places; arrays have an item for each place, in the order of keys.

    ``told`` are the arguments of kernels that look up the value of a place, and the columns of the matrix.
    """

    n: int
    told: tuple[np.generic, ...]
    keys: cl_array.Array
    numbers: cl_array.Array
    is_new: cl_array.Array
    belongs: cl_array.Array
    counts: cl_array.Array  # room for how many new entries come before


def _enqueue_search(
    chain: Chain, kernels: _Kernels, parts: Parts, shape: tuple[int, int], places: Places, values: Values, n: int
) -> _Search:
    """Enqueue the search of n places, and the assignment to the entries that are there; ``parts`` has the values to change."""
    data, indices, indptr = parts
    keys, numbers = _enqueue_keys(chain, kernels.keys, shape, places, values, n)
    is_new, belongs, counts = (chain.scratch(n + 1, dtype) for dtype in (np.uint8, indptr.dtype, indptr.dtype))
    layout = np.uint64(_columns(places, values)), np.int64(values.by_row), np.int64(values.by_column), np.int64(shape[1])
    built, record = kernels.locate
    arrays = keys, numbers, values.array, indptr, indices, data, is_new, belongs
    chain.launch(built, -(-n // record.work_group), np.uint64(n), *layout, *arrays)
    return _Search(n, layout, keys, numbers, is_new, belongs, counts)


def _enqueue_insertion(
    chain: Chain, kernels: _Kernels, parts: Parts, values: cl_array.Array, search: _Search, n_new: int, new_arrays: Parts
) -> None:
    """Enqueue the insertion of new entries into a matrix; the result goes to ``new_arrays``."""
    data, indices, indptr = parts
    out_data, out_indices, out_indptr = new_arrays
    of_new = indptr.dtype.type(n_new)
    belongs, keys = chain.scratch(n_new, indptr.dtype), chain.scratch(n_new, np.int64)
    listed = search.keys, search.numbers, values, search.belongs, search.counts
    for phase, n, arguments in (
        ("new", search.n, (*search.told, *listed, belongs, keys, out_indices, out_data)),
        ("entries", data.size, (of_new, belongs, indices, data, out_indices, out_data)),
        ("rows", indptr.size, (of_new, search.told[-1], keys, indptr, out_indptr)),
    ):
        built, record = kernels.insert[phase]
        groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
        chain.launch(built, groups, *sizes, *arguments)


def _with_wide_index(
    queue: cl.CommandQueue, parts: Parts, shape: tuple[int, int], places: Places, values: Values, *, inserts: bool
) -> tuple[Parts, int]:
    """Return the result of `assign_to_parts` with indices of 64 bits."""
    wide = with_index(queue, parts, np.dtype(np.int64))
    return _assign(queue, wide, shape, places.widen(queue), values, inserts=inserts)


def _columns(places: Places, values: Values) -> int:
    """Return how many columns the matrix of values has."""
    return places.shape[1] if values.listed is None else values.listed.size


def _enqueue_keys(
    chain: Chain, keyed: tuple[Built, LoopKernel], shape: tuple[int, int], places: Places, values: Values, n: int
) -> tuple[cl_array.Array, cl_array.Array]:
    """Enqueue the keys of places, sorted; return them, and the number of each place."""
    built, record = keyed
    index = np.dtype(record.types[0])
    keys, numbers = chain.scratch(n, np.int64), chain.scratch(n, index)
    # Any array stands for a list that there is none of.
    listed = keys if values.listed is None else values.listed
    axes = (*places.row.arguments(numbers), *places.column.arguments(numbers))
    groups, sizes = spread(chain.device, n, record.work_group, _GROUPS_PER_UNIT)
    layout = np.uint64(places.shape[1]), *axes, np.uint32(values.listed is not None), listed, np.int64(shape[1])
    chain.launch(built, groups, *sizes, *layout, keys, numbers)
    if places.ascend:
        return keys, numbers
    ordered, order = chain.scratch(n, np.int64), chain.scratch(n, index)
    bits = max((shape[0] * shape[1] - 1).bit_length(), 1)
    enqueue_radix_sort(chain, keys, n, bits=(0, bits), sorted_keys=ordered, values=numbers, sorted_values=order, overwrites=True)
    return ordered, order
