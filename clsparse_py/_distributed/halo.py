"""The halo of a rank: entries of x that are fetched from other ranks, and sums that are returned to their ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array
from clsparse_py._build.plain import door
from clsparse_py._distributed.border import Border, copy_positions
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._memory.memory import allocate, allocate_pinned, submit
from clsparse_py._memory.pool import side_queue
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain

__all__ = ["MAX_EXCHANGES", "Halo", "Staged", "split_ranges"]

#: The type of ranges of entries, by the rank that sends or receives the entries.
_Ranges = dict[int, slice]
#: Most exchanges of messages that a halo caches with their buffers: one for each direction, dtype, column count and strides.
MAX_EXCHANGES = 16

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
        The ranks that send entries, with the ranges of the entries in `columns`; the ranks that receive entries, with the
        ranges of the entries in `sent`.
    sent : numpy.ndarray of int64
        The own entries that are sent, numbered from 0, for one target after another.
    """

    def __init__(self, comm: Communicator, division: Division, columns: np.ndarray[Any, Any], queue: cl.CommandQueue) -> None:
        self._comm, self._queue = comm, queue
        self._context = queue.context
        self.columns = columns
        cuts = np.searchsorted(columns, division.boundaries)
        self.sources = split_ranges(np.diff(cuts))
        begin = division.part(comm.rank).start
        requests = [columns[cuts[rank] : cuts[rank + 1]] if rank in self.sources else None for rank in range(comm.size)]
        requested = [np.zeros(0, np.int64) if request is None else request - begin for request in comm.alltoall(requests)]
        self.targets = split_ranges(np.array([request.size for request in requested]))
        self.sent = np.concatenate(requested).astype(np.int64, copy=False)
        self.n_own = division.length(comm.rank)
        self._exchanges: dict[Hashable, Any] = {}
        self._adding: tuple[csr_array, Border] | None = None

    @property
    def silent(self) -> bool:
        """Whether the halo has no messages: this rank neither needs other ranks' entries nor sends its own."""
        return not self.sources and not self.targets

    def get_fetch(self, x: cl_array.Array) -> Fetch:
        """Return the `Fetch` exchange for vectors of the dtype and strides of x, this rank's entries; cached with its buffers."""
        key = "fetch", x.dtype, x.shape[1:], x.strides
        return self._get_cached(key, lambda: Fetch(self._comm, self._queue, self, x))

    def fetch(self, x: cl_array.Array) -> cl_array.Array:
        """Exchange entries of x, and return other ranks' that this rank needs, in a device buffer that later calls overwrite."""
        fetching = self.get_fetch(x)
        fetching.start(x)
        return fetching.finish()

    def get_return(self, dtype: np.dtype[Any], columns: tuple[int, ...]) -> Return:
        """Return the `Return` exchange, which sends sums for other ranks' entries to these ranks; cached by dtype and columns."""
        key = "return", dtype, columns
        return self._get_cached(key, lambda: Return(self._comm, self._queue, self, dtype, columns))

    def _get_cached(self, key: Hashable, make: Callable[[], _Cached]) -> _Cached:
        """Return the exchange of messages cached under a key, made by ``make`` if missing; a full cache then drops the oldest."""
        cached: _Cached | None = self._exchanges.get(key)
        if cached is None:
            if len(self._exchanges) == MAX_EXCHANGES:
                del self._exchanges[next(iter(self._exchanges))]
            cached = self._exchanges[key] = make()
        return cached

    def add(self, received: cl_array.Array, y: cl_array.Array) -> None:
        """Enqueue the addition of sums received from other ranks, in the order of ranks, to this rank's y."""
        n = self.sent.size
        if n:
            if self._adding is None:
                entries = (np.ones(n, np.bool_), (self.sent, np.arange(n)))
                ones_by_row = csr_array(scipy.sparse.csr_array(entries, shape=(self.n_own, n)), queue=self._queue)
                self._adding = ones_by_row, Border(ones_by_row)
            ones, border = self._adding
            border.add(ones, received, y)


def split_ranges(lengths: np.ndarray[Any, Any]) -> _Ranges:
    """Return by rank the consecutive ranges of entries whose lengths are given in the order of ranks; empty ones are left out."""
    ends = np.cumsum(lengths)
    return {rank: slice(int(end - n), int(end)) for rank, (n, end) in enumerate(zip(lengths, ends, strict=True)) if n}


class Staged:
    """A reusable exchange: values are copied from the device, sent as messages, and received values copied to the device.

    Parameters
    ----------
    comm : Communicator
    queue : pyopencl.CommandQueue
    leaving, coming : dict of int to slice
        The ranges of rows that are sent to, and received from, a rank.
    sizes : tuple of int
        The numbers of rows that are sent and received.
    dtype : numpy.dtype
    columns : tuple of int
        The number of columns, or nothing for a vector.
    subject : str
        The name of the values, for messages.
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
        # The received entries are in the same array object each time: products recognise known operands by identity.
        self._received = allocate(queue, "the halo", (sizes[1], *columns), dtype)
        self._exchange = comm.exchange(
            {rank: self._out[part] for rank, part in leaving.items()},
            {rank: self._in[part] for rank, part in coming.items()},
            f"{subject} of {dtype}" + (f" in {columns[0]} columns" if columns else ""),
        )
        self._earlier_events: list[cl.Event] = []
        self._leave_event: cl.Event | None = None
        self._arrival_event: cl.Event | None = None
        self._values: cl_array.Array | None = None

    def _begin(self, operand: cl_array.Array) -> Chain:
        """Move the exchange to the operand's queue, and return a chain there for kernels that run before the copy to the host."""
        if operand.queue is not None and operand.queue is not self._queue:
            self._queue.finish()  # earlier commands there may still read the received entries
            self._queue = operand.queue
            self._received = self._received.with_queue(self._queue)
        return Chain(self._queue, operand)

    def _send(self, chain: Chain, leaving: cl_array.Array | None) -> None:
        """Enqueue the copy of ``leaving``, if any, to the host on a second queue, after the main queue's commands so far."""
        if chain.events:
            self._earlier_events = chain.events[-1:]
        else:
            self._earlier_events = [*(chain.wait_for or ()), cl.enqueue_marker(self._queue)]
        self._queue.flush()
        if leaving is not None:
            named: dict[str, Any] = {"is_blocking": False, "wait_for": self._earlier_events}
            self._leave_event = submit("the halo", cl.enqueue_copy, self._side, self._out, leaving.base_data, **named)
            self._side.flush()

    def start(self, values: cl_array.Array) -> None:
        """Enqueue the copy to the host of values that lie in the order of messages; `finish` sends the values."""
        # The copy runs on the second queue: the values' memory must not be used again before it has ended.
        self._values = values if self._out.size else None
        self._send(self._begin(values), self._values)

    def finish(self) -> cl_array.Array:
        """Exchange messages with other ranks, and return the received values on the device; the main queue waits for the copy."""
        if self._leave_event is not None:
            self._leave_event.wait()
            self._values = None
        if self._arrival_event is not None:
            self._arrival_event.wait()  # the last copy to the device still reads the host's buffer
        self._exchange.start()
        self._exchange.wait()
        if self._received.size:
            # Earlier commands may still read the values received before; `_earlier_events` orders the copy behind these commands.
            named: dict[str, Any] = {"is_blocking": False, "wait_for": self._earlier_events}
            self._arrival_event = submit("the halo", cl.enqueue_copy, self._side, self._received.base_data, self._in, **named)
            self._side.flush()
            cl.enqueue_barrier(self._queue, wait_for=[self._arrival_event])
        return self._received


class Fetch(Staged):
    """The exchange that fetches the halo's entries of x from other ranks."""

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

    @override
    @door()
    def start(self, x: cl_array.Array) -> None:
        """Enqueue the gathering of the entries of x that go to other ranks, and the copy of these entries to the host."""
        chain = self._begin(x)
        if self._out.size:
            enqueue_permute(chain, self._places, x, self._gathered, self._out.size)
        self._send(chain, self._gathered if self._out.size else None)


class Return(Staged):
    """The exchange that returns sums for the halo's entries to the ranks of the entries."""

    def __init__(
        self, comm: Communicator, queue: cl.CommandQueue, halo: Halo, dtype: np.dtype[Any], columns: tuple[int, ...]
    ) -> None:
        super().__init__(comm, queue, halo.sources, halo.targets, (halo.columns.size, halo.sent.size), dtype, columns, "sums")


def _allocate_pinned_array(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a NumPy array in pinned memory of the host, for messages."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    return allocate_pinned(queue, n_bytes).view(dtype).reshape(shape)
