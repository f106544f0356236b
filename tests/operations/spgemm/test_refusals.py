"""What `spgemm` refuses, and what it takes though one might not think so: it never harms its operands."""

from __future__ import annotations

import gc
import re
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, pattern_product, random_matrix
from pyopencl import array as cl_array

from clsparse_py import csr_array, free_memory, memory_info, min_plus, plus_times, spgemm, spgemm_plan
from clsparse_py._memory import pool
from clsparse_py._operations.spgemm import METHODS
from clsparse_py._operations.spgemm.operands import Operands
from clsparse_py._precision.semiring import SEMIRINGS

pytestmark = pytest.mark.any_platform

Pair = tuple[sp.csr_array, sp.csr_array]
ALL = ("auto", *METHODS)


@pytest.fixture
def pair() -> Pair:
    rng = np.random.default_rng(8)
    return random_matrix((50, 40), 4, rng, np.float32), random_matrix((40, 60), 4, rng, np.float32)


@pytest.fixture
def on_device(queue: cl.CommandQueue, pair: Pair) -> tuple[csr_array, csr_array]:
    return device_matrix(queue, pair[0]), device_matrix(queue, pair[1])


# ---- wrong arguments


@pytest.mark.parametrize("function", [spgemm, spgemm_plan])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"A": 3}, TypeError, r"^A: must be a clsparse_py.csr_array, is int"),
        ({"A": None}, TypeError, r"^A: must be a clsparse_py.csr_array, is NoneType"),
        ({"A": np.ones((3, 3))}, TypeError, r"^A: must be a clsparse_py.csr_array, is numpy.ndarray"),
        ({"B": np.ones((40, 3))}, TypeError, r"^B: must be a csr_array or a SciPy sparse matrix, is ndarray"),
        ({"B": "B"}, TypeError, r"^B: must be a csr_array or a SciPy sparse matrix, is str"),
        ({"B": sp.csr_array((41, 3))}, ValueError, r"^B: must have 40 rows, as A is 50 x 40, is 41 x 3"),
        ({"method": "magic"}, ValueError, r"^method: must be one of auto, .*reg-merge.*, is 'magic'"),
        ({"method": None}, ValueError, r"^method: must be one of auto, .*, is None"),
        ({"method": ["auto"]}, ValueError, r"^method: must be one of auto"),
        ({"semiring": "min_plus"}, TypeError, r"^semiring: must be one of clsparse_py._precision.semiring, is str"),
        ({"memory_limit": "1G"}, TypeError, r"^memory_limit: must be an integer or None, is str"),
        ({"memory_limit": 1.5}, TypeError, r"^memory_limit: must be an integer or None, is float"),
        ({"memory_limit": True}, TypeError, r"^memory_limit: must be an integer or None, is bool"),
        ({"memory_limit": 0}, ValueError, r"^memory_limit: must be at least 1, is 0"),
        ({"max_nnz": -1}, ValueError, r"^max_nnz: must be at least 0, is -1"),
        ({"max_nnz": "many"}, TypeError, r"^max_nnz: must be an integer or None, is str"),
    ],
    ids=str,
)
def test_arguments(on_device: Any, function: Any, arguments: dict[str, Any], error: type, message: str) -> None:
    operands = {"A": on_device[0], "B": on_device[1]}
    with pytest.raises(error, match=message):
        function(**{**operands, **arguments})


def test_semirings_that_a_dtype_does_not_have(queue: cl.CommandQueue, pair: Pair) -> None:
    A, B = (csr_array(operand.astype(np.complex64), queue=queue) for operand in pair)
    for semiring in (semiring for semiring in SEMIRINGS.values() if semiring.ordered):
        with pytest.raises(TypeError, match=rf"{semiring.name}.*complex64"):
            spgemm(A, B, semiring=semiring)


def test_contexts_that_differ(queue: cl.CommandQueue, pair: Pair, on_device: Any) -> None:
    context = cl.Context([queue.device])  # kept: not every queue keeps its own
    other = csr_array(pair[1], queue=cl.CommandQueue(context))
    with pytest.raises(ValueError, match=r"^B: lives in another context than A"):
        spgemm(on_device[0], other)
    plan = spgemm_plan(*on_device)
    with pytest.raises(ValueError, match=r"^b_data: .*another context"):
        plan(b_data=other.data)


def test_a_structure_that_became_wrong(queue: cl.CommandQueue, on_device: Any) -> None:
    A, B = on_device
    columns = A.indices.get()
    columns[5] = 1000
    A.indices = cl_array.to_device(queue, columns)
    with pytest.raises(ValueError, match=r"^indices: must lie in \[0, 40\), 1 of"):
        spgemm(A, B)
    with pytest.raises(ValueError, match=r"^indices: must lie in \[0, 40\), 1 of"):
        A @ B


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"a_data": np.ones(3, np.float32)}, ValueError, r"^a_data: must have the \d+ entries of the matrix, has shape \(3,\)"),
        (
            {"b_data": np.ones((2, 2), np.float32)},
            ValueError,
            r"^b_data: must have the \d+ entries of the matrix, has shape \(2, 2\)",
        ),
        ({"a_data": None, "b_data": "x"}, TypeError, r"^b_data: dtype <U1 is not supported"),
        ({"a_data": np.complex64}, TypeError, r"^a_data: must have the dtype that was planned for, float32, has complex64"),
        ({"b_data": np.float16}, TypeError, r"^b_data: dtype float16 is not supported"),
        ({"out": 3}, TypeError, r"^out: must be a csr_array that this plan returned, is int"),
    ],
    ids=str,
)
def test_what_a_plan_refuses(on_device: Any, pair: Pair, arguments: dict[str, Any], error: type, message: str) -> None:
    plan = spgemm_plan(*on_device)
    sizes = {"a_data": pair[0].nnz, "b_data": pair[1].nnz}
    given = {
        name: np.ones(sizes[name], argument) if isinstance(argument, type) else argument for name, argument in arguments.items()
    }
    with pytest.raises(error, match=message):
        plan(**given)


def test_out_is_a_result_of_the_plan(queue: cl.CommandQueue, pair: Pair, on_device: Any) -> None:
    plan, other = spgemm_plan(*on_device), spgemm_plan(*on_device)
    for wrong in (other(), csr_array(pattern_product(*pair).astype(np.float32), queue=queue)):
        with pytest.raises(ValueError, match=r"^out: must be a matrix that this plan returned"):
            plan(out=wrong)
    wide = plan()
    wide.data = wide.data.astype(np.int32)
    with pytest.raises(TypeError, match=r"^out: must have the dtype of the product, float32, has int32"):
        plan(out=wide)
    twice = csr_array(sp.eye_array(9, format="csr", dtype=np.float32), queue=queue)
    square = spgemm_plan(twice, twice)
    C = square()
    with pytest.raises(ValueError, match=r"^out: overlaps a_data, which is read while out is written"):
        square(C.data, out=C)


# ---- limits


def test_max_nnz_refuses_before_anything_is_allocated(on_device: Any, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    nnz = pattern_product(*pair).nnz
    assert spgemm(*on_device, max_nnz=nnz).nnz == nnz

    new_part = Operands.new_part

    def only_pointers(self: Operands, part: str, n: int, dtype: Any) -> Any:
        assert part == "indptr"
        return new_part(self, part, n, dtype)

    monkeypatch.setattr(Operands, "new_part", only_pointers)
    with pytest.raises(ValueError, match=rf"^max_nnz: the product has {nnz:,} entries, more than {nnz - 1:,}"):
        spgemm(*on_device, max_nnz=nnz - 1)
    with pytest.raises(ValueError, match=r"^max_nnz: "):
        spgemm_plan(*on_device, max_nnz=0)


@pytest.mark.parametrize("method", ALL)
def test_a_small_memory_limit_is_enough_or_says_what_is(queue: cl.CommandQueue, method: str) -> None:
    """Slices fit it, or the message says how much one row needs; nothing in between."""
    rng = np.random.default_rng(3)
    A, B = random_matrix((400, 300), 12, rng, np.float32), random_matrix((300, 500), 40, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    refused: dict[int, str] = {}
    for limit in (1, 1000, 30_000, 1 << 20, 1 << 26):
        try:
            C = spgemm(left, right, method=method, memory_limit=limit)
        except MemoryError as error:
            refused[limit] = str(error)
            continue
        assert_product(C, A, B)
    assert list(refused) == [1, 1000, 30_000, 1 << 20][: len(refused)]
    assert all(re.search(r"memory_limit.* needs? [\d,]+ bytes", message) for message in refused.values()), refused


# ---- allocation that fails


class Failing:
    """Allocates so many times, and then not any more."""

    def __init__(self, context: cl.Context, successes: int) -> None:
        self.context, self.left = context, successes

    def __call__(self, size: int) -> cl.Buffer:
        if self.left == 0:
            raise cl.MemoryError("there is no more")
        self.left -= 1
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)


def test_allocation_of_the_result_fails(queue: cl.CommandQueue, pair: Pair) -> None:
    """At each allocation of C in turn; the operands are as they were, and the product succeeds afterwards."""
    A, B = pair
    for successes in range(3):
        left, right = device_matrix(queue, A), device_matrix(queue, B)
        allocator = Failing(queue.context, successes)
        left.data.allocator = allocator
        with pytest.raises(MemoryError, match=r"the 50 x 60 product: [\d,]+ entries of \w+ need [\d,]+ bytes"):
            spgemm(left, right)
        allocator.left = 10
        assert_product(spgemm(left, right), A, B)
        np.testing.assert_array_equal(left.data.get(), A.data)
    plan = spgemm_plan(left, right)
    allocator.left = 0
    with pytest.raises(MemoryError, match=r"values of the 50 x 60 product"):
        plan()
    allocator.left = 1
    assert_product(plan(), A, B)


def test_kept_workspace_gives_way_to_the_result(queue: cl.CommandQueue, pair: Pair) -> None:
    """C is allocated once what earlier calls kept is given back."""
    A, B = pair
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    spgemm(left, right)

    def allocate(size: int) -> cl.Buffer:
        if memory_info(queue).pooled:
            raise cl.MemoryError("there is no more")
        return cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size)

    plan = spgemm_plan(left, right)
    assert memory_info(queue).pooled
    plan._allocator = allocate
    assert_product(plan(), A, B)


@pytest.mark.parametrize("method", ALL)
def test_allocation_of_the_workspace_fails(
    queue: cl.CommandQueue, pair: Pair, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each piece of workspace in turn: the message is clear, nothing is kept, and the next product is right."""
    A, B = pair
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    assert left.has_canonical_format
    assert right.has_canonical_format
    spgemm(left, right, method=method)
    state = {"left": 0}

    given = pool._create

    def create(*arguments: Any) -> cl.Buffer:
        if state["left"] == 0:
            raise cl.MemoryError("there is no more")
        state["left"] -= 1
        return given(*arguments)

    messages: list[str] = []
    C = None
    with monkeypatch.context() as patch:
        patch.setattr(pool, "_create", create)
        while C is None and len(messages) < 100:
            free_memory(queue)
            state["left"] = len(messages)
            try:
                C = spgemm(left, right, method=method)
            except MemoryError as error:
                messages.append(str(error))
    assert messages
    needed = r"[\d,]+ entries of \w+ need [\d,]+ bytes; .* has [\d,]+ in all|[\d,]+ bytes (are needed|of host memory).* in all"
    assert [message for message in messages if not re.search(needed, message)] == []
    assert C is not None
    assert_product(C, A, B)
    gc.collect()
    assert_product(spgemm(left, right, method=method), A, B)
    np.testing.assert_array_equal(left.data.get(), A.data)
    np.testing.assert_array_equal(right.indices.get(), B.indices)


# ---- values that are none, and entries that cancel


@pytest.mark.parametrize("method", ALL)
def test_nan_and_inf_stay_where_they_belong(queue: cl.CommandQueue, pair: Pair, method: str) -> None:
    """They meet stored entries alone, never implicit zeros."""
    A, B = (operand.copy() for operand in pair)
    A.data[::7], A.data[3::11] = np.nan, np.inf
    B.data[::9], B.data[4::13] = -np.inf, 0
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    with np.errstate(invalid="ignore"):
        wanted = sp.csr_array(A @ B)
    wanted.sort_indices()
    C = spgemm(left, right, method=method).get()
    structure = pattern_product(A, B)
    np.testing.assert_array_equal(C.indptr, structure.indptr)
    np.testing.assert_array_equal(C.indices, structure.indices)
    dense, positions = wanted.toarray(), np.repeat(np.arange(50), np.diff(structure.indptr))
    np.testing.assert_allclose(C.data, dense[positions, structure.indices], rtol=1e-5)


@pytest.mark.parametrize("method", ALL)
def test_explicit_zeros_and_what_cancels_stay(queue: cl.CommandQueue, method: str) -> None:
    """The structure is that of the product of the patterns; SciPy drops what cancels."""
    A = sp.csr_array((np.array([1, 1, 0, 2], np.float32), np.array([0, 1, 2, 0]), np.array([0, 2, 3, 4])), shape=(3, 3))
    B = sp.csr_array((np.array([1, 5, -1, 3, 0], np.float32), np.array([0, 1, 0, 2, 1]), np.array([0, 2, 4, 5])), shape=(3, 3))
    C = spgemm(device_matrix(queue, A), device_matrix(queue, B), method=method)
    np.testing.assert_array_equal(C.indptr.get(), [0, 3, 4, 6])
    np.testing.assert_array_equal(C.indices.get(), [0, 1, 2, 1, 0, 1])
    np.testing.assert_array_equal(C.data.get(), [0, 5, 3, 0, 2, 10])
    C.eliminate_zeros()
    assert C.nnz == 4
    difference = spgemm(device_matrix(queue, A), device_matrix(queue, sp.csr_array(-B)), method=method)
    np.testing.assert_array_equal(difference.data.get(), [0, -5, -3, 0, -2, -10])


# ---- operands in any order


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("sides", ["left", "right", "both"])
def test_unsorted_and_duplicated_entries(queue: cl.CommandQueue, method: str, sides: str) -> None:
    rng = np.random.default_rng(4)
    matrices = []
    for shape, side in (((40, 30), "left"), ((30, 50), "right")):
        lengths = rng.integers(0, 9, shape[0])
        indices = rng.integers(0, shape[1], lengths.sum()).astype(np.int32)
        values = rng.integers(1, 5, indices.size).astype(np.float32)
        matrix = sp.csr_array((values, indices, np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)), shape=shape)
        canonical = matrix.copy()
        canonical.sum_duplicates()
        matrices.append((matrix if sides in (side, "both") else canonical, canonical))
    (A, canonical_a), (B, canonical_b) = matrices
    for semiring in (plus_times, min_plus):
        C = spgemm(device_matrix(queue, A), device_matrix(queue, B), method=method, semiring=semiring)
        assert_product(C, canonical_a, canonical_b, semiring)
