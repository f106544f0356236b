"""The methods of SpTRANS: from the arrays of a matrix to those of its transposed, each by a few launches.

A method is a function ``method(chain, A, values, moved) -> Pattern``. It enqueues what puts the values of A into ``moved``, in the
order of the transposed, and returns its structure. Without values it puts the positions of entries there: the permutation
that a plan keeps. A's structure is valid, and A has entries. Nothing waits for the device but `gather`, which has to know whether
the pattern is symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.csr import csr_array
from clsparse_py.device import describe
from clsparse_py.launch import Chain
from clsparse_py.primitives.radix_sort import enqueue_sort_by_key
from clsparse_py.spmv.kernels import Boundaries
from clsparse_py.transpose.kernels import Gather, GatherChunked, Permute, Sample, tile

__all__ = ["METHODS", "NotSymmetricError", "Pattern", "binned", "empty", "enqueue_permute", "gather"]

#: On CPU devices, chunks of entries to a core.
_CHUNKS_PER_CORE = 4


@dataclass(frozen=True)
class Pattern:
    """The structure of a transposed matrix, rows sorted.

    Attributes
    ----------
    indptr, indices : pyopencl.array.Array
        A's own where the pattern is symmetric.
    why : str
        What the method found, or that it takes any matrix.
    """

    indptr: cl_array.Array
    indices: cl_array.Array
    why: str


class NotSymmetricError(Exception):
    """The pattern of a matrix is not symmetric, or not in the way that makes `gather` the best method; the message says why."""


def empty(A: csr_array, what: str, n: int, dtype: Any) -> cl_array.Array:
    """Return a new array for a part of the transposed of A, from the allocator of A's values.

    Raises
    ------
    MemoryError
        The device has not enough memory; the message says how much is needed.
    """
    device = describe(A.queue.device)
    needed = n * np.dtype(dtype).itemsize
    reason: Exception | None = None
    if needed <= device.global_memory:
        try:
            return cl_array.empty(A.queue, n, dtype, allocator=A.data.allocator)
        except cl.Error as error:
            reason = error
    raise MemoryError(
        f"the transposed of a {A.shape[0]} x {A.shape[1]} matrix needs {needed:,} bytes for its {what} "
        f"({n:,} entries of {np.dtype(dtype)}); "
        f"{device.name} has {device.global_memory:,} in all and allows {device.max_allocation:,} in one array"
    ) from reason


def _value_bytes(values: cl_array.Array | None) -> int:
    return 0 if values is None else values.dtype.itemsize


def enqueue_parts(
    chain: Chain, A: csr_array, n_parts: int, step: int, work_group: int = 64
) -> tuple[cl_array.Array, cl_array.Array]:
    """Enqueue the division of A into parts of ``step`` rows and entries; return where each begins, as rows and as entries."""
    index = A.indptr.dtype.type
    built, _ = chain.build(Boundaries(min(work_group, chain.device.max_work_group), A.indptr.dtype.name))
    part_row, part_entry, part_cut = (chain.scratch(n_parts + 1, index) for _ in range(3))
    groups = -(-(n_parts + 1) // built.parameters.work_group)
    sizes = index(A.shape[0]), index(A.nnz), np.int64(step), np.int64(1), index(0), index(n_parts)
    chain.launch(built, groups, *sizes, A.indptr, part_row, part_entry, part_cut)
    return part_row, part_entry


def enqueue_permute(
    chain: Chain, positions: cl_array.Array, values: cl_array.Array, out: cl_array.Array, n: int, work_group: int | None = None
) -> None:
    """Enqueue ``out[k] = values[positions[k]]`` for n entries; ``values`` are contiguous and may begin inside their buffer."""
    device = chain.device
    asked = work_group or (1 if device.is_cpu else 256)
    built, parameters = chain.build(Permute(min(asked, device.max_work_group), positions.dtype.name, values.dtype.itemsize))
    group = parameters.work_group
    if device.is_cpu:
        # A work-item to a chunk of adjacent entries.
        groups = max(1, min(device.compute_units * _CHUNKS_PER_CORE // group, -(-n // (1024 * group))))
        span = -(-n // (groups * group))
        stride, step = span, 1
    else:
        groups = min(-(-n // group), device.compute_units * 64)
        stride, step, span = 1, groups * group, n
    begins = np.uint64(values.offset // values.dtype.itemsize)
    chain.launch(built, groups, *map(np.uint64, (n, stride, step, span)), positions, values, begins, out)


def gather(
    chain: Chain,
    A: csr_array,
    values: cl_array.Array | None,
    moved: cl_array.Array,
    *,
    at_first: int = 0,
    work_group: int | None = None,
    items: int = 4,
) -> Pattern:
    """Transpose a matrix of symmetric pattern: the value of each entry is searched where its mirror image stands.

    Waits for the device once: a sample of entries is looked at, then all of them unless the sample decides against it, and one
    read tells what was found. The result shares A's ``indptr`` and ``indices``.

    Parameters
    ----------
    chain, A, values, moved
        As for every method; A is square and its format canonical.
    at_first : int
        How many of 1024 entries of the sample have to be found at the first place that is looked at, which is cheap.
    work_group, items : int, optional
        Work-items in a work-group, and what each takes of a tile.

    Raises
    ------
    NotSymmetricError
        An entry has no mirror image, or too few are found at first.
    """
    device, index = chain.device, A.indptr.dtype
    sample, _ = chain.build(Sample(min(256, device.max_work_group), index.name))
    found = chain.scratch(5, np.uint32)
    chain.launch(sample, 1, index.type(A.shape[0]), np.uint32(at_first), A.indptr, A.indices, found)
    weight = A.nnz + A.shape[0]
    if device.is_cpu:
        built, _ = chain.build(GatherChunked(min(work_group or 1, device.max_work_group), index.name, _value_bytes(values)))
        step = max(1, -(-weight // (device.compute_units * _CHUNKS_PER_CORE)))
        n_parts = -(-weight // step)
        groups = -(-n_parts // built.parameters.work_group)
        leading: tuple[Any, ...] = (index.type(n_parts),)
    else:
        group, items = tile(device, work_group or 256, items)
        built, parameters = chain.build(Gather(group, index.name, _value_bytes(values), items))
        step = parameters.work_group * parameters.items
        groups = n_parts = -(-weight // step)
        leading = ()
    parts = enqueue_parts(chain, A, n_parts, step)
    given = () if values is None else (values,)
    chain.launch(built, groups, *leading, *parts, A.indptr, A.indices, *given, found, moved)
    go, missed, sampled, missing, at_guess = (int(number) for number in chain.read(found, 5))
    if missing or missed:
        few = f"{missing} of {sampled} sampled entries have" if missing else "an entry has"
        raise NotSymmetricError(f"the pattern is not symmetric: {few} no mirror image")
    if not go:
        raise NotSymmetricError(
            f"the pattern may be symmetric, but only {at_guess} of {sampled} sampled entries are found at once"
        )
    return Pattern(A.indptr, A.indices, f"the pattern is symmetric, {at_guess} of {sampled} sampled entries are found at once")


def binned(chain: Chain, A: csr_array, values: cl_array.Array | None, moved: cl_array.Array) -> Pattern:
    """Transpose by a stable sort of the entries by column."""
    index = A.indices.dtype
    indptr, indices = empty(A, "indptr", A.shape[1] + 1, index), empty(A, "indices", A.nnz, index)
    enqueue_sort_by_key(
        chain, A.indices, A.nnz, A.shape[1], n_items=A.shape[0], sorted_items=indices, indptr=A.indptr, values=values,
        sorted_values=moved, pointers=indptr,
    )  # fmt: skip
    return Pattern(indptr, indices, "takes any matrix")


METHODS: dict[str, Callable[..., Pattern]] = {"gather": gather, "binned": binned}
