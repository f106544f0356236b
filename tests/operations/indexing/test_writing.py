"""``A[...] =``, `setdiag` and `resize` against SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from cases import matrix, perform
from hypothesis import given, settings
from hypothesis import strategies as st
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import coo_array, csc_array, csr_array
from clsparse_py._device.device import describe

STATEMENTS = (
    "A[2, 3] = 7", "A[0, 0] = 0", "A[-1, -1] = np.ones((1, 1))", "A[1] = 3", "A[1] = np.arange(6)", "A[:, 2] = np.arange(6)",
    "A[:, [2]] = np.arange(6)[:, None]", "A[::2, ::-3] = 5", "A[1:4] = np.arange(18).reshape(3, 6)",
    "A[1:4] = np.arange(3)[:, None]", "A[[1, 1, 2], [3, 3, 4]] = [1, 2, 3]", "A[[3, 0], [0, 3]] = 4",
    "A[np.ix_([5, 2], [3, 0, 3])] = np.arange(6).reshape(2, 3)", "A[[1, 3]] = 1", "A[[3, 1], 2:4] = [[1, 2], [3, 4]]",
    "A[2:4, [4, 4]] = [[1, 2], [3, 4]]", "A[np.eye(6, dtype=bool)] = 2", "A[np.arange(6) > 3] = 3",
    "A[np.zeros((6, 6), bool)] = 3", "A[...] = 1", "A[:] = np.zeros((6, 6))", "A[0:0] = 5", "A[2:4] = B[0:2]", "A[2:4] = B[:1]",
    "A[:, 1:3] = B[:, :1]", "A[[1, 2], [3, 4]] = B[:1, :2]", "A[2, 3] = B[:1, :1]", "A[:] = B", "A[0] = B[[5]]",
    "A[1, 2] = [1, 2]", "A[1] = np.ones(5)", "A[0:2] = np.ones((2, 5))", "A[0:2] = np.array([])",
    "A[[0, 1], [0, 1]] = np.ones(3)", "A[0:2] = B[:, :3]", "A[6, 0] = 1", "A[[0], [9]] = 1", "A[1, 2] = 'a'", "A[1, 2, 3] = 1",
    "A.setdiag(A.dtype.type(3))", "A.setdiag(np.array([1, 2, 3], A.dtype), -2)", "A.setdiag(np.arange(9).astype(A.dtype), 3)",
    "A.setdiag([])", "A.setdiag(1, 6)", "A.setdiag(1, -9)", "A.resize(4, 9)", "A.resize((9, 4))", "A.resize(0, 0)",
    "A.resize(6, 6)", "A.resize(-1, 3)", "A.resize(2.5, 3)",
)  # fmt: skip


def agree(A: Any, host: Any, what: str) -> None:
    """Raise where a matrix differs from SciPy's, or its facts are wrong."""
    result = A.get()
    assert (result.shape, result.dtype, result.nnz) == (host.shape, host.dtype, host.nnz), what
    np.testing.assert_array_equal(result.toarray(), host.toarray(), err_msg=what)
    result.sum_duplicates()
    assert A.has_canonical_format == (result.nnz == A.nnz and bool(np.array_equal(result.indices, A.indices.get()))), what


@pytest.mark.parametrize(("dtype", "index", "form"), [
    ("float32", np.int32, "csr"), ("float64", np.int64, "csr"), ("complex64", np.int32, "csc"), ("bool", np.int64, "csr"),
    ("int8", np.int32, "csc"),
])  # fmt: skip
def test_writing(queue: cl.CommandQueue, dtype: str, index: Any, form: str) -> None:
    if dtype == "float64" and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    rows = matrix(dtype, (6, 6), canonical=True, index=index)
    given = rows.T if form == "csc" else rows
    make: Any = csc_array if form == "csc" else csr_array
    B = matrix(dtype, (6, 6), canonical=False, seed=6)
    for i, statement in enumerate(STATEMENTS):
        host, A = given.copy(), make(given, queue=queue)
        other = csr_array(B, queue=queue) if i % 2 else B.copy()
        wanted, result = perform(statement, host, B=B.copy()), perform(statement, A, B=other)
        assert type(result) is type(wanted), (statement, result, wanted)
        agree(A, host, statement)


@pytest.mark.any_platform
def test_writing_to_other_arrays(queue: cl.CommandQueue) -> None:
    """COO arrays, and those of one dimension. SciPy's COO arrays take the first of several values of a place, and no values."""
    given = matrix("float32", (6, 6), canonical=False)
    B = matrix("float32", (6, 6), canonical=True, seed=6)
    for statement in STATEMENTS:
        if any(name in statement for name in ("[3, 3, 4]", "[3, 0, 3]", "[4, 4]", "A.dtype", "array([])")):
            continue
        host, A = sp.coo_array(given), coo_array(given, queue=queue)
        wanted, result = perform(statement, host, B=B), perform(statement, A, B=B)
        if wanted is None:
            assert result is None, (statement, result)
            np.testing.assert_array_equal(A.toarray(), host.toarray(), err_msg=statement)
    B.eliminate_zeros()
    for statement in ("A[...] = 0", "A[0] = 0", "A[1:3] = np.eye(2, 6)", "A[2, 2] = 0", "A[0] *= 0", "A[A > 1] = 0"):
        host, A = sp.coo_array(B.copy()), coo_array(B, queue=queue)
        perform(statement, host)
        perform(statement, A)
        assert A.nnz == host.nnz, statement
    for form in ("csr", "coo"):
        for key in ("1", "1:3", "::-2", "[4, 0]", "A > 1", "...", "9", "1, 1"):
            host = sp.csr_array(np.array([1, 0, 2, 0, 3], np.float32)).asformat(form)
            A = csr_array(host, queue=queue) if form == "csr" else coo_array(host, queue=queue)
            assert type(perform(f"A[{key}] = 7", A)) is type(perform(f"A[{key}] = 7", host)), key
            np.testing.assert_array_equal(A.toarray(), host.toarray(), err_msg=key)


@pytest.mark.any_platform
def test_a_transposed_does_not_follow(queue: cl.CommandQueue) -> None:
    """Matrices that share arrays stay what they are when values are assigned to one of them."""
    host = matrix("float32", (6, 6), canonical=True)
    A = csr_array(host, queue=queue)
    others = A.T, A.tocoo(copy=False), A[:]
    for key in ((0, host.indices[0]), (slice(None), 1)):
        perform("A[key] = 8", A, key=key)
    perform("A[0, 0] = 9", others[0])
    perform("A[0, 0] = 9", others[1])
    expected = host.toarray()
    np.testing.assert_array_equal(others[2].toarray(), expected)
    expected[0, 0] = 9
    np.testing.assert_array_equal(others[0].toarray().T, expected)
    np.testing.assert_array_equal(others[1].toarray(), expected)


def test_writing_to_duplicates_adds_them_up_before(queue: cl.CommandQueue) -> None:
    given = matrix("float32", (6, 6), canonical=False)
    row, column = (int(positions[0]) for positions in given.nonzero())
    for key in ((row, column), (slice(None), 1), (slice(None), slice(None))):
        host, A = given.toarray(), csr_array(given, queue=queue)
        perform("A[key] = 5", A, key=key)
        host[key] = 5
        np.testing.assert_array_equal(A.toarray(), host)


@pytest.mark.any_platform
def test_a_pattern_that_has_all_places_is_kept(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (40, 30), canonical=True)
    A = csr_array(host, queue=queue)
    before, shared, plan = A.indices, A.data, A.spmv_plan()
    copy = shared.get()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A[host.nonzero()] = 9
        A[0, host.indices[0]] = -1
    assert A.indices is before
    assert A.spmv_plan() is plan
    np.testing.assert_array_equal(shared.get(), copy)
    host[host.nonzero()] = 9
    host[0, host.indices[0]] = -1
    np.testing.assert_array_equal(A @ np.ones(30, np.float32), host @ np.ones(30, np.float32))
    empty = np.argwhere(host.toarray() == 0)[0]
    with pytest.warns(sp.SparseEfficiencyWarning, match="^Inserting entries into a csr_array is expensive"):
        A[tuple(empty)] = 2
    assert A.nnz == host.nnz + 1
    assert A.spmv_plan() is not plan


@pytest.mark.any_platform
def test_a_kept_transposed_is_dropped(queue: cl.CommandQueue) -> None:
    host = matrix("float32", (40, 30), canonical=True)
    A = csr_array(host, queue=queue)
    x = np.ones(40, np.float32)
    np.testing.assert_array_equal(x @ A, x @ host)
    for key in ((0, host.indices[0]), (0, slice(None))):
        for operand in (host, A):
            perform("A[key] = 3", operand, key=key)
        np.testing.assert_array_equal(x @ A, x @ host)


@pytest.mark.any_platform
def test_values_on_the_device(queue: cl.CommandQueue) -> None:
    given = matrix("float32", (6, 5), canonical=True)
    for key, shape in (((slice(1, 3), slice(None)), (2, 5)), ((slice(None), 2), (6,)), (([1, 0], [4, 4]), (2,)), ((3, 3), ())):
        values = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1
        for dtype in (np.float32, np.int64):
            host, A = given.toarray(), csr_array(given, queue=queue)
            on_device = cl_array.to_device(queue, values.astype(dtype))
            perform("A[key] = values", A, key=key, values=on_device)
            host[key] = values
            np.testing.assert_array_equal(A.toarray(), host)
    host, A = given.toarray(), csr_array(given, queue=queue)
    rows = cl_array.to_device(queue, np.array([5, -6, 5]))
    perform("A[rows, 1] = [1, 2, 3]", A, rows=rows)
    host[[5, 0, 5], 1] = [1, 2, 3]
    np.testing.assert_array_equal(A.toarray(), host)
    assert isinstance(perform("A[rows, 1] = 1", csr_array((4, 3), dtype=np.float32, queue=queue), rows=rows), IndexError)


@pytest.mark.any_platform
def test_what_the_dtype_cannot_hold(queue: cl.CommandQueue) -> None:
    given = matrix("int8", (6, 6), canonical=True)
    for value in ("300", "2.7", "np.int64(300)", "np.nan", "1j", "[300, 1]"):
        host, A = given.copy(), csr_array(given, queue=queue)
        wanted, result = perform(f"A[0, 0:2] = {value}", host), perform(f"A[0, 0:2] = {value}", A)
        assert type(result) is type(wanted), (value, result, wanted)
        np.testing.assert_array_equal(A.toarray(), host.toarray())


@pytest.mark.any_platform
@settings(max_examples=40)
@given(places=st.lists(st.tuples(st.integers(-7, 6), st.integers(-5, 4), st.integers(1, 99)), max_size=30))
def test_the_last_value_of_a_place_counts(queue: cl.CommandQueue, places: list[tuple[int, int, int]]) -> None:
    given = matrix("float32", (7, 5), canonical=True)
    rows, columns, values = np.array(places, np.int64).reshape(-1, 3).T
    A, host = csr_array(given, queue=queue), given.toarray()
    perform("A[rows, columns] = values", A, rows=rows, columns=columns, values=values)
    host[rows, columns] = values
    np.testing.assert_array_equal(A.toarray(), host)


@pytest.mark.any_platform
def test_resizing_to_other_dimensions(queue: cl.CommandQueue) -> None:
    flat, wide = np.array([1, 0, 3, 4, 0], np.float32), np.arange(12, dtype=np.float32).reshape(3, 4) % 5
    for cls in (csr_array, coo_array):
        for start in (flat, wide):
            for lengths in ([1], [7], [(2, 2)], [3, (2, 2)], [20, (4, 5)], [(5, 6), 8, (3, 3)]):
                A, host = cls(start, queue=queue), getattr(sp, f"{cls.__name__}")(start)
                for shape in lengths:
                    try:
                        host.resize(shape)
                    except ValueError:  # of coo arrays whose entries lie outside of the new shape: ours leave them out
                        break
                    A.resize(shape)
                    assert A.shape == host.shape
                    np.testing.assert_array_equal(A.toarray(), host.toarray())
                    assert type(A).__name__ == cls.__name__
                    assert (A + A).nnz == host.nnz
    with pytest.raises(ValueError, match=r"^shape: must have 2 lengths, has 1; use reshape"):
        csc_array(wide, queue=queue).resize(3)
    with pytest.raises(ValueError, match=r"^shape: must have one or two lengths, has 3"):
        csr_array(wide, queue=queue).resize(1, 2, 3)


@pytest.mark.any_platform
def test_a_diagonal_of_a_wider_dtype(queue: cl.CommandQueue) -> None:
    """An array of values changes the dtype if entries are new; one value never does."""
    full = np.arange(1, 17, dtype=np.int16).reshape(4, 4)
    for form in (csr_array, csc_array, coo_array):
        for dense in (full, np.triu(full, 1)):
            for values in (np.array([1.5, 2.5, 3.5, 4.5], np.float32), np.array([70_000, 2, 3, 4], np.int32), np.float32(2.5)):
                host, A = getattr(sp, form.__name__)(dense), form(dense, queue=queue)
                with np.errstate(invalid="ignore"):
                    host.setdiag(values)
                A.setdiag(values)
                assert (A.dtype, A.format) == (host.dtype, host.format)
                if A.dtype != np.int16 or not np.ndim(values) or values.max() < 1000:
                    np.testing.assert_array_equal(A.toarray(), host.toarray())


@pytest.mark.any_platform
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_box_of_many_places_takes_memory_for_its_entries(queue: cl.CommandQueue, form: str) -> None:
    """Its 10^10 places would take 200 GB, as they do in SciPy."""
    rng, n = np.random.default_rng(5), 1 << 17
    near = rng.integers(0, 40, (2, 300))
    coordinates = np.concatenate([rng.integers(0, n, (2, 300)), near, [[n - 1], [n - 1]]], axis=1)
    given = sp.coo_array((rng.integers(1, 9, 601).astype(np.float32), tuple(coordinates)), shape=(n, n)).asformat(form)
    for rows, columns in ((slice(None, n - n // 4), slice(None)), (slice(n // 2, None, -1), slice(0, n, 2))):
        of_rows, of_columns = range(n)[rows], range(n)[columns]
        values = sp.coo_array(
            (np.ones(200, np.float32), tuple(rng.integers(0, 30, (2, 200)))), shape=(len(of_rows), len(of_columns))
        )
        values.sum_duplicates()
        A = getattr(clsparse_py, f"{form}_array")(given, queue=queue)
        A[rows, columns] = values
        there, result = (sp.coo_array(operand.tocsr()) for operand in (given, A.get()))
        wanted = dict(zip(zip(*there.coords, strict=True), there.data, strict=True))
        wanted |= {(i, j): 0 for i, j in wanted if i in of_rows and j in of_columns}
        wanted |= {(of_rows[i], of_columns[j]): v for i, j, v in zip(*values.coords, values.data, strict=True)}
        kept = {place: value for place, value in wanted.items() if value}
        got = {place: value for place, value in zip(zip(*result.coords, strict=True), result.data, strict=True) if value}
        assert got == kept
