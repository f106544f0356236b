"""Arrays between host and device."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from platforms import make_queue
from pyopencl import array as cl_array

from clsparse_py._device.device import describe
from clsparse_py._matrix.convert import Convert, convert
from clsparse_py._run.transfer import contexts_match, find_pending_events, from_host, on_host


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("shape", [(0,), (7,), (3, 0), (3, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_there_and_back(queue: cl.CommandQueue, shape: tuple[int, ...], order: str, copy: bool) -> None:
    host = np.asarray(np.arange(np.prod(shape)).reshape(shape), order=order, dtype=np.int32)
    on_device = from_host(queue, host, copy=copy)
    assert (on_device.shape, on_device.dtype) == (host.shape, host.dtype)
    np.testing.assert_array_equal(on_device.get(), host)
    if not copy:
        before = host.copy()
        on_device += 5
        assert on_host(on_device, host) is host
        np.testing.assert_array_equal(host, before + 5)


@pytest.mark.parametrize("copy", [False, True])
def test_memory_is_shared_where_asked_and_possible(queue: cl.CommandQueue, copy: bool) -> None:
    host = np.arange(64, dtype=np.int32)
    on_device = from_host(queue, host, copy=copy)
    host += 100
    shared = describe(queue.device).aliases_host and not copy
    np.testing.assert_array_equal(on_device.get(), np.arange(64) + 100 * shared)


def test_memory_that_is_not_aligned_is_copied(queue: cl.CommandQueue) -> None:
    host = np.zeros(68, np.uint8)[1:65].view(np.int32)
    on_device = from_host(queue, host, copy=False)
    on_device += 1
    np.testing.assert_array_equal(on_host(on_device, host), 1)


def test_the_host_array_is_kept_alive(queue: cl.CommandQueue) -> None:
    on_device = from_host(queue, np.full(100_000, 7, np.int32), copy=False)
    other = [np.zeros(100_000, np.int32) for _ in range(10)]
    np.testing.assert_array_equal(on_device.get(), 7)
    assert len(other) == 10


def test_contexts(queue: cl.CommandQueue) -> None:
    array = cl_array.zeros(queue, 3, np.int32)
    assert contexts_match(array, queue.context)
    assert not contexts_match(array, cl.Context([queue.device]))


def test_pending_names_what_a_queue_does_not_order(queue: cl.CommandQueue) -> None:
    other = cl.CommandQueue(queue.context, queue.device)
    unordered = make_queue(queue, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    array = cl_array.empty(queue, 3, np.int32)
    assert find_pending_events(queue, array) is None
    gate = cl.UserEvent(queue.context)
    event = cl.enqueue_marker(queue, wait_for=[gate])
    array.add_event(event)
    assert find_pending_events(queue, array) is None
    assert find_pending_events(other, array) == [event]
    assert find_pending_events(unordered, array) == [event]
    gate.set_status(cl.command_execution_status.COMPLETE)
    queue.finish()
    assert find_pending_events(other, array) is None
    assert not array.events


TYPES = ("bool", "int8", "uint16", "int64", "float32", "complex64")


@pytest.mark.parametrize("source", TYPES)
def test_conversions(queue: cl.CommandQueue, source: str) -> None:
    values = np.array([0, 1, 2, 100, 0, 3, 4, 5, 6], source)
    for target in TYPES:
        for step in (1, -2):
            result = convert(queue, "data", cl_array.to_device(queue, values)[::step], np.dtype(target))
            assert result.dtype == target
            assert (result.offset, result.strides) == (0, (np.dtype(target).itemsize,))
            np.testing.assert_array_equal(result.get(), values.real[::step].astype(target))


@pytest.mark.parametrize("work_group", [1, 7, 48, 64, 1 << 20])
def test_conversion_at_every_work_group_size(queue: cl.CommandQueue, work_group: int) -> None:
    values = np.arange(100_000, dtype=np.int32)
    result = convert(queue, "data", cl_array.to_device(queue, values), np.dtype(np.int64), work_group)
    np.testing.assert_array_equal(result.get(), values)
    assert convert(queue, "data", cl_array.to_device(queue, values[:0]), np.dtype(np.int64)).size == 0
    assert Convert(64, "int32", "bool").within(0, 1) is None
