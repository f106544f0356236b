"""Teams that exchange through local memory: how lanes see what the others wrote, and how they add values up."""

from __future__ import annotations

import abc
import logging
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import Self, override

from clsparse_py.device import Device
from clsparse_py.launch import Chain
from clsparse_py.spgemm.accumulator import Product, Rows
from clsparse_py.spgemm.kernels import Form, RowKernel
from clsparse_py.spgemm.team import Team

__all__ = ["FencedKernel", "SummingTeam"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FencedKernel(RowKernel):
    """What kernels share whose teams use ``cl/team.cl``."""

    @property
    @abc.abstractmethod
    def row_bytes(self) -> int:
        """Local memory for a row."""

    @property
    def fence(self) -> str:
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
        return f"{super().prelude}\n#define TEAM {self.lanes}\n#define FENCE_BY_{self.fence.upper()}"

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


@dataclass(frozen=True)
class SummingTeam(Team):
    """A team that adds values in the order of A's row, or by atomics where results need not be deterministic.

    Attributes
    ----------
    deterministic : bool
    """

    deterministic: bool = field(default=True, kw_only=True)

    def adds_in_order(self, device: Device, form: Form) -> bool:
        """Return whether values are added in order: they have to be, or the device has no atomics for them."""
        size = form.arithmetic.result.itemsize if form.arithmetic else 0
        return self.deterministic or not (size == 4 or (size == 8 and device.int64_atomics))

    @override
    def _enqueue(self, chain: Chain, product: Product, rows: Rows, form: Form, *results: Any) -> None:
        team = self if product.deterministic else replace(self, deterministic=False)
        if not team.deterministic and form.arithmetic and team.adds_in_order(chain.device, form):
            _log.info("%s has no atomics for values of this dtype: they are added in order", chain.device.name)
        super(SummingTeam, team)._enqueue(chain, product, rows, form, *results)
