"""Products to make, and what they must be: SciPy's product of the patterns, and values in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse as sp
from oracle import addition, multiply

from clsparse_py import csr_array
from clsparse_py._precision.semiring import Semiring, plus_times

__all__ = ["assert_product", "device_matrix", "pattern_product", "random_matrix", "rows_of"]


def rows_of(lengths: Any, n_cols: int, rng: np.random.Generator, dtype: Any = np.float64) -> sp.csr_array:
    """Return a matrix with rows of these lengths, columns drawn without repetition, and values that are small whole numbers."""
    lengths = np.asarray(lengths)
    columns = [np.sort(rng.choice(n_cols, length, replace=False)) for length in lengths]
    indices = np.concatenate([*columns, np.empty(0, np.int64)]).astype(np.int32)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    values = rng.integers(1, 5, indices.size).astype(dtype)
    return sp.csr_array((values, indices, indptr), shape=(lengths.size, n_cols))


def random_matrix(shape: tuple[int, int], mean: float, rng: np.random.Generator, dtype: Any = np.float64) -> sp.csr_array:
    """Return a matrix with so many entries a row on average, some rows empty."""
    return rows_of(np.minimum(rng.poisson(mean, shape[0]), shape[1]), shape[1], rng, dtype)


def device_matrix(queue: cl.CommandQueue, matrix: sp.csr_array, index: Any = np.int32) -> csr_array:
    """Return a matrix on a device with indices of a dtype."""
    parts = (cl.array.to_device(queue, part) for part in (matrix.indices.astype(index), matrix.indptr.astype(index)))
    return csr_array((cl.array.to_device(queue, matrix.data), *parts), shape=matrix.shape)


def pattern_product(A: sp.csr_array, B: sp.csr_array) -> sp.csr_array:
    """Return the structure of A @ B: entries whose products cancel stay."""
    ones = (sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape) for matrix in (A, B))
    left, right = ones
    result = sp.csr_array(left @ right)
    result.sort_indices()
    return result


def assert_product(C: csr_array, A: sp.csr_array, B: sp.csr_array, semiring: Semiring = plus_times) -> None:
    """Assert that C is A @ B: the structure exactly, values to rounding."""
    result, structure = C.get(), pattern_product(A, B)
    assert C.shape == structure.shape
    np.testing.assert_array_equal(result.indptr, structure.indptr)
    np.testing.assert_array_equal(result.indices, structure.indices)
    dtype = semiring.result_dtype(A.dtype, B.dtype)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.data, _values(A, B, structure, semiring, dtype), rtol=_tolerance(dtype), atol=1e-12)


def _tolerance(dtype: np.dtype[Any]) -> float:
    return 0 if dtype.kind in "biu" else 1e3 * float(np.finfo(dtype).eps)


def _values(A: sp.csr_array, B: sp.csr_array, structure: sp.csr_array, semiring: Semiring, dtype: np.dtype[Any]) -> Any:
    """Return the values of A @ B by brute force over the products, in a wide dtype."""
    wide = {"f": np.dtype(np.longdouble), "c": np.dtype(np.clongdouble), "b": np.dtype(bool)}.get(dtype.kind, dtype)
    lengths = np.diff(B.indptr)[A.indices]
    row = np.repeat(np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), lengths)
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(B.indptr[A.indices], lengths)
    column = B.indices[place]
    a, b = np.repeat(A.data, lengths).astype(wide), B.data[place].astype(wide)
    products = multiply(semiring, a, b, wide)
    key = row.astype(np.int64) * structure.shape[1] + column
    rows = np.repeat(np.arange(structure.shape[0]), np.diff(structure.indptr))
    wanted = np.full(structure.nnz, semiring.identity(dtype), wide)
    addition(semiring, wide).at(wanted, np.searchsorted(rows * structure.shape[1] + structure.indices, key), products)
    return wanted.astype(dtype)
