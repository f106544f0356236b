"""Redistribute the values of a distributed matrix to another one's layout, such as its transposed's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._build.plain import door
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.halo import Halo
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["Numbered", "Rearranged", "gather_values", "one_after_another", "places_of"]


class Numbered:
    """A matrix over ranks with the numbers of its entries as values: a rank's own columns first, rank after rank.

    Attributes
    ----------
    matrix : csr_array
        Over the same ranks, of int64.
    division : Division
        Of the entries.
    """

    def __init__(self, A: csr_array) -> None:
        counts = A.comm.stacked(np.array(A.local.nnz + A.remote.nnz))
        self.division = Division(np.concatenate([[0], np.cumsum(counts)]))
        begin = self.division.part(A.comm.rank).start
        middle, end = begin + A.local.nnz, self.division.part(A.comm.rank).stop
        self.matrix = A.mapped(lambda part: _with_numbers(part, begin, middle), lambda part: _with_numbers(part, middle, end))


def _with_numbers(A: device_array, begin: int, end: int) -> device_array:
    """Return a matrix with consecutive numbers as the values of its entries."""
    return A.with_values(copy_to_device(A.queue, "numbers of entries", np.arange(begin, end)))


class Rearranged:
    """The values of a matrix over ranks in the order of a `Numbered`, with the messages that fetch values of other ranks.

    Parameters
    ----------
    comm : Communicator
    queue : pyopencl.CommandQueue
    division : Division
        Of the entries of the matrix.
    *numbers : pyopencl.array.Array
        For each array that is wanted, the numbers of the entries whose values it has.
    """

    def __init__(self, comm: Communicator, queue: cl.CommandQueue, division: Division, *numbers: cl_array.Array) -> None:
        own_range = division.part(comm.rank)
        host = [copy_to_host(array, queue) for array in numbers]
        every = np.concatenate(host)
        self._halo = Halo(comm, division, np.unique(every[(every < own_range.start) | (every >= own_range.stop)]), queue)
        self._places = [self._positions(queue, array, own_range) for array in host]
        self._queue = queue

    def _positions(self, queue: cl.CommandQueue, numbers: np.ndarray[Any, Any], own_range: slice) -> cl_array.Array:
        """Return the positions of values: first the rank's own ones, then the received ones."""
        outside = (numbers < own_range.start) | (numbers >= own_range.stop)
        n_own = own_range.stop - own_range.start
        return places_of(
            queue, np.where(outside, n_own + np.searchsorted(self._halo.columns, numbers), numbers - own_range.start)
        )

    def __call__(self, A: csr_array) -> list[cl_array.Array]:
        """Return the arrays for the values of a matrix of the structure."""
        values = one_after_another(self._queue, [A.local.data, A.remote.data])
        if not self._halo.silent:
            values = one_after_another(self._queue, [values, self._halo.fetch(values)])
        return [gather_values(self._queue, values, positions) for positions in self._places]


def places_of(queue: cl.CommandQueue, positions: np.ndarray[Any, Any]) -> cl_array.Array:
    """Return places in an array on the device, as kernels that move values take them."""
    wide = positions.size and positions.max() > np.iinfo(np.int32).max
    return copy_to_device(queue, "places of values", positions.astype(np.int64 if wide else np.int32))


def one_after_another(queue: cl.CommandQueue, arrays: list[cl_array.Array]) -> cl_array.Array:
    """Return arrays of one dtype one after another; if just one has entries, that one."""
    filled = [array for array in arrays if array.size]
    if len(filled) < 2:
        return filled[0] if filled else arrays[0]
    joined = allocate(queue, "values", sum(array.size for array in filled), filled[0].dtype)
    chain, begin = Chain(queue, *filled, writes=(joined,)), 0
    for array in filled:
        chain.copy(joined, array, array.size, begin)
        begin += array.size
    chain.finish(joined)
    return joined


@door()
def gather_values(queue: cl.CommandQueue, values: cl_array.Array, positions: cl_array.Array) -> cl_array.Array:
    """Return ``values[places]``."""
    gathered = allocate(queue, "values", positions.size, values.dtype)
    if positions.size:
        chain = Chain(queue, positions, values, writes=(gathered,))
        enqueue_permute(chain, positions, values, gathered, positions.size)
        chain.finish(gathered)
    return gathered
