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
from clsparse_py._primitives.permute import enqueue_invert
from clsparse_py._primitives.radix_sort import enqueue_sort_by_key
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host

__all__ = ["Colouring", "colour_rows"]

#: Rounds of a colouring between two reads of whether a row has no colour yet.
_ROUNDS_AHEAD = 8


class Colouring(NamedTuple):
    """The rows of a matrix by colour.

    Attributes
    ----------
    rows : pyopencl.array.Array
        Rows by colour; ascending within a colour.
    places : pyopencl.array.Array
        The place of each row in ``rows``.
    starts : numpy.ndarray
        The first place of each colour in ``rows``, and the number of rows.
    """

    rows: cl_array.Array
    places: cl_array.Array
    starts: np.ndarray[Any, Any]

    @property
    def order(self) -> np.ndarray[Any, Any]:
        """A copy of `rows` on the host."""
        return copy_to_host(self.rows)


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
        chain, n, index = Chain(queue, indices, indptr), indptr.size - 1, indptr.dtype
        built, _ = chain.build(Colour(work_group_of(chain.device), name_of(index)))
        before, after = (chain.scratch(n, index) for _ in range(2))
        # Whether a row has no colour yet, and the number of colours.
        state = chain.scratch(2, np.int32)
        chain.fill(before, -1, n)
        chain.fill(state, 0, 2)
        is_waiting, count = n > 0, 0
        while is_waiting:
            for rounds_left in range(_ROUNDS_AHEAD, 0, -1):
                if rounds_left == 1:
                    chain.fill(state, 0, 1)
                chain.launch_spread(built, n, indptr, indices, before, after, state)
                before, after = after, before
            is_waiting, count = chain.read(state, 2).tolist()
        rows, places = (allocate(queue, purpose, n, index) for purpose in ("rows by colour", "places of rows"))
        pointers = chain.scratch(count + 1, index)
        enqueue_sort_by_key(chain, before, n, count, n_items=n, sorted_items=rows, pointers=pointers)
        enqueue_invert(chain, rows, places)
        starts = chain.read(pointers, count + 1)
        chain.finish(rows, places)
        queue.finish()  # operations on other queues read the rows
        return Colouring(rows, places, starts)

    return structure.get_plan(Colouring, colour)
