"""Records of the kernels for triangular systems and incomplete factors."""

from __future__ import annotations

from typing import ClassVar

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfNumbers, OfStructure

__all__ = ["Ends", "Factor", "Levels", "Solve", "work_group_of"]

#: Most work-items of a work-group in the kernels for triangular systems on devices other than CPUs.
_WORK_GROUP = 256


@kernel
@dataclass(frozen=True)
class Levels(OfStructure):
    """Parameters of ``templates/triangular/levels.mako``.

    Attributes
    ----------
    upper : bool
        Whether the matrix is upper triangular.
    """

    template = "triangular/levels"
    variants: ClassVar[Variants] = {"": {"upper": False}, "upper": {"upper": True}}

    upper: bool


@kernel
@dataclass(frozen=True)
class Ends(OfStructure):
    """Parameters of ``templates/triangular/ends.mako``.

    Attributes
    ----------
    upper : bool
        Whether the matrix is upper triangular.
    """

    template = "triangular/ends"
    variants: ClassVar[Variants] = {"": {"upper": False}, "upper": {"upper": True}}

    upper: bool


@kernel
@dataclass(frozen=True)
class Solve(OfNumbers):
    """Parameters of ``templates/triangular/solve.mako``.

    Attributes
    ----------
    upper, unit : bool
        Whether the matrix is upper triangular, and whether its diagonal is 1, whatever is stored.
    diagonal_at_end : bool
        Whether each row stores its diagonal entry once, as its last entry (upper: its first), and no entry beyond the diagonal.
    width : int
        Columns of b, side by side, that a work-item solves row by row; 0: work-items solve rows, level by level.
    """

    template = "triangular/solve"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "unit": False, "diagonal_at_end": False, "width": 0},
        "unit": {"upper": True, "unit": True, "diagonal_at_end": False, "width": 0},
        "end": {"upper": False, "unit": False, "diagonal_at_end": True, "width": 0},
        "serial": {"upper": True, "unit": False, "diagonal_at_end": True, "width": 1, "work_group": 1},
        "columns": {"upper": False, "unit": False, "diagonal_at_end": False, "width": 8, "work_group": 1},
    }

    upper: bool
    unit: bool
    diagonal_at_end: bool
    width: int


@kernel
@dataclass(frozen=True)
class Factor(OfNumbers):
    """Parameters of ``templates/triangular/factor.mako``.

    Attributes
    ----------
    hermitian : bool
        True: the factor of IC; False: the factors of ILU.
    schedule : str
        "rows" or "levels": exact elimination, row by row or level by level; "sweep": all entries at once.
    """

    template = "triangular/factor"
    variants: ClassVar[Variants] = {
        "": {"hermitian": False, "schedule": "sweep"},
        "hermitian": {"hermitian": True, "schedule": "sweep"},
        "levels": {"hermitian": False, "schedule": "levels"},
        "rows": {"hermitian": True, "schedule": "rows", "work_group": 1},
    }

    hermitian: bool
    schedule: str


def work_group_of(device: Device) -> int:
    """Return the work-group size of kernels for triangular systems: 1 on CPU devices, else a power of two, 256 at most."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1
