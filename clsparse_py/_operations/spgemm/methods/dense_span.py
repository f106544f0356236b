"""Dense accumulators for GPUs over the span of a row: for rows whose columns lie near one another, as in banded matrices."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.kernels import KernelTypes
from clsparse_py._operations.spgemm.methods.team import Team
from clsparse_py._operations.spgemm.methods.team_sync import SynchronisedKernel
from clsparse_py._operations.spgemm.thresholds import Thresholds
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["DenseSpan", "DenseSpanKernel", "dense_spans"]

#: Bytes that compilers may leave between arrays of local memory.
_BETWEEN = 64
#: Lanes of a team that only barriers synchronise.
_LANES = 64


@kernel
@dataclass(frozen=True)
class DenseSpanKernel(SynchronisedKernel):
    """Parameters of ``templates/spgemm/dense_span.mako``.

    Attributes
    ----------
    columns : int
        Most that a row spans, from its smallest column rounded down to a multiple of 32; a multiple of 32, less than 2^16.
    entries : int
        Of A's row, that are taken at a time.
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
        """Local memory for a row."""
        value = self.types.value_bytes
        n_bytes = (self.columns + self.entries) * value + (self.entries + 1) * (self.types.index_bytes + 2)
        if self.types.phase == "values":
            return n_bytes
        n_bytes += self.columns + self.lanes * (4 + 2 * self.types.column_bytes)
        return n_bytes + 2 * (self.columns // 32 + 1) * bool(value)

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        record = super().within(work_group, lane_width)
        # Barriers in loops of any length have to be reached by the whole work-group: it is a team.
        return replace(record, work_group=record.lanes) if record and record.team_sync == "barrier" else record

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
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
        Most that a row spans: all of its columns are below the smallest, rounded down to a multiple of 32, plus this; a
        multiple of 32, less than 2^16.
    lanes : int, optional
        Work-items to a row; by default as many as synchronise without a barrier. One on CPU devices.
    work_group : int, optional
        By default one team, so that local memory alone decides how many are resident.
    entries : int
        Of A's row, that are taken at a time.
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
        # Lanes wait at barriers in loops of any length: on CPU devices a row has one lane (quirk 4).
        lanes = min(self.lanes or _without_barrier(device), device.max_work_group, device.resident)
        group = min(max(self.work_group or lanes, lanes), device.resident)
        shape = self.columns, self.entries, self.ahead
        record = DenseSpanKernel(group, types, listed, device.portability, lanes, *shape).fitting(device)
        return record.with_teams(device.local_memory - _BETWEEN)

    def legal(self, device: Device, types: KernelTypes, work_groups: int = 1) -> bool:
        """Return whether local memory holds so many work-groups of one row in the numeric phase, which takes the most."""
        group_bytes = self.record(device, types.of("numeric"), listed=True).row_bytes + _BETWEEN
        return work_groups * group_bytes <= device.local_memory

    @override
    def describe(self) -> str:
        return f"sums of {self.columns} neighbouring columns, a team to a row"


def _without_barrier(device: Device) -> int:
    """Return how many lanes synchronise without a barrier, or how many to take if they need one."""
    if device.portability.match == "ptx":
        return 32
    return device.portability.lane_width if device.portability.lanes == "bpermute" else _LANES


def dense_spans(device: Device, types: KernelTypes, thresholds: Thresholds) -> tuple[DenseSpan, ...]:
    """Return the bins by columns, smallest first, of which local memory holds a row, and two of the large ones."""
    narrowest, widest, paired, entries, ahead = (
        int(candidate)
        for candidate in (
            thresholds.min_span, thresholds.max_span, thresholds.min_paired_span, thresholds.span_entries, thresholds.span_loads,
        )
    )  # fmt: skip
    bits = range(narrowest.bit_length() - 1, widest.bit_length())
    accumulators = (DenseSpan(1 << bit, entries=entries, ahead=ahead) for bit in bits)
    return tuple(
        candidate for candidate in accumulators if candidate.legal(device, types, 2 if candidate.columns >= paired else 1)
    )
