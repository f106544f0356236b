"""``A[...]`` against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from cases import dense, matrix, outcome
from hypothesis import given, settings
from hypothesis import strategies as st
from pyopencl import array as cl_array

from clsparse_py import coo_array, csc_array, csr_array
from clsparse_py._device.device import describe
from clsparse_py._matrix.matrix import Matrix

FORMATS: dict[str, Any] = {"csr": csr_array, "csc": csc_array, "coo": coo_array}
EXPRESSIONS = (
    "A[...]", "A[:]", "A[:, :]", "A[2:4]", "A[-2:]", "A[::-1]", "A[1::2]", "A[4:1:-2]", "A[2:2]", "A[:, 2:5]", "A[:, ::-1]",
    "A[:, 5::-2]", "A[:, ::3]", "A[:, 3:3]", "A[1:4, 1:-1]", "A[::2, ::-2]", "A[[1]]", "A[[3, -1, 3, 0]]", "A[[]]",
    "A[:, [2, 0, -1]]", "A[:, [4, 4, 4, 1]]", "A[:, []]", "A[1:3, [1, 0]]", "A[[0, 2], 1:3]", "A[[0, 3], ::2]",
    "A[np.ix_([3, 1], [0, 5, 2])]", "A[[[1], [2]], [3, 1]]", "A[[1, 2, 1], [3, -1, 3]]", "A[[1], [0]]",
    "A[[[0, 1], [2, 3]], [[1, 1], [0, 5]]]", "A[[[0, 1], [2, 3]], [4, 2]]", "A[np.arange(6) % 2 == 0]",
    "A[:, np.arange(6) > 2]", "A[np.ones((6, 6), bool)]", "A[np.eye(6, dtype=bool)]", "A[sp.csr_array(np.eye(6, dtype=bool))]",
    "A[2, 3]", "A[-1, -1]", "A[0, 0, None]", "A[None, 1, 1]", "A[np.uint8(1), np.int64(2)]", "A[np.array([4, 2], np.uint8)]",
    "A[[1, 2], None, [0, 1]]", "A[6]", "A[:, 6]", "A[[6]]", "A[[0, -7]]", "A[1, 2, 3]", "A[[True, False]]",
    "A[[1, 2], [1, 2, 3]]", "A['a']", "A[None]", "A[..., ...]", "A[1.0]", "A[[[1, 2], [2, 1]]]", "A[1]", "A[-1, 2:4]",
    "A[2, ::-1]", "A[:, 3]", "A[::2, 3]", "A[..., 1]", "A[1, [3, 1, 3]]", "A[[3, 1], 2]", "A[2, [[1, 2], [0, 4]]]",
    "A[1, None]", "A[1, :, None]", "A[None, [1, 2], 2]", "A[[], []]",
)  # fmt: skip


OF_ONE_AXIS = (
    "1", "2", "-1", "None", ":, None", "1:3", "::-2", "[0, 1, 0]", "[[0, 1], [2, 3]]", "[0, 1], None", "...", "2, None", "[]",
    "None, 1:3", "2:2", "A > 1", "[True, False] * 3", "9", "[9]", "1, 2", "'a'",
)  # fmt: skip


def agree(result: Any, wanted: Any, what: str) -> None:
    """Raise where a result differs from SciPy's in its kind, shape, dtype or values, or its facts are wrong."""
    if isinstance(wanted, Exception):
        assert type(result) is type(wanted), (what, result)
        return
    assert isinstance(result, type(wanted)) or sp.issparse(wanted) == hasattr(result, "toarray"), (what, result)
    assert getattr(result, "format", None) == getattr(wanted, "format", None), what
    np.testing.assert_array_equal(dense(result), dense(wanted), err_msg=what, strict=True)
    if isinstance(result, Matrix):
        facts = result.facts
        if facts is not None:
            host = result.get()
            assert (facts.nnz, facts.sorted, facts.canonical) == (
                host.nnz, bool(host.has_sorted_indices), bool(host.has_canonical_format),
            ), what  # fmt: skip


@pytest.mark.parametrize(("dtype", "index", "canonical", "device_type", "form"), [
    ("float32", np.int32, True, "gpu", "csr"), ("float64", np.int64, False, "cpu", "csr"),
    ("complex64", np.int32, False, "cpu", "csc"), ("bool", np.int64, True, "gpu", "csc"),
    ("int8", np.int32, False, "gpu", "csr"), ("uint16", np.int32, True, "cpu", "csr"),
    ("float32", np.int32, True, "cpu", "coo"),
])  # fmt: skip
def test_reading(
    queue: cl.CommandQueue, take_as: Callable[..., None], dtype: str, index: Any, canonical: bool, device_type: str, form: str
) -> None:
    if dtype == "float64" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    take_as(type=device_type)
    rows = matrix(dtype, (6, 6), canonical=canonical, index=index)
    host = rows.T if form == "csc" else rows.asformat(form)
    A = FORMATS[form](host, queue=queue)
    for expression in EXPRESSIONS:
        # SciPy cannot take steps of columns for listed rows of CSR: it mistakes them for places one by one. Its COO arrays have
        # more than two dimensions, and not the results of some keys with None.
        spelled = "A[[0, 3]][:, ::2]" if expression == "A[[0, 3], ::2]" else expression
        if form == "coo" and expression in ("A[None]", "A[[[1, 2], [2, 1]]]", "A[[1, 2], None, [0, 1]]"):
            continue
        agree(outcome(expression, A), outcome(spelled, host.copy()), expression)
    if form == "csr":
        assert A[[1]].indptr.dtype == index


@pytest.mark.any_platform
def test_one_dimension(queue: cl.CommandQueue) -> None:
    for form in ("csr", "coo"):
        host = sp.csr_array(np.array([1, 0, 2, 0, 3, 4], np.float32)).asformat(form)
        A = FORMATS[form](host, queue=queue)
        for key in OF_ONE_AXIS:
            agree(outcome(f"A[{key}]", A), outcome(f"A[{key}]", host), f"A[{key}]")
        np.testing.assert_array_equal(list(A), list(host))


@pytest.mark.any_platform
def test_iteration_goes_over_rows(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (4, 6), canonical=True)
    for form, make in FORMATS.items():
        rows = list(make(host, queue=queue))
        assert [(row.format, row.shape) for row in rows] == [("coo" if form == "coo" else "csr", (6,))] * 4, form
        np.testing.assert_array_equal([row.toarray() for row in rows], host.toarray())


@pytest.mark.any_platform
def test_empty_shapes(queue: cl.CommandQueue) -> None:
    for shape in ((0, 4), (4, 0), (0, 0)):
        host = sp.csr_array(shape, dtype=np.float32)
        A = csr_array(host, queue=queue)
        for expression in (
            "A[:]",
            "A[::-1]",
            "A[:, ::-1]",
            "A[[]]",
            "A[:, []]",
            "A[1:]",
            "A[:, 2:]",
            "A[[0, 0]]",
            "A[:, [0, 0]]",
        ):
            agree(outcome(expression, A), outcome(expression, host), expression)


@pytest.mark.parametrize("device_type", ["cpu", "gpu"])
def test_positions_on_the_device(queue: cl.CommandQueue, take_as: Callable[..., None], device_type: str) -> None:
    take_as(type=device_type)
    host = matrix("float32", (40, 30), canonical=True)
    A = csr_array(host, queue=queue)
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(-40, 40, 25), rng.integers(-30, 30, 25)
    for dtype in (np.int64, np.int8):
        on_device = [cl_array.to_device(queue, array.astype(dtype)) for array in (rows, columns)]
        agree(A[on_device[0]], host[rows], "rows")
        agree(A[on_device[0][::2]], host[rows[::2]], "every second row")
        agree(A[:, on_device[1]], host[:, columns], "columns")
        values = A[on_device[0], on_device[1]]
        assert isinstance(values, cl_array.Array)
        np.testing.assert_array_equal(values.get(), host[rows, columns])
    mask, places = rng.random(40) < 0.5, rng.random((40, 30)) < 0.3
    on_device = cl_array.to_device(queue, mask)
    agree(A[on_device], host[mask], "mask")
    agree(A[:, cl_array.to_device(queue, mask[:30])], host[:, mask[:30]], "mask of columns")
    for order in "CF":
        values = A[cl_array.to_device(queue, np.asarray(places, order=order))]
        np.testing.assert_array_equal(values.get(), host[places])
    for sparse in (csr_array(places, queue=queue), coo_array(places, queue=queue), csc_array(places, queue=queue)):
        agree(A[sparse], host[places], "sparse mask")
    unsigned = cl_array.to_device(queue, np.array([3, 200], np.uint8))
    for key in (unsigned, (slice(None), unsigned), (unsigned, unsigned)):
        with pytest.raises(IndexError, match=r"^index out of range: 1 of 2 are; axis [01] has [34]0 positions"):
            A[key]


@pytest.mark.parametrize("device_type", ["cpu", "gpu"])
def test_rows_of_any_lengths(queue: cl.CommandQueue, take_as: Callable[..., None], device_type: str) -> None:
    """Rows that many parts share, and parts of many rows, with empty ones between."""
    take_as(type=device_type)
    lengths = np.concatenate([np.zeros(500, int), [9000, 0, 1], np.arange(300) % 7, [0, 5000, 0]])
    rng = np.random.default_rng(2)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    host = sp.csr_array((rng.integers(1, 9, indptr[-1]).astype(np.int16), rng.integers(0, 9000, indptr[-1]), indptr))
    A = csr_array(host, queue=queue)
    rows = (rng.permutation(lengths.size), rng.integers(0, lengths.size, 2000), np.full(7, 500), np.zeros(3000, int))
    columns = (slice(1, None, 3), slice(None, 4000), rng.permutation(9000)[:5000])
    for key in (*rows, *((slice(None), column) for column in columns)):
        result, wanted = A[key], host[key]
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(result, part).get(), getattr(wanted, part))


@pytest.mark.any_platform
def test_results_are_no_views(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (6, 6), canonical=True)
    A = csr_array(host, queue=queue)
    for key in (slice(None), (slice(None), slice(None)), Ellipsis, slice(0, 6), [0, 1]):
        result = A[key]
        for part in ("data", "indices", "indptr"):
            assert getattr(result, part).base_data is not getattr(A, part).base_data


@pytest.mark.any_platform
def test_an_array_of_another_context_is_refused(queue: cl.CommandQueue) -> None:
    A = csr_array(matrix("float32", (6, 6), canonical=True), queue=queue)
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context)
    with pytest.raises(ValueError, match=r"^index: lives in another context than the matrix"):
        A[cl_array.to_device(other, np.array([1]))]


def _axes(n: int) -> st.SearchStrategy[Any]:
    """Return indices of an axis of n positions."""
    numbers = st.integers(-n, n - 1)
    bounds = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    steps = st.sampled_from([None, 1, 2, -1, -2, 5])
    return st.one_of(
        st.builds(slice, bounds, bounds, steps), st.lists(numbers, max_size=6).map(lambda numbers_: np.array(numbers_, np.int64))
    )


@pytest.mark.any_platform
@settings(max_examples=60)
@given(rows=_axes(7), columns=_axes(5), canonical=st.booleans())
def test_rows_and_columns_of_any_kind(queue: cl.CommandQueue, rows: Any, columns: Any, canonical: bool) -> None:
    host = matrix("float32", (7, 5), canonical=canonical)
    A = csr_array(host, queue=queue)
    one, other = A[rows][:, columns], host.toarray()[rows][:, columns]
    np.testing.assert_array_equal(one.toarray(), other)
    listed = [key if isinstance(key, np.ndarray) else np.arange(n)[key] for key, n in ((rows, 7), (columns, 5))]
    np.testing.assert_array_equal(A[np.ix_(*listed)].toarray(), other)
