"""Ranks that are processes of MPI. mpi4py is imported when a communicator is made."""

from __future__ import annotations

import importlib
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py.distributed.communicator import Communicator, Counter, Exchange, RankError, check_time_limit
from clsparse_py.distributed.places import Place, place_of_host_rank

__all__ = ["MpiCommunicator", "world"]

#: Tests before a wait lets others have the core between two, tests before it rests, and how long it rests: ranks may share cores.
_TESTS, _YIELDS, _REST = 200, 1000, 2e-5
_EXCHANGE, _OBJECTS, _NOTICE = 1, 2, 3


def _mpi() -> Any:
    """Return mpi4py's module; the error says what to install."""
    advice = 'pip install "clsparse_py[mpi]" takes the MPI of the system, "clsparse_py[mpi-wheel]" brings one'
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(f"ranks by MPI need mpi4py ({error}): {advice}", name="mpi4py") from error
    except RuntimeError as error:  # mpi4py's wheel, where there is no library of MPI
        raise ImportError(f"mpi4py finds no MPI ({str(error).splitlines()[0]}): {advice}", name="mpi4py") from error


def world(time_limit: float = 300.0, queue: cl.CommandQueue | None = None) -> MpiCommunicator:
    """Return the communicator of all processes that were started together by ``mpiexec``.

    Parameters
    ----------
    time_limit : float
        Seconds that any wait for other ranks may take.
    queue : pyopencl.CommandQueue, optional
        Of this rank's device. By default the ranks of a host take its devices in turns, those that are like the one that
        `clsparse_py.default_queue` has; of a CPU alone each takes an equal share of the cores.

    Raises
    ------
    ImportError
        mpi4py, or MPI itself, is missing; the message says what to install.
    ValueError
        The ranks run different versions of the package.

    Examples
    --------
    One process alone is a rank, too:

    >>> from clsparse_py import distributed
    >>> comm = distributed.world()  # doctest: +SKIP
    >>> comm.rank, comm.size  # doctest: +SKIP
    (0, 1)
    """
    limit = check_time_limit(time_limit)
    return MpiCommunicator(_mpi().COMM_WORLD, limit, queue)


class MpiCommunicator(Communicator):
    """The ranks of a communicator of mpi4py, of which this makes a copy.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    time_limit : float
        Seconds that any wait may take.
    queue : pyopencl.CommandQueue, optional
        Of this rank's device.

    Raises
    ------
    ValueError
        The ranks run different versions of the package.

    Examples
    --------
    >>> from clsparse_py import distributed
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> distributed.MpiCommunicator(MPI.COMM_SELF).size  # doctest: +SKIP
    1
    """

    def __init__(self, comm: Any, time_limit: float = 300.0, queue: cl.CommandQueue | None = None) -> None:
        self._mpi = _mpi()
        self.time_limit = check_time_limit(time_limit)
        # Notices of failures have one of their own, so that they meet no other message.
        self._comm, self._notices = comm.Dup(), comm.Dup()
        self.rank, self.size = int(comm.rank), int(comm.size)
        self.sent = Counter()
        self._place = None if queue is None else Place(queue.context, queue)
        self._lost: str | None = None
        self._kept: list[Any] = []  # requests and buffers that MPI may still use
        self.require_one_version()

    @property
    @override
    def queue(self) -> cl.CommandQueue:
        if self._place is None:
            on_host = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
            self._place = place_of_host_rank(on_host.rank, on_host.size)
            on_host.Free()
        return self._place.queue

    # ---- waits

    def until(self, done: Callable[[], bool]) -> None:
        """Wait until something is done, until a rank fails, or until the time limit is over."""
        self.require_whole()
        end = time.monotonic() + self.time_limit
        tests = 0
        while not done():
            tests += 1
            if tests < _TESTS:
                continue
            if self._notices.iprobe(source=self._mpi.ANY_SOURCE, tag=_NOTICE):
                rank, said = self._notices.recv(source=self._mpi.ANY_SOURCE, tag=_NOTICE)
                self._lost = f"rank {rank} failed: {said}"
                raise RankError(self._lost)
            if time.monotonic() > end:
                self._lost = f"rank {self.rank} waited {self.time_limit:g} s for other ranks"
                raise TimeoutError(self._lost)
            time.sleep(0 if tests < _YIELDS else _REST)

    def require_whole(self) -> None:
        """Raise a RankError if a rank has failed."""
        if self._lost is not None:
            raise RankError(f"the ranks are no longer in step: {self._lost}")

    def finish(self, requests: list[Any], *buffers: Any) -> None:
        """Wait for requests, whose buffers are kept if that fails."""
        try:
            self.until(lambda: bool(self._mpi.Request.Testall(requests)))
        except self._mpi.Exception as error:  # of MPI's libraries that see that a process has ended
            self._kept += [requests, *buffers]
            self._lost = f"MPI says {error}"
            raise RankError(self._lost) from error
        except BaseException:
            self._kept += [requests, *buffers]
            raise

    @override
    def fail(self, error: BaseException) -> None:
        said = f"{type(error).__name__}: {error}"
        if self._lost is None:
            self._lost = f"rank {self.rank} failed: {said}"
            others = (rank for rank in range(self.size) if rank != self.rank)
            self._kept += [self._notices.isend((self.rank, said), rank, tag=_NOTICE) for rank in others]

    def abort(self) -> None:
        """End all processes: for programs whose other ranks could do nothing without this one."""
        self._mpi.COMM_WORLD.Abort(1)

    # ---- messages

    @override
    def alltoall(self, objects: Sequence[Any]) -> list[Any]:
        self.require_whole()
        packed = [b"" if each is None or rank == self.rank else pickle.dumps(each, 5) for rank, each in enumerate(objects)]
        sizes, coming = np.array([len(each) for each in packed], np.int64), np.empty(self.size, np.int64)
        self.finish([self._comm.Ialltoall(sizes, coming)], sizes, coming)
        received = {rank: bytearray(int(coming[rank])) for rank in range(self.size) if coming[rank]}
        requests = [self._comm.Irecv([each, self._mpi.BYTE], rank, _OBJECTS) for rank, each in received.items()]
        requests += [self._comm.Isend([each, self._mpi.BYTE], rank, _OBJECTS) for rank, each in enumerate(packed) if each]
        self.finish(requests, packed, received)
        found = [pickle.loads(received[rank]) if rank in received else None for rank in range(self.size)]
        found[self.rank] = objects[self.rank]
        return found

    @override
    def stacked(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self.require_whole()
        mine = np.ascontiguousarray(values)
        found = np.empty((self.size, *values.shape), mine.dtype)
        sent, came = mine.reshape(-1).view(np.uint8), found.reshape(-1).view(np.uint8)
        if sent.size:
            self.finish([self._comm.Iallgather([sent, self._mpi.BYTE], [came, sent.size, self._mpi.BYTE])], sent, came)
        return found

    @override
    def exchange(self, sends: Mapping[int, np.ndarray[Any, Any]], receives: Mapping[int, np.ndarray[Any, Any]]) -> Exchange:
        return _MpiExchange(self, self._comm, self._mpi, sends, receives)


class _MpiExchange(Exchange):
    """Persistent requests."""

    def __init__(
        self,
        comm: MpiCommunicator,
        of_mpi: Any,
        mpi: Any,
        sends: Mapping[int, np.ndarray[Any, Any]],
        receives: Mapping[int, np.ndarray[Any, Any]],
    ) -> None:
        super().__init__(sends, receives, comm.sent)
        self._comm, self._mpi = comm, mpi
        self._requests = [of_mpi.Recv_init([_bytes(each), mpi.BYTE], rank, _EXCHANGE) for rank, each in receives.items()]
        self._requests += [of_mpi.Send_init([_bytes(each), mpi.BYTE], rank, _EXCHANGE) for rank, each in sends.items()]

    @override
    def _start(self) -> None:
        # After a failure requests may still be under way, and MPI starts none of these.
        self._comm.require_whole()
        if self._requests:
            self._mpi.Prequest.Startall(self._requests)

    @override
    def wait(self) -> None:
        if self._requests:
            self._comm.finish(self._requests, self.sends, self.receives)

    def __del__(self) -> None:
        if not self._mpi.Is_finalized():
            for request in self._requests:
                request.Free()


def _bytes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.reshape(-1).view(np.uint8)
