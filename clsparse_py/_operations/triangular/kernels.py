"""Records of the kernels for triangular systems and incomplete factors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfNumbers, OfStructure

__all__ = ["Ends", "Factor", "Levels", "RowKeys", "Solve", "State", "SyncFree", "SyncFreeLevels", "work_group_of"]

#: Most work-items of a work-group in the kernels for triangular systems on devices other than CPUs.
_WORK_GROUP = 256


class State(NamedTuple):
    """The numbers, int32, that kernels write while they solve a triangular system.

    Attributes
    ----------
    singular, starved : int
        1 if a diagonal entry is 0; 1 if a launch of the method `sync-free` gave up waiting, and one work-group solved all rows.
    ticket, ended : int
        The numbers of tasks of the method `sync-free` that have begun, and of work-groups that have ended.
    """

    singular: Any
    starved: Any
    ticket: Any
    ended: Any


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
class SyncFree(OfNumbers):
    """Parameters of ``templates/triangular/sync_free.mako``.

    Attributes
    ----------
    upper, unit, diagonal_at_end : bool
        As of `Solve`.
    """

    template = "triangular/sync_free"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "unit": False, "diagonal_at_end": True},
        "unit": {"upper": True, "unit": True, "diagonal_at_end": True},
        "beyond": {"upper": True, "unit": False, "diagonal_at_end": False},
    }

    upper: bool
    unit: bool
    diagonal_at_end: bool

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the unsigned words that a value consists of."""
        dtype = np.dtype(self.dtype)
        size, parts = min(dtype.itemsize, 8), max(dtype.itemsize // 8, 1)
        word = {4: "uint", 8: "ulong"}[size]
        of_words = {"word": word, "parts": parts, "words": word + ("" if parts == 1 else str(parts))}
        return {**super().arguments(), "is_complex": dtype.kind == "c", "item_bytes": dtype.itemsize, **of_words}


@kernel
@dataclass(frozen=True)
class SyncFreeLevels(OfStructure):
    """Parameters of ``templates/triangular/sync_free_levels.mako``.

    Attributes
    ----------
    upper : bool
        Whether the matrix is upper triangular.
    """

    template = "triangular/sync_free_levels"
    variants: ClassVar[Variants] = {"": {"upper": False}, "upper": {"upper": True}}

    upper: bool


@kernel
@dataclass(frozen=True)
class RowKeys(OfStructure):
    """Parameters of ``templates/triangular/row_keys.mako``."""

    template = "triangular/row_keys"
    variants: ClassVar[Variants] = {"": {}}


@kernel
@dataclass(frozen=True)
class Factor(OfNumbers):
    """Parameters of ``templates/triangular/factor.mako``.

    Attributes
    ----------
    hermitian : bool
        True: the factor of IC; False: the factors of ILU.
    schedule : str
        "rows" or "levels": exact elimination, row by row or level by level; "sweep": all entries at once, from those of the sweep
        before or, at first, of "guess".
    """

    template = "triangular/factor"
    variants: ClassVar[Variants] = {
        "": {"hermitian": False, "schedule": "sweep"},
        "hermitian": {"hermitian": True, "schedule": "sweep"},
        "guess": {"hermitian": False, "schedule": "guess"},
        "guess_hermitian": {"hermitian": True, "schedule": "guess"},
        "levels": {"hermitian": False, "schedule": "levels"},
        "rows": {"hermitian": True, "schedule": "rows", "work_group": 1},
    }

    hermitian: bool
    schedule: str


def work_group_of(device: Device) -> int:
    """Return the work-group size of kernels for triangular systems: 1 on CPU devices, else a power of two, 256 at most."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1
