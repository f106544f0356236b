"""Values of x that a rank's rows need of other ranks, fetched; and sums that belong to other ranks' entries, brought home."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._distributed.border import Border, copy_positions
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._memory.memory import allocate, allocate_pinned, submit
from clsparse_py._memory.pool import side_queue
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain

__all__ = ["Halo"]

#: Ranges of entries, by the rank that they come from or go to.
_Ranges = dict[int, slice]
#: Kinds of vectors, by dtype and columns, at most for which a halo keeps buffers.
_MAX_EXCHANGES = 16

_Cached = TypeVar("_Cached")


class Halo:
    """The entries of x that a rank receives from, and sends to, each neighbour. Its constructor is collective.

    Parameters
    ----------
    comm : Communicator
    division : Division
        Of the entries of x.
    columns : numpy.ndarray of int64
        The entries of other ranks that this one needs, ascending.
    queue : pyopencl.CommandQueue
        Of this rank's device.

    Attributes
    ----------
    columns : numpy.ndarray of int64
    sources, targets : dict of int to slice
        The ranks that entries come from, with their places in `columns`; those that entries go to, with their places in
        `sent`.
    sent : numpy.ndarray of int64
        The own entries that are sent, numbered from 0, for one target after another.
    """

    def __init__(self, comm: Communicator, division: Division, columns: np.ndarray[Any, Any], queue: cl.CommandQueue) -> None:
        self._comm, self._queue = comm, queue
        self._context = queue.context
        self.columns = columns
        cuts = np.searchsorted(columns, division.boundaries)
        self.sources = _split_ranges(np.diff(cuts))
        begin = division.part(comm.rank).start
        requests = [columns[cuts[rank] : cuts[rank + 1]] if rank in self.sources else None for rank in range(comm.size)]
        requested = [np.zeros(0, np.int64) if request is None else request - begin for request in comm.alltoall(requests)]
        self.targets = _split_ranges(np.array([request.size for request in requested]))
        self.sent = np.concatenate(requested).astype(np.int64, copy=False)
        self.n_own = division.length(comm.rank)
        self._kept: dict[Hashable, Any] = {}
        self._adding: tuple[csr_array, Border] | None = None

    @property
    def silent(self) -> bool:
        """Whether this rank neither needs nor has entries of use to others: it has no message to send or wait for."""
        return not self.sources and not self.targets

    def fetching(self, x: cl_array.Array) -> Fetch:
        """Return the `Fetch` for vectors of x's dtype and strides, cached with its buffers; x has this rank's own entries."""
        key = "fetch", x.dtype, x.shape[1:], x.strides
        return self._get_cached(key, lambda: Fetch(self._comm, self._queue, self, x))

    def fetch(self, x: cl_array.Array) -> cl_array.Array:
        """Return the entries of other ranks' x that this rank needs; a later call overwrites them."""
        fetching = self.fetching(x)
        fetching.start(x)
        return fetching.finish()

    def returning(self, dtype: np.dtype[Any], columns: tuple[int, ...]) -> Return:
        """Return the `Return` for sums of a dtype and number of columns, cached with its buffers."""
        key = "return", dtype, columns
        return self._get_cached(key, lambda: Return(self._comm, self._queue, self, dtype, columns))

    def _get_cached(self, key: Hashable, make: Callable[[], _Cached]) -> _Cached:
        """Return the exchange cached under a key, or make it; the oldest one is dropped if there are too many."""
        cached: _Cached | None = self._kept.get(key)
        if cached is None:
            if len(self._kept) == _MAX_EXCHANGES:
                del self._kept[next(iter(self._kept))]
            cached = self._kept[key] = make()
        return cached

    def add(self, received: cl_array.Array, y: cl_array.Array) -> None:
        """Enqueue adding what neighbours sent to the own entries, in the order of ranks: by a product of a matrix of ones."""
        n = self.sent.size
        if n:
            if self._adding is None:
                entries = (np.ones(n, np.bool_), (self.sent, np.arange(n)))
                ones_by_row = csr_array(scipy.sparse.csr_array(entries, shape=(self.n_own, n)), queue=self._queue)
                self._adding = ones_by_row, Border(ones_by_row)
            ones, border = self._adding
            border.add(ones, received, y)


def _split_ranges(lengths: np.ndarray[Any, Any]) -> _Ranges:
    """Return consecutive ranges of the given lengths, by rank; empty ranges are left out."""
    ends = np.cumsum(lengths)
    return {rank: slice(int(end - n), int(end)) for rank, (n, end) in enumerate(zip(lengths, ends, strict=True)) if n}


class _Staged:
    """A reusable exchange: values are copied from the device, sent as messages, and received values copied to the device.

    Parameters
    ----------
    comm : Communicator
    queue : pyopencl.CommandQueue
    leaving, coming : dict of int to slice
        Rows that go to and come from each rank.
    n_leaving, n_coming : int
        How many.
    dtype : numpy.dtype
    more : tuple of int
        The lengths of further axes.
    what : str
        What the values are.
    """

    def __init__(
        self,
        comm: Communicator,
        queue: cl.CommandQueue,
        leaving: _Ranges,
        coming: _Ranges,
        sizes: tuple[int, int],
        dtype: np.dtype[Any],
        columns: tuple[int, ...],
        subject: str,
    ) -> None:
        self._queue, self._side = queue, side_queue(queue)
        self._out, self._in = (_allocate_pinned_array(queue, (n, *columns), dtype) for n in sizes)
        # Always the same array object, on the queue that reads it: products recognise known operands by identity.
        self._came = allocate(queue, "the halo", (sizes[1], *columns), dtype)
        self._exchange = comm.exchange(
            {rank: self._out[part] for rank, part in leaving.items()},
            {rank: self._in[part] for rank, part in coming.items()},
            f"{subject} of {dtype}" + (f" in {columns[0]} columns" if columns else ""),
        )
        self._before: list[cl.Event] = []
        self._left: cl.Event | None = None
        self._arrived: cl.Event | None = None

    def _begin(self, operand: cl_array.Array) -> Chain:
        """Return a chain on the operand's queue, for what is done there before values leave."""
        if operand.queue is not None and operand.queue is not self._queue:
            self._queue.finish()  # where what came before may still be read
            self._queue = operand.queue
            self._came = self._came.with_queue(self._queue)
        return Chain(self._queue, operand)

    def _send(self, chain: Chain, leaving: cl_array.Array | None) -> None:
        """Enqueue the copy of values to the host on a second queue, after the commands that the operand's queue has by now."""
        if chain.events:
            self._before = chain.events[-1:]
        else:
            self._before = [*(chain.wait_for or ()), cl.enqueue_marker(self._queue)]
        self._queue.flush()
        if leaving is not None:
            named: dict[str, Any] = {"is_blocking": False, "wait_for": self._before}
            self._left = submit("the halo", cl.enqueue_copy, self._side, self._out, leaving.base_data, **named)
            self._side.flush()

    def finish(self) -> cl_array.Array:
        """Exchange, and return what came, on the device; the main queue waits for it there."""
        if self._left is not None:
            self._left.wait()
        if self._arrived is not None:
            self._arrived.wait()  # of the time before; the host's copy is written to
        self._exchange.start()
        self._exchange.wait()
        if self._came.size:
            # Earlier commands still read the old halo; the marker orders them before this copy.
            named: dict[str, Any] = {"is_blocking": False, "wait_for": self._before}
            self._arrived = submit("the halo", cl.enqueue_copy, self._side, self._came.base_data, self._in, **named)
            self._side.flush()
            cl.enqueue_barrier(self._queue, wait_for=[self._arrived])
        return self._came


class Fetch(_Staged):
    """Fetches the halo of x."""

    def __init__(self, comm: Communicator, queue: cl.CommandQueue, halo: Halo, x: cl_array.Array) -> None:
        columns = x.shape[1:]
        super().__init__(
            comm, queue, halo.targets, halo.sources, (halo.sent.size, halo.columns.size), x.dtype, columns, "entries"
        )
        steps = [stride // x.dtype.itemsize for stride in x.strides]
        positions = halo.sent * steps[0]
        if columns:
            positions = positions[:, None] + np.arange(columns[0]) * steps[1]
        self._places = copy_positions(queue, "the halo", positions.reshape(-1))
        self._gathered = allocate(queue, "the halo", self._out.shape, x.dtype)

    @door()
    def start(self, x: cl_array.Array) -> None:
        """Enqueue gathering what is sent, and its way to the host."""
        chain = self._begin(x)
        if self._out.size:
            enqueue_permute(chain, self._places, x, self._gathered, self._out.size)
        self._send(chain, self._gathered if self._out.size else None)


class Return(_Staged):
    """Brings sums to the ranks whose entries they belong to."""

    def __init__(
        self, comm: Communicator, queue: cl.CommandQueue, halo: Halo, dtype: np.dtype[Any], columns: tuple[int, ...]
    ) -> None:
        super().__init__(comm, queue, halo.sources, halo.targets, (halo.columns.size, halo.sent.size), dtype, columns, "sums")

    def start(self, sums: cl_array.Array) -> None:
        """Enqueue the way of the sums to the host; they are kept by the caller until `finish` returns."""
        self._send(self._begin(sums), sums if self._out.size else None)


def _allocate_pinned_array(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array in pinned memory of the host, for messages."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    return allocate_pinned(queue, n_bytes).view(dtype).reshape(shape)
