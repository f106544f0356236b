"""Kernels whose teams exchange through local memory: how their lanes see what the others wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace

from typing_extensions import Self, override

from clsparse_py.spgemm.kernels import RowKernel

__all__ = ["FencedKernel"]


@dataclass(frozen=True)
class FencedKernel(RowKernel):
    """What kernels share whose teams use ``cl/team.cl``."""

    @property
    def fence(self) -> str:
        """How lanes of a team order local memory: "none" has to be, by the device's way ("ptx", "wave"), or "barrier"."""
        if self.lanes == 1:
            return "none"
        power = self.lanes & (self.lanes - 1) == 0
        if power and self.portability.match == "ptx" and self.lanes <= 32 and self.work_group % 32 == 0:
            return "ptx"
        if power and self.portability.lanes == "bpermute" and self.lanes <= self.portability.lane_width:
            return "wave"
        return "barrier"

    @property
    @override
    def prelude(self) -> str:
        return f"{super().prelude}\n#define TEAM {self.lanes}\n#define FENCE_BY_{self.fence.upper()}"

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        if not work_group:
            return None
        lanes = self.lanes if self.lanes <= work_group else 1 << work_group.bit_length() - 1
        portability = self.portability.at_most(lane_width)
        return replace(self, work_group=work_group // lanes * lanes, lanes=lanes, portability=portability)
