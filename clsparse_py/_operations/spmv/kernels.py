"""Records of the SpMV kernels, and their legal values on a device."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, Variants, kernel
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._matrix.structure import OfStructure, positions
from clsparse_py._operations.parts import power_of_two_at_most
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic

__all__ = [
    "Adaptive",
    "Chunked",
    "CountFeatures",
    "FindPatterns",
    "Merge",
    "Narrow",
    "Patterned",
    "RowNumbers",
    "Streamed",
    "Subvector",
    "TotalFeatures",
    "VectorLong",
    "nearest_work_group",
]


def _power_of_two_dividing(n: int) -> int:
    """Return the largest power of two that divides ``n``."""
    return n & -n


def _position(arithmetic: Arithmetic) -> str:
    """Return the OpenCL type of a loop variable over A's entries: the index type, unsigned, as a last step may pass its limit."""
    return OPENCL_TYPES[f"u{arithmetic.index}"]


def nearest_work_group(requested: int, multiple: int, max_group: int) -> int:
    """Return the multiple of ``multiple`` nearest to ``requested``; at most ``max_group``, unless ``multiple`` itself is more."""
    nearest = max(multiple, (requested + multiple // 2) // multiple * multiple)
    return max(multiple, min(nearest, max_group // multiple * multiple))


def _default_work_group(device: Device) -> int:
    """Return the work-group size that examples of SpMV's kernels have on a device: 64 on CPU devices, else 256."""
    return 64 if device.lanes_are_loops else 256


@kernel
@dataclass(frozen=True)
class Subvector(ProductKernel):
    """Parameters of ``templates/spmv/subvector.mako``: Kernel-Serial, Kernel-SubvectorX and Kernel-Vector.

    Attributes
    ----------
    lanes : int
        X: work-items to a row, a power of two that divides ``work_group``; where ``binned``, the largest X of a bin.
    unroll : int
        Entries that a work-item reads ahead.
    binned : bool
        Whether rows come in bins, or all of them in order.
    """

    template = "spmv/subvector"
    kind = "spmv_subvector"

    lanes: int
    unroll: int
    binned: bool

    @classmethod
    def legal(
        cls, device: Device, arithmetic: Arithmetic, scaled: bool, lanes: int, work_group: int, unroll: int, binned: bool
    ) -> Subvector:
        """Return the nearest parameters that are legal on a device for the SpMV kernels of whole rows."""
        lanes = power_of_two_at_most(min(lanes, device.max_work_group))
        work_group = nearest_work_group(work_group, lanes, device.max_work_group)
        portability = device.portability.at_most(device.portability.lane_width if lanes > 1 else 1)
        if lanes < 16:
            # Neighbouring work-items read a cache line's entries at different times: plain loads keep the line in the cache.
            portability = replace(portability, load_once="plain")
        return cls(work_group, arithmetic, portability, scaled, lanes, unroll, binned)

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name for lanes, work-group, unrolling and whether rows are binned: ``x8_wg256_u4_binned``."""
        return f"x{self.lanes}_wg{self.work_group}_u{self.unroll}{'_binned' if self.binned else ''}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: lanes, unrolling, whether rows are binned and lanes need local memory, index type."""
        needs_box = self.lanes > self.lane_width
        own_arguments = {"lanes": self.lanes, "unroll": self.unroll, "binned": self.binned, "needs_box": needs_box}
        return {**self._common(), **own_arguments, "position": _position(self.arithmetic)}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the whole-row kernel's parameters for a smaller work-group and lane width; None if ``work_group`` is 0."""
        if work_group < 1:
            return None
        lanes = min(self.lanes, power_of_two_at_most(work_group))
        work_group = work_group // lanes * lanes
        return replace(self, work_group=work_group, lanes=lanes, portability=self.portability.at_most(lane_width))

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield a name and a record for each variant of the kernel: "" (all rows in order) and "binned"."""
        yield "", cls.legal(device, arithmetic, False, lanes=8, work_group=_default_work_group(device), unroll=4, binned=False)
        yield "binned", cls.legal(device, arithmetic, False, lanes=128, work_group=256, unroll=2, binned=True)


@kernel
@dataclass(frozen=True)
class VectorLong(ProductKernel):
    """Parameters of ``templates/spmv/vector_long.mako``: several work-groups to a row. ``work_group`` is a power of two."""

    template = "spmv/vector_long"
    kind = "spmv_vector_long"

    unroll: int

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int, unroll: int) -> VectorLong:
        """Return the nearest parameters that are legal on a device for the SpMV kernel "vector_long"."""
        work_group = power_of_two_at_most(min(work_group, device.max_work_group))
        return cls(work_group, arithmetic, device.portability, scaled, unroll)

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells work-group and unrolling, such as ``wg256_u4``."""
        return f"wg{self.work_group}_u{self.unroll}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: unrolling, whether lanes need local memory, and the OpenCL type of entry positions."""
        own_arguments = {"unroll": self.unroll, "needs_box": self.work_group > self.lane_width}
        return {**self._common(), **own_arguments, "position": _position(self.arithmetic)}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of "vector_long" for a smaller work-group and lane width; None if ``work_group`` is 0."""
        if work_group < 1:
            return None
        return replace(self, work_group=power_of_two_at_most(work_group), portability=self.portability.at_most(lane_width))

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, arithmetic, False, _default_work_group(device), 4)


@dataclass(frozen=True)
class _Staging(ProductKernel):
    """Base of the parameter records of SpMV kernels whose work-groups hold entries in local memory, and share rows among lanes.

    Attributes
    ----------
    items : int
        Entries to a work-item; a work-group holds ``work_group * items`` entries, or their products, in local memory.
    lanes : int
        X: work-items to a row, a power of two that divides ``work_group``.
    """

    items: int
    lanes: int = 1

    @property
    def capacity(self) -> int:
        """Number of entries of A that a work-group stages in local memory."""
        return self.work_group * self.items

    @property
    def needs_box(self) -> bool:
        """Whether a row's lanes (work-items) exchange sums through local memory, as they are more than the lane width."""
        return self.lanes > self.lane_width

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the staging kernel's parameters for a smaller work-group and lane width; None if ``work_group`` is 0."""
        if work_group < 1:
            return None
        lanes = min(self.lanes, _power_of_two_dividing(work_group))
        return replace(self, work_group=work_group, lanes=lanes, portability=self.portability.at_most(lane_width))


@kernel
@dataclass(frozen=True)
class Adaptive(_Staging):
    """Parameters of ``templates/spmv/adaptive.mako``: CSR-Adaptive, a stream of entries to a work-group.

    Attributes
    ----------
    parts : str
        "staged": a work-group has no more entries than it holds products of in local memory. "rests": the entries that it has
        behind those is the rest of its last row. "even": it has just as many as it holds.
    short_row : int
        The longest row that one work-item sums; ``lanes`` work-items share a longer one.
    """

    template = "spmv/adaptive"
    kind = "spmv_adaptive"

    parts: str = "staged"
    short_row: int = 32

    @classmethod
    def legal(
        cls,
        device: Device,
        arithmetic: Arithmetic,
        scaled: bool,
        work_group: int,
        items: int,
        parts: str = "staged",
        short_row: int = 32,
        lanes: int = 32,
    ) -> Adaptive:
        """Return CSR-Adaptive's nearest parameters that are legal on a device and fit its local memory."""
        work_group = max(1, min(work_group, device.max_work_group))
        lanes = min(lanes, _power_of_two_dividing(work_group))
        record = cls(work_group, arithmetic, device.portability, scaled, items, lanes, parts, short_row)
        return device.fitting(_shrink(record), operator.attrgetter("local_memory"))

    def with_room(self, longest_rest: int) -> Adaptive:
        """Return these parameters; "staged" becomes "rests" if a row may reach beyond its part by over 1/8 of the capacity."""
        return replace(self, parts="rests") if self.parts == "staged" and longest_rest > self.capacity // 8 else self

    @property
    def local_memory(self) -> int:
        """Greatest bytes of local memory of a work-group of CSR-Adaptive: for products, lists of long rows, and lanes' sums."""
        value, index = self.arithmetic.result.itemsize, 4 if self.arithmetic.index == "int32" else 8
        room = self.capacity + (self.work_group if self.parts != "even" else 0)
        return value * (room + self.work_group) + index * (room // (self.short_row + 1) + 1) + 4

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name for parts, work-group, items, longest short row, lanes: ``staged_wg128_n5_s32_x32``."""
        return f"{self.parts}_wg{self.work_group}_n{self.items}_s{self.short_row}_x{self.lanes}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: parts, items, longest short row, lanes, if lanes need local memory, and index type."""
        own_arguments = {"parts": self.parts, "items": self.items, "short_row": self.short_row, "lanes": self.lanes}
        return {**self._common(), **own_arguments, "needs_box": self.needs_box, "position": _position(self.arithmetic)}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records by parts: "" ("staged" with 128 work-items, not 256), "staged", "rests" and "even"."""
        yield "", cls.legal(device, arithmetic, False, 128, 5)
        for parts in ("staged", "rests", "even"):
            yield parts, cls.legal(device, arithmetic, False, 256, 2, parts)


@kernel
@dataclass(frozen=True)
class Streamed(_Staging):
    """Parameters of ``templates/spmv/streamed.mako``: entries staged in local memory, several work-items to a row.

    The order of sums is that of ``lanes`` alone.

    Attributes
    ----------
    narrow : bool
        Whether columns come as 16 bits.
    """

    template = "spmv/streamed"
    kind = "spmv_streamed"

    narrow: bool = True

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int, items: int) -> Streamed:
        """Return the nearest parameters of the SpMV kernel that stages whole rows, legal on a device and in its local memory."""
        work_group = max(1, min(work_group, device.max_work_group))
        return device.fitting(
            _shrink(cls(work_group, arithmetic, device.portability, scaled, items)), operator.attrgetter("local_memory")
        )

    def for_rows(self, mean: float) -> Streamed:
        """Return the staging kernel's parameters with as many lanes (work-items to a row) as suit the mean row length."""
        lanes = min(power_of_two_at_most(max(1, min(int(mean / self.items), 32))), _power_of_two_dividing(self.work_group))
        return replace(self, lanes=lanes)

    @property
    def wide(self) -> Streamed:
        """The staging kernel's parameters for A's own columns, not columns in 16 bits: at most 4 items, same order of sums."""
        return replace(self, narrow=False, items=min(self.items, 4))

    @property
    def local_memory(self) -> int:
        """Greatest number of bytes of local memory of a work-group of the SpMV kernel that stages A's columns and values."""
        index = 4 if self.arithmetic.index == "int32" else 8
        box = self.work_group * self.arithmetic.result.itemsize
        return self.capacity * (np.dtype(self.arithmetic.a).itemsize + index) + box

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name for lanes, work-group, items and whether columns have 16 bits: ``x2_wg64_n4_narrow``."""
        return f"x{self.lanes}_wg{self.work_group}_n{self.items}{'_narrow' if self.narrow else ''}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: items, lanes, rows at once, if columns have 16 bits, lanes need local memory, type."""
        own_arguments = {"items": self.items, "lanes": self.lanes, "rows": self.work_group // self.lanes, "narrow": self.narrow}
        return {**self._common(), **own_arguments, "needs_box": self.needs_box, "position": _position(self.arithmetic)}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield a name and a record for each variant of the kernel: "" (A's own columns) and "narrow" (columns in 16 bits)."""
        narrow = cls.legal(device, arithmetic, False, _default_work_group(device), 4)
        yield "", narrow.wide
        yield "narrow", narrow


@kernel
@dataclass(frozen=True)
class Narrow(OfStructure):
    """Parameters of ``templates/spmv/narrow.mako``."""

    template = "spmv/narrow"
    variants: ClassVar[Variants] = {"": {"work_group": 256}}


@kernel
@dataclass(frozen=True)
class Patterned(_Staging):
    """Parameters of ``templates/spmv/patterned.mako``: row patterns in place of columns; values staged in local memory.

    The order of sums is that of ``lanes`` alone. ``items * lanes`` is the greatest number of a row's entries.
    """

    template = "spmv/patterned"
    kind = "spmv_patterned"

    #: Greatest number of work-items of a work-group.
    MAX_GROUP: ClassVar[int] = 128
    #: Greatest ``items``: loops over these are unrolled.
    MAX_ITEMS: ClassVar[int] = 16

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, scaled: bool, lanes: int, longest: int) -> Patterned | None:
        """Return the parameters of the SpMV kernel of row patterns that fit a device; None if its lanes or rows are too long."""
        work_group = power_of_two_at_most(min(cls.MAX_GROUP, device.max_work_group))
        items = -(-longest // lanes)
        if lanes > work_group or not 0 < items <= cls.MAX_ITEMS:
            return None
        groups = [work_group >> i for i in range(work_group.bit_length()) if work_group >> i >= lanes]
        records = (cls(group, arithmetic, device.portability, scaled, items, lanes) for group in groups)
        return device.fitting(records, operator.attrgetter("local_memory"))

    @property
    def rows(self) -> int:
        """Number of rows of A that a work-group takes."""
        return self.work_group // self.lanes

    @property
    def local_memory(self) -> int:
        """Greatest number of bytes of local memory of a work-group of the SpMV kernel of row patterns."""
        box = self.work_group * self.arithmetic.result.itemsize
        return self.capacity * np.dtype(self.arithmetic.a).itemsize + 4 * self.work_group + 5 * self.rows + 4 + box

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells lanes, work-group and items: ``x2_wg64_n4``."""
        return f"x{self.lanes}_wg{self.work_group}_n{self.items}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: items, lanes, rows of a work-group, and whether lanes need local memory."""
        own_arguments = {"items": self.items, "lanes": self.lanes, "rows": self.rows, "needs_box": self.needs_box}
        return {**self._common(), **own_arguments}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield a name and a record for each variant of the kernel: "" (one work-item to a row) and "lanes" (four)."""
        work_group = power_of_two_at_most(min(_default_work_group(device), cls.MAX_GROUP, device.max_work_group))
        for variant, lanes, items in (("", 1, 7), ("lanes", min(4, work_group), 7)):
            yield variant, cls(work_group, arithmetic, device.portability, False, items, lanes)


@kernel
@dataclass(frozen=True)
class FindPatterns(OfStructure):
    """Parameters of ``templates/spmv/find_patterns.mako``."""

    template = "spmv/find_patterns"

    #: Greatest number of row patterns of a matrix: a row names its pattern in a byte.
    MAX_PATTERNS: ClassVar[int] = 256

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, and the greatest number of row patterns."""
        return {**OfStructure.arguments(self), "n_patterns": self.MAX_PATTERNS}


@kernel
@dataclass(frozen=True)
class Merge(ProductKernel):
    """Parameters of ``templates/spmv/merge.mako``: merge-based SpMV.

    Attributes
    ----------
    items : int
        Steps on the merge path to a work-item.
    """

    template = "spmv/merge"
    kind = "spmv_merge"

    items: int

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int, items: int) -> Merge:
        """Return the nearest parameters that are legal and fit a device's local memory for merge-based SpMV."""
        # Work-items of the merge kernel exchange values through local memory alone.
        work_group = max(1, min(work_group, device.max_work_group))
        record = cls(work_group, arithmetic, device.portability.at_most(1), scaled, items)
        return device.fitting(_shrink(record), operator.attrgetter("local_memory"))

    @property
    def capacity(self) -> int:
        """Number of steps on the merge path, rows and entries of A, that a work-group takes."""
        return self.work_group * self.items

    @property
    def local_memory(self) -> int:
        """Bytes of local memory of a work-group of merge-based SpMV."""
        value = self.arithmetic.result.itemsize
        return (value + 4) * (self.capacity + self.work_group)

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells work-group and items, such as ``wg256_n4``."""
        return f"wg{self.work_group}_n{self.items}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the work-group's size, and ``items``, steps on the merge path to a work-item."""
        return {**self._common(), "items": self.items}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls.legal(device, arithmetic, False, _default_work_group(device), 4)


#: The type of an SpMV kernel's record that `_shrink` makes smaller until it fits into local memory.
_Fitted = TypeVar("_Fitted", Adaptive, Streamed, Merge)


def _shrink(record: _Fitted) -> Iterator[_Fitted]:
    """Iterate over an SpMV kernel's parameters and smaller ones: with fewer items to a work-item, then with fewer work-items."""
    for items in range(record.items, 0, -1):
        yield replace(record, items=items)
    work_group = record.work_group
    while work_group := work_group // 2:
        smaller = replace(record, items=1).within(work_group, record.lane_width)
        if smaller is not None:
            yield smaller


@kernel
@dataclass(frozen=True)
class Chunked(ProductKernel):
    """Parameters of ``templates/spmv/chunked.mako``: long chunks of rows, for CPU devices.

    Attributes
    ----------
    vectors : str
        The rows that are summed by vectors: "none"; "uneven", short rows of uneven lengths; "all" but the shortest. Others are
        summed by several sums.
    ahead : int
        How many entries ahead data are asked for; 0 for not at all.
    empty : bool
        Whether chunks of mostly empty rows list the others.
    narrow : bool
        Whether columns come as 16 bits.
    """

    template = "spmv/chunked"
    kind = "spmv_chunked"

    vectors: Literal["none", "uneven", "all"]
    ahead: int
    empty: bool = True
    narrow: bool = False

    #: Least mean row length of a chunk, in entries, for a loop of single sums to take the chunk's rows, by the number of a row's
    #: entries that the loop takes at a time: 8 or 1.
    SUMS_FROM: ClassVar[dict[int, float]] = {8: 4.0, 1: 1.0}
    #: Least mean row length of a chunk, in entries, for a loop of a vector of sums to take the chunk's rows, by the number of
    #: sums in the loop's vector: 4 or 8; the loop of 8 comes first.
    VECTORS_FROM: ClassVar[dict[int, float]] = {4: 2.1, 8: 4.0}
    #: Mean row length, in entries, below which vectors sum rows of uneven lengths.
    UNEVEN_TO: ClassVar[int] = 20
    #: Least mean row length, in entries, for vectors to sum rows of equal lengths, too, as most vectors are full.
    LONG_FROM: ClassVar[int] = 24
    #: Number of a chunk's first rows whose lengths say whether its rows are uneven, and of its first entries whose columns say
    #: whether x is prefetched.
    LOOKED_AT: ClassVar[int] = 256
    #: Least share of rows in one class of row lengths (`Features.classes`) for rows to count as even.
    ALIKE: ClassVar[float] = 0.9
    #: Share of empty rows above which the kernel has a loop of its own for chunks of mostly empty rows.
    MANY_EMPTY: ClassVar[float] = 0.1
    #: Prefetch distance of values, in bytes; columns are prefetched the same number of entries ahead.
    AHEAD_BYTES: ClassVar[int] = 1 << 11
    #: Prefetch distance of x, in entries of A.
    X_AHEAD: ClassVar[int] = 256
    #: Least number of bytes of x, from the lowest to the highest column of a chunk's first entries, for x to be prefetched.
    FAR_BYTES: ClassVar[int] = 1 << 20
    #: Greatest sum of a chunk's rows and entries: columns of grids with some millions of points then fit 16 bits.
    MAX_STEP: ClassVar[int] = 1 << 18
    #: Least number of bytes of A's values for columns of even rows to be compressed to 16 bits; smaller matrices stay in the
    #: cores' caches.
    NARROW_FROM: ClassVar[int] = 1 << 22

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int) -> Chunked:
        """Return the nearest parameters that are legal on a device for the SpMV kernel "chunked"."""
        # OpenCL compilers that vectorise across work-items (those with sub-groups) also vectorise loads of x at A's columns well.
        vectors: Literal["none", "uneven", "all"] = "all" if device.portability.lane_width > 1 else "uneven"
        if arithmetic.vector_operations is None:
            vectors = "none"
        work_group = max(1, min(work_group, device.max_work_group))
        ahead = cls.AHEAD_BYTES // np.dtype(arithmetic.a).itemsize if device.lanes_are_loops else 0
        return cls(work_group, arithmetic, device.portability.at_most(1), scaled, vectors, ahead)

    @classmethod
    def is_uneven(cls, mean: float, classes: Sequence[int]) -> bool:
        """Return whether a matrix's rows are short and of uneven lengths, by mean length and the histogram of length classes."""
        return mean < cls.UNEVEN_TO and max(classes) < cls.ALIKE * sum(classes)

    def for_rows(self, mean: float, classes: Sequence[int]) -> Chunked:
        """Return the "chunked" kernel's parameters that suit a mean row length and the numbers of rows in classes of lengths."""
        long = self.vectors == "all" and mean >= self.LONG_FROM
        vectors = self.vectors if long or self.is_uneven(mean, classes) else "none"
        return replace(self, vectors=vectors, empty=classes[0] > self.MANY_EMPTY * sum(classes))

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name that tells vectors, prefetch distance, work-group, empty rows' loop, 16-bit columns."""
        marks = "_empty" * self.empty + "_narrow" * self.narrow
        return f"{self.vectors}_a{self.ahead}_wg{self.work_group}{marks}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: row lengths for each loop, vector widths, prefetch distances, types and operations."""
        add, multiply = self.arithmetic.vector_operations or ("", "")
        size = self.arithmetic.result.itemsize
        vectors_from = {} if self.vectors == "none" else self.VECTORS_FROM
        return {
            **self._common(),
            "empty": self.empty,
            "narrow": self.narrow,
            "sums_from": () if self.vectors == "all" else tuple(self.SUMS_FROM.items()),
            "vector_widths": tuple(vectors_from),
            "vectors_from": tuple(vectors_from.values()),
            "uneven_to": self.UNEVEN_TO,
            "all": self.vectors == "all",
            "looked_at": self.LOOKED_AT,
            "x_ahead": self.X_AHEAD,
            "far": self.FAR_BYTES // size,
            # Number of values in the longest vector that OpenCL functions take and return: 32 bytes, as cl/column_places.cl says.
            "longest": 32 // size,
            "ahead": self.ahead,
            "scaled": self.scaled,
            "value": OPENCL_TYPES[self.arithmetic.a],
            "index": OPENCL_TYPES[self.arithmetic.index],
            "mask": "int" if size == 4 else "long",
            "add": add,
            "multiply": multiply,
        }

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield records: "sums" (no vectors) or not, "empty" (a loop for empty rows) or "full", "narrow" columns or not."""
        legal = cls.legal(device, arithmetic, False, 1)
        yield "", legal
        for prefix, record in (("", legal), ("sums_", replace(legal, vectors="none"))):
            for suffix, variant in (("empty", record), ("full", replace(record, empty=False))):
                yield prefix + suffix, variant
                if record.vectors != "uneven":  # uneven rows keep columns of A's index type
                    yield f"{prefix}{suffix}_narrow", replace(variant, narrow=True)


class RowNumbers(NamedTuple):
    """The features of rows that ``templates/spmv/features.mako`` computes, in the order of its output, before length classes."""

    shortest: int
    longest: int
    squares: int
    large_squares: int
    jumps: int
    entries: int
    distance: int
    pairs: int
    gap: int


@kernel
@dataclass(frozen=True)
class CountFeatures(OfStructure):
    """Parameters of ``templates/spmv/features.mako``."""

    template = "spmv/features"

    @property
    @override
    def prelude(self) -> str:
        """OpenCL C before the template: positions of `RowNumbers` and of the classes in the output, and the base's prelude."""
        return f"{positions('FOUND', (*RowNumbers._fields, 'classes'))}{super().prelude}"

    @property
    def n_classes(self) -> int:
        """Number of classes of row lengths: empty rows, and rows of up to each power of two that the index type holds."""
        return 33 if self.index == "int32" else 65

    @property
    def n_outputs(self) -> int:
        """Number of values that a work-group writes about a matrix: features of rows, and counts of rows by class of lengths."""
        return len(RowNumbers._fields) + self.n_classes

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: the record's fields, the index type, and the number of classes of row lengths."""
        own_arguments = {"index": self.index, "n_classes": self.n_classes}
        return {**OfStructure.arguments(self), **own_arguments}

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield the kernel's one example record, for a device and an arithmetic."""
        yield "", cls(1 if device.lanes_are_loops else min(128, device.max_work_group), arithmetic.index)


@kernel
@dataclass(frozen=True)
class TotalFeatures(OfStructure):
    """Parameters of ``templates/spmv/features_total.mako``."""

    template = "spmv/features_total"
