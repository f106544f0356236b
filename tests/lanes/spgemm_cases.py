"""Cases of SpGEMM: every method, with dtypes and index types in rotation, on rows short and long."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from transpose_cases import on_device
from values import INDEX_TYPES, numbers, same

from clsparse_py.spgemm import METHODS, spgemm, spgemm_plan

Case = partial[None]


def random_rows(lengths: tuple[int, ...], n_cols: int) -> scipy.sparse.csr_array:
    """Return a pattern with rows of these lengths, sorted and without duplicates."""
    rng = np.random.default_rng(len(lengths))
    columns = [np.sort(rng.choice(n_cols, length, replace=False)) for length in lengths]
    indices = np.concatenate(columns)
    return scipy.sparse.csr_array((np.ones(indices.size), indices, np.cumsum((0, *lengths))), shape=(len(lengths), n_cols))


LEFT = random_rows((0, 1, 2, 3, 5, 0, 9, 20, 1, 4, 30, 2), 40)
RIGHT = random_rows(tuple(range(10)) * 4, 60)


def product(method: str, dtype: np.dtype[Any], index: type[Any], deterministic: bool) -> None:
    """Make a product by a method, plan it and make it again, and compare."""
    a, b = numbers(LEFT.nnz, dtype), numbers(RIGHT.nnz, dtype)
    pattern = scipy.sparse.csr_array(LEFT @ RIGHT)
    pattern.sort_indices()
    left, right = (each.copy() for each in (LEFT, RIGHT))
    left, right = left.astype(dtype), right.astype(dtype)
    left.data, right.data = a, b
    wanted = left.toarray() @ right.toarray() if dtype.kind != "b" else (left.toarray() @ right.toarray()) > 0
    A, B = on_device(LEFT, a, index), on_device(RIGHT, b, index)
    for C in (
        spgemm(A, B, method=method, deterministic=deterministic),
        spgemm_plan(A, B, method=method, deterministic=deterministic)(),
    ):
        same(C.indptr.get(), pattern.indptr.astype(C.indptr.dtype))
        same(C.indices.get(), pattern.indices.astype(C.indices.dtype))
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        same(C.data.get(), wanted[rows, pattern.indices].astype(C.dtype))


def spgemm_cases(dtypes: tuple[np.dtype[Any], ...]) -> list[Case]:
    """Return the cases: each method twice, the second time without the promise of deterministic results."""
    dtype, index = itertools.cycle(dtypes), itertools.cycle(INDEX_TYPES)
    return [
        partial(product, method, next(dtype), next(index), deterministic)
        for deterministic in (True, False)
        for method in ("auto", *METHODS)
    ]
