"""Execute: the launches of a product, ready to be enqueued any number of times."""

from __future__ import annotations

import functools
import math
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py.forked import is_forked, use_device
from clsparse_py.memory import array_of, submit
from clsparse_py.order import forget_ended, note_use, note_written, unordered
from clsparse_py.pool import Arena, Pool, arena_of
from clsparse_py.programs import Built
from clsparse_py.transfer import Waits
from clsparse_py.workspace import current

__all__ = ["Checked", "Executable", "Launch", "Ready"]

#: The place of y's memory among a kernel's arguments; see `_arguments`.
_Y = 3


class _Operand(weakref.ref[Any]):
    """An array that arguments are set for, and its memory: kept as long as the array is, so that no other is taken for it."""

    __slots__ = ("memory",)

    memory: Any

    def __new__(cls, array: cl_array.Array) -> Self:
        """Return a reference that lets go of the memory when the array goes."""
        made = super().__new__(cls, array, _let_go)
        made.memory = array.base_data
        return made


def _let_go(operand: Any) -> None:
    operand.memory = None


class _Gone:
    """Stands for an operand that is gone."""

    memory: Any = None

    def __call__(self) -> None:
        return None


_GONE = _Gone()


class Ready(NamedTuple):
    """What a product needs that only has the order of a queue to keep: the queue, its memory, and the launches."""

    queue: cl.CommandQueue
    arena: Arena
    pool: Pool
    commands: tuple[tuple[cl.Kernel, tuple[int], tuple[int]], ...]


@dataclass
class Launch:
    """A built kernel, the arguments that follow the operands, and its index space."""

    built: Built
    own: tuple[Any, ...]
    work_items: int
    work_group: int
    name: str
    typed: bool = False

    def __post_init__(self) -> None:
        self.global_size = (-(-self.work_items // self.work_group) * self.work_group,)
        self.local_size = (self.work_group,)

    @functools.cached_property
    def kernel(self) -> cl.Kernel:
        """The kernel object, which is made once it is needed."""
        return self.built.kernel()

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
    operands: tuple[_Operand | _Gone, ...] = (_GONE,) * 3
    scale: tuple[Any, ...] = ()
    y_offset: int = 0
    waits: Waits = field(default_factory=Waits)
    queue: cl.CommandQueue | None = None
    noted: tuple[int, ...] = ()
    last: tuple[cl.CommandQueue, cl.Event] | None = None
    # What `repeat` and `renew` need; set by `run` if nothing but the queue's order has to be kept for this product.
    ready: Ready | None = None
    # Whether values and x, and y, as the arguments are set, were checked by who had the product run.
    checked: tuple[bool, bool] = (False, False)

    def run(self, queue: cl.CommandQueue, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> list[cl.Event]:
        """Enqueue a product and return an event for each command."""
        with self.lock:
            data, x, y = operands
            repeated = self._again(queue, data, x, y, scale) if len(self.launches) == 1 else None
            if repeated is not None:
                return [repeated]
            for each in operands[:2]:
                if each.events:  # to ask once whether they have ended spares looking at them in each product
                    forget_ended(each)
            wait_for = self.waits.before(queue, *operands, writes=operands[2:])
            ordered = self.waits.ordered
            if not self.launches:
                return [cl.enqueue_marker(queue, wait_for=wait_for)]
            # What is known is of the arguments that are set: nothing, if an exception leaves some of them set.
            former, self.queue, self.ready = self.queue, None, None
            same_y = self._set(operands, scale)
            if not same_y or queue is not former:
                self.noted = unordered(queue, *operands, *self.keep[:2])
            self.queue = queue
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
            if ordered and not self.noted:
                commands = tuple((each.kernel, each.global_size, each.local_size) for each in self.launches)
                self.ready = Ready(queue, arena_of(queue), arena_of(queue).pool, commands)
            return events

    def repeat(
        self, queue: cl.CommandQueue, data: cl_array.Array, x: cl_array.Array, y: cl_array.Array, scale: tuple[Any, ...]
    ) -> cl.Event | None:
        """Enqueue the product that the arguments are set for, if it has these operands, and they were checked; else None."""
        operands = data, x, y
        with self.lock:
            if not self.checked[1]:
                return None
            event = self._again(queue, data, x, y, scale)
            if event is not None:
                return event
            if scale is not self.scale or any(
                of() is not each or of.memory is not each.base_data for of, each in zip(self.operands, operands, strict=True)
            ):
                return None
        return self.run(queue, operands, scale)[-1]

    def renew(
        self, queue: cl.CommandQueue, data: cl_array.Array, x: cl_array.Array, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> cl_array.Array | None:
        """Enqueue the product with a new y, which is returned, if x was checked; None as for `repeat`, or if memory is short."""
        with self.lock:
            ready = self._ready_for(queue, data, x, ()) if self.checked[0] and not self.y_offset else None
            if ready is None:
                return None
            try:
                memory = ready.arena.allocate(queue, math.prod(shape) * dtype.itemsize)
            except cl.Error:
                return None
            if self.operands[2] is not _GONE:
                self.operands = (*self.operands[:2], _GONE)
            for kernel, _, _ in ready.commands:
                kernel.set_arg(_Y, memory)
            event = self.enqueue(ready)
        y = array_of(queue, shape, dtype, memory, None, ready.pool.context)
        y.events = [event]
        return y

    def note_checked(self, operands: tuple[Any, ...], scale: tuple[Any, ...], *, is_new: bool) -> tuple[Any, ...] | None:
        """Take note that operands were checked, if the arguments are set for them, and return the scale, as `repeat` knows it.

        ``is_new`` says that y was made for the product. None if the arguments are set for others by now.
        """
        with self.lock:
            of_data, of_x, of_y = self.operands
            if of_data() is not operands[0] or of_x() is not operands[1] or self.scale != scale:
                return None
            self.checked = True, not is_new and of_y() is operands[2]
            return self.scale

    def _again(
        self, queue: cl.CommandQueue, data: cl_array.Array, x: cl_array.Array, y: cl_array.Array, scale: tuple[Any, ...]
    ) -> cl.Event | None:
        """Enqueue the product that the arguments are set for, if nothing but the queue's order has to be kept; else None.

        It is on the queue of before, whose order covers all its arrays, and no event is noted for them but this queue's own, for
        y that of the product before.
        """
        of_y = self.operands[2]
        if of_y() is not y or of_y.memory is not y.base_data:
            return None
        if y.events and (self.last is None or y.events != [self.last[1]]):
            return None
        ready = self._ready_for(queue, data, x, scale)
        return None if ready is None else self.enqueue(ready)

    def _ready_for(self, queue: cl.CommandQueue, data: cl_array.Array, x: cl_array.Array, scale: tuple[Any, ...]) -> Ready | None:
        """Return what the next product with these operands needs if it may be enqueued as the one before, but for y."""
        ready = self.ready
        if ready is None or queue is not ready[0] or ready[2].has_uses() or scale is not self.scale:
            return None
        of_data, of_x, _ = self.operands
        if of_data() is not data or of_x() is not x or of_data.memory is not data.base_data or of_x.memory is not x.base_data:
            return None
        return None if (data.events or x.events) and not self.waits.knows(data.events + x.events) else ready

    def enqueue(self, ready: Ready) -> cl.Event:
        """Enqueue the launches on a queue in order, with the arguments that are set, and return the event of the last."""
        use_device()
        queue, _, _, commands = ready
        for kernel, global_size, local_size in commands:
            # As `submit` does, which takes longer.
            try:
                event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
            except cl.MemoryError:  # noqa: PERF203 - a try block costs nothing if nothing is raised
                event = submit(kernel, cl.enqueue_nd_range_kernel, queue, kernel, global_size, local_size)
        self.last = queue, event
        return event

    def _set(self, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> bool:
        """Set the arguments that all launches have in common, as far as they are others; return whether all are as before."""
        data, x, y = operands
        of_data, of_x, of_y = self.operands
        if (
            scale is self.scale
            and of_data.memory is data.base_data
            and of_x.memory is x.base_data
            and of_data() is data
            and of_x() is x
            and y.offset == self.y_offset
        ):
            if of_y.memory is y.base_data and of_y() is y:
                return True
            # All products of `A @ x` with one x differ in y's memory alone, which begins where that of before did.
            self.operands, self.checked = (of_data, of_x, _GONE), (self.checked[0], False)
            for launch in self.launches:
                launch.kernel.set_arg(_Y, y.base_data)
        else:
            arguments = _arguments(operands, scale)
            self.operands, self.checked = (_GONE,) * 3, (False, False)
            for launch in self.launches:
                launch.set(arguments)
        self.operands = tuple(map(_Operand, operands))
        self.scale, self.y_offset = scale, y.offset
        return False

    def bound(self, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> list[tuple[Built, int, tuple[Any, ...]]]:
        """Return each launch with all its arguments: the built kernel, work-groups, arguments."""
        arguments = _arguments(operands, scale)
        return [(each.built, each.global_size[0] // each.work_group, (*arguments, *each.own)) for each in self.launches]

    def __del__(self) -> None:
        # Buffers that are kept here go with the executable, and one on host memory goes at once: not while a kernel uses it.
        if self.last is not None and not is_forked():
            self.last[1].wait()


class Checked(NamedTuple):
    """A product whose operands were checked, as the executable's arguments are set: alpha, beta, semiring, the result's shape."""

    alpha: Any
    beta: Any
    semiring: Any
    executable: Executable
    scale: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(
        cls,
        executable: Executable,
        operands: tuple[cl_array.Array, cl_array.Array, cl_array.Array],
        scale: tuple[Any, ...],
        alpha: Any,
        beta: Any,
        semiring: Any,
        *,
        is_new: bool,
    ) -> Self | None:
        """Return the product that was just enqueued with A's values, x and y; None if its arguments are set for others by now.

        ``is_new`` says that y was made for the product, and is not known to be apart from what is read.
        """
        if any(value is not None and not isinstance(value, (int, float, complex, np.generic)) for value in (alpha, beta)):
            return None  # it may change
        known, y = executable.note_checked(operands, scale, is_new=is_new), operands[2]
        return None if known is None else cls(alpha, beta, semiring, executable, known, y.shape, y.dtype)

    def again(
        self, queue: cl.CommandQueue, data: cl_array.Array, x: Any, alpha: Any, beta: Any, out: Any, semiring: Any
    ) -> cl_array.Array | None:
        """Return the product with these operands, with a new result if ``out`` is None; None if one is another.

        Nothing is checked: operands that are the same objects were.
        """
        if alpha is not self.alpha or beta is not self.beta or semiring is not self.semiring:
            return None
        if out is None:
            if x.allocator is not None or current() is not None:
                return None
            return self.executable.renew(queue, data, x, self.shape, self.dtype)
        event = self.executable.repeat(queue, data, x, out, self.scale)
        if event is None:
            return None
        note_written(out, event)
        out_: cl_array.Array = out
        return out_
