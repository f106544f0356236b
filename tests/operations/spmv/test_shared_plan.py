"""Products that several devices share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from platforms import PLATFORMS, queue_on
from pyopencl import array as cl_array

import clsparse_py as sp
from bench.sharing import parts_of, queue_of, slow_down
from clsparse_py._device.device import describe
from clsparse_py._operations.spmv import shared, speed

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
    """Have products divided by speeds that are given, in the order of a plan's queues."""

    def by(*speeds: float) -> None:
        monkeypatch.setattr(shared, "speeds_of", lambda _: (speeds, "speeds that are given"))

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
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64, np.complex64, np.complex128])
def test_products_are_those_of_one_device(
    queues: tuple[cl.CommandQueue, cl.CommandQueue], divided: Callable[..., None], dtype: Any
) -> None:
    if np.dtype(dtype).char in "dD" and not all(describe(queue.device).fp64 for queue in queues):
        pytest.skip("no double precision")
    S = matrix(dtype, np.int32 if np.dtype(dtype).itemsize < 8 else np.int64)
    n, x = S.shape[0], (np.arange(S.shape[0]) % 5).astype(dtype)
    A = sp.csr_array(S, queue=queues[0])
    other = sp.csr_array.assembled(A.structure, (A * 2).data)
    # Each device has rows; one of them has none.
    for speeds in ((0.4, 0.6), (1e-9, 1.0), (1.0, 1e-9)):
        divided(*speeds)
        plan = sp.spmv_plan(A, queues=queues)
        for of, values in ((A, S), (other, (2 * S).astype(dtype))):
            result = sp.spmv(of, x, plan=plan)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, values @ x)
            on_device = sp.spmv(of, cl_array.to_device(queues[0], x), plan=plan)
            np.testing.assert_array_equal(on_device.get(), values @ x)
        y = (np.arange(n) % 7).astype(dtype)
        wanted = (2 * (S @ x) + 3 * y).astype(dtype)
        padded = cl_array.to_device(queues[0], np.concatenate((y, y)))
        inside = padded[n:]
        assert sp.spmv(A, x, plan=plan, alpha=2, beta=3, out=y) is y
        np.testing.assert_array_equal(y, wanted)
        spread = cl_array.to_device(queues[0], np.repeat(x, 2))[::2]
        assert sp.spmv(A, spread, plan=plan, alpha=2, beta=3, out=inside) is inside
        np.testing.assert_array_equal(padded.get()[n:], wanted)
        np.testing.assert_array_equal(sp.spmv(A, np.repeat(x, 2)[::2], plan=plan), S @ x)


@pytest.mark.parametrize("shape", [(1, 40), (3, 3), (40, 1), (0, 5), (5, 0)])
def test_devices_may_be_more_than_rows(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    # Queues of one device are devices of their own: two in its context, and one in another.
    others = [cl.CommandQueue(queue.context, queue.device), queue_of(queue.device, _kept)]
    S = scipy.sparse.csr_array((np.arange(shape[0] * shape[1]) % 4).reshape(shape).astype(np.float32))
    A, x = sp.csr_array(S, queue=queue), (np.arange(shape[1]) % 3).astype(np.float32)
    plan = sp.spmv_plan(A, queues=[others[1], queue, others[0], queue])
    assert plan.queues[-1] == others[1]
    assert len(plan.speeds) == 4
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan), S @ x)
    y = np.ones(shape[0], np.float32)
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan, beta=2, out=y), S @ x + 2)
    on_device = cl_array.to_device(queue, x)
    np.testing.assert_array_equal(sp.spmv(A, on_device, plan=plan).get(), S @ x)
    told = plan.explain().parts
    assert len(told) <= max(shape[0], 1)
    assert sum(int(part[1]) for part in told) == shape[0]


def test_a_part_has_the_bits_of_a_plan_of_one_device(queue: cl.CommandQueue, divided: Callable[..., None]) -> None:
    S = matrix(np.float32).astype(np.float32)
    S.data[:] = np.random.default_rng(2).random(S.nnz)
    x = np.random.default_rng(3).random(300).astype(np.float32)
    divided(0.5, 0.5)
    A = sp.csr_array(S, queue=queue)
    plan = sp.spmv_plan(A, queues=[queue, queue], kernel="vector")
    cut = int(plan.explain().parts[0][1])
    alone = [sp.csr_array(part, queue=queue) for part in (S[:cut], S[cut:])]
    wanted = [sp.spmv(part, x, plan=sp.spmv_plan(part, kernel="vector")) for part in alone]
    np.testing.assert_array_equal(sp.spmv(A, x, plan=plan), np.concatenate(wanted))


def test_devices_of_two_platforms_share_a_product(queue: cl.CommandQueue, divided: Callable[..., None]) -> None:
    others = [queue_on(name) for name in PLATFORMS if queue_on(name) != queue]
    if not others:
        pytest.skip("one platform")
    S, x = matrix(np.float32), np.arange(300, dtype=np.float32)
    A = sp.csr_array(S, queue=queue)
    divided(0.5, 0.5)
    plan = sp.spmv_plan(A, queues=[others[0], queue])
    assert plan.queues == (queue, others[0])
    np.testing.assert_allclose(sp.spmv(A, x, plan=plan), S @ x, rtol=1e-6)
    np.testing.assert_allclose(sp.spmv(A, cl_array.to_device(queue, x), plan=plan).get(), S @ x, rtol=1e-6)
    # On no device of A's.
    divided(1.0)
    plan = sp.spmv_plan(A, queues=others[:1])
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
    divided(0.5, 0.5)
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
    assert told.rule == "rows in order, by speeds that are given"
    assert "SpMV on 2 devices" in repr(told)
    del A
    # Of a matrix whose memory is of the pool, the second device has a copy.
    B = sp.csr_array(S, queue=queues[0]) * 2
    assert [part[4] for part in sp.spmv_plan(B, queues=queues).explain().parts] == ["A's own", "copied"]


def test_parts_are_in_proportion_to_speeds(queue: cl.CommandQueue, divided: Callable[..., None]) -> None:
    # 5 entries of 8 bytes and 8 bytes a row.
    S = scipy.sparse.diags_array([np.float32(1)] * 5, offsets=range(5), shape=(1000, 1004), format="csr")
    A = sp.csr_array(S, queue=queue)
    for speeds, rows in (((1.0, 3.0), ["250", "750"]), ((5e9, 2e9, 3e9), ["500", "200", "300"]), ((7.0,), ["1,000"])):
        divided(*speeds)
        plan = sp.spmv_plan(A, queues=[queue] * len(speeds))
        assert plan.speeds == speeds
        assert [part[1] for part in plan.explain().parts] == rows
    # A row of many entries is a part of its own.
    S = scipy.sparse.csr_array((np.ones(1003, np.float32), np.r_[0, np.arange(1000), 0, 0], [0, 1, 1001, 1002, 1003]))
    divided(1.0, 1.0)
    assert [part[1] for part in sp.spmv_plan(sp.csr_array(S, queue=queue), queues=[queue] * 2).explain().parts] == ["2", "2"]


@pytest.fixture
def kept_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(speed, "_ENTRIES", 1 << 16)


@pytest.mark.usefixtures("kept_in")
def test_speeds_are_those_that_were_measured(queues: tuple[cl.CommandQueue, cl.CommandQueue]) -> None:
    devices = [queue.device for queue in queues]
    assert list(map(speed.read_speed, devices)) == [None, None]
    with slow_down(queues[1], 8):
        first, second = map(speed.measure, queues)
        # Of a device whose launches are repeated products take longer.
        assert 0 < second < first / 2
        assert speed.speeds_of(devices)[0] == (first, second)
        plan = sp.spmv_plan(sp.csr_array(matrix(np.float32), queue=queues[0]), queues=queues)
        assert plan.speeds == (first, second)
        assert "by the bytes a second that `clsparse tune` measured" in plan.explain().rule
        assert f"{second / 1e9:.3g} GB/s" in plan.explain().rule
    # An entry that is no speed is none.
    speed.cache.write(speed._cache_key(devices[0]), b"-1")
    assert speed.read_speed(devices[0]) is None


@pytest.mark.usefixtures("kept_in")
def test_a_device_that_was_not_measured_has_a_number_of_its_own(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    def device(name: str, clock: int, width: int) -> Any:
        return SimpleNamespace(name=name, max_clock_frequency=clock, native_vector_width_float=width)

    def described(of: Any) -> Any:
        lanes = SimpleNamespace(lane_width=32 if "GPU" in of.name else 1)
        return replace(describe(queue.device), name=of.name, compute_units=4, type=of.name.split()[0].lower(), portability=lanes)

    gpu, cpu, silent = device("GPU 1", 2000, 1), device("CPU 1", 3000, 8), device("CPU 2", 0, 16)
    measured: dict[str, float] = {}
    monkeypatch.setattr(speed, "describe", described)
    monkeypatch.setattr(speed, "read_speed", lambda of: measured.get(of.name))
    monkeypatch.setattr(speed, "find_standing", lambda name, *_: (False, {"CPU 1": 1.2, "CPU 2": 1.0}.get(name)))
    result, told = speed.speeds_of([gpu, cpu])
    assert result == (4 * 32 * 2000, 4 * 8 * 3000)
    assert told.startswith("compute units times lanes times clock rate: GPU 1 2.56e+05, CPU 1 9.6e+04; `clsparse tune`")
    assert speed.speeds_of([gpu, silent])[0] == (4 * 32, 4 * 16)
    assert speed.speeds_of([cpu, silent]) == (
        (1.2, 1.0), "the ranks of profiles: CPU 1 1.2, CPU 2 1; `clsparse tune` did not measure CPU 1, CPU 2",
    )  # fmt: skip
    # What was measured on some of them says nothing beside what is known of others.
    measured["CPU 1"] = 2e10
    result, told = speed.speeds_of([gpu, cpu])
    assert result == (4 * 32 * 2000, 4 * 8 * 3000)
    assert told.endswith("did not measure GPU 1")
    measured["GPU 1"] = 2e12
    assert speed.speeds_of([gpu, cpu])[0] == (2e12, 2e10)


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
    ):
        with pytest.raises(error, match=message):
            sp.spmv_plan(A, queues=bad)
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
