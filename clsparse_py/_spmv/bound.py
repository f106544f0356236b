"""A product bound to its operands: arguments are set once, and a call does little but enqueue."""

from __future__ import annotations

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py.executable import Executable
from clsparse_py.memory import note_written

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

    def __call__(self) -> cl_array.Array:
        """Enqueue the product on x's queue, and return ``out``, which is not waited for."""
        note_written(self.out, self._executable.run(self._queue, self._operands, ())[-1])
        return self.out
