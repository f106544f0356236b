"""Matrices and expressions that tests of indexing share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from oracle import random_structure

__all__ = ["dense", "matrix", "outcome", "perform"]


def matrix(dtype: str, shape: tuple[int, int], *, canonical: bool, index: Any = np.int32, seed: int = 5) -> sp.csr_array:
    """Return a matrix of small whole numbers, some of them 0; unsorted and with duplicates unless it is canonical."""
    rng = np.random.default_rng(seed)
    indices, indptr = random_structure(rng.integers(0, 9, shape[0]) * (shape[1] > 0), shape[1], rng, index)
    values = rng.integers(-3, 4, indices.size) + (1j * rng.integers(-3, 4, indices.size) if dtype == "complex64" else 0)
    made = sp.csr_array((values.astype(dtype), indices, indptr), shape=shape)
    if canonical:
        made.sum_duplicates()
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def outcome(expression: str, A: Any, **names: Any) -> Any:
    """Return the value of an expression of A, or the error that it raises."""
    try:
        return eval(expression, {"np": np, "sp": sp, "A": A, **names})
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        return error


def perform(statement: str, A: Any, **names: Any) -> Any:
    """Execute a statement, and return the error that it raises, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(statement, {"np": np, "sp": sp, "A": A, **names})
        except (IndexError, TypeError, ValueError, OverflowError) as error:
            return error
    return None


def dense(value: Any) -> Any:
    """Return a sparse array, ours or SciPy's, as a dense one, and any other value as it is."""
    return value.toarray() if hasattr(value, "toarray") else value
