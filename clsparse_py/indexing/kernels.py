"""The kernels of indexing: a parameter record beside each template."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py.arithmetic import OPENCL_TYPES, Arithmetic
from clsparse_py.declaration import Examples, Variants, kernel
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


@kernel
@dataclass(frozen=True)
class Positions(OfStructure):
    """Parameters of ``templates/indexing/positions.mako``.

    Attributes
    ----------
    given : str
        NumPy's name of the dtype of the indices that are given, an integer.
    """

    template = "indexing/positions"
    variants: ClassVar[Variants] = {"": {"given": "int64"}}

    given: str

    @override
    def arguments(self) -> Mapping[str, object]:
        is_signed = np.dtype(self.given).kind == "i"
        return {**super().arguments(), "given": OPENCL_TYPES[self.given], "is_signed": is_signed}


@kernel
@dataclass(frozen=True)
class Lengths(Positions):
    """Parameters of ``templates/indexing/lengths.mako``."""

    template = "indexing/lengths"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "items": _AT_A_TIME}


@kernel
@dataclass(frozen=True)
class Offsets(OfStructure):
    """Parameters of ``templates/indexing/offsets.mako``."""

    template = "indexing/offsets"


@kernel
@dataclass(frozen=True)
class Marked(OfStructure):
    """Parameters of ``templates/indexing/marked.mako``."""

    template = "indexing/marked"


@kernel
@dataclass(frozen=True)
class Masked(OfStructure):
    """Parameters of ``templates/indexing/masked.mako``."""

    template = "indexing/masked"


@kernel
@dataclass(frozen=True)
class MaskedPointers(OfStructure):
    """Parameters of ``templates/indexing/masked_pointers.mako``."""

    template = "indexing/masked_pointers"


@kernel
@dataclass(frozen=True)
class RowsChunked(Moving):
    """Parameters of ``templates/indexing/rows_chunked.mako``.

    Attributes
    ----------
    given : str
        NumPy's name of the dtype of indices that list rows; "" if there are none: each row goes where the result has its entries.
    """

    template = "indexing/rows_chunked"
    variants: ClassVar[Variants] = {"": {"work_group": 1, "given": "int64"}, "masked": {"work_group": 1, "given": ""}}

    given: str

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "given": OPENCL_TYPES[self.given] if self.given else ""}


@kernel
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

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        for variant, given in (("", "int64"), ("masked", "")):
            yield variant, cls.legal(device, arithmetic.index, np.dtype(arithmetic.a).itemsize, given, True)


@kernel
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
        return {**super().arguments(), "is_signed": np.dtype(self.given).kind == "i"}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, portability=self.portability.at_most(lane_width)) if work_group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls.legal(device, arithmetic.index, np.dtype(arithmetic.a).itemsize, "int64")


@kernel
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

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "place": OPENCL_TYPES[self.place]}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        usual = {**cls.usual(device, arithmetic), "place": arithmetic.index}
        yield "", cls(**usual, phase="fill", listed=False)
        for phase in ("count", "fill"):
            yield phase, cls(**usual, phase=phase, listed=False)
            yield f"{phase}_listed", cls(**usual, phase=phase, listed=True)
            yield f"{phase}_mapped", cls(**usual, phase=phase, listed=False, mapped=True)


@kernel
@dataclass(frozen=True)
class ColumnsChunked(Columns):
    """Parameters of ``templates/indexing/columns_chunked.mako``; columns are not mapped."""

    template = "indexing/columns_chunked"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {name: value for name, value in super().arguments().items() if name != "mapped"}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        for variant, record in super().examples(device, arithmetic):
            if "mapped" not in variant:
                yield variant, replace(record, work_group=1)


@kernel
@dataclass(frozen=True)
class Targets(Positions):
    """Parameters of ``templates/indexing/targets.mako``."""

    template = "indexing/targets"


@kernel
@dataclass(frozen=True)
class Points(WithValues):
    """Parameters of ``templates/indexing/points.mako``."""

    template = "indexing/points"


@kernel
@dataclass(frozen=True)
class Keys(OfStructure):
    """Parameters of ``templates/indexing/keys.mako``."""

    template = "indexing/keys"


@kernel
@dataclass(frozen=True)
class Locate(Moving):
    """Parameters of ``templates/indexing/locate.mako``."""

    template = "indexing/locate"


@kernel
@dataclass(frozen=True)
class Insert(Moving):
    """Parameters of ``templates/indexing/insert.mako``.

    Attributes
    ----------
    phase : str
        "new", "entries" or "rows".
    """

    template = "indexing/insert"
    variants: ClassVar[Variants] = {each: {"phase": each or "new"} for each in ("", "new", "entries", "rows")}

    phase: str


# Kept: to make a record takes longer than to launch its kernel.
kept = functools.lru_cache(maxsize=256)
