"""Records of the kernels for triangular systems and incomplete factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfNumbers, OfStructure
from clsparse_py._operations.triangular.grids import MAX_POINTS, Stencil, TileShape

__all__ = [
    "GROUPS",
    "Ends",
    "EndsCounts",
    "Factor",
    "Levels",
    "LevelsState",
    "RowKeys",
    "Solve",
    "State",
    "StencilMasks",
    "SupernodePlaces",
    "Supernodes",
    "SyncFree",
    "SyncFreeLevels",
    "Tiles",
    "work_group_of",
]

#: Most work-groups to a compute unit of a launch over the rows of a triangular matrix.
GROUPS = 8
#: Most work-items of a work-group in the kernels for triangular systems on devices other than CPUs.
_WORK_GROUP = 256
#: Stencils of example records: five points in a plane, and nine.
_FIVE_POINTS = Stencil(((0, -1, 0), (-1, 0, 0)))
_NINE_POINTS = Stencil(((-1, -1, 0), (0, -1, 0), (1, -1, 0), (-1, 0, 0)))


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


class LevelsState(NamedTuple):
    """The numbers, int32, that kernels write while they look for the levels of rows.

    Attributes
    ----------
    highest, starved, ticket : int
        The highest level; 1 if a launch gave up waiting; the work-groups that have begun.
    """

    highest: Any
    starved: Any
    ticket: Any


class EndsCounts(NamedTuple):
    """The numbers, int32, that the kernel of `Ends` writes.

    Attributes
    ----------
    others, continued : int
        1 if a row does not end (upper: begin) with its diagonal entry; the rows that continue a supernode.
    """

    others: Any
    continued: Any


@kernel
@dataclass(frozen=True)
class Levels(OfStructure):
    """Parameters of ``templates/triangular/levels.mako``.

    Attributes
    ----------
    upper, with_supernodes : bool
        Whether the matrix is upper triangular; whether the rows of a supernode have one level.
    """

    template = "triangular/levels"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "with_supernodes": False},
        "upper": {"upper": True, "with_supernodes": False},
        "supernodes": {"upper": False, "with_supernodes": True},
    }

    upper: bool
    with_supernodes: bool


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

    #: Number of rows whose distances are told, and of the entries of such a row at most.
    N_SAMPLES, MAX_ENTRIES = 64, MAX_POINTS + 1

    upper: bool

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the numbers of samples and of their entries."""
        return {**super().arguments(), "n_samples": self.N_SAMPLES, "max_entries": self.MAX_ENTRIES}


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
    tiled : bool
        Whether a work-item solves the rows of a tile alone, and the tiles of a launch need none of each other.
    """

    template = "triangular/solve"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "unit": False, "diagonal_at_end": False, "width": 0},
        "unit": {"upper": True, "unit": True, "diagonal_at_end": False, "width": 0},
        "end": {"upper": False, "unit": False, "diagonal_at_end": True, "width": 0},
        "serial": {"upper": True, "unit": False, "diagonal_at_end": True, "width": 1, "work_group": 1},
        "columns": {"upper": False, "unit": False, "diagonal_at_end": False, "width": 8, "work_group": 1},
        "tiled": {"upper": True, "unit": False, "diagonal_at_end": True, "width": 1, "work_group": 1, "tiled": True},
    }

    upper: bool
    unit: bool
    diagonal_at_end: bool
    width: int
    tiled: bool = False

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and what kind of numbers the values are."""
        dtype = np.dtype(self.dtype)
        return {**super().arguments(), "is_complex": dtype.kind == "c", "is_double": dtype.itemsize == 8}


def _describe_words(dtype: str) -> Mapping[str, object]:
    """Return the arguments, by name, of templates in which values are their own flags: the unsigned words of a value."""
    item_bytes = np.dtype(dtype).itemsize
    parts, word = max(item_bytes // 8, 1), {4: "uint", 8: "ulong"}[min(item_bytes, 8)]
    return {"word": word, "parts": parts, "words": word + ("" if parts == 1 else str(parts)), "item_bytes": item_bytes}


@kernel
@dataclass(frozen=True)
class SyncFree(OfNumbers):
    """Parameters of ``templates/triangular/sync_free.mako``.

    Attributes
    ----------
    upper, unit, diagonal_at_end : bool
        As of `Solve`.
    rows : int
        Most rows of a supernode; 1 unless `diagonal_at_end`.
    """

    template = "triangular/sync_free"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "unit": False, "diagonal_at_end": True, "rows": 1},
        "unit": {"upper": True, "unit": True, "diagonal_at_end": True, "rows": 1},
        "beyond": {"upper": True, "unit": False, "diagonal_at_end": False, "rows": 1},
        "supernodes": {"upper": False, "unit": False, "diagonal_at_end": True, "rows": 4},
        "unit_supernodes": {"upper": True, "unit": True, "diagonal_at_end": True, "rows": 3},
    }

    upper: bool
    unit: bool
    diagonal_at_end: bool
    rows: int

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the unsigned words that a value consists of."""
        is_complex = np.dtype(self.dtype).kind == "c"
        return {**super().arguments(), "is_complex": is_complex, **_describe_words(self.dtype)}


@kernel
@dataclass(frozen=True)
class SyncFreeLevels(OfStructure):
    """Parameters of ``templates/triangular/sync_free_levels.mako``.

    Attributes
    ----------
    upper, with_supernodes : bool
        As of `Levels`.
    """

    template = "triangular/sync_free_levels"
    variants: ClassVar[Variants] = Levels.variants

    upper: bool
    with_supernodes: bool


@kernel
@dataclass(frozen=True)
class StencilMasks(OfStructure):
    """Parameters of ``templates/triangular/stencil_masks.mako``.

    Attributes
    ----------
    upper : bool
        Whether the matrix is upper triangular.
    stencil : Stencil
        The stencil of the rows.
    """

    template = "triangular/stencil_masks"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "stencil": _FIVE_POINTS},
        "upper": {"upper": True, "stencil": _NINE_POINTS},
    }

    upper: bool
    stencil: Stencil

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the stencil's offsets."""
        return {**super().arguments(), "stencil": self.stencil.offsets}


@kernel
@dataclass(frozen=True)
class Tiles(OfNumbers):
    """Parameters of ``templates/triangular/tiles.mako``.

    Attributes
    ----------
    upper, unit : bool
        As of `Solve`.
    stencil : Stencil
        The stencil of the rows.
    tile : TileShape
        The extents of a tile: a solver, the first work-items, to each of its lines; the other work-items fetch.
    """

    template = "triangular/tiles"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "unit": False, "stencil": _FIVE_POINTS, "tile": TileShape((8, 8, 1))},
        "unit": {"upper": True, "unit": True, "stencil": _FIVE_POINTS, "tile": TileShape((4, 8, 1))},
    }

    upper: bool
    unit: bool
    stencil: Stencil
    tile: TileShape

    @property
    def n_solvers(self) -> int:
        """The number of work-items that solve, one to a line of a tile."""
        return self.tile.extents[1] * self.tile.extents[2]

    @property
    def n_local_bytes(self) -> int:
        """An upper bound for the local memory of a work-group: the entries of a tile, and the unknowns that it has and needs."""
        tile, item_bytes = self.tile.extents, np.dtype(self.dtype).itemsize
        reach = [max(sides) for sides in zip(*(map(abs, offset) for offset in self.stencil.skewed), strict=True)]
        points, cells = math.prod(tile), (tile[0] + reach[0] + 1) * (tile[1] + reach[1]) * (tile[2] + reach[2]) + 2
        n_bytes: int = points * ((len(self.stencil.offsets) + 2) * item_bytes + 4) + cells * item_bytes + 64
        return n_bytes

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record of at most the given work-group size; None if that leaves nobody to fetch unknowns."""
        return super().within(work_group, lane_width) if work_group > self.n_solvers else None

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the unsigned words that a value consists of."""
        is_complex = np.dtype(self.dtype).kind == "c"
        own = {"offsets": self.stencil.skewed, "skew": self.stencil.skew, "tile": self.tile.extents, "lines": self.n_solvers}
        return {**super().arguments(), **own, "is_complex": is_complex, **_describe_words(self.dtype)}


@kernel
@dataclass(frozen=True)
class RowKeys(OfStructure):
    """Parameters of ``templates/triangular/row_keys.mako``.

    Attributes
    ----------
    with_supernodes : bool
        Whether only the first row of each supernode is taken.
    """

    template = "triangular/row_keys"
    variants: ClassVar[Variants] = {"": {"with_supernodes": False}, "supernodes": {"with_supernodes": True}}

    with_supernodes: bool


@kernel
@dataclass(frozen=True)
class Supernodes(OfStructure):
    """Parameters of ``templates/triangular/supernodes.mako``.

    Attributes
    ----------
    upper : bool
        Whether the matrix is upper triangular.
    rows : int
        Most rows of a supernode.
    """

    template = "triangular/supernodes"
    variants: ClassVar[Variants] = {"": {"upper": False, "rows": 4}, "upper": {"upper": True, "rows": 3}}

    upper: bool
    rows: int


@kernel
@dataclass(frozen=True)
class SupernodePlaces(OfStructure):
    """Parameters of ``templates/triangular/supernode_places.mako``.

    Attributes
    ----------
    upper, rows
        As of `Supernodes`.
    """

    template = "triangular/supernode_places"
    variants: ClassVar[Variants] = Supernodes.variants

    upper: bool
    rows: int


@kernel
@dataclass(frozen=True)
class Factor(OfNumbers):
    """Parameters of ``templates/triangular/factor.mako``.

    Attributes
    ----------
    hermitian : bool
        True: the factor of IC; False: the factors of ILU.
    schedule : str
        "rows", "levels" or "sync_free": exact elimination, row by row, level by level or each row once those that it needs are
        known; "sweep": all entries at once, from those of the sweep before or, at first, of "guess".
    """

    template = "triangular/factor"
    variants: ClassVar[Variants] = {
        "": {"hermitian": False, "schedule": "sweep"},
        "hermitian": {"hermitian": True, "schedule": "sweep"},
        "guess": {"hermitian": False, "schedule": "guess"},
        "guess_hermitian": {"hermitian": True, "schedule": "guess"},
        "levels": {"hermitian": False, "schedule": "levels"},
        "rows": {"hermitian": True, "schedule": "rows", "work_group": 1},
        "sync_free": {"hermitian": False, "schedule": "sync_free"},
        "sync_free_hermitian": {"hermitian": True, "schedule": "sync_free"},
    }

    hermitian: bool
    schedule: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the unsigned words that a value consists of."""
        return {**super().arguments(), **_describe_words(self.dtype)}


def work_group_of(device: Device) -> int:
    """Return the work-group size of kernels for triangular systems: 1 on CPU devices, else a power of two, 256 at most."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1
