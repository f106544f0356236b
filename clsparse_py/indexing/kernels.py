"""The kernels of indexing: a parameter record beside each template."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from typing_extensions import Self, override

from clsparse_py.arithmetic import OPENCL_TYPES
from clsparse_py.device import Device, Portability
from clsparse_py.primitives.path_tiles import OfPath, path_shape
from clsparse_py.primitives.permute import Moving
from clsparse_py.records import dataclass
from clsparse_py.structure import OfStructure, WithValues

__all__ = [
    "Columns", "ColumnsChunked", "Insert", "Keys", "Lengths", "Locate", "Marked", "Masked", "MaskedPointers", "Offsets", "Points",
    "Positions", "Rows", "RowsAtOnce", "RowsChunked", "Targets", "kept",
]  # fmt: skip

#: Rows whose lengths a work-item looks up at a time.
_AT_A_TIME = 4


@dataclass(frozen=True)
class Positions(OfStructure):
    """Parameters of ``templates/indexing/positions.mako``.

    Attributes
    ----------
    given : str
        NumPy's name of the dtype of the indices that are given, an integer.
    """

    template = "indexing/positions"

    given: str

    @property
    @override
    def name(self) -> str:
        return f"positions_{self.given}_{self.index}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        is_signed = np.dtype(self.given).kind == "i"
        return {**super().arguments(), "given": OPENCL_TYPES[self.given], "is_signed": is_signed}


@dataclass(frozen=True)
class Lengths(Positions):
    """Parameters of ``templates/indexing/lengths.mako``."""

    template = "indexing/lengths"

    @property
    @override
    def name(self) -> str:
        return f"lengths_{self.given}_{self.index}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "items": _AT_A_TIME}


@dataclass(frozen=True)
class Offsets(OfStructure):
    """Parameters of ``templates/indexing/offsets.mako``."""

    template = "indexing/offsets"


@dataclass(frozen=True)
class Marked(OfStructure):
    """Parameters of ``templates/indexing/marked.mako``."""

    template = "indexing/marked"


@dataclass(frozen=True)
class Masked(OfStructure):
    """Parameters of ``templates/indexing/masked.mako``."""

    template = "indexing/masked"


@dataclass(frozen=True)
class MaskedPointers(OfStructure):
    """Parameters of ``templates/indexing/masked_pointers.mako``."""

    template = "indexing/masked_pointers"


@dataclass(frozen=True)
class RowsChunked(Moving):
    """Parameters of ``templates/indexing/rows_chunked.mako``.

    Attributes
    ----------
    given : str
        NumPy's name of the dtype of indices that list rows; "" if there are none: each row goes where the result has its entries.
    """

    template = "indexing/rows_chunked"

    given: str

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.given or 'all'}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "given": OPENCL_TYPES[self.given] if self.given else ""}


@dataclass(frozen=True)
class Rows(RowsChunked, OfPath):
    """Parameters of ``templates/indexing/rows.mako``."""

    template = "indexing/rows"

    @classmethod
    def legal(
        cls, device: Device, index: str, value_bytes: int, given: str, few: bool, work_group: int = 128, items: int = 8
    ) -> Rows:
        """Return the nearest legal record."""
        shape = path_shape(device, work_group, items, np.dtype(index).itemsize)
        return cls(shape[0], index, items=shape[1], few=few, value_bytes=value_bytes, given=given)


@dataclass(frozen=True)
class RowsAtOnce(RowsChunked):
    """Parameters of ``templates/indexing/rows_at_once.mako``.

    Attributes
    ----------
    portability : Portability
        How lanes exchange counts.
    items : int
        Rows to a work-item.
    """

    template = "indexing/rows_at_once"

    portability: Portability
    items: int = 4

    @classmethod
    def legal(cls, device: Device, index: str, value_bytes: int, given: str) -> RowsAtOnce:
        """Return the record for a device."""
        return cls(min(256, device.max_work_group), index, value_bytes, given, device.portability)

    @property
    @override
    def lane_width(self) -> int:
        return self.portability.lane_width

    @property
    @override
    def prelude(self) -> str:
        return f"{self.portability.defines}\n{super().prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "items": self.items, "is_signed": np.dtype(self.given).kind == "i"}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, portability=self.portability.at_most(lane_width)) if work_group else None


@dataclass(frozen=True)
class Columns(Moving):
    """Parameters of ``templates/indexing/columns.mako``.

    Attributes
    ----------
    phase : str
        "count" or "fill".
    listed : bool
        Whether columns are listed; else they are evenly spaced.
    place : str
        "int32" or "int64": the dtype of the places of entries in the result.
    mapped : bool
        Whether each column goes to one of the result at most, which is looked up.
    """

    template = "indexing/columns"

    phase: str
    listed: bool
    place: str
    mapped: bool = False

    @property
    @override
    def name(self) -> str:
        kind = "mapped" if self.mapped else "listed" if self.listed else "spaced"
        return f"{super().name}_{self.phase}_{kind}_{self.place}"

    @override
    def arguments(self) -> Mapping[str, object]:
        place = OPENCL_TYPES[self.place]
        return {**super().arguments(), "phase": self.phase, "listed": self.listed, "mapped": self.mapped, "place": place}


@dataclass(frozen=True)
class ColumnsChunked(Columns):
    """Parameters of ``templates/indexing/columns_chunked.mako``; columns are not mapped."""

    template = "indexing/columns_chunked"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {name: value for name, value in super().arguments().items() if name != "mapped"}


@dataclass(frozen=True)
class Targets(Positions):
    """Parameters of ``templates/indexing/targets.mako``."""

    template = "indexing/targets"

    @property
    @override
    def name(self) -> str:
        return f"targets_{self.given}_{self.index}_wg{self.work_group}"


@dataclass(frozen=True)
class Points(WithValues):
    """Parameters of ``templates/indexing/points.mako``."""

    template = "indexing/points"


@dataclass(frozen=True)
class Keys(OfStructure):
    """Parameters of ``templates/indexing/keys.mako``."""

    template = "indexing/keys"


@dataclass(frozen=True)
class Locate(Moving):
    """Parameters of ``templates/indexing/locate.mako``."""

    template = "indexing/locate"


@dataclass(frozen=True)
class Insert(Moving):
    """Parameters of ``templates/indexing/insert.mako``.

    Attributes
    ----------
    phase : str
        "new", "entries" or "rows".
    """

    template = "indexing/insert"

    phase: str

    @property
    @override
    def name(self) -> str:
        return f"{super().name}_{self.phase}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "phase": self.phase}


# Kept: to make a record takes longer than to launch its kernel.
kept = functools.lru_cache(maxsize=256)
