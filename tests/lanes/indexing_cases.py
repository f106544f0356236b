"""Cases of indexing: every kernel with every dtype and index type, in rotation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse
from elementwise_cases import canonical
from primitive_cases import TYPES, to_device
from supposed import describe_as, suppose
from transpose_cases import RAGGED, on_device
from values import INDEX_TYPES, numbers, same

from clsparse_py import csr_array
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._operations.indexing.rows import Thresholds

Case = partial[None]

ROWS = np.array([3, -1, 5, 5, 10, 0, -4, 10])
COLUMNS = np.array([7, 22, -1, 7, 0, 3, 12, -20])
PARTS = ("data", "indices", "indptr")


def of_scipy(pattern: Any, values: np.ndarray[Any, Any]) -> scipy.sparse.csr_array:
    """Return a pattern with these values as SciPy's, of arrays of its own."""
    return scipy.sparse.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape, copy=True)


def same_parts(result: csr_array, wanted: scipy.sparse.csr_array) -> None:
    """Raise where two matrices differ, also in the order of entries."""
    assert result.shape == wanted.shape
    for part in PARTS:
        same(getattr(result, part), getattr(wanted, part).astype(getattr(result, part).dtype))
    same(result.data, wanted.data)


def read(dtype: np.dtype[Any], index: type[Any], device_type: str) -> None:
    """Read rows, columns and places, listed on host and device, and evenly spaced, by the kernels for a type of device."""
    with describe_as(type=device_type):
        _read(dtype, index)


def _read(dtype: np.dtype[Any], index: type[Any]) -> None:
    values = numbers(RAGGED.nnz, dtype)
    A, host = on_device(RAGGED, values, index), of_scipy(RAGGED, values)
    # SciPy's order of a column that is given several times is that of a sort which is not stable.
    once = np.unique(COLUMNS % 23)[::-1]
    same_parts(A[to_device(ROWS.astype(np.int64))], host[ROWS])
    with patch.object(Thresholds, "of", suppose(Thresholds, max_at_once=0)):
        same_parts(A[ROWS], host[ROWS])
    same_parts(A[4:11], host[4:11])
    same_parts(A[:, to_device(once.astype(np.uint8))], host[:, once])
    same_parts(A[:, ::-3], host[:, ::-3])
    for shown in (A, csr_array(canonical(1).astype(dtype))):
        same(shown[ROWS, COLUMNS], shown.get()[ROWS, COLUMNS])
    mask = np.arange(14) % 3 == 1
    same_parts(A[to_device(mask)], host[mask])
    marks = np.arange(23) % 4 == 1
    same_parts(A[:, to_device(marks)], host[:, marks])
    same(rows_of(A.queue, A.indptr, A.nnz), np.repeat(np.arange(14), np.diff(RAGGED.indptr)).astype(index))
    same(A[np.array([[5], [1]]), [1, 7]].toarray(), host[np.array([[5], [1]]), [1, 7]].toarray())


def write(dtype: np.dtype[Any], index: type[Any]) -> None:
    """Set values where entries are, and elsewhere: at places in order, and at others of which some are given twice."""
    pattern = canonical(1)
    values = numbers(pattern.nnz, dtype)
    given = numbers(8, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
        for rows, columns in ((ROWS, COLUMNS), (slice(2, 10), 3), pattern.nonzero()):
            A, host = on_device(pattern, values, index), of_scipy(pattern, values)
            A[rows, columns] = host[rows, columns] = given if np.size(columns) < 9 else 1
            same_parts(A, host)


def indexing_cases(dtypes: tuple[np.dtype[Any], ...]) -> Iterator[Case]:
    """Dtypes and index types, in rotation."""
    for i, dtype in enumerate(dtypes):
        yield partial(read, dtype, INDEX_TYPES[i % 2], TYPES[i % 2])
        yield partial(write, dtype, INDEX_TYPES[(i + 1) % 2])
