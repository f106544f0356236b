"""The parameter records of kernels of graph algorithms."""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure

__all__ = ["Components", "Level", "Orient"]


@dataclass(frozen=True)
class Orient(OfStructure):
    """Parameters of ``templates/graph/orient.mako``."""

    template = "graph/orient"


@dataclass(frozen=True)
class Level(OfStructure):
    """Parameters of ``templates/graph/level.mako``."""

    template = "graph/level"


@dataclass(frozen=True)
class Components(OfStructure):
    """Parameters of ``templates/graph/components.mako``.

    Attributes
    ----------
    phase : str
        "start", "link" or "label".
    """

    template = "graph/components"

    phase: str

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.phase}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "phase": self.phase}
