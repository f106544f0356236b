"""Colours of the rows of a matrix: rows of one colour do not depend on each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._operations.preconditioning.kernels import Colour
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

__all__ = ["Colouring", "colour_rows"]

#: Rounds of a colouring between two reads of whether a row has no colour yet.
_ROUNDS_AHEAD = 8


class Colouring(NamedTuple):
    """The rows of a matrix by colour.

    Attributes
    ----------
    order : numpy.ndarray
        Rows by colour; ascending within a colour.
    rows, places : pyopencl.array.Array
        ``order`` on the device, and the place of each row in it.
    starts : numpy.ndarray
        The first place of each colour in ``order``, and the number of rows.
    """

    order: np.ndarray[Any, Any]
    rows: cl_array.Array
    places: cl_array.Array
    starts: np.ndarray[Any, Any]


def colour_rows(structure: Structure) -> Colouring:
    """Return colours of the rows of a structure, which keeps them: no row has an entry in another row of its colour; waits.

    The colours are the same on every device.

    Parameters
    ----------
    structure : Structure
        Square, of a symmetric pattern. Entries on the diagonal do not count.
    """
    queue, indices, indptr = structure.queue, structure.indices, structure.indptr

    def colour() -> Colouring:
        """Colour the rows in rounds, and sort them by colour."""
        chain, n = Chain(queue, indices, indptr), indptr.size - 1
        built, _ = chain.build(Colour(work_group_of(chain.device), name_of(indptr.dtype)))
        before, after = (allocate(queue, "colours", n, np.dtype(np.int32)) for _ in range(2))
        waiting = chain.scratch(1, np.int32)
        chain.fill(before, -1, n)
        is_waiting = n > 0
        while is_waiting:
            for _ in range(_ROUNDS_AHEAD):
                chain.fill(waiting, 0, 1)
                chain.launch_spread(built, n, indptr, indices, before, after, waiting)
                before, after = after, before
            is_waiting = bool(chain.read(waiting, 1)[0])
        chain.finish(before)
        colours = copy_to_host(before, queue)
        starts = np.concatenate([[0], np.cumsum(np.bincount(colours))])
        # NumPy sorts integers of 8 or 16 bits by radix.
        order = np.argsort(colours.astype(np.min_scalar_type(starts.size)), kind="stable").astype(indptr.dtype)
        places = np.empty_like(order)
        places[order] = np.arange(n, dtype=order.dtype)
        on_device = (copy_to_device(queue, "rows by colour", order), copy_to_device(queue, "places of rows", places))
        queue.finish()  # operations on other queues read the rows
        return Colouring(order, *on_device, starts)

    return structure.get_plan(Colouring, colour)
