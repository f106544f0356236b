"""Cases of SpTRANS and of canonical format: every kernel with every dtype, work-group size and index type, in rotation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from primitive_cases import TYPES, chain_on, room, to_device
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import csr_array, transpose, transpose_plan
from clsparse_py._formats import canonical, coordinates
from clsparse_py._formats.dense_entries import entries_of
from clsparse_py._operations.transpose.bucket_chunks import Nearness, enqueue_bucket_chunks, enqueue_nearness
from clsparse_py._operations.transpose.buckets import Shape, enqueue_buckets
from clsparse_py._operations.transpose.kernels import AtOnce, Transposition
from clsparse_py._operations.transpose.methods import METHODS, NotSymmetricError
from clsparse_py._primitives.permute import enqueue_add_at, enqueue_invert, enqueue_number, enqueue_permute, enqueue_permute_two

Array = np.ndarray[Any, Any]
Case = partial[None]


def pattern(lengths: tuple[int, ...], n_cols: int, *, symmetric: bool = False) -> scipy.sparse.csr_array:
    """Return a pattern: symmetric and canonical, or with rows that are not sorted and hold duplicates."""
    rng = np.random.default_rng(len(lengths))
    indptr = np.cumsum((0, *lengths))
    indices = rng.integers(0, max(n_cols, 1), indptr[-1])
    result = scipy.sparse.csr_array((np.ones(indices.size), indices, indptr), shape=(len(lengths), n_cols))
    if symmetric:
        result = scipy.sparse.csr_array(result + result.T)
        result.sum_duplicates()
    return result


#: Empty rows and columns, and a row and a column that many parts share.
RAGGED = pattern((0, 3, 1, 0, 0, 40, 2, 9, 17, 1, 90, 0, 5, 0), 23)
#: The transposed has rows too long to be put in order by comparing each entry with each.
LONG = pattern((280, 0, 270), 2)
#: As many as few work-items compare, each with each, before llvmpipe leaves their loops (quirk 40).
LONGISH = pattern((190, 0, 180), 2)
MIRRORED = pattern((0, 3, 1, 0, 0, 30, 2, 9, 17, 1, 0, 5, 0, *([2] * 17)), 30, symmetric=True)


def on_device(matrix: scipy.sparse.csr_array, values: Array, index: type[Any]) -> csr_array:
    """Return a matrix with these values, whose index type is ``index``. The kernel that checks structures has its own cases."""
    parts = values, matrix.indices.astype(index), matrix.indptr.astype(index)
    return csr_array(tuple(to_device(part) for part in parts), shape=matrix.shape, check=False)


def transposed(
    matrix: scipy.sparse.csr_array,
    method: str,
    dtype: np.dtype[Any],
    index: type[Any],
    device_type: str,
    options: dict[str, Any],
) -> None:
    """Transpose values and positions by a method, and compare."""
    values = numbers(matrix.nnz, dtype)
    wanted = scipy.sparse.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr()
    A = on_device(matrix, values, index)
    for valued in (True, False):
        moved = room(A.nnz, dtype if valued else index)
        chain = chain_on(device_type, A.data, A.indices, A.indptr)
        result = METHODS[method](chain, A, valued, moved, **options)
        chain.finish(moved)
        same(moved.get(), values[wanted.data] if valued else wanted.data.astype(index))
        same(result.indices.get(), wanted.indices.astype(index))
        same(result.indptr.get(), wanted.indptr.astype(index))


def in_buckets(dtype: np.dtype[Any], index: type[Any], group: int) -> None:
    """Transpose by buckets, values in two steps and positions in one, and compare."""
    cases = [(RAGGED, Shape(group, 4, group, 4, 3), True), (LONG, Shape(group, 4, group, 4, 1), False)]
    if group >= 8:
        cases.append((RAGGED, Shape(group, 4, group, 4, 3, small=True), True))
    for matrix, shape, moves_values in cases:
        values = numbers(matrix.nnz, dtype)
        wanted = scipy.sparse.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr()
        A = on_device(matrix, values, index)
        moved = room(A.nnz, dtype if moves_values else index)
        indptr, indices = room(A.shape[1] + 1, index), room(A.nnz, index)
        chain = chain_on("gpu", A.data, A.indices, A.indptr)
        given = A.data if moves_values else None
        enqueue_buckets(chain, Transposition(A.indptr, A.indices, given, indptr, indices, moved, A.shape, A.nnz), shape)
        chain.finish(moved, indptr, indices)
        same(moved.get(), values[wanted.data] if moves_values else wanted.data.astype(index))
        same(indices.get(), wanted.indices.astype(index))
        same(indptr.get(), wanted.indptr.astype(index))


def in_bucket_chunks(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Transpose values and positions by buckets as CPU devices do, look at a sample, and compare."""
    for matrix, bits in ((RAGGED, 2), (LONGISH, 1)):
        values = numbers(matrix.nnz, dtype)
        wanted = scipy.sparse.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr()
        A = on_device(matrix, values, index)
        for given, moved in ((A.data, room(A.nnz, dtype)), (None, room(A.nnz, index))):
            indptr, indices, result = room(A.shape[1] + 1, index), room(A.nnz, index), room(1, np.uint32)
            chain = chain_on("cpu", A.data, A.indices, A.indptr)
            enqueue_bucket_chunks(chain, Transposition(A.indptr, A.indices, given, indptr, indices, moved, A.shape, A.nnz), bits)
            enqueue_nearness(chain, A.indices, result, A.nnz)
            chain.finish(moved, indptr, indices, result)
            same(moved.get(), wanted.data.astype(index) if given is None else values[wanted.data])
            same(indices.get(), wanted.indices.astype(index))
            same(indptr.get(), wanted.indptr.astype(index))
            # All columns are near one another if there are two.
            assert result.get()[0] == Nearness.SAMPLES or matrix is RAGGED


def at_once(dtype: np.dtype[Any], index: type[Any], group: int) -> None:
    """Transpose by one work-group of several work-items, values and positions, and compare."""
    for matrix in (RAGGED, LONGISH):
        values = numbers(matrix.nnz, dtype)
        wanted = scipy.sparse.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr()
        A = on_device(matrix, values, index)
        for given, moved in ((A.data, room(A.nnz, dtype)), (None, room(A.nnz, index))):
            indptr, indices = room(A.shape[1] + 1, index), room(A.nnz, index)
            chain = chain_on("gpu", A.data, A.indices, A.indptr)
            value_bytes = 0 if given is None else dtype.itemsize
            built, _ = chain.build(AtOnce.legal(chain.device, np.dtype(index).name, value_bytes, group, 600))
            sizes = (np.uint32(size) for size in (*A.shape, A.nnz))
            chain.launch(built, 1, *sizes, A.indptr, A.indices, *([] if given is None else [given]), indptr, indices, moved)
            chain.finish(moved, indptr, indices)
            same(moved.get(), wanted.data.astype(index) if given is None else values[wanted.data])
            same(indices.get(), wanted.indices.astype(index))
            same(indptr.get(), wanted.indptr.astype(index))


def expect_refusal(index: type[Any], device_type: str) -> None:
    """Expect the gather to find that one entry has no mirror image, whether the sample has it or not."""
    for at in range(0, MIRRORED.nnz, 40):
        rows, cols = MIRRORED.tocoo().coords
        if rows[at] == cols[at]:
            continue
        kept = np.arange(MIRRORED.nnz) != at
        part = scipy.sparse.csr_array((np.ones(kept.sum()), (rows[kept], cols[kept])), shape=MIRRORED.shape)
        A = on_device(part, np.ones(part.nnz, np.float32), index)
        try:
            METHODS["gather"](chain_on(device_type, A.data), A, True, room(A.nnz, np.float32))
        except NotSymmetricError:
            continue
        raise AssertionError("was not refused")


def permute(dtype: np.dtype[Any], index: type[Any], work_group: int, device_type: str) -> None:
    """Permute values that begin inside their buffers, number them, invert the permutation, add at positions, and compare."""
    n, positions = 300, np.random.default_rng(3).permutation(300).astype(index)
    values = numbers(n + 5, dtype)
    of, source, out = to_device(positions), to_device(values)[5:], room(n, dtype)
    chain = chain_on(device_type, of, source)
    enqueue_permute(chain, of, source, out, n, work_group)
    chain.finish(out)
    same(out.get(), values[5:][positions])
    two = to_device(values[:100]), to_device(values[90:])[10:]
    chain = chain_on(device_type, of, *two, out)
    enqueue_permute_two(chain, of, *two, out, work_group)
    numbered, places = room(n, np.dtype(index)), room(n, np.dtype(index))
    enqueue_number(chain, numbered, 7, work_group)
    enqueue_invert(chain, of, places, work_group)
    chain.finish(out, numbered, places)
    same(out.get(), values[positions])
    same(numbered.get(), np.arange(7, 7 + n).astype(index))
    same(places.get(), np.argsort(positions).astype(index))
    added = to_device(numbers(n, dtype))
    wanted = added.get()
    wanted[positions[:200]] += values[5:205]
    values = to_device(values[5:])
    chain = chain_on(device_type, of, values, added)
    enqueue_add_at(chain, of, values, added, 200, work_group)
    chain.finish(added)
    same(added.get(), wanted)


def whole(matrix: scipy.sparse.csr_array, dtype: np.dtype[Any]) -> None:
    """Transpose by the method that the rule chooses, once and by a plan, multiply from the left, and compare."""
    values = numbers(matrix.nnz, dtype)
    A = on_device(matrix, values, np.int32)
    wanted = scipy.sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr()
    for result in (transpose(A), transpose_plan(A)(values), A.T.tocsr()):
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(result, name).get(), getattr(wanted, name))
    x = numbers(matrix.shape[0], dtype)
    if dtype.kind != "b":
        same(x @ A, x @ wanted.T)


def add_up(dtype: np.dtype[Any], index: type[Any], work_group: int) -> None:
    """Add duplicates up and leave zeros out, of sorted rows, and compare."""
    queue = clsparse_py.default_queue()
    wanted = scipy.sparse.csr_array((numbers(RAGGED.nnz, dtype), RAGGED.indices, RAGGED.indptr), shape=RAGGED.shape, copy=True)
    wanted.sort_indices()
    A = on_device(wanted, wanted.data, index)
    wanted = wanted.copy()
    wanted.sum_duplicates()
    parts = canonical.without_duplicates(queue, (A.data, A.indices, A.indptr), work_group)
    equal(parts, wanted)
    wanted.eliminate_zeros()
    equal(canonical.without_zeros(queue, parts, work_group), wanted)


def in_order(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Sort rows, and sort coordinates and add them up, and compare."""
    queue = clsparse_py.default_queue()
    rows = np.repeat(np.arange(RAGGED.shape[0]), np.diff(RAGGED.indptr))
    values, order = numbers(RAGGED.nnz, dtype), np.lexsort((np.arange(RAGGED.nnz), RAGGED.indices, rows))
    A = on_device(RAGGED, values, index)
    wanted = scipy.sparse.csr_array((values[order], RAGGED.indices[order], RAGGED.indptr), shape=RAGGED.shape)
    equal(canonical.with_sorted_rows(queue, (A.data, A.indices, A.indptr)), wanted)
    order = np.random.default_rng(4).permutation(rows.size)
    numbered = rows[order].astype(np.int16), RAGGED.indices[order].astype(index)
    pairs = {"row": numbered[0], "col": numbered[1]}
    made, _ = coordinates.from_coordinates(queue, values[order], pairs, RAGGED.shape, dtype)
    wanted = scipy.sparse.coo_array((values[order], numbered), shape=RAGGED.shape).tocsr()
    equal(made, wanted)
    # Sorted by row already.
    pairs = {"row": rows.astype(index), "col": RAGGED.indices.astype(index)}
    made, _ = coordinates.from_coordinates(queue, values, pairs, RAGGED.shape, dtype)
    equal(made, scipy.sparse.coo_array((values, (rows, RAGGED.indices)), shape=RAGGED.shape).tocsr())
    places = rows * RAGGED.shape[1] + RAGGED.indices
    result = coordinates.regroup(queue, to_device(rows.astype(index)), A.indices, (RAGGED.shape[1], 1), 7, np.dtype(np.int64))
    for part, numbers_of in zip(result, np.divmod(places.astype(np.int64), 7), strict=True):
        same(part, numbers_of)
    dense = numbers((5, 9), dtype)
    equal(entries_of(queue, to_device(dense)), scipy.sparse.csr_array(dense))
    equal(entries_of(queue, to_device(dense)[::-2, 1:]), scipy.sparse.csr_array(dense[::-2, 1:]))


def equal(result: tuple[Any, ...], wanted: scipy.sparse.csr_array) -> None:
    """Raise where the arrays of two matrices differ."""
    for part, name in zip(result, ("data", "indices", "indptr"), strict=True):
        np.testing.assert_array_equal(part.get(), getattr(wanted, name))


def transpose_cases(dtypes: tuple[np.dtype[Any], ...], work_groups: tuple[int, ...], *, simulated: bool) -> Iterator[Case]:
    """Every kernel of SpTRANS and of canonical format; sorts, which have cases of their own, once where they are simulated."""
    kinds = itertools.product((("gather", MIRRORED), ("atomics", RAGGED), ("atomics", LONG)), TYPES)
    for k, ((method, matrix), device_type) in enumerate(kinds):
        for i, dtype in enumerate(dtypes[:1] if simulated and matrix is LONG else dtypes):
            # A GPU's work-groups are many: of one work-item each they take ten times as long to simulate.
            sizes = [work_group for work_group in work_groups if work_group > 1 or not simulated or device_type == "cpu"]
            options = {"work_group": sizes[(i + k) % len(sizes)]}
            yield partial(transposed, matrix, method, dtype, INDEX_TYPES[(i + k) % 2], device_type, options)
    for i, dtype in enumerate(dtypes):
        index, work_group = INDEX_TYPES[i % 2], work_groups[i % len(work_groups)]
        yield partial(permute, dtype, index, work_group, TYPES[i // 2 % 2])
        yield partial(add_up, dtype, INDEX_TYPES[1 - i % 2], work_group)
        if i < 2 or not simulated:
            yield partial(transposed, RAGGED, "binned", dtype, index, TYPES[i % 2], {})
            yield partial(whole, (MIRRORED, RAGGED)[i % 2], dtype)
        if i < 2 or not simulated:
            yield partial(at_once, dtype, index, max(work_group, 2))
            yield partial(in_bucket_chunks, dtype, index)
            yield partial(in_buckets, dtype, index, max(work_group, 8) if simulated else work_group)
        if i < 1 or not simulated:
            yield partial(in_order, dtype, index)
    for index, device_type in zip(INDEX_TYPES, TYPES, strict=True):
        yield partial(expect_refusal, index, device_type)
