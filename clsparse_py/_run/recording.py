"""Recordings: the commands of a kind of call (kernels, arguments, sizes, scratch memory), worked out once and then replayed.

Choosing records, looking up kernels and counting work-groups takes the host longer than launching. The outcome depends only on
the kind of call: the device, the dtypes, and numbers such as the shape. So a function that enqueues commands runs once for each
kind, on a chain that records the commands; every call of that kind then replays them with its own arrays.

A recording remembers no call: at each replay all its slots are set anew, on kernel objects that no other thread has meanwhile.
The arguments are kept until the last command is enqueued. Finding out which slots are set already would take as long as setting
them; a caller that knows it and keeps the arguments' memory sets a single slot anew (`Recording.repeated`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build import programs
from clsparse_py._build.built import Built, Launch, Numbers, Repeated, enqueue_kernel
from clsparse_py._device.device import describe
from clsparse_py._memory.memory import allocate, new_array, scratch, submit
from clsparse_py._memory.pool import Arena, Lent
from clsparse_py._run.launch import Chain, enqueue_copy, enqueue_fill, needs_no_events

__all__ = ["Bound", "Number", "Recorder", "Recording", "Tape", "find_recording", "get_recording", "record", "run"]


#: A recorded command other than a launch: it is called with a queue, the table of arguments, numbers, and events to wait for.
_Command = Callable[[cl.CommandQueue, list[Any], Numbers, list[cl.Event] | None], cl.Event]


class _Operand(cl_array.Array):
    """A placeholder for an array of which only the dtype is known: any other attribute raises an AttributeError."""

    def __init__(self, place: int, dtype: np.dtype[Any]) -> None:
        self.place = place
        self.dtype = dtype


class _Scratch(_Operand):
    """A placeholder for scratch memory: its size, and the first and the last command that use it."""

    def __init__(self, place: int, dtype: np.dtype[Any], n: int) -> None:
        super().__init__(place, dtype)
        self.n_bytes = n * dtype.itemsize
        self.first = self.last = -1


class Number:
    """A placeholder for a number that a call brings."""

    def __init__(self, place: int) -> None:
        self.place = place


class Recorder(Chain):
    """A chain that records commands and enqueues none.

    Arguments are recorded as places in a table: slots of arrays and of numbers come first, then scratch memory and constants in
    order of first use. Arrays that are no slots are constants, which the recording keeps.

    Parameters
    ----------
    chain : Chain
        A chain on the device.
    dtypes : tuple of dtype or None
        Dtypes of the arrays that a call brings, None for an array that this kind of call lacks.
    n_numbers : int
        Count of the numbers that a call brings.

    Attributes
    ----------
    operands : tuple
        Placeholders of the arrays.
    numbers : tuple of Number
        Placeholders of the numbers.
    """

    def __init__(self, chain: Chain, dtypes: Sequence[np.dtype[Any] | None], n_numbers: int = 0) -> None:
        self.queue, self.device = chain.queue, chain.device
        self._context, self._cl_device = chain._context, chain._cl_device
        self.operands = tuple(None if dtype is None else _Operand(place, dtype) for place, dtype in enumerate(dtypes))
        self.numbers = tuple(Number(len(dtypes) + place) for place in range(n_numbers))
        self.n_slots = len(dtypes) + n_numbers
        self.table: list[Any] = [None] * self.n_slots
        self.commands: list[Launch | _Command] = []
        self.scratches: list[_Scratch] = []
        self.kept: list[cl_array.Array] = []

    @override
    def scratch(self, n: int, dtype: Any) -> cl_array.Array:
        """Return a placeholder for ``n`` entries of scratch memory in recorded commands."""
        scratch = _Scratch(len(self.table), np.dtype(dtype), max(n, 1))
        self.table.append(None)
        self.scratches.append(scratch)
        return scratch

    @override
    def view_as(self, array: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
        """Return a placeholder for the memory of another placeholder, with entries of another type."""
        assert type(array) is _Operand  # scratch memory has to be followed
        return _Operand(array.place, dtype)

    @override
    def launch(self, built: Built, groups: int, *arguments: Any) -> None:
        """Record the launch of a kernel with ``groups`` work-groups."""
        if groups > 0:
            places = [self._place(argument) for argument in arguments]
            arrays: list[int] = []
            for number, (place, argument) in enumerate(zip(places, arguments, strict=True)):
                if isinstance(argument, _Operand):
                    arrays += [self._place(number), place]
            self.commands.append(Launch(built, groups, places, arrays))

    @override
    def fill(self, target: cl_array.Array, value: Any, n: int) -> None:
        """Record a command that sets the first ``n`` entries of an array's buffer to a value."""
        if n > 0:
            place, pattern = self._place(target), np.array(value, target.dtype)

            def refill(queue: cl.CommandQueue, table: list[Any], _: Numbers, wait_for: list[cl.Event] | None) -> cl.Event:
                """Enqueue the recorded fill of the first ``n`` entries of an array."""
                return enqueue_fill(queue, table[place], pattern, n * pattern.itemsize, wait_for)

            self.commands.append(refill)

    @override
    def copy(self, target: cl_array.Array, source: cl_array.Array, n: int, target_begin: int = 0, source_begin: int = 0) -> None:
        """Record the copy of ``n`` entries between two arrays' buffers."""
        if n > 0:
            to, origin, item = self._place(target), self._place(source), source.dtype.itemsize
            sizes = n * item, target_begin * item, source_begin * item

            def copy_again(queue: cl.CommandQueue, table: list[Any], _: Numbers, wait_for: list[cl.Event] | None) -> cl.Event:
                """Enqueue the recorded copy between two arrays."""
                return enqueue_copy(queue, table[to], table[origin], *sizes, wait_for)

            self.commands.append(copy_again)

    def _place(self, argument: Any) -> int:
        """Return the index, in the table of arguments, of an argument of the next recorded command; constants are added."""
        if isinstance(argument, (_Operand, Number)):
            if isinstance(argument, _Scratch):
                argument.last = len(self.commands)
                if argument.first < 0:
                    argument.first = argument.last
            return argument.place
        if isinstance(argument, cl_array.Array):
            self.kept.append(argument)
            argument = argument.base_data
        self.table.append(argument)
        return len(self.table) - 1

    def recording(self) -> Recording:
        """Return a recording, which can be replayed with other arrays, of the commands that were recorded so far."""
        return Recording(self)


class _SharedLaunch(Launch):
    """A recorded launch with the kernel objects that all callers of its kernel share."""

    __slots__ = ()

    @override
    def enqueue(self, queue: cl.CommandQueue, table: list[Any], numbers: Numbers, wait_for: list[cl.Event] | None) -> cl.Event:
        """Enqueue the recorded launch with arguments of a table, on kernel objects that all callers of its kernel share."""
        return self.built.enqueue(queue, self.sizes, self.pick(table), wait_for)


class Tape(Recorder):
    """A chain that enqueues its commands and records them too, for an operation that reads results to know its next commands.

    Reads are not recorded: the values that were read have to be the same at each replay.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    operands : pyopencl.array.Array
        Arrays of the first slots, in distinct memory that the commands do not write to.
    results : tuple of str
        Names of the arrays that the operation makes, which have the other slots, see `take`.
    """

    def __init__(self, queue: cl.CommandQueue, *operands: cl_array.Array, results: tuple[str, ...]) -> None:
        Chain.__init__(self, queue, *operands)
        super().__init__(self, (None,) * (len(operands) + len(results)))
        self._slots = {id(operand.base_data): place for place, operand in enumerate(operands)}
        self._places = {name: len(operands) + number for number, name in enumerate(results)}
        self._taken: list[Any] = []
        self._is_whole, self._n_reads = True, 0

    def take(self, name: str, array: cl_array.Array) -> None:
        """Let the slot of the result ``name`` stand for an array's memory; a replay puts the memory of a new array there."""
        if array.base_data is not None:
            self._slots[id(array.base_data)] = self._places[name]
            self._taken.append(array.base_data)  # kept, so that no other object has the same `id`

    @override
    def scratch(self, n: int, dtype: Any) -> cl_array.Array:
        """Return an array of ``n`` entries of scratch memory, which the recorded commands know by a placeholder."""
        array = Chain.scratch(self, n, dtype)
        memory: Any = array.base_data
        # Scratch memory is known by an attribute, not by its `id`: another object may have that `id` after the memory is freed.
        memory.taped = self, super().scratch(n, dtype)
        return array

    @override
    def view_as(self, array: cl_array.Array, dtype: np.dtype[Any]) -> cl_array.Array:
        """Return an array on the memory of another array, whose entries have another type of the same size."""
        return Chain.view_as(self, array, dtype)

    @override
    def counters(self, n: int) -> cl_array.Array:
        """Return ``n`` counters, uint32, that a recorded command sets to zero."""
        counters = self.scratch(n, np.uint32)
        self.fill(counters, 0, n)
        return counters

    @override
    def launch(self, built: Built, groups: int, *arguments: Any) -> None:
        """Enqueue and record the launch of a kernel with ``groups`` work-groups."""
        Chain.launch(self, built, groups, *arguments)
        if groups > 0:
            self.commands.append(_SharedLaunch(built, groups, [self._place(argument) for argument in arguments], []))

    @override
    def fill(self, target: cl_array.Array, value: Any, n: int) -> None:
        """Enqueue and record a command that sets the first ``n`` entries of an array's buffer to a value."""
        Chain.fill(self, target, value, n)
        super().fill(target, value, n)

    @override
    def copy(self, target: cl_array.Array, source: cl_array.Array, n: int, target_begin: int = 0, source_begin: int = 0) -> None:
        """Enqueue and record the copy of ``n`` entries between two arrays' buffers."""
        Chain.copy(self, target, source, n, target_begin, source_begin)
        super().copy(target, source, n, target_begin, source_begin)

    @override
    def read_later(self, source: cl_array.Array, n: int, begin: int = 0) -> Callable[[], np.ndarray[Any, Any]]:
        """Enqueue the read of ``n`` entries of an array, unrecorded; return a function that waits and returns these entries."""
        self._n_reads += 1
        return Chain.read_later(self, source, n, begin)

    @override
    def _place(self, argument: Any) -> int:
        """Return the index, in the table of arguments, of an argument of the next recorded command, found by its memory."""
        is_array = isinstance(argument, cl_array.Array)
        memory = argument.base_data if is_array else argument
        slot = self._slots.get(id(memory))
        if slot is not None:
            return slot
        tape, scratch = getattr(memory, "taped", (None, None))
        if tape is self:
            return super()._place(scratch)
        self._is_whole &= memory is None or not (is_array or memory.__class__ is Lent)
        return super()._place(memory)

    def to_recording(self) -> Recording | None:
        """Return a recording of the commands so far; None if a command was not recorded, or uses an array that has no slot."""
        is_whole = self._is_whole and len(self.events) == len(self.commands) + self._n_reads
        return self.recording() if is_whole else None


class Recording:
    """The commands of a kind of call; made by a `Recorder`.

    Attributes
    ----------
    kernels : tuple of Built
        The kernels that the recording launches.
    kept : tuple of pyopencl.array.Array
        Constants: arrays that are the same in all calls.
    n_commands : int
    """

    def __init__(self, recorder: Recorder) -> None:
        self.n_commands = len(recorder.commands)
        self._launches = tuple(command for command in recorder.commands if isinstance(command, Launch))
        self._enqueues = tuple(command.enqueue if isinstance(command, Launch) else command for command in recorder.commands)
        self.kernels = tuple(launch.built for launch in self._launches)
        self.kept = tuple({id(array): array for array in recorder.kept}.values())
        self._constants = tuple(recorder.table[recorder.n_slots :])
        # Scratch arrays share a block of memory if the last use of one comes before the first use of the other.
        self._sizes: list[int] = []
        self._blocks: list[tuple[int, int]] = []
        until: list[int] = []
        for array in sorted((array for array in recorder.scratches if array.last >= 0), key=lambda array: array.first):
            free = [block for block, last in enumerate(until) if last < array.first]
            if not free:
                block = len(until)
                self._sizes.append(0)
                until.append(0)
            else:
                # The scratch array takes the smallest free block that suffices, or else the largest block.
                block = min(
                    free,
                    key=lambda candidate: (
                        self._sizes[candidate] < array.n_bytes,
                        abs(self._sizes[candidate] - array.n_bytes),
                    ),
                )
            self._sizes[block] = max(self._sizes[block], array.n_bytes)
            until[block] = array.last
            self._blocks.append((array.place, block))

    def enqueue(self, chain: Chain, arrays: Sequence[cl_array.Array | None], numbers: Numbers = ()) -> None:
        """Enqueue the recorded commands on a chain, with these arrays and numbers as arguments in the slots."""
        table = [*_list_memory(arrays), *numbers, *self._constants]
        if not self._sizes:
            chain.repeat(self._enqueues, table, numbers)
            return
        with scratch(chain.queue, self._sizes) as blocks:
            for place, block in self._blocks:
                table[place] = blocks[block]
            chain.repeat(self._enqueues, table, numbers)

    def replay(self, queue: cl.CommandQueue, memory: Iterable[Any], numbers: Numbers = ()) -> cl.Event:
        """Enqueue the recorded commands (at least one) without events to wait for, and return the event of the last command.

        ``memory`` is the memory of the arrays, for which `launch.needs_no_events` has to hold.
        """
        table = [*memory, *numbers, *self._constants]
        if self._sizes:
            with scratch(queue, self._sizes) as blocks:
                for place, block in self._blocks:
                    table[place] = blocks[block]
                for enqueue in self._enqueues:
                    event = enqueue(queue, table, numbers, None)
            return event
        for enqueue in self._enqueues:
            event = enqueue(queue, table, numbers, None)
        return event

    def make(
        self,
        queue: cl.CommandQueue,
        purpose: str,
        inputs: Sequence[cl_array.Array],
        forms: Sequence[tuple[Any, ...]],
        allocator: Any,
    ) -> list[cl_array.Array]:
        """Enqueue the recorded commands with input arrays in the first slots and new arrays in the others; return the new arrays.

        There is one command at least.

        Parameters
        ----------
        queue : pyopencl.CommandQueue
        purpose : str
            The name of the new arrays, for errors.
        inputs : sequence of pyopencl.array.Array
            Arrays that the commands read.
        forms : sequence of tuple
            Forms of the new arrays, of one entry at least, see `memory.make_form`.
        allocator : callable or None
        """
        arena = needs_no_events(queue, *inputs) if allocator is None else None
        if arena is not None:
            try:
                memory = [arena.allocate(queue, size * dtype.itemsize) for _, dtype, _, _, size in forms]
            except cl.Error:
                pass  # `allocate` raises the error
            else:
                event = self.replay(queue, [*[array.base_data for array in inputs], *memory])
                return [new_array(form, queue, data, [event]) for form, data in zip(forms, memory, strict=True)]
        results = [allocate(queue, purpose, shape, dtype, allocator) for _, dtype, shape, _, _ in forms]
        chain = Chain(queue, *inputs)
        self.enqueue(chain, (*inputs, *results))
        chain.finish(*results)
        return results

    def repeated(self, slot: int, numbers: Numbers) -> Callable[[cl.CommandQueue, tuple[Any, ...]], cl.Event]:
        """Return a function that replays the recorded commands for calls with the first call's memory in all slots but one."""
        if self.n_commands == len(self._launches) == 1 and not self._sizes:
            (launch,) = self._launches
            if (argument := launch.argument_of(slot)) is not None:
                return Repeated(launch, slot, argument, numbers, self._constants).enqueue
        return functools.partial(self.replay, numbers=numbers)

    def bound(self, queue: cl.CommandQueue, arrays: Sequence[cl_array.Array], numbers: Numbers = ()) -> Bound:
        """Return the recorded launches with these arrays and numbers as set arguments, and with scratch memory of their own.

        All recorded commands have to be launches.
        """
        table = [*_list_memory(arrays), *numbers, *self._constants]
        blocks = [allocate(queue, "workspace", size, np.uint8).base_data for size in self._sizes]
        for place, block in self._blocks:
            table[place] = blocks[block]
        assert len(self._launches) == self.n_commands
        return Bound(queue, *((launch.built, launch.groups, launch.pick(table)) for launch in self._launches))


def _list_memory(arrays: Iterable[cl_array.Array | None]) -> list[Any]:
    """Return the memory of arrays; None for an array that is None."""
    return [None if array is None else array.base_data for array in arrays]


class Bound:
    """Launches whose arguments are all set, on kernel objects of their own: a launch takes the host a microsecond or two.

    For one thread at a time. The launches wait for nothing but earlier commands on the queue.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    launches : tuple
        The kernel, the work-groups and the arguments of a launch; memory stands for arrays.
    """

    # The tuple of bound launches is empty until their kernel objects are made.
    _launches: tuple[tuple[Built, int, Sequence[Any]], ...] = ()

    def __init__(self, queue: cl.CommandQueue, *launches: tuple[Built, int, Sequence[Any]]) -> None:
        self._queue = queue
        self._kernels = [(built.take(arguments), built.sizes(groups)) for built, groups, arguments in launches]
        # A kernel object does not keep the memory of its arguments alive.
        self._launches = launches

    def __del__(self) -> None:
        for (built, _, _), (kernel, _) in zip(self._launches, self._kernels, strict=True):
            built.put_back(kernel)

    def __call__(self) -> cl.Event:
        """Enqueue the bound launches, one at least, and return the event of the last launch."""
        for kernel, sizes in self._kernels:
            event = submit(kernel, enqueue_kernel, self._queue, kernel, sizes)
        return event

    def set(self, place: int, value: np.generic) -> None:
        """Set the kernel argument of index ``place``, in all bound launches, to another number from now on.

        Making other kernel objects would take a hundred times as long.
        """
        for kernel, _ in self._kernels:
            kernel.set_arg(place, value)


def record(chain: Chain, enqueue: Callable[..., None], dtypes: tuple[np.dtype[Any] | None, ...], *kind: Hashable) -> Recording:
    """Return the recorded commands of ``enqueue(chain, *arrays, *kind)``, a function for `run`, for arrays of these dtypes."""
    recorder = Recorder(chain, dtypes)
    enqueue(recorder, *recorder.operands, *kind)
    return recorder.recording()


def run(chain: Chain, enqueue: Callable[..., None], arrays: tuple[cl_array.Array | None, ...], *kind: Hashable) -> None:
    """Enqueue the commands of ``enqueue(chain, *arrays, *kind)``, which is called once for each kind of call and recorded.

    Parameters
    ----------
    chain : Chain
    enqueue : callable
        A function that only enqueues. Its commands depend on nothing but the device, the dtypes of arrays, and ``kind``. It takes
        scratch memory, launches, copies and fills; it reads nothing from the device, and keeps nothing.
    arrays : tuple of pyopencl.array.Array
        Arrays that begin their buffers; None for an array that this kind of call lacks.
    kind : hashable
        Numbers and other hashable values.
    """
    if isinstance(chain, Recorder):
        enqueue(chain, *arrays, *kind)
        return
    dtypes = tuple([None if array is None else array.dtype for array in arrays])
    get_recording(chain, enqueue, dtypes, *kind).enqueue(chain, arrays)


def find_recording(
    arena: Arena, enqueue: Callable[..., None], dtypes: tuple[np.dtype[Any] | None, ...], *kind: Hashable
) -> Recording | None:
    """Return the recorded commands that `run` keeps for a kind of call on the device of an arena; None if there are none."""
    pool = arena.pool
    recording: Recording | None = programs.find_known(pool.context, pool.device, (enqueue, describe(pool.device), dtypes, kind))
    if recording is not None:
        programs.note_asked(recording.kernels)
    return recording


def get_recording(
    chain: Chain, enqueue: Callable[..., None], dtypes: tuple[np.dtype[Any] | None, ...], *kind: Hashable
) -> Recording:
    """Return the recorded commands that `run` replays for a kind of call; the first call of that kind records the commands."""
    key = enqueue, chain.device, dtypes, kind
    recording = chain.worked_out(key, lambda: record(chain, enqueue, dtypes, *kind))
    programs.note_asked(recording.kernels)
    return recording
