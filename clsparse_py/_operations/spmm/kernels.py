"""The SpMM kernels: a parameter record beside each template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build import programs
from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._operations.parts import power_of_two_at_most
from clsparse_py._operations.spmm.choose import Layout, Pattern, Shape, choose
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of

__all__ = ["Pack", "Parts", "slack_of"]

#: Number of values in a tile, the part of the dense X that a work-group copies so that the columns of a row are adjacent.
_TILE_VALUES = 1024
#: Most columns of a tile of the dense X that a work-group copies: 128 bytes of float32.
_TILE_COLUMNS = 32


def slack_of(step: int) -> int:
    """Return the most entries beyond ``step`` that a part of A may have so that the part ends with a row."""
    return max(step - 1, 0)


@kernel
@dataclass(frozen=True)
class Parts(ProductKernel):
    """Parameters of ``templates/spmm/parts.mako``.

    Attributes
    ----------
    lanes : int
        Work-items that share a part, a power of two that divides ``work_group``.
    vectors, width : int
        Vectors of columns whose sums a work-item keeps, and columns of a vector.
    aligned : bool
        Whether vectors of X and Y begin at multiples of their size.
    unroll : int
        Entries whose loads a work-item has in flight.
    outer : bool
        Whether neighbouring work-groups have neighbouring parts, not blocks of columns of the same parts.
    staged : bool
        Whether a work-group stages its entries in local memory.
    rows : int
        Most adjacent rows with the same columns in a part; 0 if parts are of rows and entries.
    exact : bool
        Whether a team has all columns, which are adjacent, and 32 bits hold the distance of rows of X.
    """

    template = "spmm/parts"
    kind = "spmm_parts"

    lanes: int
    vectors: int
    width: int
    aligned: bool
    unroll: int
    outer: bool
    staged: bool
    rows: int = 0
    exact: bool = False

    @classmethod
    def of(cls, shape: Shape, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int | None = None) -> Parts:
        """Return the legal parameters of SpMM's kernel nearest to a kernel `Shape`; ``work_group`` replaces the shape's own."""
        work_group = max(1, min(work_group or shape.work_group, device.max_work_group))
        lanes = min(shape.lanes, work_group & -work_group)
        vectors, width = shape.vectors, shape.width
        if arithmetic.vector_operations is None:
            vectors, width = vectors * width, 1
        portability = device.portability.at_most(1)
        record = cls(
            work_group,
            arithmetic,
            portability,
            scaled,
            lanes,
            vectors,
            width,
            shape.aligned,
            shape.unroll,
            shape.outer,
            shape.staged,
            shape.rows,
        )
        return replace(record, staged=record.staged and record.local_memory(shape.step) <= device.local_memory)

    def adapt(self, n_columns: int, x_row: int, *, adjacent: bool) -> Self:
        """Return these parameters, ``exact`` if teams take rows and all of X's columns, ``adjacent``, and 32 bits hold ``x_row``.

        ``x_row`` is the distance of rows of X, in values.
        """
        return replace(self, exact=self.rows > 0 and adjacent and n_columns == self.columns and -(1 << 31) <= x_row < 1 << 31)

    @property
    def teams(self) -> int:
        """Number of parts of A that a work-group of SpMM's kernel takes, each by a team of lanes."""
        return self.work_group // self.lanes

    def room(self, step: int) -> int:
        """Return the most entries of A that a work-group stages in local memory, if its parts have ``step`` rows plus entries."""
        return self.teams * step + slack_of(step)

    def local_memory(self, step: int) -> int:
        """Return the bytes of local memory in which a work-group stages A's entries, if parts have ``step`` rows plus entries."""
        return self.room(step) * (self.arithmetic.result.itemsize + (4 if self.arithmetic.index == "int32" else 8))

    @property
    def columns(self) -> int:
        """Number of columns of Y that a team of lanes computes."""
        return self.lanes * self.vectors * self.width

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name for lanes, vectors, unrolling, work-group, staging: ``l8_c2_w4a_u4_wg128_staged``."""
        staged = "_staged" if self.staged else ""
        order = "_outer" if self.outer else ""
        vector = f"c{self.vectors}_w{self.width}{'a' if self.aligned and self.width > 1 else ''}"
        rows = f"{f'_r{self.rows}' if self.rows else ''}{'_exact' * self.exact}"
        return f"l{self.lanes}_{vector}_u{self.unroll}_wg{self.work_group}{staged}{order}{rows}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the shape's fields, the values' OpenCL type, and the vectors' operations."""
        add, multiply = self.arithmetic.vector_operations or ("", "")
        names = "lanes", "vectors", "width", "aligned", "unroll", "outer", "staged", "rows", "exact"
        operations = {"value": OPENCL_TYPES[self.arithmetic.result.name], "add": add, "multiply": multiply}
        return {**self._common(), **{name: getattr(self, name) for name in names}, **operations}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of SpMM's kernel for at most ``work_group`` work-items, a power of two; None if that is 0."""
        if work_group < 1:
            return None
        work_group = power_of_two_at_most(work_group)
        lanes = min(self.lanes, work_group)
        return replace(self, work_group=work_group, lanes=lanes, exact=self.exact and lanes == self.lanes)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records by X's columns: "2", "3", "4" (also ""), "128"; for 128 also by "rows" and rows "together"."""
        layouts = (2, Layout(False, 1)), (3, Layout(True, 1)), (4, Layout(True, 4)), (128, Layout(True, 16))
        for columns, layout in layouts:
            shape = choose(device, arithmetic, columns, Pattern(1, 1, 1), layout)[0]
            record = cls.of(shape, device, arithmetic, scaled=False)
            yield str(columns), record
            if columns == 4:
                yield "", record
            if columns == 128:
                rows = replace(record, staged=False, rows=1)
                yield "rows", rows
                yield "together", replace(rows, rows=3, exact=True)


@kernel
@dataclass(frozen=True)
class Pack(programs.Parameters):
    """Parameters of ``templates/spmm/pack.mako``.

    Attributes
    ----------
    dtype : str
        NumPy's name of the dtype of X; values are moved as words of its size.
    rows, columns : int
        Rows and columns of a tile, powers of two, whose product is a multiple of ``work_group``.
    """

    template = "spmm/pack"

    dtype: str
    rows: int
    columns: int

    @classmethod
    def legal(cls, device: Device, dtype: str, n_columns: int) -> Pack:
        """Return the parameters of the kernel that copies a dense X of ``n_columns`` so that a row's columns are adjacent."""
        work_group = power_of_two_at_most(min(256, device.max_work_group))
        columns = min(_TILE_COLUMNS, 1 << (n_columns - 1).bit_length())
        return cls(work_group, dtype, max(_TILE_VALUES, work_group) // columns, columns)

    @property
    @override
    def name(self) -> str:
        """The kernel's name: template, dtype, rows and columns of a tile, and work-group size."""
        return f"spmm_pack_{self.dtype}_r{self.rows}_c{self.columns}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: the unsigned type ``X_VALUE`` of the size of X's values, as which these are copied."""
        word = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "uint4"}[np.dtype(self.dtype).itemsize]
        return f"typedef {word} X_VALUE;  // {self.dtype}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the work-group's size, and the rows and columns of a tile of X."""
        return {"work_group": self.work_group, "rows": self.rows, "columns": self.columns}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of the kernel that copies X for at most ``work_group`` work-items; None if that is 0."""
        return replace(self, work_group=power_of_two_at_most(work_group)) if work_group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, name_of(np.dtype(arithmetic.x)), 32)
