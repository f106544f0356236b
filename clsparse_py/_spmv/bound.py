"""A product bound to its operands: arguments are set once, and a call does little but enqueue."""

from __future__ import annotations

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.executable import Executable
from clsparse_py.order import note_written
from clsparse_py.overlap import require_inside
from clsparse_py.pool import arena_of

__all__ = ["BoundProduct"]

_Operands = tuple[cl_array.Array, cl_array.Array, cl_array.Array]


class BoundProduct:
    """``y = A @ x`` for the arrays that it was made with; made by `SpmvPlan.bind`.

    It has kernels of its own with their arguments set, and keeps the arrays and their memory alive: values that are written into
    them count at the next call, arrays that take their place in a matrix do not.

    Attributes
    ----------
    out : pyopencl.array.Array
        Takes the product.
    """

    def __init__(self, queue: cl.CommandQueue, operands: _Operands, executable: Executable) -> None:
        self._queue, self._operands, self._executable = queue, operands, executable
        self._memory = tuple(each.base_data for each in operands)
        self._shapes = tuple(each.shape for each in operands)
        # Memory of others stays if it is released by hand. That of the pool does not.
        self._kept = [cl.Buffer.from_int_ptr(each.int_ptr, True) for each in self._memory if each.__class__ is cl.Buffer]
        self._n_released = -1
        self._pool = arena_of(queue).pool
        self.out = operands[2]

    def __call__(self) -> cl_array.Array:
        """Enqueue the product on x's queue, and return ``out``, which is not waited for.

        Raises
        ------
        ValueError
            An array has other memory, or another shape, than when the product was bound to it, or its memory was released.
        """
        executable, (data, x, y), (of_data, of_x, of_y) = self._executable, self._operands, self._memory
        shape_of_data, shape_of_x, shape_of_y = self._shapes
        if (
            y.base_data is not of_y
            or x.base_data is not of_x
            or data.base_data is not of_data
            or y.shape is not shape_of_y
            or x.shape is not shape_of_x
            or data.shape is not shape_of_data
            or self._pool.n_released != self._n_released
        ):
            self._look()
        ready = executable.ready
        # No argument is ever set to anything else. `Executable.is_ordered` knows more, which takes another call.
        if (
            ready is None
            or data.events
            or x.events
            or ready[2].uses
            or (y.events and (y.events[0] is not executable.event or len(y.events) > 1))
        ):
            event = executable.run(self._queue, self._operands, ())[-1]
        else:
            with executable.lock:
                event = executable.enqueue(ready)
        note_written(y, event)
        return y

    def _look(self) -> None:
        """Raise an error if an array is not as it was."""
        n_released = self._pool.n_released
        for name, array, memory, shape in zip(("A.data", "x", "out"), self._operands, self._memory, self._shapes, strict=True):
            if array.base_data is not memory:
                raise ValueError(f"{name}: has other memory than when the product was bound to it; bind it again")
            if array.shape != shape:
                raise ValueError(f"{name}: had shape {shape} when the product was bound to it, has {array.shape}; bind it again")
            require_inside(name, array)
        self._n_released = n_released
