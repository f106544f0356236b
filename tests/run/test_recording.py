"""Kinds of calls: worked out once, repeated with other arrays, on any queue, and whatever fails in between."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from platforms import make_queue
from pyopencl import array as cl_array

from clsparse_py import csr_array, memory_info, spmv, spmv_plan
from clsparse_py._build import programs
from clsparse_py._build.built import Repeated
from clsparse_py._memory.workspace import Workspace, counting
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._run import recording
from clsparse_py._run.launch import Chain

pytestmark = pytest.mark.any_platform

N = 100_000


def twice(chain: Chain, source: cl_array.Array, target: cl_array.Array, n: int, calls: list[int]) -> None:
    """Enqueue the scan of a scan."""
    calls.append(n)
    between = chain.scratch(n, source.dtype)
    enqueue_scan(chain, source, between, n, kind="inclusive")
    enqueue_scan(chain, between, target, n, kind="inclusive")


class Calls(list[int]):
    """How often a function was worked out: part of a kind of call, as itself."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def run_scan(queue: cl.CommandQueue, values: np.ndarray[Any, Any], calls: Calls) -> np.ndarray[Any, Any]:
    source = cl_array.to_device(queue, values)
    chain, target = Chain(queue, source), cl_array.empty_like(source)
    recording.run(chain, twice, (source, target), values.size, calls)
    chain.finish(target)
    return target.get()


def expected_scan(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.cumsum(np.cumsum(values, dtype=values.dtype), dtype=values.dtype)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_kind_is_worked_out_once(queue: cl.CommandQueue, ordered: bool) -> None:
    properties = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if not ordered and not queue.device.queue_properties & properties:
        pytest.skip("the device keeps commands in order")
    own, calls = make_queue(queue, 0 if ordered else properties), Calls()
    for step in range(3):
        values = np.arange(N, dtype=np.uint32) % 7 + np.uint32(step)
        np.testing.assert_array_equal(run_scan(own, values, calls), expected_scan(values))
    assert calls == [N]
    for values in (np.ones(N - 1, np.uint32), np.ones(N, np.int32)):
        np.testing.assert_array_equal(run_scan(own, values, calls), expected_scan(values))
    assert calls == [N, N - 1, N]


def test_kernels_that_are_repeated_are_recorded(queue: cl.CommandQueue) -> None:
    calls, values = Calls(), np.ones(N, np.uint32)
    with programs.recording() as first:
        run_scan(queue, values, calls)
    with programs.recording() as second:
        run_scan(queue, values, calls)
    # Kernels between which a step chooses are built together, and one of them runs.
    assert set(second) <= set(first)
    assert second
    programs.forget_refused()
    run_scan(queue, values, calls)
    assert len(calls) == 2


def nested_call(chain: Chain, source: cl_array.Array, target: cl_array.Array, n: int, calls: Calls) -> None:
    recording.run(chain, twice, (source, target), n, calls)
    chain.fill(target, 3, 5)


def test_a_kind_may_be_part_of_another(queue: cl.CommandQueue) -> None:
    values, calls = np.ones(N, np.uint32), Calls()
    source = cl_array.to_device(queue, values)
    for _ in range(2):
        chain, target = Chain(queue, source), cl_array.empty_like(source)
        recording.run(chain, nested_call, (source, target), N, calls)
        chain.finish(target)
        np.testing.assert_array_equal(target.get()[:5], 3)
        np.testing.assert_array_equal(target.get()[5:], expected_scan(values)[5:])
    assert calls == [N]


def through(chain: Chain, source: cl_array.Array, target: cl_array.Array, n: int, times: int) -> None:
    """Enqueue scans that hand on from one piece of scratch memory to the next."""
    for step in range(times):
        to = target if step == times - 1 else chain.scratch(n, source.dtype)
        enqueue_scan(chain, source, to, n, kind="inclusive")
        source = to


def test_pieces_of_scratch_memory_share_blocks(queue: cl.CommandQueue) -> None:
    """However many there are, one after another, two of them are enough, and what a scan takes itself."""
    source = cl_array.to_device(queue, np.ones(N, np.uint32))
    peaks = []
    for times in (4, 9):
        workspace, target = Workspace(1 << 40), cl_array.empty_like(source)
        expected = source.get()
        for _ in range(times):
            expected = np.cumsum(expected, dtype=np.uint32)
        with counting(workspace):
            chain = Chain(queue, source)
            recording.run(chain, through, (source, target), N, times)
            chain.finish(target)
        np.testing.assert_array_equal(target.get(), expected)
        assert workspace.used == 0
        peaks.append(workspace.peak)
    assert peaks[0] == peaks[1] < 3 * source.nbytes


@pytest.mark.parametrize("room", [0, 5 * N])
def test_scratch_memory_is_let_go_if_there_is_too_little(queue: cl.CommandQueue, room: int) -> None:
    own, values = cl.CommandQueue(queue.context, queue.device), np.ones(N, np.uint32)
    run_scan(own, values, calls := Calls())
    own.finish()
    gc.collect()
    used = memory_info(own).used
    workspace = Workspace(room)
    with counting(workspace), pytest.raises(MemoryError, match="memory_limit"):
        through_scratch(own, values)
    assert workspace.used == 0
    assert memory_info(own).used == used
    np.testing.assert_array_equal(run_scan(own, values, calls), expected_scan(values))


def through_scratch(queue: cl.CommandQueue, values: np.ndarray[Any, Any]) -> None:
    source = cl_array.to_device(queue, values)
    recording.run(Chain(queue, source), through, (source, cl_array.empty_like(source)), values.size, 3)


def test_what_a_command_raises_lets_scratch_memory_go(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    own, values = cl.CommandQueue(queue.context, queue.device), np.ones(N, np.uint32)
    run_scan(own, values, calls := Calls())
    own.finish()
    used = memory_info(own).used

    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(cl, "enqueue_nd_range_kernel", fails)
        with pytest.raises(ZeroDivisionError):
            run_scan(own, values, calls)
    assert memory_info(own).used == used
    np.testing.assert_array_equal(run_scan(own, values, calls), expected_scan(values))


def peeks(_: Chain, array: cl_array.Array, of: Callable[[cl_array.Array], Any]) -> None:
    of(array)


@pytest.mark.parametrize("of", [lambda array: array.size, lambda array: array.data, lambda array: array.queue])
def test_a_kind_knows_only_the_dtypes_of_arrays(queue: cl.CommandQueue, of: Callable[[cl_array.Array], Any]) -> None:
    array = cl_array.to_device(queue, np.ones(3, np.float32))
    with pytest.raises(AttributeError):
        recording.run(Chain(queue, array), peeks, (array,), of)


def test_a_repeated_launch_has_the_operands_of_its_own_call(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel objects that are set for one product are not taken for another: of other x, values, out, plans' bound products."""
    own, n = cl.CommandQueue(queue.context, queue.device), 300
    A = csr_array((np.ones(n, np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n), queue=own)
    plan, repeats = spmv_plan(A), [0]
    enqueue = Repeated.enqueue

    def counted(*given: Any) -> cl.Event:
        repeats[0] += 1
        return enqueue(*given)

    monkeypatch.setattr(Repeated, "enqueue", counted)
    xs = [cl_array.to_device(own, np.full(n, value, np.float32)) for value in range(1, 4)]
    outs = [cl_array.zeros(own, n, np.float32) for _ in range(2)]
    bound = plan.bind(A, xs[2], outs[1])
    for turn in range(6):
        values = cl_array.to_device(own, np.full(n, 10 + turn, np.float32))
        if turn % 2:
            A.data = values
        scale = A.data[0].get()
        for at in (0, 0, 0, 1, 0, 1, 1, 2, 2):
            np.testing.assert_array_equal((A @ xs[at]).get(), scale * (at + 1))
            spmv(A, xs[at], out=outs[0])
            spmv(A, xs[at], out=outs[0])
            np.testing.assert_array_equal(outs[0].get(), scale * (at + 1))
        if turn % 2 == 0:
            xs[1] = xs[1].copy()
        bound = plan.bind(A, xs[2], outs[1])
        for _ in range(2):
            np.testing.assert_array_equal(bound().get(), scale * 3)
        xs[0].base_data = xs[0].copy().base_data  # other memory of the same array
        np.testing.assert_array_equal((A @ xs[0]).get(), scale)
    assert repeats[0]
