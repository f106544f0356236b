"""Blocks of device memory, which return to their pool with their last buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyopencl as cl

__all__ = ["Block", "Idle", "Lent", "is_released", "whole"]

_MAPPED = cl.mem_info.MAP_COUNT


class Idle(dict[int, "list[Block]"]):
    """The idle blocks of a queue's arena, by their size."""

    is_open = True

    def close(self) -> None:
        """Free all idle blocks, and keep none from now on; blocks in use refer to this object."""
        self.is_open = False
        self.clear()


class _Pool(Protocol):
    """The pool that blocks return to."""

    n_released: int

    def lose(self, block: Block) -> None: ...
    def take_back(self, block: Block) -> None: ...


class _Arena(Protocol):
    """The part of a pool that is one queue's."""

    @property
    def pool(self) -> _Pool: ...
    @property
    def itself(self) -> Callable[[], _Arena | None]: ...
    @property
    def idle(self) -> Idle: ...


class Block:
    """A piece of device memory, either lent to an array or operation, or idle in its arena.

    Attributes
    ----------
    patience : int
        How many changes may be left uncounted when it is let go.
    """

    __slots__ = ("__weakref__", "arena", "buffer", "idle", "idle_since", "patience", "pointer", "pool", "size")

    def __init__(self, arena: _Arena, buffer: cl.Buffer, size: int, patience: int) -> None:
        self.buffer, self.size, self.pointer, self.patience = buffer, size, buffer.int_ptr, patience
        # The arena itself is not kept: it goes with its queue.
        self.pool, self.arena, self.idle = arena.pool, arena.itself, arena.idle
        self.idle_since = 0


class Lent(cl.Buffer):
    """The buffer of a block, for as long as an array or a view has it.

    Attributes
    ----------
    block : Block or None
        None once it was released by hand.
    """

    # PyOpenCL's buffers have no weak references: only a class with a `__del__` of its own learns when one is let go. An object
    # made from a handle is given this class in place of `cl.Buffer`, so the class must not have slots.
    __slots__ = ()

    block: Block | None

    def get_sub_region(self, origin: int, size: int, flags: int = 0) -> cl.Buffer:
        """Return a part of the memory, which keeps the whole."""
        return _keep_with(self, super().get_sub_region(origin, size, flags))

    def __getitem__(self, part: slice) -> cl.Buffer:
        return _keep_with(self, super().__getitem__(part))

    def release(self) -> None:
        """Let go of the memory before the object goes."""
        if self.block is not None:
            self.block.pool.n_released += 1
        self.__del__()
        self.block = None
        super().release()

    def __del__(self, mapped: Any = _MAPPED) -> None:
        block = self.block
        if block is not None:
            # Memory that is mapped to the host may be read there after the array has gone: the mapping keeps it, not the pool.
            if self.get_info(mapped):
                block.pool.lose(block)
            else:
                block.pool.take_back(block)


def is_released(memory: object) -> bool:
    """Return whether memory that was lent was released by hand: nothing may be asked of it, as it is another array's by now."""
    return memory.__class__ is Lent and memory.block is None


def _keep_with(owner: cl.Buffer, part: Any) -> cl.Buffer:
    part._clsparse_py = owner
    sub_buffer: cl.Buffer = part
    return sub_buffer


def whole(memory: Any) -> Any:
    """Return the lent buffer that a buffer is, or is a part of; else the buffer itself."""
    return getattr(memory, "_clsparse_py", memory)
