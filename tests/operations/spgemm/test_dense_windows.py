"""Dense windows: any row, whatever its range of columns and its length; every size of window and team."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from accumulators import TEAMS, Give, Team, over_teams
from pairs import combinations
from platforms import PLATFORMS, queue_on
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py import csr_array, describe
from clsparse_py._build import programs
from clsparse_py._operations.spgemm import spgemm, spgemm_plan
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.dense import DenseWindows, DenseWindowsKernel
from clsparse_py._precision.arithmetic import Arithmetic


def check(queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array, index: type = np.int32) -> csr_array:
    """Assert that a product by windows is right, new values included."""
    left, right = device_matrix(queue, A, index), device_matrix(queue, B, index)
    with programs.recording() as built:
        C = spgemm(left, right, method="dense")
    assert {program.parameters.types.phase for program in built if isinstance(program.parameters, DenseWindowsKernel)} == {
        "symbolic",
        "numeric",
    }
    assert_product(C, A, B)
    plan = spgemm_plan(left, right, method="dense")
    assert_product(plan(A.data * 2, B.data), sp.csr_array((A.data * 2, A.indices, A.indptr), shape=A.shape), B)
    return C


SHAPES = {
    "team": TEAMS,
    "lanes": [1, 7, 48, 64, 10**9],
    "shape": [(None, 64, 2), (32, 4, 1), (64, 7, 2), (4096, 1, 3), (128, 5, 2)],
    "parts": [1, 2, 7, 16],
}


@pytest.mark.parametrize("case", combinations(SHAPES), ids=str)
def test_shapes(give: Give, case: dict[str, Any]) -> None:
    columns, entries, ahead = case["shape"]
    queue = give(DenseWindows(columns, case["lanes"], entries, ahead, case["parts"]), case["team"])
    rng = np.random.default_rng(1)
    check(queue, random_matrix((40, 60), 8, rng, np.float32), random_matrix((60, 300), 10, rng, np.float32))


@pytest.mark.parametrize("case", combinations({"team": TEAMS, "index": [np.int32, np.int64], "parts": [1, 3, 16]}), ids=str)
def test_ranges(give: Give, case: dict[str, Any]) -> None:
    index = case["index"]
    queue = give(DenseWindows(64, 32, 16, 1, case["parts"]), case["team"])
    rng = np.random.default_rng(2)
    n = 1 << 20
    # Dense in a narrow range at either end, at both, in a column alone, and with a few columns far from each other.
    ranges = (
        np.arange(100),
        np.arange(n - 100, n),
        np.r_[0:70, n - 70 : n],
        [n - 1],
        [0],
        np.arange(5) * 200_000,
        [63, 64, 127, 128],
    )
    indices = np.concatenate(ranges).astype(np.int32)
    indptr = np.cumsum([0, *map(len, ranges)]).astype(np.int32)
    B = sp.csr_array((rng.integers(1, 5, indices.size).astype(np.float32), indices, indptr), shape=(len(ranges), n))
    check(queue, rows_of([0, 1, 1, 1, 2, 2, 3, 4, 7, 1, 1, 1, 7], len(ranges), rng, np.float32), B, index)


@over_teams
def test_long_rows(team: Team, give: Give) -> None:
    queue = give(DenseWindows(512), team)
    rng = np.random.default_rng(3)
    check(queue, rows_of([900, 3, 0, 300, 257, 256], 1000, rng, np.float32), random_matrix((1000, 6000), 6, rng, np.float32))
    # All in one column.
    check(queue, rows_of([900, 1, 0, 300], 1000, rng, np.float32), rows_of([1] * 1000, 1, rng, np.float32))


@over_teams
def test_order_of_sums(team: Team, give: Give) -> None:
    queue = queue_on(team[0])
    rng = np.random.default_rng(4)
    A, B = (random_matrix(shape, 12, rng, np.float32) for shape in ((60, 40), (40, 30)))
    for matrix in (A, B):
        matrix.data[:] = rng.standard_normal(matrix.nnz) * 3
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    results = []
    for lanes, columns, entries in ((1, 32, 5), (16, 32, 256), (48, None, 9)):
        give(DenseWindows(columns, lanes, entries), team)
        results += [spgemm(left, right, method="dense").data.get() for _ in range(2)]
    for matrix in results[1:]:
        np.testing.assert_array_equal(matrix, results[0])


@over_teams
def test_local_memory_is_what_records_say(team: Team, give: Give) -> None:
    rng = np.random.default_rng(5)
    A, B = random_matrix((30, 20), 3, rng, np.float32), random_matrix((20, 30), 3, rng, np.float32)
    queue = give(DenseWindows(), team)
    with programs.recording() as built:
        spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method="dense")()
    for program in built:
        if isinstance(program.parameters, DenseWindowsKernel):
            kernel = cl.Kernel(program.program, program.parameters.name)
            told = kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, queue.device)
            assert told <= program.parameters.row_bytes + 128 <= 32 << 10


@pytest.mark.parametrize("local_memory", [16 << 10, 32 << 10, 48 << 10])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "float64", "complex128"])
def test_windows_fit_into_local_memory(local_memory: int, dtype: str) -> None:
    device = replace(describe(queue_on(next(iter(PLATFORMS))).device), type="gpu", local_memory=local_memory, max_work_group=1024)
    numeric = KernelTypes("numeric", "int32", arithmetic=Arithmetic(dtype, dtype), c_index="int32")
    for types in (numeric, numeric.of("symbolic"), numeric.of("values")):
        record = DenseWindows().record(device, types, listed=True)
        assert record.row_bytes + 128 <= local_memory
        assert record.lanes == 64
        assert record.columns % 32 == 0


@over_teams
def test_columns_that_need_64_bits(team: Team, give: Give) -> None:
    queue = give(DenseWindows(64, 32, 16, 1), team)
    rng = np.random.default_rng(6)
    n = 1 << 33
    columns = np.unique(np.r_[np.arange(30), rng.integers(0, n, 50), np.arange(2**32 - 20, 2**32 + 20), np.arange(n - 30, n)])
    A, narrow = rows_of([0, 1, 8, 3, 2], 8, rng, np.float32), rows_of([60] * 8, columns.size, rng, np.float32)
    # SciPy's product takes memory for each column: it is made of the columns that there are.
    wanted = sp.csr_array(A @ narrow)
    wanted.sort_indices()
    B = sp.csr_array((narrow.data, columns[narrow.indices], narrow.indptr), shape=(8, n))
    plan = spgemm_plan(device_matrix(queue, A, np.int64), device_matrix(queue, B, np.int64), method="dense")
    for C in (plan(), spgemm(device_matrix(queue, A, np.int64), device_matrix(queue, B, np.int64), method="dense")):
        np.testing.assert_array_equal(C.indptr.get(), wanted.indptr)
        np.testing.assert_array_equal(C.indices.get(), columns[wanted.indices])
        np.testing.assert_array_equal(C.data.get(), wanted.data)
