"""Sort the rows of a CSR matrix, sum its duplicates and remove its zeros, on the device.

The functions take and return the three arrays of a matrix. Entries that remain are marked in bytes, a scan of the marks gives
their new positions, and one kernel moves the entries there. The host reads the number of entries that remain.
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
#: Most work-items in a work-group of the kernel `Compact`, which moves a matrix's marked entries together, others left out.
_WORK_GROUP = 128

#: The loop kernel that marks the beginning of each run of duplicates: an entry whose column is not that of the entry before.
BEGINS = declare_loop(
    "canonical/begins",
    "Marks the entries that begin a run of duplicates, an entry without duplicates being a run of one: entries whose column is "
    "not their predecessor's. The first entries of rows are marked by begins:rows afterwards. Rows are sorted.",
    "const I *indices, uchar *begins",
    "begins[k] = k == 0 || indices[k] != indices[k - 1];",
    counter="k",
)

#: The loop kernel that marks the first entry of each row of a CSR matrix.
ROW_BEGINS = declare_loop(
    "canonical/begins:rows",
    "Marks the first entry of each row that has entries.",
    "const I *indptr, uchar *begins",
    "if (indptr[row] < indptr[row + 1])",
    "    begins[indptr[row]] = 1;",
    counter="row",
)

#: The loop kernel that marks the entries of a matrix whose real value is not 0.
NONZEROS = declare_loop(
    "canonical/nonzeros",
    "Marks the entries whose value is not 0, NaN among them: 1, else 0.",
    "const REAL *data, uchar *marks",
    "marks[k] = data[k] != 0;",
    counter="k",
    types="REAL",
)

#: The loop kernel that marks the entries of a matrix whose complex value is not 0.
COMPLEX_NONZEROS = declare_loop(
    "canonical/nonzeros:complex",
    "Marks the entries whose complex value is not 0, NaN among them: 1, else 0.",
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
        """Return the template's arguments by name: fields, and ``values``, whether values are moved beside columns."""
        return {**super().arguments(), "values": self.value_bytes > 0}


def _enqueue_over(chain: Chain, parameters: Parameters, n: int, *arguments: Any) -> None:
    """Enqueue the kernel of a parameter record over n entries, with one work-item to an entry."""
    built, record = chain.build(parameters)
    chain.launch(built, -(-n // record.work_group), np.uint64(n), *arguments)


def with_sorted_rows(queue: cl.CommandQueue, parts: Parts) -> Parts:
    """Return the arrays of a matrix with the columns of its rows in ascending order; duplicates keep their order.

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
    """Return the arrays of a matrix with duplicates summed in their order; the given arrays if there are no duplicates.

    The sum of booleans is whether one of them is true, as in SciPy.

    Parameters
    ----------
    queue, parts
        As for `with_sorted_rows`; the rows are sorted.
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
    positions, n_remaining = _scan_marks(chain, begins, n, index)
    if n_remaining == n:
        return parts
    dtype = sum_dtype(data.dtype)
    new_indices, new_indptr = _allocate_structure(queue, parts, n_remaining)
    sums = allocate(queue, "data", n_remaining, dtype, data.allocator)
    starts = chain.scratch(n_remaining + 1, index)
    _enqueue_over(chain, Compact(group, index.name, 0), n, positions, indices, new_indices, starts)
    enqueue_permute(chain, indptr, positions, new_indptr, n_rows + 1)
    # The segments that are summed are the runs of duplicates: none is empty, as `enqueue_segmented_sum` asks for.
    enqueue_segmented_sum(chain, starts, data, sums, n_remaining, n, operation="signed_plus" if dtype.kind in "fc" else "plus")
    chain.finish(sums, new_indices, new_indptr)
    return sums if dtype == data.dtype else convert(queue, "data", sums, data.dtype), new_indices, new_indptr


def without_zeros(queue: cl.CommandQueue, parts: Parts, work_group: int = _WORK_GROUP) -> Parts:
    """Return the arrays of a matrix without its explicit zeros; the given arrays if there are no zeros.

    Parameters
    ----------
    queue, parts, work_group
        As for `without_duplicates`; the rows need not be sorted.
    """
    data = parts[0]
    chain = Chain(queue, *parts)
    marks = chain.scratch(data.size, np.uint8)
    marking = COMPLEX_NONZEROS if data.dtype.kind == "c" else NONZEROS
    enqueue_loop(chain, marking, data.size, (name_of(data.dtype),), data, marks)
    return _keep_marked(chain, parts, marks, work_group)


def with_marked(queue: cl.CommandQueue, parts: Parts, marks: cl_array.Array, work_group: int = _WORK_GROUP) -> Parts:
    """Return the arrays of a matrix that keeps the marked entries of another matrix; the given arrays if all are marked.

    Parameters
    ----------
    queue, parts, work_group
        As for `without_zeros`.
    marks : pyopencl.array.Array
        A byte for each entry: 1 if the entry remains, else 0.
    """
    return _keep_marked(Chain(queue, *parts, marks), parts, marks, work_group)


def _keep_marked(chain: Chain, parts: Parts, marks: cl_array.Array, work_group: int) -> Parts:
    """Return the CSR arrays of the marked entries of a matrix, the given arrays if all are marked. The host waits."""
    data, indices, indptr = parts
    queue, n, index = chain.queue, indices.size, indices.dtype
    group = min(work_group, chain.device.max_work_group)
    positions, n_remaining = _scan_marks(chain, marks, n, index)
    if n_remaining == n:
        return parts
    new_indices, new_indptr = _allocate_structure(queue, parts, n_remaining)
    new_data = allocate(queue, "data", n_remaining, data.dtype, data.allocator)
    _enqueue_over(chain, Compact(group, index.name, data.dtype.itemsize), n, positions, indices, data, new_indices, new_data)
    enqueue_permute(chain, indptr, positions, new_indptr, indptr.size)
    chain.finish(new_data, new_indices, new_indptr)
    return new_data, new_indices, new_indptr


def _scan_marks(chain: Chain, marks: cl_array.Array, n: int, index: np.dtype[Any]) -> tuple[cl_array.Array, int]:
    """Return a device array of the number of marked entries before each of n entries and before their end; and that last one."""
    positions = chain.scratch(n + 1, index)
    enqueue_scan(chain, marks, positions, n, kind="pointers")
    return positions, int(chain.read(positions, 1, n)[0])


def _allocate_structure(queue: cl.CommandQueue, parts: Parts, n_remaining: int) -> tuple[cl_array.Array, cl_array.Array]:
    """Return new `indices` and `indptr`, not filled, for ``n_remaining`` entries in as many rows as a matrix has."""
    data, indices, indptr = parts
    lengths = {"indices": n_remaining, "indptr": indptr.size}
    new_indices, new_indptr = (allocate(queue, label, n, indices.dtype, data.allocator) for label, n in lengths.items())
    return new_indices, new_indptr
