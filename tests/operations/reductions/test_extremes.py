"""The largest and smallest values of a matrix, and where they are, against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from expressions import check

NAMES = ("max", "min", "nanmax", "nanmin", "argmax", "argmin")


def matrix(dtype: str, sign: int = 0) -> scipy.sparse.csr_array:
    """Return a matrix with full, empty and other rows and columns, duplicates and zeros; of one sign, unless that is 0."""
    rng = np.random.default_rng(4)
    dense = rng.integers(-3, 4, (9, 7)) * (rng.random((9, 7)) < 0.5)
    dense[2], dense[3], dense[:, 4] = 0, rng.integers(1, 4, 7), rng.integers(-4, -1, 9)
    if sign:
        dense = sign * abs(dense)
    if dtype[0] == "c":
        dense = dense + 1j * dense[::-1]
    A = scipy.sparse.csr_array(dense.astype(dtype))
    rows = np.repeat(np.arange(9), np.diff(A.indptr))
    where = np.concatenate([np.arange(A.nnz), [3, 5, 8]])
    order = np.argsort(rows[where], kind="stable")[::-1]
    order = order[np.argsort(rows[where][order], kind="stable")]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[where], minlength=9))])
    return scipy.sparse.csr_array((A.data[where][order], A.indices[where][order], indptr), shape=A.shape)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "uint16", "int64"])
def test_extremes(queue: cl.CommandQueue, dtype: str) -> None:
    for sign, axis, name, explicit in itertools.product((0, -1, 1), (None, 0, 1), NAMES, (False, True)):
        if sign and (dtype in ("bool", "uint16") or name.startswith("nan")):
            continue
        check(queue, f"A.{name}({axis}, explicit={explicit})", A=matrix(dtype, sign))


def test_other_forms_axes_and_errors(queue: cl.CommandQueue) -> None:
    A = matrix("float32")
    for form, name, axis in itertools.product(("csc", "coo"), ("max", "argmin"), (None, 0, -1)):
        check(queue, f"A.{name}({axis})", A=A.asformat(form))
    v = scipy.sparse.coo_array(A.toarray()[1])
    for name, axis in itertools.product(NAMES, ("None", "0", "-1", "(0, 1)", "(1,)", "2", "'a'", "0, out=3")):
        check(queue, f"A.{name}({axis})", A=A)
    for name, axis in itertools.product(("max", "argmin"), ("", "0", "1")):
        check(queue, f"v.{name}({axis})", v=v)


def test_nan(queue: cl.CommandQueue) -> None:
    n = np.nan
    A = scipy.sparse.csr_array(np.array([[n, 1, 0, -1], [n, n, n, n], [0, 0, n, 0], [1, 2, 3, n]], np.float32))
    for name, axis, explicit in itertools.product(NAMES, (None, 0, 1), (False, True)):
        check(queue, f"A.{name}({axis}, explicit={explicit})", A=A)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 4), (0, 0)], ids=str)
def test_matrices_without_entries(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    A = scipy.sparse.csr_array(shape, dtype=np.float32)
    for name, axis, explicit in itertools.product(NAMES, (None, 0, 1), (False, True)):
        check(queue, f"A.{name}({axis}, explicit={explicit})", A=A)


def test_long_rows(queue: cl.CommandQueue) -> None:
    """Rows that several work-groups take, beside short ones."""
    rng = np.random.default_rng(6)
    lengths = np.array([1, 20_000, 0, 3, 9000, 5])
    indices = np.concatenate([np.sort(rng.permutation(20_000)[:length]) for length in lengths]).astype(np.int32)
    values = rng.permutation(indices.size).astype(np.float32) - 20_000
    A = scipy.sparse.csr_array((values, indices, np.concatenate([[0], np.cumsum(lengths)])), shape=(6, 20_000))
    for name, axis in itertools.product(("max", "min", "argmax", "argmin"), (None, 1)):
        check(queue, f"A.{name}({axis})", A=A)
