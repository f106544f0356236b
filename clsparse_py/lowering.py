"""Lowering: the commands of a kind of call (kernels, arguments, sizes, scratch memory) are worked out once, then repeated.

Choosing records, looking up kernels and counting work-groups takes the host longer than launching. The outcome depends only on
the kind of call: the device, the dtypes, and numbers such as the shape. So a function that enqueues commands runs once for each
kind, on a chain that records the commands; every call of that kind then repeats the recorded commands with its own arrays.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py import programs
from clsparse_py.device import describe
from clsparse_py.launch import Chain, Command, enqueue_copy, enqueue_fill
from clsparse_py.memory import scratch
from clsparse_py.pool import Arena

__all__ = ["Lowered", "known", "lower", "run", "worked_out"]


class _Operand(cl_array.Array):
    """A placeholder for an array of which only the dtype is known: any other attribute raises an AttributeError."""

    def __init__(self, place: int, dtype: np.dtype[Any]) -> None:
        self.place = place
        self.dtype = dtype


class _Launch:
    """A recorded launch: the kernel, and the places of its arguments in the table of all arguments.

    Its kernel objects keep the arguments that are the same in all calls: those that are arrays alone are set at each.
    """

    __slots__ = ("_built", "_idle", "_pick", "_pick_arrays", "_sizes")

    def __init__(self, built: programs.Built, groups: int, places: list[int], arrays: list[int]) -> None:
        self._built, self._sizes = built, built.sizes(groups)
        self._pick = _picked(places)
        self._pick_arrays = _picked(arrays)
        self._idle: deque[cl.Kernel] = deque()

    def enqueue(self, queue: cl.CommandQueue, table: list[Any], wait_for: list[cl.Event] | None) -> cl.Event:
        try:
            kernel = self._idle.pop()
            _set_some(kernel, self._pick_arrays(table))
        except IndexError:
            kernel = self._built.typed(self._pick(table))
        try:
            event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes, None, wait_for)
        except cl.Error as error:
            kernel, event = self._built.again(error, kernel, queue, self._sizes, self._pick(table), wait_for)
        self._idle.append(kernel)
        return event


def _picked(places: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return a function that picks from a table what stands at some places: in half of the time that a list of them takes."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda table: tuple([table[place] for place in places])  # of one place alone it would not be a tuple


def _set_one_by_one(kernel: cl.Kernel, arguments: tuple[Any, ...]) -> None:
    for place in range(0, len(arguments), 2):
        kernel.set_arg(arguments[place], arguments[place + 1])


# Sets arguments, each behind its number: PyOpenCL's own way, which takes a quarter of the time.
_set_some: Callable[[cl.Kernel, tuple[Any, ...]], None] = getattr(cl.Kernel, "_set_arg_multi", _set_one_by_one)


class _Fill:
    """A recorded fill: the first bytes of an array are set to a pattern."""

    __slots__ = ("_n_bytes", "_pattern", "_place")

    def __init__(self, place: int, pattern: np.ndarray[Any, Any], n_bytes: int) -> None:
        self._place, self._pattern, self._n_bytes = place, pattern, n_bytes

    def enqueue(self, queue: cl.CommandQueue, table: list[Any], wait_for: list[cl.Event] | None) -> cl.Event:
        return enqueue_fill(queue, table[self._place], self._pattern, self._n_bytes, wait_for)


class _Copy:
    """A recorded copy: some bytes of an array, from one byte on, to another from a byte on."""

    __slots__ = ("_begins", "_n_bytes", "_source", "_target")

    def __init__(self, target: int, source: int, n_bytes: int, begins: tuple[int, int]) -> None:
        self._target, self._source, self._n_bytes, self._begins = target, source, n_bytes, begins

    def enqueue(self, queue: cl.CommandQueue, table: list[Any], wait_for: list[cl.Event] | None) -> cl.Event:
        return enqueue_copy(queue, table[self._target], table[self._source], self._n_bytes, *self._begins, wait_for)


class _Scratch(_Operand):
    """A placeholder for scratch memory: its size, and the first and the last command that use it."""

    def __init__(self, place: int, dtype: np.dtype[Any], n: int) -> None:
        super().__init__(place, dtype)
        self.n_bytes = n * dtype.itemsize
        self.first = self.last = -1


class _Recorder(Chain):
    """A chain that records commands and enqueues none.

    Arguments are recorded as places in a table: operands come first, then scratch memory and constants in order of first use.
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
    def seen_as(self, array: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
        assert type(array) is _Operand  # scratch memory has to be followed
        return _Operand(array.place, dtype)

    @override
    def launch(self, built: programs.Built, groups: int, *arguments: Any) -> None:
        if groups > 0:
            self.kernels.append(built)
            places = [self._place(each) for each in arguments]
            arrays: list[int] = []
            for number, (place, each) in enumerate(zip(places, arguments, strict=True)):
                if isinstance(each, _Operand):
                    arrays += [self._place(number), place]
            self.commands.append(_Launch(built, groups, places, arrays))

    @override
    def fill(self, target: cl_array.Array, value: Any, n: int) -> None:
        if n > 0:
            item = np.array(value, target.dtype)
            self.commands.append(_Fill(self._place(target), item, n * item.itemsize))

    @override
    def copy(self, target: cl_array.Array, source: cl_array.Array, n: int, target_begin: int = 0, source_begin: int = 0) -> None:
        if n > 0:
            item = source.dtype.itemsize
            begins = target_begin * item, source_begin * item
            self.commands.append(_Copy(self._place(target), self._place(source), n * item, begins))

    def _place(self, argument: Any) -> int:
        """Return the place in the table of an argument of the next command."""
        if not isinstance(argument, _Operand):
            self.table.append(argument)
            return len(self.table) - 1
        if isinstance(argument, _Scratch):
            argument.last = len(self.commands)
            if argument.first < 0:
                argument.first = argument.last
        return argument.place


class Lowered:
    """The recorded commands of a kind of call; made by `lower`.

    Attributes
    ----------
    kernels : tuple of programs.Built
        The kernels that it launches.
    """

    def __init__(self, recorder: _Recorder) -> None:
        self.kernels = tuple(recorder.kernels)
        self._commands = tuple(recorder.commands)
        self._constants = tuple(recorder.table[len(recorder.operands) :])
        # Scratch arrays share a block of memory if the last use of one comes before the first use of the other.
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
        """Enqueue the recorded commands with these arrays."""
        programs.note_asked(self.kernels)
        table: list[Any] = [None if array is None else array.base_data for array in arrays]
        table += self._constants
        if not self._sizes:
            chain.repeat(self._commands, table)
            return
        with scratch(chain.queue, self._sizes) as blocks:
            for place, block in self._blocks:
                table[place] = blocks[block]
            chain.repeat(self._commands, table)

    def enqueue_at_rest(self, arena: Arena, queue: cl.CommandQueue, arrays: tuple[cl_array.Array, ...]) -> cl.Event:
        """Enqueue the recorded commands, one at least, on a queue with arrays of which nothing is to be waited for.

        ``arena`` is what `launch.at_rest` returned for those that are read. Returns the event of the last command.
        """
        programs.note_asked(self.kernels)
        table: list[Any] = [array.base_data for array in arrays]
        table += self._constants
        if self._sizes:
            try:
                blocks = [arena.allocate(queue, size) for size in self._sizes]
            except cl.Error:
                chain = Chain(queue, *arrays)  # which says what is missing
                self.enqueue(chain, arrays)
                return chain.events[-1]
            for place, block in self._blocks:
                table[place] = blocks[block]
        for command in self._commands:
            event = command.enqueue(queue, table, None)
        return event


def lower(chain: Chain, enqueue: Callable[..., None], dtypes: tuple[np.dtype[Any] | None, ...], *kind: Hashable) -> Lowered:
    """Return the commands of ``enqueue(chain, *arrays, *kind)`` for arrays of these dtypes; `run` says what it may do."""
    recorder = _Recorder(chain, dtypes)
    enqueue(recorder, *recorder.operands, *kind)
    return Lowered(recorder)


def run(chain: Chain, enqueue: Callable[..., None], arrays: tuple[cl_array.Array | None, ...], *kind: Hashable) -> None:
    """Enqueue the commands of ``enqueue(chain, *arrays, *kind)``, which is called once for each kind of call and recorded.

    Parameters
    ----------
    chain : Chain
    enqueue : callable
        A function that only enqueues. Its commands depend on nothing but the device, the dtypes of arrays, and ``kind``. It takes
        scratch memory, launches, copies and fills; it reads nothing from the device, and keeps nothing.
    arrays : tuple of pyopencl.array.Array
        Each begins its buffer. None for an array that this kind of call lacks.
    kind : hashable
        Numbers and other hashable values.
    """
    if isinstance(chain, _Recorder):
        enqueue(chain, *arrays, *kind)
        return
    dtypes = tuple([None if array is None else array.dtype for array in arrays])
    worked_out(chain, enqueue, dtypes, *kind).enqueue(chain, arrays)


def known(
    arena: Arena, enqueue: Callable[..., None], dtypes: tuple[np.dtype[Any] | None, ...], *kind: Hashable
) -> Lowered | None:
    """Return the commands of `run` for the queues of an arena, if a call of that kind was made before."""
    pool = arena.pool
    found: Lowered | None = programs.known(pool.context, pool.device, (enqueue, describe(pool.device), dtypes, kind))
    return found


def worked_out(chain: Chain, enqueue: Callable[..., None], dtypes: tuple[np.dtype[Any] | None, ...], *kind: Hashable) -> Lowered:
    """Return the commands of `run`, for calls that look them up by keys of their own."""
    return chain.worked_out((enqueue, chain.device, dtypes, kind), lambda: lower(chain, enqueue, dtypes, *kind))
