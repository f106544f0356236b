"""Cases of the kernels that make arrays from others: Kronecker products, blocks, diagonals and triangles."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from elementwise_cases import canonical
from transpose_cases import RAGGED, on_device
from values import INDEX_TYPES, numbers, same

import clsparse_py

Case = partial[None]


def of_scipy(matrix: scipy.sparse.csr_array, dtype: np.dtype[Any]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((numbers(matrix.nnz, dtype), matrix.indices, matrix.indptr), shape=matrix.shape)


def kronecker(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Multiply two matrices, one of them with empty rows at both ends, by rows and by coordinates, and compare."""
    few = canonical(1)[:8, :9]
    for first, second in ((canonical(2), few), (few, canonical(2))):
        A, B = (on_device(matrix, numbers(matrix.nnz, dtype), index) for matrix in (first, second))
        wanted = scipy.sparse.kron(of_scipy(first, dtype), of_scipy(second, dtype), format="csr")
        for form in ("csr", "coo"):
            result = clsparse_py.kron(A, B, format=form).get().tocsr()
            same(result.indptr, wanted.indptr.astype(result.indptr.dtype))
            same(result.indices, wanted.indices.astype(result.indices.dtype))
            same(result.data, wanted.data)


def blocks(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Put matrices into a grid, and compare."""
    A = on_device(RAGGED, numbers(RAGGED.nnz, dtype), index)
    host = of_scipy(RAGGED, dtype)
    grid = [[A, None, A], [None, A, None], [A, A, A]]
    wanted = scipy.sparse.block_array([[host, None, host], [None, host, None], [host, host, host]], format="csr")
    same(clsparse_py.block_array(grid, format="csr").toarray(), wanted.toarray())


def diagonals(dtype: np.dtype[Any]) -> None:
    """Make a matrix of diagonals, and compare."""
    given, offsets = [numbers(30, dtype), numbers(1, dtype) + dtype.type(1), numbers(30, dtype)], [3, -1, -20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        wanted = scipy.sparse.diags_array(given, offsets=offsets, shape=(25, 30), dtype=dtype)
    same(clsparse_py.diags_array(given, offsets=offsets, shape=(25, 30), dtype=dtype).toarray(), wanted.toarray())


def triangles(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Take both triangles of a matrix that is unsorted, and compare."""
    A, host = on_device(RAGGED, numbers(RAGGED.nnz, dtype), index), of_scipy(RAGGED, dtype)
    same(clsparse_py.tril(A, -1, format="csr").toarray(), scipy.sparse.tril(host, -1).toarray())
    same(clsparse_py.triu(A, 2, format="csr").toarray(), scipy.sparse.triu(host, 2).toarray())


def construct_cases(dtypes: tuple[np.dtype[Any], ...]) -> Iterator[Case]:
    """Every kernel, with each dtype in turn."""
    for i, dtype in enumerate(dtypes):
        index = INDEX_TYPES[i % 2]
        yield partial(kronecker, dtype, index)
        yield partial(blocks, dtype, index)
        yield partial(diagonals, dtype)
        yield partial(triangles, dtype, index)
