"""Records of the kernels for triangular systems and incomplete factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel, kernels
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfNumbers, OfStructure
from clsparse_py._precision.arithmetic import Arithmetic, define_sum_type

__all__ = ["Ends", "Factor", "Levels", "Solve", "State", "SyncFree", "SyncFreeLevels", "unknown_of", "work_group_of"]

#: Most work-items of a work-group in the kernels for triangular systems on devices other than CPUs.
_WORK_GROUP = 256
#: The word of 64 bits that an unknown holds until it is known: a NaN, as its first 32 bits are; no computation makes its payload.
_UNKNOWN = 0x7FFC0DE5A11CE5ED


class State(NamedTuple):
    """The numbers, int32, that kernels write while they solve a triangular system.

    Attributes
    ----------
    singular, starved : int
        1 if a diagonal entry is 0; 1 if a launch of the method `sync-free` gave up waiting, and one work-group had to finish.
    ticket : int
        The number of work-groups of the method `sync-free` that have begun.
    """

    singular: Any
    starved: Any
    ticket: Any


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


@dataclass(frozen=True)
class SyncFree(OfNumbers):
    """Parameters of ``templates/triangular/sync_free.mako`` for a solution.

    Attributes
    ----------
    upper, unit, diagonal_at_end : bool
        As of `Solve`.
    lanes : int
        Work-items to a row, which divide the work-group; several only with ``diagonal_at_end``.
    rows : int
        Rows that a team of lanes solves, one after another; one if there are several lanes.
    finish : bool
        Whether one work-group computes what a launch left that gave up waiting.
    """

    template = "triangular/sync_free"
    variants: ClassVar[Variants] = {
        "": {"upper": False, "unit": False, "diagonal_at_end": True, "lanes": 1, "rows": 2, "finish": False},
        "general": {"upper": True, "unit": False, "diagonal_at_end": False, "lanes": 1, "rows": 1, "finish": False},
        "lanes": {"upper": True, "unit": True, "diagonal_at_end": True, "lanes": 8, "rows": 1, "finish": False},
        "finish": {"upper": False, "unit": True, "diagonal_at_end": False, "lanes": 1, "rows": 1, "finish": True},
        "finish-lanes": {"upper": False, "unit": False, "diagonal_at_end": True, "lanes": 8, "rows": 1, "finish": True},
    }

    upper: bool
    unit: bool
    diagonal_at_end: bool
    lanes: int
    rows: int
    finish: bool

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record for a smaller work-group, of as many lanes to a row if they divide it."""
        smaller = super().within(work_group, lane_width)
        return smaller if smaller is None or not work_group % self.lanes else replace(smaller, lanes=1)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, and the unsigned words that values consist of."""
        return {**super().arguments(), "levels": False, **_words_of(np.dtype(self.dtype))}


@dataclass(frozen=True)
class SyncFreeLevels(OfStructure):
    """Parameters of ``templates/triangular/sync_free.mako`` for the levels of rows.

    Attributes
    ----------
    upper, finish : bool
        As of `SyncFree`.
    """

    template = "triangular/sync_free"
    variants: ClassVar[Variants] = {
        "levels": {"upper": False, "finish": False},
        "levels-upper": {"upper": True, "finish": False},
        "levels-finish": {"upper": True, "finish": True},
    }

    upper: bool
    finish: bool

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: the type T of levels, with its words, and the type I of indices."""
        return "\n".join([*define_sum_type(np.dtype(np.int32)), super().prelude])

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the fields, those of a solution that levels lack, and the words of levels."""
        others = {"levels": True, "unit": True, "diagonal_at_end": False, "lanes": 1, "rows": 1}
        return {**super().arguments(), **others, **_words_of(np.dtype(np.int32))}


@kernels
def list_sync_free(device: Device, arithmetic: Arithmetic) -> Examples:
    """Yield example records of the kernels of the template of the method "sync-free"."""
    yield from SyncFree.examples(device, arithmetic)
    yield from SyncFreeLevels.examples(device, arithmetic)


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


def unknown_of(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the value, as an array of no dimensions, that a value of a dtype holds until it is known: a NaN, or -1 for int32."""
    size = min(dtype.itemsize, 8)
    word = -1 if dtype.kind == "i" else _UNKNOWN >> 64 - 8 * size
    return np.full(dtype.itemsize // size, word, np.dtype(f"i{size}")).view(dtype).reshape(())


def _words_of(dtype: np.dtype[Any]) -> dict[str, object]:
    """Return template arguments by name: the unsigned type and number of a value's words, their type, the unknown word's bits."""
    size, parts = min(dtype.itemsize, 8), max(dtype.itemsize // 8, 1)
    word = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[size]
    unknown = int(unknown_of(dtype).reshape(1).view(f"u{size}")[0])
    return {"word": word, "parts": parts, "words": word + ("" if parts == 1 else str(parts)), "unknown": f"0x{unknown:x}ul"}


def work_group_of(device: Device) -> int:
    """Return the work-group size of kernels for triangular systems: 1 on CPU devices, else a power of two, 256 at most."""
    return 1 if device.lanes_are_loops else 1 << min(_WORK_GROUP, device.max_work_group).bit_length() - 1
