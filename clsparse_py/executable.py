"""Execute: the launches of a product, ready to be enqueued any number of times."""

from __future__ import annotations

import functools
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py import forked
from clsparse_py.forked import is_forked, use_device
from clsparse_py.memory import array_with, attributes_of, submit
from clsparse_py.order import forget_ended, note_use, note_written, of_others
from clsparse_py.pool import Arena, Pool, arena_of
from clsparse_py.programs import Built
from clsparse_py.semiring import plus_times
from clsparse_py.transfer import Waits
from clsparse_py.workspace import current

__all__ = ["Checked", "Executable", "Launch", "Ready"]

#: The place of y's memory among a kernel's arguments; see `_arguments`.
_Y = 3


class _Operand(weakref.ref[Any]):
    """An array that arguments are set for, and its memory: kept as long as the array is, so that no other is taken for it."""

    __slots__ = ("memory", "shape")

    memory: Any
    shape: tuple[int, ...] | None

    def __new__(cls, array: cl_array.Array) -> Self:
        """Return a reference that lets go of the memory when the array goes."""
        made = super().__new__(cls, array, _let_go)
        made.memory, made.shape = array.base_data, array.shape
        return made


def _let_go(operand: Any) -> None:
    operand.memory = None


class _Gone:
    """Stands for an operand that is gone."""

    memory: Any = None
    shape: tuple[int, ...] | None = None

    def __call__(self) -> None:
        return None


_GONE = _Gone()


class Ready(NamedTuple):
    """What a product needs that only has the order of a queue to keep: the queue, its memory, and the launches."""

    queue: cl.CommandQueue
    arena: Arena
    pool: Pool
    commands: tuple[tuple[cl.Kernel, tuple[int], tuple[int]], ...]
    n_released: int


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
    # Memory of other queues: of what is kept, and of that and the operands.
    kept_of_others: tuple[int, ...] = ()
    noted: tuple[int, ...] = ()
    # The queue and the event of the command before.
    last: cl.CommandQueue | None = None
    event: cl.Event | None = None
    # What `Checked` and bound products need; set by `run` if nothing but the queue's order has to be kept for this product.
    ready: Ready | None = None
    # Whether values and x, and y, as the arguments are set, were checked by who had the product run.
    are_checked: bool = False
    y_is_checked: bool = False

    def run(self, queue: cl.CommandQueue, operands: tuple[Any, ...], scale: tuple[Any, ...]) -> list[cl.Event]:
        """Enqueue a product and return an event for each command."""
        with self.lock:
            if len(self.launches) == 1 and scale is self.scale and queue is self.queue and self.has(*operands):
                ready = self.ready
                if ready is not None and self.is_ordered(ready, *operands):
                    return [self.enqueue(ready)]
            for each in operands[:2]:
                if each.events:  # to ask once whether they have ended spares looking at them in each product
                    forget_ended(each)
            wait_for = self.waits.before(queue, *operands, writes=operands[2:])
            if not self.launches:
                return [cl.enqueue_marker(queue, wait_for=wait_for)]
            # What is known is of the arguments that are set: nothing, if an exception leaves some of them set.
            former, self.queue, self.ready = self.queue, None, None
            same_y = self._set(operands, scale)
            if queue is not former:
                # Buffers beside arrays hold constants, which belong to no queue.
                self.kept_of_others = of_others(queue, *(each for each in self.keep if isinstance(each, cl_array.Array)))
            if not same_y or queue is not former:
                self.noted = (*of_others(queue, *operands), *self.kept_of_others)
            self.queue = queue
            if len(self.launches) > 1 and self.last is not None and self.last is not queue:
                self.last.flush()  # OpenCL asks for it where one queue waits for another
                wait_for = [*(wait_for or ()), *([] if self.event is None else [self.event])]
            events: list[cl.Event] = []
            for launch in self.launches:
                event = submit(
                    launch.kernel, cl.enqueue_nd_range_kernel, queue, launch.kernel, launch.global_size, launch.local_size, None,
                    wait_for,
                )  # fmt: skip
                events.append(event)
                self.last, self.event = queue, event
                if self.noted:
                    note_use(queue, self.noted, event)
                wait_for = None
            self.waits.made(event)
            arena = arena_of(queue)
            if arena.beside is None and not self.noted:
                commands = tuple((each.kernel, each.global_size, each.local_size) for each in self.launches)
                self.ready = Ready(queue, arena, arena.pool, commands, arena.pool.n_released)
            return events

    def note_checked(self, operands: tuple[Any, ...], scale: tuple[Any, ...], *, is_new: bool) -> tuple[Any, ...] | None:
        """Take note that operands were checked, if the arguments are set for them, and return the scale, as it is set.

        ``is_new`` says that y was made for the product. None if the arguments are set for others by now.
        """
        with self.lock:
            of_data, of_x, of_y = self.operands
            if of_data() is not operands[0] or of_x() is not operands[1] or self.scale != scale:
                return None
            self.are_checked, self.y_is_checked = True, not is_new and of_y() is operands[2]
            return self.scale

    def has(self, data: cl_array.Array, x: cl_array.Array, y: cl_array.Array) -> bool:
        """Return whether the arguments are set for these arrays, and for the memory that they have."""
        of_data, of_x, of_y = self.operands
        return (
            y is not None
            and x is not None
            and of_y() is y
            and of_x() is x
            and of_data() is data
            and of_y.memory is y.base_data
            and of_x.memory is x.base_data
            and of_data.memory is data.base_data
            and of_y.shape is y.shape
            and of_x.shape is x.shape
            and of_data.shape is data.shape
        )

    def is_ordered(self, ready: Ready, data: cl_array.Array, x: cl_array.Array, y: cl_array.Array | None = None) -> bool:
        """Return whether nothing but the queue's order has to be kept for a product on the queue of before.

        That order covers all its arrays, and no event is noted for them but this queue's own, for y that of the product before.
        """
        if y is not None and (events := y.events) and (events[0] is not self.event or len(events) > 1):
            return False
        if (data.events or x.events) and not self.waits.knows(data.events + x.events):
            return False
        pool = ready[2]
        return not (pool.uses and pool.has_uses()) and pool.n_released == ready[4]

    def enqueue(self, ready: Ready) -> cl.Event:
        """Enqueue the launches on a queue in order, with the arguments that are set, and return the event of the last."""
        if forked.forked:
            use_device()
        queue, _, _, commands, _ = ready
        for kernel, global_size, local_size in commands:
            # As `submit` does, which takes longer.
            try:
                event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
            except cl.Error:  # noqa: PERF203 - a try block costs nothing if nothing is raised
                event = submit(kernel, cl.enqueue_nd_range_kernel, queue, kernel, global_size, local_size)
        self.event = event
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
            self.operands, self.y_is_checked = (of_data, of_x, _GONE), False
            for launch in self.launches:
                launch.kernel.set_arg(_Y, y.base_data)
        else:
            arguments = _arguments(operands, scale)
            self.operands, self.are_checked, self.y_is_checked = (_GONE,) * 3, False, False
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
        if self.event is not None and not is_forked():
            self.event.wait()


class Checked:
    """A product whose operands were checked, as the executable's arguments are set.

    Attributes
    ----------
    alpha, beta : scalar or None
    semiring : Semiring or None
    executable : Executable
    scale : tuple
        Alpha and beta, as they are set.
    is_plain : bool
        Whether it has neither alpha nor beta, and adds products up.
    """

    # As slots, which take less time to read than the fields of a tuple.
    __slots__ = ("_attributes", "_n_bytes", "alpha", "beta", "executable", "is_plain", "scale", "semiring")

    def __init__(
        self, alpha: Any, beta: Any, semiring: Any, executable: Executable, scale: tuple[Any, ...], y: cl_array.Array
    ) -> None:
        self.alpha, self.beta, self.semiring, self.executable, self.scale = alpha, beta, semiring, executable, scale
        self.is_plain = alpha is None and beta is None and semiring is plus_times
        self._attributes, self._n_bytes = attributes_of(y.shape, y.dtype), y.nbytes

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
        known = executable.note_checked(operands, scale, is_new=is_new)
        return None if known is None else cls(alpha, beta, semiring, executable, known, operands[2])

    def again(
        self, queue: cl.CommandQueue | None, data: cl_array.Array, x: Any, alpha: Any, beta: Any, out: Any, semiring: Any
    ) -> cl_array.Array | None:
        """Return the product with these operands, with a new result if ``out`` is None; None if one is another.

        Nothing is checked: operands that are the same objects were. ``queue`` is A's, for an x that has none.
        """
        if alpha is not self.alpha or beta is not self.beta or semiring is not self.semiring:
            return None
        if out is None:
            return self.renewed(queue, data, x)
        executable = self.executable
        with executable.lock:
            if not executable.y_is_checked or executable.scale is not self.scale or not executable.has(data, x, out):
                return None
            ready, on = executable.ready, x.queue or queue
            if on is None or (ready is not None and ready[2].n_released != ready[4]):
                return None
            at_once = ready is not None and ready[0] is on and executable.is_ordered(ready, data, x, out)
            event = executable.enqueue(ready) if ready is not None and at_once else None
        if event is None:
            event = executable.run(on, (data, x, out), self.scale)[-1]
        note_written(out, event)
        found: cl_array.Array = out
        return found

    def renewed(self, queue: cl.CommandQueue | None, data: cl_array.Array, x: Any) -> cl_array.Array | None:
        """Return the product with a new result, as `again` does; None also if there is no memory at hand."""
        executable = self.executable
        with executable.lock:
            of_data, of_x, of_y = executable.operands
            if (
                of_x() is not x
                or of_data() is not data
                or x is None
                or of_x.memory is not x.base_data
                or of_data.memory is not data.base_data
                or of_x.shape is not x.shape
                or of_data.shape is not data.shape
                or executable.scale is not self.scale
                or not executable.are_checked
            ):
                return None
            ready = executable.ready
            if (
                ready is None
                or ready[0] is not (x.queue or queue)
                or x.allocator is not None
                or executable.y_offset
                or current() is not None
                or not executable.is_ordered(ready, data, x)
            ):
                return None
            queue, arena, pool, commands, _ = ready
            try:
                memory = arena.allocate(queue, self._n_bytes)
            except cl.Error:
                return None
            if of_y is not _GONE:
                executable.operands, executable.y_is_checked = (of_data, of_x, _GONE), False
            for kernel, _, _ in commands:
                kernel.set_arg(_Y, memory)
            event = executable.enqueue(ready)
        return array_with(self._attributes, queue, pool.context, memory, event)
