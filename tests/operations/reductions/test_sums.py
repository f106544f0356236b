"""Sums, means, diagonals and counts of a matrix against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import random_structure
from pyopencl import array as cl_array
from scipy.version import version as sp_version

from clsparse_py import csr_array, linalg
from clsparse_py._device.device import describe

EXPRESSIONS = (
    "A.sum()", "A.sum(axis=0)", "A.sum(axis=1)", "A.sum(axis=-1)", "A.sum(axis=(0, 1))", "A.sum(axis=(0,))", "A.sum(axis=(-1,))",
    "A.sum(axis=2)", "A.sum(axis=())", "A.sum(axis='rows')", "A.sum(dtype=np.float32)", "A.sum(axis=1, dtype=np.int64)",
    "A.sum(axis=0, dtype=np.float32)", "A.sum(axis=1, out=np.zeros(3))", "A.mean()", "A.mean(axis=0)", "A.mean(axis=1)",
    "A.mean(dtype=np.float32)", "A.diagonal()", "A.diagonal(2)", "A.diagonal(-3)", "A.diagonal(99)", "A.trace()", "A.trace(1)",
    "A.count_nonzero()", "A.count_nonzero(0)", "A.count_nonzero(axis=1)", "A.nonzero()[0]", "A.nonzero()[1]",
)  # fmt: skip


def matrix(dtype: str, shape: tuple[int, int], *, canonical: bool) -> sp.csr_array:
    """Return a matrix of small whole numbers, some of them 0; unsorted and with duplicates unless it is canonical."""
    rng = np.random.default_rng(5)
    indices, indptr = random_structure(rng.integers(0, 9, shape[0]) * (shape[1] > 0), shape[1], rng)
    values = rng.integers(-3, 4, indices.size) + (1j * rng.integers(-3, 4, indices.size) if dtype == "complex64" else 0)
    made = sp.csr_array((values.astype(dtype), indices, indptr), shape=shape)
    if canonical:
        made.sum_duplicates()
    return made


def of_later_scipy(expression: str, A: csr_array) -> bool:
    """Return whether SciPy 1.18 adds up otherwise than 1.17, which is the reference: duplicates in the dtype of the values."""
    later = tuple(map(int, sp_version.split(".")[:2])) > (1, 17)
    return later and "axis=0, dtype" in expression and not A.has_canonical_format


def outcome(expression: str, A: Any) -> Any:
    try:
        return eval(expression, {"np": np, "A": A})
    except (TypeError, ValueError, ZeroDivisionError) as error:
        return error


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("canonical", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8", "bool", "uint16", "float64"])
def test_reductions(queue: cl.CommandQueue, dtype: str, canonical: bool) -> None:
    if dtype == "float64" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    for shape in ((40, 30), (0, 4), (5, 0), (1, 7)):
        host = matrix(dtype, shape, canonical=canonical)
        A = csr_array(host, queue=queue)
        for expression in EXPRESSIONS:
            if of_later_scipy(expression, A):
                continue
            # SciPy adds the duplicates of its operands up in place.
            wanted, result = outcome(expression, host.copy()), outcome(expression, A)
            if isinstance(wanted, Exception):
                assert type(result) is type(wanted), (expression, result)
                continue
            if isinstance(result, TypeError) and "double precision" in str(result):
                assert not describe(queue.device).fp64
                continue
            assert np.asarray(result).dtype == np.asarray(wanted).dtype, expression
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6, err_msg=expression)


@pytest.mark.any_platform
def test_results_go_where_they_are_wanted(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (40, 30), canonical=True)
    A = csr_array(host, queue=queue)
    given = np.zeros(30, np.float32)
    assert A.sum(axis=0, out=given) is given
    np.testing.assert_array_equal(given, host.sum(axis=0))
    for dtype in (np.float32, np.int32):
        on_device = cl_array.zeros(queue, 40, dtype)
        assert A.sum(axis=1, out=on_device) is on_device
        np.testing.assert_array_equal(on_device.get(), host.sum(axis=1))
    for out, message in (
        (np.zeros(3), r"^out: must have shape \(40,\), has \(3,\)"),
        (cl_array.zeros(queue, 80, np.float32)[::2], "^out: must be contiguous and begin its buffer"),
        (cl_array.zeros(queue, 41, np.float32)[1:], "^out: must be contiguous and begin its buffer"),
        ([0] * 40, "^out: must be a numpy.ndarray or a pyopencl.array.Array, is list"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            A.sum(axis=1, out=out)
    with pytest.raises(TypeError, match=r"^like: must be a pyopencl.array.Array or a pyopencl.CommandQueue, is int$"):
        A.sum(axis=1, like=3)
    for axis in (0, 1, None):
        for like, dtype in ((queue, None), (A.data, np.int32)):
            for name in ("sum", "mean"):
                result, wanted = getattr(A, name)(axis, dtype, like=like), getattr(host, name)(axis, dtype)
                assert isinstance(result, cl_array.Array)
                np.testing.assert_allclose(result.get(), np.asarray(wanted), rtol=1e-5, atol=1e-6)
                assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(A.tocsc().sum(axis=1, like=queue).get(), host.sum(axis=1))


def test_rows_that_are_alike_and_others(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    """On GPUs lanes share a row: without a look at parts if no row is long, else by parts of equal weight."""
    take_as(type="gpu")
    rng = np.random.default_rng(4)
    for lengths in ([5] * 300, [1] * 200 + [3000] + [0] * 40 + [700]):
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        columns = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
        host = sp.csr_array((rng.integers(-9, 9, indptr[-1]).astype(np.float32), columns, indptr), shape=(len(lengths), 3000))
        A = csr_array(host, queue=queue)
        np.testing.assert_array_equal(A.sum(axis=1), host.sum(axis=1))
        np.testing.assert_array_equal(A.max(axis=1).get().toarray(), host.max(axis=1).toarray())


@pytest.mark.any_platform
def test_counts_of_stored_entries(queue: cl.CommandQueue) -> None:
    host = matrix("int8", (40, 30), canonical=False)
    A, of_scipy = csr_array(host, queue=queue), sp.csr_matrix(host)
    assert A.getnnz() == host.nnz
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(A.getnnz(axis), of_scipy.getnnz(axis))
    A.count_nonzero()
    assert A.nnz == host.nnz
    with pytest.raises(ValueError, match=r"^axis: must be None, 0 or 1, or -1 or -2, is 5"):
        A.getnnz(5)


@pytest.mark.any_platform
def test_long_rows_have_their_diagonal(queue: cl.CommandQueue) -> None:
    host = sp.csr_array(np.arange(60_000, dtype=np.float32).reshape(3, 20_000))
    for k in (0, -1, 17, 19_998):
        np.testing.assert_array_equal(csr_array(host, queue=queue).diagonal(k), host.diagonal(k))


@pytest.mark.any_platform
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_sums_have_the_dtype_asked_for_before_they_go_elsewhere(queue: cl.CommandQueue) -> None:
    whole, some = np.array([[160, 160, 0], [70, 0, 90]]), np.array([[1.6, 1.6, 0], [-0.7, 0, 2.9]], np.float32)
    for X in (whole.astype(np.int8), whole.astype(np.uint16), some, some + 1j * some):
        A = csr_array(X, queue=queue)
        for dtype, to in ((np.int8, np.int64), (np.float32, np.complex64), (bool, np.float32), (np.int32, np.float32)):
            for axis in (0, 1):
                # Rows and columns are converted once they are summed, as by SciPy; not so in its axis 0, which leaves dtype out.
                wanted = X.sum(axis).astype(dtype).astype(to)
                given, on_device = np.zeros(wanted.shape, to), cl_array.zeros(queue, wanted.shape, to)
                for M in (A, A.tocsc(), A.tocoo()):
                    assert M.sum(axis, dtype, given) is given
                    assert M.sum(axis, dtype, on_device) is on_device
                    np.testing.assert_allclose(given, wanted, rtol=1e-6)
                    np.testing.assert_allclose(on_device.get(), wanted, rtol=1e-6)
                np.testing.assert_allclose(A.sum(axis, dtype, like=queue).get(), X.sum(axis).astype(dtype), rtol=1e-6)
            # All of them: each value is.
            for result in (A.sum(dtype=dtype), A.sum(dtype=dtype, out=np.zeros((), to)), A.sum(dtype=dtype, like=queue).get()):
                np.testing.assert_allclose(result, X.sum(dtype=dtype), rtol=1e-6)


@pytest.mark.any_platform
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_many_values_in_single_precision_keep_their_digits(queue: cl.CommandQueue, dtype: str) -> None:
    if not describe(queue.device).fp64:
        pytest.skip("the device has no double precision to add up in")
    host = sp.csr_array(np.full((2, 300_000), 0.1 + (0.7j if dtype == "complex64" else 0), dtype))
    A = csr_array(host, queue=queue)
    exact = host.astype(complex if dtype == "complex64" else float)
    for result, wanted in (
        (A.sum(), exact.sum()),
        (A.sum(axis=1), exact.sum(axis=1)),
        (A.T.sum(axis=0), exact.sum(axis=1)),
        (A.sum(axis=1, like=queue).get(), exact.sum(axis=1)),
        (A.mean(), exact.mean()),
        (linalg.norm(A), np.linalg.norm(exact.data)),
    ):
        assert np.asarray(result).dtype == np.asarray(wanted).astype(dtype if np.iscomplexobj(wanted) else "float32").dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-6)
