"""Moves entries of a vector over ranks to the ranks that have them in another division."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.plain import door
from clsparse_py._distributed.border import copy_positions
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.halo import MAX_EXCHANGES, Halo
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain

__all__ = ["move_entries"]

#: The kept exchanges of entries, by communicator and by the pair of the vector's division before and after.
_kept: weakref.WeakKeyDictionary[Communicator, dict[tuple[Division, Division], _Redivision]] = weakref.WeakKeyDictionary()


class _Redivision:
    """The exchange that takes entries from one division of a vector to another. Its constructor is collective."""

    def __init__(self, comm: Communicator, before: Division, after: Division, queue: cl.CommandQueue) -> None:
        own, new = before.part(comm.rank), after.part(comm.rank)
        rows = np.arange(new.start, new.stop, dtype=np.int64)
        is_own = (rows >= own.start) & (rows < own.stop)
        self._stays = rows[is_own] - own.start
        # Entries of other ranks stand before and behind the entries that stay.
        self._first = int(np.count_nonzero(rows < own.start))
        self._n = rows.size
        self._halo = Halo(comm, before, rows[~is_own], queue)
        # Places of the entries that stay, on the device, by the strides and columns of this rank's array.
        self._places: dict[tuple[tuple[int, ...], int], cl_array.Array] = {}

    @door()
    def __call__(self, own: cl_array.Array) -> cl_array.Array:
        """Return this rank's entries of a vector in the new division; ``own`` are its entries in the old one. Collective."""
        columns, item = own.shape[1:], own.dtype.itemsize
        width = int(np.prod(columns))
        received = self._halo.fetch(own)
        queue: Any = received.queue
        result = allocate(queue, "x", (self._n, *columns), own.dtype)
        if not result.size:
            return result
        chain = Chain(queue, received, own)
        first, stays = self._first * width, self._stays.size * width
        if stays:
            steps = tuple(stride // item for stride in own.strides)
            places = self._places.get((steps, width))
            if places is None:
                rows = self._stays * steps[0]
                by_entry = (rows[:, None] + np.arange(width) * steps[1]).reshape(-1) if columns else rows
                places = self._places[steps, width] = copy_positions(queue, "x", by_entry)
            kept = chain.scratch(stays, own.dtype)
            enqueue_permute(chain, places, own, kept, stays)
            chain.copy(result, kept, stays, first)
        chain.copy(result, received, first)
        chain.copy(result, received, received.size - first, first + stays, first)
        chain.finish(result)
        return result


def move_entries(own: cl_array.Array, comm: Communicator, before: Division, after: Division) -> cl_array.Array:
    """Return this rank's entries of a vector in another division; ranks exchange entries. Collective.

    Parameters
    ----------
    own : pyopencl.array.Array
        This rank's entries, of one or two dimensions.
    comm : Communicator
    before, after : Division
        The division of the vector, and the one that is asked for, of as many entries.
    """
    pairs = _kept.setdefault(comm, {})
    redivision = pairs.get((before, after))
    if redivision is None:
        queue: Any = own.queue
        with comm.together():
            redivision = _Redivision(comm, before, after, queue)
        if len(pairs) == MAX_EXCHANGES:
            del pairs[next(iter(pairs))]
        pairs[before, after] = redivision
    return redivision(own)
