"""Teams that exchange through local memory: how lanes see what the others wrote, and how they add values up."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import Self, override

from clsparse_py.device import Device
from clsparse_py.launch import Chain
from clsparse_py.spgemm.accumulator import Product, Rows
from clsparse_py.spgemm.kernels import Form, RowKernel
from clsparse_py.spgemm.team import Team

__all__ = ["FencedKernel", "FencedTeam"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FencedKernel(RowKernel):
    """What kernels share whose teams use ``cl/team.cl``."""

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


@dataclass(frozen=True)
class FencedTeam(Team):
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
        super(FencedTeam, team)._enqueue(chain, product, rows, form, *results)
