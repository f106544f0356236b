"""Element-wise operations on the union of two patterns; zero results are dropped."""

from __future__ import annotations

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
from clsparse_py._memory.memory import allocate, allocate_each, array_of, scratch
from clsparse_py._memory.pool import arena_of
from clsparse_py._operations.elementwise.operators import OPERATORS
from clsparse_py._operations.elementwise.single_launch import combine_in_one_launch, common_dtype
from clsparse_py._operations.elementwise.thresholds import Thresholds
from clsparse_py._operations.elementwise.union_kernels import Union, UnionCuts, UnionMarks, UnionWrite
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run.launch import Chain

__all__ = ["canonical_of", "canonical_parts", "combine"]
#: Least places to a work-item of a CPU.
_LEAST_SPAN = 11
#: Work-items to a core: enough that rows of any length balance.
_ITEMS_PER_CORE = 16


def combine(operator: str, A: MatrixT, B: Matrix) -> MatrixT:
    """Return the matrix of an operator's results on two matrices, in canonical format; it has no entry that is 0.

    Waits for the device once, to learn how many entries there are.

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
    small = combine_in_one_launch(operator, A, B)
    if small is not None:
        data, indices, indptr = small
        return A.assembled(Structure.canonical(queue, A.shape, indices, indptr), data)
    dtype, with_fp64 = common_dtype(A.data.dtype, B.data.dtype)
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
    data, indices, _ = _compute(chain, parts, operator, indptr)
    return A.assembled(Structure.canonical(queue, shape, indices, indptr), data)


def canonical_parts(A: Matrix, dtype: np.dtype[Any]) -> Parts:
    """Return the parts of a matrix in canonical format: its own if it is in that format.

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
    """Return a matrix in canonical format, as `canonical_parts` makes it; itself if it is in that format."""
    if A.has_canonical_format:
        return A
    data, indices, indptr = canonical_parts(A, dtype)
    return A.assembled(Structure.canonical(A.queue, A.structure.shape, indices, indptr), data)


def _compute(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, indptr: cl_array.Array) -> Parts:
    """Return the parts of the result, with its indptr."""
    return (_by_chunks if chain.device.lanes_are_loops else _by_tiles)(chain, parts, operator, indptr)


def _by_chunks(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, indptr: cl_array.Array) -> Parts:
    """Return the parts of the result, of which each work-item makes a long stretch."""
    a_data, a_indices, a_indptr, b_data, b_indices, b_indptr = parts
    types = name_of(a_indptr.dtype), name_of(a_data.dtype), name_of(b_data.dtype), operator
    (count, _), (fill, _) = chain.build(Union(1, *types, "count")), chain.build(Union(1, *types, "fill"))
    n_places, index = indptr.size - 1 + a_indices.size + b_indices.size, a_indptr.dtype
    # Places that a work-item takes.
    step = max(-(-n_places // (chain.device.compute_units * _ITEMS_PER_CORE)), _LEAST_SPAN)
    n_tiles = -(-n_places // step)
    cuts, starts = chain.scratch(3 * (n_tiles + 1), index), chain.scratch(n_tiles + 1, index)
    _enqueue_cuts(chain, parts, indptr, (n_places, step, n_tiles), cuts, starts)
    operands = cuts, a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
    chain.launch(count, n_tiles, *operands, starts)
    data, indices = _allocate(chain, parts, operator, _scan(chain, starts, n_tiles))
    chain.launch(fill, n_tiles, *operands, starts, indptr, indices, data)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def _by_tiles(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, indptr: cl_array.Array) -> Parts:
    """Return the parts of the result, of which each work-group makes a tile."""
    a_data, a_indices, a_indptr, b_data, b_indices, b_indptr = parts
    index, queue, n_rows = a_indptr.dtype, chain.queue, indptr.size - 1
    n_places = n_rows + a_indices.size + b_indices.size
    # A few tiles cut themselves and add up the results before their own, which saves three launches.
    limits = Thresholds.of(chain.device)
    has_few_places = n_places <= chain.device.compute_units * limits.max_few_places
    kind = operator, index, a_data.dtype, b_data.dtype, has_few_places, limits.tile_group, limits.tile_span
    (marking, tiles), writing = chain.worked_out(kind, lambda: _tile_kernels(chain, *kind))
    note_asked((marking, writing))
    n_tiles = -(-n_places // tiles.step)
    n_bytes = index.itemsize * (n_tiles + 1)
    with scratch(queue, (3 * n_bytes, n_bytes, 12 * tiles.work_group * max(n_tiles, 1))) as (cuts, counts, marks):
        starts = array_of(queue, n_tiles + 1, index, counts, None, arena_of(queue).pool.context)
        matrices = a_indptr, a_indices, a_data, b_indptr, b_indices, b_data
        if has_few_places:
            chain.launch(marking, n_tiles, index.type(n_rows), np.uint64(n_places), cuts, indptr, *matrices, marks, counts)
            # The ufunc itself: the method takes twice as long to begin.
            nnz = int(np.add.reduce(chain.read(starts, n_tiles, 1)))
        else:
            _enqueue_cuts(chain, parts, indptr, (n_places, tiles.step, n_tiles), cuts, starts)
            chain.launch(marking, n_tiles, cuts, *matrices, marks, counts)
            nnz = _scan(chain, starts, n_tiles)
        data, indices = _allocate(chain, parts, operator, nnz)
        chain.launch(writing, n_tiles, cuts, marks, counts, a_indices, a_data, b_indices, b_data, indptr, indices, data)
    chain.finish(data, indices, indptr)
    return data, indices, indptr


def _tile_kernels(
    chain: Chain,
    operator: str,
    index: np.dtype[Any],
    a: np.dtype[Any],
    b: np.dtype[Any],
    has_few_places: bool,
    work_group: int,
    span: int,
) -> tuple[tuple[Built, UnionMarks], Built]:
    """Return the kernels of `_by_tiles`, and the record of the first."""
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
    """Enqueue the cutting of places into tiles; ``sizes``: how many places, places of a tile, and tiles there are."""
    _, a_indices, a_indptr, _, b_indices, b_indptr = parts
    index = a_indptr.dtype
    built, record = chain.build(UnionCuts(min(64, chain.device.max_work_group), name_of(index)))
    if sizes[2]:
        groups = -(-(sizes[2] + 1) // record.work_group)
        numbers = index.type(indptr.size - 1), *map(np.uint64, sizes)
        chain.launch(built, groups, *numbers, a_indptr, a_indices, b_indptr, b_indices, cuts, starts, indptr)


def _scan(chain: Chain, counts: cl_array.Array, n_tiles: int) -> int:
    """Return how many results there are; the counts of tiles, behind a zero, become those before each tile."""
    if n_tiles > 1:
        enqueue_scan(chain, counts, counts, n_tiles + 1, kind="inclusive")
    return int(chain.read(counts, 1, n_tiles)[0]) if n_tiles else 0


def _allocate(chain: Chain, parts: tuple[cl_array.Array, ...], operator: str, nnz: int) -> tuple[cl_array.Array, cl_array.Array]:
    """Return memory for the values and the columns of the result."""
    data, allocator = parts[0], parts[0].allocator
    result = OPERATORS[operator].result_dtype(common_dtype(data.dtype, parts[3].dtype)[0])
    values, indices = allocate_each(chain.queue, "the entries of the result", ((nnz, result), (nnz, parts[1].dtype)), allocator)
    return values, indices
