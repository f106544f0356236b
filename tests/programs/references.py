"""What the oracle's texts call beside NumPy and SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.sparse import linalg as splinalg

from clsparse_py.semiring import SEMIRINGS
from tests import oracle


def by_semiring(A: Any, x: np.ndarray, name: str) -> np.ndarray:
    """Return a product by brute force, of values as they are stored."""
    found = oracle.expected((A.data, A.indices, A.indptr), x, SEMIRINGS[name])
    return np.asarray(found.values, found.dtype)


def product_from_left(A: Any, x: np.ndarray) -> np.ndarray:
    """Return x @ A, in NumPy's shape where SciPy's differs."""
    return np.asarray(A.T @ x)


def scaled(alpha: Any, product: np.ndarray, beta: Any = 0, y: Any = None) -> np.ndarray:
    """Return alpha times a product plus beta times y, in the product's dtype."""
    dtype = product.dtype.type
    with np.errstate(all="ignore"):
        return dtype(alpha) * product + (dtype(beta) * y if y is not None and beta != 0 else dtype(0))


def with_values(A: Any, data: np.ndarray) -> Any:
    """Return a matrix of other values."""
    return type(A)((data, A.indices, A.indptr), shape=A.shape)


def masked(A: Any, B: Any, M: Any, complement: bool, structural: bool) -> Any:
    """Return the entries of a product that a mask lets through."""
    C, M = (A @ B).tocoo(), M.tocoo()
    C.sum_duplicates()
    there = np.zeros(M.shape, bool)
    if structural:
        there[M.row, M.col] = True
    else:
        there[M.toarray() != 0] = True
    keep = there[C.row, C.col] != complement
    return sp.csr_array((C.data[keep], (C.row[keep], C.col[keep])), shape=C.shape)


def sampled(M: Any, X: np.ndarray, Y: np.ndarray) -> Any:
    """Return the entries of a dense product at a matrix's, times its values."""
    C = M.tocoo()
    return sp.csr_array(((X[C.row] * Y[:, C.col].T).sum(axis=1, dtype=M.dtype), (C.row, C.col)), shape=M.shape)


def assigned(A: Any, change: Any) -> Any:
    """Return a changed copy."""
    B = A.copy()
    changed = change(B)
    return B if changed is None else changed


def solved(A: Any, b: np.ndarray) -> np.ndarray:
    """Return the solution of a system by dense factors."""
    return np.linalg.solve(A.toarray().astype(float), b.astype(float)).astype(np.result_type(A, b))


def triangular(T: Any, b: np.ndarray, unit: bool) -> np.ndarray:
    """Return the solution of a triangular system."""
    wide = T.tocsc().astype(complex)
    if unit:
        wide.setdiag(1)
    found = splinalg.spsolve(wide, b.astype(complex), permc_spec="NATURAL").reshape(b.shape)
    dtype = splinalg.spsolve_triangular(sp.csr_array(np.eye(1, dtype=T.dtype)), np.ones(1, b.dtype)).dtype
    return (found if dtype.kind == "c" else found.real).astype(dtype)


def components(A: Any) -> tuple[int, np.ndarray]:
    """Return how many components there are, and each vertex's."""
    n, labels = csgraph.connected_components(A, directed=False)
    return n, labels


def levels(A: Any, source: int) -> np.ndarray:
    """Return the level of each vertex in a search from one."""
    level = np.full(A.shape[0], -1, np.int32)
    level[source], front, depth = 0, np.array([source]), 0
    while front.size:
        depth += 1
        reached = np.unique(np.concatenate([A.indices[A.indptr[i] : A.indptr[i + 1]] for i in front]))
        front = reached[level[reached] < 0]
        level[front] = depth
    return level


def triangles(A: Any) -> np.ndarray:
    """Return the number of triangles at each vertex."""
    dense = (A.toarray() != 0).astype(np.int64)
    np.fill_diagonal(dense, 0)
    return np.diag(dense @ dense @ dense) // 2


def ranks(A: Any) -> np.ndarray:
    """Return PageRank by dense steps."""
    W = abs(A).toarray().astype(float)
    n = W.shape[0]
    out = W.sum(axis=1)
    x = np.full(n, 1 / n)
    for _ in range(300):
        x = 0.85 * (W.T @ np.where(out > 0, x / np.where(out > 0, out, 1), 0) + x[out == 0].sum() / n) + 0.15 / n
    return x.astype(np.float32)


def exclusive_scan(x: np.ndarray) -> np.ndarray:
    """Return the sums before each number."""
    return np.concatenate((np.zeros(1, x.dtype), np.cumsum(x, dtype=x.dtype)[:-1]))[: x.size]


def inclusive_scan(x: np.ndarray) -> np.ndarray:
    """Return the sums up to each number."""
    return np.cumsum(x, dtype=x.dtype)


def sorted_pairs(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted keys and their values."""
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]


def _of_segments(pointers: np.ndarray, function: Any) -> list[np.ndarray]:
    return [function(slice(a, b)) for a, b in itertools.pairwise(pointers)]


def segmented_sum(pointers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the sum of each segment."""
    return np.array(_of_segments(pointers, lambda part: x[part].sum(dtype=x.dtype)), x.dtype)


def segmented_scan(pointers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the sums up to each number within its segment."""
    return np.concatenate(_of_segments(pointers, lambda part: np.cumsum(x[part], dtype=x.dtype))).astype(x.dtype)


def segmented_sort(pointers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the numbers in order within each segment."""
    return np.concatenate(_of_segments(pointers, lambda part: np.sort(x[part], kind="stable"))).astype(x.dtype)
