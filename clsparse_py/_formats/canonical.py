"""Sorted rows, duplicates summed and zeros left out, on the device.

All functions work on arrays: `csr_array` calls them and takes the arrays that they return. Entries that are kept are marked, a
scan finds their places, and one kernel puts them there. How many they are is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.loops import declare_loop, enqueue_loop
from clsparse_py._matrix.matrix import Parts
from clsparse_py._memory.memory import allocate
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.permute import Moving, enqueue_permute
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._primitives.segmented import enqueue_segmented_sum
from clsparse_py._primitives.segmented_sort import enqueue_segmented_sort
from clsparse_py._run.launch import Chain

__all__ = [
    "BEGINS",
    "COMPLEX_NONZEROS",
    "NONZEROS",
    "ROW_BEGINS",
    "Compact",
    "Parts",
    "with_marked",
    "with_sorted_rows",
    "without_duplicates",
    "without_zeros",
]
_WORK_GROUP = 128


BEGINS = declare_loop(
    "canonical/begins",
    "Which entries begin a run of duplicates in their row, an entry with no duplicate being a run of one: those whose column is "
    "not their predecessor's, and those that begin a row, which begins:rows marks behind it. Rows are sorted.",
    "const I *indices, uchar *begins",
    "begins[k] = k == 0 || indices[k] != indices[k - 1];",
    counter="k",
)


ROW_BEGINS = declare_loop(
    "canonical/begins:rows",
    "Marks which entries begin a row.",
    "const I *indptr, uchar *begins",
    "if (indptr[row] < indptr[row + 1])",
    "    begins[indptr[row]] = 1;",
    counter="row",
)


NONZEROS = declare_loop(
    "canonical/nonzeros",
    "Which entries are not 0, as NaN is not: 1, else 0.",
    "const REAL *data, uchar *marks",
    "marks[k] = data[k] != 0;",
    counter="k",
    types="REAL",
)


COMPLEX_NONZEROS = declare_loop(
    "canonical/nonzeros:complex",
    "Which complex entries are not 0, as NaN is not: 1, else 0.",
    "const COMPLEX *data, uchar *marks",
    "const COMPLEX v = data[k];",
    "marks[k] = v.x != 0 || v.y != 0;",
    counter="k",
    types="COMPLEX",
)


@kernel
@dataclass(frozen=True)
class Compact(Moving):
    """Parameters of ``templates/canonical/compact.mako``."""

    template = "canonical/compact"
    variants: ClassVar[Variants] = {"": {"value_bytes": 0}, "values": {}}

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "values": self.value_bytes > 0}


def _enqueue_over(chain: Chain, parameters: Parameters, n: int, *arguments: Any) -> None:
    """Enqueue a kernel whose work-items take an entry each."""
    built, record = chain.build(parameters)
    chain.launch(built, -(-n // record.work_group), np.uint64(n), *arguments)


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
    new_data = allocate(queue, "data", n, data.dtype, data.allocator)
    new_indices = allocate(queue, "indices", n, indices.dtype, data.allocator)
    enqueue_segmented_sort(chain, indptr, indptr.size - 1, indices, data, n, out_keys=new_indices, out_values=new_data)
    chain.finish(new_data, new_indices)
    return new_data, new_indices, indptr


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
    enqueue_loop(chain, BEGINS, n, (index.name,), indices, begins)
    enqueue_loop(chain, ROW_BEGINS, n_rows, (index.name,), indptr, begins)
    positions, n_kept = _places(chain, begins, n, index)
    if n_kept == n:
        return parts
    dtype = sum_dtype(data.dtype)
    new_indices, new_indptr = _new(queue, parts, n_kept)
    sums = allocate(queue, "data", n_kept, dtype, data.allocator)
    starts = chain.scratch(n_kept + 1, index)
    _enqueue_over(chain, Compact(group, index.name, 0), n, positions, indices, new_indices, starts)
    enqueue_permute(chain, indptr, positions, new_indptr, n_rows + 1)
    # No segment is empty.
    enqueue_segmented_sum(chain, starts, n_kept, data, n, sums, operation="signed_plus" if dtype.kind in "fc" else "plus")
    chain.finish(sums, new_indices, new_indptr)
    return sums if dtype == data.dtype else convert(queue, "data", sums, data.dtype), new_indices, new_indptr


def without_zeros(queue: cl.CommandQueue, parts: Parts, work_group: int = _WORK_GROUP) -> Parts:
    """Return the parts of a matrix without the entries that are zero; the parts themselves where there are none.

    Parameters
    ----------
    queue, parts, work_group
        As for `without_duplicates`; rows need not be sorted.
    """
    data = parts[0]
    chain = Chain(queue, *parts)
    marks = chain.scratch(data.size, np.uint8)
    marking = COMPLEX_NONZEROS if data.dtype.kind == "c" else NONZEROS
    enqueue_loop(chain, marking, data.size, (name_of(data.dtype),), data, marks)
    return _mark(chain, parts, marks, work_group)


def with_marked(queue: cl.CommandQueue, parts: Parts, marks: cl_array.Array, work_group: int = _WORK_GROUP) -> Parts:
    """Return the parts of the entries of a matrix that are marked; the parts themselves if all are.

    Parameters
    ----------
    queue, parts, work_group
        As for `without_zeros`.
    marks : pyopencl.array.Array
        A byte for each entry, 1 for those that are kept, else 0.
    """
    return _mark(Chain(queue, *parts, marks), parts, marks, work_group)


def _mark(chain: Chain, parts: Parts, marks: cl_array.Array, work_group: int) -> Parts:
    """Return the result of `with_marked`; waits to learn how many entries are marked."""
    data, indices, indptr = parts
    queue, n, index = chain.queue, indices.size, indices.dtype
    group = min(work_group, chain.device.max_work_group)
    positions, n_kept = _places(chain, marks, n, index)
    if n_kept == n:
        return parts
    new_indices, new_indptr = _new(queue, parts, n_kept)
    new_data = allocate(queue, "data", n_kept, data.dtype, data.allocator)
    _enqueue_over(chain, Compact(group, index.name, data.dtype.itemsize), n, positions, indices, data, new_indices, new_data)
    enqueue_permute(chain, indptr, positions, new_indptr, indptr.size)
    chain.finish(new_data, new_indices, new_indptr)
    return new_data, new_indices, new_indptr


def _places(chain: Chain, marks: cl_array.Array, n: int, index: np.dtype[Any]) -> tuple[cl_array.Array, int]:
    """Return how many entries before each are marked, n + 1 numbers, and how many are in all."""
    positions = chain.scratch(n + 1, index)
    enqueue_scan(chain, marks, positions, n, kind="pointers")
    return positions, int(chain.read(positions, 1, n)[0])


def _new(queue: cl.CommandQueue, parts: Parts, n_kept: int) -> tuple[cl_array.Array, cl_array.Array]:
    """Return new indices and indptr for a matrix of as many rows with other entries."""
    data, indices, indptr = parts
    lengths = {"indices": n_kept, "indptr": indptr.size}
    new_indices, new_indptr = (allocate(queue, label, n, indices.dtype, data.allocator) for label, n in lengths.items())
    return new_indices, new_indptr
