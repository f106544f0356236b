"""Sums in parts, in every dtype: matrices of one column, of one row, and with rows that end in the middle of a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from expressions import check
from pairs import exhaustive
from pyopencl import array as cl_array
from supposed import suppose

import clsparse_py
from clsparse_py import primitives
from clsparse_py._device.device import describe
from clsparse_py._precision.arithmetic import OPENCL_TYPES
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.thresholds import Thresholds

#: Entries: more than a part of the work has, on CPU devices of two cores once parts are as small as here, and on others. The
#: rows of one entry, and those of four, weigh such that a cut is between where a row begins and its first entry.
_N = {"cpu": 617, "gpu": 4799}
_PART = 67
#: Other kernels take long to build: those that are shared are looked at once there, and masked products in few dtypes.
_REDUCTIONS = {
    "cpu": ("sum", "max", "min", "nanmax", "nanmin", "argmax", "argmin", "count_nonzero"),
    "gpu": ("max", "min", "argmax"),
}
_MASKED_BY_OTHERS = ("int16", "float32", "complex64")
#: Dtypes in which all is looked at, unless all are asked for: each kind, and each size. Reductions on CPU devices are in all.
_FEW = ("bool", "int8", "uint16", "float32", "int64", "complex64", "complex128")


@pytest.fixture
def n(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, take_as: Callable[..., None]) -> int:
    """How many entries are cut into several parts on the type of device that is taken for the one there is."""
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, min_scan_chunk=_PART))
    take_as(type=request.param, compute_units=2)
    return _N[request.param]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = {on for on in _N if exhaustive() or (on == "cpu" and metafunc.definition.name == "test_reductions")}
    cases = [(on, opencl_type) for on in _N for opencl_type in OPENCL_TYPES if on in every or opencl_type in _FEW]
    metafunc.parametrize(("n", "dtype"), cases, indirect=True)


@pytest.fixture
def dtype(request: pytest.FixtureRequest, queue: cl.CommandQueue) -> np.dtype:
    """Each dtype that a device has."""
    result = np.dtype(request.param)
    if result.char in "dD" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    return result


def matrices(dtype: np.dtype, n: int) -> Iterator[scipy.sparse.csr_array]:
    """Return matrices of one sign, so that what takes no part shows: of one column, of one row, and of rows of some lengths."""
    values = np.random.default_rng(n).integers(3, 60, n)
    for sign in (1,) if dtype.kind in "bu" else (1, -1):
        signed = (sign * values).astype(dtype)
        for shape in ((n, 1), (1, n)):
            yield scipy.sparse.csr_array(signed.reshape(shape))
        # Rows of four entries, empty ones, a long one, and a tail.
        most = n * 9 // 10
        ends = np.concatenate([np.arange(0, most, 4), [most] * 9, [n - 20, n - 3, n]])
        columns = np.arange(n) - np.repeat(ends[:-1], np.diff(ends))
        yield scipy.sparse.csr_array((signed, columns, ends))


def test_reductions(queue: cl.CommandQueue, dtype: np.dtype, n: int) -> None:
    for A in matrices(dtype, n):
        for name in _REDUCTIONS["cpu" if n == _N["cpu"] else "gpu"]:
            check(queue, f"A.{name}(axis=1)", A=A)
            if name in ("max", "argmax", "sum"):
                check(queue, f"A.{name}()", A=A)


def test_segments_and_scans(queue: cl.CommandQueue, dtype: np.dtype, n: int) -> None:
    for A in matrices(dtype, n):
        target = sum_dtype(dtype)
        pointers, values = (cl_array.to_device(queue, array) for array in (A.indptr, A.data))
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        sums = np.zeros(A.shape[0], target)
        np.add.at(sums, rows, A.data)
        np.testing.assert_array_equal(primitives.segmented_sum(pointers, values).get(), sums)
        through = np.cumsum(A.data, dtype=target)
        np.testing.assert_array_equal(primitives.inclusive_scan(values).get(), through)
        before = np.concatenate([np.zeros(1, target), through])[A.indptr[:-1]]
        np.testing.assert_array_equal(primitives.segmented_scan(pointers, values).get(), through - before[rows])
        keys, by_key = primitives.reduce_by_key(cl_array.to_device(queue, rows), values)
        np.testing.assert_array_equal(keys.get(), np.unique(rows))
        np.testing.assert_array_equal(by_key.get(), sums[np.unique(rows)])


def test_masked_products(queue: cl.CommandQueue, dtype: np.dtype, n: int) -> None:
    for A in matrices(dtype, n) if n == _N["cpu"] or dtype.name in _MASKED_BY_OTHERS else ():
        ours = clsparse_py.csr_array(A, queue=queue)
        pattern = scipy.sparse.random_array((A.shape[0], A.shape[0]), density=min(1, 2000 / A.shape[0] ** 2), rng=1)
        M = scipy.sparse.csr_array(pattern + scipy.sparse.eye_array(A.shape[0], format="csr"))
        result = clsparse_py.spgemm(ours, ours.T.tocsr(), mask=clsparse_py.csr_array(M, queue=queue))
        np.testing.assert_array_equal(result.toarray(), np.where(M.toarray() != 0, (A @ A.T).toarray(), 0))
