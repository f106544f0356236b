"""Kernels that take tiles of rows and entries together, on rows that tiles begin in, and on runs of empty ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from cases import dense
from pyopencl import array as cl_array

from clsparse_py import csr_array
from clsparse_py._build import programs
from clsparse_py._formats.coordinates import rows_of

PARTS = ("data", "indices", "indptr")


def ragged_matrix(index: Any, rng: np.random.Generator) -> sp.csr_array:
    """Return a matrix with empty rows at both ends, a row of several tiles behind a tile of empty ones, and short rows."""
    some = rng.integers(0, 7, 4000)
    lengths = np.concatenate(([0] * 5000, [9000], np.ones(50, int), [0] * 3000, some, [0, 0, 2500, 0])).astype(np.int64)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    columns = (np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)).astype(index)
    made = sp.csr_array((np.arange(indptr[-1], dtype=np.float32), columns, indptr), shape=(lengths.size, 9000))
    made.indptr, made.indices = made.indptr.astype(index), made.indices.astype(index)
    return made


def same(result: csr_array, wanted: sp.csr_array, what: str) -> None:
    """Raise where the arrays of two matrices differ."""
    host = result.get()
    assert host.shape == wanted.shape, what
    for part in PARTS:
        np.testing.assert_array_equal(getattr(host, part), getattr(wanted, part), err_msg=what)


@pytest.mark.parametrize(("device_type", "index"), [("gpu", np.int32), ("gpu", np.int64), ("cpu", np.int32)])
def test_ragged_rows(queue: cl.CommandQueue, take_as: Callable[..., None], device_type: str, index: Any) -> None:
    take_as(type=device_type)
    rng = np.random.default_rng(5)
    host = ragged_matrix(index, rng)
    n = host.shape[0]
    A = csr_array(host, queue=queue)
    assert A.indptr.dtype == index
    wanted = np.repeat(np.arange(n), np.diff(host.indptr))
    result = rows_of(queue, A.indptr, A.nnz)
    assert result.dtype == index
    np.testing.assert_array_equal(result.get(), wanted)

    def on_device(values: Any) -> cl_array.Array:
        return cl_array.to_device(queue, np.asarray(values))

    listed = {
        "some": rng.integers(-n, n, 9000), "the long one, again and again": [5000, 3, 5000, 5000 - n, n - 2], "none": [],
        "empty ones": np.arange(4000), "one": [5000], "all": np.arange(n),
    }  # fmt: skip
    for what, rows in listed.items():
        given = np.asarray(rows, np.int64)
        same(A[on_device(given)], host[given], what)
    masks = {"some": rng.random(n) < 0.5, "none": np.zeros(n, bool), "all": np.ones(n, bool), "last": np.arange(n) == n - 3}
    for what, mask in masks.items():
        same(A[on_device(mask)], host[mask], what)
    with pytest.raises(IndexError, match=r"^index out of range: 2 of 9001 are; axis 0 has 12055 positions"):
        A[on_device(np.concatenate((np.zeros(8999, int), [n, -n - 1])))]


def test_few_rows_are_taken_at_once(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(6)
    with programs.recording() as asked:
        for index, dtype in ((np.int32, "float32"), (np.int64, "int8"), (np.int32, "complex64")):
            host = sp.random_array((90, 70), density=0.1, rng=rng, format="csr").astype(dtype)
            host.indptr, host.indices = host.indptr.astype(index), host.indices.astype(index)
            A = csr_array(host, queue=queue)
            listed = (
                [0], [-90, 89, 3, 3], rng.integers(-90, 90, 900), np.arange(90, dtype=np.int32), np.arange(0, 90, 7, np.uint8)
            )  # fmt: skip
            for given in map(np.asarray, listed):
                for rows in (given, cl_array.to_device(queue, given)):
                    result = A[rows]
                    same(result, host[given], f"{given.size} rows")
                    assert result.has_canonical_format
                    same(result[[-1, 0]], host[given][[-1, 0]], "rows of a result, whose longest is not known")
            for given in ([90], [0, -91, 2**40]):
                with pytest.raises(IndexError, match=r"^index \(.*\) out of range: axis 0 has 90 positions"):
                    A[np.asarray(given)]
                with pytest.raises(
                    IndexError, match=rf"^index out of range: {(len(given) + 1) // 2} of {len(given)} are; axis 0"
                ):
                    A[cl_array.to_device(queue, np.asarray(given))]
            np.testing.assert_array_equal(A[-np.arange(9)[::-2]].toarray(), host[-np.arange(9)[::-2]].toarray())
    assert all("lengths" not in program.parameters.name for program in asked)
    # More entries than columns, as many are of one place.
    host = sp.csr_array((np.arange(90, dtype=np.float32), np.zeros(90, np.int32), [0, 45, 45, 90]), shape=(3, 1))
    given = [0, 2, 0, 0, 2, 1]
    result = csr_array(host, queue=queue)[np.asarray(given)]
    same(result, host[given], "rows with duplicates")
    same(result[np.asarray(given)], host[given][given], "rows of these, whose facts are not known")
    with pytest.raises(IndexError, match="axis 0 has 0 positions"):
        csr_array((0, 5), dtype=np.float32, queue=queue)[np.array([0])]


@pytest.mark.any_platform
def test_rows_of_other_formats(queue: cl.CommandQueue) -> None:
    host = sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(3), dtype=np.float32)
    mask = np.arange(30) % 3 == 0
    given = cl_array.to_device(queue, mask), cl_array.to_device(queue, np.array([3, -1, 3]))
    for form in ("csr", "csc", "coo"):
        A = csr_array(host.tocsr(), queue=queue).asformat(form)
        for on_device, key in zip(given, (mask, [3, -1, 3]), strict=True):
            result, wanted = A[on_device], host.asformat(form)[key] if form != "coo" else host.tocsr()[key]
            assert result.format == form
            np.testing.assert_array_equal(dense(result), wanted.toarray())
    with pytest.raises(IndexError, match="mask"):
        A[cl_array.to_device(queue, mask[:5])]
