"""Right products: brute force over every semiring, with a bound on the error that rounding may make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from clsparse_py._ground.rounding import rounding_bound
from clsparse_py._precision.semiring import Semiring, plus_times

__all__ = ["Expected", "addition", "check", "expected_product", "multiply", "random_structure", "random_values"]


@dataclass(frozen=True)
class Expected:
    """A product in extended precision and how far a result may be from it, per row."""

    values: np.ndarray
    bound: np.ndarray | float
    dtype: np.dtype


def random_structure(lengths: Any, n_cols: int, rng: np.random.Generator, index: Any = np.int32) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and indptr of rows of the given lengths: unsorted, with duplicates."""
    lengths = np.asarray(lengths, np.int64)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    return rng.integers(0, max(n_cols, 1), int(indptr[-1])).astype(index), indptr


def random_values(dtype: Any, size: Any, rng: np.random.Generator, *, nonnegative: bool = False) -> np.ndarray:
    """Return values of many magnitudes, of both signs unless they are to be nonnegative, some of them zero."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if nonnegative or dtype.kind == "u" else -9, 10, size).astype(dtype)

    def reals() -> np.ndarray:
        values = rng.standard_normal(size) * 10.0 ** rng.uniform(-3, 3, size)
        values[rng.random(size) < 0.05] = 0
        return np.abs(values) if nonnegative else values * np.where(rng.random(size) < 0.5, 1, -1)

    return (reals() + 1j * reals() if dtype.kind == "c" else reals()).astype(dtype)


def _wide(dtype: np.dtype) -> Any:
    return {"f": np.longdouble, "c": np.clongdouble}.get(dtype.kind, dtype.type)


def multiply(semiring: Semiring, a: np.ndarray, x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the products of values, of a semiring whose result has some dtype: wide ones if they are to be added up."""
    plus, times = semiring.operations
    if semiring.of_truth:
        a, x = a != 0, x != 0
    else:
        kind = _wide(dtype) if plus == "plus" else dtype
        a, x = a.astype(kind), x.astype(kind)
    if times == "plus" and semiring.ordered and dtype.kind in "iu":
        limit = np.iinfo(dtype)
        wide = object if dtype.itemsize == 8 else np.int64
        return np.clip(a.astype(wide) + x.astype(wide), limit.min, limit.max).astype(dtype)
    return {
        "times": np.multiply, "plus": np.add, "min": np.minimum, "max": np.maximum, "or": np.logical_or, "and": np.logical_and,
        "xor": np.logical_xor, "first": lambda a, _: a, "second": lambda _, x: x, "pair": lambda a, _: np.ones_like(a),
    }[times](a, x)  # fmt: skip


def addition(semiring: Semiring, dtype: np.dtype) -> np.ufunc:
    """Return NumPy's function that is the addition of a semiring on a dtype."""
    return {
        "plus": np.logical_or if dtype.kind == "b" else np.add, "min": np.minimum, "max": np.maximum, "any": np.maximum,
        "or": np.logical_or, "and": np.logical_and, "xor": np.logical_xor,
    }[semiring.operations[0]]  # fmt: skip


def _reduce(semiring: Semiring, products: np.ndarray, indptr: np.ndarray, dtype: np.dtype) -> np.ndarray:
    ufunc = addition(semiring, dtype)
    n_rows = indptr.size - 1
    totals = np.full(n_rows, semiring.identity(dtype), products.dtype)
    filled = np.flatnonzero(np.diff(indptr))
    if filled.size:
        # Empty rows lie between the others without moving their beginnings.
        sums = ufunc.reduceat(products, indptr[filled].astype(np.int64))
        totals[filled] = ufunc(totals[filled], sums) if semiring.name != "plus_times" else sums
    return totals


def expected_product(
    parts: tuple[np.ndarray, np.ndarray, np.ndarray],
    x: np.ndarray,
    semiring: Semiring = plus_times,
    *,
    alpha: Any = None,
    beta: Any = None,
    y: np.ndarray | None = None,
) -> Expected:
    """Return the product of ``(data, indices, indptr)`` with a vector or with each column of a matrix."""
    data, indices, indptr = parts
    if x.ndim == 2:
        columns = [
            expected_product(parts, x[:, j], semiring, alpha=alpha, beta=beta, y=None if y is None else y[:, j])
            for j in range(x.shape[1])
        ]
        stacked = [
            np.stack([np.broadcast_to(part, (indptr.size - 1,)) for part in all_of], axis=1)
            for all_of in ([column.values for column in columns], [column.bound for column in columns])
        ]
        return Expected(stacked[0], stacked[1], columns[0].dtype)
    dtype = semiring.result_dtype(data.dtype, x.dtype)
    with np.errstate(all="ignore"):
        total = _reduce(semiring, multiply(semiring, data, x[indices], dtype), indptr, dtype)
        bound: Any = 0.0
        if semiring is plus_times and dtype.kind in "fc":
            sizes = np.abs(data.astype(_wide(dtype))) * np.abs(x[indices].astype(_wide(dtype)))
            magnitude = _reduce(semiring, np.where(np.isfinite(sizes), sizes, 0), indptr, np.dtype(np.longdouble))
            bound = rounding_bound(np.diff(indptr), magnitude, dtype, _wide(dtype))
        if alpha is not None or beta is not None:
            before = np.abs(total)
            total = total * _wide(dtype)(1 if alpha is None else alpha)
            if dtype.kind in "fc":
                bound = bound * abs(1 if alpha is None else alpha) + 4 * np.finfo(dtype).eps * before * abs(
                    1 if alpha is None else alpha
                )
            if beta is not None and beta != 0:
                assert y is not None
                total = total + y.astype(_wide(dtype)) * _wide(dtype)(beta)
                if dtype.kind in "fc":
                    bound = bound + 4 * np.finfo(dtype).eps * np.abs(y.astype(_wide(dtype)) * beta)
    return Expected(total, bound, dtype)


def check(result: Any, wanted: Expected) -> None:
    """Check a result: dtype and shape, what is not finite, and the error of the rest."""
    result = result if isinstance(result, np.ndarray) else result.get()
    assert result.dtype == wanted.dtype
    assert result.shape == wanted.values.shape
    if result.dtype.kind not in "fc":
        np.testing.assert_array_equal(result, wanted.values)
        return
    finite = np.isfinite(wanted.values)
    np.testing.assert_array_equal(np.isfinite(result), finite)
    if result.dtype.kind == "f":
        np.testing.assert_array_equal(result[~finite], wanted.values[~finite].astype(result.dtype))
    error = np.abs(np.where(finite, result, 0) - np.where(finite, wanted.values, 0))
    excess = error - np.broadcast_to(wanted.bound, error.shape)
    worst = int(np.argmax(excess)) if excess.size else 0
    assert not excess.size or excess.flat[worst] <= 0, (
        f"at {np.unravel_index(worst, error.shape)}: {result.flat[worst]!r} instead of {wanted.values.flat[worst]!r}, "
        f"error {error.flat[worst]:.3g}; {int((excess > 0).sum())} of {excess.size} are wrong"
    )


def host(matrix: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three arrays of a SciPy matrix."""
    return matrix.data, matrix.indices, matrix.indptr
