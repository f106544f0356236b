"""Products that several devices share."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from platforms import PLATFORMS, queue_on
from pyopencl import array as cl_array

import clsparse_py as sp
from bench.sharing import parts_of, queue_of, slowed
from clsparse_py._spmv import shared, speed
from clsparse_py._spmv.division import Division, Load, Speed, divide, rows_by_device
from clsparse_py._spmv.turns import times_in_turns
from clsparse_py.device import describe

LOAD = Load(10**8, 10**6, 10**6)
NEAR = shared.SharedSpmvPlan._near


def test_devices_end_at_the_same_time() -> None:
    even = divide([Speed(1e10, 1e-5)] * 2, LOAD)
    assert even.shares == pytest.approx((0.5, 0.5), abs=1e-2)
    assert even.seconds == pytest.approx(5e-3, rel=1e-2)
    for times in (2, 4, 8):
        found = divide([Speed(1e10, 1e-5), Speed(1e10 / times, times * 1e-5)], LOAD)
        assert found.shares[1] == pytest.approx(1 / (1 + times), rel=0.1)
    three = divide([Speed(4e10, 1e-5), Speed(2e10, 1e-5), Speed(2e10, 1e-5)], LOAD)
    assert three.shares == pytest.approx((0.5, 0.25, 0.25), abs=1e-2)


def test_one_device_where_two_do_not_pay() -> None:
    fast, slow = Speed(3e12, 1e-5, 5e10), Speed(5e10, 5e-5)
    # x and y travel to a GPU that has a memory of its own in less time than it saves; a CPU beside it adds less than that.
    assert divide([fast, slow], LOAD, home=0).shares == (1.0, 0.0)
    assert divide([slow, fast], LOAD).shares[0] < 0.05
    # Two that share cores are no faster than one; a small product is done before the second device begins.
    assert divide([Speed(1e10, 1e-5)] * 2, LOAD, together=0.5).shares == (1.0, 0.0)
    assert divide([Speed(1e10, 1e-5)] * 2, Load(10**4, 100, 100)).shares == (1.0, 0.0)
    assert divide([Speed(1e10, 1e-5), Speed(2e10, 1e-5)], Load(0, 0, 0)).shares == (1.0, 0.0)


def test_the_longest_rows_go_to_the_device_that_launches_fastest() -> None:
    throughput, latency = Speed(4e10, 4e-5), Speed(1e10, 1e-5)
    assert not divide([throughput, latency], LOAD, uneven=2.0).by_length
    division = divide([throughput, latency], LOAD, uneven=100.0)
    assert division.by_length
    lengths = np.array([3] * 900 + [1000] + [3] * 900 + [0, 900])
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    short, long = rows_by_device(division, indptr, [throughput, latency], 12, 12)
    assert {900, lengths.size - 1} <= set(np.asarray(long).tolist())
    assert sorted(np.concatenate([short, long]).tolist()) == list(range(lengths.size))
    assert not divide([throughput, Speed(4e10, 4e-5)], LOAD, uneven=100.0).by_length


def test_stretches_of_rows_weigh_what_devices_take() -> None:
    indptr = np.arange(0, 1001 * 5, 5, dtype=np.int64)
    rows = rows_by_device(Division((0.25, 0.0, 0.75), 1.0, (2.0, 2.0, 2.0), 1.0), indptr, [Speed(1, 1)] * 3, 12, 8)
    assert rows == [slice(0, 250), slice(0, 0), slice(250, 1000)]
    assert rows_by_device(Division((0.5, 0.5), 1.0, (2.0, 2.0), 1.0), np.zeros(1, np.int32), [Speed(1, 1)] * 2, 12, 8) == [
        slice(0, 0), slice(0, 0),
    ]  # fmt: skip


_kept: list[cl.Context] = []


@functools.cache
def pair(platform: str) -> tuple[cl.CommandQueue, cl.CommandQueue]:
    """Return queues on two parts of a CPU device, in contexts of their own; of another device, one beside another platform's."""
    device = PLATFORMS[platform]
    try:
        first, second = (queue_of(part, _kept) for part in parts_of(device, 2))
    except (cl.Error, ValueError):
        others = [queue_on(name) for name in PLATFORMS if name != platform]
        if not others:
            pytest.skip("one device, which has no parts")
        return queue_on(platform), others[0]
    return first, second


@pytest.fixture
def queues(queue: cl.CommandQueue) -> tuple[cl.CommandQueue, cl.CommandQueue]:
    return pair(next(name for name in PLATFORMS if queue_on(name) == queue))


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have products divided by shares that are given, whatever the devices' speeds."""
    monkeypatch.setattr(shared, "speed_of", lambda _: Speed(1e10, 1e-5))
    monkeypatch.setattr(shared, "together", lambda _: 1.0)

    monkeypatch.setattr(shared.SharedSpmvPlan, "_near", lambda *_: [])

    def by(*shares: float, by_length: bool = False) -> None:
        monkeypatch.setattr(shared, "divide", lambda *_: Division(shares, 1e-3, (2e-3,) * len(shares), 1.0, by_length))

    return by


def matrix(dtype: Any, index: Any = np.int32, n: int = 300) -> scipy.sparse.csr_array:
    """Return a matrix with rows of many lengths, empty ones and a long one among them."""
    rng = np.random.default_rng(1)
    lengths = np.minimum(rng.geometric(0.2, n) - 1, n)
    lengths[7] = n
    columns = np.concatenate([np.sort(rng.permutation(n)[:length]) for length in lengths]).astype(index)
    values = rng.integers(1, 5, columns.size).astype(dtype)
    return scipy.sparse.csr_array((values, columns, np.concatenate(([0], np.cumsum(lengths))).astype(index)), (n, n))


@pytest.mark.every_platform
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_products_are_those_of_one_device(
    queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None], dtype: Any
) -> None:
    S = matrix(dtype, np.int32 if dtype == np.float32 else np.int64)
    n, x = S.shape[0], (np.arange(S.shape[0]) % 5).astype(dtype)
    A = sp.csr_array(S, queue=queues[0])
    other = sp.csr_array.assembled(A.structure, (A * 2).data)
    for shares, by_length in (((0.4, 0.6), False), ((0.4, 0.6), True), ((0.0, 1.0), False)):
        divided(*shares, by_length=by_length)
        plan = sp.spmv_plan(A, queues=queues)
        for of, values in ((A, S), (other, 2 * S)):
            np.testing.assert_array_equal(sp.spmv(of, x, plan=plan), values @ x)
            on_device = sp.spmv(of, cl_array.to_device(queues[0], x), plan=plan)
            np.testing.assert_array_equal(on_device.get(), values @ x)
        y = np.arange(n).astype(dtype)
        wanted = 2 * (S @ x) + 3 * y
        padded = cl_array.to_device(queues[0], np.concatenate((y, y)))
        inside = padded[n:]
        assert sp.spmv(A, x, plan=plan, alpha=2, beta=3, out=y) is y
        np.testing.assert_array_equal(y, wanted)
        spread = cl_array.to_device(queues[0], np.repeat(x, 2))[::2]
        assert sp.spmv(A, spread, plan=plan, alpha=2, beta=3, out=inside) is inside
        np.testing.assert_array_equal(padded.get()[n:], wanted)
        np.testing.assert_array_equal(sp.spmv(A, np.repeat(x, 2)[::2], plan=plan), S @ x)


def test_devices_of_two_platforms_share_a_product(queue: cl.CommandQueue, divided: Callable[..., None]) -> None:
    others = [queue_on(name) for name in PLATFORMS if queue_on(name) != queue]
    if not others:
        pytest.skip("one platform")
    S, x = matrix(np.float32), np.arange(300, dtype=np.float32)
    A = sp.csr_array(S, queue=queue)
    for by_length in (False, True):
        divided(0.5, 0.5, by_length=by_length)
        plan = sp.spmv_plan(A, queues=[others[0], queue])
        assert plan.queues == (queue, others[0])
        np.testing.assert_allclose(sp.spmv(A, x, plan=plan), S @ x, rtol=1e-6)
        np.testing.assert_allclose(sp.spmv(A, cl_array.to_device(queue, x), plan=plan).get(), S @ x, rtol=1e-6)


class Closed(cl.CommandQueue):
    """A queue whose context was let go, as some drivers have it (quirk 9)."""

    @property
    def context(self) -> cl.Context:
        raise cl.LogicError("clRetainContext failed: INVALID_CONTEXT")


def test_what_is_written_in_place_is_told_of(
    queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None]
) -> None:
    S, x = matrix(np.float32), np.ones(300, np.float32)
    divided(0.5, 0.5, by_length=True)
    A = sp.csr_array(S, queue=queues[0])
    plan = sp.spmv_plan(A, queues=queues)
    A.data.fill(3)
    plan.refresh(A)
    wanted = 3 * np.diff(S.indptr)
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan), wanted)
    A.data = A.data * 2
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan), 2 * wanted)
    least = np.where(wanted, 7, np.inf)  # 6 + 1 in rows that have entries
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan, semiring=sp.min_plus), least)


def test_parts_share_memory_that_all_reach(queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None]) -> None:
    if not all(describe(queue.device).aliases_host for queue in queues):
        pytest.skip("a device has memory of its own")
    divided(0.5, 0.5)
    S = matrix(np.float32)
    A = sp.csr_array(S, queue=queues[0], zero_copy=True)
    told = sp.spmv_plan(A, queues=queues).explain()
    assert [part[4] for part in told.parts] == ["A's own", "shared, no copy"]
    assert sum(int(part[1]) for part in told.parts) == 300
    assert "10 GB/s" in told.rule
    assert "SpMV on 2 devices" in repr(told)
    plan = sp.spmv_plan(A, queues=queues)
    plan._parts[1].plan._refused["another"] = None
    assert "without another, which the driver's compiler refuses" in plan.explain().rule
    del plan
    del A
    # Of a matrix whose memory is of the pool, the second device has a copy.
    B = sp.csr_array(S, queue=queues[0]) * 2
    assert [part[4] for part in sp.spmv_plan(B, queues=queues).explain().parts] == ["A's own", "copied"]


def test_one_device_takes_all_if_that_is_as_fast(
    queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None]
) -> None:
    A, x = sp.csr_array(matrix(np.float32), queue=queues[0]), np.ones(300, np.float32)
    divided(1.0, 0.0)
    plan = sp.spmv_plan(A, queues=queues, kernel="serial")
    assert plan.alone is not None
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan), A.get() @ x)
    told = plan.explain()
    assert len(told.parts) == 1
    assert "no division is expected to be 5 % faster" in told.rule
    for shape in ((0, 5), (5, 0)):
        empty = sp.csr_array(shape, dtype=np.float32, queue=queues[0])
        divided(0.5, 0.5)
        found = sp.spmv(empty, np.ones(shape[1], np.float32), plan=sp.spmv_plan(empty, queues=queues))
        np.testing.assert_array_equal(found, np.zeros(shape[0]))


def test_what_is_faster_when_it_is_tried_is_kept(
    queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    S, x = matrix(np.float32), np.ones(300, np.float32)
    A = sp.csr_array(S, queue=queues[0], zero_copy=describe(queues[0].device).aliases_host)
    monkeypatch.setattr(shared.SharedSpmvPlan, "_near", NEAR)
    both = describe(queues[0].device).aliases_host and describe(queues[1].device).aliases_host
    for shares, times, kept, said in (
        ((0.5, 0.5), (1e-3, 2e-3, 4e-3), None, "tried: shared 1 ms, "),
        ((0.5, 0.5), (2e-3, 1e-3, 4e-3), 0, "one device, as a division was not 5 % faster"),
        ((0.5, 0.5), (0.97e-3, 1e-3, 4e-3), 0, "one device, as a division was not 5 % faster"),
        # A division is faster in one of two calls: not enough. One device's slow call does not count.
        ((0.5, 0.5), ((1e-3, 1e-3, 3e-3, 3e-3), (2e-3, 2e-3, 9e-3), 4e-3), 0, "one device, as a division was not 5 % faster"),
        ((0.5, 0.5), ((1e-3,) * 4 + (3e-3,), (2e-3, 2e-3, 9e-3), 4e-3), None, "tried: shared 1 ms, "),
        ((0.5, 0.5), (2e-3, 4e-3, 1e-3), 1, "one device, as a division was not 5 % faster"),
        ((1.0, 0.0), (2e-3, 1e-3), 1, "alone 1 ms"),
    ):

        def timed(calls: Any, _: float, times: Any = times) -> list[list[float]]:
            for call in calls:
                call()
            return [list(each) if isinstance(each, tuple) else [each] for each in times[: len(calls)]]

        divided(*shares)
        monkeypatch.setattr(shared, "times_in_turns", timed)
        plan = sp.spmv_plan(A, queues=queues)
        if both:
            assert len(plan.tried) == len(times)
            assert len(plan.explain().parts) == (2 if kept is None else 1)
            assert kept is None or plan.division.shares[kept] == 1.0
            assert said in plan.explain().rule
        np.testing.assert_array_equal(sp.spmv(A, x, plan=plan), S @ x)
    # Of a matrix that is not in the host's memory, no device but its own has all.
    B = sp.csr_array(S, queue=queues[0]) * 2
    plan = sp.spmv_plan(B, queues=queues)
    assert 1 not in plan.tried
    np.testing.assert_array_equal(sp.spmv(B, x, plan=plan), 2 * (S @ x))


def test_turns_change_their_order() -> None:
    told: list[str] = []
    found = times_in_turns([functools.partial(told.append, "a"), functools.partial(told.append, "b")], 0.0)
    assert len(found) == 2
    assert all(seconds >= 0 for times in found for seconds in times)
    assert [len(times) for times in found] == [5, 5]
    assert len(told) == 12
    assert {"".join(told[at : at + 2]) for at in range(2, 12, 2)} == {"ab", "ba"}


def test_speeds_are_measured_once(
    queues: tuple[cl.CommandQueue, cl.CommandQueue],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    for name, value in (("_MANY", 1 << 16), ("_MOST", 1 << 16), ("_SECONDS", 0.02)):
        monkeypatch.setattr(speed, name, value)
    speed.forget()
    with caplog.at_level(logging.INFO, "clsparse_py._spmv.speed"), slowed(queues[1], 8):
        first, second = map(speed.speed_of, queues)
        assert 0 < speed.together(queues) <= 1
        assert len(caplog.records) == 3
        # Of a device whose launches are repeated products take longer.
        assert second.bytes_per_second < first.bytes_per_second / 2
        speed.forget()  # as in another process
        assert list(map(speed.speed_of, queues)) == [first, second]
        speed.together(queues)
        assert len(caplog.records) == 3
        assert speed.measure(queues[0]) == speed.speed_of(queues[0])
    assert math.isinf(first.link_bytes_per_second) or not describe(queues[0].device).aliases_host
    speed.forget()


def test_bad_queues_are_named(queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None]) -> None:
    A = sp.csr_array(matrix(np.float32), queue=queues[0])
    divided(0.5, 0.5)
    for bad, error, message in (
        ([], ValueError, "queues: must name at least one queue"),
        (queues[0], TypeError, "queues: must be a list"),
        ([queues[0], None], TypeError, r"queues: .* \[1\] is NoneType"),
        (
            [queues[0], Closed(queues[1].context, queues[1].device)],
            ValueError,
            r"queues: \[1\] cannot be used: .*INVALID_CONTEXT",
        ),
        ([queues[0], queues[0]], ValueError, r"queues: \[0\] and \[1\] are of one device"),
    ):
        with pytest.raises(error, match=message):
            sp.spmv_plan(A, queues=bad)
    parent = getattr(queues[0].device, "parent_device", None)
    if parent:
        with pytest.raises(ValueError, match="a part of another"):
            sp.spmv_plan(A, queues=[queues[0], queue_of(parent, _kept)])
    plan = sp.spmv_plan(A, queues=queues)
    B = sp.csr_array(matrix(np.float32), queue=queues[0])
    for call in (lambda: sp.spmv(B, np.ones(300, np.float32), plan=plan), lambda: plan.refresh(B)):
        with pytest.raises(ValueError, match="structure"):
            call()
    with pytest.raises(ValueError, match="x: must have 300 rows"):
        sp.spmv(A, np.ones(3, np.float32), plan=plan)
    with pytest.raises(TypeError, match="plan: must be an SpmvPlan"):
        sp.spmv(A, np.ones(300, np.float32), plan="auto")


def test_a_device_without_the_dtype_is_named(
    queues: tuple[cl.CommandQueue, cl.CommandQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not describe(queues[0].device).fp64:
        pytest.skip("no double precision")
    A = sp.csr_array(matrix(np.float64), queue=queues[0])
    without = queues[1].device
    monkeypatch.setattr(shared, "describe", lambda of: replace(describe(of), fp64=of != without))
    with pytest.raises(TypeError, match=r"queues: \[1\] is of .* lacks double precision, and A's dtype is float64"):
        sp.spmv_plan(A, queues=queues)
