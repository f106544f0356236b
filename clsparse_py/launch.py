"""The launches of an operation of several kernels: in order on any queue, with scratch memory that is kept for the next call."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from pyopencl.tools import ImmediateAllocator, MemoryPool

from clsparse_py import programs
from clsparse_py.device import Device, describe
from clsparse_py.transfer import array_of, pending

__all__ = ["Chain", "free_scratch", "spread"]

#: Numbers that are kept as zeros together.
_COUNTERS = 1024

_Record = TypeVar("_Record", bound=programs.Parameters)


@functools.lru_cache(maxsize=16)
def _scratch_pool(queue: cl.CommandQueue) -> tuple[MemoryPool, cl.Context]:
    """Return the pool that operations on a queue take scratch memory from, and the context, which not every queue keeps."""
    return MemoryPool(ImmediateAllocator(queue)), queue.context


@functools.lru_cache(maxsize=16)
def _counters(queue: cl.CommandQueue) -> deque[cl_array.Array]:  # noqa: ARG001 - what it is kept by
    """Return the counters of a queue that no chain has, zeros by the time a later command sees them."""
    return deque()


@functools.lru_cache(maxsize=16)
def _queue_beside(queue: cl.CommandQueue) -> tuple[cl.CommandQueue, cl.Context]:
    """Return the queue whose commands run at the same time as those of a queue, and the context, which not every queue keeps."""
    context = queue.context
    return cl.CommandQueue(context, queue.device, queue.properties), context


def free_scratch() -> None:
    """Give back the scratch memory that operations keep for their next call."""
    _scratch_pool.cache_clear()
    _counters.cache_clear()
    _queue_beside.cache_clear()


def spread(device: Device, n: int, work_group: int, groups_per_unit: int = 16) -> tuple[int, tuple[np.uint64, ...]]:
    """Return how to share n entries out: work-groups, and the arguments n, stride, step and span of kernels that take them so.

    Work-item i takes span entries from i * stride on, step apart. On CPU devices those are neighbours, as a work-item is an
    iteration of a core's loop; elsewhere neighbours go to neighbouring work-items.
    """
    groups = min(-(-n // work_group), device.compute_units * groups_per_unit)
    if device.is_cpu:
        span = -(-n // max(groups * work_group, 1))
        return groups, tuple(map(np.uint64, (n, span, 1, span)))
    return groups, tuple(map(np.uint64, (n, 1, groups * work_group, n)))


class Chain:
    """Commands that run one after another on a queue, whether the queue keeps their order or not.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Where they run.
    operands : pyopencl.array.Array
        The first command waits for what still writes to these.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
    device : Device
        What the queue's device can do.
    events : list of pyopencl.Event
        One for each command so far.
    """

    def __init__(self, queue: cl.CommandQueue, *operands: cl_array.Array) -> None:
        self.queue = queue
        self.device: Device = describe(queue.device)
        self.events: list[cl.Event] = []
        self._context = queue.context
        self._ordered, self._wait_for = pending(queue, *operands)
        self._counters: list[cl_array.Array] = []

    @property
    def wait_for(self) -> list[cl.Event] | None:
        """What the next command has to wait for explicitly; for commands that are enqueued by the caller."""
        if not self.events:
            return self._wait_for
        return None if self._ordered else self.events[-1:]

    def scratch(self, n: int, dtype: Any) -> cl_array.Array:
        """Return ``n`` entries of memory that later commands of this chain may use, and that is taken back when it is let go.

        Raises
        ------
        MemoryError
            The device has not so much; the message says how much that is.
        """
        # A pool hands out again what a command may still use: harmless only where commands keep their order.
        dtype, n = np.dtype(dtype), max(n, 1)
        n_bytes = n * dtype.itemsize
        try:
            if self._ordered:
                data: Any = _scratch_pool(self.queue)[0].allocate(n_bytes)
            else:
                data = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, n_bytes)
        except cl.Error as error:
            has = f"{self.device.name} has {self.device.global_memory:,} in all"
            raise MemoryError(f"workspace: {n:,} entries of {dtype} need {n_bytes:,} bytes; {has}") from error
        return array_of(self.queue, n, dtype, data)

    def counters(self, n: int) -> cl_array.Array:
        """Return ``n`` zeros, uint32, that commands of this chain may count in.

        To set them takes as long as a launch. Those of few are kept, and set to zero again by `finish`, when the device is busy
        with what the chain is for.
        """
        if not self._ordered or n > _COUNTERS:
            found = self.scratch(n, np.uint32)
            self.fill(found, 0, n)
            return found
        kept = _counters(self.queue)
        try:
            found = kept.pop()
        except IndexError:
            found = self.scratch(_COUNTERS, np.uint32)
            self.fill(found, 0, _COUNTERS)
        self._counters.append(found)
        return found

    def free_scratch(self) -> None:
        """Give back the scratch memory that is kept for later calls, not what is in use."""
        if self._ordered:
            _scratch_pool(self.queue)[0].free_held()

    def build(self, parameters: _Record) -> tuple[programs.Built, _Record]:
        """Return the built kernel for a record, and the record that it was built with."""
        built = programs.build(self._context, self.queue.device, parameters)
        return built, cast("_Record", built.parameters)  # `within` adapts a record to another of its class

    def launch(self, built: programs.Built, groups: int, *arguments: Any) -> None:
        """Enqueue ``groups`` work-groups of a kernel, none being no command; arrays are passed from the start of their buffer."""
        if groups <= 0:
            return
        passed = [each.base_data if isinstance(each, cl_array.Array) else each for each in arguments]
        try:
            self.events.append(built.enqueue(self.queue, groups, *passed, wait_for=self.wait_for))
        except cl.MemoryError as error:
            # Some drivers find memory for a buffer at its first use.
            raise MemoryError(
                f"{built.parameters.name}: {self.device.name} has not the memory for its arrays: {error}"
            ) from error

    def copy(self, target: cl_array.Array, source: cl_array.Array, n: int, target_begin: int = 0, source_begin: int = 0) -> None:
        """Enqueue a copy of ``n`` entries, counted from the beginning of the arrays' buffers."""
        if n <= 0:
            return
        item = source.dtype.itemsize
        to, of = cast("cl.Buffer", target.base_data), cast("cl.Buffer", source.base_data)
        places = {"byte_count": n * item, "src_offset": source_begin * item, "dst_offset": target_begin * item}
        self.events.append(cl.enqueue_copy(self.queue, to, of, **places, wait_for=self.wait_for))

    def fill(self, target: cl_array.Array, value: Any, n: int) -> None:
        """Enqueue setting the first ``n`` entries of an array's buffer to a value."""
        if n <= 0:
            return
        buffer, pattern = cast("cl.Buffer", target.base_data), np.array(value, target.dtype)
        self.events.append(
            cl.enqueue_fill_buffer(self.queue, buffer, pattern, 0, n * target.dtype.itemsize, wait_for=self.wait_for)
        )

    def read(self, source: cl_array.Array, n: int, begin: int = 0) -> np.ndarray[Any, Any]:
        """Wait for all commands so far, and return ``n`` entries of an array's buffer."""
        host = np.empty(n, source.dtype)
        if n:
            buffer = cast("cl.Buffer", source.base_data)
            cl.enqueue_copy(
                self.queue, host, buffer, src_offset=begin * source.dtype.itemsize, wait_for=self.wait_for, is_blocking=True
            )
        return host

    def read_later(self, source: cl_array.Array, n: int) -> Callable[[], np.ndarray[Any, Any]]:
        """Enqueue the read of the first ``n`` entries of an array's buffer; what is returned waits for it and gives them.

        Commands that are enqueued in between keep the device busy while the host waits.
        """
        # Not to mapped memory, which spares a copy: a runtime hangs where a queue is let go before its last unmapping has ended.
        host = np.empty(n, source.dtype)
        buffer = cast("cl.Buffer", source.base_data)
        event = cl.enqueue_copy(self.queue, host, buffer, wait_for=self.wait_for, is_blocking=False)
        self.events.append(event)

        def wait() -> np.ndarray[Any, Any]:
            event.wait()
            return host

        return wait

    @contextmanager
    def beside(self, wanted: bool = True) -> Iterator[Chain]:
        """Give a chain whose commands come after all so far, and run at the same time as what this chain enqueues meanwhile.

        At the end of the block this chain waits for it. It is this chain itself where it is not ``wanted``, or where the queue
        keeps no order, and so scratch memory not for long enough.
        """
        if not wanted or not self._ordered:
            yield self
            return
        other = Chain(_queue_beside(self.queue)[0])
        # The queue's order is no other's: what was enqueued before this chain has to be waited for, too.
        other._wait_for = self.events[-1:] or [cl.enqueue_marker(self.queue, wait_for=self._wait_for)]
        # What a command of another queue waits for has to be on its way.
        self.queue.flush()
        try:
            yield other
        finally:
            if other.events:
                other.queue.flush()
                self.events.append(cl.enqueue_barrier(self.queue, wait_for=other.events[-1:]))

    def finish(self, *results: cl_array.Array) -> None:
        """Tell the arrays that this chain writes which command they have to be waited for by."""
        if self.events:
            for result in results:
                result.add_event(self.events[-1])
        while self._counters:
            used = self._counters.pop()
            self.fill(used, 0, _COUNTERS)
            _counters(self.queue).append(used)
