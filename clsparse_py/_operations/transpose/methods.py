"""The methods of SpTRANS.

A method is a function ``method(chain, A, valued, to_values, limit) -> Pattern``. It enqueues commands that put the values of A
into ``to_values`` in the order of the transposed, and returns the structure of the transposed. If not ``valued``, positions of
entries take the place of values: the permutation that a plan keeps. A's structure is valid, and A has entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import enqueue_loop
from clsparse_py._matrix.matrix import Matrix, Symmetry
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.transpose.bucket_chunks import enqueue_bucket_chunks, is_scattered
from clsparse_py._operations.transpose.buckets import enqueue_buckets, shape_of
from clsparse_py._operations.transpose.choose import Thresholds
from clsparse_py._operations.transpose.kernels import (
    UNPACK,
    UNPACK_POSITIONS,
    Count,
    Gather,
    GatherChunked,
    Insert,
    Order,
    Sample,
    Transposition,
    fit_tile,
)
from clsparse_py._precision.arithmetic import MOVED_TYPES, name_of
from clsparse_py._primitives.partition import enqueue_parts
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._primitives.segmented_sort import enqueue_segmented_sort
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = [
    "METHODS",
    "NOT_CANONICAL",
    "SHORT",
    "LongRowsError",
    "Method",
    "NotSymmetricError",
    "Pattern",
    "allocate_result",
    "atomics",
    "binned",
    "gather",
]

#: Most entries of the longest row of the transposed for which `atomics` sorts rows by comparing all pairs of a row's entries;
#: longer ones take a segmented sort.
SHORT = 256
#: Reason why the transposition's method `gather` does not take a matrix whose format is not canonical.
NOT_CANONICAL = "its rows are not sorted, or hold duplicates"
#: Reason, in the Explanation of a transposition, why the method `binned` was taken.
_ANY = "takes any matrix"
#: Reason, in the Explanation of a transposition, why the method `binned` moved entries by buckets of columns.
_SCATTERED = f"{_ANY}, by buckets, as columns are scattered"


@dataclass(frozen=True)
class Pattern:
    """The structure of a transposed matrix, with sorted rows.

    Attributes
    ----------
    indptr, indices : pyopencl.array.Array
        A's own where the pattern is symmetric.
    why : str
        The reason why the method was taken.
    """

    indptr: cl_array.Array
    indices: cl_array.Array
    why: str


class NotSymmetricError(Exception):
    """The pattern of a matrix is not symmetric, or `gather` would be slow for it; the message says why."""


class LongRowsError(Exception):
    """The transposed has rows too long for the method; the message says how long."""


def allocate_result(A: Matrix, purpose: str, n: int, dtype: Any) -> cl_array.Array:
    """Return a new array of ``n`` values for the transposed of A, from the allocator of A's values.

    Raises
    ------
    MemoryError
        The device has not enough memory; the message says how much is needed.
    """
    try:
        return allocate(A.queue, purpose, n, dtype, A.data.allocator)
    except MemoryError as error:
        raise MemoryError(f"the transposed of a {A.shape[0]} x {A.shape[1]} matrix: {error}") from error


def _value_bytes(values: cl_array.Array | None) -> int:
    """Return the bytes of a value that a transposition moves; 0 if it moves positions of entries."""
    return 0 if values is None else values.dtype.itemsize


def gather(
    chain: Chain,
    A: Matrix,
    valued: bool,
    to_values: cl_array.Array,
    limit: int | None = None,
    *,
    work_group: int | None = None,
    items: int = 4,
) -> Pattern:
    """Transpose a matrix of symmetric pattern: an entry's new value is the value of its mirror image, (column, row).

    The first transposition of a structure waits for the device twice: for the mirror images of a sample of entries and, unless
    the sample decides against `gather`, of all entries. The structure keeps the answer, so later transpositions do not wait. The
    result shares A's ``indptr`` and ``indices``.

    Parameters
    ----------
    chain, A, valued, to_values
        As for every method.
    limit : int, optional
        Least number of 1024 sampled entries whose mirror images stand at the first guess, where the search is cheap. Without a
        limit the format is checked first, by another launch and wait unless it is known: only then is the error's reason certain.
    work_group, items : int, optional
        Work-items in a work-group, and entries of a tile to each.

    Raises
    ------
    NotSymmetricError
        An entry has no mirror image, too few are found at first, or A's format is not canonical.
    """
    if A.shape[0] != A.shape[1]:
        raise NotSymmetricError(f"it is {A.shape[0]} x {A.shape[1]}")
    facts, at_first = A.structure.checked() if limit is None else A.facts, limit or 0
    if facts is not None and not facts.canonical:
        raise NotSymmetricError(NOT_CANONICAL)
    symmetry = A.structure.symmetry
    if symmetry is None or not symmetry.verified:
        if symmetry is not None:
            _require_symmetric(symmetry, at_first)
        flags = allocate(chain.queue, "what is found out about the symmetry of a pattern", 5, np.uint32)
        run(chain, _enqueue_sample, (A.indptr, A.indices, flags), A.shape[0], at_first)
        # The sample of mirror images is read before more is enqueued: it shows that most matrices' patterns are not symmetric.
        A.structure.symmetry = symmetry = _read_symmetry(chain, flags, verified=False)
    _require_symmetric(symmetry, at_first)
    run(
        chain,
        _enqueue_gather,
        (A.indptr, A.indices, A.data if valued else None, symmetry.flags, to_values),
        A.shape[0],
        A.nnz,
        work_group,
        items,
    )
    if not symmetry.verified:
        A.structure.symmetry = symmetry = _read_symmetry(chain, symmetry.flags, verified=True)
        _require_symmetric(symmetry, at_first)
    return Pattern(A.indptr, A.indices, f"the pattern is symmetric, {_describe_guesses(symmetry)}")


def _read_symmetry(chain: Chain, flags: cl_array.Array, *, verified: bool) -> Symmetry:
    """Return the Symmetry of a matrix's pattern, read from flags on the device; ``verified``: after a search of all entries."""
    gathers, faults, sampled, missing, at_guess = (int(number) for number in chain.read(flags, 5))
    verified = verified and bool(gathers and not faults)
    return Symmetry(sampled, missing, at_guess, verified, missed=bool(faults & 1), unsorted=bool(faults & 2), flags=flags)


def _describe_guesses(symmetry: Symmetry) -> str:
    """Return, in words, the number of sampled entries whose mirror images, (column, row), stand where first guessed."""
    return f"{symmetry.at_guess} of {symmetry.sampled} sampled entries are found at once"


def _require_symmetric(symmetry: Symmetry, at_first: int) -> None:
    """Raise NotSymmetricError if A is not symmetric or canonical, or under ``at_first`` of 1024 images stand as first guessed."""
    if symmetry.unsorted:
        raise NotSymmetricError(NOT_CANONICAL)
    if symmetry.missing or symmetry.missed:
        subject = f"{symmetry.missing} of {symmetry.sampled} sampled entries have" if symmetry.missing else "an entry has"
        raise NotSymmetricError(f"the pattern is not symmetric: {subject} no mirror image")
    if not symmetry.sampled or symmetry.at_guess * 1024 < symmetry.sampled * at_first:
        raise NotSymmetricError(f"the pattern may be symmetric, but only {_describe_guesses(symmetry)}")


def _enqueue_sample(
    chain: Chain, indptr: cl_array.Array, indices: cl_array.Array, flags: cl_array.Array, n_rows: int, at_first: int
) -> None:
    """Enqueue the search for the mirror images, (column, row) of (row, column), of a sample of a matrix's entries."""
    sample, _ = chain.build(Sample(min(Sample.ROWS, chain.device.max_work_group), name_of(indptr.dtype)))
    chain.launch(sample, 1, indptr.dtype.type(n_rows), np.uint32(at_first), indptr, indices, flags)


def _enqueue_gather(
    chain: Chain,
    indptr: cl_array.Array,
    indices: cl_array.Array,
    values: cl_array.Array | None,
    flags: cl_array.Array,
    to_values: cl_array.Array,
    n_rows: int,
    nnz: int,
    work_group: int | None,
    items: int,
) -> None:
    """Enqueue the search for the mirror images, (column, row) of (row, column), of all entries, and the gather of the values."""
    device, index = chain.device, name_of(indptr.dtype)
    if device.lanes_are_loops:
        built, _ = chain.build(GatherChunked(min(work_group or 1, device.max_work_group), index, _value_bytes(values)))
        step = max(1, -(-(nnz + n_rows) // (device.compute_units * Thresholds.of(device).parts_per_core)))
        n_parts, *parts = enqueue_parts(chain, indptr, n_rows, nnz, step)
        groups = -(-n_parts // built.parameters.work_group)
        leading: tuple[Any, ...] = (indptr.dtype.type(n_parts),)
    else:
        group, items = fit_tile(device, work_group or 256, items)
        built, parameters = chain.build(Gather(group, index, _value_bytes(values), items))
        groups, *parts = enqueue_parts(chain, indptr, n_rows, nnz, parameters.work_group * parameters.items)
        leading = ()
    value_arrays = () if values is None else (values,)
    chain.launch(built, groups, *leading, *parts, indptr, indices, *value_arrays, flags, to_values)


def binned(chain: Chain, A: Matrix, valued: bool, to_values: cl_array.Array, limit: None = None) -> Pattern:  # noqa: ARG001
    """Transpose a matrix by a stable sort of the entries by column, which takes any matrix; ``limit`` is not used.

    The first transposition of a large structure on a CPU device waits for a sample of columns; the structure keeps its answer.
    """
    structure, shape = A.structure, A.shape
    of_rows, of_entries = structure.indptr, structure.indices
    index, n = of_entries.dtype, of_entries.size
    scattered = chain.device.lanes_are_loops and is_scattered(chain, A, to_values.dtype.itemsize)
    indptr, indices = allocate_result(A, "indptr", shape[1] + 1, index), allocate_result(A, "indices", n, index)
    arrays = of_rows, of_entries, A.data if valued else None, indptr, indices, to_values
    run(chain, _enqueue_binned, arrays, shape, n, scattered)
    return Pattern(indptr, indices, _SCATTERED if scattered else _ANY)


def _enqueue_binned(
    chain: Chain,
    indptr: cl_array.Array,
    indices: cl_array.Array,
    values: cl_array.Array | None,
    to_indptr: cl_array.Array,
    to_indices: cl_array.Array,
    to_values: cl_array.Array,
    shape: tuple[int, int],
    nnz: int,
    scattered: bool,
) -> None:
    """Enqueue the transposition by a sort of entries by column: by buckets or by digits, as suits the device and the matrix."""
    task = Transposition(indptr, indices, values, to_indptr, to_indices, to_values, shape, nnz)
    if scattered:
        enqueue_bucket_chunks(chain, task)
        return
    cut = None if chain.device.lanes_are_loops else shape_of(chain.device, name_of(indices.dtype), task.value_bytes, shape, nnz)
    if cut is not None:
        enqueue_buckets(chain, task, cut)
        return
    enqueue_sort_by_key(
        chain, indices, nnz, shape[1], n_items=shape[0], sorted_items=to_indices, indptr=indptr, values=values,
        sorted_values=to_values, pointers=to_indptr,
    )  # fmt: skip


def atomics(
    chain: Chain,
    A: Matrix,
    valued: bool,
    to_values: cl_array.Array,
    limit: int | None = None,
    *,
    work_group: int | None = None,
) -> Pattern:
    """Transpose a matrix as Ji et al. do: count entries by atomics, insert them in any order, and sort each row of the result.

    The sort is by pairs of an entry's row and position. Duplicates have different pairs, so that the result is deterministic;
    values are gathered in the end. The first transposition of a structure waits for the length of the longest row, which the
    structure keeps; if rows are long, each transposition waits for their sort.

    Parameters
    ----------
    chain, A, valued, to_values
        As for every method.
    limit : int, optional
        Most entries of a row of the transposed.
    work_group : int, optional
        Work-items in a work-group.

    Raises
    ------
    LongRowsError
        The transposed has a longer row, or there are 2^32 rows or entries or more, which pairs do not hold.

    Notes
    -----
    Ji et al., "Segmented Merge", Section 4.2.
    """
    n, n_cols, device, dtype = A.nnz, A.shape[1], chain.device, A.indices.dtype
    if max(n, A.shape[0]) >= 1 << 32:
        raise LongRowsError(f"it counts in 32 bits, but A has {A.shape[0]} rows and {n} entries; use binned")
    if A.structure.longest_column is not None:
        _require_short(A.structure.longest_column, limit)
    indptr = allocate_result(A, "indptr", n_cols + 1, dtype)
    group = min(work_group or 256, device.max_work_group)
    counts, ranks = chain.scratch(n_cols + 1, np.uint32), chain.scratch(n, np.uint32)
    run(chain, _enqueue_counts, (A.indices, counts, ranks, indptr), n_cols, n, group)
    if A.structure.longest_column is None:
        A.structure.longest_column = int(chain.read(counts, 1, n_cols)[0]) + 1
        _require_short(A.structure.longest_column, limit)
    longest = A.structure.longest_column
    indices, pairs = allocate_result(A, "indices", n, dtype), chain.scratch(n, np.uint64)
    run(chain, _enqueue_insertion, (A.indptr, A.indices, ranks, indptr, pairs), A.shape[0], n, work_group)
    values = A.data if valued else None
    order_group, items = fit_tile(device, work_group or 256, 8, entry_bytes=12)
    order = chain.build(Order(order_group, name_of(dtype), _value_bytes(values), items))[1]
    # `short`, the longest row that pairwise comparison sorts, is fixed, so that matrices of one size share a recording.
    short = min(SHORT, order.work_group * order.items // 2)
    if longest <= short:
        run(chain, _enqueue_ordering, (indptr, pairs, values, indices, to_values), n_cols, n, order, short)
    else:
        enqueue_segmented_sort(chain, indptr, n_cols, pairs, None, n)
        run(chain, _enqueue_unpacking, (pairs, values, indices, to_values), n, group)
    return Pattern(indptr, indices, f"the longest row of the transposed has {longest} entries")


def _require_short(longest: int, limit: int | None) -> None:
    """Raise a LongRowsError if the longest row of the transposed is above a limit."""
    if limit is not None and longest > limit:
        raise LongRowsError(f"the transposed has a row of {longest} entries")


def _enqueue_counts(
    chain: Chain, indices: cl_array.Array, counts: cl_array.Array, ranks: cl_array.Array, indptr: cl_array.Array,
    n_cols: int, n: int, group: int,
) -> None:  # fmt: skip
    """Enqueue the count of each column's entries, entries' ranks in columns, and the row pointers of the transposed."""
    count, _ = chain.build(Count(group, name_of(indices.dtype)))
    chain.fill(counts, 0, n_cols + 1)
    # The largest rank of an entry in its column stands behind the columns' counts: one fill and one buffer serve all.
    groups = min(-(-n // group), chain.device.compute_units * 64)
    chain.launch(count, groups, np.uint64(n), np.uint64(n_cols), indices, counts, ranks)
    enqueue_scan(chain, counts, indptr, n_cols, kind="pointers")


def _enqueue_insertion(
    chain: Chain, indptr: cl_array.Array, indices: cl_array.Array, ranks: cl_array.Array, to_indptr: cl_array.Array,
    pairs: cl_array.Array, n_rows: int, n: int, work_group: int | None,
) -> None:  # fmt: skip
    """Enqueue the insertion of entries into rows of the transposed, in any order."""
    group, items = fit_tile(chain.device, work_group or 256)
    insert, inserted = chain.build(Insert(group, name_of(indices.dtype), items))
    n_parts, *parts = enqueue_parts(chain, indptr, n_rows, n, inserted.work_group * inserted.items)
    chain.launch(insert, n_parts, *parts, indptr, indices, ranks, to_indptr, pairs)


def _enqueue_ordering(
    chain: Chain, indptr: cl_array.Array, pairs: cl_array.Array, values: cl_array.Array | None, indices: cl_array.Array,
    to_values: cl_array.Array, n_cols: int, n: int, order: Order, short: int,
) -> None:  # fmt: skip
    """Enqueue the sort of the entries within each row of the transposed, for rows of at most ``short`` entries."""
    built, record = chain.build(order)
    n_parts, *parts = enqueue_parts(chain, indptr, n_cols, n, record.work_group * record.items - short, slack=short)
    value_arrays = () if values is None else (values,)
    chain.launch(built, n_parts, *parts, indptr, pairs, *value_arrays, indices, to_values)


def _enqueue_unpacking(
    chain: Chain, pairs: cl_array.Array, values: cl_array.Array | None, indices: cl_array.Array, to_values: cl_array.Array,
    n: int, group: int,
) -> None:  # fmt: skip
    """Enqueue the split of (row, position) pairs into the transposed's column indices, and its values or entries' positions."""
    index = name_of(indices.dtype)
    if values is None:
        enqueue_loop(chain, UNPACK_POSITIONS, n, (index,), pairs, indices, to_values, work_group=group)
    else:
        types = index, MOVED_TYPES[values.dtype.itemsize]
        enqueue_loop(chain, UNPACK, n, types, pairs, values, indices, to_values, work_group=group)


Method = Literal["auto", "gather", "binned", "atomics"]
#: Functions that transpose by SpTRANS's methods, by the methods' names.
METHODS: dict[str, Callable[..., Pattern]] = {"gather": gather, "binned": binned, "atomics": atomics}
