"""What callers meet: operators, plans and what they are given, phases, queues, threads, operands that stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from platforms import make_queue
from problems import assert_product, device_matrix, pattern_product, rows_of
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import csr_array, describe, min_plus, spgemm, spgemm_plan, transpose
from clsparse_py._build import programs
from clsparse_py._operations.spgemm import METHODS, SpgemmPlan, count
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain

Operands = tuple[sp.csr_array, sp.csr_array]


@pytest.fixture
def pair() -> Operands:
    """Return operands whose product has rows of one length and empty ones: each bin of a method has kernels to be built."""
    rng = np.random.default_rng(7)
    return rows_of(rng.permutation([0] * 9 + [4] * 81), 60, rng, np.float32), rows_of([4] * 60, 80, rng, np.float32)


def bytes_of(matrix: csr_array) -> tuple[bytes, ...]:
    return tuple(part.get().tobytes() for part in (matrix.indptr, matrix.indices, matrix.data))


# ---- operators


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array", "dia_array"])
def test_operators_take_scipys_matrices_on_both_sides(queue: cl.CommandQueue, pair: Operands, kind: str) -> None:
    A, B = pair
    left, right = (csr_array(operand, queue=queue) for operand in pair)
    assert_product(left @ right, A, B)
    for result in (left @ getattr(sp, kind)(B), getattr(sp, kind)(A) @ right):
        assert result.queue is queue
        assert_product(result.tocsr(), A, B)


def test_operators_find_operands_that_do_not_fit(queue: cl.CommandQueue, pair: Operands) -> None:
    left = csr_array(pair[0], queue=queue)
    for product in (lambda: left @ left, lambda: left @ pair[0], lambda: pair[0] @ left):
        with pytest.raises(ValueError, match=r"^B: must have 60 rows, as A is 90 x 60, is 90 x 60"):
            product()


def test_names(queue: cl.CommandQueue, pair: Operands) -> None:
    left, right = (csr_array(operand, queue=queue) for operand in pair)
    plan = clsparse_py.spgemm_plan(left, right)
    assert isinstance(plan, SpgemmPlan)
    assert repr(plan).startswith(f"<SpgemmPlan of a 90 x 80 product with {plan.nnz} entries on ")


def test_squares_of_the_transposed(queue: cl.CommandQueue, pair: Operands) -> None:
    A = csr_array(pair[0], queue=queue)
    assert_product((A.T @ A).tocsr(), pair[0].T.tocsr(), pair[0])
    assert_product(A @ A.T, pair[0], pair[0].T.tocsr())


# ---- dtypes and widths


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("int8", "float32"),
        ("float32", "int64"),
        ("bool", "uint8"),
        ("complex64", "float32"),
        ("int32", "uint32"),
        ("float32", "float64"),
        ("float64", "complex64"),
    ],
)
def test_dtypes_are_promoted_as_scipy_does(queue: cl.CommandQueue, pair: Operands, left: str, right: str) -> None:
    A, B = pair[0].astype(left), pair[1].astype(right)
    if np.result_type(A.dtype, B.dtype).name in ("float64", "complex128") and not describe(queue.device).fp64:
        pytest.skip("no double precision")
    C = csr_array(A, queue=queue) @ csr_array(B, queue=queue)
    assert C.dtype == (A @ B).dtype
    assert_product(C, A, B)


@pytest.mark.parametrize(("left", "right"), [(np.int32, np.int64), (np.int64, np.int32), (np.int64, np.int64)])
def test_indices_of_both_widths(queue: cl.CommandQueue, pair: Operands, left: type, right: type) -> None:
    A, B = pair
    plan = spgemm_plan(device_matrix(queue, A, left), device_matrix(queue, B, right))
    assert plan.indices.dtype == plan.indptr.dtype == np.int64
    assert_product(plan(), A, B)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_offsets_of_64_bits(queue: cl.CommandQueue, pair: Operands, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C has them where it has more than 2^31 entries; made here by a lower limit. Its operands keep theirs."""
    A, B = pair
    nnz = pattern_product(A, B).nnz
    for limit, width in ((nnz - 1, np.int64), (nnz, np.int32)):
        monkeypatch.setattr(count, "INT32_MAX", limit)
        plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method=method)
        assert plan.indices.dtype == plan.indptr.dtype == width
        # With a limit it is made through the phases, as no product of small matrices has so many entries.
        operands = device_matrix(queue, A), device_matrix(queue, B)
        for C in (plan(), plan(2 * A.data), spgemm(*operands, method=method, memory_limit=1 << 30)):
            assert C.indptr.dtype == width
            np.testing.assert_array_equal(C.indices.get(), pattern_product(A, B).indices)
        assert_product(plan(), A, B)


# ---- plans


def test_a_plan_knows_its_structure_and_its_work(queue: cl.CommandQueue, pair: Operands) -> None:
    A, B = pair
    plan = spgemm_plan(csr_array(A, queue=queue), csr_array(B, queue=queue))
    wanted = pattern_product(A, B)
    assert (plan.shape, plan.nnz) == (wanted.shape, wanted.nnz)
    np.testing.assert_array_equal(plan.indptr.get(), wanted.indptr)
    np.testing.assert_array_equal(plan.indices.get(), wanted.indices)
    assert plan.n_products == np.diff(B.indptr)[A.indices].sum()
    explanation = plan.explain()
    assert explanation.expansion_factor == pytest.approx(plan.n_products / A.nnz)
    assert explanation.compression_ratio == pytest.approx(plan.n_products / plan.nnz)
    printed = str(explanation)
    assert f"{plan.n_products:,} products, {plan.nnz:,} entries" in " ".join(printed.split())
    for bin_ in explanation.bins:
        assert bin_.method in printed


def test_results_of_a_plan_share_its_structure_and_plans(queue: cl.CommandQueue, pair: Operands) -> None:
    plan = spgemm_plan(*(csr_array(operand, queue=queue) for operand in pair))
    first, second = plan(), plan()
    assert first.indices is second.indices is plan.indices
    assert first.data.base_data != second.data.base_data
    assert first.spmv_plan() is second.spmv_plan()


def test_a_plan_reads_nothing_and_builds_nothing(queue: cl.CommandQueue, pair: Operands, monkeypatch: pytest.MonkeyPatch) -> None:
    A, B = pair
    plan = spgemm_plan(csr_array(A, queue=queue), csr_array(B, queue=queue))
    plan()
    a, b = (cl_array.to_device(queue, 2 * operand.data) for operand in pair)

    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Chain, "read", refuse)
    monkeypatch.setattr(Chain, "read_later", refuse)
    monkeypatch.setattr(programs, "render", refuse)
    C = plan(a, b)
    plan(a, b, out=C)
    monkeypatch.undo()
    assert_product(
        C, sp.csr_array((2 * A.data, A.indices, A.indptr), A.shape), sp.csr_array((2 * B.data, B.indices, B.indptr), B.shape)
    )


def test_a_plan_keeps_the_values_that_it_was_made_with(queue: cl.CommandQueue, pair: Operands) -> None:
    A, B = pair
    left, right = csr_array(A, queue=queue), csr_array(B, queue=queue)
    plan = spgemm_plan(left, right)
    left.data = cl_array.to_device(queue, 3 * A.data)
    assert_product(plan(), A, B)
    assert_product(plan(left.data), sp.csr_array((3 * A.data, A.indices, A.indptr), A.shape), B)
    doubled = sp.csr_array((2 * B.data, B.indices, B.indptr), B.shape)
    assert_product(plan(b_data=2 * B.data), A, doubled)


def test_a_plan_outlives_its_operands(queue: cl.CommandQueue, pair: Operands) -> None:
    A, B = pair
    plan = spgemm_plan(csr_array(A, queue=queue, copy=True), csr_array(B, queue=queue, copy=True))
    assert_product(plan(A.data, B.data), A, B)
    left = csr_array(A, queue=queue, copy=True)
    plan = spgemm_plan(left, transpose(left))
    left.indices = left.indices.copy()
    left.indptr = left.indptr.copy()
    del left
    assert_product(plan(), A, A.T.tocsr())


@pytest.mark.parametrize("semiring", [plus_times, min_plus])
def test_unsorted_and_duplicated_operands_with_new_values(queue: cl.CommandQueue, semiring: Any) -> None:
    """Values come in the order of the entries as they were given. Duplicates are summed, whatever the semiring."""
    rng = np.random.default_rng(0)
    A, B = (rough((40, 30), 5, rng), rough((30, 50), 5, rng))
    plan = spgemm_plan(*(device_matrix(queue, matrix) for matrix in (A, B)), semiring=semiring)
    for _ in range(2):
        a, b = (rng.integers(-4, 5, matrix.nnz).astype(np.float32) for matrix in (A, B))
        canonical = []
        for matrix, data in ((A, a), (B, b)):
            other = sp.csr_array((data.copy(), matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
            other.sum_duplicates()
            canonical.append(other)
        assert_product(plan(a, cl_array.to_device(queue, b)), *canonical, semiring)


def rough(shape: tuple[int, int], length: int, rng: np.random.Generator) -> sp.csr_array:
    """Return a matrix with unsorted and duplicated columns."""
    indptr = np.concatenate(([0], np.cumsum(rng.integers(0, 2 * length, shape[0])))).astype(np.int32)
    indices = rng.integers(0, shape[1], indptr[-1]).astype(np.int32)
    return sp.csr_array((rng.integers(1, 5, indptr[-1]).astype(np.float32), indices, indptr), shape=shape)


# ---- phases


def test_planning_computes_no_values(queue: cl.CommandQueue, pair: Operands) -> None:
    """The first product makes the columns; asking for them makes one."""
    A, B = (csr_array(operand, queue=queue) for operand in pair)
    firsts: tuple[Callable[[SpgemmPlan], Any], ...] = (lambda plan: plan(), lambda plan: plan.indices)
    for first in firsts:
        with programs.recording() as planned:
            plan = spgemm_plan(A, B)
        with programs.recording() as made:
            first(plan)
        phases = [
            {program.parameters.types.phase for program in built if hasattr(program.parameters, "types")}
            for built in (planned, made)
        ]
        assert phases == [{"symbolic"}, {"numeric"}]
        np.testing.assert_array_equal(plan.indices.get(), pattern_product(*pair).indices)
        assert_product(plan(), *pair)


def test_the_time_of_each_phase(queue: cl.CommandQueue, pair: Operands) -> None:
    C, seconds = spgemm(*(csr_array(operand, queue=queue) for operand in pair), profile=True)
    assert_product(C, *pair)
    assert {"analysis", "symbolic", "allocation", "numeric"} <= set(seconds)
    assert all(duration >= 0 for duration in seconds.values())


# ---- operands stay as they are


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_operands_do_not_change(queue: cl.CommandQueue, pair: Operands, method: str) -> None:
    rng = np.random.default_rng(0)
    # Operands that are not canonical are copied before any method sees them.
    for A, B in (pair, (rough((40, 30), 5, rng), rough((30, 50), 5, rng)))[: 2 if method == "auto" else 1]:
        left, right = device_matrix(queue, A), device_matrix(queue, B)
        parts = [(matrix.data, matrix.indices, matrix.indptr) for matrix in (left, right)]
        before = bytes_of(left), bytes_of(right)
        plan = spgemm_plan(left, right, method=method)
        plan(2 * A.data, 2 * B.data)
        assert (bytes_of(left), bytes_of(right)) == before
        for matrix, arrays in zip((left, right), parts, strict=True):
            assert all(now is then for now, then in zip((matrix.data, matrix.indices, matrix.indptr), arrays, strict=True))


def test_a_matrix_that_begins_inside_its_buffers(queue: cl.CommandQueue, pair: Operands) -> None:
    A, B = pair

    def shifted(part: np.ndarray) -> cl_array.Array:
        return cl_array.to_device(queue, np.concatenate((part[:3], part)))[3:]

    left, right = (
        csr_array(tuple(map(shifted, (operand.data, operand.indices, operand.indptr))), shape=operand.shape) for operand in pair
    )
    plan = spgemm_plan(left, right)
    assert_product(plan(), A, B)
    assert_product(plan(shifted(A.data), shifted(B.data)), A, B)


# ---- queues and threads


@pytest.mark.parametrize("properties", ["out of order", "profiling"])
def test_queues_of_every_kind(queue: cl.CommandQueue, pair: Operands, properties: str) -> None:
    kinds = cl.command_queue_properties
    bits = {"out of order": kinds.OUT_OF_ORDER_EXEC_MODE_ENABLE, "profiling": kinds.PROFILING_ENABLE}[properties]
    other = make_queue(queue, bits)
    A, B = pair
    for method in ("auto", *METHODS):
        left, right = csr_array(A, queue=other), csr_array(B, queue=other)
        plan = spgemm_plan(left, right, method=method)
        results = [plan(cl_array.to_device(other, i * A.data)) for i in range(1, 4)]
        for i, C in enumerate(results, 1):
            assert C.queue is other
            assert_product(C, sp.csr_array((i * A.data, A.indices, A.indptr), A.shape), B)


def test_duplicates_on_a_queue_without_order(queue: cl.CommandQueue) -> None:
    other = make_queue(queue, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    rng = np.random.default_rng(0)
    A, B = rough((40, 30), 12, rng), rough((30, 50), 12, rng)
    canonical = A.copy(), B.copy()
    for matrix in canonical:
        matrix.sum_duplicates()
    # Which command comes first is chance: a missing event shows in some rounds alone.
    for _ in range(20):
        assert_product(csr_array(A, queue=other) @ csr_array(B, queue=other), *canonical)


def test_operands_on_two_queues(queue: cl.CommandQueue, pair: Operands) -> None:
    other = cl.CommandQueue(queue.context, queue.device)
    A, B = pair
    right = csr_array(B, queue=other)
    right.data = right.data + right.data - right.data  # still being computed on `other`
    C = csr_array(A, queue=queue) @ right
    assert C.queue is queue
    assert_product(C, A, B)


def test_threads_plan_and_multiply_at_once(queue: cl.CommandQueue, pair: Operands) -> None:
    A, B = pair
    left, right = csr_array(A, queue=queue), csr_array(B, queue=queue)
    shared = spgemm_plan(left, right)
    wanted = bytes_of(shared())
    wrong: list[Any] = []
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        try:
            queue_of_its_own = cl.CommandQueue(queue.context, queue.device)
            own = [csr_array(operand, queue=queue_of_its_own) for operand in pair]
            wrong.extend(1 for _ in range(10) if bytes_of(own[0] @ own[1]) != wanted)
            wrong.extend(2 for _ in range(10) if bytes_of(left @ right) != wanted)
            wrong.extend(3 for _ in range(10) if bytes_of(shared(A.data, B.data)) != wanted)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_every_method_is_described() -> None:
    root = Path(__file__).parents[3]
    page, readme = ((root / name).read_text() for name in ("docs/spgemm.md", "README.md"))
    assert [method for method in METHODS if f"\n| `{method}` |" not in page] == []
    assert "eleven methods" in " ".join(readme.split())
    assert len(METHODS) == 11
