"""Products of small matrices by one launch: shapes, types, what is small, and what has to go another way."""

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

from clsparse_py import csr_array, spgemm, spgemm_plan
from clsparse_py._build import programs
from clsparse_py._operations.spgemm import one_launch
from clsparse_py._operations.spgemm.one_launch import OneLaunch
from clsparse_py._precision.semiring import SEMIRINGS

CASES = {
    "platform": list(PLATFORMS),
    "index": [np.int32, np.int64],
    "dtype": ["float32", "float64", "complex64", "bool", "int8"],
    "semiring": ["plus_times", "min_plus", "or_and"],
}


def legal(case: dict[str, Any]) -> bool:
    """Complex numbers have no order; doubles need a device that has them."""
    if case["dtype"].startswith("complex") and case["semiring"] == "min_plus":
        return False
    return case["dtype"] != "float64" or has_fp64(case["platform"])


def launch(A: csr_array, B: csr_array, **asked: Any) -> tuple[csr_array, set[str]]:
    """Return a product, and the templates of its kernels."""
    with programs.recording() as built:
        C = spgemm(A, B, **asked)
    return C, {program.parameters.template for program in built}


def pairs(rng: np.random.Generator, dtype: Any) -> list[tuple[sp.csr_array, sp.csr_array]]:
    """Return operands of all shapes that are small: one column, many words to a row, full rows, products without entries."""
    shapes = ((1, 1, 1), (10, 12, 31), (33, 32, 32), (100, 90, 100), (3, 500, 33), (1000, 3, 30), (1, 1, 20_000), (120, 4, 225))
    results = [
        (random_matrix((m, k), min(3, k), rng, dtype), rows_of(rng.integers(0, min(n, 7) + 1, k), n, rng, dtype))
        for m, k, n in shapes
    ]
    full = rows_of((33,) * 12, 33, rng, dtype), rows_of((65,) * 33, 65, rng, dtype)
    apart = (
        sp.csr_array((np.ones(2, dtype), [0, 1], [0, 0, 2, 2]), (3, 4)),
        sp.csr_array((np.ones(2, dtype), [1, 4], [0, 0, 0, 2, 2]), (4, 5)),
    )
    return [*((A, B) for A, B in results if A.nnz and B.nnz), full, apart]


@pytest.mark.parametrize("case", combinations(CASES, legal), ids=str)
def test_shapes(case: dict[str, Any]) -> None:
    queue, rng, semiring = queue_on(case["platform"]), np.random.default_rng(3), SEMIRINGS[case["semiring"]]
    for A, B in pairs(rng, case["dtype"]):
        left, right = device_matrix(queue, A, case["index"]), device_matrix(queue, B, case["index"])
        C, templates = launch(left, right, semiring=semiring)
        assert templates == {OneLaunch.template}, (A.shape, B.shape)
        assert C.has_canonical_format
        assert C.indices.dtype == case["index"]
        assert C.data.size == C.nnz
        assert_product(C, A, B, semiring)


@pytest.mark.any_platform
def test_products_of_products(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(4)
    host = random_matrix((60, 60), 2, rng, np.float32)
    A = device_matrix(queue, host)
    # The longest row of a product is not known.
    C, templates = launch(A @ A, A @ A)
    assert templates == {OneLaunch.template}
    square = (host @ host).tocsr()
    square.sort_indices()
    assert_product(C, square, square)
    # Arrays with more memory than entries are arrays as others are.
    np.testing.assert_array_equal((C + C).toarray(), 2 * C.toarray())
    np.testing.assert_array_equal(C.copy().get().toarray(), C.toarray())


@pytest.mark.any_platform
def test_one_launch_and_one_read(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    A = device_matrix(queue, random_matrix((50, 50), 4, np.random.default_rng(5), np.float32))
    _ = A @ A
    called: list[str] = []
    for name in ("enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer"):
        real = getattr(cl, name)

        def noted(*arguments: Any, name: str = name, real: Callable[..., Any] = real, **named: Any) -> Any:
            called.append(name)
            return real(*arguments, **named)

        monkeypatch.setattr(cl, name, noted)
    _ = A @ A
    assert called == ["enqueue_nd_range_kernel", "enqueue_copy"]


@pytest.mark.any_platform
def test_other_products_go_through_the_phases(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(6)
    small = random_matrix((40, 40), 4, rng, np.float32)
    dense, wide = rows_of((60,) * 60, 60, rng, np.float32), random_matrix((200, 200), 2, rng, np.float32)
    A = device_matrix(queue, small)
    unsorted = small.copy()
    begin = int(np.flatnonzero(np.diff(small.indptr) > 1)[0])
    first = slice(small.indptr[begin], small.indptr[begin] + 2)
    unsorted.indices[first] = small.indices[first][::-1]
    for left, right, asked in (
        (device_matrix(queue, dense), dense, {}),  # too many products
        (device_matrix(queue, wide), wide, {}),  # more words than fit
        (device_matrix(queue, unsorted), unsorted, {}),
        (A, small, {"method": "merge"}),
        (A, small, {"memory_limit": 1 << 24}),
    ):
        C, templates = launch(left, left, **asked)
        assert OneLaunch.template not in templates
        assert_product(C, right, right)
    with programs.recording() as built:
        C = spgemm_plan(A, A)()
    assert OneLaunch.template not in [program.parameters.template for program in built]
    assert_product(C, small, small)
    with pytest.raises(ValueError, match=r"^max_nnz: the product has \d+ entries, more than 3"):
        spgemm(A, A, max_nnz=3)


@pytest.mark.any_platform
@pytest.mark.parametrize("work_group", [1, 12, 64])
def test_work_groups_of_any_size(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, work_group: int) -> None:
    monkeypatch.setattr(one_launch, "_WORK_GROUP", work_group)
    host = random_matrix((70, 70), 5, np.random.default_rng(7), np.float32)
    A = device_matrix(queue, host)
    programs.forget_refused()  # and what is worked out
    try:
        C, templates = launch(A, A)
    finally:
        programs.forget_refused()
    assert templates == {OneLaunch.template}
    assert_product(C, host, host)


@pytest.mark.any_platform
def test_many_work_groups(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(compute_units=132)
    host = random_matrix((100, 100), 9, np.random.default_rng(8), np.float32)
    A = device_matrix(queue, host)
    assert_product(A @ A, host, host)
