"""The kernels of indexing: a parameter record beside each template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import OfStructure, WithValues
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic
from clsparse_py._primitives.partition import OfPath, fit_path_shape
from clsparse_py._primitives.permute import Moving

__all__ = [
    "KEYS", "MARKED", "MASKED", "MASKED_POINTERS", "OFFSETS", "Columns", "ColumnsChunked", "Insert", "Lengths", "Locate",
    "Points", "Positions", "Rows", "RowsAtOnce", "RowsChunked", "Targets",
]  # fmt: skip

#: Number of listed rows whose lengths a work-item looks up at a time.
_AT_A_TIME = 4


@kernel
@dataclass(frozen=True)
class Positions(OfStructure):
    """Parameters of ``templates/indexing/positions.mako``.

    Attributes
    ----------
    listed_type : str
        NumPy's name of the dtype of the listed indices, an integer.
    """

    template = "indexing/positions"
    variants: ClassVar[Variants] = {"": {"listed_type": "int64"}}

    listed_type: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, the OpenCL type of the listed indices, and whether that type is signed."""
        is_signed = np.dtype(self.listed_type).kind == "i"
        return {**super().arguments(), "listed_type": OPENCL_TYPES[self.listed_type], "is_signed": is_signed}


@kernel
@dataclass(frozen=True)
class Lengths(Positions):
    """Parameters of ``templates/indexing/lengths.mako``."""

    template = "indexing/lengths"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `Positions`, and the number of rows that a work-item looks up at a time."""
        return {**super().arguments(), "items": _AT_A_TIME}


#: Loop that writes the row pointers of adjacent rows selected from a matrix, their first entry, and their number of entries.
OFFSETS = declare_loop(
    "indexing/offsets",
    "Where adjacent rows of a matrix begin, counted from the first of them; n is one more than there are rows. Told are "
    "the first entry of the rows, and how many there are.",
    "ulong first, const I *indptr, I *offsets, I *told",
    "offsets[i] = indptr[first + i] - indptr[first];",
    epilogue=(
        "if (get_global_id(0) == 0) {",
        "    told[0] = indptr[first];",
        "    told[1] = indptr[first + n - 1] - indptr[first];",
        "}",
    ),
)


#: Loop that lists the positions at which a mask of booleans is True.
MARKED = declare_loop(
    "indexing/marked",
    "The positions of marks, side by side: a position is marked if places, how many marks come before each, tell another "
    "one next.",
    "const I *places, I *positions",
    "if (places[i + 1] != places[i])",
    "    positions[places[i]] = (I)i;",
)


#: Loop that writes for each row of a matrix 2^32 plus the row's number of entries if a mask keeps the row, else 0.
MASKED = declare_loop(
    "indexing/masked",
    "Of each row of a matrix what a mask leaves: in the lower 32 bits how many entries it has, in the upper ones 1; "
    "nothing if it is not marked. Both scanned together say where rows go. There are fewer than 2^31 rows and entries.",
    "const uchar *marks, const I *indptr, long *left",
    "left[i] = marks[i] ? ((long)1 << 32) + (indptr[i + 1] - indptr[i]) : 0;",
)


#: Loop that writes where rows that a mask keeps begin in the result: an array for all rows of the matrix, one for kept rows.
MASKED_POINTERS = declare_loop(
    "indexing/masked_pointers",
    "Where the rows that a mask leaves begin in the result, by the exclusive scan of what indexing/masked found, with the "
    "total behind it: among all rows (starts, of a row that is not left that of the next one), and among those that are "
    "left (offsets).",
    "ulong n_rows, const long *places, I *starts, I *offsets",
    "const long place = places[i];",
    "const I start = (I)(place & 0xffffffff);",
    "starts[i] = start;",
    "if (i == n_rows || places[i + 1] >> 32 != place >> 32)",
    "    offsets[place >> 32] = start;",
)


@kernel
@dataclass(frozen=True)
class RowsChunked(Moving):
    """Parameters of ``templates/indexing/rows_chunked.mako``.

    Attributes
    ----------
    listed_type : str
        NumPy's name of the dtype of indices that list rows; "" if there are none: each row goes where the result has its entries.
    """

    template = "indexing/rows_chunked"
    variants: ClassVar[Variants] = {"": {"work_group": 1, "listed_type": "int64"}, "masked": {"work_group": 1, "listed_type": ""}}

    listed_type: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, with ``listed_type`` as OpenCL's type, "" if no rows are listed."""
        return {**super().arguments(), "listed_type": OPENCL_TYPES[self.listed_type] if self.listed_type else ""}


@kernel
@dataclass(frozen=True)
class Rows(RowsChunked, OfPath):
    """Parameters of ``templates/indexing/rows.mako``."""

    template = "indexing/rows"

    @classmethod
    def legal(
        cls, device: Device, index: str, value_bytes: int, listed_type: str, few: bool, work_group: int = 128, items: int = 8
    ) -> Rows:
        """Return the record of the kernel that copies rows, with the legal sizes nearest to ``work_group`` and ``items``."""
        shape = fit_path_shape(device, work_group, items, np.dtype(index).itemsize)
        return cls(shape[0], index, items=shape[1], few=few, value_bytes=value_bytes, listed_type=listed_type)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel for listed rows, "", and for rows that a mask selects, "masked"."""
        for variant, listed_type in (("", "int64"), ("masked", "")):
            yield variant, cls.legal(device, arithmetic.index, np.dtype(arithmetic.a).itemsize, listed_type, True)


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
    def legal(cls, device: Device, index: str, value_bytes: int, listed_type: str) -> RowsAtOnce:
        """Return the record of the kernel that selects few rows in one launch; its work-group has at most 256 work-items."""
        return cls(min(256, device.max_work_group), index, value_bytes, listed_type, device.portability)

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes exchange counts, and the types of indices and moved values."""
        return f"{self.portability.defines}\n{super().prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `RowsChunked`, and whether the dtype of row indices is signed."""
        return {**super().arguments(), "is_signed": np.dtype(self.listed_type).kind == "i"}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
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
        """Return the template's arguments: the record's fields, with ``place`` as the OpenCL type of places in the result."""
        return {**super().arguments(), "place": OPENCL_TYPES[self.place]}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "" and one for each phase ("count", "fill") and kind of columns (spaced, "listed", "mapped")."""
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
        """Return the template's arguments by name: those of `Columns` without the flag ``mapped``."""
        return {name: value for name, value in super().arguments().items() if name != "mapped"}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the example records of `Columns` without mapped columns, for work-groups of one work-item."""
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


#: Loop that writes the keys by which places of a matrix are sorted: the row times the matrix's number of columns plus the column.
KEYS = declare_loop(
    "indexing/keys",
    "Places in a matrix as keys, row times columns plus column, by which they are sorted; and their numbers. Place i, or "
    "the listed[i]-th if is_listed, is (i / n_columns, i % n_columns) of a matrix of places; the axes tell its row and "
    "column; width: columns of the matrix.",
    "ulong n_columns, AXIS(row), AXIS(column), uint is_listed, const long *listed, long width, long *keys, I *numbers",
    "const ulong place = is_listed ? (ulong)listed[i] : i;",
    "const ulong r = place < n_columns ? 0 : place / n_columns, c = place - r * n_columns;",
    "keys[i] = (long)AXIS_AT(row, (long)r, (long)c) * width + AXIS_AT(column, (long)r, (long)c);",
    "numbers[i] = (I)i;",
    includes=("axis.cl",),
)


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
    variants: ClassVar[Variants] = {phase: {"phase": phase or "new"} for phase in ("", "new", "entries", "rows")}

    phase: str
