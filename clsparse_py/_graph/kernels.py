"""The parameter records of kernels of graph algorithms."""

from __future__ import annotations

from typing import ClassVar

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfStructure

__all__ = ["ORIENT", "Components", "Level", "Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The graph algorithms' thresholds on a device."""

    operation = "graph"

    #: Work-group size of the kernels of graph algorithms.
    work_group: int = number(128, "work-items", least=1)
    #: Levels that a search enqueues before the host asks whether the last one found a vertex.
    levels_ahead: int = number(8, "levels", least=1)


#: Loop kernel that marks the edges that lead to a vertex of higher degree or, at equal degrees, of larger number.
ORIENT = declare_loop(
    "graph/orient",
    "Marks of the entries of an adjacency matrix that lead to a vertex of higher degree or, at equal degrees, of larger number: "
    "the edges in one direction, without cycles. The order is that of Latapy, Main-memory triangle "
    "computations for very large graphs.",
    "const I *rows, const I *columns, const I *indptr, uchar *marks",
    "const I row = rows[k], column = columns[k];",
    "const I here = indptr[row + 1] - indptr[row], there = indptr[column + 1] - indptr[column];",
    "marks[k] = here < there || (here == there && row < column);",
    counter="k",
)


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
    variants: ClassVar[Variants] = {name: {"phase": name or "link"} for name in ("", "start", "label")}

    phase: str
