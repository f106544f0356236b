"""Functions that the oracle's texts call beside NumPy and SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.sparse import linalg as splinalg

from clsparse_py._precision.semiring import SEMIRINGS
from tests import oracle


def by_semiring(A: Any, x: np.ndarray, name: str) -> np.ndarray:
    """Return a product by brute force, of values as they are stored."""
    result = oracle.expected_product((A.data, A.indices, A.indptr), x, SEMIRINGS[name])
    return np.asarray(result.values, result.dtype)


def product_from_left(A: Any, x: np.ndarray) -> np.ndarray:
    """Return x @ A, in NumPy's shape where SciPy's differs."""
    return np.asarray(A.T.tocsr() @ x)


def sum_by_parts(A: Any, axis: int | None) -> Any:
    """Return sums of complex values; SciPy multiplies by ones, which makes NaN of infinity."""
    if A.dtype.kind != "c":
        return A.sum(axis=axis)  # of the sizes of values
    parts = A.real.sum(axis=axis), A.imag.sum(axis=axis)
    total = np.empty(np.shape(parts[0]), A.dtype)
    total.real, total.imag = parts
    return total[()]


def scaled(alpha: Any, product: np.ndarray, beta: Any = 0, y: Any = None) -> np.ndarray:
    """Return alpha times a product plus beta times y, in the product's dtype."""
    dtype = product.dtype.type
    with np.errstate(all="ignore"):
        return dtype(alpha) * product + (dtype(beta) * y if y is not None and beta != 0 else dtype(0))


def with_values(A: Any, data: np.ndarray) -> Any:
    """Return a matrix of other values."""
    return type(A)((data, A.indices, A.indptr), shape=A.shape)


def ones(M: Any) -> Any:
    """Return a matrix of ones where another has entries."""
    return sp.coo_array((np.ones(M.nnz), M.tocoo().coords), shape=M.shape)


def allowed_positions(M: Any, complement: bool, structural: bool) -> np.ndarray:
    """Return of each place whether a mask lets it through."""
    return ((ones(M) if structural else M).toarray() != 0) != complement


def masked(A: Any, B: Any, M: Any, complement: bool, structural: bool) -> Any:
    """Return the entries of a product that a mask lets through."""
    C = (A @ B).tocoo()
    C.sum_duplicates()
    keep = allowed_positions(M, complement, structural)[C.row, C.col]
    return sp.csr_array((C.data[keep], (C.row[keep], C.col[keep])), shape=C.shape)


def written(A: Any, B: Any, C: Any, let: np.ndarray, accum: str | None, replace: bool) -> Any:
    """Return C after a product went into it at the places that are let through, as GraphBLAS has it."""
    old = dict(zip(zip(*C.tocoo().coords, strict=True), C.data, strict=True))
    # SciPy's product lacks entries that are zero.
    there, product = (ones(A) @ ones(B)).tocoo(), (A @ B).toarray()
    results = {at: v for at, v in old.items() if (accum if let[at] else not replace)}
    for at in zip(*there.coords, strict=True):
        if let[at]:
            new = product[at]
            results[at] = {"plus": old[at] + new, "first": old[at]}.get(accum or "", new) if at in results else new
    rows, cols = np.array([*results], int).reshape(-1, 2).T
    return sp.csr_array((np.array([*results.values()], C.dtype), (rows, cols)), shape=C.shape)


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
    result = splinalg.spsolve(wide, b.astype(complex), permc_spec="NATURAL").reshape(b.shape)
    dtype = splinalg.spsolve_triangular(sp.csr_array(np.eye(1, dtype=T.dtype)), np.ones(1, b.dtype)).dtype
    return (result if dtype.kind == "c" else result.real).astype(dtype)


def components(A: Any) -> tuple[int, np.ndarray]:
    """Return the number of components, and the component of each vertex."""
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
    edges = sp.csr_array(A != 0).astype(np.int64)
    edges = sp.tril(edges, -1, format="csr") + sp.triu(edges, 1, format="csr")
    return (edges @ edges).multiply(edges).sum(axis=1) // 2


def truss(A: Any, k: int) -> Any:
    """Return the edges that are in k - 2 triangles of such edges each."""
    B = A.toarray() * (1 - np.eye(A.shape[0], dtype=A.dtype))
    while True:
        edges = (B != 0).astype(float)  # which BLAS multiplies
        left = np.where((B != 0) & (edges @ edges >= k - 2), B, 0)
        if (left == B).all():
            return sp.csr_array(B)
        B = left


def betweenness(A: Any) -> np.ndarray:
    """Return the share of shortest paths through each vertex: by distances, and numbers of paths."""
    n = A.shape[0]
    edges = ones(A).toarray() != 0
    np.fill_diagonal(edges, False)
    distance, paths, step = np.where(np.eye(n) > 0, 0, np.inf), np.eye(n), np.eye(n)
    for length in range(1, n):
        step = np.where(np.isinf(distance), step @ edges, 0)
        distance[step > 0] = length
        paths += step
    result = np.zeros(n)
    for v in range(n):
        on = (distance[:, [v]] + distance[[v]] == distance) & np.isfinite(distance)
        on[v], on[:, v] = False, False
        np.fill_diagonal(on, False)
        result[v] = np.sum(np.outer(paths[:, v], paths[v])[on] / paths[on])
    return result / max((n - 1) * (n - 2), 1)


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


def reduce_by_key(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the key of each run, and the sum of its values."""
    first = np.flatnonzero(np.concatenate((np.ones(1, bool), np.diff(keys) != 0))[: keys.size])
    return keys[first], np.add.reduceat(values, first, dtype=values.dtype) if first.size else values


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
