"""The memory in use beside A, B and C, counted buffer by buffer: never above the limit and, where there is none, bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pairs import exhaustive
from platforms import PLATFORMS, queue_on
from problems import device_matrix, random_matrix, rows_of
from scratch import count_buffers

from clsparse_py import BuildError, csr_array, spgemm, spgemm_plan
from clsparse_py._build import programs
from clsparse_py._build.plain import are_plain
from clsparse_py._device.device import describe
from clsparse_py._memory.workspace import Workspace
from clsparse_py._operations.spgemm import METHODS, count
from clsparse_py._operations.spgemm import plan as plan_module
from clsparse_py._operations.spgemm.accumulator import Product, Result
from clsparse_py._operations.spgemm.pipeline import multiply
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.row_partition import Step
from clsparse_py._run.launch import Chain

#: Methods that take memory of the device beside lists of rows; others have few bins of rows, each with kernels of its own, in
#: these cases alone.
TAKING = ("auto", "dense", "esc", "esc-local", "long-rows", "large-hash")
OF_FEW_BINS = ("tall", "empty", "inner")
LIMITS = (1, 10**4, 10**5, 10**6, 10**8, None) if exhaustive() else (1, 10**5, 10**6, None)
#: Devices taken for GPUs are not PoCL's (quirk 4).
DEVICES = [(name, kind) for name in PLATFORMS for kind in ("cpu", "gpu") if kind == "cpu" or not name.startswith("pocl")]
if not exhaustive():
    DEVICES = [(name, kind) for name, kind in DEVICES if (kind == "cpu") == name.startswith("pocl")] or DEVICES

Operands = tuple[sp.csr_array, sp.csr_array]


def grid(side: int) -> sp.csr_array:
    """Return the nine-point stencil on a square grid that goes round: all rows are alike."""
    line = sp.diags_array(
        [np.ones(1), np.ones(side - 1), np.ones(side), np.ones(side - 1), np.ones(1)], offsets=[1 - side, -1, 0, 1, side - 1]
    )
    result = sp.csr_array(sp.kron(line, line), dtype=np.float32)
    result.sort_indices()
    return result


def ones(n: int) -> sp.csr_array:
    return sp.csr_array(np.ones((n, n), np.float32))


def powers(n: int) -> sp.csr_array:
    """Return a matrix with few long rows and many short ones."""
    rng = np.random.default_rng(1)
    return rows_of(np.minimum(2 + rng.pareto(1.2, n).astype(int), n // 4), n, rng, np.float32)


def one_long_row() -> sp.csr_array:
    lengths = np.full(3000, 2)
    lengths[7] = 2000
    return rows_of(lengths, 3000, np.random.default_rng(2), np.float32)


def wide(columns: int) -> Operands:
    """Return a product whose rows of C have few entries in many columns."""
    rng = np.random.default_rng(3)
    A, B = rows_of(np.full(400, 10), 2000, rng, np.float32), rows_of(np.full(2000, 6), 50_000, rng, np.float32)
    return A, sp.csr_array((B.data, B.indices * (columns // 50_000), B.indptr), shape=(2000, columns))


def tall() -> Operands:
    """Return a product most of whose rows are empty."""
    rng = np.random.default_rng(4)
    some = (np.arange(6_000) % 50 == 0).astype(int)
    return rows_of(some, 30, rng, np.float32), rows_of(np.full(30, 5), 40, rng, np.float32)


def inner() -> Operands:
    """Return a column times a row."""
    rng = np.random.default_rng(5)
    return rows_of(np.ones(300, int), 1, rng, np.float32), rows_of([200], 300, rng, np.float32)


CASES: dict[str, Callable[[], sp.csr_array | Operands]] = {
    "grid": lambda: grid(40),
    "ones": lambda: ones(64),
    "powers": lambda: powers(1000),
    "one-long-row": one_long_row,
    "wide": lambda: wide(1_000_000),
    "tall": tall,
    "empty": lambda: (sp.csr_array((50, 40), dtype=np.float32), sp.csr_array((40, 30), dtype=np.float32)),
    "inner": inner,
}


def operands(case: str) -> Operands:
    made = CASES[case]()
    return made if isinstance(made, tuple) else (made, made)


def to_device(queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array) -> tuple[csr_array, csr_array]:
    """Return both on the device, their structure checked: that takes memory of its own."""
    left = device_matrix(queue, A)
    right = left if B is A else device_matrix(queue, B)
    assert left.has_canonical_format
    assert right.has_canonical_format
    return left, right


def bytes_of(*matrices: csr_array) -> int:
    return sum(part.nbytes for matrix in matrices for part in (matrix.data, matrix.indices, matrix.indptr))


def assert_same(C: csr_array, wanted: sp.csr_array) -> None:
    """Assert that C is SciPy's product, of small whole numbers without a sign: exactly."""
    result = C.get()
    np.testing.assert_array_equal(result.indptr, wanted.indptr)
    np.testing.assert_array_equal(result.indices, wanted.indices)
    np.testing.assert_array_equal(result.data, wanted.data)


def product(A: sp.csr_array, B: sp.csr_array) -> sp.csr_array:
    result = sp.csr_array(A @ B)
    result.sort_indices()
    return result


def needed_bytes(error: MemoryError) -> int:
    """Return the bytes that a message says are needed."""
    result = re.search(r"^memory_limit: the product needs ([\d,]+) bytes of workspace, the limit is [\d,]+$", str(error))
    assert result, error
    return int(result[1].replace(",", ""))


@pytest.mark.parametrize(("case", "units"), [*((case, 0) for case in CASES), ("one-long-row", 16)])
@pytest.mark.parametrize("device", DEVICES, ids="-".join)
def test_a_limit_is_kept_or_what_is_needed_is_said(
    case: str,
    units: int,
    device: tuple[str, str],
    take_as: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over all methods; without a limit the workspace is bounded by what A, B and C take, but for the reference ESC."""
    name, kind = device
    take_as(type=kind)
    if units:
        take_as(compute_units=units)
    (A, B), queue = operands(case), queue_on(name)
    (left, right), wanted = to_device(queue, A, B), product(A, B)
    accumulators = (describe(queue.device).compute_units + 1) * (B.shape[1] * 4 + B.shape[1] // 7 + 1024)

    def peak(method: str, limit: int | None) -> int:
        with count_buffers(monkeypatch) as allocations:
            C = spgemm(left, right, method=method, memory_limit=limit)
        assert_same(C, wanted)
        return allocations.peak(C)

    for method in ("auto", *METHODS) if case in OF_FEW_BINS else TAKING:
        least = 0
        for limit in LIMITS:
            try:
                result = peak(method, limit)
            except MemoryError as error:  # noqa: PERF203 - products take far longer
                least = needed_bytes(error)
                assert limit is not None
                assert least > limit
            else:
                if limit is not None:
                    assert result <= limit, method
                elif method != "esc":
                    arrays = bytes_of(left, right) + wanted.nnz * 8 + wanted.indptr.nbytes
                    assert result <= 2 * arrays + (1 << 20) + (accumulators if kind == "cpu" and case != "wide" else 0), method
        if A.nnz:
            assert peak(method, least) <= least
            with pytest.raises(MemoryError, match=f"needs {least:,} bytes"):
                spgemm(left, right, method=method, memory_limit=least - 1)
        else:
            assert peak(method, 1) == 0


@pytest.mark.parametrize("device", DEVICES, ids="-".join)
def test_no_buffer_goes_uncounted(device: tuple[str, str], take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even those that calls without a limit keep for later ones."""
    take_as(type=device[1])
    (A, B), queue = operands("one-long-row"), queue_on(device[0])
    (left, right), wanted = to_device(queue, A, B), product(A, B)
    for method in TAKING:
        spgemm(left, right, method=method, memory_limit=10**9)  # the pool keeps small blocks, of whole steps
        monkeypatch.setattr(programs, "_worked_out", {})
        workspace = Workspace(10**9)
        with count_buffers(monkeypatch) as allocations:
            parts = multiply(left, right, Request(method, memory_limit=10**9), workspace=workspace).parts
        C = csr_array(parts, shape=wanted.shape)
        assert_same(C, wanted)
        assert allocations.peak(C) <= workspace.peak, method


def hypersparse(long: int) -> sp.csr_array:
    """Return a matrix hardly a row of which has entries; so many are long."""
    rng = np.random.default_rng(9)
    lengths = np.zeros(100_000, int)
    some = rng.choice(lengths.size, 1200, replace=False)
    lengths[some], lengths[some[:long]] = 1, 40
    return rows_of(lengths, 2000, rng, np.float32)


@pytest.mark.parametrize("indices", [(np.int32, np.int32), (np.int64, np.int64), (np.int32, np.int64), (np.int64, np.int32)])
@pytest.mark.parametrize("device", DEVICES, ids="-".join)
def test_rows_without_entries_take_little(
    device: tuple[str, str], indices: tuple[type, type], take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workspace is bounded where nearly all that A and C take is their row pointers."""
    take_as(type=device[1])
    A, B, queue = (
        hypersparse(long=10),
        rows_of(np.full(2000, 5), 3000, np.random.default_rng(10), np.float32),
        queue_on(device[0]),
    )
    left, right = (device_matrix(queue, matrix, index) for matrix, index in zip((A, B), indices, strict=True))
    assert left.has_canonical_format
    assert right.has_canonical_format
    wanted = product(A, B)
    for method in ("auto", "merge", "sort", "large-hash", "long-rows", "dense"):
        with count_buffers(monkeypatch) as allocations:
            C = spgemm(left, right, method=method)
        assert_same(C, wanted)
        assert C.indptr.dtype == max(left.indptr.dtype, right.indptr.dtype)
        assert allocations.peak(C) <= 2 * bytes_of(left, right, C) + (1 << 18), method


@pytest.mark.parametrize("device", DEVICES, ids="-".join)
def test_pointers_that_turn_out_narrow_take_no_more(
    device: tuple[str, str], take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of C's entries asks for pointers of 64 bits, the entries do not: made here by a lower limit."""
    take_as(type=device[1])
    rng, queue = np.random.default_rng(10), queue_on(device[0])
    A, B = hypersparse(long=1200), np.zeros((2000, 600), np.float32)
    B[:, rng.choice(600, 20, replace=False)] = 1
    B = sp.csr_array(B)
    (left, right), wanted = to_device(queue, A, B), product(A, B)
    monkeypatch.setattr(count, "INT32_MAX", wanted.shape[0])
    assert wanted.nnz < wanted.shape[0] < 1200 * 500  # long rows have 800 products in a span of over 500 columns
    with pytest.raises(MemoryError) as caught:
        spgemm(left, right, memory_limit=1000)
    least = needed_bytes(caught.value)
    with count_buffers(monkeypatch) as allocations:
        C = spgemm(left, right, memory_limit=least)
    assert_same(C, wanted)
    assert C.indptr.dtype == np.int32
    assert allocations.peak(C) <= least


@pytest.mark.parametrize("device", DEVICES, ids="-".join)
def test_new_values_keep_the_limit(
    device: tuple[str, str], take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that a plan keeps counts, and the plan knows its size."""
    take_as(type=device[1])
    (A, B), queue = operands("powers"), queue_on(device[0])
    (left, right), wanted = to_device(queue, A, B), product(A, B)
    for method in ("auto", "esc", "dense", "long-rows"):
        for limit in (10**5, 10**6, 10**8):
            request, workspace = Request(method, memory_limit=limit), Workspace(limit)
            with count_buffers(monkeypatch) as allocations:
                plan = SpgemmPlan(left, right, request, workspace)
                first = plan()
                C = plan()
            assert_same(first, wanted)
            assert_same(C, wanted)
            assert allocations.peak(first, C) <= limit, method
            assert workspace.used <= workspace.peak <= limit
            del plan
            assert workspace.used == 0


@pytest.mark.refusals
@pytest.mark.parametrize("device", DEVICES, ids="-".join)
def test_values_that_are_made_another_way_keep_the_limit(
    device: tuple[str, str], take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan whose kernel for values alone is refused is made anew, beside what it keeps."""
    take_as(type=device[1])
    (A, B), queue = operands("ones"), queue_on(device[0])
    (left, right), wanted = to_device(queue, A, B), product(A, B)
    enqueued = plan_module.enqueue

    def refusing(chain: Chain, product: Product, steps: Sequence[Step], C: Result, phase: str) -> Sequence[Step]:
        if phase == "values" and not are_plain():
            raise BuildError("planted", log="", parameters="planted", source=None)
        result: Sequence[Step] = enqueued(chain, product, steps, C, phase)
        return result

    monkeypatch.setattr(plan_module, "enqueue", refusing)
    for limit in (30_000, 50_000):
        with count_buffers(monkeypatch) as allocations:
            request, workspace = Request(memory_limit=limit), Workspace(limit)
            plan = SpgemmPlan(left, right, request, workspace)
            first = plan()
            C = plan()
        assert_same(C, wanted)
        assert allocations.peak(first, C) <= limit
        assert plan.explain().rule == "plain kernels"


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.int8, np.complex64])
def test_copies_of_operands_count(queue: cl.CommandQueue, index: type, value: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands that are unsorted, duplicated, and of different index types are copied: what is needed is said, and is enough."""
    rng = np.random.default_rng(6)
    lengths = rng.integers(0, 40, 300)
    parts = rng.integers(0, 300, lengths.sum()), np.concatenate(([0], np.cumsum(lengths)))
    values = rng.integers(1, 3, lengths.sum()).astype(value)
    A = sp.csr_array((values, *(part.astype(np.int32) for part in parts)), shape=(300, 300))
    left, right = device_matrix(queue, A, np.int32), device_matrix(queue, A, index)
    assert not left.has_canonical_format
    assert not right.has_canonical_format
    try:
        spgemm(left, right, memory_limit=1000)
    except MemoryError as error:
        least = needed_bytes(error)
    with count_buffers(monkeypatch) as allocations:
        plan = spgemm_plan(left, right, memory_limit=least)
        C = plan()
    assert allocations.peak(C) <= least
    A.sum_duplicates()
    assert_same(C, product(A, A))


def test_copies_count_where_nothing_is_multiplied(queue: cl.CommandQueue) -> None:
    twice = sp.csr_array((np.ones(500, np.float32), np.zeros(500, np.int32), np.array([0, 500], np.int32)), shape=(1, 3))
    left, right = csr_array(sp.csr_array((2, 1), dtype=np.float32), queue=queue), device_matrix(queue, twice)
    try:
        spgemm(left, right, memory_limit=1000)
    except MemoryError as error:
        least = needed_bytes(error)
    assert spgemm(left, right, memory_limit=least).nnz == 0


def test_dense_ones_of_300_rows(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker has an accumulator: they are as many as the limit holds."""
    left, right = to_device(queue, *(ones(300),) * 2)
    for limit in (10**5, 10**6):
        with count_buffers(monkeypatch) as allocations:
            C = spgemm(left, right, memory_limit=limit)
        assert 0 < allocations.peak(C) <= limit
        assert C.nnz == 90_000
        np.testing.assert_array_equal(C.data.get(), np.full(90_000, 300, np.float32))


def test_many_columns_with_few_entries(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accumulators as wide as B would take forty times the memory of A, B and C."""
    A, B = wide(3_000_000)
    left, right = to_device(queue, A, B)
    with count_buffers(monkeypatch) as allocations:
        C = spgemm(left, right)
    assert_same(C, product(A, B))
    assert allocations.peak(C) <= 2 * bytes_of(left, right, C) + (1 << 20)


def test_rows_that_are_too_long_for_the_limit_go_through_windows(queue: cl.CommandQueue) -> None:
    """A row of 20,000 products is not expanded in 100 kB."""
    A, B = (sp.csr_array(np.ones(shape, np.float32)) for shape in ((3, 100), (100, 200)))
    left, right = to_device(queue, A, B)
    for method in ("esc", "long-rows"):
        plan = spgemm_plan(left, right, method=method, memory_limit=100_000)
        (made,) = plan.explain().bins
        assert made.method == "dense"
        assert "windows of columns, as memory is missing" in plan.explain().rule
        assert_same(plan(), product(A, B))


def test_masks_of_columns_are_done_without(queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: Any) -> None:
    """On CPU devices: B's masks are not made where little of B is read."""
    take_as(type="cpu")
    rng = np.random.default_rng(7)
    A, B = random_matrix((50, 20_000), 2, rng, np.float32), random_matrix((20_000, 300), 30, rng, np.float32)
    left, right = to_device(queue, A, B)
    with count_buffers(monkeypatch) as allocations:
        C = spgemm(left, right, method="dense")
    assert_same(C, product(A, B))
    assert allocations.peak(C) < right.nnz
