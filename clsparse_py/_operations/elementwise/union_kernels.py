"""The kernels of operators on two sparse matrices: parameter records of the templates, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.structure import OfStructure
from clsparse_py._operations.elementwise.operators import OPERATORS, lines_of_two
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["Thresholds", "Union", "UnionAtOnce", "UnionCuts", "UnionMarks", "UnionWrite"]

#: Most places (rows and entries of two matrices) that a work-item merges, as it has 16 bits (half a word) for places' marks.
_MAX_SPAN = 16


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of operators on two sparse matrices. A place is a row, or an entry of one of the two matrices."""

    operation = "elementwise"

    #: Work-group size of the one launch that computes an operator's small result; 0: all results take several launches.
    single_group: int = number(512, "work-items")
    #: Places to a work-item of the one launch that computes an operator's small result.
    single_span: int = number(8, "places", least=1, most=16)
    #: Work-group size of kernels that compute an operator's larger results by tiles of places, a tile to a work-group.
    tile_group: int = number(128, "work-items", least=1)
    #: Places to a work-item of kernels that compute an operator's larger results by tiles of places.
    tile_span: int = number(16, "places", least=1, most=16)
    #: Most places per compute unit for which each work-group finds its own tile of places; else an earlier kernel cuts all tiles.
    max_few_places: int = number(1 << 16, "places")


@dataclass(frozen=True)
class _OfTwo(OfStructure):
    """Base of the parameter records of kernels that apply an elementwise operator to two sparse matrices.

    Attributes
    ----------
    a, b : str
        NumPy's names of the dtypes of both matrices' values.
    operator : str
        A name in `OPERATORS`.
    """

    a: str
    b: str
    operator: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which an elementwise operator on two sparse matrices is computed."""
        return np.result_type(self.a, self.b)

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: types of indices and values, an index's largest value, and the operator."""
        operator = OPERATORS[self.operator]
        result = operator.result_dtype(self.dtype)
        lines = lines_of_two(self.a, self.b, result.name, operator.expression(self.dtype))
        index_max = f"#define I_MAX {'LONG_MAX' if self.index == 'int64' else 'INT_MAX'}"
        return "\n".join([super().prelude, index_max, *lines])

    @property
    def is_kept(self) -> str:
        """The condition in OpenCL C that a result of the operator is not 0, so that it becomes an entry."""
        is_complex = OPERATORS[self.operator].result_dtype(self.dtype).kind == "c"
        return "result.x != 0 || result.y != 0" if is_complex else "result != 0"


@kernel
@dataclass(frozen=True)
class Union(_OfTwo):
    """Parameters of ``templates/elementwise/union.mako``.

    Attributes
    ----------
    phase : str
        "count" or "fill".
    """

    template = "elementwise/union"
    variants: ClassVar[Variants] = {
        phase: {"work_group": 1, "operator": "plus", "phase": phase or "count"} for phase in ("", "fill")
    }

    phase: str

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: fields, and ``is_kept``, the condition in OpenCL C that a result is not 0."""
        return {**super().arguments(), "is_kept": self.is_kept}


@kernel
@dataclass(frozen=True)
class UnionCuts(OfStructure):
    """Parameters of ``templates/elementwise/union_cuts.mako``."""

    template = "elementwise/union_cuts"
    variants: ClassVar[Variants] = {"": {"work_group": 64}}


@dataclass(frozen=True)
class _OfTiles(_OfTwo):
    """Base of the parameter records of kernels whose work-groups take a tile of two matrices' places (rows and entries).

    Attributes
    ----------
    span : int
        Places of a tile to a work-item, 2 to 16.
    """

    span: int

    @property
    def step(self) -> int:
        """Number of places (rows and entries of two sparse matrices) of a tile; kernels have room for one more place."""
        return self.work_group * self.span - 1


@dataclass(frozen=True)
class _Marking(_OfTiles):
    """Base of the parameter records of kernels that put two matrices' places (rows and entries) in order.

    Attributes
    ----------
    portability : Portability
        How lanes exchange counts.
    """

    portability: Portability

    @property
    def local_memory(self) -> int:
        """Bytes of local memory of a work-group that merges a tile of two matrices' rows and entries in order."""
        item = np.dtype(self.index).itemsize
        return self.work_group * (self.span * item + 16) + 6 * item

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: how lanes exchange counts, and the lines of `_OfTwo`."""
        return f"{self.portability.defines}\n{super().prelude}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: fields, the places of a tile, and the condition in OpenCL C that a result is not 0."""
        return {**super().arguments(), "step": self.step, "is_kept": self.is_kept}

    @classmethod
    def legal(
        cls,
        device: Device,
        index: str,
        a: str,
        b: str,
        operator: str,
        *,
        work_group: int = 128,
        span: int = _MAX_SPAN,
        **options: bool,
    ) -> Self:
        """Return the record of a kernel that combines two matrices; its work-group is halved until local memory suffices."""
        group = min(work_group, device.max_work_group)
        while True:
            record = cls(group, index, a, b, operator, span, device.portability, **options)
            if record.local_memory <= device.local_memory or group == 1:
                return record
            group //= 2


@kernel
@dataclass(frozen=True)
class UnionMarks(_Marking):
    """Parameters of ``templates/elementwise/union_marks.mako``.

    Attributes
    ----------
    few : bool
        Whether there are few tiles, so that a work-group searches where its tile begins and ends.
    """

    template = "elementwise/union_marks"

    few: bool

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel for many tiles, "", and for "few" tiles."""
        types = arithmetic.index, arithmetic.a, arithmetic.x, "plus"
        for variant, few in (("", False), ("few", True)):
            yield variant, cls.legal(device, *types, few=few)


@kernel
@dataclass(frozen=True)
class UnionAtOnce(_Marking):
    """Parameters of ``templates/elementwise/union_at_once.mako``.

    Attributes
    ----------
    unroll : int
        Places whose loads a work-item has in flight.
    """

    template = "elementwise/union_at_once"

    unroll: int = 4

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        types = arithmetic.index, arithmetic.a, arithmetic.x, "plus"
        yield "", cls.legal(device, *types, work_group=512, span=8)


@kernel
@dataclass(frozen=True)
class UnionWrite(_OfTiles):
    """Parameters of ``templates/elementwise/union_write.mako``.

    Attributes
    ----------
    few : bool
        Whether there are few tiles, so that a work-group adds up the results of earlier tiles.
    unroll : int
        Places whose loads a work-item has in flight.
    """

    template = "elementwise/union_write"

    few: bool
    unroll: int = 4

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the template's text: the default way in which lanes exchange counts, and the lines of `_OfTwo`."""
        return f"{Portability().defines}\n{super().prelude}"

    @override
    def within(self, work_group: int, lane_width: int) -> None:
        """Return None, as a smaller work-group is not possible: `UnionMarks`, which wrote the marks, fixes the size."""

    @classmethod
    def of(cls, marks: UnionMarks) -> UnionWrite:
        """Return the parameters of the kernel that writes an elementwise operator's results, which `UnionMarks` marked."""
        return cls(marks.work_group, marks.index, marks.a, marks.b, marks.operator, marks.span, marks.few)

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records of the kernel for many tiles, "", and for "few" tiles."""
        types = arithmetic.index, arithmetic.a, arithmetic.x, "plus"
        for variant, few in (("", False), ("few", True)):
            yield variant, cls.of(UnionMarks.legal(device, *types, few=few))
