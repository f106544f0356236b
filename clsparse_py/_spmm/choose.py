"""Decide: the kernel's shape for a product with several columns, a pure function of the product's numbers and the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device
from clsparse_py.records import dataclass

__all__ = ["Layout", "Pattern", "Shape", "alternatives", "choose"]

#: Bytes of the widest vector that a work-item of a GPU loads at once, and of the widest that a function may take (quirk 3).
_GPU_VECTOR, _CPU_VECTOR = 16, 32
#: Columns that are apart and so few that to copy X takes longer than to read it as it lies.
_DIRECT_ON_GPU, _DIRECT_ON_CPU = 4, 8
#: Lanes that share a part, at most, and vectors of columns that each takes before a team takes no more.
_MAX_LANES, _MAX_VECTORS = 32, 2
#: Rows and entries of a part on GPUs by the lanes that share it, at most: in larger ones rows of X leave the first-level cache
#: before the next row of A asks for them, and smaller ones cut too many rows.
_PARTS = ((2, 16), (8, 32), (32, 64))
#: Lanes that are few.
_FEW_LANES = 2
#: Times that a part of few lanes, or of more, may be larger so that no row is cut, and the largest that is made for that.
_LARGER_OF_FEW, _LARGER, _LARGEST_PART = 2, 4, 128
#: Entries whose loads a team has in flight; of few lanes there is room for more.
_UNROLL, _UNROLL_OF_FEW = 4, 8
#: Rows and entries of a part on a CPU device, at least, and parts to a core, at most.
_LEAST_OF_A_CORE, _PARTS_OF_A_CORE = 512, 32
#: Columns of a block if X is larger than the cache and A's columns are scattered, each of which then comes from the cache.
_CACHED_COLUMNS = 32
#: Of such a matrix: the longest row in mean rows, at most, and the share of entries beside the one before, at most. If rows are
#: uneven columns often are too, and those that many rows have stay in the cache anyway.
_ALIKE, _SCATTERED = 2, 0.1
#: Of a grid: the mean row, at most, and the share of such entries, at least. There a core reads X as it lies in less time than it
#: copies X.
_SHORT_MEAN, _LOCAL = 16, 0.25


class Layout(NamedTuple):
    """How X and Y lie in memory, as far as kernels are chosen by it.

    Attributes
    ----------
    adjacent : bool
        Whether the columns of a row are adjacent, in X and in Y.
    divides : int
        A power of two, at most 16, that divides the positions at which rows of X and Y begin, counted in values.
    """

    adjacent: bool
    divides: int


@dataclass(frozen=True)
class Pattern:
    """What a choice is made by of A's structure.

    Attributes
    ----------
    n_rows, n_cols, nnz : int
    longest : int or None
        Entries of the longest row, if that is known.
    adjacent : int
        Entries whose column is beside that of the entry before; 0 if that is not known.
    """

    n_rows: int
    n_cols: int
    nnz: int
    longest: int | None = None
    adjacent: int = 0

    @property
    def work(self) -> int:
        """Rows and entries."""
        return self.n_rows + self.nnz

    @property
    def is_scattered(self) -> bool:
        """Whether rows are alike and neighbouring entries are not neighbours in X."""
        if self.longest is None:
            return False
        return self.longest * self.n_rows <= _ALIKE * self.nnz and self.adjacent <= _SCATTERED * self.nnz

    @property
    def is_local(self) -> bool:
        """Whether rows are short and neighbouring entries are neighbours in X, as of grids."""
        return self.nnz <= _SHORT_MEAN * self.n_rows and self.adjacent >= _LOCAL * self.nnz


@dataclass(frozen=True)
class Shape:
    """The shape of a product's kernel: fields of `kernels.Parts`, the size of parts, and what is done before.

    Attributes
    ----------
    lanes, vectors, width, aligned, unroll, outer, work_group
        As of the record.
    step : int
        Rows and entries of a part; 0 if each row is a part.
    staged : bool
        Whether a work-group stages its entries in local memory.
    packed : bool
        Whether X is copied first, so that the columns of a row are adjacent.
    """

    lanes: int = 1
    vectors: int = 1
    width: int = 1
    aligned: bool = False
    unroll: int = 1
    outer: bool = False
    work_group: int = 64
    step: int = 0
    staged: bool = False
    packed: bool = False

    def __str__(self) -> str:
        columns = f"{self.vectors * self.width} column{'s' * (self.vectors * self.width > 1)} a work-item"
        team = f", {self.lanes} lanes" if self.lanes > 1 else ""
        parts = f"parts of {self.step} rows and entries" if self.step else "a part for each row"
        return f"{columns}{team}, {parts}{', staged' if self.staged else ''}{', X packed' if self.packed else ''}"


def _power_of_two_from(n: int) -> int:
    return 1 << (n - 1).bit_length()


def choose(device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout) -> tuple[Shape, str]:
    """Decide on the shape of a product's kernel.

    Parameters
    ----------
    device : Device
    arithmetic : Arithmetic
        Of the product.
    n_columns : int
        Of X, at least 1.
    pattern : Pattern
        Of A.
    layout : Layout
        Of X and Y.

    Returns
    -------
    Shape
    str
        The reason.
    """
    return (_for_cores if device.is_cpu else _for_lanes)(device, arithmetic, n_columns, pattern, layout)


def alternatives(shape: Shape) -> Iterator[Shape]:
    """Yield a shape, and those that come in its place where its kernels are refused: simpler ones, of one kernel each."""
    yield shape
    for columns in (4, 2, 1):
        yield Shape(vectors=columns)


def _for_lanes(device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout) -> tuple[Shape, str]:
    """Return the shape for devices whose neighbouring work-items share accesses."""
    item = arithmetic.result.itemsize
    packed = not layout.adjacent and n_columns > _DIRECT_ON_GPU
    width = 1
    if arithmetic.vector_operations is not None and (packed or layout.adjacent):
        # Rows of an X that is packed begin at multiples of n_columns.
        width = min(_GPU_VECTOR // item, n_columns & -n_columns if packed else layout.divides)
    needed = -(-n_columns // width)
    lanes = min(_MAX_LANES, _power_of_two_from(needed))
    vectors = min(_MAX_VECTORS, -(-needed // lanes))
    why = f"{n_columns} columns in vectors of {width}"
    outer = False
    if n_columns > _CACHED_COLUMNS and pattern.n_cols * n_columns * item > device.cache_bytes > 0 and pattern.is_scattered:
        lanes, vectors, outer = min(_MAX_LANES, _CACHED_COLUMNS // width), 1, True
        why += ", in blocks as X exceeds the cache and A's columns are scattered"
    step, of_rows = _step(pattern, lanes)
    if packed:
        why += "; they are apart in X"
    unroll = _UNROLL_OF_FEW if lanes <= _FEW_LANES and layout.adjacent else _UNROLL
    shape = Shape(lanes, vectors, width, True, unroll, outer, 128, step, True, packed)
    return shape, f"{why}; {of_rows}"


def _step(pattern: Pattern, lanes: int) -> tuple[int, str]:
    """Return the rows and entries of a part on a GPU, and the reason."""
    step = next(step for most, step in _PARTS if lanes <= most)
    if pattern.longest is not None and pattern.longest > step:
        whole = _power_of_two_from(pattern.longest)
        if whole <= min(step * (_LARGER_OF_FEW if lanes <= _FEW_LANES else _LARGER), _LARGEST_PART):
            return whole, "parts that cut no row"
    return step, f"parts for {lanes} lanes"


def _for_cores(device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout) -> tuple[Shape, str]:
    """Return the shape for devices whose work-items are the iterations of a core's loop."""
    step = max(_LEAST_OF_A_CORE, -(-pattern.work // (device.compute_units * _PARTS_OF_A_CORE)))
    packed = not layout.adjacent and n_columns > _DIRECT_ON_CPU and not pattern.is_local
    width = 1
    if arithmetic.vector_operations is not None and (packed or layout.adjacent):
        width = min(_CPU_VECTOR // arithmetic.result.itemsize, n_columns & -n_columns)
    vectors = min(_power_of_two_from(-(-n_columns // width)), 4 if width > 1 else 8)
    why = f"{n_columns} columns in vectors of {width}, by a core{'; they are apart in X' if packed else ''}"
    return Shape(vectors=vectors, width=width, work_group=1, step=step, packed=packed), why
