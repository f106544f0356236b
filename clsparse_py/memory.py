"""Device memory: results, copies and scratch are allocated here, and memory that is let go is kept for the next allocation.

There is one pool for each context and device, and one arena in it for each queue. A block is used again at once on the queue of
its arena, as the queue's order lets earlier commands finish first. If commands of other queues may still use the block, the queue
waits for them; the host never waits. Queues without order take memory from the driver, and give it back to the driver.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import sys
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.device_array import DeviceArray
from clsparse_py.forked import is_forked
from clsparse_py.overlap import whole_of
from clsparse_py.workspace import current

__all__ = [
    "Arena",
    "MemoryInfo",
    "Pool",
    "allocated",
    "allocated_each",
    "arena_of",
    "array_of",
    "forget_ended",
    "free_memory",
    "memory_info",
    "note_use",
    "note_written",
    "on_host_memory",
    "pinned",
    "record_use",
    "scratch",
    "shorten",
    "side_queue",
    "submit",
    "unordered",
    "uses_before_writing",
]

#: By default, memory kept unused is at most this share of the device's memory.
_SHARE = 0.25
#: The size of a block is a multiple of an eighth of the largest power of two in it, which bounds the waste, and of 2**8 bytes.
_MIN_STEP_BITS = 8
#: From this many uses of one block on a queue without order on, one marker replaces them.
_MAX_USES = 16

#: An array's list of events, if other arrays share it, is shortened from this length on.
_MAX_EVENTS = 64

_COMPLETE = cl.command_execution_status.COMPLETE
_MAPPED = cl.mem_info.MAP_COUNT

_Made = TypeVar("_Made")


class MemoryInfo(NamedTuple):
    """The result of `memory_info`, in bytes but for `blocks`.

    Attributes
    ----------
    used : int
        Memory of arrays and scratch that are alive.
    pooled : int
        Memory that was let go and is kept for the next allocation.
    peak : int
        The largest value of `used` so far.
    blocks : int
        Pieces of memory that are used.
    """

    used: int
    pooled: int
    peak: int
    blocks: int


class _Block:
    """A piece of device memory, either lent to an array or operation, or idle in its arena."""

    __slots__ = ("arena", "buffer", "idle_since", "pointer", "pool", "size")

    def __init__(self, arena: Arena, buffer: cl.Buffer, size: int) -> None:
        self.buffer, self.size, self.pointer = buffer, size, buffer.int_ptr
        self.pool, self.arena = arena.pool, arena.itself
        self.idle_since: int | None = None

    def __del__(self) -> None:
        self.pool.gone.append((self.size, self.idle_since is not None))


#: The block behind each lent buffer, by the identity of the buffer object.
_lent: dict[int, _Block] = {}
#: The whole of each sub-buffer, by the identity of the sub-buffer.
_wholes: dict[int, cl.Buffer] = {}
#: Buffers that a forked child let go: the driver, whose threads are not in the child, is not asked to release them (quirk 19).
_unreleased: list[cl.Buffer] = []


class _Lent(cl.Buffer):
    """The buffer of a block, for as long as an array or a view has it."""

    # PyOpenCL's buffers have no weak references: only a class with a `__del__` of its own learns when one is let go. An object
    # made from a handle is given this class in place of `cl.Buffer`, so the class must not have attributes.
    __slots__ = ()

    def get_sub_region(self, origin: int, size: int, flags: int = 0) -> cl.Buffer:
        """Return a part of the memory, which keeps the whole."""
        return _kept_with(self, super().get_sub_region(origin, size, flags))

    def __getitem__(self, part: slice) -> cl.Buffer:
        return _kept_with(self, super().__getitem__(part))

    def release(self) -> None:
        """Let go of the memory before the object goes."""
        self.__del__()
        super().release()

    def __del__(self, blocks: dict[int, _Block] = _lent, forked: Callable[[], bool] = is_forked) -> None:
        if forked():
            _unreleased.append(self)
            return
        block = blocks.pop(id(self), None)
        # Memory that is mapped to the host may be read there after the array has gone: the mapping keeps it, not the pool.
        if block is not None and not self.get_info(_MAPPED):
            block.pool.take_one_back(block)


class _Part(cl.Buffer):
    """A sub-buffer of lent memory."""

    __slots__ = ()

    def __del__(self, wholes: dict[int, cl.Buffer] = _wholes, forked: Callable[[], bool] = is_forked) -> None:
        if forked():
            _unreleased.append(self)
            return
        wholes.pop(id(self), None)


def _kept_with(whole: cl.Buffer, part: cl.Buffer) -> cl.Buffer:
    part.__class__ = _Part
    _wholes[id(part)] = whole
    return part


def _create(context: cl.Context, n_bytes: int, host: np.ndarray[Any, Any] | None = None, flags: int = 0) -> cl.Buffer:
    """Create a buffer of new memory, or one that is or copies a host array. No other place asks the driver for memory."""
    if host is not None:
        return cl.Buffer(context, flags, hostbuf=host)
    return cl.Buffer(context, cl.mem_flags.READ_WRITE, n_bytes)


@functools.lru_cache(maxsize=4096)
def _block_size(n_bytes: int) -> int:
    step = n_bytes.bit_length() - 4
    if step < _MIN_STEP_BITS:
        step = _MIN_STEP_BITS
    return -(-n_bytes >> step) << step


def _cap(device: cl.Device) -> int:
    """Return how many bytes a pool may keep unused."""
    given = os.environ.get("CLSPARSE_POOL_BYTES")
    if given is None:
        return int(device.global_mem_size * _SHARE)
    if not given.strip().isdecimal():
        raise ValueError(f"CLSPARSE_POOL_BYTES: must be a number of bytes, 0 for no pool, is {given!r}")
    return int(given)


class Pool:
    """The memory of a context on a device.

    It keeps the context (quirk 9), and is kept by its arenas and blocks: when the last of
    them goes, the context is let go.

    Attributes
    ----------
    context : pyopencl.Context
    device : pyopencl.Device
    device_name : str
    device_bytes, largest : int
        Memory of the device, and of one allocation.
    gone : deque
        Blocks that were given back to the driver but are still in the counts: the size of each, and whether it was idle.
    uses : dict
        Events of commands that use memory outside of the order of its own queue: by the memory's handle, then by the queue's.
    """

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.context, self.device = context, device
        self.device_name = device.name.strip()
        self.device_bytes: int = device.global_mem_size
        self.largest: int = device.max_mem_alloc_size
        self.gone: deque[tuple[int, bool]] = deque()
        self.uses: dict[int, dict[int, list[cl.Event]]] = {}
        self._cap = _cap(device)
        self._largest_kept = self.largest if self._cap else 0
        self._arenas: weakref.WeakSet[Arena] = weakref.WeakSet()
        self._returned: deque[_Block] = deque()
        # The garbage collector may let memory go at any time: so `take_back` never waits for this lock.
        self._lock = threading.Lock()
        self._clock = itertools.count()
        self._total = self._pooled = self._peak = 0

    def add(self, arena: Arena) -> None:
        """Add the arena of another queue."""
        with self._lock:
            self._arenas.add(arena)

    def block(self, arena: Arena, n_bytes: int) -> tuple[_Block, list[cl.Event]]:
        """Return a block of at least so many bytes, and the events that the queue of its arena has to wait for.

        Raises
        ------
        pyopencl.Error
            The driver has no memory, not even after the pool gave back all that it kept unused.
        """
        size = self._rounded(n_bytes) if arena.ordered else n_bytes
        with self._lock:
            if self._returned or self.gone:
                self._settle()
            if idle := arena.idle.get(size):
                return self._lend(idle)
        try:
            buffer = _create(self.context, size)
        except cl.Error:
            self.empty()
            size = n_bytes
            buffer = _create(self.context, size)
        block = _Block(arena, buffer, size)
        with self._lock:
            self._total += size
            self._peak = max(self._peak, self._total - self._pooled)
            return block, self._uses_of(block.pointer) if self.uses else []

    def idle_block(self, arena: Arena, n_bytes: int) -> _Block | None:
        """Return an idle block as `block` does, in less time; None if there is none, or one may be used by commands."""
        size = _block_size(n_bytes)
        with self._lock:
            if self._has_uses() or self._returned or self.gone or not (idle := arena.idle.get(size)):
                return None
            block = idle.pop()
            block.idle_since = None
            self._pooled -= size
            used = self._total - self._pooled
            if used > self._peak:
                self._peak = used
            return block

    def _rounded(self, n_bytes: int) -> int:
        """Return the size of the block for so many bytes, on a queue in order."""
        size = _block_size(n_bytes)
        return size if size <= self._largest_kept else n_bytes

    def _lend(self, idle: list[_Block]) -> tuple[_Block, list[cl.Event]]:
        """Return one of the idle blocks, and the events that its queue has to wait for."""
        if self.uses:
            at, events = self._first_free(idle)
            block = idle.pop(at)
        else:
            block, events = idle.pop(), []
        block.idle_since = None
        self._pooled -= block.size
        used = self._total - self._pooled
        if used > self._peak:
            self._peak = used
        return block, events

    def idle_blocks(self, arena: Arena, sizes: Iterable[int]) -> list[_Block]:
        """Return idle blocks that no command uses, one for each of these sizes in order; stop at the first size that has none."""
        found: list[_Block] = []
        with self._lock:
            if self._returned or self.gone:
                self._settle()
            if self._has_uses():
                return found
            for size in sizes:
                idle = arena.idle.get(self._rounded(size))
                if not idle:
                    break
                block = idle.pop()
                block.idle_since = None
                self._pooled -= block.size
                found.append(block)
            self._peak = max(self._peak, self._total - self._pooled)
        return found

    def _first_free(self, idle: list[_Block]) -> tuple[int, list[cl.Event]]:
        """Return the index of the block that became idle last and has no uses; if all have, that of the first, and its uses."""
        for at in reversed(range(len(idle))):
            if not self._uses_of(idle[at].pointer):
                return at, []
        return 0, self._uses_of(idle[0].pointer)

    def take_one_back(self, block: _Block) -> None:
        """Do as `take_back` for one block, in less time."""
        if not self._lock.acquire(False):  # by position, which takes half the time
            self._returned.append(block)
            return
        try:
            # As `_sort_in` does, whose call takes as long as all of it.
            arena, size = block.arena(), block.size
            if arena is not None and arena.ordered and size <= self._cap:
                block.idle_since = next(self._clock)
                arena.idle[size].append(block)
                self._pooled += size
            if self._pooled > self._cap or self._returned or self.gone:
                del block
                self._settle()
        finally:
            self._lock.release()

    def take_back(self, blocks: Iterable[_Block]) -> None:
        """Take blocks that were let go. Never waits: if another thread has the lock, a later call sorts the blocks in."""
        if not self._lock.acquire(False):
            self._returned.extend(blocks)
            return
        try:
            for block in blocks:
                self._sort_in(block)
            if self._pooled > self._cap or self._returned or self.gone:
                self._settle()
        finally:
            self._lock.release()

    def _settle(self) -> None:
        """Move returned blocks to their arenas or back to the driver, and bring the counts up to date."""
        while self._returned:
            self._sort_in(self._returned.popleft())
        while self._pooled > self._cap:
            self._give_up_one()
            self._count_gone()
        if self.gone:
            self._count_gone()

    def _sort_in(self, block: _Block) -> None:
        """Put a block to the idle ones of its arena, if that is there and keeps blocks."""
        arena, size = block.arena(), block.size
        if arena is not None and arena.ordered and size <= self._cap:
            block.idle_since = next(self._clock)
            arena.idle[size].append(block)
            self._pooled += size

    def _count_gone(self) -> None:
        while self.gone:
            size, was_idle = self.gone.popleft()
            self._total -= size
            self._pooled -= size * was_idle

    def _give_up_one(self) -> None:
        """Give the block that has been idle for longest back to the driver."""
        lists = [idle for arena in self._arenas for idle in arena.idle.values() if idle]
        del min(lists, key=lambda idle: idle[0].idle_since or 0)[0]

    def empty(self) -> None:
        """Give all memory that is kept unused back to the driver."""
        for arena in tuple(self._arenas):
            arena.counters.clear()
        with self._lock:
            self._settle()
            for arena in self._arenas:
                arena.idle.clear()
            self._count_gone()

    def info(self) -> MemoryInfo:
        """Return how much memory is used and kept."""
        with self._lock:
            self._settle()
            lent = sum(block.pool is self for block in _lent.copy().values())
            return MemoryInfo(self._total - self._pooled, self._pooled, self._peak, lent)

    def note(self, pointers: Iterable[int], queue: cl.CommandQueue, event: cl.Event, ordered: bool) -> None:
        """Note that a command on a queue uses memory."""
        of = queue.int_ptr
        with self._lock:
            if len(self.uses) > _MAX_USES:
                for pointer in tuple(self.uses):
                    self._uses_of(pointer)
            for pointer in pointers:
                by_queue = self.uses.setdefault(pointer, {})
                # On a queue in order, the newest command ends last: its event is enough.
                events = [] if ordered else by_queue.get(of, [])
                if len(events) >= _MAX_USES:
                    events = [cl.enqueue_marker(queue, wait_for=events)]
                by_queue[of] = [*events, event]

    def uses_before_writing(self, pointers: Iterable[int], queue: cl.CommandQueue, ordered: bool) -> list[cl.Event]:
        """Return the events of noted commands that use memory, without those that the order of ``queue`` already covers."""
        own = queue.int_ptr if ordered else None
        with self._lock:
            return [event for pointer in pointers for event in self._uses_of(pointer, own)]

    def has_uses(self) -> bool:
        """Return whether a command that uses memory outside of the order of its own queue has not ended; forget ended ones."""
        if not self.uses:
            return False
        with self._lock:
            return self._has_uses()

    def _has_uses(self) -> bool:
        # The oldest first: one that has not ended is found at once.
        while self.uses:
            if self._uses_of(next(iter(self.uses))):
                return True
        return False

    def _uses_of(self, pointer: int, own: int | None = None) -> list[cl.Event]:
        """Return the events of commands that use a block and have not ended; forget those that have ended."""
        by_queue = self.uses.get(pointer)
        if by_queue is None:
            return []
        left: dict[int, list[cl.Event]] = {}
        for of, events in by_queue.items():
            if running := [event for event in events if event.command_execution_status > _COMPLETE]:
                left[of] = running
        if left:
            self.uses[pointer] = left
        else:
            del self.uses[pointer]
        return [event for of, events in left.items() if of != own for event in events]


class Arena:
    """The memory that is kept for a queue, and goes with the queue.

    Attributes
    ----------
    pool : Pool
    ordered : bool
        Whether the queue keeps its commands in order.
    idle : dict of int to list of blocks
        Idle blocks of each size, the one that is idle for longest first.
    counters : deque of pyopencl.Buffer
        Counters that `launch.Chain.counters` keeps at zero. Buffers, not arrays, as arrays would keep the queue.
    side_queue : pyopencl.CommandQueue or None
        A queue on the same device that keeps its commands in order, if one was asked for.
    former : list of pyopencl.Event
        The events that `note_written` took out of a list last.
    itself : weakref.ref
    """

    def __init__(self, pool: Pool, ordered: bool) -> None:
        self.pool, self.ordered = pool, ordered
        self.idle: defaultdict[int, list[_Block]] = defaultdict(list)
        self.counters: deque[cl.Buffer] = deque()
        self.side_queue: cl.CommandQueue | None = None
        self.former: list[cl.Event] = []
        self.itself = weakref.ref(self)

    def allocate(self, queue: cl.CommandQueue, n_bytes: int) -> cl.Buffer:
        """Return memory for the next commands of the arena's queue; raises as `Pool.block`."""
        block = self.pool.idle_block(self, n_bytes) or self.block(queue, n_bytes)
        lent: Any = cl.Buffer.from_int_ptr(block.pointer, True)
        lent.__class__ = _Lent
        _lent[id(lent)] = block
        found: cl.Buffer = lent
        return found

    def block(self, queue: cl.CommandQueue, n_bytes: int) -> _Block:
        """Return a block for the next commands of the arena's queue; raises as `Pool.block`."""
        block, events = self.pool.block(self, n_bytes)
        if events:
            _flush(events)
            cl.enqueue_barrier(queue, wait_for=events)
        return block


_pools: weakref.WeakValueDictionary[tuple[int, int], Pool] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def arena_of(queue: cl.CommandQueue) -> Arena:
    """Return the arena of a queue. The queue's Python object keeps it."""
    keeper: Any = queue
    try:
        found: Arena = keeper._clsparse_py
    except AttributeError:
        with _lock:
            if hasattr(keeper, "_clsparse_py"):
                return arena_of(queue)
            context, device = queue.context, queue.device
            key = context.int_ptr, device.int_ptr
            pool = _pools.get(key)
            if pool is None:
                pool = _pools[key] = Pool(context, device)
            found = Arena(pool, not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
            pool.add(found)
            keeper._clsparse_py = found
    return found


def array_of(
    queue: cl.CommandQueue,
    shape: int | tuple[int, ...],
    dtype: np.dtype[Any],
    data: Any,
    allocator: Any = None,
    context: cl.Context | None = None,
) -> cl_array.Array:
    """Return the C-contiguous array that a buffer holds.

    Made as PyOpenCL's own operations make arrays, without the constructor's checks, which take longer than a launch. Callers that
    have the queue's ``context`` give it, as asking the queue for it takes long, too.
    """
    context = context or queue.context
    if isinstance(shape, int):
        shape = (shape,)
    if len(shape) == 1:
        return DeviceArray(
            None, shape, dtype, "C", allocator, data, 0, (dtype.itemsize,), None, None, True, shape[0], context, queue
        )
    steps = [dtype.itemsize]
    for length in shape[:0:-1]:
        steps.append(steps[-1] * max(length, 1))
    strides, size = tuple(steps[::-1]), math.prod(shape)
    return DeviceArray(None, shape, dtype, "C", allocator, data, 0, strides, None, None, True, size, context, queue)


def allocated(
    queue: cl.CommandQueue, what: str, shape: int | tuple[int, ...], dtype: Any, allocator: Any = None
) -> cl_array.Array:
    """Return a new C-contiguous device array, whose memory commands on the queue may use.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of the first command that uses the array.
    what : str
        Name of what needs the memory, for the error.
    shape : int or tuple of int
    dtype : dtype
    allocator : callable, optional
        The caller's; by default memory comes from the pool.

    Raises
    ------
    MemoryError
        The device, or the limit of the workspace that is counted, has not enough memory; the message says ``what`` needs it, how
        much is needed and how much there is.
    """
    dtype = np.dtype(dtype)
    workspace, arena = current(), arena_of(queue)
    if workspace is None and allocator is None and shape.__class__ is int:
        found = _vector(queue, arena, shape, dtype)  # nearly always, and then there is less to do
        if found is not None:
            return found
    n = shape if isinstance(shape, int) else math.prod(shape)
    n_bytes = n * dtype.itemsize
    if not n_bytes:
        return array_of(queue, shape, dtype, None, allocator)
    if workspace is not None:
        workspace.require(n_bytes)
    reason: Exception | None = None
    if n_bytes <= arena.pool.device_bytes:
        try:
            data = arena.allocate(queue, n_bytes) if allocator is None else _from(allocator, n_bytes, arena.pool)
            found = array_of(queue, shape, dtype, data, allocator, arena.pool.context)
            return found if workspace is None else workspace.count(found, n_bytes)
        except cl.Error as error:
            reason = error
    raise MemoryError(f"{what}: {n:,} entries of {dtype} need {n_bytes:,} bytes; {_there_is(arena.pool)}") from reason


def _vector(queue: cl.CommandQueue, arena: Arena, n: int, dtype: np.dtype[Any]) -> cl_array.Array | None:
    """Return a new array of one dimension, whose memory is the pool's; None if there is not as much."""
    item, pool, data = dtype.itemsize, arena.pool, None
    if n:
        if n * item > pool.device_bytes:
            return None
        try:
            data = arena.allocate(queue, n * item)
        except cl.Error:
            return None
    return DeviceArray(None, (n,), dtype, "C", None, data, 0, (item,), None, None, True, n, pool.context, queue)


def allocated_each(
    queue: cl.CommandQueue, what: str, sizes: Sequence[tuple[int, np.dtype[Any]]], allocator: Any = None
) -> list[cl_array.Array]:
    """Return new arrays of one dimension and some entries each, as `allocated` does, in less time; ``what`` they are of."""
    if allocator is None and current() is None:
        arena, found = arena_of(queue), []
        for n, dtype in sizes:
            array = _vector(queue, arena, n, dtype)
            if array is None:
                break
            found.append(array)
        else:
            return found
        found.clear()
    return [allocated(queue, what, n, dtype, allocator) for n, dtype in sizes]


def shorten(array: cl_array.Array, n: int) -> None:
    """Let a new array of one dimension have its first ``n`` entries alone; all of its memory stays. No view of it may exist."""
    if n != array.size:
        array.shape, array.size, array.nbytes = (n,), n, n * array.dtype.itemsize


class scratch:  # noqa: N801 - used as a with statement, where lower case is the custom
    """Scratch memory for the commands of a ``with`` block; later commands of the queue may use the same memory again.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        The queue of all these commands.
    sizes : sequence of int
        The bytes of each buffer.

    Raises
    ------
    MemoryError
        The device, or the limit of the workspace that is counted, has not enough; the message says how much is needed, and how
        much there is.
    """

    __slots__ = ("_arena", "_blocks", "_held", "_queue", "_sizes", "_workspace")

    def __init__(self, queue: cl.CommandQueue, sizes: Sequence[int]) -> None:
        self._queue, self._sizes = queue, sizes
        self._arena, self._workspace = arena_of(queue), current()
        self._held = 0

    def __enter__(self) -> list[cl.Buffer]:
        arena, workspace = self._arena, self._workspace
        # From the second call of a kind on, the pool has all of them, and one lock is enough.
        self._blocks = blocks = arena.pool.idle_blocks(arena, self._sizes) if workspace is None else []
        try:
            for size in self._sizes[len(blocks) :]:
                if workspace is not None:
                    workspace.hold(size)
                    self._held += size
                blocks.append(arena.block(self._queue, size))
        except cl.Error as error:
            self.__exit__()
            needed = f"workspace: {sum(self._sizes):,} bytes are needed"
            raise MemoryError(f"{needed}; {_there_is(self._arena.pool)}") from error
        except BaseException:
            self.__exit__()
            raise
        return [block.buffer for block in self._blocks]

    def __exit__(self, *_: object) -> None:
        if self._workspace is not None:
            self._workspace.let_go(self._held)
        blocks, self._blocks = self._blocks, []
        self._arena.pool.take_back(blocks)


def on_host_memory(queue: cl.CommandQueue, host: np.ndarray[Any, Any], access: int) -> cl.Buffer:
    """Return a buffer on a host array's memory.

    Raises
    ------
    MemoryError
        The driver lacks memory of its own for it.
    """
    return _of_host(queue, host, access | cl.mem_flags.USE_HOST_PTR)


def pinned(queue: cl.CommandQueue, n_bytes: int) -> np.ndarray[Any, Any]:
    """Return host memory of the driver's, which devices of the queue's context copy to and from at full speed.

    Raises
    ------
    MemoryError
        The driver has not the memory.
    """
    pool = arena_of(queue).pool
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    try:
        buffer = cl.Buffer(pool.context, flags, max(n_bytes, 1))
        how: Any = cl.map_flags.READ | cl.map_flags.WRITE
        # Mapped as long as the array lives.
        mapped: Any = cl.enqueue_map_buffer(queue, buffer, how, 0, (max(n_bytes, 1),), np.dtype(np.uint8))[0]
    except cl.Error as error:
        raise MemoryError(f"{n_bytes:,} bytes of pinned host memory: {error}; {_there_is(pool)}") from error
    found: np.ndarray[Any, Any] = mapped[:n_bytes]
    return found


def constants(queue: cl.CommandQueue, host: np.ndarray[Any, Any]) -> cl.Buffer:
    """Return a buffer with the numbers of a host array, there at once and for all queues of the context; its caller keeps it.

    Raises
    ------
    MemoryError
        The driver has not the memory.
    """
    return _of_host(queue, host, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR)


def _of_host(queue: cl.CommandQueue, host: np.ndarray[Any, Any], flags: int) -> cl.Buffer:
    pool = arena_of(queue).pool
    try:
        return _create(pool.context, host.nbytes, host, flags)
    except cl.Error:
        pool.empty()
        try:
            return _create(pool.context, host.nbytes, host, flags)
        except cl.Error as error:
            raise MemoryError(f"a buffer on {host.nbytes:,} bytes of host memory: {error}; {_there_is(pool)}") from error


def side_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return a second queue on the same device, in order; the same one at each call."""
    arena = arena_of(queue)
    if arena.side_queue is None:
        properties: Any = queue.properties & ~cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        arena.side_queue = cl.CommandQueue(arena.pool.context, queue.device, properties)
    return arena.side_queue


def _from(allocator: Any, n_bytes: int, pool: Pool) -> Any:
    try:
        return allocator(n_bytes)
    except cl.Error:
        pool.empty()
        return allocator(n_bytes)


def _there_is(pool: Pool) -> str:
    has = f"{pool.device_name} has {pool.device_bytes:,} in all and allows {pool.largest:,} in one array"
    return f"{has}; clsparse_py uses {pool.info().used:,} there"


def submit(what: str | cl.Kernel, command: Callable[..., _Made], queue: cl.CommandQueue, *arguments: Any, **named: Any) -> _Made:
    """Enqueue a command and return its result. Drivers may find memory for a buffer only at its first use (quirk 17).

    Parameters
    ----------
    what : str or pyopencl.Kernel
        Name of what needs the memory, for the error.
    command : callable
        Called with the queue and the other arguments.

    Raises
    ------
    MemoryError
        There is no memory, not even after the pool gave back all that it kept unused.
    """
    try:
        return command(queue, *arguments, **named)
    except cl.MemoryError:
        pool = arena_of(queue).pool
        pool.empty()
        try:
            return command(queue, *arguments, **named)
        except cl.MemoryError as error:
            name = what.function_name if isinstance(what, cl.Kernel) else what
            raise MemoryError(f"{name}: the device has not the memory for its arrays ({error}); {_there_is(pool)}") from error


def _flush(events: Iterable[cl.Event]) -> None:
    """Flush the queues of events before another queue waits for these events, as OpenCL asks."""
    for event in events:
        queue = event.command_queue
        if queue is not None:  # user events have no queue
            queue.flush()


def _whole(data: Any) -> Any:
    """Return the lent buffer that a buffer is, or is a part of; else the buffer itself."""
    return _wholes.get(id(data), data)


def _handle(data: Any) -> int:
    """Return the key of memory: the handle of its buffer, or the address of shared virtual memory."""
    data = _whole(data)
    if isinstance(data, cl.MemoryObjectHolder):
        return int((whole_of(data) or data).int_ptr)
    return int(data.svm_ptr)


def unordered(queue: cl.CommandQueue, *arrays: cl_array.Array) -> tuple[int, ...]:
    """Return the handles of those arrays' memory whose uses on a queue have to be noted, as no order of commands covers them.

    On a queue without order that is all memory; on a queue in order, the memory that belongs to other queues.
    """
    arena = arena_of(queue)
    if not arena.ordered:
        return tuple(_handle(array.base_data) for array in arrays if array.base_data is not None)
    found: list[int] = []
    own = arena.itself
    for array in arrays:
        data = array.base_data
        block = _lent.get(id(data))
        if block is None and _wholes:
            block = _lent.get(id(_whole(data)))
        if block is not None:
            ours = block.arena is own
        else:
            ours = data is None or array.queue is queue or array.queue is None or bool(array.queue == queue)
        if not ours:
            found.append(_handle(data))
    return tuple(found)


def note_use(queue: cl.CommandQueue, handles: Iterable[int], event: cl.Event) -> None:
    """Note that a command uses memory, given by the handles that `unordered` returned."""
    arena = arena_of(queue)
    arena.pool.note(handles, queue, event, arena.ordered)


def uses_before_writing(queue: cl.CommandQueue, *arrays: cl_array.Array) -> list[cl.Event]:
    """Return the noted events that a command which writes to arrays has to wait for; their queues are flushed."""
    arena = arena_of(queue)
    if not arena.pool.uses:
        return []
    handles = [_handle(array.base_data) for array in arrays if array.base_data is not None]
    events = arena.pool.uses_before_writing(handles, queue, arena.ordered)
    _flush(events)
    return events


def _references(array: Any) -> int:
    """Return the number of references to an array's list of events, with those of this function."""
    events = array.events
    return sys.getrefcount(events)


#: The number for a list that only its array holds.
_ALONE = _references(SimpleNamespace(events=[]))


def note_written(array: cl_array.Array, event: cl.Event) -> None:
    """Note that a command writes to an array, after all earlier writes.

    The list of events is replaced, not changed, as other threads may be about to wait for its events. But if views or arrays
    `with_queue` share the list, it grows in place, as they have to learn of the command.
    """
    if _references(array) == _ALONE:
        array.events = [event]
        return
    events = array.events
    events.append(event)
    if len(events) > _MAX_EVENTS:
        # The newest event waits for the others. They stay alive until the next call, as a thread may be about to wait for them.
        assert array.queue is not None  # the array was written to on a queue
        arena_of(array.queue).former, events[:-1] = events[:-1], []


def forget_ended(array: cl_array.Array) -> None:
    """Forget the events of an array if all have ended; not if other arrays share the list, as they learn of writes by it."""
    if not array.events or any(event.command_execution_status != _COMPLETE for event in tuple(array.events)):
        return
    if _references(array) == _ALONE:
        array.events = []


def record_use(array: cl_array.Array, queue: cl.CommandQueue) -> None:
    """Say that commands of your own, enqueued on a queue so far, use an array that lives on another queue.

    The queue that made an array uses its memory again once you let the array go, and an array that you pass as ``out`` is written
    to: both then wait for the commands that you told of here. Operations of this package do this by themselves.

    Parameters
    ----------
    array : pyopencl.array.Array
    queue : pyopencl.CommandQueue
        Of the array's context.

    Raises
    ------
    TypeError, ValueError
        One is of another type, or the two are of different contexts.

    Examples
    --------
    >>> import pyopencl as cl
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2]])
    >>> other = cl.CommandQueue(A.context, A.queue.device)
    >>> # After a kernel of yours was enqueued on `other` that reads A.data:
    >>> sp.record_use(A.data, other)
    """
    if not isinstance(array, cl_array.Array):
        raise TypeError(f"array: must be a pyopencl.array.Array, is {type(array).__name__}")
    if not isinstance(queue, cl.CommandQueue):
        raise TypeError(f"queue: must be a pyopencl.CommandQueue, is {type(queue).__name__}")
    if array.context != queue.context:
        raise ValueError("queue: is of another context than the array")
    if handles := unordered(queue, array):
        note_use(queue, handles, cl.enqueue_marker(queue))


def _asked(queue: cl.CommandQueue | None) -> Iterator[Pool]:
    if queue is not None and not isinstance(queue, cl.CommandQueue):
        raise TypeError(f"queue: must be a pyopencl.CommandQueue or None, is {type(queue).__name__}")
    return iter(list(_pools.values()) if queue is None else [arena_of(queue).pool])


def free_memory(queue: cl.CommandQueue | None = None) -> None:
    """Give the memory that is kept for later results and scratch back to the driver.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        Memory of this queue's context and device; by default of all.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.free_memory()
    >>> sp.memory_info().pooled
    0
    """
    for pool in _asked(queue):
        pool.empty()


def memory_info(queue: cl.CommandQueue | None = None) -> MemoryInfo:
    """Return how much device memory is used, and how much is kept for later results and scratch.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        For this queue's context and device; by default the sum over all.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.eye_array(1000, dtype="float32")
    >>> sp.memory_info(A.queue).used > 4 * 1000
    True
    """
    return MemoryInfo(*map(sum, zip(*(pool.info() for pool in _asked(queue)), (0, 0, 0, 0), strict=True)))
