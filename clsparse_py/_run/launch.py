"""Chains of launches: enqueued in order on any queue, with reusable scratch memory."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build import programs
from clsparse_py._build.built import Built
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device, describe
from clsparse_py._ground import fork_guard
from clsparse_py._ground.fork_guard import use_device
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate, array_of, submit
from clsparse_py._memory.order import forget_ended, note_use, note_written, of_others
from clsparse_py._memory.pool import Arena, Lent, arena_of, side_queue, whole
from clsparse_py._memory.workspace import current
from clsparse_py._run.transfer import find_pending_events, from_host, works_in_place

__all__ = ["Chain", "enqueue_copy", "enqueue_fill", "needs_no_events", "spread"]

#: The fill pattern that sets counters, numbers of 32 bits, to zero.
_ZERO = np.zeros((), np.uint32)
#: Length of each array of uint32 zeros that is kept for a queue; kernels gather totals, counts and maxima there by atomics.
_COUNTERS = 1024


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers by which chains of launches decide."""

    operation = "launch"

    #: Most bytes of a host array that `Chain.send` copies; larger arrays get a buffer on their memory, where a device allows it.
    max_copied: int = number(1 << 14, "bytes")


#: The class of PyOpenCL's arrays, looked up once: a launch asks each argument for it.
_ARRAY = cl_array.Array

_Value = TypeVar("_Value")
_Record = TypeVar("_Record", bound=programs.Parameters)


@functools.lru_cache(maxsize=1024)  # making NumPy's numbers takes longer than a look-up
def spread(device: Device, n: int, work_group: int, groups_per_unit: int = 16) -> tuple[int, tuple[np.uint64, ...]]:
    """Return the number of work-groups that share n entries, and the kernel arguments n, stride, step and span.

    Work-item i takes span entries from i * stride on, step apart. These are neighbours on CPU devices, where a work-item is an
    iteration of a core's loop, and for work-groups of one work-item; elsewhere neighbours go to neighbouring work-items.
    """
    groups = min(-(-n // work_group), device.compute_units * groups_per_unit)
    if device.lanes_are_loops or work_group == 1:
        span = -(-n // max(groups * work_group, 1))
        return groups, tuple(map(np.uint64, (n, span, 1, span)))
    return groups, tuple(map(np.uint64, (n, 1, groups * work_group, n)))


def _part(data: Any, begin: int, n_bytes: int) -> tuple[Any, int]:
    """Return an array's memory from byte ``begin`` on: a buffer and ``begin``, or a part of shared virtual memory and 0."""
    if isinstance(data, cl.MemoryObjectHolder):
        return data, begin
    memory = (ctypes.c_uint8 * n_bytes).from_address(data.svm_ptr + begin)
    return cl.SVM(np.ctypeslib.as_array(memory)), 0


def enqueue_fill(
    queue: cl.CommandQueue, to: Any, pattern: np.ndarray[Any, Any], n_bytes: int, wait_for: list[cl.Event] | None
) -> cl.Event:
    """Enqueue a fill of the first ``n_bytes`` bytes of an array's memory with a pattern, which is repeated."""
    if isinstance(to, cl.MemoryObjectHolder):
        return submit("a fill", cl.enqueue_fill_buffer, queue, to, pattern, 0, n_bytes, wait_for)
    return submit("a fill", cl.enqueue_svm_memfill, queue, to, pattern, n_bytes, wait_for)


def enqueue_copy(
    queue: cl.CommandQueue,
    target: Any,
    source: Any,
    n_bytes: int,
    target_begin: int,
    source_begin: int,
    wait_for: list[cl.Event] | None,
) -> cl.Event:
    """Enqueue a copy of ``n_bytes`` bytes, one or more, between the memory of two arrays."""
    to, to_begin = _part(target, target_begin, n_bytes)
    origin, begin = _part(source, source_begin, n_bytes)
    options: dict[str, Any] = {"wait_for": wait_for}
    if isinstance(to, cl.MemoryObjectHolder) and isinstance(origin, cl.MemoryObjectHolder):
        options |= {"byte_count": n_bytes, "src_offset": begin, "dst_offset": to_begin}
    elif isinstance(to, cl.MemoryObjectHolder):
        origin, options = origin.mem, options | {"dst_offset": to_begin, "is_blocking": False}
    elif isinstance(origin, cl.MemoryObjectHolder):
        to, options = to.mem, options | {"src_offset": begin, "is_blocking": False}
    else:
        options["is_blocking"] = False
    return submit("a copy", cl.enqueue_copy, queue, to, origin, **options)


def needs_no_events(queue: cl.CommandQueue, *arrays: cl_array.Array, known_event: cl.Event | None = None) -> Arena | None:
    """Return a queue's arena (memory) if the order of the queue suffices for commands on these arrays; None if events matter.

    Also None if memory is counted. It serves calls of one or two launches: making a `Chain` takes half as long as a launch.
    ``known_event`` is an event of the queue.
    """
    if fork_guard.forked:
        use_device()
    arena = arena_of(queue)
    if arena.beside is not None or (arena.pool.uses and arena.pool.uses.has_running()) or current() is not None:
        return None
    own_queue = arena.itself
    for array in arrays:
        events = array.events
        if events and (events[0] is not known_event or len(events) > 1):
            forget_ended(array)
            if array.events:
                return None
        data: Any = array.base_data
        if data.__class__ is Lent:
            if data.block is None or data.block.arena is not own_queue:
                return None
        elif array.queue is not queue or whole(data) is not data:
            return None
    return arena


class Chain:
    """Commands that run one after another on a queue.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    operands : pyopencl.array.Array
        Arrays that the commands read. The first command waits for earlier commands that write to them.
    writes : tuple of pyopencl.array.Array
        Arrays that the commands write to, if not allocated for them. The first command waits for earlier commands that use them.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
    device : Device
        Capabilities of the queue's device.
    events : list of pyopencl.Event
        Events of the commands so far.
    """

    def __init__(self, queue: cl.CommandQueue, *operands: cl_array.Array, writes: tuple[cl_array.Array, ...] = ()) -> None:
        self.queue = queue
        # The queue's arena is asked for context and device, as asking the queue takes longer.
        arena = arena_of(queue)
        self._beside, self._context, self._cl_device = arena.beside, arena.pool.context, arena.pool.device
        self.device: Device = describe(self._cl_device)
        self.events: list[cl.Event] = []
        self._counters: list[cl_array.Array] = []
        self._wait_for: list[cl.Event] | None = None
        self._noted: tuple[int, ...] = ()
        own_queue = arena.itself
        for array in (*writes, *operands):
            data: Any = array.base_data
            # No command has to wait on account of an array without events whose memory is of this queue's arena.
            is_lent = data.__class__ is Lent and data.block is not None and data.block.arena is own_queue
            if writes or array.events or not is_lent:
                self._wait_for = find_pending_events(queue, *operands, *writes, writes=writes)
                self._noted = of_others(queue, *operands, *writes)
                break

    @property
    def wait_for(self) -> list[cl.Event] | None:
        """Events that the chain's next command has to wait for explicitly; None if there are none and after the first command."""
        return None if self.events else self._wait_for

    def _add(self, event: cl.Event) -> None:
        """Add the event of a command to the chain's events, and note the command's use of memory of other queues."""
        self.events.append(event)
        if self._noted:
            note_use(self.queue, self._noted, event)

    def scratch(self, n: int, dtype: Any) -> cl_array.Array:
        """Return an array of ``n`` entries of scratch memory for later commands of this chain; its memory returns to the pool.

        Raises
        ------
        MemoryError
            The device, or the workspace that is counted, has not so much; the message says how much that is.
        """
        return allocate(self.queue, "workspace", max(n, 1), dtype)

    def view_as(self, array: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
        """Return a one-dimensional array on the memory of another, whose entries have another type of the same size."""
        return array_of(self.queue, array.size, dtype, array.base_data)

    def counters(self, n: int) -> cl_array.Array:
        """Return ``n`` counters, uint32 and zero, for commands of this chain.

        Setting them to zero takes as long as a launch. So an array of 1024 counters is kept, and set to zero again by `finish`,
        while the device runs the chain; not where memory is counted, as so many counters are more than was asked for.
        """
        if n > _COUNTERS or current() is not None:
            counters = self.scratch(n, np.uint32)
            self.fill(counters, 0, n)
            return counters
        free = arena_of(self.queue).counters
        try:
            counters = array_of(self.queue, _COUNTERS, _ZERO.dtype, free.pop(), context=self._context)
        except IndexError:
            counters = self.scratch(_COUNTERS, np.uint32)
            self.fill(counters, 0, _COUNTERS)
        self._counters.append(counters)
        return counters

    def build(self, parameters: _Record) -> tuple[Built, _Record]:
        """Return the built kernel for a record of parameters, and that record as it was adapted to the device."""
        built = programs.build(self._context, self._cl_device, parameters)
        return built, cast("_Record", built.parameters)  # `within` adapts a record to another of its class

    def build_once(self, key: Hashable, make: Callable[[], _Record]) -> tuple[Built, _Record]:
        """Return the built kernel of the record that ``make`` returns, and that record, adapted; later calls look up ``key``."""
        built = programs.worked_out(self._context, self._cl_device, key, lambda: self.build(make()))
        programs.note_asked(built[:1])
        return built

    def build_together(self, group: Hashable, make: Callable[[], Iterable[programs.Parameters]]) -> None:
        """Build kernels that the chain will launch, several at a time as `programs.build_together`; on CPU devices build none.

        On CPU devices nothing is built: their compilers take one kernel at a time, or the cores that the host computes with.
        """
        if not self.device.lanes_are_loops:
            programs.build_together(self._context, self._cl_device, group, make)

    def worked_out(self, key: Hashable, work_out: Callable[[], _Value]) -> _Value:
        """Return the result of the function ``work_out``: called once for a ``key`` and a device, and kept for later chains."""
        return programs.worked_out(self._context, self._cl_device, key, work_out)

    def launch(self, built: Built, groups: int, *arguments: Any) -> None:
        """Enqueue a kernel with ``groups`` work-groups, if there are any; arrays are passed from the start of their buffers."""
        if groups <= 0:
            return
        passed, sizes = (
            [argument.base_data if isinstance(argument, _ARRAY) else argument for argument in arguments],
            built.sizes(groups),
        )
        # The events of the launch are treated as by `wait_for` and `_add`, in less time.
        events = self.events
        wait_for = None if events else self._wait_for
        if self._beside is None:
            event = built.enqueue(self.queue, sizes, passed, wait_for)
        else:
            event = self._beside.run(built.enqueue, self.queue, sizes, passed, wait_for)
        events.append(event)
        if self._noted:
            note_use(self.queue, self._noted, event)

    def launch_spread(self, built: Built, n: int, *arguments: Any, groups_per_unit: int = 64) -> None:
        """Enqueue a kernel that shares n entries among work-items; its first arguments are those that `spread` returns."""
        groups, sizes = spread(self.device, n, built.parameters.work_group, groups_per_unit)
        self.launch(built, groups, *sizes, *arguments)

    def repeat(self, commands: Iterable[Callable[..., cl.Event]], *arguments: Any) -> None:
        """Enqueue the commands of a recording: functions that take the queue, ``arguments`` and events to wait for."""
        wait_for = self.wait_for
        for command in commands:
            if self._beside is None:
                event = command(self.queue, *arguments, wait_for)
            else:
                event = self._beside.run(command, self.queue, *arguments, wait_for)
            self._add(event)
            wait_for = None

    def copy(self, target: cl_array.Array, source: cl_array.Array, n: int, target_begin: int = 0, source_begin: int = 0) -> None:
        """Enqueue a copy of ``n`` entries of ``source`` to ``target``; beginnings are counted in entries of their buffers."""
        item = source.dtype.itemsize
        self.copy_bytes(target.base_data, source.base_data, n * item, target_begin * item, source_begin * item)

    def copy_bytes(self, target: Any, source: Any, n_bytes: int, target_begin: int = 0, source_begin: int = 0) -> None:
        """Enqueue a copy of ``n_bytes`` bytes from the memory ``source`` to the memory ``target``; nothing for 0 bytes."""
        if n_bytes > 0:
            self._add(enqueue_copy(self.queue, target, source, n_bytes, target_begin, source_begin, self.wait_for))

    def send(self, values: np.ndarray[Any, Any]) -> cl_array.Array:
        """Return a device array with the values of a contiguous host array, or on its memory; the host does not wait for a copy.

        The caller may change the host array after the chain's next read.
        """
        if not values.size or (values.nbytes > Thresholds.of(self.device).max_copied and works_in_place(self.queue, values)):
            return from_host(self.queue, values, copy=False)
        array = allocate(self.queue, "a copy of host memory", values.shape, values.dtype)
        options = {"is_blocking": False, "wait_for": self.wait_for}
        self._add(submit("a copy of host memory", cl.enqueue_copy, self.queue, array.base_data, values, **options))
        return array

    def fill(self, target: cl_array.Array, value: Any, n: int) -> None:
        """Enqueue a fill of the first ``n`` entries of an array's buffer with a value."""
        if n <= 0:
            return
        pattern, n_bytes = np.array(value, target.dtype), n * target.dtype.itemsize
        self._add(enqueue_fill(self.queue, target.base_data, pattern, n_bytes, self.wait_for))

    def read(self, source: cl_array.Array, n: int, begin: int = 0) -> np.ndarray[Any, Any]:
        """Wait for all commands of the chain, and return ``n`` entries of an array's buffer from entry ``begin`` on."""
        host = np.empty(n, source.dtype)
        if n:
            self._enqueue_read(source, host, begin, is_blocking=True)
        return host

    def read_later(self, source: cl_array.Array, n: int, begin: int = 0) -> Callable[[], np.ndarray[Any, Any]]:
        """Enqueue the read of ``n`` entries of an array's buffer; return a function that waits and returns the entries.

        Commands that are enqueued in between keep the device busy while the host waits.
        """
        # A read of device memory copies: mapping that memory to the host would spare the copy, and is not used (quirk 13).
        host = np.empty(n, source.dtype)
        event = self._enqueue_read(source, host, begin, is_blocking=False)
        self._add(event)

        def wait() -> np.ndarray[Any, Any]:
            """Wait for the read of an array's entries, and return these entries on the host."""
            event.wait()
            return host

        return wait

    def _enqueue_read(self, source: cl_array.Array, host: np.ndarray[Any, Any], begin: int, *, is_blocking: bool) -> cl.Event:
        """Enqueue the copy of entries of an array's buffer, from entry ``begin`` on, to a host array."""
        memory, begin = _part(source.base_data, begin * host.itemsize, host.nbytes)
        options = {"wait_for": self.wait_for, "is_blocking": is_blocking} | ({"src_offset": begin} if begin else {})
        return submit("a read", cl.enqueue_copy, self.queue, host, memory, **options)

    @contextmanager
    def side_queue(self, is_wanted: bool = True) -> Iterator[Chain]:
        """Yield a chain on a second queue, whose commands run beside this chain's in the block; if not ``is_wanted``, this chain.

        They come after all earlier commands of this chain, whose later commands wait for them. If the second queue is not
        ``is_wanted``, the chain is this one.
        """
        if not is_wanted:
            yield self
            return
        side = Chain(side_queue(self.queue))
        # The order of a queue does not bind another queue: the side queue has to wait for earlier commands of the main queue.
        side._wait_for = self.events[-1:] or [*(self._wait_for or ()), cl.enqueue_marker(self.queue)]
        # OpenCL asks that a queue be flushed before another queue waits for its commands.
        self.queue.flush()
        try:
            yield side
        finally:
            if side.events:
                side.queue.flush()
                self._add(cl.enqueue_barrier(self.queue, wait_for=side.events[-1:]))

    def finish(self, *results: cl_array.Array) -> None:
        """Note a chain's last command on the arrays that the chain has written, and set the chain's counters to zero again."""
        if self.events:
            for result in results:
                note_written(result, self.events[-1])
        while self._counters:
            used_counters = self._counters.pop().base_data
            self._add(enqueue_fill(self.queue, used_counters, _ZERO, _COUNTERS * _ZERO.itemsize, self.wait_for))
            arena_of(self.queue).counters.append(cast("cl.Buffer", used_counters))
