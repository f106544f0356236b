"""A parameter record beside each template of smoothed aggregation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from typing_extensions import Self, override

from clsparse_py.krylov.sweep import numbers
from clsparse_py.records import dataclass
from clsparse_py.structure import OfPhase, OfStructure

__all__ = [
    "Advance", "Begin", "Choose", "DenseInverse", "Inverse", "Join", "Nodes", "Norms", "Orthonormal", "Prolongator", "Roots",
    "Smoothing", "Strength", "Tentative",
]  # fmt: skip

#: Neighbours of a node whose aggregates are counted.
_MOST = 32
#: Work-items that share the neighbours of a node, and how many if there are more of them than so many as a mean.
_LANES, _MANY_LANES, _LONG = 8, 32, 12
#: Entries that a work-item looks at together.
_AT_ONCE = 8
#: Nodes that a work-group lists before it asks for their places, at most; those beyond ask one by one.
_LISTED = 512


@dataclass(frozen=True)
class Begin(OfStructure):
    """Parameters of ``templates/aggregation/begin.mako``."""

    template = "aggregation/begin"


@dataclass(frozen=True)
class Roots(OfStructure):
    """Parameters of ``templates/aggregation/roots.mako``."""

    template = "aggregation/roots"


@dataclass(frozen=True)
class Choose(OfStructure):
    """Parameters of ``templates/aggregation/choose.mako``.

    Attributes
    ----------
    serial : bool
        Whether one work-item decides all nodes.
    """

    template = "aggregation/choose"

    serial: bool

    @property
    @override
    def name(self) -> str:
        return f"{super().name}{'_serial' if self.serial else ''}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "serial": self.serial}


@dataclass(frozen=True)
class Advance(OfPhase):
    """Parameters of ``templates/aggregation/advance.mako``. Phases are "first", "cover" and "wait".

    Attributes
    ----------
    lanes : int
        Work-items that share the neighbours of a node.
    """

    template = "aggregation/advance"

    lanes: int

    @classmethod
    def legal(cls, work_group: int, index: str, phase: str, mean: float) -> Advance:
        """Return the record for rows of ``mean`` entries."""
        return cls(work_group, index, phase, math.gcd(_MANY_LANES if mean > _LONG else _LANES, work_group))

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.lanes}_lanes"

    @override
    def arguments(self) -> Mapping[str, object]:
        shape = {"lanes": self.lanes, "teams": self.work_group // self.lanes}
        return {**super().arguments(), **shape, "listed": _LISTED, "at_once": _AT_ONCE}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, lanes=math.gcd(self.lanes, work_group)) if work_group else None


@dataclass(frozen=True)
class Join(OfStructure):
    """Parameters of ``templates/aggregation/join.mako``.

    Attributes
    ----------
    near : bool
        Whether neighbours of roots join, else those that are left.
    """

    template = "aggregation/join"

    near: bool

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{'near' if self.near else 'far'}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "near": self.near, "most": _MOST}


@dataclass(frozen=True)
class _OfNumbers(OfStructure):
    """Base of the records of kernels that compute with values.

    Attributes
    ----------
    dtype : str
        NumPy's name of their dtype: float32, float64, complex64 or complex128.
    """

    dtype: str

    @property
    @override
    def name(self) -> str:
        return f"{self.template.replace('/', '_')}_{self.dtype}_{self.index}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        return "\n".join([*numbers(np.dtype(self.dtype)), super().prelude])


@dataclass(frozen=True)
class Nodes(_OfNumbers):
    """Parameters of ``templates/aggregation/nodes.mako``."""

    template = "aggregation/nodes"


@dataclass(frozen=True)
class Inverse(_OfNumbers):
    """Parameters of ``templates/aggregation/inverse.mako``."""

    template = "aggregation/inverse"


@dataclass(frozen=True)
class DenseInverse(_OfNumbers):
    """Parameters of ``templates/aggregation/dense_inverse.mako``; the work-group is one work-item."""

    template = "aggregation/dense_inverse"


@dataclass(frozen=True)
class Strength(_OfNumbers):
    """Parameters of ``templates/aggregation/strength.mako``."""

    template = "aggregation/strength"


@dataclass(frozen=True)
class Norms(_OfNumbers):
    """Parameters of ``templates/aggregation/norms.mako``; the work-group is one work-item."""

    template = "aggregation/norms"


@dataclass(frozen=True)
class Tentative(_OfNumbers):
    """Parameters of ``templates/aggregation/tentative.mako``.

    Attributes
    ----------
    normed : bool
        Whether there is one candidate, whose norms are known.
    """

    template = "aggregation/tentative"

    normed: bool = False

    @property
    @override
    def name(self) -> str:
        return f"{super().name}{'_normed' if self.normed else ''}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "normed": self.normed}


@dataclass(frozen=True)
class Orthonormal(_OfNumbers):
    """Parameters of ``templates/aggregation/orthonormal.mako``."""

    template = "aggregation/orthonormal"


@dataclass(frozen=True)
class Smoothing(_OfNumbers):
    """Parameters of ``templates/aggregation/smoothing.mako``."""

    template = "aggregation/smoothing"


@dataclass(frozen=True)
class Prolongator(_OfNumbers):
    """Parameters of ``templates/aggregation/prolongator.mako``. Phases are "make", "pack" and "values".

    Attributes
    ----------
    phase : str
    adjacent : bool
        Whether a work-item's rows are adjacent.
    """

    template = "aggregation/prolongator"

    phase: str
    adjacent: bool

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.phase}{'_adjacent' if self.adjacent else ''}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "phase": self.phase, "adjacent": self.adjacent}
