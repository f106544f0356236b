"""Dense sums over the span of a row: rows that are narrow, at its limits, wherever they are; every size of team."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from accumulators import TEAMS, Give, Team, over_teams
from made_up_products import limits
from pairs import combinations
from platforms import has_fp64, queue_on
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py import csr_array
from clsparse_py._build import programs
from clsparse_py._device.device import Device, Portability
from clsparse_py._operations.spgemm import METHODS, spgemm, spgemm_plan
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.dense import DenseSpan, DenseSpanKernel, dense_spans
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS

DTYPES = ("float32", "float64", "complex64", "complex128", "uint8")


def check(
    queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array, index: type = np.int32, semiring: str = "plus_times"
) -> csr_array:
    """Assert that a product by spans is right in all phases, with new values too, and return it."""
    left, right, of = device_matrix(queue, A, index), device_matrix(queue, B, index), SEMIRINGS[semiring]
    with programs.recording() as built:
        C = spgemm(left, right, method="dense", semiring=of)
        plan = spgemm_plan(left, right, method="dense", semiring=of)
        again = plan()
        other = plan(A.data + A.data, B.data)
    phases = {program.parameters.types.phase for program in built if isinstance(program.parameters, DenseSpanKernel)}
    assert phases == {"symbolic", "numeric", "values"}
    assert_product(C, A, B, of)
    assert_product(again, A, B, of)
    assert_product(other, sp.csr_array((A.data + A.data, A.indices, A.indptr), shape=A.shape), B, of)
    return C


def banded_matrix(
    rng: np.random.Generator, lengths: Any, starts: Any, width: int, n_cols: int, dtype: Any = np.float32
) -> sp.csr_array:
    """Return a matrix whose rows have so many entries in so many columns from these on."""
    narrow = rows_of(lengths, width, rng, dtype)
    shift = np.repeat(np.asarray(starts), np.diff(narrow.indptr))
    return sp.csr_array((narrow.data, (narrow.indices + shift).astype(np.int32), narrow.indptr), shape=(len(starts), n_cols))


SHAPES = {
    "team": TEAMS,
    "work_group": [1, 7, 48, 64, 10**9],
    "shape": [(512, None, 64, 4), (512, 4, 8, 1), (1024, 16, 5, 3), (512, 48, 16, 2)],
}


@pytest.mark.parametrize("case", combinations(SHAPES), ids=str)
def test_shapes(give: Give, case: dict[str, Any]) -> None:
    (columns, lanes, entries, ahead), work_group = case["shape"], case["work_group"]
    lanes = None if lanes is None else min(lanes, work_group)
    queue = give(DenseSpan(columns, lanes, work_group, entries, ahead), case["team"])
    rng = np.random.default_rng(1)
    check(queue, random_matrix((40, 60), 8, rng, np.float32), random_matrix((60, 300), 10, rng, np.float32))


@pytest.mark.parametrize("case", combinations({"team": TEAMS, "index": [np.int32, np.int64], "columns": [64, 512]}), ids=str)
def test_spans(give: Give, case: dict[str, Any]) -> None:
    columns, index = case["columns"], case["index"]
    queue = give(DenseSpan(columns, lanes=8, entries=4, ahead=2), case["team"])
    rng = np.random.default_rng(2)
    n = 1 << 20
    # All columns that there may be; none; the first and the last; from no multiple of 32 to the end; at both ends of B; a few.
    ranges = (
        np.arange(columns),
        np.arange(0),
        np.r_[64, 63 + columns],
        np.arange(64 + 31, 64 + columns),
        np.arange(n - columns, n),
        np.r_[n - 1],
        np.r_[0],
        np.arange(1000 + 8, 1000 + 24),
    )
    indices = np.concatenate(ranges).astype(np.int32)
    indptr = np.cumsum([0, *map(len, ranges)]).astype(np.int32)
    B = sp.csr_array((rng.integers(1, 5, indices.size).astype(np.float32), indices, indptr), shape=(len(ranges), n))
    of_a = ([0], [1], [2], [3], [4], [5], [6], [7], [], [1, 2, 3], [0, 1, 6], [4, 5], [1, 7], [])
    A_indptr = np.cumsum([0, *map(len, of_a)]).astype(np.int32)
    A_indices = np.concatenate([np.asarray(array, np.int32) for array in of_a])
    A = sp.csr_array((rng.integers(1, 5, A_indices.size).astype(np.float32), A_indices, A_indptr), shape=(len(of_a), len(ranges)))
    check(queue, A, B, index)


@over_teams
def test_long_rows(team: Team, give: Give) -> None:
    queue = give(DenseSpan(512, lanes=32), team)
    rng = np.random.default_rng(3)
    A = rows_of([900, 3, 0, 300, 257, 256, 64, 63, 65, 128, 129], 1000, rng, np.float32)
    check(queue, A, random_matrix((1000, 500), 40, rng, np.float32))
    check(queue, A, rows_of([0, 0, 200, 500, 0] * 200, 500, rng, np.float32))
    # All in one column, and none at all.
    check(queue, A, rows_of([1] * 1000, 1, rng, np.float32))
    check(queue, A, banded_matrix(rng, [0] * 999 + [3], [700] * 1000, 40, 1000))


VALUES = {"team": TEAMS, "dtype": DTYPES, "semiring": list(SEMIRINGS), "index": [np.int32, np.int64]}


def legal(case: dict[str, Any]) -> bool:
    """Complex numbers have no order; doubles need a device that has them."""
    if case["dtype"].startswith("complex") and SEMIRINGS[case["semiring"]].ordered:
        return False
    return case["dtype"] not in ("float64", "complex128") or has_fp64(case["team"][0])


@pytest.mark.parametrize("case", combinations(VALUES, legal), ids=str)
def test_values(give: Give, case: dict[str, Any]) -> None:
    dtype, semiring = case["dtype"], case["semiring"]
    queue = give(DenseSpan(512, lanes=16), case["team"])
    rng = np.random.default_rng(4)
    # A row of C takes rows of B that begin near one another.
    A = banded_matrix(rng, rng.integers(0, 9, 60), np.arange(60), 20, 80, dtype)
    B = banded_matrix(rng, rng.integers(0, 60, 80), np.arange(80) * 7 + 5, 200, 1000, dtype)
    check(queue, A, B, case["index"], semiring)


@over_teams
def test_rows_that_are_listed(team: Team, give: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = give(DenseSpan(512, lanes=8, work_group=32), team)
    first = Bin("dense", DenseSpan(1024, lanes=4), max_products=50)
    monkeypatch.setitem(METHODS, "dense", lambda *_: (first, Bin("dense", DenseSpan(512, lanes=8))))
    rng = np.random.default_rng(5)
    A, B = random_matrix((90, 60), 5, rng, np.float32), random_matrix((60, 300), 10, rng, np.float32)
    with programs.recording() as built:
        check(queue, A, B)
    assert {program.parameters.listed for program in built if isinstance(program.parameters, DenseSpanKernel)} == {True}


@over_teams
def test_order_of_sums(team: Team, give: Give) -> None:
    queue = queue_on(team[0])
    rng = np.random.default_rng(6)
    A, B = (random_matrix(shape, 12, rng, np.float32) for shape in ((60, 40), (40, 30)))
    for matrix in (A, B):
        matrix.data[:] = rng.standard_normal(matrix.nnz) * 3
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    wanted = spgemm(left, right, method="hash").data.get()
    for lanes, entries, ahead in ((1, 5, 1), (16, 64, 4), (48, 9, 8)):
        give(DenseSpan(512, lanes, None, entries, ahead), team)
        for deterministic in (True, True, False):
            result = spgemm(left, right, method="dense", deterministic=deterministic)
            np.testing.assert_array_equal(result.data.get(), wanted)
            np.testing.assert_array_equal(spgemm_plan(left, right, method="dense")().data.get(), wanted)


@over_teams
def test_columns_that_need_64_bits(team: Team, give: Give) -> None:
    queue = give(DenseSpan(512, lanes=16, entries=4), team)
    rng = np.random.default_rng(7)
    n = 1 << 33
    # Rows of B in a range about 2^32, and at the end.
    narrow = rows_of([60, 1, 0, 200] * 4, 400, rng, np.float32)
    starts = np.repeat([2**32 - 200, n - 450], 8)
    columns = narrow.indices + np.repeat(starts, np.diff(narrow.indptr))
    B = sp.csr_array((narrow.data, columns, narrow.indptr.astype(np.int64)), shape=(16, n))
    A = sp.csr_array(sp.block_diag([rows_of([0, 1, 8, 3, 2], 8, rng, np.float32) for _ in range(2)], format="csr"))
    wanted = sp.csr_array(A @ narrow)
    wanted.sort_indices()
    lefts, rights = device_matrix(queue, A, np.int64), device_matrix(queue, B, np.int64)
    plan = spgemm_plan(lefts, rights, method="dense")
    for C in (plan(), spgemm(lefts, rights, method="dense")):
        np.testing.assert_array_equal(C.indptr.get(), wanted.indptr)
        rows = np.repeat(np.arange(10), np.diff(wanted.indptr))
        np.testing.assert_array_equal(C.indices.get(), wanted.indices + np.repeat([2**32 - 200, n - 450], 5)[rows])
        np.testing.assert_array_equal(C.data.get(), wanted.data)


@over_teams
def test_local_memory_is_what_records_say(team: Team, give: Give) -> None:
    queue = give(DenseSpan(512, lanes=8), team)
    rng = np.random.default_rng(8)
    with programs.recording() as built:
        check(queue, random_matrix((30, 20), 3, rng, np.float32), random_matrix((20, 30), 3, rng, np.float32))
    for program in built:
        if isinstance(program.parameters, DenseSpanKernel):
            kernel = cl.Kernel(program.program, program.parameters.name)
            told = kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, queue.device)
            assert told <= program.parameters.row_bytes + 64


def of_gpu(portability: Portability, local_memory: int = 48 << 10) -> Device:
    """Return a made-up GPU."""
    return Device(
        name="", platform="", driver_version="", type="gpu", compute_units=100, max_work_group=1024, local_memory=local_memory,
        max_allocation=1 << 30, global_memory=1 << 32, preferred_multiple=32, sub_group_sizes=(), fp64=True, fp16=True,
        int64_atomics=True, float_atomics=False, unified_memory=False, aliases_host=False, forward_progress=False,
        svm=(), portability=portability,
    )  # fmt: skip


PTX = Portability("ptx", 32, "ptx", match="ptx")
WAVE = Portability("bpermute", 64)
PLAIN = Portability()


def types(dtype: str) -> KernelTypes:
    """Return the form of a numeric phase."""
    return KernelTypes("numeric", "int32", arithmetic=Arithmetic(dtype, dtype), c_index="int32")


@pytest.mark.parametrize(
    ("portability", "lanes", "fence"),
    [(PTX, 32, "ptx"), (WAVE, 64, "wave"), (PLAIN, 64, "barrier")],
    ids=["ptx", "wave", "plain"],
)
def test_teams(portability: Portability, lanes: int, fence: str) -> None:
    device = of_gpu(portability)
    result = DenseSpan(1024).record(device, types("float32"), listed=True)
    assert (result.lanes, result.work_group, result.team_sync) == (lanes, lanes, fence)
    # Several teams share a work-group where they meet without barriers, as far as local memory goes.
    many = DenseSpan(512, work_group=256).record(device, types("float32"), listed=True)
    assert many.work_group == (64 if fence == "barrier" else 256)
    large = DenseSpan(2048, work_group=256).record(device, types("float64"), listed=True)
    assert large.work_group == (64 if fence == "barrier" else 2 * lanes)
    # What a driver allows is less.
    small = many.within(16, portability.lane_width)
    assert small is not None
    assert small.work_group == 16


def test_bins() -> None:
    shipped = limits()
    wide = replace(types("float32"), index="int64", wide=True)
    assert [dense_span.columns for dense_span in dense_spans(of_gpu(PTX), types("float32"), shipped)] == [512, 1024, 2048, 4096]
    assert [dense_span.columns for dense_span in dense_spans(of_gpu(PTX), types("float64"), shipped)] == [512, 1024, 2048]
    assert [dense_span.columns for dense_span in dense_spans(of_gpu(PTX), types("complex128"), shipped)] == [512, 1024]
    assert [dense_span.columns for dense_span in dense_spans(of_gpu(PTX), wide, shipped)] == [512, 1024, 2048, 4096]
    assert [dense_span.columns for dense_span in dense_spans(of_gpu(WAVE, 64 << 10), types("float64"), shipped)] == [
        512,
        1024,
        2048,
    ]
    assert DenseSpan(4096).fits(of_gpu(PTX), types("float64"))
    assert not DenseSpan(4096).fits(of_gpu(PTX), types("complex128"))
    assert dense_spans(of_gpu(PTX, 2 << 10), types("float64"), shipped) == ()
    others = replace(shipped, min_span=256, max_span=1024, min_paired_span=64, span_entries=32, span_loads=4)
    assert dense_spans(of_gpu(PTX), types("float32"), others)[::2] == tuple(
        DenseSpan(columns, entries=32, ahead=4) for columns in (256, 1024)
    )
