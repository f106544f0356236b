"""Products ``y = alpha * A @ x + beta * y`` by recordings: operands that were checked once are not checked again.

So do samples of products, whose operands are two dense matrices.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py import forked
from clsparse_py.blocks import is_released
from clsparse_py.built import Numbers
from clsparse_py.launch import Chain, at_rest
from clsparse_py.memory import layout, new_array
from clsparse_py.order import note_written, of_others
from clsparse_py.overlap import require_inside
from clsparse_py.pool import arena_of
from clsparse_py.recording import Bound, Recorder, Recording
from clsparse_py.workspace import current

__all__ = ["BoundProduct", "DenseProduct", "arguments_of", "recorder_of"]

_Operands = tuple[cl_array.Array, cl_array.Array, cl_array.Array]
#: Numbers that each product brings: where x and y begin; alpha and beta if it is scaled.
_BEGINS, _SCALES = 2, 2
#: The slot of y.
_Y = 2


def recorder_of(chain: Chain, dtypes: tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]], *, scaled: bool) -> Recorder:
    """Return the recorder of a product: A's values, x and y are its slots."""
    return Recorder(chain, dtypes, _BEGINS + _SCALES * scaled)


def arguments_of(recorder: Recorder) -> tuple[Any, ...]:
    """Return what all launches of a product have in common, their first arguments."""
    data, x, y = recorder.operands
    x_begin, y_begin, *scale = recorder.numbers
    return data, x, x_begin, y, y_begin, *scale


class _Checked(weakref.ref[Any]):
    """An array that was checked, with its memory: kept as long as the array is, so that no other is taken for it."""

    __slots__ = ("memory", "shape")

    memory: Any
    shape: tuple[int, ...] | None

    def __new__(cls, array: cl_array.Array) -> Self:
        """Return a reference that lets go of the memory when the array goes."""
        made = super().__new__(cls, array, _let_go)
        made.memory, made.shape = array.base_data, array.shape
        return made


def _let_go(checked: Any) -> None:
    checked.memory = None


@dataclass(eq=False, slots=True)
class _Call:
    """A product whose operands were checked.

    Attributes
    ----------
    data, x, y : _Checked
    y_is_new : bool
        Whether y was made for the product, and is not known to be apart from what is read.
    alpha, beta : scalar or None
    semiring : Semiring or None
    numbers : tuple of numpy.generic
        Those of the recording.
    own_numbers : tuple of numpy.generic
        The same in a tuple that nobody else has. It stands for data and x, too: on a kernel object that was given it last, y
        alone is to be set (`built.Launch.repeat`).
    form_of_y : tuple
        As `memory.new_array` takes it.
    form : tuple
        Of x: the queue, dtype, shape, strides and offset.
    x_bytes, y_bytes : int
        How much memory x reaches over, from the beginning of its buffer, and y takes.
    n_released : int
        How often memory of the pool had been released by hand; -1 if memory belongs to another queue than the plan's.
    """

    data: _Checked
    x: _Checked
    y: _Checked
    y_is_new: bool
    alpha: Any
    beta: Any
    semiring: Any
    numbers: Numbers
    own_numbers: Numbers
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
        Of what the recording keeps.
    """

    __slots__ = ("_arena", "_call", "_event", "_numbers", "_only", "_own", "recording")

    def __init__(self, recording: Recording, queue: cl.CommandQueue) -> None:
        self.recording = recording
        self._arena = arena_of(queue)
        # None if there is more to keep than the order of one queue.
        has_more = self._arena.beside is not None or recording.n_commands != 1 or of_others(queue, *recording.kept)
        self._own = None if has_more else queue
        self._only = recording.only(_Y)
        self._call: _Call | None = None
        # The last one on that queue.
        self._event: cl.Event | None = None
        self._numbers: Numbers = ()

    def run(self, queue: cl.CommandQueue, operands: _Operands, scale: tuple[Any, ...]) -> list[cl.Event]:
        """Enqueue a product with operands that were checked, and return an event for each command."""
        return self._enqueued(queue, operands, self._numbers_of(operands, scale))

    def _numbers_of(self, operands: _Operands, scale: tuple[Any, ...]) -> Numbers:
        """Return what stands in the slots of numbers: the tuple of before if they are the same."""
        _, x, y = operands
        found = (*(np.uint64(each.offset // each.dtype.itemsize) for each in (x, y)), *scale)
        if scale or found != self._numbers:
            self._numbers = found
        return self._numbers

    def _enqueued(self, queue: cl.CommandQueue, operands: _Operands, numbers: Numbers) -> list[cl.Event]:
        recording = self.recording
        if queue is self._own and at_rest(queue, *operands, known=self._event) is not None:
            self._event = event = recording.replay(queue, [each.base_data for each in operands], numbers)
            return [event]
        chain = Chain(queue, *operands[:2], *recording.kept, writes=operands[2:])
        if not recording.n_commands:
            return [cl.enqueue_marker(queue, wait_for=chain.wait_for)]
        recording.enqueue(chain, operands, numbers)
        if queue is self._own:
            self._event = chain.events[-1]
        return chain.events

    def note_checked(
        self, operands: _Operands, scale: tuple[Any, ...], alpha: Any, beta: Any, semiring: Any, *, is_new: bool
    ) -> None:
        """Take note that these operands were checked, for `again`; ``is_new`` says that y was made for the product."""
        if any(value is not None and not isinstance(value, (int, float, complex, np.generic)) for value in (alpha, beta)):
            return  # it may change
        _, x, y = operands
        reach = x.offset + sum((n - 1) * step for n, step in zip(x.shape, x.strides, strict=True)) + x.dtype.itemsize
        own = self._own
        is_own = own is not None and x.queue is own and not of_others(own, *operands)
        numbers = self._numbers_of(operands, scale)
        form_of_y = self._arena.pool.context, y.dtype, *layout(y.shape, y.dtype.itemsize)
        self._call = _Call(
            _Checked(operands[0]), _Checked(x), _Checked(y), is_new, alpha, beta, semiring, numbers, (*numbers,),
            form_of_y, (x.queue, x.dtype, x.shape, x.strides, x.offset),
            reach if x.size and min(x.strides) >= 0 else 1 << 64, y.nbytes, self._arena.pool.n_released if is_own else -1,
        )  # fmt: skip

    def again(
        self,
        queue: cl.CommandQueue,
        data: cl_array.Array,
        x: cl_array.Array,
        alpha: Any,
        beta: Any,
        out: cl_array.Array | None,
        semiring: Any,
    ) -> cl_array.Array | None:
        """Return a product as the last that was noted, with a new result if ``out`` is None; None if it has to be checked.

        ``queue`` is A's, for an x that has none. Without ``out``, x may be another array that lies as that one did.
        """
        call = self._call
        if call is None or alpha is not call.alpha or beta is not call.beta or semiring is not call.semiring:
            return None
        of_data, of_x, memory, x_memory = call.data, call.x, data.base_data, x.base_data
        if of_data() is not data or of_data.memory is not memory or of_data.shape is not data.shape:
            return None
        is_same = of_x() is x and of_x.memory is x_memory and of_x.shape is x.shape
        own, pool, known, y = self._own, self._arena.pool, self._event, out
        # Whether nothing but the queue's order has to be kept: its last product is the last command that arrays know of.
        is_ready = (
            is_same
            and call.n_released == pool.n_released
            and not pool.uses
            and _are_known(data.events, known)
            and _are_known(x.events, known)
            and current() is None
            and not forked.forked
        )
        if y is not None:
            of_y, y_memory = call.y, y.base_data
            if not is_same or call.y_is_new or of_y() is not out or of_y.memory is not y_memory or of_y.shape is not y.shape:
                return None
            if own is not None and is_ready and _are_known(y.events, known):
                event = self._repeated(own, call, memory, x_memory, y_memory)
            elif is_released(memory) or is_released(x_memory) or is_released(y_memory):
                return None
            else:
                event = self._enqueued(x.queue or queue, (data, x, y), call.numbers)[-1]
            note_written(y, event)
            return y
        if own is None or x.queue is not own or x.allocator is not None or call.numbers[1]:  # y begins its memory
            return None
        if not is_ready and not ((is_same or _is_like(x, call)) and at_rest(own, data, x, known=known)):
            return None
        try:
            new = self._arena.allocate(own, call.y_bytes)
        except cl.Error:
            return None
        if is_same:
            event = self._repeated(own, call, memory, x_memory, new)
        else:
            self._event = event = self.recording.replay(own, (memory, x_memory, new), call.numbers)
        return new_array(call.form_of_y, own, new, [event])

    def _repeated(self, queue: cl.CommandQueue, call: _Call, data: Any, x: Any, y: Any) -> cl.Event:
        """Enqueue a product with data and x of a call, which were found to be the same, and y's memory."""
        event = None if self._only is None else self._only[0].repeat(queue, call.own_numbers, self._only[1], y)
        if event is None:
            event = self.recording.replay(queue, (data, x, y), call.own_numbers)
        self._event = event
        return event

    def bound(self, queue: cl.CommandQueue, operands: _Operands, scale: tuple[Any, ...]) -> Bound:
        """Return the launches with these operands, which are not waited for."""
        return self.recording.bound(queue, operands, self._numbers_of(operands, scale))


def _are_known(events: Sequence[cl.Event], known: cl.Event | None) -> bool:
    """Return whether the events of an array tell of nothing but the command that is known."""
    return not events or (events[0] is known and len(events) == 1)


def _is_like(x: cl_array.Array, call: _Call) -> bool:
    """Return whether an array lies in its memory as the one that was checked."""
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


class BoundProduct:
    """``y = A @ x`` for the arrays that it was made with; made by `SpmvPlan.bind`.

    It keeps the arrays and their memory alive: values that are written into them count at the next call, arrays that take their
    place in a matrix do not.

    Attributes
    ----------
    out : pyopencl.array.Array
        Takes the product.
    """

    def __init__(self, queue: cl.CommandQueue, operands: _Operands, product: DenseProduct) -> None:
        self._queue, self._operands, self._product = queue, operands, product
        product.note_checked(operands, (), None, None, None, is_new=False)
        self._memory, self._shapes = tuple(each.base_data for each in operands), tuple(each.shape for each in operands)
        # Memory of others stays if it is released by hand. That of the pool does not.
        self._kept = [cl.Buffer.from_int_ptr(each.int_ptr, True) for each in self._memory if each.__class__ is cl.Buffer]
        self.out = operands[2]

    def __call__(self) -> cl_array.Array:
        """Enqueue the product on x's queue, and return ``out``, which is not waited for.

        Raises
        ------
        ValueError
            An array has other memory, or another shape, than when the product was bound to it, or its memory was released.
        """
        data, x, y = self._operands
        if self._product.again(self._queue, data, x, None, None, y, None) is None:
            self._look()
            note_written(y, self._product.run(self._queue, self._operands, ())[-1])
        return y

    def _look(self) -> None:
        """Raise an error if an array is not as it was."""
        for name, array, memory, shape in zip(("A.data", "x", "out"), self._operands, self._memory, self._shapes, strict=True):
            if array.base_data is not memory:
                raise ValueError(f"{name}: has other memory than when the product was bound to it; bind it again")
            if array.shape != shape:
                raise ValueError(f"{name}: had shape {shape} when the product was bound to it, has {array.shape}; bind it again")
            require_inside(name, array)
