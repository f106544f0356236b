"""Synchronisation of a team's lanes through local memory."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import replace

from typing_extensions import Self, override

from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.kernels import RowKernel

__all__ = ["SynchronisedKernel"]


@dataclass(frozen=True)
class SynchronisedKernel(RowKernel):
    """Base of the records of kernels whose teams use ``cl/team.cl``."""

    @property
    @abc.abstractmethod
    def row_bytes(self) -> int:
        """Local memory for a row."""

    @property
    def team_sync(self) -> str:
        """The order of a team's accesses to local memory: "none" (no need), the device's way ("ptx", "wave"), or "barrier"."""
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
        return f"{super().prelude}\n#define TEAM {self.lanes}\n#define TEAM_SYNC_BY_{self.team_sync.upper()}"

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        if not work_group:
            return None
        lanes = self.lanes if self.lanes <= work_group else 1 << work_group.bit_length() - 1
        portability = self.portability.at_most(lane_width)
        return replace(self, work_group=work_group // lanes * lanes, lanes=lanes, portability=portability)

    def fitting(self, device: Device) -> Self:
        """Return the record with a work-group that a device allows, and with as few lanes as local memory asks for."""
        return device.fitting(self._fewer_lanes(device), lambda record: record.row_bytes)

    def _fewer_lanes(self, device: Device) -> Iterator[Self]:
        """Iterate over legal records, those with more lanes first."""
        work_group = min(self.work_group, device.max_work_group)
        while (record := self.within(work_group, device.portability.lane_width)) is not None:
            yield record
            work_group = record.lanes // 2

    def resident_twice(self, device: Device) -> Self:
        """Return the `fitting` record with work-groups of which two are resident, if that leaves local memory for a row."""
        record = self.fitting(device)
        rows = max(device.local_memory // 2 // record.row_bytes, 1)
        return replace(record, work_group=min(record.work_group, record.lanes << rows.bit_length() - 1))

    def with_teams(self, n_bytes: int) -> Self:
        """Return the record with as many teams to a work-group as so many bytes of local memory hold, one at least."""
        teams = max(min(self.work_group // self.lanes, n_bytes // self.row_bytes), 1)
        return replace(self, work_group=teams * self.lanes)
