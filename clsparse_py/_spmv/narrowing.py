"""Columns in 16 bits: made behind some products, and taken by the products after."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyopencl as cl

from clsparse_py import programs
from clsparse_py._spmv.features import Inspected
from clsparse_py._spmv.kernels import Narrow, Streamed
from clsparse_py.errors import BuildError
from clsparse_py.executable import Executable, Launch
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated

__all__ = ["Narrowing"]

_log = logging.getLogger(__name__)

#: Columns are made behind this product. To make them takes the device as long as one product, which some ten repay, but to load
#: their kernels, once a process, takes the host milliseconds.
_BEHIND = 32


class Narrowing:
    """The columns of a structure as 16 bits, and the executable that takes them; no product waits for either.

    Parameters
    ----------
    of : Inspected
    record : Streamed
        The kernel that takes them.
    """

    def __init__(self, of: Inspected, record: Streamed) -> None:
        self._of, self._record = of, record
        self._products = 0
        self._made: cl.Event | None = None
        self._too_wide: Callable[[], np.ndarray[Any, Any]] | None = None
        self._executable: Executable | None = None

    def due(self) -> bool:
        """Take note of a product, and return whether it is known by now if columns fit; starts to make them behind some."""
        self._products += 1
        if self._products < _BEHIND:
            return False
        if self._made is None:
            self._try()
        return self._made is None or bool(self._made.command_execution_status == cl.command_execution_status.COMPLETE)

    def _try(self) -> None:
        """Do as `_make`, if kernels build and memory suffices."""
        try:
            self._make()
        except (BuildError, MemoryError) as error:
            _log.info("columns are not made narrow, A's own are taken: %s", error)

    def _make(self) -> None:
        """Enqueue the columns, and the read of whether they fit."""
        of, queue = self._of, self._of.queue
        built = programs.build(queue.context, queue.device, self._record)
        record = cast("Streamed", built.parameters)
        rest = max(of.features.longest - 1, 0)
        if record.lanes != self._record.lanes or 2 * rest >= record.capacity:  # the driver allowed fewer work-items
            return
        n_parts, (rows, entries, cuts) = of.cut(record.capacity - rest, 0, rest)
        chain = Chain(queue, of.indices, entries)
        kernel, _ = chain.build(Narrow(min(256, of.device.max_work_group), of.indices.dtype.name))
        columns = allocated(queue, "columns in 16 bits", of.features.nnz, np.dtype(np.uint16))
        lowest = allocated(queue, "lowest columns", n_parts, of.indices.dtype)
        too_wide = chain.scratch(n_parts, np.uint8)
        chain.launch(kernel, n_parts, entries, of.indices, columns, lowest, too_wide)
        chain.finish(columns, lowest)
        self._too_wide = chain.read_later(too_wide, n_parts)
        self._made = chain.events[-1]
        parts = rows, entries, of.indptr, columns, lowest
        own = tuple(each.base_data for each in parts)
        launch = Launch(built, own, n_parts * record.work_group, record.work_group, record.name)
        self._executable = Executable([launch], [of.indptr, of.indices, *parts, cuts, too_wide])

    def at_once(self) -> Executable | None:
        """Make the columns, and return as `executable` does. Waits."""
        self._try()
        return self.executable()

    def executable(self) -> Executable | None:
        """Return what computes the product by them; None if they do not fit, or cannot be made."""
        return None if self._too_wide is None or self._too_wide().any() else self._executable
