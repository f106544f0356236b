"""Element-wise operators on the union of two patterns; zero results are dropped, and small matrices take one launch."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.programs import note_asked
from clsparse_py._device.device import describe
from clsparse_py._formats.canonical import with_sorted_rows, without_duplicates
from clsparse_py._ground.errors import DtypeError
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert, with_index
from clsparse_py._matrix.matrix import Matrix, MatrixT, Parts, Structure
from clsparse_py._memory.memory import allocate, allocate_each, array_of, scratch, shorten
from clsparse_py._memory.pool import arena_of
from clsparse_py._operations.elementwise.operators import OPERATORS
from clsparse_py._operations.elementwise.union_kernels import Thresholds, Union, UnionAtOnce, UnionCuts, UnionMarks, UnionWrite
from clsparse_py._precision.arithmetic import name_of, needs_fp64
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain

__all__ = ["assemble_canonical", "canonical_of", "canonical_parts", "combine"]

#: Least number of places (rows and entries of two sparse matrices) that a work-item of a CPU device combines.
_LEAST_SPAN = 11
#: Most work-items per core of a CPU device that combine two sparse matrices: enough to balance the load between cores.
_ITEMS_PER_CORE = 16


def combine(operator: str, A: MatrixT, B: Matrix) -> MatrixT:
    """Return the sparse matrix of an elementwise operator's nonzero results on two sparse matrices, in canonical format.

    Waits for the device once, for the number of entries.

    Parameters
    ----------
    operator : str
        A name in `OPERATORS`.
    A, B : Matrix
        Of one shape, in one context; the result is on A's queue. Neither is changed: an operand that is not in canonical format
        is copied.

    Raises
    ------
    TypeError
        The values are of dtypes that need double precision, which the device lacks.
    MemoryError
        The device has not the memory for the result.
    """
    queue = A.queue
    small = _combine_in_one_launch(operator, A, B)
    if small is not None:
        return assemble_canonical(A, small)
    dtype, with_fp64 = _common_dtype(A.data.dtype, B.data.dtype)
    if with_fp64 and not describe(arena_of(queue).pool.device).fp64:
        raise DtypeError(f"{A.dtype} and {B.dtype} give {dtype}, which {queue.device.name} lacks; use float32")
    of_a, of_b, shape = canonical_parts(A, dtype), canonical_parts(B, dtype), A.shape
    a_index, b_index = of_a[1].dtype, of_b[1].dtype
    index = index_for(max(shape[1], of_a[1].size + of_b[1].size), a_index, b_index)
    if a_index != index or b_index != index:
        of_a, of_b = with_index(queue, of_a, index), with_index(queue, of_b, index)
    parts = *of_a, *of_b
    chain = Chain(queue, *parts)
    indptr = allocate(queue, "indptr of the result", shape[0] + 1, index, parts[0].allocator)
    if not shape[0]:
        chain.fill(indptr, 0, 1)
    return assemble_canonical(A, _combine_places(chain, parts, operator, indptr))


def canonical_parts(A: Matrix, dtype: np.dtype[Any]) -> Parts:
    """Return data, indices and indptr of a sparse matrix in canonical format: the matrix's own arrays if it is canonical.

    Otherwise duplicates are added up as values of ``dtype``, as SciPy does: two booleans that are True make 2 beside numbers.
    """
    parts = A.parts
    if A.has_canonical_format:
        return parts
    if A.dtype != dtype:
        parts = convert(A.queue, "data", A.data, dtype), A.indices, A.indptr
    if not A.has_sorted_indices:
        parts = with_sorted_rows(A.queue, parts)
    return without_duplicates(A.queue, parts)


def canonical_of(A: MatrixT, dtype: np.dtype[Any]) -> MatrixT:
    """Return a matrix with rows sorted and duplicates added up in ``dtype``; the matrix itself if it is in canonical format."""
    if A.has_canonical_format:
        return A
    return assemble_canonical(A, canonical_parts(A, dtype))


def assemble_canonical(A: MatrixT, parts: Parts) -> MatrixT:
    """Return a matrix of A's class, shape and queue from data, indices and indptr in canonical format."""
    data, indices, indptr = parts
    return A.assembled(Structure.canonical(A.queue, A.structure.shape, indices, indptr), data)


def _combine_places(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, indptr: cl_array.Array) -> Parts:
    """Return the arrays of an operator's result on two matrices, computed by chunks on CPU devices and by tiles on GPUs."""
    combine_places = _combine_by_chunks if chain.device.lanes_are_loops else _combine_by_tiles
    return combine_places(chain, parts, operator, indptr)


def _combine_by_chunks(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, indptr: cl_array.Array) -> Parts:
    """Return the arrays of an operator's result on two matrices, for CPUs: a work-item takes a long chunk of rows and entries."""
    a_data, a_indices, a_indptr, b_data, b_indices, b_indptr = parts
    types = name_of(a_indptr.dtype), name_of(a_data.dtype), name_of(b_data.dtype), operator
    (count, _), (fill, _) = chain.build(Union(1, *types, "count")), chain.build(Union(1, *types, "fill"))
    n_places, index = indptr.size - 1 + a_indices.size + b_indices.size, a_indptr.dtype
    step = max(-(-n_places // (chain.device.compute_units * _ITEMS_PER_CORE)), _LEAST_SPAN)
    n_tiles = -(-n_places // step)
    cuts, starts = chain.scratch(3 * (n_tiles + 1), index), chain.scratch(n_tiles + 1, index)
    _enqueue_cuts(chain, parts, indptr, (n_places, step, n_tiles), cuts, starts)
    operands = cuts, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
    chain.launch(count, n_tiles, *operands, starts)
    data, indices = _allocate_entries(chain, parts, operator, _scan_counts(chain, starts, n_tiles))
    chain.launch(fill, n_tiles, *operands, starts, indptr, indices, data)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def _combine_by_tiles(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, indptr: cl_array.Array) -> Parts:
    """Return the arrays of an operator's result on two matrices, for GPUs: a work-group takes a tile of rows and entries."""
    a_data, a_indices, a_indptr, b_data, b_indices, b_indptr = parts
    index, queue, n_rows = a_indptr.dtype, chain.queue, indptr.size - 1
    n_places = n_rows + a_indices.size + b_indices.size
    # If tiles of rows and entries are few, a work-group finds its tile and adds earlier tiles' counts: three launches less.
    limits = Thresholds.of(chain.device)
    has_few_places = n_places <= chain.device.compute_units * limits.max_few_places
    kind = operator, index, a_data.dtype, b_data.dtype, has_few_places, limits.tile_group, limits.tile_span
    (marking, tiles), writing = chain.worked_out(kind, lambda: _build_tile_kernels(chain, *kind))
    note_asked((marking, writing))
    n_tiles = -(-n_places // tiles.step)
    n_bytes = index.itemsize * (n_tiles + 1)
    with scratch(queue, (3 * n_bytes, n_bytes, 12 * tiles.work_group * max(n_tiles, 1))) as (cuts, counts, marks):
        starts = array_of(queue, n_tiles + 1, index, counts, None, arena_of(queue).pool.context)
        matrices = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
        if has_few_places:
            chain.launch(marking, n_tiles, index.type(n_rows), np.uint64(n_places), cuts, indptr, *matrices, marks, counts)
            nnz = int(chain.read(starts, n_tiles, 1).sum())
        else:
            _enqueue_cuts(chain, parts, indptr, (n_places, tiles.step, n_tiles), cuts, starts)
            chain.launch(marking, n_tiles, cuts, *matrices, marks, counts)
            nnz = _scan_counts(chain, starts, n_tiles)
        data, indices = _allocate_entries(chain, parts, operator, nnz)
        chain.launch(writing, n_tiles, cuts, marks, counts, a_indices, a_data, b_indices, b_data, indptr, indices, data)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def _build_tile_kernels(
    chain: Chain,
    operator: str,
    index: np.dtype[Any],
    a: np.dtype[Any],
    b: np.dtype[Any],
    has_few_places: bool,
    work_group: int,
    span: int,
) -> tuple[tuple[Built, UnionMarks], Built]:
    """Return the kernel that marks an operator's results by tiles, with its record, and the kernel that writes the results."""
    types = name_of(index), name_of(a), name_of(b)
    record = UnionMarks.legal(chain.device, *types, operator, few=has_few_places, work_group=work_group, span=span)
    marking, tiles = chain.build(record)
    return (marking, tiles), chain.build(UnionWrite.of(tiles))[0]


def _enqueue_cuts(
    chain: Chain,
    parts: tuple[cl_array.Array, ...],
    indptr: cl_array.Array,
    sizes: tuple[int, int, int],
    cuts: Any,
    starts: cl_array.Array,
) -> None:
    """Enqueue the kernel that cuts two matrices' places (rows and entries) into tiles.

    ``sizes`` are the number of places, the places of a tile, and the number of tiles.
    """
    _, a_indices, a_indptr, _, b_indices, b_indptr = parts
    index = a_indptr.dtype
    built, record = chain.build(UnionCuts(min(64, chain.device.max_work_group), name_of(index)))
    if sizes[2]:
        groups = -(-(sizes[2] + 1) // record.work_group)
        numbers = index.type(indptr.size - 1), *map(np.uint64, sizes)
        chain.launch(built, groups, *numbers, a_indptr, a_indices, b_indptr, b_indices, cuts, starts, indptr)


def _scan_counts(chain: Chain, counts: cl_array.Array, n_tiles: int) -> int:
    """Scan in place the tiles' counts of nonzero results, which follow the 0 in ``counts[0]``; wait for the sum and return it."""
    if n_tiles > 1:
        enqueue_scan(chain, counts, counts, n_tiles + 1, kind="inclusive")
    return int(chain.read(counts, 1, n_tiles)[0]) if n_tiles else 0


def _allocate_entries(
    chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, nnz: int
) -> tuple[cl_array.Array, cl_array.Array]:
    """Allocate the values and the column indices of an elementwise operator's result, which has ``nnz`` entries."""
    data, allocator = parts[0], parts[0].allocator
    result = OPERATORS[operator].result_dtype(_common_dtype(data.dtype, parts[3].dtype)[0])
    values, indices = allocate_each(chain.queue, "the entries of the result", ((nnz, result), (nnz, parts[1].dtype)), allocator)
    return values, indices


@functools.lru_cache(maxsize=256)
def _common_dtype(a: np.dtype[Any], b: np.dtype[Any]) -> tuple[np.dtype[Any], bool]:
    """Return the dtype in which an elementwise operator on two dtypes is computed, and whether it needs double precision."""
    dtype = np.result_type(a, b)
    return dtype, needs_fp64(dtype)


def _combine_in_one_launch(operator: str, A: Matrix, B: Matrix) -> Parts | None:
    """Return the arrays of an operator's result on two small matrices, by one launch; None if matrices or device do not fit it.

    Both must be known as canonical, of one index dtype, and not both empty; work-groups must have more than one work-item. Waits
    for the device once.

    Parameters
    ----------
    operator : str
        A name in `OPERATORS`.
    A, B : Matrix
        Of one shape, in one context.
    """
    a, b, n_rows = A.structure, B.structure, A.shape[0]
    of_a, of_b, a_indices, b_indices, a_indptr, b_indptr = a.facts, b.facts, a.indices, b.indices, a.indptr, b.indptr
    n_a, n_b = a_indices.size, b_indices.size
    room = n_a + n_b
    if not (room and n_rows):
        return None
    if of_a is None or of_b is None or not (of_a.canonical and of_b.canonical) or a_indptr.dtype != b_indptr.dtype:
        return None
    a_data, b_data, queue, index = A.data, B.data, a.queue, a_indptr.dtype
    if a_data.size != n_a or b_data.size != n_b:
        return None
    operands = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
    chain = Chain(queue, *operands)
    limits = Thresholds.of(chain.device)
    if room + n_rows >= limits.single_group * limits.single_span:
        return None
    key = operator, index, a_data.dtype, b_data.dtype, limits.single_group, limits.single_span
    kernel = chain.worked_out(key, lambda: _build_single_launch(chain, *key))
    if kernel is None or room + n_rows > kernel[1]:
        return None
    note_asked(kernel[:1])
    sizes_and_dtypes = (n_rows + 1, index), (room, index), (room, kernel[2])
    indptr, indices, data = allocate_each(queue, "the result", sizes_and_dtypes, a_data.allocator)
    sizes = np.uint32(n_rows), np.uint32(n_a), np.uint32(n_b)
    chain.launch(kernel[0], 1, *sizes, *operands, indptr, indices, data)
    nnz = int(chain.read(indptr, 1, n_rows)[0])
    shorten(indices, nnz)
    shorten(data, nnz)
    return data, indices, indptr


def _build_single_launch(
    chain: Chain, operator: str, index: np.dtype[Any], a: np.dtype[Any], b: np.dtype[Any], work_group: int, span: int
) -> tuple[Built, int, np.dtype[Any]] | None:
    """Return the kernel that combines two small matrices, the most rows and entries that it takes, and the dtype of its results.

    None on plain devices, whose work-groups have one work-item, and if the device lacks the double precision that is needed.
    """
    dtype, with_fp64 = _common_dtype(a, b)
    if chain.device.is_plain or (with_fp64 and not chain.device.fp64):
        return None
    types = name_of(index), name_of(a), name_of(b), operator
    built, record = chain.build(UnionAtOnce.legal(chain.device, *types, work_group=work_group, span=span))
    return built, record.step, OPERATORS[operator].result_dtype(dtype)
