"""Coordinates of entries: placed and checked, to CSR and from it, and those of another shape; all on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py.arithmetic import OPENCL_TYPES, name_of
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.canonical import OfNumbers, Parts, with_sorted_rows, without_duplicates
from clsparse_py.convert import converted
from clsparse_py.launch import Chain, spread
from clsparse_py.memory import allocated
from clsparse_py.placement import index_dtype, place_part
from clsparse_py.primitives.radix_sort import enqueue_sort_by_key
from clsparse_py.records import dataclass
from clsparse_py.structure import Facts, OfStructure, check_structure
from clsparse_py.transfer import fetched

__all__ = ["EntryRows", "Range", "Regroup", "from_coordinates", "placed_coordinates", "regrouped", "rows_of", "sorted_entries"]

_WORK_GROUP = 128


@dataclass(frozen=True)
class Range(OfNumbers):
    """Parameters of ``templates/canonical/range.mako``; of integers."""

    template = "canonical/range"


@dataclass(frozen=True)
class EntryRows(OfStructure):
    """Parameters of ``templates/canonical/rows.mako``."""

    template = "canonical/rows"


@dataclass(frozen=True)
class Regroup(OfStructure):
    """Parameters of ``templates/canonical/regroup.mako``.

    Attributes
    ----------
    result : str
        "int32" or "int64": the dtype of the new coordinates.
    """

    template = "canonical/regroup"

    result: str

    @property
    @override
    def name(self) -> str:
        return f"canonical_regroup_{self.index}_{self.result}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return f"{super().prelude}\ntypedef {OPENCL_TYPES[self.result]} J;  // {self.result}: the new coordinates"


def placed_coordinates(
    queue: cl.CommandQueue,
    numbers: Mapping[str, Any],
    shape: tuple[int, ...] | None,
    *,
    copy: bool = False,
    check: bool = True,
    n: int = 0,
    work_group: int = _WORK_GROUP,
) -> tuple[tuple[cl_array.Array, ...], tuple[int, ...]]:
    """Return coordinates on the device, all of one index type, and their shape, after all were found to lie in it.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    numbers : mapping of str to pyopencl.array.Array or numpy.ndarray
        The coordinates along each axis, of any integer dtype, by the names that errors give them.
    shape : tuple of int or None
        None: the smallest that holds all entries, of which there are some.
    copy : bool
        Whether arrays of the device are copied.
    check : bool
        False: the caller, who gives the shape, answers for it that they lie in it.
    n : int
        A number that the index type has to hold, too.
    work_group : int
        Work-items in a work-group.

    Raises
    ------
    ValueError
        They are outside of the shape, or live in another context.
    """
    given = [place_part(queue, name, part, part.dtype.newbyteorder("="), copy=copy) for name, part in numbers.items()]
    if check or shape is None:
        lengths: tuple[int | None, ...] = shape or (None,) * len(given)
        largest = [_largest(queue, *each, work_group) for each in zip(numbers, given, lengths, strict=True)]
        shape = shape or tuple(each + 1 for each in largest)
    index = index_dtype(given, (*shape, n))
    return tuple(
        part if part.dtype == index else converted(queue, name, part, index) for name, part in zip(numbers, given, strict=True)
    ), shape


def from_coordinates(
    queue: cl.CommandQueue,
    data: Any,
    row: Any,
    col: Any,
    shape: tuple[int, int] | None,
    dtype: np.dtype[Any],
    work_group: int = _WORK_GROUP,
) -> tuple[Parts, tuple[int, int], Facts]:
    """Return the matrix of entries with their rows and columns, rows sorted and duplicates added up, its shape and structure.

    Waits to learn how many are outside and what the largest are, and for `sorted_entries`.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    data, row, col : pyopencl.array.Array or numpy.ndarray
        One-dimensional, of one length; rows and columns of any integer dtype.
    shape : tuple of int or None
        None: the smallest that holds all entries, of which there are some.
    dtype : dtype
        Of the values, also while they are added up.
    work_group : int
        Work-items in a work-group.

    Raises
    ------
    ValueError
        Rows or columns are outside of the shape, or one of ``data``, ``row``, ``col`` lives in another context.
    MemoryError
        The device has not the memory for the result.
    """
    values = place_part(queue, "data", data, dtype, copy=False)
    numbers = {"row": row, "col": col}
    (of_row, of_col), (rows, columns) = placed_coordinates(queue, numbers, shape, n=values.size, work_group=work_group)
    parts, facts = sorted_entries(queue, values, of_row, of_col, (rows, columns), work_group)
    return parts, (rows, columns), facts


def sorted_entries(
    queue: cl.CommandQueue,
    values: cl_array.Array,
    row: cl_array.Array,
    col: cl_array.Array,
    shape: tuple[int, int],
    work_group: int = _WORK_GROUP,
) -> tuple[Parts, Facts]:
    """Return the matrix of entries with their rows and columns, which lie in its shape, in canonical format, and its facts.

    Entries are sorted by row, then within rows by column, both stably. Waits to learn whether rows came out sorted, and how many
    entries are left.
    """
    n = values.size
    index = row.dtype if n else index_dtype((), shape)  # as SciPy has it
    chain = Chain(queue, row, col, values)
    lengths = {"data": (n, values.dtype), "indices": (n, index), "indptr": (shape[0] + 1, index)}
    what = f"of a {shape[0]} x {shape[1]} matrix"
    data, indices, indptr = (allocated(queue, f"{name} {what}", *each) for name, each in lengths.items())
    parts = data, indices, indptr
    enqueue_sort_by_key(
        chain, row, n, shape[0], n_items=shape[1], sorted_items=parts[1], items=col, values=values, sorted_values=parts[0],
        pointers=parts[2],
    )  # fmt: skip
    chain.finish(*parts)
    found = check_structure(queue, shape, parts[1], parts[2])
    if not found.sorted:
        parts = with_sorted_rows(queue, parts)
    if not found.canonical:
        parts = without_duplicates(queue, parts, work_group)
    return parts, Facts(parts[1].size, sorted=True, canonical=True)


def _largest(queue: cl.CommandQueue, name: str, numbers: cl_array.Array, length: int | None, work_group: int) -> int:
    """Return the largest of some rows or columns, after all were found to be in range."""
    outside, largest = _range(queue, numbers, np.iinfo(np.int64).max if length is None else length, work_group)
    if outside:
        raise ValueError(f"{name}: must lie in [0, {'n' if length is None else length}), {outside} of {numbers.size} do not")
    return largest


def _range_by_host(queue: cl.CommandQueue, numbers: cl_array.Array, length: int, work_group: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the result of `_range`, computed by NumPy."""
    host = fetched(numbers, queue)
    return int(np.sum((host < 0) | (host >= length))), int(host.max(initial=0)) if host.size else -1


@or_by_host(_range_by_host)
def _range(queue: cl.CommandQueue, numbers: cl_array.Array, length: int, work_group: int) -> tuple[int, int]:
    """Return how many numbers lie outside [0, length), and the largest of all."""
    chain = Chain(queue, numbers)
    built, taken = chain.build(Range(min(work_group, chain.device.max_work_group), numbers.dtype.name))
    groups, sizes = spread(chain.device, numbers.size, taken.work_group)
    found = chain.scratch(2 * groups, np.int64)
    chain.launch(built, groups, *sizes, np.int64(length), numbers, found)
    per_group = chain.read(found, 2 * groups).reshape(groups, 2)
    return int(per_group[:, 0].sum()), int(per_group[:, 1].max(initial=-1))


def _rows_by_host(queue: cl.CommandQueue, indptr: cl_array.Array, n: int) -> cl_array.Array:  # noqa: ARG001 - of the kernel's
    """Return the result of `rows_of`, computed by NumPy."""
    begins = fetched(indptr, queue)
    return placed(queue, "rows", np.repeat(np.arange(begins.size - 1, dtype=begins.dtype), np.diff(begins)))


@or_by_host(_rows_by_host)
def rows_of(queue: cl.CommandQueue, indptr: cl_array.Array, n: int) -> cl_array.Array:
    """Return the row of each of n entries, of the dtype of ``indptr``, which is that of a valid structure."""
    chain, rows = Chain(queue, indptr), allocated(queue, "rows", n, indptr.dtype, indptr.allocator)
    if n:
        built, record = chain.build(EntryRows(min(_WORK_GROUP, chain.device.max_work_group), name_of(indptr.dtype)))
        groups, sizes = spread(chain.device, n, record.work_group, 64)
        chain.launch(built, groups, *sizes, np.uint64(indptr.size - 1), indptr, rows)
        chain.finish(rows)
    return rows


def _regrouped_by_host(
    queue: cl.CommandQueue,
    row: cl_array.Array,
    col: cl_array.Array,
    factors: tuple[int, int],
    divisor: int,
    index: np.dtype[Any],
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return the result of `regrouped`, computed by NumPy."""
    rows, columns = (fetched(each, queue).astype(np.int64) for each in (row, col))
    found = np.divmod(rows * factors[0] + columns * factors[1], divisor)
    quotients, rests = (placed(queue, "coordinates", each.astype(index)) for each in found)
    return quotients, rests


@or_by_host(_regrouped_by_host)
def regrouped(
    queue: cl.CommandQueue,
    row: cl_array.Array,
    col: cl_array.Array,
    factors: tuple[int, int],
    divisor: int,
    index: np.dtype[Any],
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return the places ``row * factors[0] + col * factors[1]`` of entries divided by ``divisor``: quotients and rests."""
    chain, n = Chain(queue, row, col), row.size
    quotients, rests = (allocated(queue, "coordinates", n, index, row.allocator) for _ in range(2))
    if n:
        built, record = chain.build(Regroup(min(_WORK_GROUP, chain.device.max_work_group), name_of(row.dtype), name_of(index)))
        groups, sizes = spread(chain.device, n, record.work_group, 64)
        chain.launch(built, groups, *sizes, *map(np.uint64, (*factors, divisor)), row, col, quotients, rests)
        chain.finish(quotients, rests)
    return quotients, rests
