"""Products ``y = alpha * A @ x + beta * y`` by recordings: operands that were checked once are not checked again.

So do samples of products, whose operands are two dense matrices.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py.blocks import is_released
from clsparse_py.launch import Chain, at_rest
from clsparse_py.memory import array_with, attributes_of
from clsparse_py.order import note_written, of_others
from clsparse_py.overlap import require_inside
from clsparse_py.recording import Bound, Numbers, Recorder, Recording

__all__ = ["BoundProduct", "DenseProduct", "arguments_of", "recorder_of"]

_Operands = tuple[cl_array.Array, cl_array.Array, cl_array.Array]
#: Numbers that each product brings: where x and y begin; alpha and beta if it is scaled.
_BEGINS, _SCALES = 2, 2


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


class _Call(NamedTuple):
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
    attributes : dict
        Of y, as `memory.array_with` takes them.
    form : tuple
        Of x: the queue, dtype, shape, strides and offset.
    x_bytes, y_bytes : int
        How much memory x reaches over, from the beginning of its buffer, and y takes.
    """

    data: _Checked
    x: _Checked
    y: _Checked
    y_is_new: bool
    alpha: Any
    beta: Any
    semiring: Any
    numbers: Numbers
    attributes: dict[str, Any]
    form: tuple[Any, ...]
    x_bytes: int
    y_bytes: int


class DenseProduct:
    """Products of one kind by one recording, for any operands.

    Parameters
    ----------
    recording : Recording
    queue : pyopencl.CommandQueue
        Of what the recording keeps.
    """

    __slots__ = ("_call", "_event", "_numbers", "_own", "recording")

    def __init__(self, recording: Recording, queue: cl.CommandQueue) -> None:
        self.recording = recording
        # Elsewhere, what is kept has to be looked after.
        self._own = None if of_others(queue, *recording.kept) or not len(recording) else queue
        self._call: _Call | None = None
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
        if queue is self._own and len(recording) == 1:
            arena = at_rest(queue, *operands, known=self._event)
            if arena is not None:
                self._event = event = recording.replay(arena, queue, operands, numbers)
                return [event]
        chain = Chain(queue, *operands[:2], *recording.kept, writes=operands[2:])
        if not len(recording):
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
        data, x, y = operands
        numbers, form = self._numbers_of(operands, scale), (x.queue, x.dtype, x.shape, x.strides, x.offset)
        reach = x.offset + sum((n - 1) * step for n, step in zip(x.shape, x.strides, strict=True)) + x.dtype.itemsize
        reach = reach if x.size and min(x.strides, default=0) >= 0 else 1 << 64
        self._call = _Call(
            _Checked(data), _Checked(x), _Checked(y), is_new, alpha, beta, semiring, numbers, attributes_of(y.shape, y.dtype),
            form, reach, y.nbytes,
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
        of_data, of_x = call.data, call.x
        if of_data() is not data or of_data.memory is not data.base_data or of_data.shape is not data.shape:
            return None
        is_same = of_x() is x and of_x.memory is x.base_data and of_x.shape is x.shape
        if out is None:
            return self._renewed(call, data, x) if is_same or _is_like(x, call) else None
        of_y, y = call.y, out
        if not is_same or call.y_is_new or of_y() is not out or of_y.memory is not y.base_data or of_y.shape is not y.shape:
            return None
        if is_released(of_data.memory) or is_released(of_x.memory) or is_released(of_y.memory):
            return None
        note_written(y, self._enqueued(x.queue or queue, (data, x, y), call.numbers)[-1])
        return y

    def _renewed(self, call: _Call, data: cl_array.Array, x: cl_array.Array) -> cl_array.Array | None:
        """Return the product with a new result; None if something is to be waited for, or there is no memory at hand."""
        queue = x.queue
        if queue is None or queue is not self._own or x.allocator is not None:
            return None
        arena = at_rest(queue, data, x, known=self._event)
        if arena is None or call.numbers[1]:  # y begins its memory
            return None
        try:
            memory = arena.allocate(queue, call.y_bytes)
        except cl.Error:
            return None
        y = array_with(call.attributes, queue, arena.pool.context, memory)
        self._event = event = self.recording.replay(arena, queue, (data, x, y), call.numbers)
        y.events = [event]
        return y

    def bound(self, queue: cl.CommandQueue, operands: _Operands, scale: tuple[Any, ...]) -> Bound:
        """Return the launches with these operands, which are not waited for."""
        return self.recording.bound(queue, operands, self._numbers_of(operands, scale))


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

    def __init__(self, queue: cl.CommandQueue, operands: _Operands, recording: Recording, owner: cl.CommandQueue) -> None:
        self._queue, self._operands = queue, operands
        self._product = DenseProduct(recording, owner)
        self._numbers = self._product._numbers_of(operands, ())
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
        for array, memory, shape in zip(self._operands, self._memory, self._shapes, strict=True):
            if array.base_data is not memory or array.shape is not shape or is_released(memory):
                self._look()
        note_written(self.out, self._product._enqueued(self._queue, self._operands, self._numbers)[-1])
        return self.out

    def _look(self) -> None:
        """Raise an error if an array is not as it was."""
        for name, array, memory, shape in zip(("A.data", "x", "out"), self._operands, self._memory, self._shapes, strict=True):
            if array.base_data is not memory:
                raise ValueError(f"{name}: has other memory than when the product was bound to it; bind it again")
            if array.shape != shape:
                raise ValueError(f"{name}: had shape {shape} when the product was bound to it, has {array.shape}; bind it again")
            require_inside(name, array)
