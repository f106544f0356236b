"""The workspace of an operation: memory in use beside its operands and results, counted, and refused beyond a limit.

Functions that allocate (of `launch`, `memory`, `convert`) ask for the current workspace, which costs one look-up.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from pyopencl import array as cl_array

__all__ = ["Workspace", "counting", "current", "suffices"]

_Array = TypeVar("_Array", bound=cl_array.Array)

_log = logging.getLogger(__name__)
#: The workspace that allocations of a thread are part of.
_current: ContextVar[Workspace | None] = ContextVar("workspace", default=None)

#: Returns the workspace that this thread's allocations are part of, or None. No function of ours, as each allocation calls it.
current = _current.get


class Workspace:
    """The memory that one call has in use, and its limit. For one thread at a time.

    Parameters
    ----------
    limit : int
        Bytes that may be in use at a time.
    held_bytes : int
        Bytes that are in use already, and stay so.

    Attributes
    ----------
    limit : int
    peak : int
        The most bytes that were in use at a time.
    """

    def __init__(self, limit: int, held_bytes: int = 0) -> None:
        self.limit = limit
        self.peak = self._held = held_bytes
        # Bytes of arrays let go, still to be subtracted from the workspace; any thread may append, as the garbage collector does.
        self._let_go: deque[int] = deque()

    @property
    def used(self) -> int:
        """Bytes of the workspace (memory of one call) in use."""
        while self._let_go:
            self._held -= self._let_go.popleft()
        return self._held

    @property
    def room(self) -> int:
        """Bytes that the limit of the workspace leaves for further arrays."""
        return max(self.limit - self.used, 0)

    def require(self, n_bytes: int) -> None:
        """Raise an error if ``n_bytes`` bytes, with those in use, exceed the limit of the workspace.

        Raises
        ------
        MemoryError
            The message says how much memory the array needs, and how much there is.
        """
        if n_bytes > self.room:
            raise MemoryError(
                f"memory_limit: {n_bytes:,} bytes are needed beside the {self.used:,} in use; the limit is {self.limit:,}"
            )

    def hold(self, n_bytes: int) -> None:
        """Count ``n_bytes`` bytes of the workspace as in use until `let_go`; raises as `require`."""
        self.require(n_bytes)
        self._note(n_bytes)

    def let_go(self, n_bytes: int) -> None:
        """Count ``n_bytes`` bytes of the workspace as no longer in use."""
        self._let_go.append(n_bytes)

    def _note(self, n_bytes: int) -> None:
        """Add bytes to the workspace's memory in use, and update its peak."""
        self._held += n_bytes
        self.peak = max(self.peak, self.used)

    def count(self, array: _Array, n_bytes: int) -> _Array:
        """Count the memory of an array as workspace in use until the array is let go, and return the array."""
        self._note(n_bytes)
        weakref.finalize(array, self._let_go.append, n_bytes).atexit = False
        return array


@contextmanager
def counting(workspace: Workspace | None) -> Iterator[None]:
    """Count this thread's allocations inside the block as part of a workspace; with None, as for results, count nothing."""
    token = _current.set(workspace)
    try:
        yield
    finally:
        _current.reset(token)


def suffices(phase: Callable[[], None]) -> bool:
    """Enqueue a phase of an operation, and return whether there was memory for the phase; if not, the caller has another way."""
    try:
        phase()
    except MemoryError as error:
        _log.info("done another way: %s", error)
        return False
    return True
