"""Upgrades of plans: behind how many calls they are made, when calls are expected, and how explanations tell of them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Generator

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array

from clsparse_py import csr_array, spmm, spmm_plan, spmv, spmv_plan
from clsparse_py._operations.spmv.choose import KernelChoice, Thresholds
from clsparse_py._run.upgrade import Upgrade

pytestmark = pytest.mark.any_platform


def test_no_call_waits(queue: cl.CommandQueue) -> None:
    gate = cl.UserEvent(queue.context)

    def make() -> Generator[cl.Event, None, str | None]:
        yield gate
        return "it"

    upgrade: Upgrade[str] = Upgrade("something", 3, None, make)
    assert [upgrade.come() for _ in range(5)] == [False] * 5
    assert "due at call 3" in str(upgrade)
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert upgrade.come()
    assert upgrade.made == "it"
    assert str(upgrade) == "something: done"


def test_what_lacks_memory_is_of_no_use() -> None:
    def make() -> Generator[cl.Event, None, str | None]:
        raise MemoryError
        yield

    upgrade: Upgrade[str] = Upgrade("something", 1, None, make)
    assert upgrade.come()
    assert upgrade.made is None
    assert str(upgrade) == "something: not made"


@pytest.mark.parametrize(
    ("expected", "first", "last"), [(None, False, True), (32, True, True), (31, False, False), (0, False, False)]
)
def test_expected_products(queue: cl.CommandQueue, expected: int | None, first: bool, last: bool) -> None:
    host = sp.random_array((300, 200), density=0.05, dtype=np.float32, random_state=np.random.default_rng(0), format="csr")
    A, x = csr_array(host, queue=queue), cl_array.to_device(queue, np.ones(200, np.float32))
    plan = spmv_plan(A, kernel=KernelChoice("narrow", 64, items=4), expected_calls=expected)
    results = []
    for _ in range(40):
        results.append(spmv(A, x, plan=plan).get())
        if len(results) == 1:
            assert ("columns" in str(plan.explain().shares[0].why)) == (first or expected is None)
            assert ("narrow" in plan.explain().shares[0].built) == first
    assert ("narrow" in plan.explain().shares[0].built) == last
    np.testing.assert_allclose(results[0], host @ np.ones(200, np.float32), rtol=1e-5)
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_numbers_of_calls_are_checked(queue: cl.CommandQueue) -> None:
    A = csr_array(np.eye(3), queue=queue)
    for wrong in (-1, 2.5, "many"):
        for plan in (spmv_plan, spmm_plan):
            with pytest.raises(ValueError, match=r"^expected_calls: must be a whole number"):
                plan(A, expected_calls=wrong)  # type: ignore[operator]
    np.testing.assert_array_equal(spmm(A, np.eye(3), plan=spmm_plan(A, expected_calls=100)), np.eye(3))


def test_thresholds_are_checked() -> None:
    assert Thresholds.from_values({"narrow_after": 5}).narrow_after == 5
    for wrong in ({"narrow_after": 0}, {"narrow_after": 1.5}, {"fastest": 1, "narrow_after": 5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Thresholds.from_values(wrong)


def test_what_is_due_goes_with_its_plan(queue: cl.CommandQueue) -> None:
    """No circle of references keeps a plan's memory."""
    host = sp.random_array((300, 200), density=0.05, dtype=np.float32, random_state=np.random.default_rng(0), format="csr")
    gc.collect()
    gc.disable()
    try:
        A = csr_array(host, queue=queue)
        of = weakref.ref(A.indices)
        x, X = (cl_array.to_device(queue, np.ones(shape, np.float32)) for shape in (200, (200, 3)))
        plans = spmv_plan(A, kernel=KernelChoice("narrow", 64, items=4)), spmm_plan(A)
        spmv(A, x, plan=plans[0]).get()
        spmm(A, X, plan=plans[1]).get()
        del A, plans
        assert of() is None
    finally:
        gc.enable()
