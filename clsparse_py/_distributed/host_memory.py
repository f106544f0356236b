"""Memory of a process that other processes of its host map, too: entries pass between them without messages that carry them."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from clsparse_py._distributed.communicator import Communicator

__all__ = ["HostMemory", "Lent", "count_read", "share_memory"]

#: Bytes of addresses that a process reserves for the memory that it shares; a page takes memory when it is first written.
_CAPACITY = 1 << 38
#: Bytes of a line of memory, at which messages begin.
_LINE = 64


class HostMemory:
    """Memory that this process shares with others of its host, and lends to exchanges of messages in parts.

    The memory is a file without a name, which the system ends with the last process that has it, however the processes end.

    Raises
    ------
    OSError
        The system does not let the process have the file or its addresses.

    Attributes
    ----------
    bytes : numpy.ndarray of uint8
    descriptor : int
        Of the file.
    bytes_lent : int
        Bytes, from the memory's begin, that are or were lent.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("clsparse_py")
        try:
            os.ftruncate(self.descriptor, _CAPACITY)
            self.bytes = _map(self.descriptor)
        except OSError:
            os.close(self.descriptor)
            raise
        self.bytes_lent = 0
        self._idle: defaultdict[int, list[int]] = defaultdict(list)
        self.given_up: list[Lent] = []

    def lend(self, n_bytes: int, size: int, readers: list[int]) -> Lent:
        """Return a part for messages of ``n_bytes`` to some of ``size`` ranks.

        Raises
        ------
        MemoryError
            All memory is lent.
        """
        unread = []
        for lent in self.given_up:
            if lent.is_read(lent.n_sent):
                self._idle[lent.bytes.size].append(lent.begin)
            else:
                unread.append(lent)
        self.given_up = unread
        # Parts have powers of two of bytes, so that later exchanges of nearly as many bytes can have them, too.
        length = max(1 << (Lent.n_bytes(n_bytes, size) - 1).bit_length(), mmap.PAGESIZE)
        if self._idle[length]:
            return Lent(self, self._idle[length].pop(), length, n_bytes, size, readers)
        if self.bytes_lent + length > self.bytes.size:
            raise MemoryError(f"{n_bytes:,} bytes of memory for other processes: {self.bytes_lent:,} are lent")
        self.bytes_lent += length
        return Lent(self, self.bytes_lent - length, length, n_bytes, size, readers)

    def forget(self) -> None:
        """Note that no rank reads any message any more, also no message that a failed rank did not read."""
        for lent in self.given_up:
            lent.forget()


class Lent:
    """A part of a process's memory for its messages to other ranks: for two in turns, as one is read while the next is written.

    The part begins with a count for each rank, which that rank writes: the messages that it has read.

    Attributes
    ----------
    begin : int
        The place of the part in the memory.
    bytes : numpy.ndarray of uint8
    messages : list of numpy.ndarray of uint8
        The messages' bytes, of the turns.
    n_sent : int
        Messages sent.
    """

    def __init__(self, memory: HostMemory, begin: int, length: int, n_bytes: int, size: int, readers: list[int]) -> None:
        self._memory, self._readers, self.begin = memory, readers, begin
        self.bytes = memory.bytes[begin : begin + length]
        self._n_read = self.bytes[: 8 * size].view(np.int64)
        self._places = [_round_up(8 * size), _round_up(8 * size) + _round_up(n_bytes)]
        self.messages = [self.bytes[place : place + n_bytes] for place in self._places]
        self.forget()

    @staticmethod
    def n_bytes(n_bytes: int, size: int) -> int:
        """Return the bytes of the counts of ``size`` ranks and of two messages."""
        return _round_up(8 * size) + 2 * _round_up(n_bytes)

    def forget(self) -> None:
        """Begin to count messages anew."""
        self.n_sent = 0
        self._n_read[:] = 0

    def is_read(self, n: int) -> bool:
        """Return whether all readers have read the first n messages."""
        return bool((self._n_read[self._readers] >= n).all())

    def send(self) -> tuple[int, int, int, int]:
        """Count a message; return the begin and the end of the part in the memory, the message's number, and its place there."""
        place = self._places[self.n_sent % 2]
        self.n_sent += 1
        return self.begin, self.begin + self.bytes.size, self.n_sent, self.begin + place

    def give_up(self) -> None:
        """Let the memory lend the part anew when its messages are read."""
        self._memory.given_up.append(self)


def count_read(part: np.ndarray[Any, Any], rank: int, number: int) -> None:
    """Write into a lent part of another rank's memory that a rank has read the messages up to a number."""
    part[: 8 * (rank + 1)].view(np.int64)[rank] = number


def _round_up(n_bytes: int) -> int:
    """Return a number of bytes rounded up to whole lines of memory."""
    return -(-n_bytes // _LINE) * _LINE


def share_memory(comm: Communicator) -> tuple[HostMemory | None, dict[int, np.ndarray[Any, Any]]]:
    """Return memory of this rank that others can read, and the memory of the others with which this rank shares. Collective.

    Returns
    -------
    memory : HostMemory or None
        None if the system has no such memory, or no other rank can read it.
    others : dict of int to numpy.ndarray of uint8
        By rank, the memory of each rank that this one can read and that can read this one's.
    """
    memory, own_name = None, None
    with contextlib.suppress(OSError):  # ranks without such memory send messages
        if hasattr(os, "memfd_create"):
            space, memory = _name_process_space(), HostMemory()
            own_name = space, os.getpid(), memory.descriptor
    try:
        others = {}
        for rank, name in enumerate(comm.allgather(own_name)):
            if rank != comm.rank and own_name is not None and name is not None and name[0] == own_name[0]:
                with contextlib.suppress(OSError):
                    others[rank] = _open(*name[1:])
        is_read = comm.stacked(np.array([rank in others for rank in range(comm.size)]))
    finally:
        if memory is not None:
            os.close(memory.descriptor)
    shared = {rank: other for rank, other in others.items() if is_read[rank, comm.rank]}
    return memory if shared else None, shared


def _name_process_space() -> tuple[str, str]:
    """Return the host's start and the space of numbers of processes on it: in one space a number means one process."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"), str(Path("/proc/self/ns/pid").readlink())


def _open(process: int, descriptor: int) -> np.ndarray[Any, Any]:
    """Return the memory that a process of this host shares by a file with a descriptor of that process."""
    own_descriptor = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR)
    try:
        return _map(own_descriptor)
    finally:
        os.close(own_descriptor)


def _map(descriptor: int) -> np.ndarray[Any, Any]:
    """Return the bytes of a file in this process's addresses, as long as the array lives."""
    return np.frombuffer(mmap.mmap(descriptor, _CAPACITY), np.uint8)
