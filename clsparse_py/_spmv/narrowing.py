"""Columns in 16 bits: made behind some products, and taken by the products after."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py import programs
from clsparse_py._spmv.features import Inspected
from clsparse_py._spmv.kernels import Chunked, Narrow, Streamed
from clsparse_py.errors import BuildError
from clsparse_py.executable import Executable, Launch
from clsparse_py.launch import Chain
from clsparse_py.memory import allocated

__all__ = ["Narrowing"]

_log = logging.getLogger(__name__)

#: Columns are made behind this product. To make them takes the device as long as one product, which some ten repay, but to load
#: their kernels, once a process, takes the host milliseconds.
_BEHIND = 32


#: The number of parts, and where they begin, as `Inspected.cut` returns them.
_Parts = tuple[int, list[cl_array.Array]]


class Narrowing:
    """The columns of a structure as 16 bits, and the executable that takes them; no product waits for either.

    Parameters
    ----------
    of : Inspected
    record : Streamed or Chunked
        The kernel that takes them.
    cut : callable
        Returns the parts for a record that was built, or None if the driver allowed another.
    arguments : callable
        Returns the arguments of the launch after the operands, from parts, columns and the lowest one of each part.
    more : sequence of Launch
        What follows the launch.
    keep : sequence of arrays
        That these launches use.
    """

    def __init__(
        self,
        of: Inspected,
        record: Streamed | Chunked,
        cut: Callable[[Any], _Parts | None],
        arguments: Callable[[_Parts, cl_array.Array, cl_array.Array], tuple[Any, ...]],
        more: Sequence[Launch] = (),
        keep: Sequence[cl_array.Array] = (),
    ) -> None:
        self._of, self._record = of, record
        self._cut, self._arguments, self._more, self._keep = cut, arguments, more, keep
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
        record = cast("Streamed | Chunked", built.parameters)
        parts = self._cut(record)
        if parts is None:
            return
        n_parts, (rows, entries, cuts) = parts
        chain = Chain(queue, of.indices, entries)
        # A core reads a part from its first entry to its last.
        kernel, _ = chain.build(Narrow(1 if of.device.is_cpu else min(256, of.device.max_work_group), of.indices.dtype.name))
        columns = allocated(queue, "columns in 16 bits", of.features.nnz, np.dtype(np.uint16))
        lowest = allocated(queue, "lowest columns", n_parts, of.indices.dtype)
        too_wide = chain.scratch(n_parts, np.uint8)
        chain.launch(kernel, n_parts, entries, of.indices, columns, lowest, too_wide)
        chain.finish(columns, lowest)
        self._too_wide = chain.read_later(too_wide, n_parts)
        self._made = chain.events[-1]
        own = self._arguments(parts, columns, lowest)
        work_items = n_parts * (1 if isinstance(record, Chunked) else record.work_group)
        launch = Launch(built, own, work_items, record.work_group, record.name)
        # Kernel objects belong to one executable.
        more = [Launch(each.built, each.own, each.work_items, each.work_group, each.name) for each in self._more]
        keep = [of.indptr, of.indices, rows, entries, columns, lowest, cuts, too_wide, *self._keep]
        self._executable = Executable([launch, *more], keep)

    def at_once(self) -> Executable | None:
        """Make the columns, and return as `executable` does. Waits."""
        self._try()
        return self.executable()

    def executable(self) -> Executable | None:
        """Return what computes the product by them; None if they do not fit, or cannot be made."""
        return None if self._too_wide is None or self._too_wide().any() else self._executable
