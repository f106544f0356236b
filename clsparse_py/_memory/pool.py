"""Memory pools: one for each context and device, with an arena for each queue.

A block is used again at once on the queue of its arena, as the queue's order lets earlier commands finish first. If commands of
other queues may still use the block, the queue waits for them; the host never waits.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from clsparse_py._memory.blocks import Block, Idle, Lent
from clsparse_py._memory.dependencies import Uses, flush
from clsparse_py._memory.unordered import Beside, has_order, queue_beside

__all__ = ["Arena", "MemoryInfo", "Pool", "arena_of", "pools", "side_queue"]

#: By default, memory kept unused is at most this share of the device's memory.
_SHARE = 0.25
#: Blocks counted in one batch, lent or freed: a count takes a lock.
_MAX_CHANGES = 256
#: Freed blocks larger than this share of the pool are counted without delay.
_SMALL_SHARE = 1 / 256
#: The size of a block is a multiple of an eighth of the largest power of two in it, which bounds the waste, and of 2**8 bytes.
_MIN_STEP_BITS = 8

_of_handle = cl.Buffer.from_int_ptr


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
    text = os.environ.get("CLSPARSE_POOL_BYTES")
    if text is None:
        return int(device.global_mem_size * _SHARE)
    if not text.strip().isdecimal():
        raise ValueError(f"CLSPARSE_POOL_BYTES: must be a number of bytes, 0 for no pool, is {text!r}")
    return int(text)


class Pool:
    """The memory of a context on a device.

    It keeps the context (quirk 9), and is kept by its arenas and blocks: when the last of
    them goes, the context is let go.

    Blocks are lent and let go without a lock: Python's lists and deques do one thing at a time, and the garbage collector, which
    may let a block go at any time, must not wait.

    Attributes
    ----------
    context : pyopencl.Context
    device : pyopencl.Device
    device_name : str
    device_bytes, largest : int
        Memory of the device, and of one allocation.
    uses : Uses
        Of memory, by commands outside of the order of its own queue. Changed under the pool's lock.
    changes : list of int
        The bytes of each block that was lent, negative for one that was let go, until `settle` counts them.
    n_released : int
        How often memory was released by hand: who keeps arrays has to look at them again.
    """

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.context, self.device = context, device
        self.device_name = device.name.strip()
        self.device_bytes: int = device.global_mem_size
        self.largest: int = device.max_mem_alloc_size
        self.uses = Uses()
        self.n_released = 0
        self._cap = _cap(device)
        self._largest_kept = self.largest if self._cap else 0
        self._small = int(self._cap * _SMALL_SHARE)
        self._arenas: weakref.WeakSet[Arena] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._clock = itertools.count()
        self.changes: list[int] = []
        self._used = self._peak = 0
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()

    def add(self, arena: Arena) -> None:
        """Add the arena of another queue."""
        with self._lock:
            self._arenas.add(arena)

    def lend(self, arena: Arena, n_bytes: int) -> Block:
        """Return a block of at least so many bytes: an idle one of the arena, if there is one.

        Raises
        ------
        pyopencl.Error
            The driver has no memory, not even after the pool gave back all that it kept unused.
        """
        size = _block_size(n_bytes)
        if size > self._largest_kept:
            size = n_bytes
        try:
            block = arena.idle[size].pop() if not self.uses else self._take_unused(arena.idle[size])
        except (KeyError, IndexError):
            block = self._new(arena, size, n_bytes)
            with self._lock:
                self._blocks.add(block)
        self.changes.append(block.size)
        return block

    def _new(self, arena: Arena, size: int, n_bytes: int) -> Block:
        """Return a new block of this size, or of so many bytes alone if the driver has no more."""
        try:
            buffer = _create(self.context, size)
        except cl.Error:
            self.empty()
            size, buffer = n_bytes, _create(self.context, n_bytes)
        return Block(arena, buffer, size, _MAX_CHANGES if size <= self._small else 0)

    def _take_unused(self, idle: list[Block]) -> Block:
        """Take the block that became idle last and has no uses out of a list; if all have, the first."""
        with self._lock:
            for block in reversed(idle.copy()):
                if not self.uses.running(block.pointer):
                    with contextlib.suppress(ValueError):  # another thread has it by now
                        idle.remove(block)
                        return block
        return idle.pop(0)

    def take_back(self, block: Block) -> None:
        """Take a block that was let go."""
        block.idle_since = next(self._clock)
        try:
            block.idle[block.size].append(block)
        except KeyError:
            if block.size <= self._cap and block.idle.is_open:
                block.idle.setdefault(block.size, []).append(block)
        changes = self.changes
        changes.append(-block.size)
        if len(changes) > block.patience:
            self.settle(False)

    def lose(self, block: Block) -> None:
        """Take note of a block that was let go, and goes back to the driver."""
        self.changes.append(-block.size)

    def settle(self, wait: bool = True) -> None:
        """Bring the counts up to date, and give back to the driver what is more than may be kept.

        Without ``wait``, a later call does it if another caller has the lock, which may be one that this call interrupts.
        """
        if not self._lock.acquire(wait):  # by position, which takes half the time
            return
        try:
            n = len(self.changes)  # other threads may append at any time
            used_bytes = [*itertools.accumulate(self.changes[:n], initial=self._used)]
            del self.changes[:n]
            self._used, self._peak = used_bytes[-1], max(self._peak, max(used_bytes))
            while self._count_idle_bytes() > self._cap:
                self._give_up_one()
        finally:
            self._lock.release()

    def _count_idle_bytes(self) -> int:
        """Return the bytes of idle blocks."""
        return sum(size * len(idle) for arena in self._arenas for size, idle in tuple(arena.idle.items()))

    def _give_up_one(self) -> None:
        """Give the block that has been idle for longest back to the driver."""
        lists = [(idle[:1], idle) for arena in self._arenas for idle in tuple(arena.idle.values())]
        first, idle = min(
            (idle_list for idle_list in lists if idle_list[0]), key=lambda idle_list: idle_list[0][0].idle_since, default=([], [])
        )
        with contextlib.suppress(IndexError, ValueError):  # another thread has it by now
            idle.remove(first[0])

    def empty(self) -> None:
        """Give all memory that is kept unused back to the driver."""
        with self._lock:
            arenas = tuple(self._arenas)
        for arena in arenas:
            arena.counters.clear()
            arena.idle.clear()

    def info(self) -> MemoryInfo:
        """Return how much memory is used and kept."""
        self.settle()
        with self._lock:
            n_idle = sum(len(idle) for arena in self._arenas for idle in tuple(arena.idle.values()))
            return MemoryInfo(self._used, self._count_idle_bytes(), self._peak, len(self._blocks) - n_idle)

    def note(self, pointers: Iterable[int], queue: cl.CommandQueue, event: cl.Event) -> None:
        """Note that a command on a queue uses memory."""
        with self._lock:
            self.uses.note(pointers, queue, event)

    def uses_of(self, pointers: Iterable[int], queue: cl.CommandQueue) -> list[cl.Event]:
        """Return the events of noted commands that use memory, without those that the order of ``queue`` already covers."""
        with self._lock:
            return [event for pointer in pointers for event in self.uses.running(pointer, queue.int_ptr)]

    def has_uses(self) -> bool:
        """Return whether a command that uses memory outside of the order of its own queue has not ended; forget ended ones."""
        if not self.uses:
            return False
        with self._lock:
            return self.uses.any_running()

    def on_host(self, host: np.ndarray[Any, Any], flags: int) -> cl.Buffer:
        """Return a buffer that is or copies a host array, which is no block.

        Raises
        ------
        MemoryError
            The driver lacks memory of its own for it, even after the pool gave back all that it kept unused.
        """
        try:
            return _create(self.context, host.nbytes, host, flags)
        except cl.Error:
            self.empty()
            try:
                return _create(self.context, host.nbytes, host, flags)
            except cl.Error as error:
                raise MemoryError(f"a buffer on {host.nbytes:,} bytes of host memory: {error}; {self.capacity()}") from error

    def capacity(self) -> str:
        """Return, for messages, how much memory the device has and how much of it is used."""
        has = f"{self.device_name} has {self.device_bytes:,} in all and allows {self.largest:,} in one array"
        return f"{has}; clsparse_py uses {self.info().used:,} there"


class Arena:
    """The memory that is kept for a queue, and goes with the queue.

    Attributes
    ----------
    pool : Pool
    beside : Beside or None
        What runs the commands of operations if the queue keeps no order.
    idle : Idle
        Idle blocks of each size, the one that is idle for longest first.
    counters : deque of pyopencl.Buffer
        Counters that `launch.Chain.counters` keeps at zero. Buffers, not arrays, as arrays would keep the queue.
    side_queue : pyopencl.CommandQueue or None
        A queue on the same device that keeps its commands in order, if one was asked for.
    former : list of pyopencl.Event
        The events that `note_written` took out of a list last.
    itself : weakref.ref
    """

    def __init__(self, pool: Pool, beside: Beside | None) -> None:
        self.pool, self.beside = pool, beside
        self.idle = Idle()
        self.counters: deque[cl.Buffer] = deque()
        self.side_queue: cl.CommandQueue | None = None
        self.former: list[cl.Event] = []
        self.itself = weakref.ref(self)

    def __del__(self) -> None:
        self.idle.close()

    def allocate(self, queue: cl.CommandQueue, n_bytes: int) -> cl.Buffer:
        """Return memory for the next commands of the arena's queue; raises as `Pool.lend`."""
        pool = self.pool
        try:
            if pool.uses:
                block = self.block(queue, n_bytes)
            else:  # as `block` does, in less time
                block = self.idle[_block_size(n_bytes)].pop()
                pool.changes.append(block.size)
        except (KeyError, IndexError):
            block = self.block(queue, n_bytes)
        buffer: Any = _of_handle(block.pointer, True)
        buffer.__class__ = Lent
        buffer.block = block
        lent: cl.Buffer = buffer
        return lent

    def block(self, queue: cl.CommandQueue, n_bytes: int) -> Block:
        """Return a block for the next commands of the arena's queue; raises as `Pool.lend`."""
        pool = self.pool
        block = pool.lend(self, n_bytes)
        if pool.uses and (events := pool.uses_of((block.pointer,), queue)):
            flush(events)
            cl.enqueue_barrier(queue, wait_for=events)
        return block


_pools: weakref.WeakValueDictionary[tuple[int, int], Pool] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def arena_of(queue: cl.CommandQueue) -> Arena:
    """Return the arena of a queue. The queue's Python object keeps it."""
    keeper: Any = queue
    try:
        arena: Arena = keeper._clsparse_py
    except AttributeError:
        with _lock:
            if hasattr(keeper, "_clsparse_py"):
                return arena_of(queue)
            context, device = queue.context, queue.device
            key = context.int_ptr, device.int_ptr
            pool = _pools.get(key)
            if pool is None:
                pool = _pools[key] = Pool(context, device)
            arena = Arena(pool, None if has_order(queue) else Beside(queue))
            pool.add(arena)
            keeper._clsparse_py = arena
    return arena


def pools() -> list[Pool]:
    """Return the pools of all contexts and devices."""
    return list(_pools.values())


def side_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return a second queue on the same device, in order; the same one at each call."""
    arena = arena_of(queue)
    if arena.side_queue is None:
        arena.side_queue = queue_beside(queue)
    return arena.side_queue
