"""The record of the analysis kernel, and the bases of the records of SpGEMM's kernels."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic

__all__ = ["Analysis", "AnalysisTotals", "KernelTypes", "OfLanes", "OfListed", "OfProduct", "OfRows", "RowKernel"]


class AnalysisTotals(NamedTuple):
    """Totals of the analysis over all rows: numbers of 32 bits, whose positions host and kernel know by these names.

    Sums of 64 bits have two halves. Behind the totals come the numbers of rows of each bin.
    """

    products_low: int
    products_high: int
    bound_low: int
    bound_high: int
    max_products: int
    longest_row: int
    sampled: int
    sampled_entries: int


@kernel
@dataclass(frozen=True)
class Analysis(OfStructure):
    """Parameters of ``templates/spgemm/analysis.mako``. Bins are an argument of the kernel.

    Attributes
    ----------
    teams : bool
        Whether lanes, whose number is an argument, share a row, and a work-group a long row; else a work-item takes a row.
    portability : Portability
        How lanes exchange values, and how far.
    """

    template = "spgemm/analysis"

    teams: bool
    portability: Portability

    #: Most products of a row for the row to be in the sample, in which distinct columns are counted: a power of two.
    SAMPLED: ClassVar[int] = 512
    #: Number of rows in the sample of a work-item that takes rows by itself.
    ROWS_OF_SAMPLE: ClassVar[int] = 4
    #: Most bins that a product may have, as local memory counts the rows of each.
    MAX_BINS: ClassVar[int] = 128

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: lanes' exchange, positions of totals in the report, most bins, the base's prelude."""
        positions = [
            f"#define FOUND_{name.upper()} {position}" for position, name in enumerate((*AnalysisTotals._fields, "bins"))
        ]
        return "\n".join([self.portability.defines, *positions, f"#define MAX_BINS {self.MAX_BINS}", super().prelude])

    @property
    @override
    def lane_width(self) -> int:
        """The number of lanes that exchange values, by the device's portability; 1 if a work-item takes a row by itself."""
        return self.portability.lane_width if self.teams else 1

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the record's fields, most products of a sampled row, rows in a sample."""
        return {**super().arguments(), "sampled": self.SAMPLED, "rows_of_sample": self.ROWS_OF_SAMPLE}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the analysis kernel's nearest parameters for a work-group and a lane width; None if no work-item is left."""
        width = 1 << min(lane_width, self.lane_width, work_group).bit_length() - 1 if work_group else 1
        # A work-group has whole sub-groups, as the lanes of a sub-group exchange values.
        group = work_group // width * width
        return replace(self, work_group=group, portability=self.portability.at_most(width)) if group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel's variants: "" and "lanes"."""
        group, serial = min(128, device.max_work_group), device.portability.at_most(1)
        yield "", cls(group, arithmetic.index, False, serial)
        lanes = cls(group, arithmetic.index, True, device.portability).within(group, device.portability.lane_width)
        assert lanes is not None  # a work-group has at least one work-item
        yield "lanes", lanes


@dataclass(frozen=True)
class OfRows(OfStructure):
    """Base of the records of kernels that read the structure of rows.

    Attributes
    ----------
    listed : bool
        Whether the kernel takes a list of rows.
    """

    of_prelude: ClassVar[frozenset[str]] = OfStructure.of_prelude | {"listed"}

    listed: bool

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: the base's prelude, and ``LISTED``, whether the kernel takes a list of rows."""
        return f"{super().prelude}\n#define LISTED {int(self.listed)}"


@dataclass(frozen=True)
class KernelTypes:
    """Types of the operands of a product, and the phase of it that a kernel is for.

    Attributes
    ----------
    phase : str
        "symbolic": the number of entries of each row of C. "numeric": columns and values. "upper_bound": all of these, each row
        with room for all its products. "values": values alone; the columns are there.
    index : str
        "int32" or "int64": the dtype of the ``indices`` and ``indptr`` of A and B.
    wide : bool
        Whether columns of B need 64 bits inside kernels.
    arithmetic : Arithmetic or None
        Value types and semiring; its ``x`` is B's dtype. None in the symbolic phase, which reads no values.
    c_index : str
        The dtype of the ``indices`` and ``indptr`` of C; "" in the symbolic phase.
    """

    phase: str
    index: str
    wide: bool = False
    arithmetic: Arithmetic | None = None
    c_index: str = ""

    @classmethod
    def of_same(cls, arithmetic: Arithmetic) -> KernelTypes:
        """Return the kernel types for the numeric phase of a product of two matrices of one dtype."""
        arithmetic_of_same = replace(arithmetic, x=arithmetic.a)
        return cls("numeric", arithmetic.index, arithmetic=arithmetic_of_same, c_index=arithmetic.index)

    def of(self, phase: str) -> KernelTypes:
        """Return the types of a product's kernels (of operands and indices) for another phase of that product."""
        return self if phase == self.phase else _of_phase(self, phase)

    @property
    def is_phase(self) -> Mapping[str, bool]:
        """Whether a kernel's phase is "symbolic", "upper_bound" or "values", by the names that templates have for these."""
        phase_of_name = {"symbolic": "symbolic", "values_only": "values", "upper_bound": "upper_bound"}
        return {name: self.phase == phase for name, phase in phase_of_name.items()}

    @property
    def value_bytes(self) -> int:
        """Bytes of a value of C; 0 in the symbolic phase."""
        return self.arithmetic.result.itemsize if self.arithmetic else 0

    @property
    def column_bytes(self) -> int:
        """Bytes of the number of a column inside kernels."""
        return 8 if self.wide else 4

    @property
    def index_bytes(self) -> int:
        """Bytes of an index of A and B."""
        return 8 if self.index == "int64" else 4

    @property
    def name(self) -> str:
        """The part of a kernel's name that tells its phase and types."""
        type_name = self.arithmetic.name if self.arithmetic else f"i{8 * self.index_bytes}"
        return f"{self.phase}_{type_name}{'_wide' if self.wide else ''}{'_c64' if self.c_index == 'int64' else ''}"

    @property
    def prelude(self) -> str:
        """OpenCL C of a kernel's types, the macros that ``cl/spgemm.cl`` needs and, but in the symbolic phase, the semiring."""
        column = "ulong" if self.wide else "uint"
        lines = [f"#define {name.upper()} {int(is_phase)}" for name, is_phase in self.is_phase.items()]
        lines += [f"typedef {column} COLUMN;", f"#define NO_COLUMN {column.upper()}_MAX"]
        if self.arithmetic is None:
            return "\n".join([*lines, f"typedef {OPENCL_TYPES[self.index]} I;  // {self.index}: indices and indptr"])
        c_index = f"typedef {OPENCL_TYPES[self.c_index]} C_INDEX;  // {self.c_index}: C's indices and indptr"
        return "\n".join([*lines, self.arithmetic.prelude, c_index])


# Kernel types are cached by phase, as every launch of a kernel asks for them.
@functools.lru_cache(maxsize=256)
def _of_phase(types: KernelTypes, phase: str) -> KernelTypes:
    """Return the types of a product's kernels for another phase; the symbolic phase has no values."""
    return KernelTypes(phase, types.index, types.wide) if phase == "symbolic" else replace(types, phase=phase)


@dataclass(frozen=True)
class OfProduct(Parameters):
    """Base of the records of kernels that know the types of a product.

    Fields that a record has beside those of the bases are in the kernel's name and are arguments of its template.

    Attributes
    ----------
    types : KernelTypes
    """

    types: KernelTypes

    of_prelude: ClassVar[frozenset[str]] = frozenset(("work_group", "types", "listed", "portability", "lanes"))

    @property
    def shape_name(self) -> str:
        """The part of a kernel's name that tells its work-group and the other parameters of its class."""
        parts = (name if value is True else f"{value}_{name}" for name, value in self.own.items() if value)
        return "_".join((f"wg{self.work_group}", *parts))

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, work-group and other parameters, phase and types."""
        return f"{self.template.replace('/', '_')}_{self.shape_name}_{self.types.name}"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: the product's types, the phase and, but in the symbolic phase, the semiring."""
        return self.types.prelude

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size and the record's own fields, without types."""
        return {"work_group": self.work_group, **self.own}

    @classmethod
    @override
    def usual(cls, device: Device, arithmetic: Arithmetic) -> dict[str, Any]:
        """Return the fields of a kernel's examples that give no others: the base's, and types for A and B of one dtype."""
        return {**super().usual(device, arithmetic), "types": KernelTypes.of_same(arithmetic)}


@dataclass(frozen=True)
class OfListed(OfProduct):
    """Base of the records of kernels for rows of C that may be listed, see ``cl/spgemm_rows.cl``.

    Attributes
    ----------
    listed : bool
        Whether the rows are listed; all rows in their order otherwise.
    """

    listed: bool

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, parameters, types, and whether rows are listed."""
        return f"{super().name}{'_listed' if self.listed else ''}"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: ``LISTED``, whether rows are listed, and the base's prelude."""
        return f"#define LISTED {int(self.listed)}\n{super().prelude}"


@dataclass(frozen=True)
class OfLanes(OfProduct):
    """Base of the records of kernels whose lanes exchange values.

    Attributes
    ----------
    portability : Portability
        How lanes exchange values, and how far.
    """

    portability: Portability

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: how lanes exchange values, and the base's prelude."""
        return f"{self.portability.defines}\n{super().prelude}"


@dataclass(frozen=True)
class RowKernel(OfLanes, OfListed):
    """Base of the records of kernels that make rows of C, see ``cl/spgemm.cl``.

    Attributes
    ----------
    lanes : int
        Work-items to a row; divides the work-group size.
    """

    lanes: int

    def groups(self, n_rows: int) -> int:
        """Return the number of work-groups that a launch needs for ``n_rows`` rows of C."""
        return -(-n_rows // (self.work_group // self.lanes))

    @property
    @override
    def shape_name(self) -> str:
        """The part of a kernel's name that tells the lanes of a row, the work-group and other parameters."""
        return f"x{self.lanes}_{super().shape_name}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `OfProduct`, lanes, teams of a work-group, and a flag for each phase."""
        return {
            **super().arguments(),
            "lanes": self.lanes,
            "teams": self.work_group // self.lanes,
            **self.types.is_phase,
        }
