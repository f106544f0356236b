"""Teams that exchange through local memory: how lanes see what the others wrote."""

from __future__ import annotations

import abc
from dataclasses import replace

from typing_extensions import Self, override

from clsparse_py._spgemm.kernels import RowKernel
from clsparse_py.device import Device
from clsparse_py.records import dataclass

__all__ = ["SynchronisedKernel"]


@dataclass(frozen=True)
class SynchronisedKernel(RowKernel):
    """What kernels share whose teams use ``cl/team.cl``."""

    @property
    @abc.abstractmethod
    def row_bytes(self) -> int:
        """Local memory for a row."""

    @property
    def team_sync(self) -> str:
        """How lanes of a team order local memory: "none" has to be, by the device's way ("ptx", "wave"), or "barrier"."""
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
        found = self.within(min(self.work_group, device.max_work_group), device.portability.lane_width)
        assert found is not None  # a work-group has at least one work-item
        while found.row_bytes > device.local_memory and found.lanes > 1:
            found = found.within(found.lanes // 2, device.portability.lane_width)
            assert found is not None
        return found
