"""Device memory: what is used again, when, and what waits for what."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array

from clsparse_py import csr_array, free_memory, memory_info, record_use, spgemm, spmv, transpose
from clsparse_py._build import programs
from clsparse_py._memory import memory
from clsparse_py._memory.device_array import _MAX_EVENTS
from clsparse_py._memory.order import note_written, uses_before_writing
from clsparse_py._memory.pool import _block_size, arena_of
from clsparse_py._run import transfer
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording

pytestmark = pytest.mark.any_platform

N = 50_000
OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


@pytest.fixture
def own(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return a queue in order that no other test has."""
    return cl.CommandQueue(queue.context, queue.device)


@pytest.fixture
def other(queue: cl.CommandQueue) -> cl.CommandQueue:
    return cl.CommandQueue(queue.context, queue.device)


@pytest.fixture
def unordered(queue: cl.CommandQueue) -> cl.CommandQueue:
    if not queue.device.queue_properties & OUT_OF_ORDER:
        pytest.skip("the device keeps commands in order")
    return cl.CommandQueue(queue.context, queue.device, OUT_OF_ORDER)


@pytest.fixture
def gate(queue: cl.CommandQueue) -> Iterator[cl.UserEvent]:
    """Return an event that holds back what waits for it, until the test opens it or ends."""
    event = cl.UserEvent(queue.context)
    yield event
    if event.command_execution_status != cl.command_execution_status.COMPLETE:
        event.set_status(cl.command_execution_status.COMPLETE)


def open_block(gate: cl.UserEvent) -> None:
    gate.set_status(cl.command_execution_status.COMPLETE)


def handle(array: cl_array.Array) -> int:
    return int(array.base_data.int_ptr)


def new(queue: cl.CommandQueue, n: int = N) -> cl_array.Array:
    return memory.allocate(queue, "a test", n, np.float32)


def fill(queue: cl.CommandQueue, value: float, n: int = N) -> cl_array.Array:
    chain, array = Chain(queue), new(queue, n)
    chain.fill(array, value, n)
    chain.finish(array)
    return array


def identity(queue: cl.CommandQueue, factor: float = 1) -> csr_array:
    """Return a multiple of the identity, with a plan: making one waits."""
    A = csr_array(sp.eye_array(N, format="csr", dtype=np.float32) * np.float32(factor), queue=queue)
    A @ np.zeros(N, np.float32)
    return A


# ---- on one queue


def test_memory_is_used_again_at_once(own: cl.CommandQueue, gate: cl.UserEvent) -> None:
    """Also while commands that use it have not begun."""
    cl.enqueue_barrier(own, wait_for=[gate])
    first = fill(own, 1)
    before = handle(first)
    kept = Chain(own).scratch(N, np.float32)
    Chain(own, first).copy(kept, first, N)
    del first
    second = fill(own, 2)
    assert handle(second) == before
    open_block(gate)
    np.testing.assert_array_equal(kept.get(), 1)
    np.testing.assert_array_equal(second.get(), 2)


@pytest.mark.parametrize("n_bytes", [1, 255, 257, 4096, 4097, 100_000, (1 << 20) + 1, 3_000_000])
def test_blocks_waste_an_eighth_at_most(n_bytes: int) -> None:
    size = _block_size(n_bytes)
    assert n_bytes <= size <= max(n_bytes * 1.125, -(-n_bytes // 256) * 256)
    assert _block_size(size) == size


def test_views_and_parts_keep_their_memory(own: cl.CommandQueue) -> None:
    for part_of in (
        lambda array: array[100:200],
        lambda array: array.reshape(N // 2, 2),
        lambda array: array.with_queue(None),
        lambda array: array.base_data[4096:8192],
        lambda array: array.base_data.get_sub_region(4096, 4096),
    ):
        array = fill(own, 3)
        before, part = handle(array), part_of(array)
        del array
        assert handle(fill(own, 4)) != before
        del part
        gc.collect()
        assert before in [handle(array) for array in [fill(own, 5) for _ in range(4)]]


def test_what_is_mapped_to_the_host_stays(own: cl.CommandQueue) -> None:
    array = fill(own, 3)
    mapped, _ = cl.enqueue_map_buffer(own, array.base_data, cl.map_flags.READ, 0, (N,), np.float32)
    del array
    fill(own, 4).finish()
    own.finish()
    np.testing.assert_array_equal(mapped, 3)


def test_memory_may_be_released_by_hand(own: cl.CommandQueue) -> None:
    gc.collect()  # what tests before left in cycles
    array = fill(own, 3)
    own.finish()
    used = memory_info(own).blocks
    array.base_data.release()
    del array
    gc.collect()
    assert memory_info(own).blocks == used - 1


def test_memory_is_lent_again_once_nothing_has_it(own: cl.CommandQueue) -> None:
    ways: list[Callable[[Any], object]] = [
        lambda array: array,
        lambda array: array[100:200],
        lambda array: array.base_data,
        lambda array: array.base_data.get_sub_region(4096, 4096),
    ]
    for keep in ways:
        array = fill(own, 3)
        before, kept = handle(array), keep(array)
        del array
        others = [fill(own, value) for value in range(6)]
        assert before not in [handle(peer) for peer in others]
        for value, peer in enumerate(others):
            np.testing.assert_array_equal(peer.get(), value)
        del others, peer, kept
    results = {handle(new(own, 3 * N)) for _ in range(5)}
    assert len(results) == 1
    used = memory_info(own).used
    of_sizes = [fill(own, 1, n) for n in range(100, 3000, 100) for _ in range(6)]
    del of_sizes
    assert memory_info(own).used == used


def test_a_buffer_that_was_released_by_hand_is_not_lent_again(own: cl.CommandQueue) -> None:
    for _ in range(3):
        array = fill(own, 3)
        own.finish()
        array.base_data.release()
        del array
        np.testing.assert_array_equal(fill(own, 4).get(), 4)


def test_threads_never_share_memory(own: cl.CommandQueue) -> None:
    wrong: list[object] = []
    in_use: set[int] = set()

    def work() -> None:
        for _ in range(300):
            arrays = [new(own, 64) for _ in range(2)]
            handles = {handle(array) for array in arrays}
            if len(handles) != 2 or handles & in_use:
                wrong.append(handles)
            in_use.update(handles)
            in_use.difference_update(handles)
            del arrays

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_allocator_of_the_callers_wins(own: cl.CommandQueue) -> None:
    asked: list[int] = []

    def allocate(n_bytes: int) -> cl.Buffer:
        asked.append(n_bytes)
        return cl.Buffer(own.context, cl.mem_flags.READ_WRITE, n_bytes)

    x = cl_array.to_device(own, np.ones(N, np.float32), allocator=allocate)
    asked.clear()
    y = identity(own, 2) @ x
    assert asked == [4 * N]
    np.testing.assert_array_equal(y.get(), 2)


# ---- on several queues


def test_arrays_larger_than_the_device_are_refused_at_once(own: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some drivers have memory for all, and find out when a kernel uses it (quirk 17)."""
    small, large = (10, np.dtype(np.int32)), (1000, np.dtype(np.float32))
    assert [array.size for array in memory.allocate_each(own, "three", (small, large, (0, large[1])))] == [10, 1000, 0]
    monkeypatch.setattr(arena_of(own).pool, "device_bytes", 3999)
    with pytest.raises(MemoryError, match=r"^three: 1,000 entries of float32 need 4,000 bytes; .* has 3,999 in all"):
        memory.allocate_each(own, "three", (small, large))


def test_a_queue_waits_for_another_that_uses_its_memory(own: cl.CommandQueue, other: cl.CommandQueue, gate: cl.UserEvent) -> None:
    """An array `with_queue` that an operation reads on that queue, and is let go before it does."""
    A, x = identity(other, 2), fill(own, 1)
    before = handle(x)
    cl.enqueue_barrier(other, wait_for=[gate])
    y = A @ x.with_queue(other)
    del x
    again = fill(own, 5)
    if handle(again) != before:
        pytest.fail("there is one block, and it is to be used again")
    assert again.events[-1].command_execution_status != cl.command_execution_status.COMPLETE
    open_block(gate)
    np.testing.assert_array_equal(y.get(), 2)
    np.testing.assert_array_equal(again.get(), 5)


def test_memory_without_uses_is_taken_first(own: cl.CommandQueue, other: cl.CommandQueue, gate: cl.UserEvent) -> None:
    A, x, free = identity(other, 2), fill(own, 1), fill(own, 3)
    before = handle(free)
    cl.enqueue_barrier(other, wait_for=[gate])
    y = A @ x.with_queue(other)
    del free, x
    again = fill(own, 5)
    assert handle(again) == before
    np.testing.assert_array_equal(again.get(), 5)
    open_block(gate)
    np.testing.assert_array_equal(y.get(), 2)


def test_a_use_of_the_callers_own_is_recorded(own: cl.CommandQueue, other: cl.CommandQueue, gate: cl.UserEvent) -> None:
    x, copy = fill(own, 1), cl_array.empty(other, N, np.float32)
    own.finish()
    before = handle(x)
    cl.enqueue_barrier(other, wait_for=[gate])
    cl.enqueue_copy(other, copy.base_data, x.base_data, byte_count=4 * N)
    record_use(x, other)
    record_use(x, own)  # of no consequence
    del x
    again = fill(own, 5)
    assert handle(again) == before
    open_block(gate)
    np.testing.assert_array_equal(copy.get(), 1)
    np.testing.assert_array_equal(again.get(), 5)


def test_a_part_of_a_buffer_that_was_let_go_has_uses(own: cl.CommandQueue, other: cl.CommandQueue) -> None:
    part = cl.Buffer(own.context, cl.mem_flags.READ_WRITE, 8192).get_sub_region(4096, 4096)
    array = cl_array.Array(own, 1024, np.float32, data=part)
    record_use(array, other)
    uses_before_writing(own, array)


def test_record_use_refuses_what_it_cannot_record(own: cl.CommandQueue) -> None:
    x = fill(own, 1)
    with pytest.raises(TypeError, match=r"^array: must be a pyopencl.array.Array, is list"):
        record_use([1], own)
    with pytest.raises(TypeError, match=r"^queue: must be a pyopencl.CommandQueue, is NoneType"):
        record_use(x, None)
    context = cl.Context([own.device])
    with pytest.raises(ValueError, match=r"^queue: is of another context than the array"):
        record_use(x, cl.CommandQueue(context))


@pytest.mark.parametrize("is_ours", [True, False])
def test_views_and_aliases_learn_of_what_is_written(
    own: cl.CommandQueue, other: cl.CommandQueue, gate: cl.UserEvent, is_ours: bool
) -> None:
    A, B, x = identity(own, 2), identity(other), fill(own, 1)
    y = fill(own, 0) if is_ours else cl_array.zeros(own, N, np.float32)
    view, alias = y[10:20], y.with_queue(other)
    for _ in range(100):
        spmv(A, x, out=y)
    cl.enqueue_barrier(own, wait_for=[gate])
    spmv(A, x, out=y)
    assert view.events is y.events
    assert len(y.events) == 1
    doubled = B @ alias  # on the other queue, after it
    open_block(gate)
    np.testing.assert_array_equal(doubled.get(), 2)


@pytest.mark.parametrize("is_ours", [True, False])
def test_what_another_queue_writes_to_a_view_is_known_until_it_ends(
    own: cl.CommandQueue, other: cl.CommandQueue, gate: cl.UserEvent, is_ours: bool
) -> None:
    """It may be written to by another thread, behind the look at the events of one that writes to another part."""
    array = fill(own, 0) if is_ours else cl_array.zeros(own, N, np.float32)
    lower, upper = array[:10], array[10:]
    cl.enqueue_barrier(other, wait_for=[gate])
    behind = cl.enqueue_marker(other)
    note_written(lower, behind)
    first, second = cl.enqueue_marker(own), cl.enqueue_marker(own)
    note_written(upper, first)
    note_written(array, second)
    assert lower.events == [behind, second]
    open_block(gate)
    other.finish()
    note_written(upper, first)
    assert array.events == [first]


def test_events_stay_alive_as_long_as_a_list_of_them(own: cl.CommandQueue) -> None:
    """A thread may be in the driver with a list that it waits for: the driver knows the events, and PyOpenCL keeps the list."""
    array = fill(own, 0)
    views = [None, array[:10]]
    for view in views:
        was = array.events
        before = [*was]
        note_written(array, cl.enqueue_marker(own))
        array.add_event(cl.enqueue_marker(own))
        own.finish()
        transfer.find_pending_events(own, array if view is None else view)
        assert not array.events
        assert was == before
    gates = [cl.UserEvent(own.context) for _ in range(_MAX_EVENTS)]
    for event in gates:
        array.add_event(event)
    assert views[1] is not None
    assert views[1].events == gates
    for event in gates:
        event.set_status(cl.command_execution_status.COMPLETE)
    array.add_event(cl.enqueue_marker(own))  # these are so many that the host waits
    assert gates[-1] in array.events
    assert gates[0] not in array.events
    array.finish()
    assert not views[1].events


def test_what_another_queue_used_is_forgotten_once_it_has_ended(
    own: cl.CommandQueue, other: cl.CommandQueue, gate: cl.UserEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product is enqueued as the one before again: it takes longer only as long as commands of another queue use the memory."""
    A, x = identity(own), fill(own, 1)
    for _ in range(3):
        A @ x
    cl.enqueue_barrier(other, wait_for=[gate])
    record_use(x, other)
    runs: list[object] = []
    run = Recording.enqueue
    monkeypatch.setattr(Recording, "enqueue", lambda *given: runs.append(given) or run(*given))
    np.testing.assert_array_equal((A @ x).get(), 1)
    assert len(runs) == 1
    open_block(gate)
    other.finish()
    A @ x
    A @ x
    assert len(runs) <= 2
    runs.clear()
    np.testing.assert_array_equal((A @ x).get(), 1)
    assert not runs
    assert not arena_of(own).pool.uses


# ---- what is kept


def test_what_is_used_and_kept_is_told(own: cl.CommandQueue) -> None:
    context = cl.Context([own.device])
    queue = cl.CommandQueue(context)
    assert memory_info(queue) == (0, 0, 0, 0)
    array = new(queue, 1 << 18)
    assert memory_info(queue) == (1 << 20, 0, 1 << 20, 1)
    del array
    assert memory_info(queue) == (0, 1 << 20, 1 << 20, 0)
    total = memory_info()
    assert total.pooled >= 1 << 20
    free_memory(queue)
    assert memory_info(queue) == (0, 0, 1 << 20, 0)
    assert memory_info().pooled == total.pooled - (1 << 20)
    free_memory()
    assert memory_info().pooled == 0
    for function in (free_memory, memory_info):
        with pytest.raises(TypeError, match=r"^queue: must be a pyopencl.CommandQueue or None, is int"):
            function(3)


@pytest.mark.parametrize("n_bytes", [0, 1 << 20])
def test_what_is_kept_is_bounded(own: cl.CommandQueue, n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLSPARSE_POOL_BYTES", str(n_bytes))
    context = cl.Context([own.device])
    queue = cl.CommandQueue(context)
    arrays = [fill(queue, i, 1 << 16) for i in range(8)]
    used = memory_info(queue).used
    for n, array in enumerate(arrays):
        np.testing.assert_array_equal(array.get(), n)
    assert used >= 8 << 18
    del arrays, array
    info = memory_info(queue)
    assert info.used == used - (8 << 18)
    assert info.pooled == n_bytes
    # The block that was idle for longest went first: another size finds room.
    large = new(queue, 200_000)
    del large
    assert memory_info(queue).pooled <= n_bytes
    if n_bytes:
        before = memory_info(queue).pooled
        large = new(queue, 200_000)
        assert memory_info(queue).pooled < before, large.size


def test_blocks_of_a_workspace_that_the_bound_has_no_room_for_go(own: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLSPARSE_POOL_BYTES", str(1 << 20))
    context = cl.Context([own.device])
    queue = cl.CommandQueue(context)
    sizes = [3 << 18, 3 << 18, 1 << 20]
    for _ in range(2):
        # Who gives them back still has them while the pool looks for what has to go.
        with memory.scratch(queue, sizes):
            assert memory_info(queue).used == sum(sizes)
        info = memory_info(queue)
        assert (info.used, info.pooled) == (0, 1 << 20)


@pytest.mark.parametrize("given", ["-1", "1G", "", "1e9"])
def test_a_bound_that_is_no_number_is_refused(own: cl.CommandQueue, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLSPARSE_POOL_BYTES", given)
    context = cl.Context([own.device])
    with pytest.raises(ValueError, match=r"^CLSPARSE_POOL_BYTES: must be a number of bytes, 0 for no pool, is '"):
        memory_info(cl.CommandQueue(context))


def test_queues_without_order_keep_memory_as_others_do(unordered: cl.CommandQueue) -> None:
    array = fill(unordered, 1)
    before = handle(array)
    del array
    assert handle(fill(unordered, 2)) == before


def test_a_queue_takes_its_memory_along(own: cl.CommandQueue) -> None:
    context = cl.Context([own.device])
    first, second = (cl.CommandQueue(context) for _ in range(2))
    kept = new(second, 1 << 16)
    left = new(first, 1 << 16)
    del kept
    kept = new(first, 1 << 18)
    del kept
    assert memory_info(second).pooled == (1 << 20) + (1 << 18)
    arena = weakref.ref(arena_of(first))
    left.queue = None
    del first
    gc.collect()
    assert arena() is None
    assert memory_info(second)[:2] == (1 << 18, 1 << 18)
    # Memory that is let go after its queue goes back to the driver.
    del left
    assert memory_info(second)[:2] == (0, 1 << 18)


def test_contexts_are_let_go(queue: cl.CommandQueue) -> None:
    matrix = sp.random_array((300, 300), density=0.05, format="csr", dtype=np.float32, rng=np.random.default_rng(2))
    for properties in (0, OUT_OF_ORDER & queue.device.queue_properties):
        context = cl.Context([queue.device])
        own = cl.CommandQueue(context, queue.device, properties)
        A = csr_array(matrix, queue=own)
        y = A @ cl_array.to_device(own, np.ones(300, np.float32))
        products = A @ A, A.T, transpose(A), spgemm(A, A)
        own.finish()
        pool = weakref.ref(arena_of(own).pool)
        watched, handle = weakref.ref(own.context), context.int_ptr
        assert any(key[0] == handle for key in programs._built)
        del A, y, products, own, context
        gc.collect()
        assert pool() is None
        assert watched() is None
        assert not any(key[0] == handle for key in programs._built)


def test_a_matrix_keeps_no_operand(own: cl.CommandQueue) -> None:
    A = identity(own)
    x, out = fill(own, 1), new(own)
    for _ in range(3):
        spmv(A, x, out=out)
    watched = [weakref.ref(array) for array in (x, out)]
    before = memory_info(own).blocks
    del x, out
    assert [reference() for reference in watched] == [None, None]
    assert memory_info(own).blocks == before - 2
    # Counters that were set before are not used again.
    x, out = fill(own, 7), new(own)
    np.testing.assert_array_equal(spmv(A, x, out=out).get(), 7)


def test_matrices_in_shared_virtual_memory(queue: cl.CommandQueue) -> None:
    """E5."""
    capabilities = queue.device.svm_capabilities
    if not capabilities & cl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        pytest.skip("the device has no shared virtual memory")
    from pyopencl.tools import SVMAllocator

    # Without a queue, as to free on one damages PoCL's heap (quirk 38); so nothing may use the memory at the end.
    allocate = SVMAllocator(queue.context)
    host = sp.random_array((200, 200), density=0.05, format="csr", dtype=np.float32, rng=np.random.default_rng(2))
    parts = (host.data, host.indices.astype(np.int32), host.indptr.astype(np.int32))
    A = csr_array(tuple(cl_array.to_device(queue, part, allocator=allocate) for part in parts), shape=host.shape)
    result, wanted = (A @ A).get(), host @ host
    np.testing.assert_allclose(result.toarray(), wanted.toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(transpose(A).get().toarray(), host.T.toarray())
    empty = csr_array(sp.csr_array((3, 4), dtype=np.float32), queue=queue)
    assert transpose(empty).nnz == 0
    queue.finish()


def test_arrays_of_the_host_that_are_too_large_are_refused_at_once(own: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they are copied: of 2^31 rows that took 43 s."""
    monkeypatch.setattr(arena_of(own).pool, "largest", 1 << 20)
    copied: list[int] = []
    for name in ("works_in_place", "allocate"):
        monkeypatch.setattr(transfer, name, lambda *given, **_: copied.append(len(given)))
    with pytest.raises(MemoryError, match=r"4,000,004 bytes; .* allows 1,048,576 in one array"):
        csr_array((1_000_000, 3), queue=own)
    assert len(copied) <= 4  # of the values and columns, which are empty
