"""The parameter records of the templates of block matrices."""

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

__all__ = [
    "BLOCKS_PER_GROUP", "MAX_ENTRIES", "NONZERO", "Columns", "FromCsr", "Gather", "Multiply", "Product", "ProductChunked",
    "ToCsr",
]  # fmt: skip

#: Most entries of a block in the kernels of block-matrix products, which have a variable for each entry.
MAX_ENTRIES = 64
#: Number of blocks that a work-group of the kernel `Gather` moves, if its work-items move single entries.
BLOCKS_PER_GROUP = 32
#: Most bytes of an OpenCL vector in the kernels of block-matrix products.
_VECTOR_BYTES = 32


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Limits of the work-groups and prefetches of products of blocks."""

    operation = "bsr"

    #: Bytes of the largest block for which the kernel of `A @ x` on CPUs prefetches later blocks; none is prefetched if larger.
    max_asked_ahead: int = number(128, "bytes")
    #: Bytes from the block that the kernel of `A @ x` on CPUs multiplies to the later block that it prefetches.
    ahead: int = number(1024, "bytes")
    #: Most work-items of a team, which sums a block row; if a block has more entries, its team has one work-item for each.
    team: int = number(48, "work-items", least=1)
    #: Most work-items of a work-group that makes a row of blocks of a product of two block matrices.
    max_teams: int = number(256, "work-items", least=1)


def split_into_vectors(arithmetic: Arithmetic, n: int) -> tuple[tuple[int, int], ...]:
    """Return the OpenCL vectors that hold ``n`` adjacent values: the first value's number and the width of each vector.

    The width is 1 if the arithmetic has no vectors.
    """
    longest = _VECTOR_BYTES // arithmetic.result.itemsize if arithmetic.vector_operations else 1
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
        Rows and columns of a block.
    """

    arithmetic: Arithmetic
    portability: Portability
    rows: int
    columns: int

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's own text: macros that choose device instructions, and the arithmetic."""
        return f"{self.portability.defines}\n{self.arithmetic.prelude}"

    def _of_vectors(self) -> dict[str, object]:
        """Return the template argument for OpenCL vectors: ``value``, the OpenCL C type of their values."""
        return {"value": OPENCL_TYPES[self.arithmetic.result.name]}


@kernel
@dataclass(frozen=True)
class ProductChunked(_OfBlocks):
    """Parameters of ``templates/bsr/product_chunked.mako``.

    Attributes
    ----------
    ahead : int
        Number of values from a load to its prefetch; 0 without prefetches.
    """

    template = "bsr/product_chunked"

    ahead: int

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int) -> ProductChunked:
        """Return the kernel parameters of the product ``A @ x`` on a CPU device, for a size of blocks."""
        limits, item = Thresholds.of(device), np.dtype(arithmetic.a).itemsize
        ahead = limits.ahead // item if rows * columns * item <= limits.max_asked_ahead else 0
        return cls(1, arithmetic, device.portability.at_most(1), rows, columns, ahead)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, the vectors' value type, and the vectors that hold a block's values."""
        vectors = split_into_vectors(self.arithmetic, self.rows * self.columns)
        return {**super().arguments(), **self._of_vectors(), "vectors": vectors}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, replace(arithmetic, semiring="plus_times"), 3, 3)


@kernel
@dataclass(frozen=True)
class Product(_OfBlocks):
    """Parameters of ``templates/bsr/product.mako``.

    Attributes
    ----------
    slices : int
        Blocks of a row that a team multiplies at the same time.
    """

    template = "bsr/product"

    slices: int

    @staticmethod
    def choose_slices(device: Device, rows: int, columns: int, mean: float) -> int:
        """Return how many blocks a team (work-items of a block row) multiplies at once; rows have ``mean`` blocks on average."""
        slices, team = 1, Thresholds.of(device).team
        while 2 * slices <= mean and 2 * slices * rows * columns <= team:
            slices *= 2
        return slices

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int, slices: int) -> Product:
        """Return the kernel parameters of ``A @ x`` on a GPU, for a size of blocks; a team takes ``slices`` blocks at a time."""
        team = rows * columns * slices
        group = max(min(128, device.max_work_group) // team, 1) * team
        return cls(group, arithmetic, device.portability.at_most(1), rows, columns, slices)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, and ``teams``, the number of block rows that a work-group multiplies."""
        return {**super().arguments(), "teams": self.work_group // (self.rows * self.columns * self.slices)}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record with as many teams (one to a block row) as fit ``work_group`` work-items; None if none fits."""
        team = self.rows * self.columns * self.slices
        return replace(self, work_group=work_group // team * team) if work_group >= team else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, replace(arithmetic, semiring="plus_times"), 3, 3, 4)


@kernel
@dataclass(frozen=True)
class Columns(_OfBlocks):
    """Parameters of ``templates/bsr/columns.mako``.

    Attributes
    ----------
    width : int
        Adjacent columns of X that a work-item computes as a vector.
    chunked : bool
        Whether a work-item computes all columns of many block rows; if not, ``width`` columns of one block row.
    """

    template = "bsr/columns"

    width: int
    chunked: bool

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int, n_columns: int, adjacent: bool) -> Columns:
        """Return the kernel parameters of ``A @ X`` for an X of ``n_columns`` columns; ``adjacent`` says if X is row-major."""
        width = 1
        if device.lanes_are_loops and adjacent and arithmetic.vector_operations:
            width = min(_VECTOR_BYTES // arithmetic.result.itemsize, 1 << max(n_columns, 1).bit_length() - 1)
        group = 1 if device.lanes_are_loops else min(128, device.max_work_group)
        return cls(group, arithmetic, device.portability.at_most(1), rows, columns, width, device.lanes_are_loops)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields of the record, and ``value``, the type of the vectors' values."""
        return {**super().arguments(), **self._of_vectors()}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "" for a row-major X, "strided" for any other."""
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
        Whether a work-group makes a row of blocks, in teams of a work-item to an entry of a block; if not, a work-item makes many
        rows of blocks.
    """

    template = "bsr/multiply"

    wide: int
    lanes: bool

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, rows: int, columns: int, wide: int, mean: float) -> Multiply:
        """Return the kernel parameters of ``A @ B`` of block matrices; B's block rows have ``mean`` blocks on average."""
        team, teams = rows * wide, 1
        while teams < mean and 2 * teams * team <= min(Thresholds.of(device).max_teams, device.max_work_group):
            teams *= 2
        group = 1 if device.lanes_are_loops else teams * team
        return cls(group, arithmetic, device.portability.at_most(1), rows, columns, wide, not device.lanes_are_loops)

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, the vectors' value type, and the vectors that hold ``wide`` values."""
        return {**super().arguments(), **self._of_vectors(), "vectors": split_into_vectors(self.arithmetic, self.wide)}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the record with as many teams (one to a block of B) as fit ``work_group`` work-items; None if none fits."""
        team = self.rows * self.wide if self.lanes else 1
        return replace(self, work_group=work_group // team * team) if work_group >= team else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, replace(arithmetic, semiring="plus_times"), 3, 3, 3, 5.0)


@kernel
@dataclass(frozen=True)
class FromCsr(WithValues):
    """Parameters of ``templates/bsr/from_csr.mako``.

    Attributes
    ----------
    phase : str
        "count", which counts the blocks of rows, or "fill", which writes the blocks.
    """

    template = "bsr/from_csr"
    variants: ClassVar[Variants] = {"": {"work_group": 64, "phase": "fill"}, "count": {"work_group": 64, "phase": "count"}}

    phase: str


@kernel
@dataclass(frozen=True)
class ToCsr(WithValues):
    """Parameters of ``templates/bsr/to_csr.mako``.

    Attributes
    ----------
    phase : str
        "pointers", which writes the row pointers, or "entries", which writes columns and values.
    """

    template = "bsr/to_csr"
    variants: ClassVar[Variants] = {
        name: {"work_group": 64, "phase": phase} for name, phase in (("", "entries"), ("pointers", "pointers"))
    }

    phase: str


@kernel
@dataclass(frozen=True)
class Gather(WithValues):
    """Parameters of ``templates/bsr/gather.mako``.

    Attributes
    ----------
    way : str
        "moved": a new block is a block of the source; "transposed": a block of the source, transposed; "summed": the sum of some.
    entries : bool
        Whether a work-item moves entries of several blocks; if not, a row of a block. Sums are made by rows of blocks.
    """

    template = "bsr/gather"

    way: str
    entries: bool

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and ``at_once``, the number of blocks that a work-group moves."""
        return {**super().arguments(), "at_once": BLOCKS_PER_GROUP}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records: "", each way by rows of blocks ("moved", say), and ways by entries ("moved_entries", say)."""
        usual = {**cls.usual(device, arithmetic), "work_group": min(64, device.max_work_group)}
        yield "", cls(**usual, way="moved", entries=False)
        for way in ("moved", "transposed", "summed"):
            yield way, cls(**usual, way=way, entries=False)
        for way in ("moved", "transposed"):
            yield f"{way}_entries", cls(**usual, way=way, entries=True)


#: Declaration of the kernel that marks the blocks that have an entry other than 0, a loop over the blocks.
NONZERO = declare_loop(
    "bsr/nonzero",
    "Marks the blocks that have an entry other than 0; a block has size real numbers, two for a complex entry.",
    "ulong size, const REAL *blocks, uchar *marks",
    "bool found = false;",
    "for (ulong e = k * size; e < (k + 1) * size; ++e)",
    "    found |= blocks[e] != 0;",
    "marks[k] = found;",
    counter="k",
    types="REAL",
)
