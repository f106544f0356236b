"""The parameter records of kernels of graph algorithms."""

from __future__ import annotations

from typing import ClassVar

from clsparse_py.declaration import Variants, kernel
from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure

__all__ = ["Components", "Level", "Orient"]


@kernel
@dataclass(frozen=True)
class Orient(OfStructure):
    """Parameters of ``templates/graph/orient.mako``."""

    template = "graph/orient"


@kernel
@dataclass(frozen=True)
class Level(OfStructure):
    """Parameters of ``templates/graph/level.mako``."""

    template = "graph/level"


@kernel
@dataclass(frozen=True)
class Components(OfStructure):
    """Parameters of ``templates/graph/components.mako``.

    Attributes
    ----------
    phase : str
        "start", "link" or "label".
    """

    template = "graph/components"
    variants: ClassVar[Variants] = {each: {"phase": each or "link"} for each in ("", "start", "label")}

    phase: str
