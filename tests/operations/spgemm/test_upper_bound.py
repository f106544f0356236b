"""C allocated by its upper bound, then compacted: rows of every length, forms of operands, and where it is not done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pairs import combinations
from platforms import PLATFORMS, has_fp64, queue_on
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py._build import programs
from clsparse_py._operations.spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._operations.spgemm.operands import Operands
from clsparse_py._operations.spgemm.upper_bound import Compaction, CompactionChunked
from clsparse_py._precision.semiring import SEMIRINGS
from clsparse_py._run.launch import Chain


def uneven(rng: np.random.Generator, dtype: Any, n: int = 5000) -> sp.csr_array:
    """Return a square matrix with mostly short rows, and some long ones: its square has rows of up to thousands of products."""
    lengths = np.minimum(rng.poisson(3, n), n)
    lengths[[5, 700, n - 1]] = 300, 900, 1800
    lengths[10:14] = 0
    return rows_of(lengths, n, rng, dtype)


def multiply(
    queue: cl.CommandQueue, A: sp.csr_array, B: sp.csr_array, index: Any = np.int32, **asked: Any
) -> tuple[Any, set[str]]:
    """Return a product, and the phases of its kernels; "compact" where rows were moved."""
    left, right = device_matrix(queue, A, index), device_matrix(queue, B, index)
    with programs.recording() as built:
        C = spgemm(left, right, **asked)
    return C, {
        "compact" if isinstance(program.parameters, (Compaction, CompactionChunked)) else program.parameters.types.phase
        for program in built
        if hasattr(program.parameters, "types")
    }


CASES = {
    "platform": list(PLATFORMS),
    "index": [np.int32, np.int64],
    "dtype": ["float32", "float64", "complex64", "uint8"],
    "semiring": ["plus_times", "or_and", "max_times"],
}


def legal(case: dict[str, Any]) -> bool:
    """Complex numbers have no order; doubles need a device that has them."""
    if case["dtype"].startswith("complex") and SEMIRINGS[case["semiring"]].ordered:
        return False
    return case["dtype"] != "float64" or has_fp64(case["platform"])


@pytest.mark.parametrize("case", combinations(CASES, legal), ids=str)
def test_rows_of_every_length(take_as: Callable[..., None], case: dict[str, Any]) -> None:
    queue, rng, semiring = queue_on(case["platform"]), np.random.default_rng(1), SEMIRINGS[case["semiring"]]
    take_as(type="gpu")
    A = uneven(rng, case["dtype"])
    C, phases = multiply(queue, A, A, case["index"], semiring=semiring)
    assert phases == {"upper_bound", "compact"}
    assert_product(C, A, A, semiring)


def test_chunks_of_rows(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="cpu")
    rng = np.random.default_rng(7)
    A = uneven(rng, np.float32)
    # Rows that repeat the row before, as they are and one column on, among others that do not.
    alike = sp.csr_array(sp.kron(rows_of([7] * 40, 600, rng, np.float32), np.ones((3, 1), np.float32)))
    shifted = sp.diags_array([1.0, 2.0, 3.0], offsets=[-2, 0, 40], shape=(200, 600)).tocsr().astype(np.float32)
    few = sp.csr_array(sp.vstack([rows_of([1, 0, 90, 9, 0, 40] * 300, 600, rng, np.float32), alike, shifted]))
    B = rows_of(rng.integers(0, 20, 600), 9000, rng, np.float32)
    # Columns so far apart that rows of C hold the sums.
    far = sp.csr_array((B.data, B.indices * 40, B.indptr), shape=(600, 360_000))
    for left, right in ((A, A), (few, B), (few, far)):
        C, phases = multiply(queue, left, right)
        assert phases == {"upper_bound", "compact"}
        assert_product(C, left, right)
    C, phases = multiply(queue, A, A, memory_limit=8 * int(np.diff(A.indptr)[A.indices].sum()))
    assert "compact" not in phases
    assert_product(C, A, A)
    # Neighbours of a grid repeat one another: to count them takes no time.
    grid = sp.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 30], shape=(4000, 4000)).tocsr().astype(np.float32)
    C, phases = multiply(queue, grid, grid)
    assert "compact" not in phases
    assert_product(C, grid, grid)


def test_plans_keep_what_new_values_need(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu")
    rng = np.random.default_rng(2)
    A = uneven(rng, np.float32)
    left = device_matrix(queue, A)
    plan = spgemm_plan(left, left)
    again, changed = plan(), plan(A.data * 2, A.data)
    first = spgemm(left, left)
    assert_product(again, A, A)
    np.testing.assert_array_equal(again.data.get(), first.data.get())
    np.testing.assert_array_equal(changed.data.get(), 2 * first.data.get())


def test_what_contracts_is_counted_first(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu")
    rng = np.random.default_rng(3)
    A, B = uneven(rng, np.float32), rows_of([6] * 5000, 8, rng, np.float32)
    C, phases = multiply(queue, A, B)
    assert "upper_bound" not in phases
    assert_product(C, A, B)
    # A sample tells: rows that contract although it does not say so are right, too.
    short = random_matrix((3000, 40), 0.2, rng, np.float32)
    tail = sp.csr_array(sp.vstack([short, rows_of([40] * 200, 40, rng, np.float32)]))
    B = rows_of([3] * 40, 60, rng, np.float32)
    assert_product(multiply(queue, tail, B)[0], tail, B)


def test_without_room_rows_are_counted_first(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu")
    A = uneven(np.random.default_rng(4), np.float32)
    n_products = int(np.diff(A.indptr)[A.indices].sum())
    C, phases = multiply(queue, A, A, memory_limit=2 * 8 * n_products - 1)
    assert "upper_bound" not in phases
    assert_product(C, A, A)


def test_what_only_counts_makes_no_values(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(type="gpu")
    A = uneven(np.random.default_rng(5), np.float32)
    left = device_matrix(queue, A)
    with programs.recording() as built:
        nnz = spgemm_estimate(left, left, exact=True).nnz
        with pytest.raises(ValueError, match=f"max_nnz: the product has {nnz:,} entries, more than 10"):
            spgemm(left, left, max_nnz=10)
    assert {program.parameters.types.phase for program in built if hasattr(program.parameters, "types")} == {"symbolic"}


@pytest.mark.parametrize("missing", ["room", "C"])
def test_memory_that_is_missing(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    take_as(type="gpu")
    A = uneven(np.random.default_rng(6), np.float32)
    n_products = int(np.diff(A.indptr)[A.indices].sum())
    refused: list[int] = []
    if missing == "room":
        scratch = Chain.scratch

        def little(self: Chain, n: int, dtype: Any) -> Any:
            if n >= n_products:
                refused.append(n)
                raise MemoryError
            return scratch(self, n, dtype)

        monkeypatch.setattr(Chain, "scratch", little)
    else:
        new_part = Operands.new_part

        def later(self: Operands, part: str, n: int, dtype: Any) -> Any:
            if part != "indptr" and not refused:
                refused.append(n)
                raise MemoryError
            return new_part(self, part, n, dtype)

        monkeypatch.setattr(Operands, "new_part", later)
    C, phases = multiply(queue, A, A)
    assert refused
    assert {"numeric"} <= phases
    assert "compact" not in phases
    assert_product(C, A, A)
