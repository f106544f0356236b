"""Coordinate (COO) arrays on the device: placement, checks, conversion to CSR and back, reshaping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Parameters, kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._formats.canonical import Parts, with_sorted_rows, without_duplicates
from clsparse_py._formats.row_order import EntryOrder, order_of, row_begins
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert, copied
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.placement import index_dtype, place_part
from clsparse_py._matrix.structure import Facts, OfStructure, check_structure
from clsparse_py._memory.memory import allocate, allocate_each
from clsparse_py._precision.arithmetic import MOVED_TYPES, OPENCL_TYPES, Arithmetic, name_of
from clsparse_py._primitives.partition import enqueue_parts
from clsparse_py._primitives.path_tiles import OfPath, has_few_rows, path_shape
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import run

__all__ = [
    "REGROUP",
    "EntryRows",
    "EntryRowsChunked",
    "Range",
    "copy_coordinates",
    "from_coordinates",
    "place_coordinates",
    "regroup",
    "rows_of",
    "sort_entries",
]  # fmt: skip

_WORK_GROUP = 128


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers that decide how the rows of entries are found, and how entries are sorted."""

    operation = "coordinates"

    #: On CPU devices: chunks of rows and entries to a core.
    chunks_per_core: int = number(4, "chunks", least=1)
    #: On CPU devices: least rows and entries of a chunk.
    min_chunk: int = number(64, "rows and entries", least=1)
    #: Not on CPU devices: most entries whose columns and values the kernel that finds rows copies, too, and not the driver.
    max_copied: int = number(1 << 23, "entries")
    #: Least number of rows of an array with many rows, whose entries are sorted by flat positions.
    min_many_rows: int = number(1 << 20, "rows")
    #: Least ratio of rows to entries of such an array.
    min_rows_by_entries: float = number(8.0, "rows to an entry")


@kernel
@dataclass(frozen=True)
class Range(Parameters):
    """Parameters of ``templates/canonical/range.mako``.

    Attributes
    ----------
    dtype : str
        NumPy's name of an integer dtype.
    """

    template = "canonical/range"

    dtype: str

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "number": OPENCL_TYPES[self.dtype]}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls(min(128, device.max_work_group), arithmetic.index)


@dataclass(frozen=True)
class OfEntries(OfStructure):
    """Base of the records of kernels that tell the row of each entry.

    Attributes
    ----------
    value_bytes : int
        Bytes of a value, if columns and values are copied; else 0.
    """

    value_bytes: int = field(default=0, kw_only=True)

    @property
    @override
    def prelude(self) -> str:
        if not self.value_bytes:
            return super().prelude
        return f"{super().prelude}\ntypedef {MOVED_TYPES[self.value_bytes]} V;  // values, which are copied and not computed with"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "value_bytes": self.value_bytes}


@kernel
@dataclass(frozen=True)
class EntryRows(OfEntries, OfPath):
    """Parameters of ``templates/canonical/rows.mako``."""

    template = "canonical/rows"

    @classmethod
    def legal(
        cls, device: Device, index: str, few_rows: bool, work_group: int = 128, items: int = 32, *, value_bytes: int = 0
    ) -> EntryRows:
        """Return the nearest legal record."""
        group, items = path_shape(device, work_group, items)
        return cls(group, index, items, few_rows, value_bytes=value_bytes)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls.legal(device, arithmetic.index, True)
        yield "many", cls.legal(device, arithmetic.index, False)
        yield "copies", cls.legal(device, arithmetic.index, True, value_bytes=arithmetic.result.itemsize)


@kernel
@dataclass(frozen=True)
class EntryRowsChunked(OfEntries):
    """Parameters of ``templates/canonical/rows_chunked.mako``."""

    template = "canonical/rows_chunked"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls(1, arithmetic.index)
        yield "copies", cls(1, arithmetic.index, value_bytes=arithmetic.result.itemsize)


REGROUP = declare_loop(
    "canonical/regroup",
    "The coordinates that entries have in a matrix of another shape, whose places are numbered alike: the place of an "
    "entry, row * by_row + column * by_column, which 64 bits hold, divided by the divisor, and the rest.",
    "ulong by_row, ulong by_column, ulong divisor, const I *rows, const I *columns, J *quotients, J *rests",
    "const ulong place = (ulong)rows[k] * by_row + (ulong)columns[k] * by_column, quotient = place / divisor;",
    "quotients[k] = (J)quotient;",
    "rests[k] = (J)(place - quotient * divisor);",
    counter="k",
    types="I J",
)


def place_coordinates(
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
    placed = [place_part(queue, name, part, part.dtype.newbyteorder("="), copy=copy) for name, part in numbers.items()]
    if check or shape is None:
        lengths: tuple[int | None, ...] = shape or (None,) * len(placed)
        largest = [_largest(queue, *coordinate, work_group) for coordinate in zip(numbers, placed, lengths, strict=True)]
        shape = shape or tuple(maximum + 1 for maximum in largest)
    index = index_dtype(placed, (*shape, n))
    return tuple(
        part if part.dtype == index else convert(queue, name, part, index) for name, part in zip(numbers, placed, strict=True)
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

    Waits to learn how many are outside and what the largest are, and for `sort_entries`.

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
    (of_row, of_col), (rows, columns) = place_coordinates(queue, numbers, shape, n=values.size, work_group=work_group)
    parts, facts = sort_entries(queue, values, of_row, of_col, (rows, columns), work_group)
    return parts, (rows, columns), facts


def sort_entries(
    queue: cl.CommandQueue,
    values: cl_array.Array,
    row: cl_array.Array,
    col: cl_array.Array,
    shape: tuple[int, int],
    work_group: int = _WORK_GROUP,
) -> tuple[Parts, Facts]:
    """Return the matrix of entries with their rows and columns, which lie in its shape, in canonical format, and its facts.

    Entries that are not sorted by row are sorted so, then within rows by column, both stably. Waits to learn how they are sorted,
    if they were not by row how they are then, and how many are left.
    """
    order = order_of(queue, row, col) if values.size else None
    if order is not None and order.by_row:
        parts = copied(queue, "data", values), copied(queue, "indices", col), row_begins(queue, row, shape[0])
    else:
        parts = _sort_by_row(queue, values, row, col, shape)
        facts = check_structure(queue, shape, parts[1], parts[2])
        order = EntryOrder(by_row=True, by_column=facts.sorted, canonical=facts.canonical)
    if not order.by_column:
        parts = with_sorted_rows(queue, parts)
    if not order.canonical:
        parts = without_duplicates(queue, parts, work_group)
    return parts, Facts(parts[1].size, sorted=True, canonical=True)


def _sort_by_row(
    queue: cl.CommandQueue, values: cl_array.Array, row: cl_array.Array, col: cl_array.Array, shape: tuple[int, int]
) -> Parts:
    """Return the parts of a matrix of entries, sorted by row, those of a row in the order in which they come."""
    n = values.size
    index = row.dtype if n else index_dtype((), shape)  # as SciPy has it
    chain = Chain(queue, row, col, values)
    lengths = {"data": (n, values.dtype), "indices": (n, index), "indptr": (shape[0] + 1, index)}
    suffix = f"of a {shape[0]} x {shape[1]} matrix"
    data, indices, indptr = (allocate(queue, f"{name} {suffix}", *size) for name, size in lengths.items())
    parts = data, indices, indptr
    enqueue_sort_by_key(
        chain, row, n, shape[0], n_items=shape[1], sorted_items=parts[1], items=col, values=values, sorted_values=parts[0],
        pointers=parts[2],
    )  # fmt: skip
    chain.finish(*parts)
    return parts


def _largest(queue: cl.CommandQueue, name: str, numbers: cl_array.Array, length: int | None, work_group: int) -> int:
    """Return the largest of some rows or columns, after all were found to be in range."""
    outside, largest = _range(queue, numbers, np.iinfo(np.int64).max if length is None else length, work_group)
    if outside:
        raise ValueError(f"{name}: must lie in [0, {'n' if length is None else length}), {outside} of {numbers.size} do not")
    return largest


def _range(queue: cl.CommandQueue, numbers: cl_array.Array, length: int, work_group: int) -> tuple[int, int]:
    """Return how many numbers lie outside [0, length), and the largest of all."""
    chain = Chain(queue, numbers)
    built, record = chain.build(Range(min(work_group, chain.device.max_work_group), numbers.dtype.name))
    groups, sizes = spread(chain.device, numbers.size, record.work_group)
    report = chain.scratch(2 * groups, np.int64)
    chain.launch(built, groups, *sizes, np.int64(length), numbers, report)
    per_group = chain.read(report, 2 * groups).reshape(groups, 2)
    return int(per_group[:, 0].sum()), int(per_group[:, 1].max(initial=-1))


def rows_of(queue: cl.CommandQueue, indptr: cl_array.Array, n: int) -> cl_array.Array:
    """Return the row of each of n entries, of the dtype of ``indptr``, which is that of a valid structure."""
    chain, rows = Chain(queue, indptr), allocate(queue, "rows", n, indptr.dtype, indptr.allocator)
    if n:
        run(chain, _enqueue_rows, (indptr, rows), n, indptr.size - 1)
        chain.finish(rows)
    return rows


def copy_coordinates(queue: cl.CommandQueue, parts: Parts) -> Parts:
    """Return copies of the values and the columns of entries, and the row of each; ``parts`` are valid."""
    data, indices, indptr = parts
    chain, n = Chain(queue, *parts), indices.size
    sizes = (n, data.dtype), (n, indices.dtype), (n, indptr.dtype)
    copies = values, col, rows = allocate_each(queue, "the coordinates", sizes, data.allocator)
    if n:
        run(chain, _enqueue_rows_and_copies, (indptr, indices, data, rows, col, values), n, indptr.size - 1)
        chain.finish(*copies)
    return values, col, rows


def _enqueue_rows(chain: Chain, indptr: cl_array.Array, rows: cl_array.Array, n: int, n_rows: int) -> None:
    """Enqueue the row of each of n entries."""
    _enqueue_at_entries(chain, indptr, rows, n, n_rows)


def _enqueue_rows_and_copies(
    chain: Chain,
    indptr: cl_array.Array,
    indices: cl_array.Array,
    data: cl_array.Array,
    rows: cl_array.Array,
    col: cl_array.Array,
    values: cl_array.Array,
    n: int,
    n_rows: int,
) -> None:
    """Enqueue the row of each of n entries, and copies of their columns and values."""
    if chain.device.lanes_are_loops or n <= Thresholds.of(chain.device).max_copied:
        _enqueue_at_entries(chain, indptr, rows, n, n_rows, (indices, data, col, values))
        return
    _enqueue_at_entries(chain, indptr, rows, n, n_rows)
    chain.copy(col, indices, n)
    chain.copy(values, data, n)


def _enqueue_at_entries(
    chain: Chain,
    indptr: cl_array.Array,
    rows: cl_array.Array,
    n: int,
    n_rows: int,
    copies: tuple[cl_array.Array, ...] = (),
) -> None:
    """Enqueue the kernel that tells the row of each of n entries, and makes ``copies``: of two arrays, to two arrays."""
    index, of_index = name_of(indptr.dtype), indptr.dtype.type
    value_bytes = copies[1].dtype.itemsize if copies else 0
    if not chain.device.lanes_are_loops:
        built, tiles = chain.build(EntryRows.legal(chain.device, index, has_few_rows(n_rows), value_bytes=value_bytes))
        chain.launch(built, -(-(n + n_rows) // tiles.tile), of_index(n_rows), indptr, rows, *copies)
        return
    built, record = chain.build(EntryRowsChunked(1, index, value_bytes=value_bytes))
    limits = Thresholds.of(chain.device)
    step = max(-(-(n + n_rows) // (chain.device.compute_units * limits.chunks_per_core)), limits.min_chunk)
    n_parts, *parts = enqueue_parts(chain, indptr, n_rows, n, step)
    chain.launch(built, -(-n_parts // record.work_group), of_index(n_parts), *parts, indptr, rows, *copies)


def regroup(
    queue: cl.CommandQueue,
    row: cl_array.Array,
    col: cl_array.Array,
    factors: tuple[int, int],
    divisor: int,
    index: np.dtype[Any],
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return the places ``row * factors[0] + col * factors[1]`` of entries divided by ``divisor``: quotients and rests."""
    chain, n = Chain(queue, row, col), row.size
    quotients, rests = (allocate(queue, "coordinates", n, index, row.allocator) for _ in range(2))
    if n:
        built, record = chain.build(
            REGROUP.record(min(_WORK_GROUP, chain.device.max_work_group), name_of(row.dtype), name_of(index))
        )
        groups, sizes = spread(chain.device, n, record.work_group, 64)
        chain.launch(built, groups, *sizes, *map(np.uint64, (*factors, divisor)), row, col, quotients, rests)
        chain.finish(quotients, rests)
    return quotients, rests
