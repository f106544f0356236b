"""Memory that is let go and kept for the next allocation: a pool for each context and device, an arena in it for each queue.

A block is used again at once on the queue of its arena, as the queue's order lets earlier commands finish first. If commands of
other queues may still use the block, the queue waits for them; the host never waits.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from clsparse_py.blocks import MAPPED, Block, Lent, lent
from clsparse_py.unordered import Beside, has_order, queue_beside
from clsparse_py.uses import Uses, flush

__all__ = ["Arena", "MemoryInfo", "Pool", "arena_of", "pools", "side_queue"]

#: By default, memory kept unused is at most this share of the device's memory.
_SHARE = 0.25
#: Blocks that were let go wait for the next allocation to be sorted in, up to so many, if each is at most this share of what may
#: be kept: to sort each in at once takes a lock each time.
_MAX_WAITING, _SMALL_SHARE = 32, 1 / 64
#: Of each size, the last buffers of small blocks are kept in view, so many of so many sizes: one whose array is gone is lent
#: again as it is. To make a buffer of a block, and to sort the block in, takes as long as a launch.
_MAX_IN_VIEW, _MAX_SIZES = 6, 8
#: The size of a block is a multiple of an eighth of the largest power of two in it, which bounds the waste, and of 2**8 bytes.
_MIN_STEP_BITS = 8


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
    returned : deque of Block
        Blocks that were let go, which `settle` sorts in.
    gone : deque
        Blocks that were given back to the driver but are still in the counts: the size of each, and whether it was idle.
    uses : Uses
        Of memory, by commands outside of the order of its own queue. Changed under the pool's lock.
    n_released : int
        How often memory was released by hand: who keeps arrays has to look at them again.
    """

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.context, self.device = context, device
        self.device_name = device.name.strip()
        self.device_bytes: int = device.global_mem_size
        self.largest: int = device.max_mem_alloc_size
        self.returned: deque[Block] = deque()
        self.gone: deque[tuple[int, bool]] = deque()
        self.uses = Uses()
        self.n_released = 0
        self._cap = _cap(device)
        self._largest_kept = self.largest if self._cap else 0
        self._small = int(self._cap * _SMALL_SHARE)
        self._arenas: weakref.WeakSet[Arena] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._clock = itertools.count()
        self._total = self._pooled = self._peak = 0
        # How much seemed to be in use when it was last told from what is kept in view.
        self._looked_at = 0

    def add(self, arena: Arena) -> None:
        """Add the arena of another queue."""
        with self._lock:
            self._arenas.add(arena)

    def block(self, arena: Arena, n_bytes: int) -> tuple[Block, list[cl.Event]]:
        """Return a block of at least so many bytes, and the events that the queue of its arena has to wait for.

        Raises
        ------
        pyopencl.Error
            The driver has no memory, not even after the pool gave back all that it kept unused.
        """
        size = self._rounded(n_bytes)
        with self._lock:
            if self.returned or self.gone or self.uses:
                self._sort_in(everything=bool(self.uses))
            if idle := arena.idle.get(size):
                return self._lend(idle)
        try:
            buffer = _create(self.context, size)
        except cl.Error:
            self.empty()
            size = n_bytes
            buffer = _create(self.context, size)
        block = Block(arena, buffer, size)
        with self._lock:
            self._total += size
            self._note_peak()
            return block, self.uses.running(block.pointer) if self.uses else []

    def idle_block(self, arena: Arena, n_bytes: int) -> Block | None:
        """Return an idle block as `block` does, in less time; None if there is none, or one may be used by commands."""
        size = _block_size(n_bytes)
        with self._lock:
            if self.returned or self.gone or self.uses:
                self._sort_in(everything=bool(self.uses))
            if (self.uses and self.uses.any_running()) or not (idle := arena.idle.get(size)):
                return None
            block = idle.pop()
            block.idle_since = None
            self._pooled -= size
            self._note_peak()
            return block

    def _note_peak(self) -> None:
        """Bring the peak up to date, under the lock, after memory was lent."""
        used = self._total - self._pooled
        if used > self._peak and used > self._looked_at:
            # To look at what is kept in view, and was let go, takes less time than to lose sight of it and lend other memory.
            self._peak = max(self._peak, used - sum(each.free_in_view() for each in self._arenas))
            self._looked_at = used

    def _rounded(self, n_bytes: int) -> int:
        """Return the size of the block for so many bytes."""
        size = _block_size(n_bytes)
        return size if size <= self._largest_kept else n_bytes

    def _lend(self, idle: list[Block]) -> tuple[Block, list[cl.Event]]:
        """Return one of the idle blocks, and the events that its queue has to wait for."""
        if self.uses:
            at, events = self._first_free(idle)
            block = idle.pop(at)
        else:
            block, events = idle.pop(), []
        block.idle_since = None
        self._pooled -= block.size
        self._note_peak()
        return block, events

    def idle_blocks(self, arena: Arena, sizes: Iterable[int]) -> list[Block]:
        """Return idle blocks that no command uses, one for each of these sizes in order; stop at the first size that has none."""
        found: list[Block] = []
        with self._lock:
            if self.returned or self.gone:
                self._sort_in()
            if self.uses and self.uses.any_running():
                return found
            for size in sizes:
                idle = arena.idle.get(self._rounded(size))
                if not idle:
                    break
                block = idle.pop()
                block.idle_since = None
                self._pooled -= block.size
                found.append(block)
            self._note_peak()
        return found

    def _first_free(self, idle: list[Block]) -> tuple[int, list[cl.Event]]:
        """Return the index of the block that became idle last and has no uses; if all have, that of the first, and its uses."""
        for at in reversed(range(len(idle))):
            if not self.uses.running(idle[at].pointer):
                return at, []
        return 0, self.uses.running(idle[0].pointer)

    def is_small(self, block: Block) -> bool:
        """Return whether some blocks of that size may be kept in addition to those that are sorted in."""
        return block.size <= self._small

    def take_back(self, block: Block) -> None:
        """Take a block that was let go; the garbage collector, which may do so at any time, does not wait."""
        returned = self.returned
        returned.append(block)
        if block.size > self._small or len(returned) > _MAX_WAITING:
            self.settle(False)

    def settle(self, wait: bool = True) -> None:
        """Move returned blocks to their arenas or back to the driver, and bring the counts up to date.

        Without ``wait``, a later call does it if another thread has the lock: the garbage collector, which may let memory go at
        any time, must not wait.
        """
        if not self._lock.acquire(wait):  # by position, which takes half the time
            return
        try:
            self._sort_in(everything=wait)
        finally:
            self._lock.release()

    def _sort_in(self, *, everything: bool = False) -> None:
        """Do as `settle`, under the lock; with ``everything`` also blocks whose buffers are kept in view and no array has."""
        returned, clock, pooled = self.returned, self._clock, 0
        if everything:
            self._looked_at = 0
            for each in self._arenas:
                each.lose_sight()
        while returned:
            block = returned.popleft()
            arena, size = block.arena(), block.size
            if arena is not None and size <= self._cap:
                block.idle_since = next(clock)
                arena.idle[size].append(block)
                pooled += size
            del block  # one that is not kept goes back to the driver now
        self._pooled += pooled
        while self._pooled > self._cap:
            self._give_up_one()
        if self.gone:
            self._count_gone()

    def _count_gone(self) -> None:
        while self.gone:
            size, was_idle = self.gone.popleft()
            self._total -= size
            self._pooled -= size * was_idle

    def _give_up_one(self) -> None:
        """Give the block that has been idle for longest back to the driver, once the caller that let it go has lost it, too."""
        lists = [idle for arena in self._arenas for idle in arena.idle.values() if idle]
        block = min(lists, key=lambda idle: idle[0].idle_since or 0).pop(0)
        block.idle_since = None
        self._pooled -= block.size

    def empty(self) -> None:
        """Give all memory that is kept unused back to the driver."""
        for arena in tuple(self._arenas):
            arena.counters.clear()
        self.settle()
        with self._lock:
            for arena in self._arenas:
                arena.idle.clear()
            self._count_gone()

    def info(self) -> MemoryInfo:
        """Return how much memory is used and kept."""
        self.settle()
        with self._lock:
            blocks = sum(block.pool is self for block in lent.copy().values())
            return MemoryInfo(self._total - self._pooled, self._pooled, self._peak, blocks)

    def note(self, pointers: Iterable[int], queue: cl.CommandQueue, event: cl.Event) -> None:
        """Note that a command on a queue uses memory."""
        with self._lock:
            self.uses.note(pointers, queue, event)

    def uses_before_writing(self, pointers: Iterable[int], queue: cl.CommandQueue) -> list[cl.Event]:
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
    idle : dict of int to list of blocks
        Idle blocks of each size, the one that is idle for longest first.
    in_view : dict of int to deque of pyopencl.Buffer
        The last buffers that were lent, by the size of their blocks, and that are lent again as they are if no array has them.
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
        self.idle: defaultdict[int, list[Block]] = defaultdict(list)
        self.in_view: dict[int, deque[cl.Buffer]] = {}
        self.counters: deque[cl.Buffer] = deque()
        self.side_queue: cl.CommandQueue | None = None
        self.former: list[cl.Event] = []
        self.itself = weakref.ref(self)

    def free_in_view(self) -> int:
        """Return the bytes of buffers in view that no array has, nor the host unless they are mapped."""
        found = 0
        for size, buffers in tuple(self.in_view.items()):
            found += size * _counts(buffers).count(_IN_VIEW)
        return found

    def lose_sight(self) -> None:
        """Keep no buffer in view: those that nothing has go back to the pool, and others will."""
        for buffers in tuple(self.in_view.values()):
            buffers.clear()

    def allocate(self, queue: cl.CommandQueue, n_bytes: int) -> cl.Buffer:
        """Return memory for the next commands of the arena's queue; raises as `Pool.block`."""
        pool = self.pool
        size = _block_size(n_bytes)
        in_view = self.in_view.get(size)
        if in_view and not pool.uses:
            for _ in range(len(in_view)):  # to look at each takes a tenth of the time to make another one
                first: cl.Buffer | None = _unused(in_view)
                if first is not None and not first.get_info(MAPPED):
                    return first
        block = pool.idle_block(self, n_bytes) or self.block(queue, n_bytes)
        made: Any = cl.Buffer.from_int_ptr(block.pointer, True)
        made.__class__ = Lent
        lent[id(made)] = block
        # A block is shorter where memory was too little for one of this size: nobody else may be given it for as many bytes.
        if pool.is_small(block) and block.size == size:
            if in_view is None:
                if len(self.in_view) >= _MAX_SIZES:
                    self.in_view = {}
                in_view = self.in_view.setdefault(size, deque())
            if len(in_view) < _MAX_IN_VIEW:
                in_view.append(made)
        found: cl.Buffer = made
        return found

    def block(self, queue: cl.CommandQueue, n_bytes: int) -> Block:
        """Return a block for the next commands of the arena's queue; raises as `Pool.block`."""
        block, events = self.pool.block(self, n_bytes)
        if events:
            flush(events)
            cl.enqueue_barrier(queue, wait_for=events)
        return block


def _unused(objects: deque[Any]) -> Any:
    """Return the first of some objects if nobody else has it, else None; it becomes the last."""
    try:
        first = objects.popleft()  # so that no other thread finds it
    except IndexError:
        return None
    is_unused = sys.getrefcount(first) == _alone
    objects.append(first)
    return first if is_unused else None


def _counts(buffers: deque[Any]) -> list[int]:
    """Return the number of references to each of some objects, with those of this function."""
    return [*map(sys.getrefcount, tuple(buffers))]


#: The numbers for an object that nobody else has, as `_unused` and `_counts` find them: versions of Python count differently, and
#: depending on the code.
_alone, (_IN_VIEW,) = 0, _counts(deque([object()]))
while _unused(deque([object()])) is None:
    _alone += 1


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
            found = Arena(pool, None if has_order(queue) else Beside(queue))
            pool.add(found)
            keeper._clsparse_py = found
    return found


def pools() -> list[Pool]:
    """Return the pools of all contexts and devices."""
    return list(_pools.values())


def side_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return a second queue on the same device, in order; the same one at each call."""
    arena = arena_of(queue)
    if arena.side_queue is None:
        arena.side_queue = queue_beside(queue)
    return arena.side_queue
