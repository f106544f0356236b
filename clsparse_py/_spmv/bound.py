"""A product bound to its operands: arguments are set once, and a call does little but enqueue."""

from __future__ import annotations

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.executable import Executable
from clsparse_py.order import note_written

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
        self._sizes = tuple(each.size for each in operands)
        self.out = operands[2]

    def __call__(self) -> cl_array.Array:
        """Enqueue the product on x's queue, and return ``out``, which is not waited for.

        Raises
        ------
        ValueError
            An array has other memory, or another size, than when the product was bound to it.
        """
        executable, (data, x, y), (of_data, of_x, of_y) = self._executable, self._operands, self._memory
        n_data, n_x, n_y = self._sizes
        if y.base_data is not of_y or x.base_data is not of_x or data.base_data is not of_data:
            self._refuse()
        if y.size != n_y or x.size != n_x or data.size != n_data:
            self._refuse()
        ready = executable.ready
        # No argument is ever set to anything else.
        if ready is None or not executable.is_ordered(ready, data, x, y):
            event = executable.run(self._queue, self._operands, ())[-1]
        else:
            with executable.lock:
                event = executable.enqueue(ready)
        note_written(y, event)
        return y

    def _refuse(self) -> None:
        """Raise the error of arrays that are not as they were."""
        for name, array, memory, size in zip(("A.data", "x", "out"), self._operands, self._memory, self._sizes, strict=True):
            if array.base_data is not memory:
                raise ValueError(f"{name}: has other memory than when the product was bound to it; bind it again")
            if array.size != size:
                raise ValueError(f"{name}: had {size} entries when the product was bound to it, has {array.size}; bind it again")
