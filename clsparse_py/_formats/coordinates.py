"""Coordinate (COO) arrays on the device: placement, checks, order, conversion to CSR and back, reshaping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Parameters, kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._formats.canonical import with_sorted_rows, without_duplicates
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert, copied
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.matrix import Parts
from clsparse_py._matrix.placement import index_dtype, place_part
from clsparse_py._matrix.structure import OfStructure, check_structure
from clsparse_py._memory.memory import allocate, allocate_each
from clsparse_py._precision.arithmetic import MOVED_TYPES, OPENCL_TYPES, Arithmetic, name_of
from clsparse_py._primitives.partition import OfPath, enqueue_parts, fit_path_shape, has_few_rows
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._run.launch import Chain, spread
from clsparse_py._run.recording import run

__all__ = [
    "REGROUP", "EntryOrder", "EntryRows", "EntryRowsChunked", "Range", "RowBegins", "RowOrder", "copy_coordinates",
    "from_coordinates", "order_of", "place_coordinates", "regroup", "row_begins", "rows_of", "sort_entries",
]  # fmt: skip

#: Most work-items in a work-group of the kernels `Range`, which checks coordinates, and `REGROUP`, which reshapes a matrix.
_WORK_GROUP = 128
#: Most work-items in a work-group of the kernels `RowOrder` (counts entries out of order) and `RowBegins` (makes row pointers).
_ORDER_WORK_GROUP = 256
#: Most work-groups to a compute unit of the kernel `RowOrder`, whose counts of entries out of order the host reads.
_COUNTING_GROUPS = 8
#: Most work-groups to a compute unit of the kernel `RowBegins`, which makes row pointers of entries sorted by row.
_GROUPS_PER_UNIT = 64


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Limits of the kernels that expand row pointers to a row for each entry, and of the sort of coordinates."""

    operation = "coordinates"

    #: Most chunks (runs of rows and entries) for each core of a CPU into which the kernel `EntryRowsChunked` divides its work.
    chunks_per_core: int = number(4, "chunks", least=1)
    #: Least sum of rows and entries of a chunk of the kernel `EntryRowsChunked` on CPU devices.
    min_chunk: int = number(64, "rows and entries", least=1)
    #: Most entries whose columns and values the kernel `EntryRows` copies on GPUs; the driver's commands copy larger arrays.
    max_copied: int = number(1 << 23, "entries")
    #: An array's entries are sorted by flat positions, not by row, only if the array has more rows than this number.
    min_many_rows: int = number(1 << 20, "rows")
    #: An array's entries are sorted by flat positions, not by row, only if it has more rows to an entry than this number.
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
        """Return the template's arguments by name: fields, and ``number``, the OpenCL type of the checked coordinates."""
        return {**super().arguments(), "number": OPENCL_TYPES[self.dtype]}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(min(128, device.max_work_group), arithmetic.index)


@dataclass(frozen=True)
class OfEntries(OfStructure):
    """Base of the records of kernels that expand row pointers to the row of each entry.

    Attributes
    ----------
    value_bytes : int
        Bytes of a value, if columns and values are copied; else 0.
    """

    value_bytes: int = field(default=0, kw_only=True)

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: the index type I and, if values are copied, their type V."""
        if not self.value_bytes:
            return super().prelude
        return f"{super().prelude}\ntypedef {MOVED_TYPES[self.value_bytes]} V;  // values, which are copied and not computed with"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and ``value_bytes``, bytes of a copied value, 0 if none is copied."""
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
        """Return the parameters of the kernel that expands row pointers to entries' rows, with sizes that a device can run."""
        group, items = fit_path_shape(device, work_group, items)
        return cls(group, index, items, few_rows, value_bytes=value_bytes)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "" for few rows, "many" for many rows, "copies" if columns and values are copied, too."""
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
        """Yield example records: "", and "copies" if columns and values are copied, too."""
        yield "", cls(1, arithmetic.index)
        yield "copies", cls(1, arithmetic.index, value_bytes=arithmetic.result.itemsize)


@kernel
@dataclass(frozen=True)
class RowOrder(OfStructure):
    """Parameters of ``templates/canonical/order.mako``."""

    template = "canonical/order"


@kernel
@dataclass(frozen=True)
class RowBegins(OfStructure):
    """Parameters of ``templates/canonical/row_begins.mako``."""

    template = "canonical/row_begins"


class EntryOrder(NamedTuple):
    """Whether entries given by coordinates are sorted by row, also by column within rows, and without duplicates.

    Attributes
    ----------
    by_row : bool
        Whether the rows of the entries ascend.
    by_column : bool
        Whether the entries are sorted by row, and within rows by column.
    canonical : bool
        Whether the entries are sorted by row, within rows by column, and have no duplicates.
    """

    by_row: bool
    by_column: bool
    canonical: bool


#: The loop kernel that computes the coordinates of a matrix's entries in the reshaped matrix.
REGROUP = declare_loop(
    "canonical/regroup",
    "Coordinates of entries in a reshaped matrix: the flat position of an entry, row * by_row + column * by_column, which 64 "
    "bits hold, divided by the divisor: quotient and rest.",
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
) -> tuple[tuple[cl_array.Array, ...], tuple[int, ...]]:
    """Return the coordinates of an array's entries on the device, of one index type, and the shape, in which they lie.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    numbers : mapping of str to pyopencl.array.Array or numpy.ndarray
        The coordinates along each axis, of any integer dtype, by the names of the axes in error messages.
    shape : tuple of int or None
        The shape of the array; None: the smallest shape that holds all entries, of which there is at least one.
    copy : bool
        Whether arrays of the device are copied.
    check : bool
        Whether the coordinates are checked; if not, the caller gives the shape and vouches that they lie in it.
    n : int
        A number that the index type has to hold besides, such as the number of entries.

    Raises
    ------
    ValueError
        Coordinates lie outside of the shape, or in another context.
    """
    placed = [place_part(queue, name, part, part.dtype.newbyteorder("="), copy=copy) for name, part in numbers.items()]
    if check or shape is None:
        lengths: tuple[int | None, ...] = shape or (None,) * len(placed)
        largest = [_check_range(queue, *coordinate) for coordinate in zip(numbers, placed, lengths, strict=True)]
        shape = shape or tuple(maximum + 1 for maximum in largest)
    index = index_dtype(placed, (*shape, n))
    return tuple(
        part if part.dtype == index else convert(queue, name, part, index) for name, part in zip(numbers, placed, strict=True)
    ), shape


def from_coordinates(
    queue: cl.CommandQueue,
    data: Any,
    numbers: Mapping[str, Any],
    shape: tuple[int, int] | None,
    dtype: np.dtype[Any],
) -> tuple[Parts, tuple[int, int]]:
    """Return the arrays of a CSR matrix in canonical format, and its shape, from entries given by coordinates.

    The host waits for the range of the coordinates, and for `sort_entries`.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    data : pyopencl.array.Array or numpy.ndarray
        The values, one-dimensional.
    numbers : mapping of str to pyopencl.array.Array or numpy.ndarray
        The rows, then the columns of the entries, of any integer dtype, by their names in error messages.
    shape : tuple of int or None
        The shape of the matrix; None: the smallest shape that holds all entries, of which there is at least one.
    dtype : dtype
        The dtype of the values, also while duplicates are summed.

    Raises
    ------
    ValueError
        Rows or columns lie outside of the shape, differ in number from the values, or an array lives in another context.
    MemoryError
        The device has not the memory for the result.
    """
    for name, part in numbers.items():
        if part.size != data.size:
            raise ValueError(f"{name}: must have as many entries as data, has {part.size}, not {data.size}")
    if shape is None and not data.size:
        raise ValueError("shape: cannot be told from arrays without entries; give it")
    values = place_part(queue, "data", data, dtype, copy=False)
    (row, col), (n_rows, n_columns) = place_coordinates(queue, numbers, shape, n=values.size)
    return sort_entries(queue, values, row, col, (n_rows, n_columns)), (n_rows, n_columns)


def sort_entries(
    queue: cl.CommandQueue,
    values: cl_array.Array,
    row: cl_array.Array,
    col: cl_array.Array,
    shape: tuple[int, int],
) -> Parts:
    """Return the arrays of a CSR matrix in canonical format, from the rows and columns of entries, all within ``shape``.

    Entries out of order are sorted stably by row, then within rows by column. The host waits up to three times: for the order of
    the entries; for the order within rows, if the entries were sorted by row; and for the number of entries without duplicates.
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
        parts = without_duplicates(queue, parts)
    return parts


def order_of(queue: cl.CommandQueue, row: cl_array.Array, col: cl_array.Array) -> EntryOrder:
    """Return the order in which entries lie (`EntryOrder`: by row, say) from their rows and columns. The host waits."""
    chain, n = Chain(queue, row, col), row.size
    built, record = chain.build(RowOrder(min(_ORDER_WORK_GROUP, chain.device.max_work_group), name_of(row.dtype)))
    groups, sizes = spread(chain.device, n, record.work_group, _COUNTING_GROUPS)
    report = chain.scratch(3 * groups, np.int64)
    chain.launch(built, groups, *sizes, row, col, report)
    fallen, unsorted, repeated = chain.read(report, 3 * groups).reshape(groups, 3).sum(axis=0).tolist()
    return EntryOrder(not fallen, not (fallen or unsorted), not (fallen or unsorted or repeated))


def row_begins(queue: cl.CommandQueue, row: cl_array.Array, n_rows: int) -> cl_array.Array:
    """Return the CSR row pointers of entries whose rows ascend, in the dtype of the rows."""
    chain, indptr = Chain(queue, row), allocate(queue, "indptr", n_rows + 1, row.dtype, row.allocator)
    built, record = chain.build(RowBegins(min(_ORDER_WORK_GROUP, chain.device.max_work_group), name_of(row.dtype)))
    groups, sizes = spread(chain.device, n_rows + 1, record.work_group, _GROUPS_PER_UNIT)
    chain.launch(built, groups, *sizes, np.uint64(row.size), row, indptr)
    chain.finish(indptr)
    return indptr


def _sort_by_row(
    queue: cl.CommandQueue, values: cl_array.Array, row: cl_array.Array, col: cl_array.Array, shape: tuple[int, int]
) -> Parts:
    """Return the arrays of a CSR matrix, from entries given by coordinates, which are sorted stably by row."""
    n = values.size
    index = row.dtype if n else index_dtype((), shape)  # of a matrix without entries, the index type is SciPy's
    chain = Chain(queue, row, col, values)
    lengths = {"data": (n, values.dtype), "indices": (n, index), "indptr": (shape[0] + 1, index)}
    suffix = f"of a {shape[0]} x {shape[1]} matrix"
    data, indices, indptr = (allocate(queue, f"{name} {suffix}", *size) for name, size in lengths.items())
    enqueue_sort_by_key(
        chain, row, n, shape[0], n_items=shape[1], sorted_items=indices, items=col, values=values, sorted_values=data,
        pointers=indptr,
    )  # fmt: skip
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def _check_range(queue: cl.CommandQueue, name: str, numbers: cl_array.Array, length: int | None) -> int:
    """Return the largest of the coordinates along an axis, -1 if there are none; raise unless all are in [0, ``length``)."""
    chain, limit = Chain(queue, numbers), np.iinfo(np.int64).max if length is None else length
    built, record = chain.build(Range(min(_WORK_GROUP, chain.device.max_work_group), numbers.dtype.name))
    groups, sizes = spread(chain.device, numbers.size, record.work_group)
    report = chain.scratch(2 * groups, np.int64)
    chain.launch(built, groups, *sizes, np.int64(limit), numbers, report)
    per_group = chain.read(report, 2 * groups).reshape(groups, 2)
    outside = int(per_group[:, 0].sum())
    if outside:
        raise ValueError(f"{name}: must lie in [0, {'n' if length is None else length}), {outside} of {numbers.size} do not")
    return int(per_group[:, 1].max(initial=-1))


def rows_of(queue: cl.CommandQueue, indptr: cl_array.Array, n: int) -> cl_array.Array:
    """Return the row of each of n entries of a valid CSR structure, in the dtype of its ``indptr``."""
    chain, rows = Chain(queue, indptr), allocate(queue, "rows", n, indptr.dtype, indptr.allocator)
    if n:
        run(chain, _enqueue_entry_rows, (indptr, rows), n, indptr.size - 1)
        chain.finish(rows)
    return rows


def copy_coordinates(queue: cl.CommandQueue, parts: Parts) -> Parts:
    """Return copies of the values and the columns of a valid CSR matrix, and the row of each entry."""
    data, indices, indptr = parts
    chain, n = Chain(queue, *parts), indices.size
    sizes = (n, data.dtype), (n, indices.dtype), (n, indptr.dtype)
    copies = values, col, rows = allocate_each(queue, "the coordinates", sizes, data.allocator)
    if n:
        run(chain, _enqueue_rows_and_copies, (indptr, indices, data, rows, col, values), n, indptr.size - 1)
        chain.finish(*copies)
    return values, col, rows


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
    """Enqueue the expansion of row pointers to the row of each of n entries, and copies of the entries' columns and values."""
    kernel_copies = chain.device.lanes_are_loops or n <= Thresholds.of(chain.device).max_copied
    _enqueue_entry_rows(chain, indptr, rows, n, n_rows, (indices, data, col, values) if kernel_copies else ())
    if not kernel_copies:
        chain.copy(col, indices, n)
        chain.copy(values, data, n)


def _enqueue_entry_rows(
    chain: Chain,
    indptr: cl_array.Array,
    rows: cl_array.Array,
    n: int,
    n_rows: int,
    copies: tuple[cl_array.Array, ...] = (),
) -> None:
    """Enqueue the kernel that expands row pointers to n entries' rows, and copies columns and values if ``copies`` has them.

    ``copies`` are the arrays of columns and values, then the arrays for their copies.
    """
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
    """Return the coordinates, in a reshaped matrix, of the entries of a matrix.

    The flat positions ``row * factors[0] + col * factors[1]`` of the entries are divided by ``divisor``: quotients and rests.
    """
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
