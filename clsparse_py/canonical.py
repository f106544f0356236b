"""CSR from coordinates, sorted rows, duplicates summed and zeros left out, on the device.

All functions work on arrays: `csr_array` calls them and takes the arrays that they return. Entries that are kept are marked, a
scan finds their places, and one kernel puts them there. How many they are is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py.arithmetic import OPENCL_TYPES, needs_fp64
from clsparse_py.by_host import or_by_host, placed
from clsparse_py.convert import converted
from clsparse_py.launch import Chain, spread
from clsparse_py.memory import allocated
from clsparse_py.placement import place_part
from clsparse_py.primitives.addition import sum_dtype
from clsparse_py.primitives.permute import Moving, enqueue_permute
from clsparse_py.primitives.radix_sort import enqueue_sort_by_key
from clsparse_py.primitives.scan import enqueue_scan
from clsparse_py.primitives.segmented import enqueue_segmented_sum
from clsparse_py.primitives.segmented_sort import enqueue_segmented_sort
from clsparse_py.programs import Parameters
from clsparse_py.records import dataclass
from clsparse_py.structure import Facts, OfStructure, check_structure
from clsparse_py.transfer import fetched

__all__ = [
    "Begins",
    "Compact",
    "Nonzeros",
    "Range",
    "from_coordinates",
    "with_sorted_rows",
    "without_duplicates",
    "without_zeros",
]

Parts = tuple[cl_array.Array, cl_array.Array, cl_array.Array]

_WORK_GROUP = 128


@dataclass(frozen=True)
class Begins(OfStructure):
    """Parameters of ``templates/canonical/begins.mako``.

    Attributes
    ----------
    step : str
        "columns" or "rows".
    """

    template = "canonical/begins"

    step: str

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.step}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "step": self.step}


@dataclass(frozen=True)
class Compact(Moving):
    """Parameters of ``templates/canonical/compact.mako``."""

    template = "canonical/compact"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "values": self.value_bytes > 0}


@dataclass(frozen=True)
class _OfNumbers(Parameters):
    """Base of the records of kernels that read one array of numbers.

    Attributes
    ----------
    dtype : str
        NumPy's name of their dtype.
    """

    dtype: str

    @property
    @override
    def name(self) -> str:
        return f"{self.template.replace('/', '_')}_{self.dtype}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group, "number": OPENCL_TYPES[self.dtype]}


@dataclass(frozen=True)
class Range(_OfNumbers):
    """Parameters of ``templates/canonical/range.mako``; of integers."""

    template = "canonical/range"


@dataclass(frozen=True)
class Nonzeros(_OfNumbers):
    """Parameters of ``templates/canonical/nonzeros.mako``."""

    template = "canonical/nonzeros"

    @override
    def arguments(self) -> Mapping[str, object]:
        dtype = np.dtype(self.dtype)
        return {**super().arguments(), "is_complex": dtype.kind == "c", "fp64": needs_fp64(dtype)}


def _enqueue_over(chain: Chain, parameters: Parameters, n: int, *arguments: Any) -> None:
    """Enqueue a kernel whose work-items take an entry each."""
    built, taken = chain.build(parameters)
    chain.launch(built, -(-n // taken.work_group), np.uint64(n), *arguments)


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

    Entries are sorted by row, then within rows by column, both stably. Waits to learn how many are outside and what the largest
    are, whether rows came out sorted, and how many entries are left.

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
    n = data.size
    numbers = {"row": row, "col": col}
    numbers = {name: place_part(queue, name, part, part.dtype.newbyteorder("="), copy=False) for name, part in numbers.items()}
    values = place_part(queue, "data", data, dtype, copy=False)
    largest = [
        _largest(queue, name, part, None if shape is None else shape[axis], work_group)
        for axis, (name, part) in enumerate(numbers.items())
    ]
    shape = shape or (largest[0] + 1, largest[1] + 1)
    index = np.dtype(np.int64 if max(*shape, n) > np.iinfo(np.int32).max else np.int32)
    of_row, of_col = (part if part.dtype == index else converted(queue, name, part, index) for name, part in numbers.items())
    chain = Chain(queue, of_row, of_col, values)
    lengths = {"data": (n, dtype), "indices": (n, index), "indptr": (shape[0] + 1, index)}
    what = f"of a {shape[0]} x {shape[1]} matrix"
    data, indices, indptr = (allocated(queue, f"{name} {what}", *each) for name, each in lengths.items())
    parts = data, indices, indptr
    enqueue_sort_by_key(
        chain, of_row, n, shape[0], n_items=shape[1], sorted_items=parts[1], items=of_col, values=values, sorted_values=parts[0],
        pointers=parts[2],
    )  # fmt: skip
    chain.finish(*parts)
    found = check_structure(queue, shape, parts[1], parts[2])
    if not found.sorted:
        parts = with_sorted_rows(queue, parts)
    if not found.canonical:
        parts = without_duplicates(queue, parts, work_group)
    return parts, shape, Facts(parts[1].size, sorted=True, canonical=True)


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


def _on_host(queue: cl.CommandQueue, parts: Parts) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the parts of a matrix on the host, and the row of each entry."""
    data, indices, indptr = (fetched(part, queue) for part in parts)
    return data, indices, indptr, np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def _placed_parts(queue: cl.CommandQueue, parts: Parts, data: Any, indices: Any, indptr: Any) -> Parts:
    """Return new parts, of the dtypes and from the allocator of others."""
    allocator = parts[0].allocator
    dtypes = {"data": parts[0].dtype, "indices": parts[1].dtype, "indptr": parts[2].dtype}
    values = (each.astype(dtype) for each, dtype in zip((data, indices, indptr), dtypes.values(), strict=True))
    data, indices, indptr = (placed(queue, name, each, allocator) for name, each in zip(dtypes, values, strict=True))
    return data, indices, indptr


def _sorted_by_host(queue: cl.CommandQueue, parts: Parts) -> Parts:
    """Return the result of `with_sorted_rows`, computed by NumPy."""
    data, indices, indptr, rows = _on_host(queue, parts)
    order = np.lexsort((indices, rows))
    return *_placed_parts(queue, parts, data[order], indices[order], indptr)[:2], parts[2]


@or_by_host(_sorted_by_host)
def with_sorted_rows(queue: cl.CommandQueue, parts: Parts) -> Parts:
    """Return the parts of the same matrix with the columns of each row in ascending order; duplicates keep their order.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    parts : tuple of pyopencl.array.Array
        data, indices and indptr, valid.
    """
    data, indices, indptr = parts
    chain = Chain(queue, *parts)
    n = indices.size
    new_data = allocated(queue, "data", n, data.dtype, data.allocator)
    new_indices = allocated(queue, "indices", n, indices.dtype, data.allocator)
    enqueue_segmented_sort(chain, indptr, indptr.size - 1, indices, data, n, out_keys=new_indices, out_values=new_data)
    chain.finish(new_data, new_indices)
    return new_data, new_indices, indptr


def _summed_by_host(queue: cl.CommandQueue, parts: Parts, work_group: int = _WORK_GROUP) -> Parts:  # noqa: ARG001
    """Return the result of `without_duplicates`, computed by NumPy."""
    data, indices, indptr, rows = _on_host(queue, parts)
    begins = np.ones(indices.size, bool)
    begins[1:] = (indices[1:] != indices[:-1]) | (rows[1:] != rows[:-1])
    if begins.all():
        return parts
    sums = np.add.reduceat(data.astype(sum_dtype(data.dtype)), np.flatnonzero(begins))
    return _placed_parts(queue, parts, sums, indices[begins], _kept_before(begins)[indptr])


def _kept_before(kept: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return how many entries are kept before each, and in all."""
    return np.concatenate(([0], np.cumsum(kept)))


@or_by_host(_summed_by_host)
def without_duplicates(queue: cl.CommandQueue, parts: Parts, work_group: int = _WORK_GROUP) -> Parts:
    """Return the parts of a matrix with duplicates added up, in their order; the parts themselves where there are none.

    The sum of booleans is whether one of them is true, as in SciPy.

    Parameters
    ----------
    queue, parts
        As for `with_sorted_rows`; rows are sorted.
    work_group : int
        Work-items in a work-group.
    """
    data, indices, indptr = parts
    chain = Chain(queue, *parts)
    n, n_rows, index = indices.size, indptr.size - 1, indices.dtype
    group = min(work_group, chain.device.max_work_group)
    begins = chain.scratch(n, np.uint8)
    _enqueue_over(chain, Begins(group, index.name, "columns"), n, indices, begins)
    _enqueue_over(chain, Begins(group, index.name, "rows"), n_rows, indptr, begins)
    places, n_kept = _places(chain, begins, n, index)
    if n_kept == n:
        return parts
    dtype = sum_dtype(data.dtype)
    new_indices, new_indptr = _new(queue, parts, n_kept)
    sums = allocated(queue, "data", n_kept, dtype, data.allocator)
    starts = chain.scratch(n_kept + 1, index)
    _enqueue_over(chain, Compact(group, index.name, 0), n, places, indices, new_indices, starts)
    enqueue_permute(chain, indptr, places, new_indptr, n_rows + 1)
    enqueue_segmented_sum(chain, starts, n_kept, data, n, sums)
    chain.finish(sums, new_indices, new_indptr)
    return sums if dtype == data.dtype else converted(queue, "data", sums, data.dtype), new_indices, new_indptr


def _without_zeros_by_host(queue: cl.CommandQueue, parts: Parts, work_group: int = _WORK_GROUP) -> Parts:  # noqa: ARG001
    """Return the result of `without_zeros`, computed by NumPy."""
    data, indices, indptr, _ = _on_host(queue, parts)
    kept = data != 0
    return parts if kept.all() else _placed_parts(queue, parts, data[kept], indices[kept], _kept_before(kept)[indptr])


@or_by_host(_without_zeros_by_host)
def without_zeros(queue: cl.CommandQueue, parts: Parts, work_group: int = _WORK_GROUP) -> Parts:
    """Return the parts of a matrix without the entries that are zero; the parts themselves where there are none.

    Parameters
    ----------
    queue, parts, work_group
        As for `without_duplicates`; rows need not be sorted.
    """
    data, indices, indptr = parts
    chain = Chain(queue, *parts)
    n, index = indices.size, indices.dtype
    group = min(work_group, chain.device.max_work_group)
    kept = chain.scratch(n, np.uint8)
    _enqueue_over(chain, Nonzeros(group, data.dtype.name), n, data, kept)
    places, n_kept = _places(chain, kept, n, index)
    if n_kept == n:
        return parts
    new_indices, new_indptr = _new(queue, parts, n_kept)
    new_data = allocated(queue, "data", n_kept, data.dtype, data.allocator)
    _enqueue_over(chain, Compact(group, index.name, data.dtype.itemsize), n, places, indices, data, new_indices, new_data)
    enqueue_permute(chain, indptr, places, new_indptr, indptr.size)
    chain.finish(new_data, new_indices, new_indptr)
    return new_data, new_indices, new_indptr


def _places(chain: Chain, marks: cl_array.Array, n: int, index: np.dtype[Any]) -> tuple[cl_array.Array, int]:
    """Return how many entries before each are marked, n + 1 numbers, and how many are in all."""
    places = chain.scratch(n + 1, index)
    enqueue_scan(chain, marks, places, n, kind="pointers")
    return places, int(chain.read(places, 1, n)[0])


def _new(queue: cl.CommandQueue, parts: Parts, n_kept: int) -> tuple[cl_array.Array, cl_array.Array]:
    """Return new indices and indptr for a matrix of as many rows with other entries."""
    data, indices, indptr = parts
    lengths = {"indices": n_kept, "indptr": indptr.size}
    new_indices, new_indptr = (allocated(queue, what, n, indices.dtype, data.allocator) for what, n in lengths.items())
    return new_indices, new_indptr
