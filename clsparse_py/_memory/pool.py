"""Memory pools: one for each context and device, with an arena for each queue, and blocks of memory.

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
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from clsparse_py._memory.unordered import Beside, Uses, flush, has_order, queue_beside

__all__ = ["Arena", "Block", "Lent", "MemoryInfo", "Pool", "arena_of", "is_released", "pools", "side_queue", "whole"]

#: Most memory that a pool of device memory keeps unused by default, as a share of the device's memory.
_SHARE = 0.25
#: Most blocks of memory, lent or let go, that a pool counts in one batch: a count takes a lock.
_MAX_CHANGES = 256
#: Largest block of memory that a pool counts in a batch, as a share of the pool's limit; larger blocks are counted at once.
_SMALL_SHARE = 1 / 256
#: Binary logarithm of the smallest step, in bytes, between sizes of a pool's blocks; larger steps are 1/8 of the size at most.
_MIN_STEP_BITS = 8

#: OpenCL's query of a buffer for how often the buffer is mapped to the host.
_MAP_COUNT = cl.mem_info.MAP_COUNT
#: PyOpenCL's function that makes a buffer object of the handle of memory.
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
        Pieces of memory in use.
    """

    used: int
    pooled: int
    peak: int
    blocks: int


class Idle(dict[int, "list[Block]"]):
    """The idle blocks of a queue's arena, by their size."""

    is_open = True

    def close(self) -> None:
        """Free all idle blocks of memory of a queue's arena, and let the arena keep none from now on.

        Blocks in use refer to this object.
        """
        self.is_open = False
        self.clear()


class Block:
    """A piece of device memory, either lent to an array or operation, or idle in its arena.

    Attributes
    ----------
    patience : int
        Changes of the pool that may stay uncounted when the block is let go.
    """

    __slots__ = ("__weakref__", "arena", "buffer", "idle", "idle_since", "patience", "pointer", "pool", "size")

    def __init__(self, arena: Arena, buffer: cl.Buffer, size: int, patience: int) -> None:
        self.buffer, self.size, self.pointer, self.patience = buffer, size, buffer.int_ptr, patience
        # A block of memory has a weak reference to its arena, which goes with the arena's queue.
        self.pool, self.arena, self.idle = arena.pool, arena.itself, arena.idle
        self.idle_since = 0


class Lent(cl.Buffer):
    """The buffer of a block, for as long as an array or a view has it.

    Attributes
    ----------
    block : Block or None
        None once the memory was released by hand.
    """

    # PyOpenCL's buffers have no weak references: only a `__del__` of a class of ours learns when a buffer is let go.
    # The class must not have slots, as buffer objects made of a handle get this class in place of `cl.Buffer`.
    __slots__ = ()

    block: Block | None

    def get_sub_region(self, origin: int, size: int, flags: int = 0) -> cl.Buffer:
        """Return a sub-buffer of the buffer, which keeps the whole buffer alive."""
        return _keep_with(self, super().get_sub_region(origin, size, flags))

    def __getitem__(self, part: slice) -> cl.Buffer:
        return _keep_with(self, super().__getitem__(part))

    def release(self) -> None:
        """Let go of the buffer's memory by hand, before the buffer object goes."""
        if self.block is not None:
            self.block.pool.n_released += 1
        self.__del__()
        self.block = None
        super().release()

    def __del__(self, mapped: Any = _MAP_COUNT) -> None:
        block = self.block
        if block is not None:
            # Memory that is mapped to the host may be read after its array has gone: the mapping keeps the memory, not the pool.
            if self.get_info(mapped):
                block.pool.drop(block)
            else:
                block.pool.take_back(block)


def is_released(memory: object) -> bool:
    """Return whether the memory of an array was released by hand: another array may have that memory by now."""
    return memory.__class__ is Lent and memory.block is None


def _keep_with(owner: cl.Buffer, part: Any) -> cl.Buffer:
    """Return the sub-buffer ``part``, which from now on keeps the buffer ``owner``, of which it is a part, alive."""
    part._clsparse_py = owner
    sub_buffer: cl.Buffer = part
    return sub_buffer


def whole(memory: Any) -> Any:
    """Return the pool's buffer of which a buffer is a sub-buffer; for any other buffer, the buffer itself."""
    return getattr(memory, "_clsparse_py", memory)


def _create(context: cl.Context, n_bytes: int, host: np.ndarray[Any, Any] | None = None, flags: int = 0) -> cl.Buffer:
    """Return a buffer of new device memory or, if ``host`` is given, of that array, in place or by copy as ``flags`` say."""
    if host is not None:
        return cl.Buffer(context, flags, hostbuf=host)
    return cl.Buffer(context, cl.mem_flags.READ_WRITE, n_bytes)


@functools.lru_cache(maxsize=4096)
def _block_size(n_bytes: int) -> int:
    """Return the size, in bytes, of the pool's block that is lent for ``n_bytes`` bytes."""
    step = n_bytes.bit_length() - 4
    if step < _MIN_STEP_BITS:
        step = _MIN_STEP_BITS
    return -(-n_bytes >> step) << step


def _read_cap(device: cl.Device) -> int:
    """Return the most bytes that the pool of a device keeps unused: ``CLSPARSE_POOL_BYTES``, or a quarter of its memory."""
    text = os.environ.get("CLSPARSE_POOL_BYTES")
    if text is None:
        return int(device.global_mem_size * _SHARE)
    if not text.strip().isdecimal():
        raise ValueError(f"CLSPARSE_POOL_BYTES: must be a number of bytes, 0 for no pool, is {text!r}")
    return int(text)


class Pool:
    """The memory of a context on a device.

    A pool keeps the context (quirk 9), and its arenas and blocks keep the pool: the context goes with the last of these.

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
        Commands that use memory outside of the order of its own queue.
    changes : list of int
        The bytes of each block that was lent, negative for one that was let go, until `settle` counts them.
    n_released : int
        How often memory was released by hand: code that keeps arrays has to check them again.
    """

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.context, self.device = context, device
        self.device_name = device.name.strip()
        self.device_bytes: int = device.global_mem_size
        self.largest: int = device.max_mem_alloc_size
        self.uses = Uses()
        self.n_released = 0
        self._cap = _read_cap(device)
        self._largest_kept = self.largest if self._cap else 0
        self._small = int(self._cap * _SMALL_SHARE)
        self._arenas: weakref.WeakSet[Arena] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._clock = itertools.count()
        self.changes: list[int] = []
        self._used = self._peak = 0
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()

    def add(self, arena: Arena) -> None:
        """Add the arena of another queue, which holds the queue's idle blocks of memory, to the pool."""
        with self._lock:
            self._arenas.add(arena)

    def lend(self, arena: Arena, n_bytes: int) -> Block:
        """Return a block of memory of at least ``n_bytes`` bytes: an idle block of the arena if there is one, else new memory.

        Raises
        ------
        pyopencl.Error
            The driver has no memory, not even after the pool freed its idle blocks.
        """
        size = _block_size(n_bytes)
        if size > self._largest_kept:
            size = n_bytes
        try:
            block = arena.idle[size].pop() if not self.uses else self._take_unused(arena.idle[size])
        except (KeyError, IndexError):
            block = self._create_block(arena, size, n_bytes)
            with self._lock:
                self._blocks.add(block)
        self.changes.append(block.size)
        return block

    def _create_block(self, arena: Arena, size: int, n_bytes: int) -> Block:
        """Return a new block of device memory of ``size`` bytes, or of ``n_bytes`` if the driver lacks memory for that."""
        try:
            buffer = _create(self.context, size)
        except cl.Error:
            self.empty()
            size, buffer = n_bytes, _create(self.context, n_bytes)
        return Block(arena, buffer, size, _MAX_CHANGES if size <= self._small else 0)

    def _take_unused(self, idle: list[Block]) -> Block:
        """Take a block of memory out of a list of idle blocks, and return it: the last without noted uses, else the first."""
        for block in reversed(idle.copy()):
            if not self.uses.running((block.pointer,)):
                with contextlib.suppress(ValueError):  # another thread took the block
                    idle.remove(block)
                    return block
        return idle.pop(0)

    def take_back(self, block: Block) -> None:
        """Put a block of memory that an array or operation let go among its arena's idle blocks; free it if it is too large."""
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

    def drop(self, block: Block) -> None:
        """Count a block of memory as no longer used: it is not kept for reuse, as its memory is mapped to the host."""
        self.changes.append(-block.size)

    def settle(self, wait: bool = True) -> None:
        """Bring the pool's counts of memory up to date, and free idle blocks beyond the pool's limit.

        Without ``wait``, it is left to a later call if another caller has the lock, which may be a call that this one interrupts.
        """
        if not self._lock.acquire(wait):  # by position, which takes half the time
            return
        try:
            n = len(self.changes)  # other threads may append at any time
            used_bytes = [*itertools.accumulate(self.changes[:n], initial=self._used)]
            del self.changes[:n]
            self._used, self._peak = used_bytes[-1], max(self._peak, max(used_bytes))
            while self._count_idle_bytes() > self._cap:
                self._free_oldest()
        finally:
            self._lock.release()

    def _count_idle_bytes(self) -> int:
        """Return the bytes of all idle blocks of the pool."""
        return sum(size * len(idle) for arena in self._arenas for size, idle in tuple(arena.idle.items()))

    def _free_oldest(self) -> None:
        """Free the pool's block of memory that has been idle for longest: its memory goes back to the driver."""
        lists = [(idle[:1], idle) for arena in self._arenas for idle in tuple(arena.idle.values())]
        first, idle = min(
            (idle_list for idle_list in lists if idle_list[0]), key=lambda idle_list: idle_list[0][0].idle_since, default=([], [])
        )
        with contextlib.suppress(IndexError, ValueError):  # another thread took the block
            idle.remove(first[0])

    def empty(self) -> None:
        """Free all idle blocks of the pool and all kept counters: their memory goes back to the driver."""
        with self._lock:
            arenas = tuple(self._arenas)
        for arena in arenas:
            arena.counters.clear()
            arena.idle.clear()

    def info(self) -> MemoryInfo:
        """Return how much memory of the pool is used, and how much is kept unused."""
        self.settle()
        with self._lock:
            n_idle = sum(len(idle) for arena in self._arenas for idle in tuple(arena.idle.values()))
            return MemoryInfo(self._used, self._count_idle_bytes(), self._peak, len(self._blocks) - n_idle)

    def create_on_host(self, host: np.ndarray[Any, Any], flags: int) -> cl.Buffer:
        """Return a new buffer of a host array, in place or by copy as ``flags`` say; it is no block of the pool.

        Raises
        ------
        MemoryError
            The driver lacks memory of its own for the buffer, even after the pool freed its idle blocks.
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
        """Return a phrase for error messages: the memory of the device, and how much of that memory is used."""
        has = f"{self.device_name} has {self.device_bytes:,} in all and allows {self.largest:,} in one array"
        return f"{has}; clsparse_py uses {self.info().used:,} there"


class Arena:
    """The memory that is kept for a queue, and goes with the queue.

    Attributes
    ----------
    pool : Pool
    beside : Beside or None
        The in-order queue that runs the commands of operations if the user's queue keeps no order.
    idle : Idle
        Idle blocks of each size, the one that is idle for longest first.
    counters : deque of pyopencl.Buffer
        Counters that `launch.Chain.counters` keeps at zero. Buffers, not arrays, as arrays would keep the queue.
    side_queue : pyopencl.CommandQueue or None
        A queue on the same device that keeps its commands in order, if one was asked for.
    former : list of pyopencl.Event
        The events that `note_written` took out of a list last.
    itself : weakref.ref
        A weak reference to the arena.
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
        """Return a buffer for the next commands of the arena's queue; raises as `Pool.lend`."""
        pool = self.pool
        try:
            if pool.uses:
                block = self.take_block(queue, n_bytes)
            else:  # as `take_block` does, in less time
                block = self.idle[_block_size(n_bytes)].pop()
                pool.changes.append(block.size)
        except (KeyError, IndexError):
            block = self.take_block(queue, n_bytes)
        buffer: Any = _of_handle(block.pointer, True)
        buffer.__class__ = Lent
        buffer.block = block
        lent: cl.Buffer = buffer
        return lent

    def take_block(self, queue: cl.CommandQueue, n_bytes: int) -> Block:
        """Return a block of memory for the next commands of the arena's queue; raises as `Pool.lend`."""
        pool = self.pool
        block = pool.lend(self, n_bytes)
        if pool.uses and (events := pool.uses.running((block.pointer,), queue.int_ptr)):
            flush(events)
            cl.enqueue_barrier(queue, wait_for=events)
        return block


#: The pools that are alive, by the handles of their context and device.
_pools: weakref.WeakValueDictionary[tuple[int, int], Pool] = weakref.WeakValueDictionary()
#: Held while an arena or pool is made.
_lock = threading.Lock()


def arena_of(queue: cl.CommandQueue) -> Arena:
    """Return the arena of a queue (its pool and idle blocks of memory), which the queue's Python object keeps."""
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
    """Return the memory pools of all contexts and devices."""
    return list(_pools.values())


def side_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return the second, in-order queue that is kept beside a queue, for commands that run at the same time on its device."""
    arena = arena_of(queue)
    if arena.side_queue is None:
        arena.side_queue = queue_beside(queue)
    return arena.side_queue
