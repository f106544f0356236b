"""Merging accumulators: "reg-merge", heads in registers, and "merge", heads in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from typing_extensions import Self, override

from clsparse_py.device import Device
from clsparse_py.spgemm.kernels import Form, RowKernel
from clsparse_py.spgemm.team import Team

__all__ = ["Merge", "MergeKernel"]


@dataclass(frozen=True)
class MergeKernel(RowKernel):
    """Parameters of ``templates/spgemm/merge.mako``.

    Attributes
    ----------
    items : int
        Heads of a work-item.
    """

    template = "spgemm/merge"
    kind = "merge"

    items: int

    @property
    @override
    def shape_name(self) -> str:
        return f"{super().shape_name}_{self.items}_heads"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**self._common(), "items": self.items}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, portability=self.portability.at_most(lane_width)) if work_group else None


@dataclass(frozen=True)
class Merge(Team):
    """An accumulator that merges rows of B, for rows of A with at most ``items`` entries."""

    items: int
    work_group: int = 128

    @override
    def record(self, device: Device, form: Form, listed: bool) -> MergeKernel:
        group = min(self.work_group, device.max_work_group)
        return MergeKernel(group, form, listed, device.portability.at_most(1), 1, self.items)

    @override
    def describe(self) -> str:
        return f"{self.items} heads a work-item"
