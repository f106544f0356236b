"""A product bound to its operands: arguments are set once, and a call does little but enqueue."""

from __future__ import annotations

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.executable import Executable
from clsparse_py.forked import use_device
from clsparse_py.memory import arena_of, note_written, unordered

__all__ = ["BoundProduct"]


class BoundProduct:
    """``y = A @ x`` for the arrays that it was made with; made by `SpmvPlan.bind`.

    It has kernels of its own with their arguments set, and keeps the arrays alive: values that are written into them count at the
    next call, arrays that take their place in a matrix do not.

    Attributes
    ----------
    out : pyopencl.array.Array
        Takes the product.
    """

    def __init__(
        self, queue: cl.CommandQueue, operands: tuple[cl_array.Array, cl_array.Array, cl_array.Array], executable: Executable
    ) -> None:
        self._queue, self._operands, self._executable = queue, operands, executable
        self.out = operands[2]
        self._arena = arena_of(queue)
        own_memory = self._arena.ordered and not unordered(queue, *operands, *executable.keep[:2])
        # One launch, on a queue that keeps the order of all that uses its arrays.
        self._launch = executable.launches[0] if own_memory and len(executable.launches) == 1 else None
        self._made: cl.Event | None = None

    def __call__(self) -> cl_array.Array:
        """Enqueue the product on x's queue, and return ``out``, which is not waited for."""
        data, x, y = self._operands
        launch = self._launch
        if launch is None or data.events or x.events or self._arena.pool.uses or not self._is_alone(y):
            event = self._executable.run(self._queue, self._operands, ())[-1]
        else:
            use_device()
            try:
                event = cl.enqueue_nd_range_kernel(self._queue, launch.kernel, launch.global_size, launch.local_size)
            except cl.MemoryError:
                event = self._executable.run(self._queue, self._operands, ())[-1]
            self._executable.last = self._queue, event
        self._made = event
        note_written(y, event)
        return y

    def _is_alone(self, y: cl_array.Array) -> bool:
        """Return whether nothing but the call before writes to the result."""
        events = y.events
        return self._made is not None and len(events) == 1 and events[0] is self._made
