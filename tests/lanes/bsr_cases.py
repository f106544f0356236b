"""Cases of the kernels of matrices of blocks: conversions, products and changes in place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from supposed import describe_as
from transpose_cases import RAGGED
from values import INDEX_TYPES, numbers, same

import clsparse_py

Case = partial[None]


def blocks(dtype: np.dtype[Any], index: type[Any], size: tuple[int, int], device_type: str) -> None:
    """Multiply, convert, transpose and tidy up a matrix whose blocks are unsorted, with duplicates, and compare."""
    data, parts = numbers((RAGGED.nnz, *size), dtype), (RAGGED.indices.astype(index), RAGGED.indptr.astype(index))
    data[::3] = 0
    shape = RAGGED.shape[0] * size[0], RAGGED.shape[1] * size[1]
    host, A = scipy.sparse.bsr_array((data, *parts), shape=shape), clsparse_py.bsr_array((data, *parts), shape=shape)
    x, X = numbers(shape[1], dtype), numbers((shape[1], 5), dtype)
    with describe_as(type=device_type):
        for operand in (x, X, np.asfortranarray(X)):
            same(A @ operand, host @ operand)
        B = A.copy()
        B.sum_duplicates()
        same((B @ B.T).toarray(), (host @ host.T).toarray())
    same(A.tocsr().indices, host.tocsr().indices.astype(index))
    for result in (A.tocsr().tobsr(size), A.sorted_indices(), B):
        same(result.toarray(), host.toarray())
    B.eliminate_zeros()
    same(B.toarray(), host.toarray())


def bsr_cases(dtypes: tuple[np.dtype[Any], ...]) -> Iterator[Case]:
    """Every kernel, with two dtypes: what they are made of is the same for others."""
    for dtype, index, size, device_type in zip(dtypes, INDEX_TYPES, ((2, 3), (3, 3)), ("cpu", "gpu"), strict=False):
        yield partial(blocks, dtype, index, size, device_type)
