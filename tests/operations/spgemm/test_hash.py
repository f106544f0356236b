"""Hash tables in local memory: tables that are full, columns that collide, every shape of team, and how values are added."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py import csr_array, describe
from clsparse_py._build import programs
from clsparse_py._device.device import Portability
from clsparse_py._operations.spgemm import METHODS, spgemm, spgemm_plan
from clsparse_py._operations.spgemm.accumulator import Product, Rows
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense import DenseWindowsKernel
from clsparse_py._operations.spgemm.methods.hash import Hash, HashKernel, HashRows, HashRowsKernel, LargeHash
from clsparse_py._operations.spgemm.strategy import bins_for
from clsparse_py._precision.arithmetic import Arithmetic

Give = Callable[[Hash], None]


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Make "hash" give all rows that an accumulator holds to it."""

    def put(accumulator: Hash | HashRows) -> None:
        bin_ = Bin("hash", accumulator, accumulator.products, accumulator.length)
        monkeypatch.setitem(METHODS, "hash", lambda *_: (bin_,))

    return put


def multiply(
    queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array, deterministic: bool = True
) -> tuple[csr_array, set[HashKernel | HashRowsKernel]]:
    """Return a product by "hash", and the kernels of it that ran."""
    with programs.recording() as built:
        C = spgemm(device_matrix(queue, A), device_matrix(queue, B), method="hash", deterministic=deterministic)
    return C, {program.parameters for program in built if isinstance(program.parameters, (HashKernel, HashRowsKernel))}


def table(products: int, lanes: int, items: int) -> Hash | HashRows:
    """Return an accumulator of "reg-hash", or without items of "hash"."""
    return Hash(products, lanes, items) if items else HashRows(products, lanes)


def check(queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array) -> set[HashKernel | HashRowsKernel]:
    """Assert that a product by "hash" is right, new values included, and return the kernels that ran."""
    C, kernels = multiply(queue, A, B)
    assert_product(C, A, B)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method="hash")
    assert {bin_.method for bin_ in plan.explain().bins} == {"hash"}
    assert_product(plan(A.data * 2, B.data), sp.csr_array((A.data * 2, A.indices, A.indptr), shape=A.shape), B)
    assert {kernel.types.phase for kernel in kernels} == {"symbolic", "numeric"}
    return kernels


@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 10**9], ids="wg{}".format)
@pytest.mark.parametrize(("lanes", "items"), [(4, 0), (1, 2), (16, 2), (64, 1)])
def test_teams(queue: cl.CommandQueue, give: Give, work_group: int, lanes: int, items: int) -> None:
    give(Hash(128, lanes, items, work_group) if items else HashRows(128, lanes, work_group=work_group))
    rng = np.random.default_rng(1)
    A, B = random_matrix((70, 50), 5, rng, np.float32), random_matrix((50, 60), 5, rng, np.float32)
    limit = min(work_group, describe(queue.device).max_work_group)
    for kernel in check(queue, A, B):
        assert kernel.work_group <= limit
        assert kernel.lanes <= min(lanes, limit)
        assert kernel.work_group % kernel.lanes == 0
        if items:
            assert kernel.lanes == min(lanes, 1 << limit.bit_length() - 1)


@pytest.mark.parametrize("lanes", [3, 5, 48])
def test_teams_that_are_no_power_of_two(queue: cl.CommandQueue, give: Give, lanes: int) -> None:
    give(Hash(64, lanes, 2, 48))
    rng = np.random.default_rng(2)
    assert {kernel.lanes for kernel in check(queue, random_matrix((30, 40), 4, rng), random_matrix((40, 50), 5, rng))} == {lanes}


@pytest.mark.parametrize(
    ("products", "lanes", "items"), [(2, 1, 0), (2, 1, 2), (64, 4, 0), (64, 8, 2), (128, 16, 2), (1024, 64, 2)]
)
def test_full_tables(queue: cl.CommandQueue, give: Give, products: int, lanes: int, items: int) -> None:
    give(table(products, lanes, items))
    rng = np.random.default_rng(3)
    length = 1 << products.bit_length() // 2
    # Every product of a row has a column of its own: as many as the table has slots.
    B = sp.csr_array((np.ones(products, np.float32), rng.permutation(products), np.arange(0, products + 1, products // length)))
    B.sort_indices()
    A = rows_of([length] * 5 + [length - 1] * 5, length, rng, np.float32)
    check(queue, A, B)
    # And in one column all.
    check(queue, rows_of([products] * 3, products, rng, np.float32), rows_of([1] * products, 1, rng, np.float32))


@pytest.mark.parametrize(("lanes", "items"), [(1, 0), (4, 0), (8, 2)])
def test_columns_that_collide(queue: cl.CommandQueue, give: Give, lanes: int, items: int) -> None:
    give(table(64, lanes, items))
    columns = np.arange(1 << 20, dtype=np.uint32)
    last = columns[columns * np.uint32(2654435769) >> np.uint32(26) == 63][-64:]
    rng = np.random.default_rng(4)
    B = sp.csr_array(
        (
            np.ones(64 * 9, np.float32),
            np.concatenate([last, *np.sort(rng.choice(last, (64, 8)), 1)]).astype(np.int32),
            [0, 64, *range(72, 577, 8)],
        )
    )
    B.sum_duplicates()
    assert B.shape[1] == 1 << 20 or B.shape[1] == last[-1] + 1
    check(
        queue,
        sp.csr_array(np.concatenate([np.eye(1, 65), np.zeros((1, 65)), np.tile(np.eye(5, 65, 9), (4, 1))]).astype(np.float32)),
        B,
    )


@pytest.mark.parametrize("lanes", [1, 32])
def test_tables_sized_by_the_mean_row_leave_fuller_rows_to_larger_ones(queue: cl.CommandQueue, give: Give, lanes: int) -> None:
    give(HashRows(1024, lanes))
    # Thirty rows of B with the same columns, and forty without any in common: one row of C has 800 entries, others have 20.
    same, apart = np.tile(np.arange(20), 30), 20 + np.arange(800)
    B = sp.csr_array((np.arange(1.0, 1401, dtype=np.float32), np.concatenate([same, apart]), np.arange(0, 1401, 20)), (70, 900))
    columns = [*np.tile(np.arange(30), 100), *np.arange(30, 70), *range(29)]
    A = sp.csr_array((np.ones(len(columns), np.float32), columns, [*range(0, 3001, 30), 3040, 3040, 3069]), (103, 70))
    kernels = check(queue, A, B)
    assert {(kernel.slots, kernel.min_entries) for kernel in kernels if kernel.types.phase == "numeric"} == {
        (128, 0),
        (1024, 129),
    }


@pytest.mark.parametrize("lanes", [1, 32])
def test_rows_of_more_entries_than_any_table_has_slots(
    queue: cl.CommandQueue, give: Give, take_as: Callable[..., None], lanes: int
) -> None:
    """A table that counts leaves out what it does not hold, another counts it; what no table holds with sums is windows'."""
    take_as(local_memory=32 << 10)
    give(HashRows(4096, lanes))
    rng = np.random.default_rng(5)
    same = np.sort(rng.choice(6000, 60, replace=False))
    rows = [np.sort(rng.choice(6000, 90, replace=False)) for _ in range(45)] + [same] * 60
    B = sp.csr_array(
        (rng.random(90 * 45 + 3600).astype(np.float32), np.concatenate(rows), np.cumsum([0, *map(len, rows)])), (105, 6000)
    )
    # Rows of C with nearly 3,000 entries, about 1,000 and 1,024, and many with 60.
    lists = [range(45), range(20), range(12), range(13), *[range(45, 105)] * 150, range(0), range(40)]
    indptr = np.cumsum([0, *map(len, lists)])
    A = sp.csr_array(
        (rng.random(indptr[-1]).astype(np.float32), np.concatenate([*map(list, lists)]).astype(int), indptr), (156, 105)
    )
    kernels = check(queue, A, B)
    assert {(kernel.slots, kernel.min_entries) for kernel in kernels if kernel.types.phase == "symbolic"} == {
        (1024, 0),
        (4096, 1025),
    }
    numeric = sorted((kernel.slots, kernel.min_entries) for kernel in kernels if kernel.types.phase == "numeric")
    assert len(numeric) == 2
    assert numeric[1][1] == numeric[0][0] + 1
    assert numeric[1][0] < 4096


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("lanes", [1, 32])
def test_tables_for_fewer_columns_than_products(queue: cl.CommandQueue, give: Give, lanes: int, counts: bool) -> None:
    give(LargeHash(2048, lanes, 2, lanes, slots=64, counts=counts))
    rng = np.random.default_rng(7)
    # Rows of C with fewer entries than slots, exactly as many, one more, and far more.
    A = sp.csr_array(
        (
            rows_of([20, 1, 1, 1, 20, 2, 0, 1], 30, rng, np.float32).data,
            [*range(20), 20, 21, 22, *range(20), 20, 21, 23],
            np.cumsum([0, 20, 1, 1, 1, 20, 2, 0, 1]),
        ),
        shape=(8, 30),
    )
    B = rows_of([30] * 20 + [64, 65, 500] + [40] * 7, 600, rng, np.float32)
    B.indices[: 30 * 10] %= 60
    B.sum_duplicates()
    C, kernels = multiply(queue, A, B)
    assert_product(C, A, B)
    loose = multiply(queue, A, B, deterministic=False)[0]
    np.testing.assert_allclose(loose.data.get(), C.data.get(), rtol=1e-4)
    assert {kernel.types.phase for kernel in kernels} == ({"symbolic", "numeric"} if counts else {"numeric"})
    lengths = np.diff(C.indptr.get())
    assert lengths.min() == 0
    assert {64, 65} <= set(lengths)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method="hash")
    with programs.recording() as built:
        assert_product(plan(A.data * 2, B.data), sp.csr_array((A.data * 2, A.indices, A.indptr), shape=A.shape), B)
    assert {type(program.parameters) for program in built} == {HashKernel, DenseWindowsKernel}


def test_large_rows(queue: cl.CommandQueue, give: Give) -> None:
    rng = np.random.default_rng(8)
    A, B = rows_of([300, 0, 120, 30, 1, 60, 90], 400, rng, np.float32), rows_of([90, 70, 100, 30] * 100, 3000, rng, np.float32)
    C = spgemm(device_matrix(queue, A), device_matrix(queue, B), method="large-hash")
    assert_product(C, A, B)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method="large-hash")
    assert {bin_.method for bin_ in plan.explain().bins} == {"large-hash"}
    # With as many work-items as on GPUs.
    give(LargeHash(32768, 128, 4, 128, slots=2048, counts=False))
    C, kernels = multiply(queue, A, B)
    assert_product(C, A, B)
    assert {kernel.lanes for kernel in kernels} == {min(128, describe(queue.device).max_work_group)}


def noisy() -> tuple[sp.csr_array, sp.csr_array]:
    """Return operands whose product depends on the order of its sums: many products to each entry."""
    rng = np.random.default_rng(5)
    A, B = random_matrix((60, 40), 12, rng, np.float32), random_matrix((40, 30), 12, rng, np.float32)
    for matrix in (A, B):
        matrix.data[:] = rng.standard_normal(matrix.nnz)
    return A, B


def test_order_of_sums_is_that_of_the_row_in_every_shape(queue: cl.CommandQueue, give: Give) -> None:
    A, B = noisy()
    results = []
    for lanes, items in ((1, 2), (16, 2), (64, 1), (48, 2)):
        give(Hash(512, lanes, items))
        results += [multiply(queue, A, B)[0].data.get() for _ in range(2)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize(("lanes", "items"), [(1, 2), (8, 2), (48, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "uint8"])
def test_values_by_atomics(
    queue: cl.CommandQueue, give: Give, lanes: int, items: int, dtype: str, caplog: pytest.LogCaptureFixture
) -> None:
    device = describe(queue.device)
    if dtype in ("float64", "complex128") and not device.fp64:
        pytest.skip("the device has no double precision")
    give(Hash(512, lanes, items))
    A, B = (matrix.astype(dtype) for matrix in noisy())
    with caplog.at_level(logging.INFO):
        C, kernels = multiply(queue, A, B, deterministic=False)
    atomic = np.dtype(dtype).itemsize == 4 or (np.dtype(dtype).itemsize == 8 and device.int64_atomics)
    assert {kernel.ordered for kernel in kernels if kernel.types.phase == "numeric"} == {not atomic}
    assert any("added in order" in record.message for record in caplog.records) == (not atomic)
    if dtype == "uint8":
        np.testing.assert_array_equal(C.data.get(), multiply(queue, A, B)[0].data.get())
    else:
        np.testing.assert_allclose(C.data.get(), multiply(queue, A, B)[0].data.get(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("deterministic", [True, False])
def test_kernels_are_foreseen_that_add_values_as_asked(queue: cl.CommandQueue, deterministic: bool) -> None:
    types = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float32", "float32"), c_index="int32")
    product = Product((2, 2), *(None,) * 7, 0, 0, Kind(describe(queue.device), types), 0, deterministic, False, 0)
    assert Hash(64, 8, 2).predict_record(product, Rows(1), "numeric").ordered == deterministic


def test_local_memory_is_what_records_say(queue: cl.CommandQueue, give: Give) -> None:
    rng = np.random.default_rng(6)
    A, B = random_matrix((30, 20), 3, rng, np.float32), random_matrix((20, 30), 3, rng, np.float32)
    for lanes, items, deterministic in ((1, 2, True), (8, 2, True), (48, 2, True), (8, 2, False)):
        give(Hash(64, lanes, items))
        with programs.recording() as built:
            spgemm(device_matrix(queue, A), device_matrix(queue, B), method="hash", deterministic=deterministic)
        for program in built:
            record = program.parameters
            if isinstance(record, HashKernel):
                kernel = cl.Kernel(program.program, program.parameters.name)
                told = kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, queue.device)
                rows = record.work_group // record.lanes
                assert told <= rows * record.row_bytes + 64


def test_bins_fit_local_memory_and_small_columns(queue: cl.CommandQueue) -> None:
    device = describe(queue.device)
    for dtype in ("float32", "float64", "complex128"):
        types = KernelTypes("numeric", "int32", arithmetic=Arithmetic(dtype, dtype), c_index="int32")
        for memory in (32 << 10, 48 << 10, device.local_memory):
            for kind in ("cpu", "gpu"):
                small = replace(device, local_memory=memory, type=kind)
                for method in ("hash", "reg-hash", "large-hash"):
                    bins = [bin_ for bin_ in bins_for(method, small, types) if bin_.method == method]
                    assert bins
                    for bin_ in bins:
                        record = bin_.accumulator.record(small, types, listed=True)
                        assert record.row_bytes * (record.work_group // record.lanes) <= memory
        assert not [bin_ for bin_ in bins_for("hash", device, replace(types, wide=True)) if bin_.method == "hash"]


@pytest.mark.parametrize(
    ("way", "match", "width"), [("ptx", "ptx", 32), ("bpermute", "local", 64), ("sub_group", "local", 16), ("local", "local", 1)]
)
def test_lanes_meet_at_barriers_in_loops_of_one_length_alone(queue: cl.CommandQueue, way: str, match: str, width: int) -> None:
    portability = Portability(way, width, match=match)
    device = replace(describe(queue.device), type="gpu", local_memory=48 << 10, max_work_group=1024, portability=portability)
    types = KernelTypes("numeric", "int32", arithmetic=Arithmetic("float64", "float64"), c_index="int32")
    for method in ("hash", "reg-hash", "large-hash"):
        for bin_ in bins_for(method, device, types):
            if bin_.method == method:
                record = bin_.accumulator.record(device, types, listed=True)
                assert isinstance(record, HashKernel) or record.lanes == 1 or record.team_sync != "barrier"
                assert record.work_group % record.lanes == 0
                if way in ("ptx", "bpermute") and method != "large-hash":
                    assert record.team_sync == ("none" if record.lanes == 1 else {"ptx": "ptx", "bpermute": "wave"}[way])
                    assert record.lanes == bin_.accumulator.lanes
