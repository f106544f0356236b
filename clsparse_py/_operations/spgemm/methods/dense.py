"""Dense accumulators for GPUs, and the bins of "dense": sums of a row's span, or window by window, in local memory.

On CPU devices, "dense" has sums of all columns of B: see `dense_chunked`.
"""

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
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.kernels import KernelTypes, OfRows
from clsparse_py._operations.spgemm.methods.dense_chunked import DenseChunked
from clsparse_py._operations.spgemm.methods.team import SynchronisedKernel, Team
from clsparse_py._operations.spgemm.thresholds import Thresholds
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._run.launch import Chain

__all__ = [
    "CHUNKED",
    "FILLED",
    "WINDOWS",
    "DenseParts",
    "DenseSpan",
    "DenseSpanKernel",
    "DenseWindows",
    "DenseWindowsKernel",
    "dense",
    "dense_span",
    "dense_spans",
    "dense_windows",
]

#: Bytes of padding that compilers may leave between a kernel's arrays in local memory.
_PADDING = 64
#: Work-items of a team (those that make one row) on devices where work-items synchronise by barriers alone.
_BARRIER_LANES = 64
#: Columns of a window (a range of columns of C) in the symbolic phase, which has a byte of local memory for each column.
_SYMBOLIC_COLUMNS = 4 << 10
#: Bytes of local memory for the sums (values of C) of a window, a range of columns of C.
_SUM_BYTES = 16 << 10
#: Most columns of a window (a range of columns of C), as a column has a byte of local memory beside its sum.
_MAX_COLUMNS = 8 << 10
#: Least columns of a window, a range of columns of C with sums in local memory.
_MIN_COLUMNS = 256
#: Most work-groups of a launch of the window kernel: to stay below, rows of C are cut into fewer parts, ranges of columns.
_MANY_GROUPS = 1 << 22


@kernel
@dataclass(frozen=True)
class DenseSpanKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/dense_span.mako``.

    Attributes
    ----------
    columns : int
        Most columns that a row spans, from its smallest column rounded down to a multiple of 32; itself such a multiple, below
        2^16.
    entries : int
        Entries of A's row that are staged at a time.
    ahead : int
        Loads that a lane has in flight.
    """

    template = "spgemm/dense_span"

    columns: int
    entries: int
    ahead: int

    @property
    @override
    def row_bytes(self) -> int:
        """Bytes of local memory that the dense kernel takes for each row of C."""
        value = self.types.value_bytes
        n_bytes = (self.columns + self.entries) * value + (self.entries + 1) * (self.types.index_bytes + 2)
        if self.types.phase == "values":
            return n_bytes
        n_bytes += self.columns + self.lanes * (4 + 2 * self.types.column_bytes)
        return n_bytes + 2 * (self.columns // 32 + 1) * bool(value)

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the "dense-span" kernel for a work-group and a lane width; None if there are none.

        The kernel has a sum for each column that a row spans.
        """
        record = super().within(work_group, lane_width)
        # The whole work-group makes one row of C, as all its work-items have to reach barriers in loops of any length.
        return replace(record, work_group=record.lanes) if record and record.team_sync == "barrier" else record

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "" for rows that are not listed; "symbolic", "numeric" and "values" for listed rows."""
        types = KernelTypes.of_same(arithmetic)
        yield "", DenseSpan(1024).record(device, types, listed=False)
        for phase in ("symbolic", "numeric", "values"):
            yield phase, DenseSpan(1024).record(device, types.of(phase), listed=True)


@dataclass(frozen=True)
class DenseSpan(Team):
    """An accumulator for rows of C whose columns span few others; rows of A and B are of any length.

    Values are added in the order of A's row: nothing is gained if results need not be deterministic.

    Attributes
    ----------
    columns : int
        Most columns that a row spans: all of its columns are below the smallest, rounded down to a multiple of 32, plus this
        number; a multiple of 32, less than 2^16.
    lanes : int, optional
        Work-items to a row; by default as many as synchronise without a barrier. One on CPU devices.
    work_group : int, optional
        By default one team, so that local memory alone decides how many are resident.
    entries : int
        Entries of A's row that are staged at a time.
    ahead : int
        Loads that a lane has in flight.
    """

    columns: int
    lanes: int | None = None
    work_group: int | None = None
    entries: int = 64
    ahead: int = 2

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> DenseSpanKernel:
        """Return the parameters of the kernel with a sum for each column of a row's span, for a phase and a device."""
        # Lanes (work-items) of a row of C wait at barriers in loops of any length: one lane on CPU devices (quirk 4).
        lanes = min(self.lanes or _lanes_without_barrier(device), device.max_work_group, device.resident)
        group = min(max(self.work_group or lanes, lanes), device.resident)
        shape = self.columns, self.entries, self.ahead
        record = DenseSpanKernel(group, types, listed, device.portability, lanes, *shape).fitting(device)
        return record.with_teams(device.local_memory - _PADDING)

    def fits(self, device: Device, types: KernelTypes, work_groups: int = 1) -> bool:
        """Return whether local memory holds the sums of ``work_groups`` rows, a work-group each, in the numeric phase."""
        group_bytes = self.record(device, types.of("numeric"), listed=True).row_bytes + _PADDING
        return work_groups * group_bytes <= device.local_memory

    @override
    def describe(self) -> str:
        """Return the number of neighbouring columns that a team sums, in a few words."""
        return f"sums of {self.columns} neighbouring columns, a team to a row"


def _lanes_without_barrier(device: Device) -> int:
    """Return the number of a device's lanes (work-items) that synchronise without a barrier; 64 where lanes need one."""
    if device.portability.match == "ptx":
        return 32
    return device.portability.lane_width if device.portability.lanes == "bpermute" else _BARRIER_LANES


@kernel
@dataclass(frozen=True)
class DenseWindowsKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/dense_windows.mako``; the lanes are the work-group.

    Attributes
    ----------
    columns : int
        Columns of a window; a multiple of 32.
    entries : int
        Entries of A's row that are staged at a time.
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
        """Bytes of local memory that the dense kernel takes for each row of C."""
        value = self.types.value_bytes
        n_bytes = (self.columns + self.entries) * value + (self.entries + 1) * (self.types.index_bytes + 2)
        n_bytes += self.lanes * self.types.column_bytes
        if self.types.phase == "values":
            return n_bytes
        return n_bytes + self.columns + self.lanes * (4 + 64 * bool(value))

    def narrow_windows(self) -> Iterator[Self]:
        """Yield the window kernel's parameters, then ones with ever narrower windows of columns, for as many lanes."""
        columns = self.columns
        yield self
        while columns > _MIN_COLUMNS:
            columns = max(columns // 64 * 32, _MIN_COLUMNS)
            yield replace(self, columns=columns)

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the window kernel for a work-group and a lane width; None if there are none."""
        record = super().within(work_group, lane_width)
        return replace(record, work_group=record.lanes) if record else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "" for rows that are not listed; "symbolic", "numeric" and "values" for listed rows."""
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
        Columns of a window, a multiple of 32; by default the number that suits the phase.
    lanes : int
        Work-items to a part of a row; one on CPU devices.
    entries : int
        Entries of A's row that are staged at a time.
    ahead : int
        Loads that a lane has in flight.
    parts : int
        Most parts that the columns of a row are cut into: the parts of a row are made at the same time.
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
        """Return the number of columns of a window, a range of C's columns in local memory, in a phase of the product."""
        value = types.value_bytes
        return min(self.columns or (_SUM_BYTES // value if value else _SYMBOLIC_COLUMNS), _MAX_COLUMNS)

    @override
    def record(self, device: Device, types: KernelTypes, listed: bool) -> DenseWindowsKernel:
        """Return the parameters of the kernel that makes rows by windows of columns, for a phase and a device."""
        # Lanes (work-items) of a row of C meet at barriers in loops of any length: one lane on CPU devices (quirk 4).
        lanes = min(self.lanes, device.max_work_group, device.resident)
        shape = self.columns_of(types), self.entries, self.ahead, self.min_entries if types.arithmetic else 0
        record = DenseWindowsKernel(lanes, types, listed, device.portability, lanes, *shape)
        return device.fitting(record.narrow_windows(), lambda candidate: candidate.row_bytes).fitting(device)

    @override
    def prepare(self, chain: Chain, product: Product, rows: Rows) -> cl_array.Array | None:
        """Return memory for where in C each part (range of columns) of a row begins; None if rows have one part."""
        windows = -(-product.shape[1] // self.columns_of(product.types))
        # The array of where in C the parts (ranges of columns) of rows begin takes at most half of the workspace left.
        parts = min(self.parts, windows, _MANY_GROUPS // rows.n, product.spare() // (8 * rows.n))
        return chain.scratch(rows.n * parts, np.uint32) if parts > 1 else None

    @override
    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: Any, counts: cl_array.Array) -> None:
        """Enqueue the window kernel that counts the entries of rows of C, and the sum of counts over the parts of a row."""
        parts = self._enqueue_parts(chain, product, rows, state, "symbolic", counts if state is None else state)
        if state is not None:
            built, record = chain.build(DenseParts(128, product.types.index, rows.listed is not None))
            chain.launch(built, -(-rows.n // record.work_group), *rows.where, np.uint32(parts), state, counts)

    @override
    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: Any, C: Result, phase: str) -> None:
        """Enqueue the window kernel that makes columns and values of rows of C, or values alone."""
        places = (state,) if phase == "numeric" else ()
        results = product.a_data, product.b_data, C.indptr, C.indices, C.data
        self._enqueue_parts(chain, product, rows, state, phase, *results, *places)

    def _enqueue_parts(
        self, chain: Chain, product: Product, rows: Rows, state: cl_array.Array | None, phase: str, *results: Any
    ) -> int:
        """Enqueue the window kernel for all parts (ranges of columns) of some rows, and return the number of parts of a row."""
        parts = 1 if state is None else state.size // rows.n
        columns = -(-product.shape[1] // (32 * parts)) * 32
        built, _ = self._build_kernel(chain, product, rows, phase)
        own_arguments = np.uint32(parts), np.uint64(columns)
        chain.launch(built, rows.n * parts, *rows.where, *product.structure, *results, *own_arguments)
        return parts

    @override
    def describe(self) -> str:
        """Return the method in a few words: windows of columns, several at a time."""
        return "windows of columns, a team to each of several at a time"


#: Bin (class of rows) that takes any row on CPU devices: its dense accumulator has a sum for each column of B.
CHUNKED = Bin("dense", DenseChunked(), takes_empty=True, as_wide=True)
#: Bin (class of rows) that takes any row, made by windows of columns in local memory: it needs no workspace.
WINDOWS = Bin("dense", DenseWindows(entries=1), takes_empty=True)
#: Bin (class of rows) that takes any row, made by windows of columns with many loads in flight: best for windows of many entries.
FILLED = Bin("dense", DenseWindows(ahead=8))


def dense(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of the method "dense", classes of rows by the span of their columns; on CPU devices one for all rows.

    On GPUs sums are in local memory, for a row's span or window by window; on CPU devices a worker has one for each column.
    """
    if on.device.resident > 1 or on.types.arithmetic is None:
        return *dense_span(on), FILLED
    return (CHUNKED,)


def dense_span(on: Setting) -> tuple[Bin, ...]:
    """Return the bins of "dense-span", a part of the method "dense" for rows that span few columns: on CPU devices none."""
    if on.device.resident == 1:
        return ()
    return tuple(Bin("dense", accumulator, max_span=accumulator.columns) for accumulator in dense_spans(*on))


def dense_windows(_on: Setting) -> tuple[Bin, ...]:
    """Return the bin of "dense-windows", a part of the method "dense" that makes any row window by window of columns."""
    return (FILLED,)


def dense_spans(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[DenseSpan, ...]:
    """Return the accumulators of "dense-span", narrowest first, of which local memory holds one row's sums, or two's if wide."""
    narrowest, widest, paired, entries, ahead = (
        int(threshold)
        for threshold in (
            thresholds.min_span, thresholds.max_span, thresholds.min_paired_span, thresholds.span_entries, thresholds.span_loads,
        )
    )  # fmt: skip
    bits = range(narrowest.bit_length() - 1, widest.bit_length())
    accumulators = (DenseSpan(1 << bit, entries=entries, ahead=ahead) for bit in bits)
    return tuple(
        accumulator for accumulator in accumulators if accumulator.fits(device, types, 2 if accumulator.columns >= paired else 1)
    )
