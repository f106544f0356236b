"""Products ``y = alpha * A @ x + beta * y`` by recordings: operands that were checked once are not checked again.

Sampled products of two dense matrices (SDDMM) take the same way.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._build.built import Numbers
from clsparse_py._ground import fork_guard
from clsparse_py._memory.memory import layout, new_array
from clsparse_py._memory.order import note_written, of_others
from clsparse_py._memory.overlap import require_inside
from clsparse_py._memory.pool import Arena, Pool, arena_of, is_released
from clsparse_py._memory.workspace import current
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.launch import Chain, needs_no_events
from clsparse_py._run.recording import Bound, Recorder, Recording
from clsparse_py._run.upgrade import Upgrade

__all__ = ["BoundProduct", "DenseProduct", "Operands", "Repeating", "list_arguments", "make_recorder"]

#: Type of the arrays of a product: A's values, x and y.
Operands = tuple[cl_array.Array, cl_array.Array, cl_array.Array]
#: Count of numbers among the arguments of every product ``A @ x``: the offsets of x and y in their buffers.
_BEGINS = 2
#: Count of further numbers among the arguments of a scaled product ``A @ x``: alpha and beta.
_SCALES = 2
#: Position of y, the result, among the operands of a product ``A @ x`` (A's values, x, y).
_Y = 2


def make_recorder(chain: Chain, dtypes: tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]], *, scaled: bool) -> Recorder:
    """Return the recorder of a product ``A @ x``, with slots for A's values, x, y, offsets and, if ``scaled``, two scalars."""
    return Recorder(chain, dtypes, _BEGINS + _SCALES * scaled)


def list_arguments(recorder: Recorder) -> tuple[Any, ...]:
    """Return the first arguments of each launch of a product: A's values, x, its offset, y, its offset, and scalars if scaled."""
    data, x, y = recorder.operands
    x_begin, y_begin, *scale = recorder.numbers
    return data, x, x_begin, y, y_begin, *scale


class _Checked(weakref.ref[Any]):
    """A weak reference to an array that was checked, with the array's memory, which it keeps as long as the array lives."""

    __slots__ = ("memory", "shape")

    memory: Any
    shape: tuple[int, ...] | None

    def __new__(cls, array: cl_array.Array) -> Self:
        """Return a reference that drops the memory when the array goes."""
        reference = super().__new__(cls, array, _drop_memory)
        reference.memory, reference.shape = array.base_data, array.shape
        return reference


def _drop_memory(checked: Any) -> None:
    """Let go of the memory of a checked array, once the array itself is gone."""
    checked.memory = None


@dataclass(eq=False, slots=True)
class _Call:
    """A product whose operands were checked.

    Attributes
    ----------
    product : DenseProduct
    queue : pyopencl.CommandQueue
        The queue for an x that has none.
    own : pyopencl.CommandQueue or None
        The queue whose order is all that the product has to keep.
    of_new : pyopencl.CommandQueue or None
        The same, for a product with a new result; None if y did not begin its memory, as new arrays do.
    arena, pool
        Arena and pool of the recording's arrays.
    data, x, y : _Checked
    y_is_new : bool
        Whether y was made for the product, and is not known to be apart from the operands.
    alpha, beta : scalar or None
    semiring : Semiring or None
    numbers : tuple of numpy.generic
        The recording's numbers.
    repeat : callable
        Replays the recording on a queue with the memory of data, x and y. Only y's memory is set: that of data and x is the same.
    form_of_y : tuple
        The form of y, as `memory.new_array` takes it.
    form : tuple
        The queue, dtype, shape, strides and offset of x.
    x_bytes, y_bytes : int
        Bytes from the beginning of x's buffer to the end of x; bytes of y.
    n_released : int
        How often memory of the pool had been released by hand; -1 if memory belongs to another queue than the plan's.
    """

    product: DenseProduct
    queue: cl.CommandQueue
    own: cl.CommandQueue | None
    of_new: cl.CommandQueue | None
    arena: Arena
    pool: Pool
    data: _Checked
    x: _Checked
    y: _Checked
    y_is_new: bool
    alpha: Any
    beta: Any
    semiring: Any
    numbers: Numbers
    repeat: Callable[[cl.CommandQueue, tuple[Any, Any, Any]], cl.Event]
    form_of_y: tuple[Any, ...]
    form: tuple[Any, ...]
    x_bytes: int
    y_bytes: int
    n_released: int


class DenseProduct:
    """Products of one kind by one recording, for any operands.

    Parameters
    ----------
    recording : Recording
    queue : pyopencl.CommandQueue
        The queue of the arrays that the recording keeps.

    Attributes
    ----------
    recording : Recording
    event : pyopencl.Event or None
        The event of the last product on that queue, if the order of the queue is all that products have to keep.
    """

    __slots__ = ("_arena", "_numbers", "_own", "event", "recording")

    def __init__(self, recording: Recording, queue: cl.CommandQueue) -> None:
        self.recording = recording
        self._arena = arena_of(queue)
        # `_own` is the queue whose order is all that products have to keep; None if products have to wait for events.
        has_more = self._arena.beside is not None or recording.n_commands == 0 or of_others(queue, *recording.kept)
        self._own = None if has_more else queue
        self.event: cl.Event | None = None
        self._numbers: Numbers = ()

    def run(self, queue: cl.CommandQueue, operands: Operands, scale: tuple[Any, ...]) -> list[cl.Event]:
        """Enqueue a product ``A @ x`` with operands that were checked, and return the events of its commands."""
        return self.enqueue(queue, operands, self._numbers_of(operands, scale))

    def _numbers_of(self, operands: Operands, scale: tuple[Any, ...]) -> Numbers:
        """Return the product's numbers (offsets, scale); the last product's own tuple if that is equal and has no scale."""
        _, x, y = operands
        numbers = (*(np.uint64(vector.offset // vector.dtype.itemsize) for vector in (x, y)), *scale)
        if scale or numbers != self._numbers:
            self._numbers = numbers
        return self._numbers

    def enqueue(self, queue: cl.CommandQueue, operands: Operands, numbers: Numbers) -> list[cl.Event]:
        """Enqueue a product ``A @ x`` as `run` does, with offsets and scale given by the caller as ``numbers``."""
        recording = self.recording
        # A product of several commands needs a chain, which has the events of all commands.
        if (
            queue is self._own
            and recording.n_commands == 1
            and needs_no_events(queue, *operands, known_event=self.event) is not None
        ):
            self.event = event = recording.replay(queue, [array.base_data for array in operands], numbers)
            return [event]
        chain = Chain(queue, *operands[:2], *recording.kept, writes=operands[2:])
        if not recording.n_commands:
            return [cl.enqueue_marker(queue, wait_for=chain.wait_for)]
        recording.enqueue(chain, operands, numbers)
        if queue is self._own:
            self.event = chain.events[-1]
        return chain.events

    def make_call(
        self,
        queue: cl.CommandQueue,
        operands: Operands,
        scale: tuple[Any, ...],
        alpha: Any,
        beta: Any,
        semiring: Any,
        *,
        is_new: bool,
    ) -> _Call | None:
        """Return the record of a product whose operands were checked, by which it is repeated; None if alpha or beta may change.

        ``queue`` is the queue for an x that has none; ``is_new`` says that y was made for the product.
        """
        if any(value is not None and not isinstance(value, (int, float, complex, np.generic)) for value in (alpha, beta)):
            return None
        _, x, y = operands
        reach = x.offset + sum((n - 1) * step for n, step in zip(x.shape, x.strides, strict=True)) + x.dtype.itemsize
        own_queue, arena, pool = self._own, self._arena, self._arena.pool
        is_own = own_queue is not None and x.queue is own_queue and not of_others(own_queue, *operands)
        numbers = self._numbers_of(operands, scale)
        form_of_y = pool.context, y.dtype, *layout(y.shape, y.dtype.itemsize)
        return _Call(
            self, queue, own_queue, None if y.offset else own_queue, arena, pool,
            _Checked(operands[0]), _Checked(x), _Checked(y), is_new,
            alpha, beta, semiring, numbers, self.recording.repeated(_Y, numbers), form_of_y,
            (x.queue, x.dtype, x.shape, x.strides, x.offset),
            reach if x.size and min(x.strides) >= 0 else 1 << 64, y.nbytes, pool.n_released if is_own else -1,
        )  # fmt: skip

    def bound(self, queue: cl.CommandQueue, operands: Operands, scale: tuple[Any, ...]) -> Bound:
        """Return the launches of a product with these arrays set; they wait for no events, and rely on the queue's order."""
        return self.recording.bound(queue, operands, self._numbers_of(operands, scale))


class Repeating:
    """Base of plans and of other objects that repeat their last product without checking its operands again."""

    #: Record of the last product, as `DenseProduct.make_call` returned it; None before the first.
    _call: _Call | None = None
    #: Upgrades (costlier preparations for faster products) that are still to come; if any, each repeat calls `_upgrade`.
    _upgrades: Mapping[Any, Upgrade[Any]] = MappingProxyType({})

    def again(
        self,
        data: cl_array.Array,
        x: cl_array.Array,
        alpha: Any = None,
        beta: Any = None,
        out: cl_array.Array | None = None,
        semiring: Any = plus_times,
    ) -> cl_array.Array | None:
        """Repeat the last product whose operands were checked, and return its result; None if the operands have to be checked.

        The result is ``out``, or a new array. Without ``out``, x may be another array of the same shape, strides and offset.
        """
        call = self._call
        if call is None or alpha is not call.alpha or beta is not call.beta or semiring is not call.semiring:
            return None
        of_data, of_x, memory, x_memory = call.data, call.x, data.base_data, x.base_data
        if of_data() is not data or of_data.memory is not memory or of_data.shape is not data.shape:
            return None
        is_same = of_x() is x and of_x.memory is x_memory and of_x.shape is x.shape
        product, pool = call.product, call.pool
        last_event = product.event
        # `is_ready`: the queue's order is all that has to be kept, as the arrays know of no command after the last product.
        is_ready = (
            is_same
            and call.n_released == pool.n_released
            and not pool.uses
            and (not (events := data.events) or (events[0] is last_event and len(events) == 1))
            and (not (events := x.events) or (events[0] is last_event and len(events) == 1))
            and current() is None
            and not fork_guard.forked
        )
        if out is None:
            own_queue = call.of_new
            if own_queue is None or x.queue is not own_queue or x.allocator is not None:
                return None
            if not is_ready and not (
                (is_same or _is_like(x, call)) and needs_no_events(own_queue, data, x, known_event=last_event)
            ):
                return None
            try:
                y = call.arena.allocate(own_queue, call.y_bytes)
            except cl.Error:
                return None
            if is_same:
                event = call.repeat(own_queue, (memory, x_memory, y))
            else:
                event = product.recording.replay(own_queue, (memory, x_memory, y), call.numbers)
            product.event = event
            result = new_array(call.form_of_y, own_queue, y, [event])
        else:
            own_queue = call.own
            result, of_y, y_memory = out, call.y, out.base_data
            if not is_same or call.y_is_new or of_y() is not out or of_y.memory is not y_memory or of_y.shape is not result.shape:
                return None
            if (
                own_queue is not None
                and is_ready
                and (not (events := result.events) or (events[0] is last_event and len(events) == 1))
            ):
                product.event = event = call.repeat(own_queue, (memory, x_memory, y_memory))
                note_written(result, event, last_event)
            elif is_released(memory) or is_released(x_memory) or is_released(y_memory):
                return None
            else:
                note_written(result, product.enqueue(x.queue or call.queue, (data, x, result), call.numbers)[-1])
        if self._upgrades:
            self._upgrade()
        return result

    def _upgrade(self) -> None:
        """Do nothing; plans override this to count a repeat for their upgrades (costlier preparations for faster products)."""


def _is_like(x: cl_array.Array, call: _Call) -> bool:
    """Return whether an array is like a checked product's x: queue, dtype, shape, strides, offset, and enough memory."""
    queue, dtype, shape, strides, offset = call.form
    memory: Any = x.base_data
    return bool(
        x.queue is queue
        and x.shape == shape
        and x.dtype == dtype
        and x.strides == strides
        and x.offset == offset
        and memory is not None
        and not is_released(memory)
        and memory.size >= call.x_bytes
    )


class BoundProduct(Repeating):
    """``y = A @ x`` for fixed arrays; made by `SpmvPlan.bind`.

    It keeps the arrays and their memory alive: values that are written into them count at the next call, arrays that take their
    place in a matrix do not.

    Attributes
    ----------
    out : pyopencl.array.Array
        The array that takes the product.
    """

    def __init__(self, queue: cl.CommandQueue, operands: Operands, product: DenseProduct) -> None:
        self._queue, self._operands, self._product = queue, operands, product
        self._call = product.make_call(queue, operands, (), None, None, plus_times, is_new=False)
        self._memory, self._shapes = (
            tuple(operand.base_data for operand in operands),
            tuple(operand.shape for operand in operands),
        )
        # A second buffer object on each operand's memory keeps it alive if a user releases the array's own buffer by hand.
        self._kept = [cl.Buffer.from_int_ptr(memory.int_ptr, True) for memory in self._memory if memory.__class__ is cl.Buffer]
        self.out = operands[2]

    def __call__(self) -> cl_array.Array:
        """Enqueue the product on x's queue, and return ``out``, which is not waited for.

        Raises
        ------
        ValueError
            An array has other memory, or another shape, than when the product was bound to it, or its memory was released.
        """
        data, x, y = self._operands
        if self.again(data, x, out=y) is None:
            self._require_unchanged()
            note_written(y, self._product.run(self._queue, self._operands, ())[-1])
        return y

    def _require_unchanged(self) -> None:
        """Raise an error if an array's memory or shape is not what the product was bound to, or if its memory was released."""
        for name, array, memory, shape in zip(("A.data", "x", "out"), self._operands, self._memory, self._shapes, strict=True):
            if array.base_data is not memory:
                raise ValueError(f"{name}: has other memory than when the product was bound to it; bind it again")
            if array.shape != shape:
                raise ValueError(f"{name}: had shape {shape} when the product was bound to it, has {array.shape}; bind it again")
            require_inside(name, array)
