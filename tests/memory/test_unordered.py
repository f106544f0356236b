"""Queues without order: what a caller enqueues there, and what operations do, meet as OpenCL has it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from platforms import make_queue
from pyopencl import array as cl_array

import clsparse_py as sp

PROPERTIES = cl.command_queue_properties
N = 20_000


@pytest.fixture
def unordered(queue: cl.CommandQueue) -> cl.CommandQueue:
    if not queue.device.queue_properties & PROPERTIES.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        pytest.skip("the device keeps commands in order")
    both = PROPERTIES.OUT_OF_ORDER_EXEC_MODE_ENABLE | PROPERTIES.PROFILING_ENABLE
    return make_queue(queue, both)


@pytest.fixture
def gate(queue: cl.CommandQueue) -> Iterator[cl.UserEvent]:
    """Return an event that holds back what waits for it, until the test opens it or ends."""
    event = cl.UserEvent(queue.context)
    yield event
    if event.command_execution_status != cl.command_execution_status.COMPLETE:
        event.set_status(cl.command_execution_status.COMPLETE)


def doubling_matrix(queue: cl.CommandQueue) -> tuple[sp.csr_array, cl_array.Array]:
    """Return a matrix that doubles vectors, whose plan is made, and a vector of ones, on a queue."""
    A = 2 * sp.eye_array(N, dtype=np.float32, format="csr", queue=queue)
    x = cl_array.to_device(queue, np.ones(N, np.float32))
    A @ x
    queue.finish()
    return A, x


def begin_as(queue: cl.CommandQueue, x: cl_array.Array, value: float, gate: cl.UserEvent) -> None:
    """Fill a vector by a command of the caller's own, held back by a gate, of which the array does not tell."""
    x.events = []
    cl.enqueue_fill_buffer(queue, x.base_data, np.float32(value), 0, x.nbytes, wait_for=[gate])


def read(array: cl_array.Array) -> np.ndarray:
    """Return the values of an array by a queue that waits for nothing."""
    host = np.empty(array.shape, array.dtype)
    cl.enqueue_copy(cl.CommandQueue(array.context, array.queue.device), host, array.base_data, src_offset=array.offset)
    return host


def test_operations_come_after_all_that_is_on_the_queue(unordered: cl.CommandQueue, gate: cl.UserEvent) -> None:
    A, x = doubling_matrix(unordered)
    begin_as(unordered, x, 3, gate)
    y = A @ x
    assert y.queue is unordered
    gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(y.get(), 6)


def test_after_finish_all_is_there(unordered: cl.CommandQueue, gate: cl.UserEvent) -> None:
    A, x = doubling_matrix(unordered)
    begin_as(unordered, x, 4, gate)
    product, scanned = A @ x, sp.primitives.exclusive_scan(x)
    gate.set_status(cl.command_execution_status.COMPLETE)
    matrix = A @ A  # waits to learn its size
    unordered.finish()
    np.testing.assert_array_equal(read(product), 8)
    np.testing.assert_array_equal(read(scanned), 4 * np.arange(N))
    np.testing.assert_array_equal(read(matrix.data), 4)


def test_a_barrier_alone_orders_what_comes_after_it(unordered: cl.CommandQueue, gate: cl.UserEvent) -> None:
    A, x = doubling_matrix(unordered)
    begin_as(unordered, x, 5, gate)
    y = A @ x
    cl.enqueue_barrier(unordered)
    copy = cl_array.empty(unordered, N, np.float32)
    cl.enqueue_copy(unordered, copy.base_data, y.base_data, byte_count=y.nbytes)  # waits for no event
    gate.set_status(cl.command_execution_status.COMPLETE)
    unordered.finish()
    np.testing.assert_array_equal(read(copy), 10)


def test_markers_before_and_behind_an_operation_measure_it(unordered: cl.CommandQueue) -> None:
    A, x = doubling_matrix(unordered)
    before = cl.enqueue_marker(unordered)
    y = A @ x
    behind = cl.enqueue_marker(unordered)
    unordered.finish()
    assert before.profile.end <= y.events[-1].profile.start <= y.events[-1].profile.end <= behind.profile.end


def test_more_than_the_host_waits_for_may_be_held_back(unordered: cl.CommandQueue, gate: cl.UserEvent) -> None:
    A, x = doubling_matrix(unordered)
    begin_as(unordered, x, 1, gate)
    y = x
    for _ in range(70):
        y = A @ y
    gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(y.get(), 2.0**70)


def test_ranks_and_blocks_on_a_queue_without_order(queue: cl.CommandQueue, unordered: cl.CommandQueue) -> None:
    S = scipy.sparse.random_array((400, 400), density=0.02, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    ranks = sp.graph.pagerank(sp.csr_array(S, queue=queue))
    blocks = sp.bsr_array(S.tobsr((2, 2)), queue=unordered)
    A = sp.csr_array(S, queue=unordered)
    for _ in range(20):
        np.testing.assert_allclose(sp.graph.pagerank(A), ranks, rtol=1e-4)
        assert abs(blocks.tocsr().get() - S).max() == 0
