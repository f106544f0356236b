"""The parameter records of the kernels of smoothed aggregation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfNumbers, OfStructure
from clsparse_py._operations.construct.tiles import work_group_of
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = [
    "BEGIN", "MAX_INVERTED", "Advance", "Choose", "DenseInverse", "Inverse", "Join", "Nodes", "Norms", "Orthonormal",
    "Prolongator", "Smoothing", "Strength", "Tentative", "Thresholds",
]  # fmt: skip

# LAPACK's threads on the host spin, or wait, for milliseconds, so a work-group of the device inverts small matrices.
#: Most unknowns of a multigrid hierarchy's coarsest matrix that a work-group inverts; LAPACK inverts larger ones on the host.
MAX_INVERTED = 256
#: Work-items that share a row while a work-group inverts the coarsest matrix of a multigrid hierarchy.
_INVERTING_LANES = 32
#: Most bytes of local memory in which a work-group computes rows of a smoothed prolongator.
_LOCAL = 24576
#: Number of a node's neighbours, from the first on, whose aggregates may be joined: the node joins the most frequent of them.
_MOST = 32
#: Entries of a row of the graph that a work-item of aggregation loads at a time, in search of an undecided node to wait for.
_AT_ONCE = 8
#: Most active nodes of a graph (undecided and not waiting) that a work-group takes in a step of aggregation.
_LISTED = 64
#: Most nodes of a graph that a work-group collects in local memory for the next step's list of active nodes, in aggregation.
_WOKEN = 256


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds of aggregation on a device."""

    operation = "aggregation"

    #: Work-items that share a node's neighbours where nodes have few neighbours.
    lanes: int = number(8, "work-items", least=1, power=True)
    #: Mean number of neighbours of a node above which nodes have many, so that ``many_lanes`` and ``large_group`` are used.
    few_neighbours: int = number(12, "neighbours")
    #: Work-items that share a node's neighbours where nodes have many neighbours.
    many_lanes: int = number(32, "work-items", least=1, power=True)
    #: Most work-items of a work-group in steps of aggregation where nodes have many neighbours.
    large_group: int = number(512, "work-items", least=1)
    #: Launches over active nodes between two reads of the number of active nodes; a multiple of three.
    launches_ahead: int = number(24, "launches", least=3)
    #: Steps over all nodes between two reads of the number of undecided nodes.
    steps_ahead: int = number(64, "steps", least=1)


#: Kernel that sets each graph node's first state, and for a sample how far, in node numbers, first neighbours lie before nodes.
BEGIN = declare_loop(
    "aggregation/begin",
    "The first state of each node of a graph, 2 if the node has a neighbour, else 0; and of a sample of nodes the reach, the "
    "distance back to their first neighbour, or 0. From a structure in canonical format; entries on the diagonal do not count.",
    "const I *indptr, const I *indices, ulong n_sampled, ulong every, uint *state, I *reach",
    "const I begins = indptr[node], length = indptr[node + 1] - begins;",
    "state[node] = length > 1 || (length > 0 && indices[begins] != (I)node) ? 2 : 0;",
    "if (node < n_sampled) {",
    "    const I sampled = (I)(node * every), at = indptr[sampled];",
    "    reach[node] = at < indptr[sampled + 1] ? max(sampled - indices[at], (I)0) : 0;",
    "}",
    counter="node",
)


@kernel
@dataclass(frozen=True)
class Choose(OfStructure):
    """Parameters of ``templates/aggregation/choose.mako``.

    Attributes
    ----------
    serial : bool
        Whether one work-item decides all nodes.
    """

    template = "aggregation/choose"
    variants: ClassVar[Variants] = {"": {"serial": False}, "serial": {"work_group": 1, "serial": True}}

    serial: bool


@kernel
@dataclass(frozen=True)
class Advance(OfStructure):
    """Parameters of ``templates/aggregation/advance.mako``. Phases are "first" and "step".

    Attributes
    ----------
    phase : str
    lanes : int
        Work-items that share the neighbours of a node, 1 in the first phase.
    listed : int
        Most active nodes of a work-group in a step.
    woken : int
        Most nodes that a work-group collects in local memory for the next step.
    """

    template = "aggregation/advance"

    phase: str
    lanes: int
    listed: int
    woken: int

    @classmethod
    def legal(cls, device: Device, index: str, phase: str, mean: float) -> Advance:
        """Return the parameters of the kernel of a phase of aggregation, for nodes with ``mean`` neighbours on average."""
        limits = Thresholds.of(device)
        group = work_group_of(device)
        if phase == "first":
            return cls(group, index, phase, 1, _LISTED, _WOKEN)
        is_long = mean > limits.few_neighbours
        group = min(limits.large_group, device.max_work_group) if is_long else group
        return cls(group, index, phase, math.gcd(limits.many_lanes if is_long else limits.lanes, group), _LISTED, _WOKEN)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, teams in a work-group, row entries that a work-item loads at once."""
        return {**super().arguments(), "teams": self.work_group // self.lanes, "at_once": _AT_ONCE}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the aggregation kernel's nearest parameters for a work-group size; None if the size is 0."""
        return replace(self, work_group=work_group, lanes=math.gcd(self.lanes, work_group)) if work_group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "" (phase "first"), "step", and "many_lanes" (phase "step" for nodes of many neighbours)."""
        for variant, phase in (("", "first"), ("step", "step")):
            yield variant, cls.legal(device, arithmetic.index, phase, 7.0)
        yield "many_lanes", cls.legal(device, arithmetic.index, "step", 100.0)


@kernel
@dataclass(frozen=True)
class Join(OfStructure):
    """Parameters of ``templates/aggregation/join.mako``."""

    template = "aggregation/join"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the number of neighbours whose aggregates a node may join."""
        return {**super().arguments(), "most": _MOST}


@kernel
@dataclass(frozen=True)
class Nodes(OfNumbers):
    """Parameters of ``templates/aggregation/nodes.mako``."""

    template = "aggregation/nodes"


@kernel
@dataclass(frozen=True)
class Inverse(OfNumbers):
    """Parameters of ``templates/aggregation/inverse.mako``.

    Attributes
    ----------
    l1 : bool
        Whether sums of absolute values of rows are inverted, not diagonal entries.
    """

    template = "aggregation/inverse"
    variants: ClassVar[Variants] = {"": {"l1": False}, "l1": {"l1": True}}

    l1: bool


@kernel
@dataclass(frozen=True)
class DenseInverse(OfNumbers):
    """Parameters of ``templates/aggregation/dense_inverse.mako``; on CPU devices the work-group is one work-item."""

    template = "aggregation/dense_inverse"
    variants: ClassVar[Variants] = {"": {"work_group": 1}, "group": {}}

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, work-items that share a row, teams in a work-group, most unknowns."""
        lanes = math.gcd(_INVERTING_LANES, self.work_group)
        return {**super().arguments(), "lanes": lanes, "teams": self.work_group // lanes, "most": MAX_INVERTED}


@kernel
@dataclass(frozen=True)
class Strength(OfNumbers):
    """Parameters of ``templates/aggregation/strength.mako``."""

    template = "aggregation/strength"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(**{**cls.usual(device, arithmetic), "work_group": work_group_of(device)})


@kernel
@dataclass(frozen=True)
class Norms(OfNumbers):
    """Parameters of ``templates/aggregation/norms.mako``; the work-group is one work-item."""

    template = "aggregation/norms"
    variants: ClassVar[Variants] = {"": {"work_group": 1}}


@kernel
@dataclass(frozen=True)
class Tentative(OfNumbers):
    """Parameters of ``templates/aggregation/tentative.mako``.

    Attributes
    ----------
    normed : bool
        Whether there is one candidate, which is divided by its known norms; else candidates are copied as they are.
    """

    template = "aggregation/tentative"
    variants: ClassVar[Variants] = {"": {}, "normed": {"work_group": 1, "normed": True}}

    normed: bool = False


@kernel
@dataclass(frozen=True)
class Orthonormal(OfNumbers):
    """Parameters of ``templates/aggregation/orthonormal.mako``."""

    template = "aggregation/orthonormal"
    variants: ClassVar[Variants] = {"": {"work_group": 64}}


@kernel
@dataclass(frozen=True)
class Smoothing(OfNumbers):
    """Parameters of ``templates/aggregation/smoothing.mako``."""

    template = "aggregation/smoothing"

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(**{**cls.usual(device, arithmetic), "work_group": work_group_of(device)})


@kernel
@dataclass(frozen=True)
class Prolongator(OfNumbers):
    """Parameters of ``templates/aggregation/prolongator.mako``. Phases are "make", "pack" and "values".

    Attributes
    ----------
    phase : str
    adjacent : bool
        Whether a work-item's rows are adjacent.
    local_rows : bool
        Whether a work-item has local memory for a row of P; else rows are in global memory alone.
    """

    template = "aggregation/prolongator"

    phase: str
    adjacent: bool
    local_rows: bool = False

    @classmethod
    def legal(cls, device: Device, index: str, dtype: str, phase: str, room: int) -> Prolongator:
        """Return a phase's kernel parameters for smoothing a prolongator, with local memory for ``room`` entries of a row."""
        adjacent, group = device.lanes_are_loops and phase != "values", work_group_of(device)
        if device.lanes_are_loops or phase == "pack":
            return cls(group, index, dtype, phase, adjacent)
        fit = _LOCAL // (room * (np.dtype(index).itemsize + np.dtype(dtype).itemsize)) // 32 * 32
        return cls(min(group, fit), index, dtype, phase, adjacent, local_rows=True)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: one for each phase, some with rows in local memory ("room") or adjacent rows ("adjacent")."""
        types, group = (arithmetic.index, arithmetic.floating), work_group_of(device)
        yield "", cls(group, *types, "make", False)
        for phase in ("pack", "values"):
            yield phase, cls(group, *types, phase, False)
        for phase in ("make", "values"):
            yield f"{phase}-room", cls(min(64, group), *types, phase, False, local_rows=True)
        for phase in ("make", "pack"):
            yield f"{phase}-adjacent", cls(1, *types, phase, True)
