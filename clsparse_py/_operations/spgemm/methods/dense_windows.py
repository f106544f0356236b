"""Dense accumulators for GPUs over windows of columns in local memory: for any row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.kernels import KernelTypes, OfRows
from clsparse_py._operations.spgemm.methods.team import Team
from clsparse_py._operations.spgemm.methods.team_sync import SynchronisedKernel
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

__all__ = ["DenseParts", "DenseWindows", "DenseWindowsKernel"]

#: Columns to a window of the symbolic phase, which has a byte for each.
_SYMBOLIC = 4 << 10
#: Bytes of the sums of a window.
_SUMS = 16 << 10
#: Most columns of a window: each has a byte besides its sum.
_MAX_COLUMNS = 8 << 10
#: Least columns of a window.
_MIN_COLUMNS = 256
#: Work-groups from which on a row's parts are no longer made at the same time.
_MANY_GROUPS = 1 << 22


@kernel
@dataclass(frozen=True)
class DenseWindowsKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/dense_windows.mako``; the lanes are the work-group.

    Attributes
    ----------
    columns : int
        Of a window; a multiple of 32.
    entries : int
        Of A's row, that are taken at a time.
    ahead : int
        Loads that a lane has in flight.
    min_entries : int
        Fewest entries of a row of C whose columns and values are made.
    """

    template = "spgemm/dense_windows"

    columns: int
    entries: int
    ahead: int
    min_entries: int

    @property
    @override
    def row_bytes(self) -> int:
        """Local memory for a row."""
        value = self.types.value_bytes
        n_bytes = (self.columns + self.entries) * value + (self.entries + 1) * (self.types.index_bytes + 2)
        n_bytes += self.lanes * self.types.column_bytes
        if self.types.phase == "values":
            return n_bytes
        return n_bytes + self.columns + self.lanes * (4 + 64 * bool(value))

    def narrower(self) -> Iterator[Self]:
        """Yield the record, and others with narrower windows: they leave room for as many lanes."""
        columns = self.columns
        yield self
        while columns > _MIN_COLUMNS:
            columns = max(columns // 64 * 32, _MIN_COLUMNS)
            yield replace(self, columns=columns)

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        record = super().within(work_group, lane_width)
        return replace(record, work_group=record.lanes) if record else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        types = KernelTypes.of_same(arithmetic)
        yield "", DenseWindows().record(device, types, listed=False)
        for phase in ("symbolic", "numeric", "values"):
            yield phase, DenseWindows().record(device, types.of(phase), listed=True)


@kernel
@dataclass(frozen=True)
class DenseParts(OfRows):
    """Parameters of ``templates/spgemm/dense_parts.mako``."""

    template = "spgemm/dense_parts"
    variants: ClassVar[Variants] = {"": {"listed": True}}


@dataclass(frozen=True)
class DenseWindows(Team):
    """An accumulator for rows of any length, best for those that are dense in their range of columns.

    Values are added in the order of A's row: nothing is gained if results need not be deterministic.

    Attributes
    ----------
    columns : int or None
        Of a window, a multiple of 32; by default the number that suits the phase.
    lanes : int
        Work-items to a part of a row; one on CPU devices.
    entries : int
        Of A's row, that are taken at a time.
    ahead : int
        Loads that a lane has in flight.
    parts : int
        Into how many the columns are cut at most: those of a row are made at the same time.
    min_entries : int
        Fewest entries of a row of C whose columns and values are made; all rows are counted.
    """

    columns: int | None = None
    lanes: int = 64
    entries: int = 64
    ahead: int = 4
    parts: int = 16
    min_entries: int = 0

    def columns_of(self, types: KernelTypes) -> int:
        """Return how many columns a window has in a phase."""
        value = types.value_bytes
        return min(self.columns or (_SUMS // value if value else _SYMBOLIC), _MAX_COLUMNS)

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> DenseWindowsKernel:
        # The lanes meet in loops of any length: on CPU devices they are one (quirk 4).
        lanes = min(self.lanes, device.max_work_group, device.resident)
        shape = self.columns_of(types), self.entries, self.ahead, self.min_entries if types.arithmetic else 0
        record = DenseWindowsKernel(lanes, types, listed, device.portability, lanes, *shape)
        return device.fitting(record.narrower(), lambda narrower: narrower.row_bytes).fitting(device)

    @override
    def prepare(self, chain: Chain, product: Product, rows: Rows) -> cl_array.Array | None:
        """Return memory for the first place of each part of a row; None if rows have one part."""
        windows = -(-product.shape[1] // self.columns_of(product.types))
        # Half of the memory that may be taken.
        parts = min(self.parts, windows, _MANY_GROUPS // rows.n, product.spare() // (8 * rows.n))
        return chain.scratch(rows.n * parts, np.uint32) if parts > 1 else None

    @override
    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: Any, counts: cl_array.Array) -> None:
        parts = self._enqueue_parts(chain, product, rows, state, "symbolic", counts if state is None else state)
        if state is not None:
            built, record = chain.build(DenseParts(128, product.types.index, rows.listed is not None))
            chain.launch(built, -(-rows.n // record.work_group), *rows.where, np.uint32(parts), state, counts)

    @override
    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: Any, C: Result, phase: str) -> None:
        places = (state,) if phase == "numeric" else ()
        results = product.a_data, product.b_data, C.indptr, C.indices, C.data
        self._enqueue_parts(chain, product, rows, state, phase, *results, *places)

    def _enqueue_parts(
        self, chain: Chain, product: Product, rows: Rows, state: cl_array.Array | None, phase: str, *results: Any
    ) -> int:
        """Enqueue a phase, and return in how many parts each row is made: as many as there are places for."""
        parts = 1 if state is None else state.size // rows.n
        columns = -(-product.shape[1] // (32 * parts)) * 32
        built, _ = self._built(chain, product, rows, phase)
        own_arguments = np.uint32(parts), np.uint64(columns)
        chain.launch(built, rows.n * parts, *rows.where, *product.structure, *results, *own_arguments)
        return parts

    @override
    def describe(self) -> str:
        return "windows of columns, a team to each of several at a time"
