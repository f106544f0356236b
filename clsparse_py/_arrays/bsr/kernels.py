"""A parameter record beside each template of matrices of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build import programs
from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.loops import declare_loop
from clsparse_py._matrix.structure import WithValues
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic

__all__ = ["AT_ONCE", "MOST", "NONZERO", "Columns", "FromCsr", "Gather", "Multiply", "Product", "ProductChunked", "ToCsr"]

#: Largest number of entries of a block for product kernels, which name each entry.
MOST = 64
#: Blocks that a work-group takes, if its work-items take entries.
AT_ONCE = 32
#: Bytes of the longest OpenCL vectors that products compute with.
_VECTOR = 32


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The numbers by which products of blocks share work out."""

    operation = "bsr"

    #: Largest block whose cache lines are prefetched; larger blocks are streams of their own.
    max_asked_ahead: int = number(128, "bytes")
    #: Distance of a prefetch from the load.
    ahead: int = number(1024, "bytes")
    #: That sum a row of blocks, unless a block has more entries.
    team: int = number(48, "work-items", least=1)
    #: That make a row of blocks of a product, at most.
    max_teams: int = number(256, "work-items", least=1)


def vectors_of(arithmetic: Arithmetic, n: int) -> tuple[tuple[int, int], ...]:
    """Return how ``n`` adjacent values are computed with as vectors: the first value of each vector, and its width.

    They are single values if the arithmetic has no vectors.
    """
    longest = _VECTOR // arithmetic.result.itemsize if arithmetic.vector_operations else 1
    vectors, begin = [], 0
    while begin < n:
        width = min(longest, 1 << (n - begin).bit_length() - 1)
        vectors.append((begin, width))
        begin += width
    return tuple(vectors)


@dataclass(frozen=True)
class _OfBlocks(programs.Parameters):
    """Base of the records of block-matrix products; the size of blocks is a constant of the kernel.

    Attributes
    ----------
    arithmetic : Arithmetic
        Types of both operands' values and of the indices.
    portability : Portability
        How loads are hinted.
    rows, columns : int
        Of a block.
    """

    arithmetic: Arithmetic
    portability: Portability
    rows: int
    columns: int

    @property
    @override
    def prelude(self) -> str:
        return f"{self.portability.defines}\n{self.arithmetic.prelude}"

    def _of_vectors(self) -> dict[str, object]:
        """Return the arguments of templates that compute with vectors: the type of their values."""
        return {"value": OPENCL_TYPES[self.arithmetic.result.name]}


@kernel
@dataclass(frozen=True)
class ProductChunked(_OfBlocks):
    """Parameters of ``templates/bsr/product_chunked.mako``.

    Attributes
    ----------
    ahead : int
        Values ahead that lines are asked for; 0 for none.
    """

    template = "bsr/product_chunked"

    ahead: int

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int) -> ProductChunked:
        """Return the record for a device."""
        limits, item = Thresholds.of(device), np.dtype(arithmetic.a).itemsize
        ahead = limits.ahead // item if rows * columns * item <= limits.max_asked_ahead else 0
        return cls(1, arithmetic, device.portability.at_most(1), rows, columns, ahead)

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), **self._of_vectors(), "vectors": vectors_of(self.arithmetic, self.rows * self.columns)}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls.legal(device, replace(arithmetic, semiring="plus_times"), 3, 3)


@kernel
@dataclass(frozen=True)
class Product(_OfBlocks):
    """Parameters of ``templates/bsr/product.mako``.

    Attributes
    ----------
    slices : int
        Blocks of a row that are taken at once.
    """

    template = "bsr/product"

    slices: int

    @staticmethod
    def slices_of(device: Device, rows: int, columns: int, mean: float) -> int:
        """Return how many blocks are taken at once of rows of ``mean`` blocks."""
        slices, team = 1, Thresholds.of(device).team
        while 2 * slices <= mean and 2 * slices * rows * columns <= team:
            slices *= 2
        return slices

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int, slices: int) -> Product:
        """Return the record for a device."""
        team = rows * columns * slices
        return cls(
            max(min(128, device.max_work_group) // team, 1) * team,
            arithmetic,
            device.portability.at_most(1),
            rows,
            columns,
            slices,
        )

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "teams": self.work_group // (self.rows * self.columns * self.slices)}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        team = self.rows * self.columns * self.slices
        return replace(self, work_group=work_group // team * team) if work_group >= team else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls.legal(device, replace(arithmetic, semiring="plus_times"), 3, 3, 4)


@kernel
@dataclass(frozen=True)
class Columns(_OfBlocks):
    """Parameters of ``templates/bsr/columns.mako``.

    Attributes
    ----------
    width : int
        Adjacent columns of X that a work-item takes together.
    chunked : bool
        Whether a work-item takes all columns of many rows, else one row and ``width`` columns.
    """

    template = "bsr/columns"

    width: int
    chunked: bool

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int, n_columns: int, adjacent: bool) -> Columns:
        """Return the record for an X of ``n_columns`` columns, which are ``adjacent`` or not."""
        width = 1
        if device.lanes_are_loops and adjacent and arithmetic.vector_operations:
            width = min(_VECTOR // arithmetic.result.itemsize, 1 << max(n_columns, 1).bit_length() - 1)
        group = 1 if device.lanes_are_loops else min(128, device.max_work_group)
        return cls(group, arithmetic, device.portability.at_most(1), rows, columns, width, device.lanes_are_loops)

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), **self._of_vectors()}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        usual = replace(arithmetic, semiring="plus_times")
        for variant, adjacent in (("", True), ("strided", False)):
            yield variant, cls.legal(device, usual, 3, 3, 8, adjacent)


@kernel
@dataclass(frozen=True)
class Multiply(_OfBlocks):
    """Parameters of ``templates/bsr/multiply.mako``; ``rows`` and ``columns`` are those of A's blocks.

    Attributes
    ----------
    wide : int
        Columns of a block of B.
    lanes : bool
        Whether a work-group makes a row of blocks, in teams of a work-item for each entry of a block; else one makes many rows.
    """

    template = "bsr/multiply"

    wide: int
    lanes: bool

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int, wide: int, mean: float) -> Multiply:
        """Return the record for rows of B of ``mean`` blocks."""
        team, teams = rows * wide, 1
        while teams < mean and 2 * teams * team <= min(Thresholds.of(device).max_teams, device.max_work_group):
            teams *= 2
        group = 1 if device.lanes_are_loops else teams * team
        return cls(group, arithmetic, device.portability.at_most(1), rows, columns, wide, not device.lanes_are_loops)

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), **self._of_vectors(), "vectors": vectors_of(self.arithmetic, self.wide)}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        team = self.rows * self.wide if self.lanes else 1
        return replace(self, work_group=work_group // team * team) if work_group >= team else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        yield "", cls.legal(device, replace(arithmetic, semiring="plus_times"), 3, 3, 3, 5.0)


@kernel
@dataclass(frozen=True)
class FromCsr(WithValues):
    """Parameters of ``templates/bsr/from_csr.mako``. Phases are "count" and "fill".

    Attributes
    ----------
    phase : str
    """

    template = "bsr/from_csr"
    variants: ClassVar[Variants] = {each: {"work_group": 64, "phase": each or "fill"} for each in ("", "count")}

    phase: str


@kernel
@dataclass(frozen=True)
class ToCsr(WithValues):
    """Parameters of ``templates/bsr/to_csr.mako``. Phases are "pointers" and "entries"."""

    template = "bsr/to_csr"
    variants: ClassVar[Variants] = {each: {"work_group": 64, "phase": each or "entries"} for each in ("", "pointers")}

    phase: str


@kernel
@dataclass(frozen=True)
class Gather(WithValues):
    """Parameters of ``templates/bsr/gather.mako``.

    Attributes
    ----------
    way : str
        "moved": each block is one of the source; "transposed": one of the source, transposed; "summed": the sum of several.
    entries : bool
        Whether a work-item takes entries of some blocks, not a row of one; not if they are summed.
    """

    template = "bsr/gather"

    way: str
    entries: bool

    @override
    def arguments(self) -> Mapping[str, object]:
        return {**super().arguments(), "at_once": AT_ONCE}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        usual = {**cls.usual(device, arithmetic), "work_group": min(64, device.max_work_group)}
        yield "", cls(**usual, way="moved", entries=False)
        for way in ("moved", "transposed", "summed"):
            yield way, cls(**usual, way=way, entries=False)
        for way in ("moved", "transposed"):
            yield f"{way}_entries", cls(**usual, way=way, entries=True)


NONZERO = declare_loop(
    "bsr/nonzero",
    "Which blocks have an entry that is not 0: of size real numbers, two for a complex entry.",
    "ulong size, const REAL *blocks, uchar *marks",
    "bool found = false;",
    "for (ulong e = k * size; e < (k + 1) * size; ++e)",
    "    found |= blocks[e] != 0;",
    "marks[k] = found;",
    counter="k",
    types="REAL",
)
