"""What a kind of call enqueues, worked out once: kernels, their arguments and sizes, and the scratch memory that they share.

To choose records, to look kernels up and to count work-groups takes the host longer than to launch. All of it depends on the kind
of call alone: the device, dtypes, and numbers such as the shape. So a function that enqueues commands runs once for each kind, on
a chain that notes them down, and calls of that kind repeat what was noted with arrays of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py import programs
from clsparse_py.launch import Chain, Command, enqueue_fill
from clsparse_py.memory import scratch

__all__ = ["run"]


class _Operand(cl_array.Array):
    """Stands for an array of which only the dtype is known: what else is asked of it raises an AttributeError."""

    def __init__(self, place: int, dtype: np.dtype[Any]) -> None:
        self.place = place
        self.dtype = dtype


class _Launch:
    """A kernel to launch, and where its arguments stand in the table of all arguments."""

    __slots__ = ("_built", "_places", "_sizes")

    def __init__(self, built: programs.Built, groups: int, places: list[int]) -> None:
        self._built, self._sizes, self._places = built, built.sizes(groups), places

    def enqueue(self, queue: cl.CommandQueue, table: list[Any], wait_for: list[cl.Event] | None) -> cl.Event:
        return self._built.enqueue(queue, self._sizes, [table[place] for place in self._places], wait_for)


class _Fill:
    """The first bytes of an array to set to a pattern."""

    __slots__ = ("_n_bytes", "_pattern", "_place")

    def __init__(self, place: int, pattern: np.ndarray[Any, Any], n_bytes: int) -> None:
        self._place, self._pattern, self._n_bytes = place, pattern, n_bytes

    def enqueue(self, queue: cl.CommandQueue, table: list[Any], wait_for: list[cl.Event] | None) -> cl.Event:
        return enqueue_fill(queue, table[self._place], self._pattern, self._n_bytes, wait_for)


class _Scratch(_Operand):
    """Scratch memory: how much, and the first and the last command that use it."""

    def __init__(self, place: int, dtype: np.dtype[Any], n: int) -> None:
        super().__init__(place, dtype)
        self.n_bytes = n * dtype.itemsize
        self.first = self.last = -1


class _Recorder(Chain):
    """A chain that notes commands down and enqueues none.

    Arguments are noted as places in a table: operands come first, then scratch memory and constants as they are met.
    """

    def __init__(self, chain: Chain, dtypes: tuple[np.dtype[Any] | None, ...]) -> None:
        self.queue, self.device = chain.queue, chain.device
        self._context, self._cl_device = chain._context, chain._cl_device
        self.operands = tuple(None if dtype is None else _Operand(place, dtype) for place, dtype in enumerate(dtypes))
        self.table: list[Any] = [None] * len(dtypes)
        self.kernels: list[programs.Built] = []
        self.commands: list[Command] = []
        self.scratches: list[_Scratch] = []

    @override
    def scratch(self, n: int, dtype: Any) -> cl_array.Array:
        found = _Scratch(len(self.table), np.dtype(dtype), max(n, 1))
        self.table.append(None)
        self.scratches.append(found)
        return found

    @override
    def launch(self, built: programs.Built, groups: int, *arguments: Any) -> None:
        if groups > 0:
            self.kernels.append(built)
            self.commands.append(_Launch(built, groups, [self._place(each) for each in arguments]))

    @override
    def fill(self, target: cl_array.Array, value: Any, n: int) -> None:
        if n > 0:
            item = np.array(value, target.dtype)
            self.commands.append(_Fill(self._place(target), item, n * item.itemsize))

    def _place(self, argument: Any) -> int:
        """Return where an argument of the next command stands."""
        if not isinstance(argument, _Operand):
            self.table.append(argument)
            return len(self.table) - 1
        if isinstance(argument, _Scratch):
            argument.last = len(self.commands)
            if argument.first < 0:
                argument.first = argument.last
        return argument.place


class _Lowered:
    """What a kind of call enqueues.

    Attributes
    ----------
    kernels : tuple of programs.Built
        Those that it launches.
    """

    def __init__(self, recorder: _Recorder) -> None:
        self.kernels = tuple(recorder.kernels)
        self._commands = tuple(recorder.commands)
        self._constants = tuple(recorder.table[len(recorder.operands) :])
        # Pieces of scratch memory of which one is let go before the other is used are the same block.
        self._sizes: list[int] = []
        self._blocks: list[tuple[int, int]] = []
        until: list[int] = []
        for each in sorted((each for each in recorder.scratches if each.last >= 0), key=lambda each: each.first):
            free = [block for block, last in enumerate(until) if last < each.first]
            if not free:
                block = len(until)
                self._sizes.append(0)
                until.append(0)
            else:
                # The smallest that suffices, or else the largest.
                block = min(free, key=lambda at: (self._sizes[at] < each.n_bytes, abs(self._sizes[at] - each.n_bytes)))
            self._sizes[block] = max(self._sizes[block], each.n_bytes)
            until[block] = each.last
            self._blocks.append((each.place, block))

    def enqueue(self, chain: Chain, arrays: tuple[cl_array.Array | None, ...]) -> None:
        """Enqueue the commands with these arrays."""
        table: list[Any] = [None if array is None else array.base_data for array in arrays]
        table += self._constants
        with scratch(chain.queue, self._sizes) as blocks:
            for place, block in self._blocks:
                table[place] = blocks[block]
            chain.repeat(self._commands, table)


def run(chain: Chain, enqueue: Callable[..., None], arrays: tuple[cl_array.Array | None, ...], *kind: Hashable) -> None:
    """Enqueue what ``enqueue(chain, *arrays, *kind)`` enqueues; that is worked out once for each kind of call.

    Parameters
    ----------
    chain : Chain
    enqueue : callable
        A function that only enqueues: what it does depends on the device, on the dtypes of arrays, and on ``kind``. It takes
        scratch memory, launches and fills, reads nothing, and keeps nothing.
    arrays : tuple of pyopencl.array.Array
        They begin their buffers. None where there is none.
    kind : hashable
        Numbers and the like.
    """
    if isinstance(chain, _Recorder):
        enqueue(chain, *arrays, *kind)
        return
    dtypes = tuple([None if array is None else array.dtype for array in arrays])

    def lowered() -> _Lowered:
        recorder = _Recorder(chain, dtypes)
        enqueue(recorder, *recorder.operands, *kind)
        return _Lowered(recorder)

    found = chain.worked_out((enqueue, chain.device, dtypes, kind), lowered)
    programs.note_asked(found.kernels)
    found.enqueue(chain, arrays)
