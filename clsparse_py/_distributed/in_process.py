"""Communication between ranks that are threads of one process."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._distributed.communicator import Communicator, Counter, Exchange, RankError, describe_error
from clsparse_py._distributed.places import Place

__all__ = ["Hub", "ThreadCommunicator"]


class _Message:
    """A message between threads: its buffer, its note, and whether the receiver has copied the buffer."""

    __slots__ = ("note", "taken", "values")

    def __init__(self, values: np.ndarray[Any, Any], note: str) -> None:
        self.values, self.note, self.taken = values, note, False


class Hub:
    """The state that a team's threads share: one lock, posted messages, mail, and failures.

    Parameters
    ----------
    size : int
        The number of threads.
    """

    def __init__(self, size: int) -> None:
        self.size, self.beginnings = size, 0
        self.changed = threading.Condition()
        self.begin()

    def begin(self) -> None:
        """Forget all messages and failures of the team's ranks, which begin a new task."""
        self.beginnings += 1
        self.back: set[int] = set()  # the ranks that know of the failure, and go on
        self.failure: tuple[int, str] | None = None
        self.ended: set[int] = set()
        self.posted: dict[int, dict[int, Any]] = {}  # by the number of the round and the rank
        self.taken: dict[int, int] = {}
        self.mail: dict[tuple[int, int], deque[_Message]] = {
            (source, target): deque() for source in range(self.size) for target in range(self.size)
        }

    def fail(self, rank: int, error: BaseException) -> None:
        """Note the first failure of a rank, or an interrupt of the program (rank -1), and end all ranks' waits."""
        with self.changed:
            if self.failure is None:
                self.failure = rank, describe_error(error)
            self.changed.notify_all()

    def begin_again(self, rank: int, seconds: float) -> None:
        """Wait, after a failure, until all ranks know of it and begin a new task; RankError if one ends or ``seconds`` pass."""
        with self.changed:
            self.back.add(rank)
            if len(self.back) == self.size:
                self.begin()
                self.changed.notify_all()
                return
            number = self.beginnings
            # The failure of "rank -1" is an interrupt of the program, after which the ranks do not go on.
            if self.failure is None or self.failure[0] >= 0:
                self.changed.wait_for(lambda: self.beginnings > number or self.ended, seconds)
            if self.beginnings == number:
                raise RankError(f"the ranks are no longer in step: {self.failure and self.failure[1]}")

    def end(self, rank: int) -> None:
        """Note that a rank has ended its task; other ranks' waits for messages from that rank end with an error."""
        with self.changed:
            self.ended.add(rank)
            self.changed.notify_all()

    def wait(self, rank: int, other: int, is_ready: Callable[[], bool], seconds: float) -> None:
        """Let a rank wait at most ``seconds`` for a condition that the rank ``other`` brings about; the caller holds the lock.

        Raises
        ------
        RankError
            A rank failed, or the other rank has ended.
        TimeoutError
            The seconds are over.
        """

        def is_over() -> bool:
            """Return whether the wait ends: its condition holds, a rank failed, or the other rank has ended."""
            return self.failure is not None or is_ready() or other in self.ended

        in_time = is_ready() or self.changed.wait_for(is_over, seconds)
        if is_ready():
            return
        if self.failure is not None:
            failed, description = self.failure
            raise RankError(
                f"rank {failed} failed: {description}" if failed >= 0 else f"the program was interrupted: {description}"
            )
        if not in_time:
            raise TimeoutError(f"rank {rank} waited {seconds:g} s for rank {other}")
        raise RankError(f"rank {other} has ended, and rank {rank} waits for it")


class ThreadCommunicator(Communicator):
    """A rank that is a thread of a team; `clsparse_py.distributed.over` makes teams.

    Parameters
    ----------
    hub : Hub
        The state that the ranks share.
    rank : int
    place : Place
        The queue of this rank's device.
    time_limit : float
        Seconds that any wait may take.
    """

    def __init__(self, hub: Hub, rank: int, place: Place, time_limit: float) -> None:
        self._hub, self.rank, self.size, self.time_limit = hub, rank, hub.size, time_limit
        self._place = place
        self.sent = Counter()
        self.begin()

    @property
    @override
    def queue(self) -> cl.CommandQueue:
        """The command queue of the place that this rank's thread was given."""
        return self._place.queue

    def begin(self) -> None:
        """Count this rank's collective calls from 0 again, as all ranks do at the beginning of a task."""
        self._round, self._is_lost = 0, False

    def require_step(self) -> None:
        """Begin a new task together with all other ranks if this rank failed or was told of a failure; else do nothing."""
        if self._is_lost:
            self._hub.begin_again(self.rank, self.time_limit)
            self.begin()

    def wait(self, other: int, is_ready: Callable[[], bool]) -> None:
        """Wait for a condition that the rank ``other`` brings about; tell all ranks of an error. The caller holds the lock."""
        try:
            self._hub.wait(self.rank, other, is_ready, self.time_limit)
        except (RankError, TimeoutError) as error:
            self.fail(error)
            raise

    def _post(self, message: Any, note: str, combine: Callable[[list[Any]], Any]) -> Any:
        """Post this rank's message of a collective call, wait for all ranks' messages, and return ``combine`` of the messages."""
        self.require_step()
        hub, number = self._hub, self._round
        self._round += 1
        with hub.changed:
            posts = hub.posted.setdefault(number, {})
            posts[self.rank] = message, note
            hub.changed.notify_all()
            for other in range(self.size):
                self.wait(other, lambda other=other: other in posts)  # type: ignore[misc]
        received, notes = zip(*(posts[rank] for rank in range(self.size)), strict=True)
        combination = combine(list(received)) if len(set(notes)) == 1 else None
        with hub.changed:
            hub.taken[number] = hub.taken.get(number, 0) + 1
            if hub.taken[number] == self.size:
                del hub.posted[number], hub.taken[number]
        self._require_one_call(notes)
        return combination

    @override
    def alltoall(self, objects: Sequence[Any], note: str = "alltoall") -> list[Any]:
        """Send a copy of an object to each other rank's thread, and return the objects of all; see `Communicator.alltoall`."""
        # The sending rank copies its objects, as it may change them after the call of `alltoall`.
        copies = [entry if rank == self.rank else copy.deepcopy(entry) for rank, entry in enumerate(objects)]
        received: list[Any] = self._post(copies, note, lambda posts: [entry[self.rank] for entry in posts])
        return received

    @override
    def _stacked(self, values: np.ndarray[Any, Any], note: str) -> np.ndarray[Any, Any]:
        """Return the arrays of all ranks, stacked in the order of ranks, by the hub that the ranks' threads share."""
        rows: np.ndarray[Any, Any] = self._post(np.array(values), note, np.stack)
        return rows

    @override
    def exchange(
        self, sends: Mapping[int, np.ndarray[Any, Any]], receives: Mapping[int, np.ndarray[Any, Any]], note: str = ""
    ) -> Exchange:
        """Return the exchange of buffers with neighbouring ranks' threads, as `Communicator.exchange` says."""
        return _ThreadExchange(self, self._hub, sends, receives, note)

    @override
    def fail(self, error: BaseException) -> None:
        """Make all other ranks' threads raise a `RankError` when they next wait. Not collective."""
        self._is_lost = True
        self._hub.fail(self.rank, error)


class _ThreadExchange(Exchange):
    """An exchange between threads: receivers copy from the senders' buffers."""

    def __init__(
        self,
        comm: ThreadCommunicator,
        hub: Hub,
        sends: Mapping[int, np.ndarray[Any, Any]],
        receives: Mapping[int, np.ndarray[Any, Any]],
        note: str,
    ) -> None:
        super().__init__(sends, receives, comm.sent)
        self._comm, self._hub, self._note = comm, hub, note
        self._under_way: dict[int, _Message] = {}

    @override
    def _start(self) -> None:
        """Put a message with each send buffer into the mail of the neighbour that it goes to."""
        self._comm.require_step()
        hub, rank = self._hub, self._comm.rank
        self._under_way = {target: _Message(values, self._note) for target, values in self.sends.items()}
        with hub.changed:
            for target, message in self._under_way.items():
                hub.mail[rank, target].append(message)
            hub.changed.notify_all()

    @override
    def wait(self) -> None:
        """Copy the neighbours' messages to the receive buffers, and wait until the neighbours have copied this rank's."""
        hub, comm, rank = self._hub, self._comm, self._comm.rank
        for source, values in self.receives.items():
            box = hub.mail[source, rank]
            with hub.changed:
                comm.wait(source, lambda box=box: len(box) > 0)  # type: ignore[misc]
                message = box.popleft()
            if message.note != self._note or message.values.nbytes != values.nbytes:
                raise comm.other_kind(source, self._note, message.note)
            np.copyto(values, message.values)
            with hub.changed:
                message.taken = True
                hub.changed.notify_all()
        with hub.changed:
            for target, message in self._under_way.items():
                comm.wait(target, lambda message=message: message.taken)  # type: ignore[misc]
        self._under_way = {}
