"""SpTRANS: every method against SciPy bit by bit, the choice between them, kept plans, `A.T` and what keeps it, `x @ A`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_structure, random_values
from pairs import combinations
from platforms import PLATFORMS, has_fp64, make_queue, queue_on
from pyopencl import array as cl_array

from clsparse_py import csr_array, transpose, transpose_plan
from clsparse_py._build import programs
from clsparse_py._device.device import describe
from clsparse_py._operations.transpose import METHODS
from clsparse_py._operations.transpose.choose import Strategy
from clsparse_py._operations.transpose.methods import NOT_CANONICAL, allocate_result
from clsparse_py._operations.transpose.plan import attempt
from clsparse_py._run.launch import Chain

AXES: Mapping[str, Any] = {
    "method": list(METHODS),
    # Values are moved alone: what matters is their size.
    "dtype": ["uint8", "int16", "float32", "float64", "complex64", "complex128"],
    "index": ["int32", "int64"],
    "work_group": [None, 1, 7, 48, 64, "max"],
    "moved": ["values", "positions"],
    "device": ["cpu", "gpu"],
    "platform": list(PLATFORMS),
}


def legal(case: Mapping[str, Any]) -> bool:
    """The sort has tests of its own for its shapes; doubles need a device that has them."""
    if case["method"] == "binned" and case["work_group"] is not None:
        return False
    return case["dtype"] not in ("float64", "complex128") or has_fp64(case["platform"])


def symmetric_pattern() -> sp.csr_array:
    """Return a pattern with empty rows, short ones, and long ones that are cut."""
    rng = np.random.default_rng(3)
    n = 5000
    one = sp.random_array((n, n), density=0.004, rng=rng, format="lil")
    one[5, :] = 1  # a row, and a column, of all rows
    one[:, 400:430] = 0
    one[430:440, 430:440] = 1
    one[n - 1, : n // 2] = 1
    whole = sp.csr_array(one + one.T)
    return without_rows(whole, np.r_[0:3, 405:420])


def without_rows(matrix: sp.csr_array, rows: np.ndarray) -> sp.csr_array:
    """Return a matrix whose rows and columns of some numbers are empty."""
    kept = np.ones(matrix.shape[0])
    kept[rows] = 0
    diagonal = sp.dia_array((kept, 0), shape=matrix.shape)
    left = sp.csr_array(diagonal @ matrix @ diagonal)
    left.eliminate_zeros()
    left.sort_indices()
    return left


def any_pattern() -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Return columns that are neither sorted nor unique, row pointers, and a shape: rows, and columns, of many lengths."""
    rng = np.random.default_rng(4)
    lengths = rng.permutation([0] * 40 + [*range(20), 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 2100])
    indices, indptr = random_structure(lengths, 300, rng)
    # Columns of very uneven lengths, some of them empty.
    return (indices.astype(np.int64) ** 3 // 300**2).astype(np.int32), indptr, (lengths.size, 300)


SYMMETRIC = symmetric_pattern()
ANY = any_pattern()


def matrix_for(method: str, dtype: Any) -> sp.csr_array:
    """Return a matrix that a method takes, with values of a dtype."""
    if method == "gather":
        parts, shape = (SYMMETRIC.indices, SYMMETRIC.indptr), SYMMETRIC.shape
    else:
        parts, shape = ANY[:2], ANY[2]
    return sp.csr_array((random_values(dtype, parts[0].size, np.random.default_rng(5)), *parts), shape=shape)


def on_device(queue: cl.CommandQueue, matrix: sp.csr_array, index: Any = np.int32, **options: Any) -> csr_array:
    """Return a matrix whose index type is ``index``."""
    parts = matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)
    return csr_array(tuple(cl_array.to_device(queue, part) for part in parts), shape=matrix.shape, **options)


def assert_same(result: Any, wanted: sp.csr_array) -> None:
    """Check a matrix bit by bit."""
    assert isinstance(result, csr_array)
    assert result.shape == wanted.shape
    for name in ("data", "indices", "indptr"):
        part = getattr(result, name).get()
        np.testing.assert_array_equal(part, getattr(wanted, name))
        assert part.dtype == getattr(wanted, name).dtype or name != "data"
    assert result.has_sorted_indices
    assert result.has_canonical_format == result.get().has_canonical_format


@pytest.mark.parametrize("case", combinations(AXES, legal), ids=lambda case: "-".join(map(str, case.values())))
def test_method(case: dict[str, Any], take_as: Callable[..., None]) -> None:
    queue = queue_on(case["platform"])
    take_as(type=case["device"])
    matrix = matrix_for(case["method"], case["dtype"])
    A = on_device(queue, matrix, case["index"])
    wanted = matrix.T.tocsr()
    group = {"max": describe(queue.device).max_work_group, None: None}.get(case["work_group"], case["work_group"])
    options = {} if group is None else {"work_group": group}
    valued = case["moved"] == "values"
    for _ in range(2):
        moved = allocate_result(A, "", A.nnz, A.dtype if valued else A.indices.dtype)
        chain = Chain(queue, A.data, A.indices, A.indptr)
        pattern = METHODS[case["method"]](chain, A, valued, moved, **options)
        chain.finish(moved)
        np.testing.assert_array_equal(moved.get() if valued else matrix.data[moved.get()], wanted.data)
        np.testing.assert_array_equal(pattern.indices.get(), wanted.indices)
        np.testing.assert_array_equal(pattern.indptr.get(), wanted.indptr)
        assert pattern.indices.dtype == pattern.indptr.dtype == case["index"]


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("ordered", [True, False])
def test_transpose(queue: cl.CommandQueue, real: np.dtype, method: str, ordered: bool) -> None:
    if not ordered:
        queue = make_queue(queue, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    for kind in ("gather", "binned"):
        matrix = matrix_for(kind, real)
        A = on_device(queue, matrix)
        if method == "gather" != kind:
            with pytest.raises(ValueError, match=r"^method: gather does not take this matrix: it is 70 x 300"):
                transpose(A, method=method)
            continue
        result = transpose(A, method=method)
        assert_same(result, matrix.T.tocsr())
        assert result.queue is queue
        assert_same(transpose_plan(A, method=method)(), matrix.T.tocsr())
        # The same again, as far as values go: A is not written to.
        assert_same(transpose(result), sp.csr_array(matrix.T.tocsr().T.tocsr()))
        assert_same_parts(A, matrix)


def assert_same_parts(A: csr_array, matrix: sp.csr_array) -> None:
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(A, name).get(), getattr(matrix, name))


structures = st.integers(0, 9).flatmap(
    lambda n_cols: st.tuples(
        st.just(n_cols), st.lists(st.lists(st.integers(0, n_cols - 1), max_size=7) if n_cols else st.just([]), max_size=9)
    )
)


@settings(max_examples=40)
@given(structure=structures, mirrored=st.booleans(), wide=st.booleans())
def test_random_structures(structure: tuple[int, list[list[int]]], mirrored: bool, wide: bool) -> None:
    n_cols, rows = structure
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([column for row in rows for column in row], np.int32)
    matrix = sp.csr_array((np.arange(1, indices.size + 1, dtype=np.float32), indices, indptr), shape=(len(rows), n_cols))
    if mirrored:
        square = sp.csr_array((matrix.data, indices, indptr), shape=(len(rows), n_cols))
        square.resize((max(matrix.shape),) * 2)
        matrix = sp.csr_array(square + 2 * square.T)
        matrix.sort_indices()
    wanted = matrix.T.tocsr()
    for name in PLATFORMS:
        A = on_device(queue_on(name), matrix, np.int64 if wide else np.int32)
        for method in ("auto", *METHODS) if mirrored else ("auto", "binned", "atomics"):
            assert_same(transpose(A, method=method), wanted)
            assert_same(transpose_plan(A, method=method)(), wanted)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (4, 7), (7, 7), (1, 100_000), (100_000, 1)])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_no_entries(queue: cl.CommandQueue, shape: tuple[int, int], method: str) -> None:
    A = csr_array(sp.csr_array(shape, dtype=np.float32), queue=queue)
    plan = transpose_plan(A, method=method)
    for result in (transpose(A, method=method), plan(), A.T.tocsr()):
        assert (result.shape, result.nnz, result.dtype) == (shape[::-1], 0, np.float32)
        np.testing.assert_array_equal(result.indptr.get(), np.zeros(shape[1] + 1))
        assert result.has_canonical_format
    assert "no entries" in str(plan.explain())
    np.testing.assert_array_equal(np.ones(shape[0], np.float32) @ A, np.zeros(shape[1]))


@pytest.mark.parametrize("method", ["auto", "binned", "atomics"])
def test_rows_and_columns_of_all_entries(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(6)
    for shape in ((1, 70_000), (70_000, 1), (3, 40_000)):
        dense = rng.integers(0, 3, shape).astype(np.int32)
        matrix = sp.csr_array(dense)
        assert_same(transpose(csr_array(matrix, queue=queue), method=method), matrix.T.tocsr())


def test_a_symmetric_pattern_shares_what_is_known_of_it(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu")
    matrix = matrix_for("gather", np.float32)
    A = on_device(queue, matrix)
    plan = transpose_plan(A, method="gather")
    assert str(plan) == plan.explain().method == "gather"
    assert "the pattern is symmetric" in str(plan.explain())
    result = transpose(A, method="gather")
    assert result.indices is A.indices
    assert result.indptr is A.indptr
    assert result.spmv_plan() is A.spmv_plan()


@pytest.mark.parametrize("method", ["gather", "atomics"])
def test_facts_that_a_transposition_waits_for_are_kept_with_the_structure(
    queue: cl.CommandQueue, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = sp.diags_array([1.0, 2.0, 3.0], offsets=[-9, 0, 9], shape=(500, 500), format="csr", dtype=np.float32)
    A = on_device(queue, matrix)
    reads, read = [], Chain.read
    monkeypatch.setattr(Chain, "read", lambda *args: reads.append(args) or read(*args))
    for _ in range(3):
        assert_same(transpose(A, method=method), matrix.T.tocsr())
        # Values are no part of the structure.
        A.data, matrix = A.data * np.float32(2), matrix * np.float32(2)
    # `gather` reads what it found in a sample before it asks all entries.
    once = {"gather": 2, "atomics": 1}[method]
    assert len(reads) == once
    A.indices = A.indices.copy()
    assert_same(transpose(A, method=method), matrix.T.tocsr())
    assert len(reads) > once


def test_a_limit_is_held_against_facts_that_are_kept(queue: cl.CommandQueue) -> None:
    matrix = sp.random_array((300, 300), density=0.02, format="csr", dtype=np.float32, rng=np.random.default_rng(1))
    A = on_device(queue, sp.csr_array(matrix + matrix.T))
    longest = int(np.diff(A.get().T.tocsr().indptr).max())
    for limit in (longest - 1, longest, longest - 1):
        strategy = Strategy((("gather", 1024), ("atomics", limit)))
        chain, moved, why_not = Chain(queue, A.data), cl_array.empty_like(A.data), {}
        _, method = attempt(chain, A, True, moved, strategy, why_not)
        assert "only" in why_not["gather"]
        assert method == ("binned" if limit < longest else "atomics")
        chain.finish(moved)
        np.testing.assert_array_equal(moved.get(), A.get().T.tocsr().data)
    assert transpose_plan(A, method="gather").explain().method == "gather"


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("fault", ["", "unsorted", "duplicate"])
def test_gather_looks_itself_whether_a_format_is_canonical(
    queue: cl.CommandQueue, fault: str, kind: str, take_as: Callable[..., None]
) -> None:
    """Of a matrix that is vouched for nothing is known; the pattern stays symmetric, whatever the fault."""
    take_as(type=kind)
    n = 5000
    matrix = sp.diags_array([1.0, 2.0, 3.0], offsets=[-9, 0, 9], shape=(n, n), format="csr", dtype=np.float32)
    at = matrix.indptr[300] + 1
    if fault == "unsorted":
        matrix.indices[[at, at + 1]] = matrix.indices[[at + 1, at]]
    elif fault == "duplicate":
        matrix.indices[at] = matrix.indices[at - 1]
        matrix.indices[matrix.indptr[291] + 1] = 300
        matrix.indices[matrix.indptr[309] : matrix.indptr[309] + 2] = 300
    A = csr_array(
        tuple(cl_array.to_device(queue, array) for array in (matrix.data, matrix.indices, matrix.indptr)), (n, n), check=False
    )
    chain, moved, why_not = Chain(queue, A.data), cl_array.empty_like(A.data), {}
    with programs.recording() as asked:
        pattern, method = attempt(chain, A, True, moved, Strategy((("gather", 0),)), why_not)
    assert not any("check" in program.parameters.name for program in asked)
    assert A.facts is None
    chain.finish(moved)
    expected = matrix.T.tocsr()
    np.testing.assert_array_equal(moved.get(), expected.data)
    np.testing.assert_array_equal(pattern.indices.get(), expected.indices)
    assert method == ("binned" if fault else "gather")
    if fault:
        assert why_not["gather"] == NOT_CANONICAL  # the sample has another entry of that row
        with pytest.raises(ValueError, match="not sorted, or hold duplicates"):
            transpose(A, method="gather")


def test_a_missing_mirror_image_is_found_wherever_it_is(queue: cl.CommandQueue) -> None:
    matrix = matrix_for("gather", np.float32)
    rng = np.random.default_rng(8)
    coo = matrix.tocoo()
    for at in (0, matrix.nnz - 1, *rng.integers(0, matrix.nnz, 4)):
        kept = np.arange(matrix.nnz) != at
        if coo.row[at] == coo.col[at]:
            continue
        part = sp.csr_array((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=matrix.shape)
        A = on_device(queue, part)
        with pytest.raises(ValueError, match=r"^method: gather does not take this matrix: the pattern is not symmetric"):
            transpose(A, method="gather")
        assert_same(transpose(A), part.T.tocsr())
        assert transpose_plan(A).explain().method != "gather"


def test_gather_wants_sorted_rows_without_duplicates(queue: cl.CommandQueue) -> None:
    for columns in ([1, 0, 0, 1], [0, 0, 1, 1]):
        A = csr_array((np.ones(4, np.float32), np.array(columns), np.array([0, 2, 4])), shape=(2, 2), queue=queue)
        with pytest.raises(ValueError, match="its rows are not sorted, or hold duplicates"):
            transpose(A, method="gather")
        assert_same(transpose(A), A.get().T.tocsr())


def test_bad_input(queue: cl.CommandQueue) -> None:
    A = csr_array(np.eye(3, dtype=np.float32), queue=queue)
    for call in (transpose, transpose_plan):
        with pytest.raises(ValueError, match=r"^method: must be one of auto, gather, binned, atomics, is 'fast'"):
            call(A, method="fast")
        with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array, is numpy.ndarray"):
            call(np.eye(3))
    with pytest.raises(ValueError, match=r"^axes: must be None or \(1, 0\), are \(0, 1\)"):
        A.transpose((0, 1))


@pytest.mark.parametrize("method", ["auto", "binned", "atomics"])
def test_what_does_not_fit_in_memory_is_told(queue: cl.CommandQueue, method: str) -> None:
    parts = np.ones(2, np.float32), np.array([0, 1 << 40]), np.array([0, 1, 2, 2])
    A = csr_array(parts, shape=(3, (1 << 40) + 1), queue=queue)
    message = (
        r"the transposed of a 3 x 1099511627777 matrix: indptr: 1,099,511,627,778 entries of int64 need 8,796,093,022,224 bytes"
    )
    for call in (transpose, transpose_plan):
        with pytest.raises(MemoryError, match=message):
            call(A, method=method)


def test_a_second_call_builds_nothing(queue: cl.CommandQueue) -> None:
    def use(method: str) -> int:
        matrix = matrix_for(method, np.float32)
        transpose(on_device(queue, matrix), method=method)
        transpose_plan(on_device(queue, matrix), method=method)()
        assert on_device(queue, matrix).T.tocsr().nnz
        return len(list(programs.built()))

    for method in METHODS:
        assert use(method) == use(method)


# ---- plans


@pytest.fixture
def host() -> sp.csr_array:
    return matrix_for("binned", np.float32)


def test_a_plan_takes_new_values(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    rng = np.random.default_rng(9)
    A = on_device(queue, host)
    plan = transpose_plan(A)
    assert plan.matches(A)
    assert plan.shape == (host.shape[1], host.shape[0])
    first = plan()
    assert_same(first, host.T.tocsr())
    for dtype in ("int8", "uint16", "complex64", "bool"):
        values = random_values(dtype, host.nnz, rng)
        other = sp.csr_array((values, host.indices, host.indptr), shape=host.shape).T.tocsr()
        padded = cl_array.to_device(queue, np.concatenate((values[:3], values)))
        twice = cl_array.to_device(queue, np.repeat(values, 2))
        for given_values in (values, list(values), cl_array.to_device(queue, values), padded[3:], twice[::2]):
            result = plan(given_values)
            np.testing.assert_array_equal(result.data.get(), other.data)
        assert_same(plan(values), other)
    assert first.indices is plan(values).indices is plan.indices
    assert first.spmv_plan() is plan(host.data).spmv_plan()
    big = host.data.astype(">f4")
    assert_same(plan(big), host.T.tocsr())


def test_a_plan_writes_to_out(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    plan = transpose_plan(A)
    out = plan()
    data, kept = out.data, out._transposed()
    assert plan(host.data * 2, out=out) is out
    assert out.data is data
    np.testing.assert_array_equal(out.data.get(), 2 * host.T.tocsr().data)
    assert out._transposed() is not kept
    for given_out, error, message in (
        (data, TypeError, r"^out: must be a csr_array that this plan returned, is DeviceArray"),
        (transpose(A), ValueError, r"^out: must be a matrix that this plan returned, has another structure"),
        (plan(host.data.astype(np.int32)), TypeError, r"^out: must have the dtype of data, float32, has int32"),
    ):
        with pytest.raises(error, match=message):
            plan(host.data, out=given_out)
    with pytest.raises(ValueError, match=r"^out: overlaps data, which is read while out is written"):
        plan(out.data, out=out)


def test_bad_values_for_a_plan(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    plan = transpose_plan(on_device(queue, host))
    context = cl.Context([queue.device])  # quirk 9
    other = cl.CommandQueue(context, queue.device)
    for values, error, message in (
        (host.data[1:], ValueError, rf"^data: must have the {host.nnz} entries of A, has shape \({host.nnz - 1},\)"),
        (host.data[None], ValueError, rf"^data: must have the {host.nnz} entries of A"),
        (host.data.astype(np.float16), TypeError, r"^data: dtype float16 is not supported"),
        (cl_array.to_device(other, host.data), ValueError, r"^data: lives in another context"),
    ):
        with pytest.raises(error, match=message):
            plan(values)


def test_a_plan_says_what_ran_and_why(queue: cl.CommandQueue, host: sp.csr_array, decided_by: Callable[..., None]) -> None:
    decided_by(describe(queue.device), {"transpose": {"any": {"method": {"take": "gather:0 binned"}}}})
    plan = transpose_plan(on_device(queue, host))
    explanation = plan.explain()
    assert explanation.method == str(plan) != "gather"
    assert [verdict.method for verdict in explanation.verdicts] == list(METHODS)
    assert [verdict.taken for verdict in explanation.verdicts].count(True) == 1
    assert explanation.launches > 0
    text = str(explanation)
    assert text.lstrip().startswith(f"SpTRANS: {plan}. Launches: {explanation.launches}")
    assert "it is 70 x 300" in text


# ---- A.T


def test_the_transposed_is_over_the_same_arrays(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    with programs.recording() as built:
        for result in (A.T, A.transpose(), A.transpose((1, 0)), A.T.T, A.T.T.T):
            assert result.shape == (host.shape if isinstance(result, csr_array) else host.shape[::-1])
            assert (result.data, result.indices, result.indptr) == (A.data, A.indices, A.indptr) or result.data is A.data
    assert not built
    own = A.transpose(copy=True)
    own.data.fill(0)
    assert_same(A.T.tocsr(), host.T.tocsr())
    assert_same(A.tocsc().T, sp.csr_array(host.tocsc().T))


def test_products_keep_the_transposed(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    x = np.arange(host.shape[0], dtype=np.float32) % 5
    wanted = host.T @ x
    for product in (lambda: A.T @ x, lambda: x @ A, lambda: A.rmatvec(x), lambda: A.T.T.T @ x):
        np.testing.assert_allclose(product(), wanted, rtol=1e-4)
        kept = A._transposed()
    assert A.T._as_csr() is kept
    assert_same(kept, host.T.tocsr())
    assert_same(A.T.tocsr(), host.T.tocsr())
    assert A.T.tocsr().data is not kept.data


def test_new_values_renew_the_transposed(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    x = np.arange(host.shape[0], dtype=np.float32) % 5
    first = A.T
    A.T @ x
    for factor in (2, 3):
        A.data = cl_array.to_device(queue, host.data * np.float32(factor))
        assert_same(A._transposed(), (host * np.float32(factor)).T.tocsr())
    # By a plan that is kept, and with it SpMV's.
    assert A._transposed().indices is A.transpose_plan().indices
    plan = A._transposed().spmv_plan()
    A.data *= np.float32(2)
    assert_same(A._transposed(), (host * np.float32(6)).T.tocsr())
    assert A._transposed().spmv_plan() is plan
    A.data = cl_array.to_device(queue, host.data.astype(np.complex64) * 1j)
    np.testing.assert_allclose(A.T @ x, 1j * (host.T @ x), rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(first @ x, host.T @ x, rtol=1e-4)
    # Written to in place, with no notice and then with it.
    A.data.fill(1)
    A.data = A.data
    np.testing.assert_array_equal(A.T.tocsr().data.get(), 1)


def test_a_new_structure_drops_the_transposed(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    first, plan = A.T, A.transpose_plan()
    columns = (host.shape[1] - 1 - host.indices).astype(np.int32)
    A.indices = cl_array.to_device(queue, columns)
    other = sp.csr_array((host.data, columns, host.indptr), shape=host.shape)
    assert_same(A.T.tocsr(), other.T.tocsr())
    assert not plan.matches(A)
    assert A.transpose_plan() is not plan
    assert_same(first.tocsr(), host.T.tocsr())
    broken = columns.copy()
    broken[7] = host.shape[1]
    A.indices = cl_array.to_device(queue, broken)
    for use in (A.T.tocsr, lambda: transpose(A), lambda: transpose_plan(A), lambda: np.ones(host.shape[0]) @ A):
        with pytest.raises(ValueError, match=r"^indices: must lie in \[0, 300\), 1 of"):
            use()


def test_what_is_set_on_the_transposed_is_its_own(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    T = A.T
    T.data = np.ones(host.nnz, np.float32)
    T.sum_duplicates()
    np.testing.assert_array_equal(A.data.get(), host.data)
    np.testing.assert_array_equal(A.indices.get(), host.indices)


def test_a_structure_that_was_vouched_for(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host, check=False)
    assert_same(A.T.tocsr(), host.T.tocsr())


# ---- x @ A


@pytest.mark.parametrize("kind", ["gather", "binned"])
def test_product_from_the_left(queue: cl.CommandQueue, kind: str) -> None:
    host = matrix_for(kind, np.int32)
    A = on_device(queue, host)
    rng = np.random.default_rng(10)
    n = host.shape[0]
    for x in (rng.integers(-3, 4, n), rng.integers(-3, 4, (3, n)), rng.integers(-3, 4, (n, 4)).T, rng.integers(0, 3, (1, n))):
        x = x.astype(np.int32) if x.flags.c_contiguous else np.asfortranarray(x.astype(np.int32))
        result = x @ A
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, x @ host, strict=True)
        device = cl_array.to_device(queue, x)
        result = device @ A
        assert isinstance(result, cl_array.Array)
        np.testing.assert_array_equal(result.get(), x @ host)
        np.testing.assert_array_equal(list(map(list, x)) @ A if x.ndim == 2 else list(x) @ A, x @ host)
    padded = cl_array.to_device(queue, np.arange(n + 5, dtype=np.int32))
    np.testing.assert_array_equal((padded[5:] @ A).get(), np.arange(5, n + 5) @ host)
    np.testing.assert_array_equal(A.T @ np.ones(n, np.int32), host.T @ np.ones(n, np.int32))


def test_what_cannot_be_multiplied_from_the_left(queue: cl.CommandQueue, host: sp.csr_array) -> None:
    A = on_device(queue, host)
    for x, message in (
        (np.ones(71), r"^x: must have 70 entries, as A is 70 x 300, has shape \(71,\)"),
        (np.ones((70, 3)), r"^x: must have 70 columns, as A is 70 x 300, has shape \(70, 3\)"),
        (np.ones((2, 2, 70)), r"^x: must be an array of one or two dimensions"),
    ):
        for operand in (x, cl_array.to_device(queue, x.astype(np.float32))):
            with pytest.raises(ValueError, match=message):
                operand @ A
    with pytest.raises(ValueError, match=r"^x: must be an array of one or two dimensions, is a scalar of type int"):
        3 @ A
    with pytest.raises(ValueError, match=r"^B: must have 300 rows, as A is 70 x 300, is 70 x 300"):
        host @ A
