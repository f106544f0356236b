"""Scalars of a method that the host looks at while the device goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py.krylov.sweep import Sweeps
from clsparse_py.memory import submit

__all__ = ["Watch"]


class Watch:
    """Neighbouring scalars, which are read every few iterations, and waited for an iteration later.

    Parameters
    ----------
    sweeps : Sweeps
    names : tuple of str
        Scalars that are neighbours in the layout.
    every : int
        How many iterations pass between two looks.
    """

    def __init__(self, sweeps: Sweeps, names: tuple[str, ...], every: int) -> None:
        self._queue, self._source = sweeps.chain.queue, sweeps.scalars.base_data
        self._dtype, self._every, self._n = sweeps.dtype, every, len(names)
        self._begin = sweeps.layout.scalars.index(names[0]) * sweeps.dtype.itemsize
        self._read: tuple[cl.Event, np.ndarray[Any, Any]] | None = None

    def late(self, iteration: int) -> np.ndarray[Any, Any] | None:
        """Begin to read the scalars as an iteration leaves them, and return what the look before this one found.

        None if there was none, or if it is not yet time to look.
        """
        if (iteration + 1) % self._every:
            return None
        before, self._read = self._read, self._enqueued()
        if before is None:
            # Nothing is waited for, so the device has to be told to begin.
            self._queue.flush()
            return None
        event, host = before
        event.wait()
        return host

    def now(self) -> np.ndarray[Any, Any]:
        """Wait for all commands so far, and return the scalars; nothing is being read from then on."""
        self._read = None
        event, host = self._enqueued()
        event.wait()
        return host

    def _enqueued(self) -> tuple[cl.Event, np.ndarray[Any, Any]]:
        host = np.empty(self._n, self._dtype)
        return submit(
            "a read", cl.enqueue_copy, self._queue, host, self._source, src_offset=self._begin, is_blocking=False
        ), host.real
