"""Built kernels: their kernel objects, the setting of arguments, and launches.

This is the only module that launches kernels.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from clsparse_py._memory.memory import submit
from clsparse_py._ground.records import dataclass

if TYPE_CHECKING:
    from clsparse_py._build.declaration import Parameters

__all__ = ["Built", "Launch", "Numbers", "Repeated", "enqueue_kernel"]


@dataclass(frozen=True)
class Built:
    """A built kernel: the program, and the record that the kernel was built from after any adaptation.

    Attributes
    ----------
    program : pyopencl.Program
    parameters : Parameters
        The record, which may have a smaller work-group or lane width than the requested one.
    preferred_multiple : int
        The multiple of work-items that the device prefers for this kernel.
    options : tuple of str
        Compiler options: those of the record, and one that avoids spills of registers.
    """

    program: cl.Program
    parameters: Parameters
    preferred_multiple: int
    options: tuple[str, ...] = ()
    _idle: deque[cl.Kernel] = field(default_factory=deque, init=False, repr=False, compare=False)
    # The count of all requests for kernels at the last request for this kernel.
    _used: list[int] = field(default_factory=lambda: [0], init=False, repr=False, compare=False)

    def sizes(self, groups: int) -> tuple[tuple[int], tuple[int]]:
        """Return the global and the local size, in work-items, of a launch of the kernel by ``groups`` work-groups."""
        group = self.parameters.work_group
        return (groups * group,), (group,)

    def enqueue(
        self,
        queue: cl.CommandQueue,
        sizes: tuple[tuple[int], tuple[int]],
        arguments: Sequence[Any],
        wait_for: list[cl.Event] | None = None,
    ) -> cl.Event:
        """Enqueue the kernel with all of its arguments, in order, and with the global and local sizes that `sizes` returned.

        Kernel objects are kept (quirk 16), and no two threads share a kernel object.
        """
        try:
            kernel = self._idle.pop()
            kernel.set_args(*arguments)
        except IndexError:
            kernel = self.make_kernel(arguments)
        try:
            event = enqueue_kernel(queue, kernel, sizes, wait_for)
        except cl.Error as error:
            kernel, event = self.again(error, kernel, queue, sizes, arguments, wait_for)
        self._idle.append(kernel)
        return event

    def again(
        self,
        error: cl.Error,
        kernel: cl.Kernel,
        queue: cl.CommandQueue,
        sizes: tuple[tuple[int], tuple[int]],
        arguments: Sequence[Any],
        wait_for: list[cl.Event] | None,
    ) -> tuple[cl.Kernel, cl.Event]:
        """Enqueue a kernel object again after an error, a new one if arguments were refused; return the kernel and the event."""
        if isinstance(error, cl.LogicError) and error.code == cl.status_code.INVALID_KERNEL_ARGS:
            # Quirk 18: an argument of the kernel object may have been shared virtual memory, and be no memory now.
            kernel = self.make_kernel(arguments)
        return kernel, submit(kernel, enqueue_kernel, queue, kernel, sizes, wait_for)

    def make_kernel(self, arguments: Sequence[Any]) -> cl.Kernel:
        """Return a new kernel object with all of its arguments set; arguments that are set later have to be of the same types."""
        kernel = cl.Kernel(self.program, self.parameters.name)
        # The types of arguments are set, as PyOpenCL would find them out by trial (quirk 36).
        kernel.set_arg_types([argument.dtype if isinstance(argument, np.generic) else None for argument in arguments])
        kernel.set_args(*arguments)
        return kernel

    def take(self, arguments: Sequence[Any]) -> cl.Kernel:
        """Return a kernel object, kept or new, with all of its arguments set; the caller alone uses it until `put_back`.

        A new kernel object costs the host some 0.25 ms. With an argument None the kernel object is new: quirk 18.
        """
        if any(argument is None for argument in arguments):
            return self.make_kernel(arguments)
        try:
            kernel = self._idle.pop()
            kernel.set_args(*arguments)
        except IndexError:
            kernel = self.make_kernel(arguments)
        return kernel

    def put_back(self, kernel: cl.Kernel) -> None:
        """Take back a kernel object that `take` returned, and keep it for the next call of `take` or `enqueue`."""
        self._idle.append(kernel)


#: Type of the numbers among the arguments of recorded launches: a tuple that is compared by identity.
Numbers = tuple[np.generic, ...]


class Launch:
    """A recorded launch: the kernel, its sizes, and the places of its arguments in a table of all arguments; see `recording`.

    Its kernel objects keep the arguments that are the same in all calls, and the numbers that were set last.

    Attributes
    ----------
    built : Built
    groups : int
        Number of work-groups.
    sizes : tuple
        The sizes of `Built.sizes`.
    pick : callable
        Returns the launch's arguments from the table.
    """

    __slots__ = ("_idle", "_pick_arrays", "_places", "built", "groups", "pick", "sizes")

    def __init__(self, built: Built, groups: int, places: list[int], arrays: list[int]) -> None:
        self.built, self.groups, self.sizes = built, groups, built.sizes(groups)
        self.pick = _make_picker(places)
        self._pick_arrays, self._places = _make_picker(arrays), places
        self._idle: deque[tuple[cl.Kernel, Numbers]] = deque()

    def enqueue(self, queue: cl.CommandQueue, table: list[Any], numbers: Numbers, wait_for: list[cl.Event] | None) -> cl.Event:
        """Enqueue the recorded launch with its arguments from a table of all arguments; the table keeps their memory alive."""
        try:
            kernel, former = self._idle.pop()
        except IndexError:
            kernel = self.built.make_kernel(self.pick(table))
        else:
            if former is numbers:
                _set_some(kernel, self._pick_arrays(table))
            else:
                kernel.set_args(*self.pick(table))
        global_size, local_size = self.sizes  # a call with a star takes 0.1 us more
        try:
            event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size, None, wait_for)
        except cl.Error as error:
            kernel, event = self.built.again(error, kernel, queue, self.sizes, self.pick(table), wait_for)
        # After an error in enqueueing it a kernel object is not kept for later calls, as it may have any arguments.
        self._idle.append((kernel, numbers))
        return event

    def argument_of(self, place: int) -> int | None:
        """Return the number, among the kernel's arguments, of the one at ``place`` of the table; None if none or several."""
        return self._places.index(place) if self._places.count(place) == 1 else None

    def take(self, table: list[Any]) -> cl.Kernel:
        """Return a kernel object on which the launch's arguments are set; the caller alone uses the object until `put_back`."""
        try:
            kernel, _ = self._idle.pop()
        except IndexError:
            return self.built.make_kernel(self.pick(table))
        kernel.set_args(*self.pick(table))
        return kernel

    def put_back(self, kernels: Iterable[cl.Kernel], numbers: Numbers) -> None:
        """Keep kernel objects for later calls of the launch; the numbers among their arguments are ``numbers``."""
        self._idle.extend((kernel, numbers) for kernel in kernels)


class Repeated:
    """A recorded launch with kernel objects of its own, on which all arguments but one are set once.

    Parameters
    ----------
    launch : Launch
    place : int
        Place in the table of the argument that every call sets.
    argument : int
        Number of that argument among the kernel's.
    numbers, constants : tuple
        The part of the table behind the arrays.
    """

    __slots__ = ("_argument", "_constants", "_kernels", "_launch", "_numbers", "_place", "_sizes")

    def __init__(self, launch: Launch, place: int, argument: int, numbers: Numbers, constants: tuple[Any, ...]) -> None:
        self._launch, self._place, self._argument = launch, place, argument
        self._numbers, self._constants, self._sizes = numbers, constants, launch.sizes
        # `_kernels` holds the kernel objects of the launch that no thread uses at the moment.
        self._kernels: deque[cl.Kernel] = deque()

    def enqueue(self, queue: cl.CommandQueue, arrays: tuple[Any, ...]) -> cl.Event:
        """Enqueue the recorded launch with the one array that may differ; all other arguments stay those of the first call."""
        try:
            kernel = self._kernels.pop()
            kernel.set_arg(self._argument, arrays[self._place])
        except IndexError:
            kernel = self._launch.take([*arrays, *self._numbers, *self._constants])
        global_size, local_size = self._sizes
        try:
            event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
        except cl.Error as error:
            arguments = self._launch.pick([*arrays, *self._numbers, *self._constants])
            kernel, event = self._launch.built.again(error, kernel, queue, self._sizes, arguments, None)
        self._kernels.append(kernel)
        return event

    def __del__(self) -> None:
        self._launch.put_back(self._kernels, self._numbers)


def _make_picker(places: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return a function that picks a launch's arguments from the table of arguments, twice as fast as a list comprehension."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda table: tuple([table[place] for place in places])  # `itemgetter` of one place returns no tuple


def _set_one_by_one(kernel: cl.Kernel, arguments: tuple[Any, ...]) -> None:
    """Set some arguments of a kernel object, given as number, argument, number, argument and so on."""
    for place in range(0, len(arguments), 2):
        kernel.set_arg(arguments[place], arguments[place + 1])


#: Sets some arguments of a kernel object: PyOpenCL's own function, four times as fast as `_set_one_by_one`, or else the latter.
_set_some: Callable[[cl.Kernel, tuple[Any, ...]], None] = getattr(cl.Kernel, "_set_arg_multi", _set_one_by_one)


def enqueue_kernel(
    queue: cl.CommandQueue, kernel: cl.Kernel, sizes: tuple[tuple[int], tuple[int]], wait_for: list[cl.Event] | None = None
) -> cl.Event:
    """Enqueue a kernel object, whose arguments are set, with the sizes of `Built.sizes`.

    From the setting of arguments until this function returns no other thread may use the kernel object, and the caller keeps the
    memory of the arguments: a kernel object keeps none.
    """
    event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, sizes[0], sizes[1], None, wait_for)
    return event
