"""The interface of communication between ranks, for MPI and for threads."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import Self

from clsparse_py import __version__
from clsparse_py._precision.arithmetic import name_of

__all__ = ["Communicator", "Counter", "Exchange", "RankError", "check_time_limit", "describe_error", "mark_as_agreed"]

#: Name of the attribute that marks an exception as raised by all ranks, by some perhaps as a `RankError`.
_AGREED = "raised_by_all_ranks"


class RankError(RuntimeError):
    """Another rank failed, or ended while this rank waited for it; the message has the rank's number and error.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> def work(comm):
    ...     return 1 // comm.rank  # rank 0 fails
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     try:
    ...         team.each(lambda comm: (comm.rank and comm.barrier(), work(comm)))
    ...     except ZeroDivisionError:
    ...         print("rank 1, which waited, had a RankError")
    rank 1, which waited, had a RankError
    """


@dataclass
class Counter:
    """Counts of the messages and bytes that a rank sent by exchanges.

    Attributes
    ----------
    messages, bytes : int
    """

    messages: int = 0
    bytes: int = 0


class Exchange(abc.ABC):
    """An exchange of messages between a rank and its neighbours, any number of times over the same buffers.

    Parameters
    ----------
    sends, receives : mapping of int to numpy.ndarray
        A contiguous buffer for each rank that is sent to or received from.
    counter : Counter
        Counts messages and bytes when they are sent.
    """

    def __init__(self, sends: Mapping[int, np.ndarray[Any, Any]], receives: Mapping[int, np.ndarray[Any, Any]], counter: Counter):
        self.sends, self.receives, self._counter = dict(sends), dict(receives), counter
        self._bytes = sum(message.nbytes for message in self.sends.values())

    def start(self) -> None:
        """Start sending this rank's filled send buffers to its neighbours; no buffer is to be touched before `wait` returns."""
        self._counter.messages += len(self.sends)
        self._counter.bytes += self._bytes
        self._start()

    @abc.abstractmethod
    def _start(self) -> None:
        """Start sending this rank's filled send buffers to its neighbours."""

    @abc.abstractmethod
    def wait(self) -> None:
        """Wait until all neighbours' messages are in the receive buffers, and the send buffers may be overwritten.

        Raises
        ------
        RankError
            Another rank failed.
        TimeoutError
            A neighbour did not answer within the communicator's time limit.
        """


class Communicator(abc.ABC):
    """A rank's connection to the ranks that work with it. All ranks call all methods in the same order.

    Attributes
    ----------
    rank, size : int
        This rank's number, and how many there are.
    time_limit : float
        Seconds that any wait for other ranks may take.
    sent : Counter
        Messages and bytes that exchanges have sent.
    queue : pyopencl.CommandQueue
        Of this rank's device.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> with distributed.over([sp.default_queue()] * 3) as team:
    ...     team.each(lambda comm: int(comm.sum(comm.rank)))
    [3, 3, 3]
    """

    rank: int
    size: int
    time_limit: float
    sent: Counter

    @property
    @abc.abstractmethod
    def queue(self) -> cl.CommandQueue:
        """The OpenCL command queue of this rank's device."""

    @abc.abstractmethod
    def alltoall(self, objects: Sequence[Any], note: str = "alltoall") -> list[Any]:
        """Send ``objects[rank]`` to each rank, and return the list of the objects received from all ranks, in the order of ranks.

        Parameters
        ----------
        objects : sequence
            One for each rank.
        note : str
            What the call is for: it travels with the first message, and is to be the same on all ranks.

        Raises
        ------
        ValueError
            On all ranks, which may go on: they do not make the same call.
        """

    @abc.abstractmethod
    def _stacked(self, values: np.ndarray[Any, Any], note: str) -> np.ndarray[Any, Any]:
        """Return the arrays of all ranks, stacked in the order of ranks; ``note`` (call, dtype, shape) is to be equal on all."""

    def stacked(self, values: np.ndarray[Any, Any], note: str = "stacked") -> np.ndarray[Any, Any]:
        """Return the arrays of all ranks, stacked in the order of ranks.

        Parameters
        ----------
        values : numpy.ndarray
            Of one shape and dtype on all ranks.
        note : str
            As of `alltoall`.

        Raises
        ------
        ValueError
            On all ranks, which may go on: they do not make the same call, or have arrays of other shapes or dtypes.
        """
        return self._stacked(values, f"{note}, {name_of(values.dtype)} of shape {values.shape}")

    @abc.abstractmethod
    def exchange(
        self, sends: Mapping[int, np.ndarray[Any, Any]], receives: Mapping[int, np.ndarray[Any, Any]], note: str = ""
    ) -> Exchange:
        """Return an `Exchange` of buffers with neighbouring ranks, to be started any number of times. Not collective.

        The note names the content of the buffers; a neighbour whose note differs is an error.
        """

    @abc.abstractmethod
    def fail(self, error: BaseException) -> None:
        """Make all other ranks raise a `RankError` when they next wait. Not collective."""

    def allgather(self, value: Any, note: str = "allgather") -> list[Any]:
        """Return, on every rank, the list of the objects ``value`` of all ranks, in the order of ranks."""
        return self.alltoall([value] * self.size, note)

    def gather(self, value: Any, root: int = 0, note: str = "gather") -> list[Any] | None:
        """Return the list of the objects ``value`` of all ranks on the rank ``root``, and None on other ranks."""
        self._require_root(root)
        objects = [value if rank == root else None for rank in range(self.size)]
        received = self.alltoall(objects, f"{note} to rank {root}")
        return received if self.rank == root else None

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return, on every rank, the object ``value`` of the rank ``root``."""
        self._require_root(root)
        return self.alltoall([value if self.rank == root else None] * self.size, f"broadcast from rank {root}")[root]

    def scatter(self, values: Sequence[Any] | None, root: int = 0) -> Any:
        """Return this rank's entry of the sequence ``values`` that the rank ``root`` gives, which has an entry for each rank."""
        self._require_root(root)
        objects = values if self.rank == root and values is not None else [None] * self.size
        return self.alltoall(objects, f"scatter from rank {root}")[root]

    def sum(self, values: Any, note: str = "sum") -> Any:
        """Return the sum over ranks of a number or array, added in the order of ranks: the same bits on every rank."""
        return self.stacked(np.asarray(values), note).sum(axis=0)

    def max(self, values: Any, note: str = "max") -> Any:
        """Return the maximum over ranks of a number, or of an array entry by entry."""
        return self.stacked(np.asarray(values), note).max(axis=0)

    def min(self, values: Any, note: str = "min") -> Any:
        """Return the minimum over ranks of a number, or of an array entry by entry."""
        return self.stacked(np.asarray(values), note).min(axis=0)

    def barrier(self) -> None:
        """Wait until all ranks have called this method."""
        self.stacked(np.zeros(1, np.uint8), "barrier")

    def agree(self, error: Exception | None = None, **facts: Any) -> None:
        """Check that no rank has an error, and the given facts are the same on all ranks; else every rank raises an error.

        Parameters
        ----------
        error : Exception, optional
            This rank's own.
        **facts
            By name, the same ones on all ranks; values are compared by ``==``, and NaN is like NaN.

        Raises
        ------
        RankError
            Another rank has an error.
        ValueError
            A fact differs; the message has its name and two values.
        """
        reports = self.allgather((None if error is None else describe_error(error), facts), "agreement")
        if error is not None:
            raise mark_as_agreed(error)
        failed = [(rank, of_rank) for rank, (of_rank, _) in enumerate(reports) if of_rank is not None]
        if failed:
            raise RankError("rank {} failed: {}".format(*failed[0]))
        for rank, (_, its_facts) in enumerate(reports):
            for name in {**reports[0][1], **its_facts}:
                first, value = (facts_of_rank.get(name, "not asked for") for facts_of_rank in (reports[0][1], its_facts))
                if value != first and repr(value) != repr(first):
                    message = f"{name}: is {first} on rank 0 and {value} on rank {rank}; it must be one for all"
                    raise mark_as_agreed(ValueError(message))

    def shares_ranks(self, other: Communicator) -> bool:
        """Return whether another communicator connects the same ranks. Not collective."""
        return self is other

    def _require_root(self, root: Any) -> None:
        """Raise a ValueError if ``root`` is no rank's number."""
        if root not in range(self.size):
            raise ValueError(f"root: must be a rank from 0 to {self.size - 1}, is {root!r}")

    def _require_one_call(self, notes: Sequence[str]) -> None:
        """Raise a ValueError, on all ranks, if the notes (texts) by which ranks describe their collective call differ."""
        for rank, note in enumerate(notes):
            if note != notes[0]:
                raise mark_as_agreed(ValueError(f"ranks do not make the same call: rank 0 {notes[0]!r}, rank {rank} {note!r}"))

    @contextmanager
    def agreeing(self, **facts: Any) -> Iterator[dict[str, Any]]:
        """Make an exception in one rank's ``with`` block, or facts that differ between ranks, an error on all; ranks may go on.

        `agree` follows the block. The block adds facts, which all ranks must have alike, to the dict.
        """
        error: Exception | None = None
        try:
            yield facts
        except Exception as caught:
            error = caught
        self.agree(error, **facts)

    def other_kind(self, source: int, wanted: str, came: str) -> ValueError:
        """Return the error for a message from the rank ``source`` of another kind than this rank waits for."""
        return ValueError(f"ranks do not make the same call: rank {self.rank} waits for {wanted}, rank {source} sent {came}")

    def require_one_version(self) -> None:
        """Check that all ranks run the same version of clsparse_py."""
        self.agree(None, clsparse_py_version=__version__)

    @contextmanager
    def together(self) -> Iterator[Self]:
        """Make an exception that leaves one rank's ``with`` block end the waits of all other ranks, which raise a `RankError`.

        An exception of `agree` ends no waits: all ranks raise, and are still in step.
        """
        try:
            yield self
        except RankError:
            raise
        except BaseException as error:
            if _AGREED not in vars(error):
                self.fail(error)
            raise


def mark_as_agreed(error: Exception) -> Exception:
    """Mark an error as raised by all ranks (by some perhaps as a `RankError`), which so count as in step, and return it."""
    setattr(error, _AGREED, True)
    return error


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an error, as text for other ranks."""
    return f"{type(error).__name__}: {error}"


def check_time_limit(seconds: Any) -> float:
    """Return a user's time limit in seconds as a float, checked to be positive.

    Raises
    ------
    ValueError
        The limit is no number, or not positive.
    """
    try:
        limit = float(seconds)
    except (TypeError, ValueError):
        raise ValueError(f"time_limit: must be seconds, is {seconds!r}") from None
    if not limit > 0:
        raise ValueError(f"time_limit: must be positive, is {seconds!r}")
    return limit
