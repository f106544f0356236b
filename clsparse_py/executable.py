"""Execute: the launches of a product, ready to be enqueued any number of times."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py.forked import is_forked, use_device
from clsparse_py.memory import Pool, arena_of, note_use, submit, unordered
from clsparse_py.transfer import Waits

__all__ = ["Executable", "Launch"]

#: The place of y's memory among a kernel's arguments; see `Executable._set`.
_Y = 3


@dataclass
class Launch:
    """A kernel, the arguments that follow the operands, and its index space."""

    kernel: cl.Kernel
    own: tuple[Any, ...]
    work_items: int
    work_group: int
    name: str
    typed: bool = False

    def __post_init__(self) -> None:
        self.global_size = (-(-self.work_items // self.work_group) * self.work_group,)
        self.local_size = (self.work_group,)

    def set(self, operands: tuple[Any, ...]) -> None:
        """Set all arguments."""
        arguments = (*operands, *self.own)
        if not self.typed:
            # Without types PyOpenCL tries each argument's (quirk 36).
            self.kernel.set_arg_types([each.dtype if isinstance(each, np.generic) else None for each in arguments])
            self.typed = True
        self.kernel.set_args(*arguments)


def _arguments(operands: tuple[Any, ...], scale: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments that all launches of a product have in common."""
    data, x, y = operands
    x_begin, y_begin = (np.uint64(each.offset // each.dtype.itemsize) for each in (x, y))
    return (data.base_data, x.base_data, x_begin, y.base_data, y_begin, *scale)


@dataclass
class Executable:
    """The launches of one product for one arithmetic, and the arrays of the plan that their arguments point to.

    The operands are the caller's to keep: an enqueued command keeps the memory that it uses, and no argument that points to
    memory which is gone is used again. Arguments belong to one execution at a time: `lock` is held from setting them to the last
    enqueue. So does what launches hand to each other in `keep`: where no queue's order sees to it, an execution waits for `last`,
    the one before it.
    """

    launches: list[Launch] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    operands: tuple[Callable[[], Any], ...] = (lambda: None,) * 3
    scale: tuple[Any, ...] = ()
    y_offset: int = 0
    waits: Waits = field(default_factory=Waits)
    queue: cl.CommandQueue | None = None
    noted: tuple[int, ...] = ()
    last: tuple[cl.CommandQueue, cl.Event] | None = None
    # What `_again` needs; set by `run` if this product may be repeated without asking for what its arrays wait for.
    alone: tuple[Launch, Pool] | None = None

    def run(self, queue: cl.CommandQueue, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> list[cl.Event]:
        """Enqueue a product and return an event for each command."""
        with self.lock:
            repeated = self._again(queue, operands, scale)
            if repeated is not None:
                return [repeated]
            wait_for = self.waits.before(queue, *operands, writes=operands[2:])
            ordered = self.waits.ordered
            if not self.launches:
                return [cl.enqueue_marker(queue, wait_for=wait_for)]
            of_data, of_x, of_y = self.operands
            of_others = scale is self.scale and of_data() is operands[0] and of_x() is operands[1]
            same = of_others and of_y() is operands[2]
            if not same:
                if of_others and operands[2].offset == self.y_offset:
                    self._set_y(operands)
                else:
                    self._set(operands, scale)
            if not same or queue is not self.queue:
                self.queue, self.noted = queue, unordered(queue, *operands, *self.keep[:2])
            if len(self.launches) > 1 and self.last is not None and not (ordered and self.last[0] is queue):
                self.last[0].flush()  # OpenCL asks for it where one queue waits for another
                wait_for = [*(wait_for or ()), self.last[1]]
            events: list[cl.Event] = []
            for launch in self.launches:
                event = submit(
                    launch.kernel, cl.enqueue_nd_range_kernel, queue, launch.kernel, launch.global_size, launch.local_size, None,
                    wait_for,
                )  # fmt: skip
                events.append(event)
                self.last = queue, event
                if self.noted:
                    note_use(queue, self.noted, event)
                wait_for = None if ordered else [event]
            self.waits.made(event)
            self.alone = (self.launches[0], arena_of(queue).pool) if ordered and not self.noted and len(events) == 1 else None
            return events

    def _again(self, queue: cl.CommandQueue, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> cl.Event | None:
        """Enqueue the product that the arguments are set for, if nothing but the queue's order has to be kept; else None.

        It is a single launch on the queue of before, whose order covers all its arrays, and no event is noted for them but this
        queue's own, for y that of the product before.
        """
        if self.alone is None or self.last is None or queue is not self.queue or scale is not self.scale:
            return None
        data, x, y = operands
        of_data, of_x, of_y = self.operands
        if of_data() is not data or of_x() is not x or of_y() is not y:
            return None
        launch, pool = self.alone
        if pool.uses or y.events != [self.last[1]] or not self.waits.knows(data.events) or not self.waits.knows(x.events):
            return None
        use_device()
        event = submit(launch.kernel, cl.enqueue_nd_range_kernel, queue, launch.kernel, launch.global_size, launch.local_size)
        self.last = queue, event
        return event

    def _set(self, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> None:
        """Set the arguments that all launches have in common."""
        arguments = _arguments(operands, scale)
        for launch in self.launches:
            launch.set(arguments)
        self.operands, self.scale, self.y_offset = tuple(map(weakref.ref, operands)), scale, operands[2].offset

    def copies(self, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> list[tuple[cl.Kernel, tuple[tuple[int], tuple[int]]]]:
        """Return kernels of their own with all arguments set, and their index spaces."""
        arguments, found = _arguments(operands, scale), []
        for launch in self.launches:
            kernel = cl.Kernel(launch.kernel.program, launch.kernel.function_name)
            own = replace(launch, kernel=kernel, typed=False)
            own.set(arguments)
            found.append((own.kernel, (own.global_size, own.local_size)))
        return found

    def _set_y(self, operands: tuple[Any, ...]) -> None:
        """Set the memory of y alone, which begins as far into it as that of before: all products of `A @ x` with one x."""
        memory = operands[2].base_data
        for launch in self.launches:
            launch.kernel.set_arg(_Y, memory)
        self.operands = (*self.operands[:2], weakref.ref(operands[2]))

    def __del__(self) -> None:
        # Buffers that are kept here go with the executable, and one on host memory goes at once: not while a kernel uses it.
        if self.last is not None and not is_forked():
            self.last[1].wait()
