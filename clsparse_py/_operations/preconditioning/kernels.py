"""Records of the kernels for preconditioners: colours of rows, relaxation by colours, approximate inverses, diagonals."""

from __future__ import annotations

from typing import ClassVar

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfNumbers, OfStructure

__all__ = ["CheckDiagonal", "Colour", "InvertRows", "InvertTriangle", "Relax"]


@kernel
@dataclass(frozen=True)
class Colour(OfStructure):
    """Parameters of ``templates/preconditioning/colour.mako``."""

    template = "preconditioning/colour"


@kernel
@dataclass(frozen=True)
class Relax(OfNumbers):
    """Parameters of ``templates/preconditioning/relax.mako``."""

    template = "preconditioning/relax"


@kernel
@dataclass(frozen=True)
class CheckDiagonal(OfNumbers):
    """Parameters of ``templates/preconditioning/check_diagonal.mako``."""

    template = "preconditioning/check_diagonal"


@kernel
@dataclass(frozen=True)
class InvertRows(OfNumbers):
    """Parameters of ``templates/preconditioning/invert_rows.mako``."""

    template = "preconditioning/invert_rows"
    variants: ClassVar[Variants] = {"": {"work_group": 32}, "long": {}, "serial": {"work_group": 1}}


@kernel
@dataclass(frozen=True)
class InvertTriangle(OfNumbers):
    """Parameters of ``templates/preconditioning/invert_triangle.mako``.

    Attributes
    ----------
    upper, unit : bool
        Whether the matrix is upper triangular, and whether its diagonal is 1, whatever is stored.
    """

    template = "preconditioning/invert_triangle"
    variants: ClassVar[Variants] = {"": {"upper": False, "unit": True}, "upper": {"upper": True, "unit": False}}

    upper: bool
    unit: bool
