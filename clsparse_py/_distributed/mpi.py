"""Communication between ranks by MPI; mpi4py is imported with the first communicator."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import pickle
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._distributed.communicator import Communicator, Counter, Exchange, RankError, check_time_limit, describe_error
from clsparse_py._distributed.places import Place, assign_place
from clsparse_py._ground.records import dataclass

__all__ = ["MpiCommunicator", "world"]

#: MPI tag of messages that carry pickled Python objects.
_OBJECTS = 1
#: MPI tag of the notices by which a rank tells the others of its error or its end.
_NOTICE = 2
#: First MPI tag of exchanges of buffers; an exchange's tag follows from its note, a text.
_EXCHANGE = 3
#: Number of MPI tags that exchanges of buffers use; MPI promises 32,768 tags in all.
_TAGS = 1 << 14
#: Bytes of a collective call's first message: 8 of a checksum of the call's note (a text), the others of the rank's values.
_LENGTH = 256


@dataclass(frozen=True)
class _Patience:
    """The numbers by which a rank waits for other ranks, which may share its core.

    Attributes
    ----------
    tests : int
        Tests of the condition after which the rank yields its core between tests.
    yields : int
        Tests of the condition after which the rank sleeps between tests.
    sleep : float
        Seconds of a sleep.
    grace : float
        Seconds for messages of a rank that has ended.
    """

    tests: int = 200
    yields: int = 1000
    sleep: float = 2e-5
    grace: float = 1.0


#: How a rank waits for MPI messages: the numbers of tests before it yields its core and before it sleeps, the seconds of a sleep,
#: and the seconds that it still waits for messages after a rank has ended.
_PATIENCE = _Patience()


def _import_mpi() -> Any:
    """Return the module ``mpi4py.MPI``; its ImportError names the packages to install."""
    advice = 'pip install "clsparse_py[mpi]" takes the MPI of the system, "clsparse_py[mpi-wheel]" brings one'
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(f"ranks by MPI need mpi4py ({error}): {advice}", name="mpi4py") from error
    except RuntimeError as error:  # raised by mpi4py's wheel where no MPI library is installed
        raise ImportError(f"mpi4py finds no MPI ({str(error).splitlines()[0]}): {advice}", name="mpi4py") from error


#: Environment variables by which launchers say the number of MPI processes: for each the variable of the process's rank, without
#: which the number is ignored (Slurm sets it also for processes that srun did not start), and the launcher's name.
_WORLD_SIZES = {
    "PMI_SIZE": ("PMI_RANK", "MPICH or Intel MPI"),
    "OMPI_COMM_WORLD_SIZE": ("OMPI_COMM_WORLD_RANK", "Open MPI"),
    "SLURM_STEP_NUM_TASKS": ("SLURM_PROCID", "Slurm"),
}


def _require_size(size: int, library: str, expect: int | None) -> None:
    """Raise a RuntimeError if MPI's world has another size than ``expect`` or, if None, than all launchers' variables say."""
    if expect is not None:
        said = {f"expect={expect}": int(expect) == size}
    else:
        said = {
            f"{name}={os.environ[name]} ({launcher})": int(os.environ[name]) == size
            for name, (beside, launcher) in _WORLD_SIZES.items()
            if os.environ.get(name, "").isdigit() and beside in os.environ
        }
        # PMIx says a rank alone, which may be too large for the world.
        rank = os.environ.get("PMIX_RANK", "")
        if rank.isdigit() and int(rank) >= size:
            said[f"PMIX_RANK={rank} (PMIx)"] = False
    # A launcher within a job of another launcher makes a world of its own, and leaves the variables of the outer one.
    if said and not any(said.values()):
        raise RuntimeError(
            f"MPI's world has size {size}, and {', '.join(said)} says otherwise: mpi4py has loaded {library}, maybe not the "
            "launcher's library. Set MPI4PY_LIBMPI to the launcher's libmpi, or start the processes by the mpiexec of mpi4py's "
            f"library (srun: --mpi=pmi2 or --mpi=pmix); world(expect={size}) takes this world"
        )


def world(time_limit: float = 300.0, queue: cl.CommandQueue | None = None, *, expect: int | None = None) -> MpiCommunicator:
    """Return the communicator of all processes that were started together by ``mpiexec``.

    Parameters
    ----------
    time_limit : float
        Seconds that any wait for other ranks may take.
    queue : pyopencl.CommandQueue, optional
        Of this rank's device. By default the ranks of a host take its devices in turns, those that are like the one that
        `clsparse_py.default_queue` has; of a CPU alone each takes an equal share of the cores.
    expect : int, optional
        The number of processes; by default the number that the launcher says, if it says one.

    Raises
    ------
    ImportError
        mpi4py, or MPI itself, is missing; the message says what to install.
    RuntimeError
        MPI's world has another size, as it has if mpi4py loads another MPI library than the launcher's; the message names both.
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
    limit, mpi = check_time_limit(time_limit), _import_mpi()
    _require_size(int(mpi.COMM_WORLD.size), mpi.Get_library_version().splitlines()[0].strip(), expect)
    return MpiCommunicator(mpi.COMM_WORLD, limit, queue)


class MpiCommunicator(Communicator):
    """A rank's connection to the ranks of an mpi4py communicator, which is copied.

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
        self._mpi = _import_mpi()
        self.time_limit = check_time_limit(time_limit)
        # Notices of failures have an MPI communicator of their own, apart from other messages; a failure renews both.
        self._source, self.comm, self._notices = comm.Dup(), comm.Dup(), comm.Dup()
        self.rank, self.size = int(comm.rank), int(comm.size)
        self.sent = Counter()
        self._place = None if queue is None else Place(queue.context, queue)
        # The text of the failure, of this rank or another, that ended this rank's calls under way.
        self._lost: str | None = None
        # Whether this rank has told the others of its failure or end; and the text of a notice that another rank has ended.
        self._has_notified, self._ended = False, ""
        # The MPI requests that have not ended, and their buffers, which MPI may still use.
        self._held_requests: list[Any] = []
        atexit.register(self._notify_end)
        self.require_one_version()

    @property
    @override
    def queue(self) -> cl.CommandQueue:
        """The command queue of this rank's device; a device is assigned at the first use if the user gave no queue."""
        if self._place is None:
            on_host = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
            self._place = assign_place(on_host.rank, on_host.size)
            on_host.Free()
        return self._place.queue

    @override
    def shares_ranks(self, other: Communicator) -> bool:
        """Return whether another communicator connects the same ranks, in the same order."""
        alike = self._mpi.IDENT, self._mpi.CONGRUENT
        return isinstance(other, MpiCommunicator) and self._mpi.Comm.Compare(self._source, other._source) in alike

    # ---- waits

    def until(self, done: Callable[[], bool]) -> None:
        """Let this rank wait for MPI messages until ``done()`` says that they came, a rank fails, or the time limit is over.

        Raises
        ------
        RankError
            A rank failed, or has ended.
        TimeoutError
            The time limit is over.
        """
        begin, tests = time.monotonic(), 0
        noticed = begin
        while not done():
            tests += 1
            if tests < _PATIENCE.tests:
                continue
            while self._notices.iprobe(source=self._mpi.ANY_SOURCE, tag=_NOTICE):
                rank, description, has_ended = self._notices.recv(source=self._mpi.ANY_SOURCE, tag=_NOTICE)
                if has_ended:
                    # The notice of the failure that made that other rank end may still be under way.
                    self._ended, noticed = f"rank {rank} has ended", time.monotonic()
                if description is not None and self._lost is None:
                    self._lost = f"rank {rank} failed: {description}"
                    raise RankError(self._lost)
            until = begin + self.time_limit
            if time.monotonic() > (min(noticed + _PATIENCE.grace, until) if self._ended else until):
                message = f"rank {self.rank} waited {self.time_limit:g} s for other ranks"
                error = RankError(f"{self._ended}, and rank {self.rank} waits for it") if self._ended else TimeoutError(message)
                self.fail(error)
                raise error
            time.sleep(0 if tests < _PATIENCE.yields else _PATIENCE.sleep)

    def require_step(self) -> None:
        """Renew the MPI communicators with all ranks if a rank has failed, so that no call meets messages of earlier calls.

        Raises
        ------
        RankError
            A rank does not go on.
        """
        if self._lost is None:
            return
        lost, source, self._source = f"the ranks are no longer in step: {self._lost}", self._source, None
        if source is None:  # the renewal was tried before
            raise RankError(lost)
        (comm, of_comm), (notices, of_notices) = source.Idup(), source.Idup()
        try:
            self.finish([of_comm, of_notices])
        except (RankError, TimeoutError) as error:
            raise RankError(f"{lost}; {error}") from error
        self._source, self.comm, self._notices, self._lost, self._has_notified = source, comm, notices, None, False

    def finish(self, requests: list[Any], *buffers: Any, statuses: list[Any] | None = None) -> None:
        """Wait until MPI requests have ended; if the wait fails, requests and buffers are kept, as MPI may still use these."""
        try:
            self.until(lambda: bool(self._mpi.Request.Testall(requests, statuses)))
        except self._mpi.Exception as error:  # raised by MPI libraries that see that a process has ended
            self._held_requests += [requests, *buffers]
            self._lost = f"MPI says {error}"
            raise RankError(self._lost) from error
        except BaseException:
            self._held_requests += [requests, *buffers]
            raise

    @override
    def fail(self, error: BaseException) -> None:
        """Make all other ranks raise a `RankError` when they next wait, by a message to each. Not collective."""
        self._lost = self._lost or f"rank {self.rank} failed: {describe_error(error)}"
        if not self._has_notified:
            self._notify_others(describe_error(error), has_ended=False)

    def _notify_others(self, description: str | None, *, has_ended: bool) -> None:
        """Send all other ranks a notice: this rank's error, if there is one, and whether this rank has ended."""
        self._has_notified = True
        others = (rank for rank in range(self.size) if rank != self.rank)
        self._held_requests += [self._notices.isend((self.rank, description, has_ended), rank, tag=_NOTICE) for rank in others]

    def _notify_end(self) -> None:
        """Tell the other ranks, at the end of the interpreter, that this rank has ended, and the error, if an error ended it."""
        if not self._mpi.Is_finalized():
            error = getattr(sys, "last_value", None)
            self._notify_others(None if error is None or self._has_notified else describe_error(error), has_ended=True)

    def abort(self) -> None:
        """End the processes of all ranks, for programs that cannot go on without this rank."""
        self._mpi.COMM_WORLD.Abort(1)

    # ---- messages

    @override
    def alltoall(self, objects: Sequence[Any], note: str = "alltoall") -> list[Any]:
        """Send a pickled object to each other rank by MPI, and return the objects of all; see `Communicator.alltoall`."""
        packed = [b"" if packet is None or rank == self.rank else pickle.dumps(packet, 5) for rank, packet in enumerate(objects)]
        coming = self._stacked(np.array([len(packet) for packet in packed]), note)[:, self.rank]
        received = {rank: bytearray(int(coming[rank])) for rank in range(self.size) if coming[rank]}
        requests = [self.comm.Irecv([packet, self._mpi.BYTE], rank, _OBJECTS) for rank, packet in received.items()]
        requests += [self.comm.Isend([packet, self._mpi.BYTE], rank, _OBJECTS) for rank, packet in enumerate(packed) if packet]
        self.finish(requests, packed, received)
        results = [pickle.loads(received[rank]) if rank in received else None for rank in range(self.size)]
        results[self.rank] = objects[self.rank]
        return results

    @override
    def _stacked(self, values: np.ndarray[Any, Any], note: str) -> np.ndarray[Any, Any]:
        """Return the arrays of all ranks, stacked in the order of ranks, by MPI's allgather of bytes."""
        self.require_step()
        # All collective calls begin with a message of `_LENGTH` bytes: ranks in different calls meet, and see the difference.
        description, message = note.encode(), values.tobytes()
        checksum = zlib.crc32(description)
        received = self._allgather(checksum.to_bytes(8, "little") + message[: _LENGTH - 8])
        if received.view("<u8")[:, 0].tolist() != [checksum] * self.size:
            self._require_one_call([row.tobytes().rstrip(b"\0").decode(errors="replace") for row in self._allgather(description)])
        begin = 8
        if len(message) > _LENGTH - 8:
            received, begin = self._allgather(message, len(message)), 0
        strides = received.shape[1], *np.empty(values.shape, values.dtype).strides
        return np.ndarray((self.size, *values.shape), values.dtype, received, begin, strides)

    def _allgather(self, content: bytes, length: int = _LENGTH) -> np.ndarray[Any, Any]:
        """Return the bytes that all ranks give, as rows of ``length`` bytes; contents are padded with zeros, or cut."""
        message, received = content[:length].ljust(length, b"\0"), np.empty((self.size, length), np.uint8)
        self.finish([self.comm.Iallgather([message, self._mpi.BYTE], [received, length, self._mpi.BYTE])], message, received)
        return received

    @override
    def exchange(
        self, sends: Mapping[int, np.ndarray[Any, Any]], receives: Mapping[int, np.ndarray[Any, Any]], note: str = ""
    ) -> Exchange:
        """Return the exchange of buffers with neighbouring ranks by requests of MPI, as `Communicator.exchange` says."""
        return _MpiExchange(self, self._mpi, sends, receives, note)


class _MpiExchange(Exchange):
    """An exchange by persistent requests of MPI. A message's tag follows from its note, and shows a message of another kind."""

    def __init__(
        self,
        comm: MpiCommunicator,
        mpi: Any,
        sends: Mapping[int, np.ndarray[Any, Any]],
        receives: Mapping[int, np.ndarray[Any, Any]],
        note: str,
    ) -> None:
        super().__init__(sends, receives, comm.sent)
        self._comm, self._mpi, self._note, self._tag = comm, mpi, note, _EXCHANGE + zlib.crc32(note.encode()) % _TAGS
        self._prepare()

    def _prepare(self) -> None:
        """Make the exchange's persistent MPI requests, on the rank's present communicator."""
        self._of_mpi, mpi = self._comm.comm, self._mpi
        receives = ((_view_bytes(array), rank) for rank, array in self.receives.items())
        self._requests = [self._of_mpi.Recv_init([array, mpi.BYTE], rank, mpi.ANY_TAG) for array, rank in receives]
        sends = ((_view_bytes(array), rank) for rank, array in self.sends.items())
        self._requests += [self._of_mpi.Send_init([array, mpi.BYTE], rank, self._tag) for array, rank in sends]
        self._statuses = [mpi.Status() for _ in self._requests]

    @override
    def _start(self) -> None:
        """Start the exchange's persistent MPI requests, made anew if the rank's communicator was renewed."""
        self._comm.require_step()
        if self._of_mpi is not self._comm.comm:
            self._prepare()
        if self._requests:
            self._mpi.Prequest.Startall(self._requests)

    @override
    def wait(self) -> None:
        """Wait until the exchange's MPI requests have ended, and check that neighbours sent messages of the same kind."""
        if not self._requests:
            return
        try:
            self._comm.finish(self._requests, self.sends, self.receives, statuses=self._statuses)
        except BaseException as error:
            for request in self._requests[: len(self.receives)]:
                with contextlib.suppress(self._mpi.Exception):  # no message comes for the request any more
                    request.Cancel()
            if isinstance(error.__cause__, self._mpi.Exception):  # a message may have been too long
                self._require_own_kind()
            raise
        self._require_own_kind()

    def _require_own_kind(self) -> None:
        """Raise a ValueError if a neighbour's message has another tag than this exchange."""
        for source, status in zip(self.receives, self._statuses, strict=False):
            if status.tag not in (self._tag, self._mpi.ANY_TAG):
                raise self._comm.other_kind(source, self._note, "something else")

    def __del__(self) -> None:
        if not self._mpi.Is_finalized():
            for request in self._requests:
                request.Free()


def _view_bytes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view of a NumPy array as bytes."""
    return values.reshape(-1).view(np.uint8)
