"""A plan's list of products: values by it are those of SciPy, whatever the operands are, and it is made where memory allows."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pairs import combinations
from platforms import PLATFORMS, queue_on
from problems import assert_product, device_matrix, random_matrix, rows_of

from clsparse_py import csr_array, describe
from clsparse_py._build import programs
from clsparse_py._operations.spgemm import SpgemmPlan, product_list, spgemm_plan
from clsparse_py._operations.spgemm.accumulator import Rows
from clsparse_py._operations.spgemm.bins import Bin
from clsparse_py._operations.spgemm.kind import Kind
from clsparse_py._operations.spgemm.methods.dense import DenseSpan
from clsparse_py._operations.spgemm.methods.merge import Merge
from clsparse_py._operations.spgemm.methods.sort import Sort
from clsparse_py._operations.spgemm.row_partition import Step
from clsparse_py._precision.semiring import SEMIRINGS, plus_pair

Listing = Callable[..., SpgemmPlan]


@pytest.fixture
def listing() -> Listing:
    """Return a function that plans a product, makes it, and has the plan list its products with the next one."""

    def planned(left: csr_array, right: csr_array, **options: Any) -> SpgemmPlan:
        plan = spgemm_plan(left, right, **options)
        plan()
        # A CPU device would do without.
        plan._list, plan._list_undecided = plan._start_list(1), False
        plan._list.now()
        return plan

    return planned


def get_list(plan: SpgemmPlan) -> product_list.ProductList | None:
    """Return the list of a plan if it is made."""
    return None if plan._list is None else plan._list.made


def check(plan: SpgemmPlan, A: sp.csr_array, B: sp.csr_array) -> product_list.ProductList:
    """Assert that products of new values are right, those by the list among them, and return the list."""
    for factor in (2, 3):
        with programs.recording() as built:
            C = plan(A.data * A.dtype.type(factor), B.data)
        assert any(isinstance(program.parameters, product_list.ListedProducts) for program in built)
        assert_product(C, sp.csr_array((A.data * A.dtype.type(factor), A.indices, A.indptr), shape=A.shape), B)
    result = get_list(plan)
    assert result is not None
    assert "list of products" in str(plan.explain().rule)
    return result


CASES = {"platform": PLATFORMS, "index": [np.int32, np.int64], "dtype": ["float32", "float64", "complex64", "int16"]}


@pytest.mark.parametrize("case", combinations(CASES), ids=str)
def test_rows_of_any_kind(listing: Listing, case: dict[str, Any]) -> None:
    queue, rng, dtype = queue_on(case["platform"]), np.random.default_rng(1), np.dtype(case["dtype"])
    for mean, other in ((0.5, 3), (4, 4), (30, 20)):
        A, B = random_matrix((300, 200), mean, rng, dtype), random_matrix((200, 400), other, rng, dtype)
        check(listing(*(device_matrix(queue, matrix, case["index"]) for matrix in (A, B))), A, B)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", [name for name, semiring in SEMIRINGS.items() if semiring is not plus_pair])
def test_semirings(listing: Listing, platform: str, name: str) -> None:
    queue, rng, semiring = queue_on(platform), np.random.default_rng(2), SEMIRINGS[name]
    dtype = np.bool_ if name == "or_and" else np.float64
    A, B = random_matrix((120, 90), 6, rng, dtype), random_matrix((90, 110), 9, rng, dtype)
    plan = listing(device_matrix(queue, A), device_matrix(queue, B), semiring=semiring)
    assert_product(plan(A.data, B.data), A, B, semiring)
    assert get_list(plan) is not None


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("length", [895, 896, 897, 1024, 1025, 5000])
def test_entries_of_many_products(listing: Listing, platform: str, length: int) -> None:
    """Entries with as many products as a tile has room for, about one that begins at the end of a tile, and with more."""
    queue, rng = queue_on(platform), np.random.default_rng(length)
    A = rows_of([length, 3, length, 0, length, 1, 600, length], length, rng)
    B = sp.csr_array(np.ones((length, 3)))
    result = check(listing(device_matrix(queue, A), device_matrix(queue, B)), A, B)
    assert result.kernel.window < result.kernel.work_group * result.kernel.items


@pytest.mark.parametrize("platform", PLATFORMS)
def test_places_that_need_more_bits(listing: Listing, platform: str) -> None:
    """A row of A is so long that places in it take more than 16 bits, though few of its entries have products."""
    queue, rng, n = queue_on(platform), np.random.default_rng(3), 70_000
    A = rows_of([n, 5, n], n, rng)
    lengths = np.zeros(n, np.int64)
    lengths[[0, 1, 40_000, n - 1]] = 3
    B = rows_of(lengths, 50, rng)
    assert check(listing(device_matrix(queue, A), device_matrix(queue, B)), A, B).kernel.place == "uint"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_operands_that_are_not_canonical(listing: Listing, platform: str) -> None:
    """New values come in the order in which they were given, duplicates among them."""
    queue, rng = queue_on(platform), np.random.default_rng(4)
    indices, indptr = rng.integers(0, 40, 300).astype(np.int32), np.arange(0, 301, 10, dtype=np.int32)
    A, B = sp.csr_array((rng.random(300), indices, indptr), shape=(30, 40)), random_matrix((40, 50), 5, rng)
    plan = listing(device_matrix(queue, A), device_matrix(queue, B))
    summed = sp.csr_array(A.tocoo().tocsr())
    assert_product(plan(A.data, B.data), summed, B)
    assert get_list(plan) is not None


@pytest.mark.parametrize("platform", PLATFORMS)
def test_results_share_structure_and_may_be_written_again(listing: Listing, platform: str) -> None:
    queue, rng = queue_on(platform), np.random.default_rng(5)
    A, B = random_matrix((200, 150), 5, rng), random_matrix((150, 100), 7, rng)
    plan = listing(device_matrix(queue, A), device_matrix(queue, B))
    first = plan(A.data, B.data)
    assert plan(A.data * 2, B.data, out=first) is first
    assert_product(first, sp.csr_array((A.data * 2, A.indices, A.indptr), shape=A.shape), B)
    assert plan(A.data, B.data).indices is first.indices


def list_from(monkeypatch: pytest.MonkeyPatch, product: int) -> None:
    """Have lists begun by a product of new values, however rows are made."""
    shipped, numbers = Kind.thresholds.fget, {"list_after": product, "list_after_merged": product}  # type: ignore[attr-defined]
    monkeypatch.setattr(Kind, "thresholds", property(lambda of: replace(shipped(of), **numbers)))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_memory(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    """A list is made only of few bytes beside the limit, which holds with it; values are right with and without it."""
    queue, rng = queue_on(platform), np.random.default_rng(6)
    A, B = random_matrix((400, 300), 8, rng), random_matrix((300, 200), 9, rng)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    monkeypatch.setattr(product_list, "_reads_side_by_side", lambda _: False)
    list_from(monkeypatch, 2)
    for limit, is_listed in ((1 << 19, False), (1 << 26, True)):
        plan = spgemm_plan(left, right, memory_limit=limit)
        plan()
        plan._list_undecided = True
        for factor in (2, 3, 4):
            C = plan(A.data * factor, B.data)
            assert_product(C, sp.csr_array((A.data * factor, A.indices, A.indptr), shape=A.shape), B)
        assert (get_list(plan) is not None) == is_listed
        bytes_told = plan.explain().workspace_bytes
        assert bytes_told is not None
        assert bytes_told <= limit


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_list_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    queue, rng = queue_on(platform), np.random.default_rng(7)
    A, B = random_matrix((90, 80), 5, rng), random_matrix((80, 70), 6, rng)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B))
    plan()

    def fails(*_: object) -> Generator[cl.Event, None, product_list.ProductList]:
        raise MemoryError("no memory")
        yield

    monkeypatch.setattr(product_list, "make_product_list", fails)
    plan._list, plan._list_undecided = plan._start_list(1), False
    assert_product(plan(A.data, B.data), A, B)
    assert plan._list.is_done
    assert get_list(plan) is None


def test_which_rows_are_worth_it() -> None:
    """Most rows have to look for the place of each product, and products have to be few enough for the memory there is."""
    queue = queue_on(next(iter(PLATFORMS)))
    A = device_matrix(queue, sp.eye_array(64, format="csr"))
    product = spgemm_plan(A, A)._product._replace(n_products=1000, memory_limit=1 << 20)

    def steps(*accumulators: Any) -> list[Step]:
        return [Step(Bin("named", accumulator), Rows(n), None) for accumulator, n in zip(accumulators, (10, 11), strict=False)]

    sort, item, team, span = Sort(4, 4, registers=True), Merge(1, 8), Merge(8, 8), DenseSpan(256)
    limits = product.kind.thresholds
    soon, late = limits.list_after, limits.list_after_merged
    assert 1 < soon < late
    for these, wanted in (
        ((sort,), soon), ((item,), None), ((team,), late), ((span,), None), ((item, sort), soon), ((sort, item), None),
        ((sort, span), None), ((span, team), late), ((team, sort), soon),
    ):  # fmt: skip
        assert product_list.first_list_call(product, steps(*these), 900) == wanted
    for other in (product._replace(n_products=100_000), product._replace(n_products=1 << 31, memory_limit=1 << 50)):
        assert product_list.first_list_call(other, steps(sort), 900) is None
    assert product_list.first_list_call(product, steps(sort), 1 << 31) is None


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_list_is_made_after_some_products(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    queue, rng = queue_on(platform), np.random.default_rng(9)
    A, B = random_matrix((90, 80), 5, rng), random_matrix((80, 70), 6, rng)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B))
    monkeypatch.setattr(product_list, "_reads_side_by_side", lambda _: False)
    list_from(monkeypatch, 3)
    plan._list_undecided = True
    listed = []
    for factor in range(1, 7):
        assert_product(plan(A.data * factor, B.data), sp.csr_array((A.data * factor, A.indices, A.indptr), shape=A.shape), B)
        listed.append(get_list(plan) is not None)
        queue.finish()
    # The first product makes the columns; the fourth begins the list, and has it if the device was as quick as the host.
    assert not any(listed[:3])
    assert listed[-1]


def test_cpu_devices_do_without() -> None:
    queue = queue_on(next(iter(PLATFORMS)))
    if describe(queue.device).resident > 1:
        pytest.skip("no CPU device")
    A = random_matrix((50, 50), 5, np.random.default_rng(8))
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, A))
    plan()
    assert_product(plan(A.data, A.data), A, A)
    assert plan._list is None
