"""Blocks of device memory, and the buffers by which arrays have them: a block goes back to its pool with its last buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyopencl as cl

if TYPE_CHECKING:
    from clsparse_py.pool import Arena

__all__ = ["MAPPED", "Block", "Lent", "is_released", "lent", "wholes"]

#: What a buffer is asked for how often it is mapped to the host.
MAPPED = cl.mem_info.MAP_COUNT


class Block:
    """A piece of device memory, either lent to an array or operation, or idle in its arena."""

    __slots__ = ("arena", "buffer", "idle_since", "pointer", "pool", "size")

    def __init__(self, arena: Arena, buffer: cl.Buffer, size: int) -> None:
        self.buffer, self.size, self.pointer = buffer, size, buffer.int_ptr
        self.pool, self.arena = arena.pool, arena.itself
        self.idle_since: int | None = None

    def __del__(self) -> None:
        self.pool.gone.append((self.size, self.idle_since is not None))


#: The block behind each lent buffer, by the identity of the buffer object.
lent: dict[int, Block] = {}
#: The whole of each sub-buffer, by the identity of the sub-buffer.
wholes: dict[int, cl.Buffer] = {}


class Lent(cl.Buffer):
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
        block = lent.get(id(self))
        arena = None if block is None else block.arena()
        if arena is not None:
            arena.lose_sight()  # it is not to be lent again
        if block is not None:
            block.pool.n_released += 1
        self.__del__()
        super().release()

    def __del__(self, blocks: dict[int, Block] = lent) -> None:
        block = blocks.pop(id(self), None)
        # Memory that is mapped to the host may be read there after the array has gone: the mapping keeps it, not the pool.
        if block is not None and not self.get_info(MAPPED):
            block.pool.take_back(block)


class _Part(cl.Buffer):
    """A sub-buffer of lent memory."""

    __slots__ = ()

    def __del__(self, wholes: dict[int, cl.Buffer] = wholes) -> None:
        wholes.pop(id(self), None)


def is_released(memory: object) -> bool:
    """Return whether memory that was lent was released by hand: nothing may be asked of it, as it is another array's by now."""
    return memory.__class__ is Lent and id(memory) not in lent


def _kept_with(whole: cl.Buffer, part: cl.Buffer) -> cl.Buffer:
    part.__class__ = _Part
    wholes[id(part)] = whole
    return part
