"""Accumulators whose kernels give each row to a team: neighbouring work-items, from one to a work-group."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.built import Built
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.accumulator import Product, Result, Rows
from clsparse_py._operations.spgemm.kernels import KernelTypes, RowKernel
from clsparse_py._run.launch import Chain

__all__ = ["SynchronisedKernel", "Team"]


@dataclass(frozen=True)
class Team(abc.ABC):
    """An accumulator of one kernel template, with a team of work-items to a row.

    Subclasses give `record`. Both phases are one template.
    """

    @abc.abstractmethod
    def record(self, device: Device, types: KernelTypes, listed: bool) -> RowKernel:
        """Return the parameters of the accumulator's kernel for the phase of SpGEMM in ``types``, as a device allows them."""

    @abc.abstractmethod
    def describe(self) -> str:
        """Return the parameters of the accumulator of SpGEMM's rows in a few words, for `SpgemmPlan.explain`."""

    def prepare(self, chain: Chain, product: Product, rows: Rows) -> object:  # noqa: ARG002 - teams keep nothing
        """Return None: an accumulator with a team of lanes to a row of C prepares no state, as it needs the operands alone."""
        return None

    def enqueue_symbolic(self, chain: Chain, product: Product, rows: Rows, state: object, counts: cl_array.Array) -> None:  # noqa: ARG002
        """Enqueue the kernel that counts the entries of each row of C."""
        self._enqueue(chain, product, rows, "symbolic", counts)

    def enqueue_numeric(self, chain: Chain, product: Product, rows: Rows, state: object, C: Result, phase: str) -> None:  # noqa: ARG002
        """Enqueue the kernel that makes columns and values of each row of C, or values alone; also counts if C has counts."""
        results = C[:3] if C.counts is None else C
        self._enqueue(chain, product, rows, phase, product.a_data, product.b_data, *results, entries=C.data.size)

    def adapt(self, product: Product, entries: int | None = None) -> Self:  # noqa: ARG002 - most teams suit all products alike
        """Return the accumulator with parameters that suit a product A @ B; ``entries``: number of C's entries, if known."""
        return self

    def predict_record(self, product: Product, rows: Rows, phase: str) -> RowKernel | None:
        """Return the parameters of the accumulator's kernel for a phase of a product; None if they are not known yet."""
        kind = product.kind
        return self.adapt(product).record(kind.device, kind.types.of(phase), rows.listed is not None)

    def _build_kernel(
        self, chain: Chain, product: Product, rows: Rows, phase: str, entries: int | None = None
    ) -> tuple[Built, Any]:
        """Build the accumulator's kernel for a phase of a product, and return the kernel and its parameters."""
        team, kind, listed = self.adapt(product, entries), product.kind, rows.listed is not None
        return chain.build_once((kind, team, phase, listed), lambda: team.record(kind.device, kind.types.of(phase), listed))

    def _enqueue(self, chain: Chain, product: Product, rows: Rows, phase: str, *results: Any, entries: int | None = None) -> None:
        """Enqueue the accumulator's kernel, which makes some rows of C in a phase of the product."""
        built, record = self._build_kernel(chain, product, rows, phase, entries)
        groups, own_arguments = self._spread(chain, product, rows, record)
        chain.launch(built, groups, *rows.where, *product.structure, *results, *own_arguments)

    def _spread(self, chain: Chain, product: Product, rows: Rows, record: Any) -> tuple[int, tuple[Any, ...]]:  # noqa: ARG002
        """Return the number of work-groups that make some rows of C, and the accumulator kernel's own last arguments, if any."""
        return record.groups(rows.n), ()


@dataclass(frozen=True)
class SynchronisedKernel(RowKernel):
    """Base of the records of kernels whose teams exchange through local memory, by ``cl/team.cl``."""

    @property
    @abc.abstractmethod
    def row_bytes(self) -> int:
        """Bytes of local memory that an accumulator's kernel takes for each row of C."""

    @property
    def team_sync(self) -> str:
        """How the lanes of a row order accesses to local memory: "none" (no need), the device's "ptx" or "wave", or "barrier"."""
        if self.lanes == 1:
            return "none"
        power = self.lanes & (self.lanes - 1) == 0
        if power and self.portability.match == "ptx" and self.lanes <= 32:
            return "ptx"
        if power and self.portability.lanes == "bpermute" and self.lanes <= self.portability.lane_width:
            return "wave"
        return "barrier"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: the base's prelude, and the size and synchronisation of a team of lanes."""
        return f"{super().prelude}\n#define TEAM {self.lanes}\n#define TEAM_SYNC_BY_{self.team_sync.upper()}"

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the row kernel for a work-group and a lane width; None if there are none."""
        if not work_group:
            return None
        lanes = self.lanes if self.lanes <= work_group else 1 << work_group.bit_length() - 1
        portability = self.portability.at_most(lane_width)
        return replace(self, work_group=work_group // lanes * lanes, lanes=lanes, portability=portability)

    def fitting(self, device: Device) -> Self:
        """Return the row kernel's parameters with a work-group that a device allows, and lanes for which it has local memory."""
        return device.fitting(self._fewer_lanes(device), lambda record: record.row_bytes)

    def _fewer_lanes(self, device: Device) -> Iterator[Self]:
        """Iterate over the row kernel's parameters that a device allows, those with more lanes to a row of C first."""
        work_group = min(self.work_group, device.max_work_group)
        while (record := self.within(work_group, device.portability.lane_width)) is not None:
            yield record
            work_group = record.lanes // 2

    def resident_twice(self, device: Device) -> Self:
        """Return the `fitting` parameters with a work-group of which local memory holds two, unless that is less than one row."""
        record = self.fitting(device)
        rows = max(device.local_memory // 2 // record.row_bytes, 1)
        return replace(record, work_group=min(record.work_group, record.lanes << rows.bit_length() - 1))

    def with_teams(self, n_bytes: int) -> Self:
        """Return the row kernel's parameters with the rows per work-group that ``n_bytes`` of local memory hold, one at least."""
        teams = max(min(self.work_group // self.lanes, n_bytes // self.row_bytes), 1)
        return replace(self, work_group=teams * self.lanes)
