"""Cases of radix sort: every kernel of its own with every index type, size of a value and work-group size, in rotation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from primitive_cases import room, to_device
from values import INDEX_TYPES, numbers, same

import clsparse_py
from clsparse_py import primitives
from clsparse_py._primitives import reference
from clsparse_py._primitives.radix_sort import Shape, enqueue_sort_by_key
from clsparse_py._run.launch import Chain

Case = partial[None]

#: Few digits, so that there are several passes, and few entries to a work-item, so that there are several tiles.
SHAPES = [
    *(Shape(False, group, 3, 4, 0, counts) for group, counts in ((1, 1 << 22), (7, 0), (48, 1 << 22), (64, 0), (256, 1 << 22))),
    *(Shape(True, group, 1, 4, 5) for group in (1, 7)),
]
MATRICES = ((40, 30, 300), (300, 5, 200), (6, 700, 150), (1, 1, 1), (50, 60, 0))


def sort_by_column(shape: Shape, size: tuple[int, int, int], index: type[Any], dtype: np.dtype[Any], rows: bool) -> None:
    """Transpose a matrix by sorting its entries by column, and compare."""
    m, n, nnz = size
    rng = np.random.default_rng(nnz)
    matrix = scipy.sparse.coo_array((np.ones(nnz), (rng.integers(0, m, nnz), rng.integers(0, n, nnz))), shape=(m, n)).tocsr()
    count = matrix.nnz
    values, expected = numbers(count, dtype), matrix.T.tocsr()
    order = np.lexsort((np.repeat(np.arange(m), np.diff(matrix.indptr)), matrix.indices))
    items, moved, pointers = room(count, index), room(count, dtype), room(n + 1, index)
    columns, given = to_device(matrix.indices.astype(index)), to_device(values)
    of_rows = to_device(np.repeat(np.arange(m), np.diff(matrix.indptr)).astype(index))
    source = {"indptr": to_device(matrix.indptr.astype(index))} if rows else {"items": of_rows}
    chain = Chain(clsparse_py.default_queue(), columns, given, *source.values())
    enqueue_sort_by_key(
        chain, columns, count, n, n_items=m, sorted_items=items, values=given, sorted_values=moved, pointers=pointers,
        shape=shape, **source,
    )  # fmt: skip
    chain.finish(items, moved, pointers)
    same(pointers.get(), expected.indptr.astype(index))
    same(items.get()[:count], expected.indices.astype(index))
    same(moved.get()[:count], values[order])


def sort_keys(dtype: type[Any], n: int, bits: tuple[int, int]) -> None:
    """Sort keys, and values with them, and compare."""
    rng, limits = np.random.default_rng(n), np.iinfo(dtype)
    keys, values = rng.integers(limits.min, limits.max, n, dtype, endpoint=True), np.arange(n, dtype=np.uint16)
    result = primitives.radix_sort(to_device(keys)[:n], to_device(values)[:n], bits=bits)
    for array, expected in zip(result, reference.radix_sort(keys, values, bits=bits), strict=True):
        same(array.get(), expected)


def radix_cases(dtypes: tuple[np.dtype[Any], ...], *, simulated: bool) -> Iterator[Case]:
    """Every shape of the sort, with the other axes in rotation."""
    matrices, indices = itertools.cycle(MATRICES), itertools.cycle(INDEX_TYPES)
    values, sources = itertools.cycle(dtypes), itertools.cycle((True, False, True))
    for shape in SHAPES * 2:
        yield partial(sort_by_column, shape, next(matrices), next(indices), next(values), next(sources))
    # A pass of ten bits takes a simulator longest.
    windows = (20, 32), (20, 28 if simulated else 30), (31, 32), (60, 64)
    for dtype, bits in zip((np.int32, np.uint64, np.uint32, np.int64), windows, strict=True):
        yield partial(sort_keys, dtype, 300 if simulated else 5000, bits)
