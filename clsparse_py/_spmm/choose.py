"""Decide: the kernel's shape for a product with several columns, by the product's numbers, the device and its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import NamedTuple

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device
from clsparse_py.records import dataclass
from clsparse_py.tuning import profiles

__all__ = ["Layout", "Pattern", "Shape", "Thresholds", "choose", "made", "thresholds_of", "together"]

#: Bytes of the widest vector that a work-item of a GPU loads at once, and of the widest that a function may take (quirk 3).
_GPU_VECTOR, _CPU_VECTOR = 16, 32


#: Rows are alike if the longest has at most so many entries, and so many times the mean. The work-groups that take them, lanes of
#: a team before each has a second vector, and how many entries are few: a row has no more if few lanes take it, more if many do
#: (fewer will do if the team has no lane to spare).
_LONGEST, _LONGEST_BY_MEAN, _ROWS_GROUP, _ROWS_LANES, _ROWS_FEW, _ROWS_SHORT = 512, 2, 256, 8, 16, 6
#: Entries whose loads a team of twice so many lanes has in flight, where it takes a row; of rows that are taken together those of
#: few lanes and of more; and how many lanes are few.
_ROWS_UNROLL, _TOGETHER_UNROLL_OF_FEW, _TOGETHER_UNROLL, _TOGETHER_FEW = 2, 8, 4, 4


# Told apart by identity: they are part of what profiles keep.
@dataclass(frozen=True, eq=False)
class Thresholds:
    """The numbers of a profile that shapes are chosen by. A part is of rows and entries of A.

    Raises
    ------
    ValueError
        A number is none that kernels are made of; the message names it.
    """

    #: Columns that are apart and so few that to copy X takes longer than to read it as it lies.
    max_direct_columns: float
    #: Lanes that share a part, a power of two, and vectors of columns that each takes before a team takes no more.
    max_lanes: float
    max_vectors: float
    #: Lanes that are few, and those that are some.
    few_lanes: float
    some_lanes: float
    #: Rows and entries of a part on GPUs if few, some or more lanes share it: in larger ones rows of X leave the first-level
    #: cache before the next row of A asks for them, and smaller ones cut too many rows.
    part_of_few: float
    part_of_some: float
    part_of_many: float
    #: Times that a part of few lanes, or of more, may be larger so that no row is cut, and the largest that is made for that.
    larger_of_few: float
    larger: float
    max_part: float
    #: Entries whose loads a team has in flight; of few lanes there is room for more.
    unroll: float
    unroll_of_few: float
    #: Rows and entries of a part on a CPU device, at least, and parts to a core, at most.
    min_core_part: float
    max_core_parts: float
    #: Vectors of columns that a work-item of a CPU device takes, and columns if it has no vectors: powers of two, at most.
    max_core_vectors: float
    max_core_columns: float
    #: Columns of a block, a power of two, if X is larger than the cache and A's columns are scattered, each of which then comes
    #: from the cache.
    cached_columns: float
    #: Of such a matrix: the longest row in mean rows, and the share of entries beside the one before. If rows are uneven columns
    #: often are too, and those that many rows have stay in the cache anyway.
    max_longest_by_mean: float
    max_scattered_share: float
    #: Of a grid: the mean row, at most, and the share of such entries, at least. There a core reads X as it lies in less time
    #: than it copies X.
    max_local_mean: float
    min_local_share: float
    #: Rows that have the same columns are looked for behind so many products: to load the kernels, once a process, takes the host
    #: milliseconds.
    together_after: float

    def __post_init__(self) -> None:
        """Check that kernels of these shapes exist: a profile may come from anywhere."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in _SHARES:
                if value < 0:
                    raise ValueError(f"{each.name}: must be a number from 0, is {value}")
                continue
            if value != int(value) or not 1 <= value < 1 << 31:
                raise ValueError(f"{each.name}: must be a whole number from 1, is {value}")
            object.__setattr__(self, each.name, int(value))
        for name in _POWERS:
            if int(getattr(self, name)).bit_count() != 1 or getattr(self, name) > _MAX_LANES:
                raise ValueError(f"{name}: must be a power of two up to {_MAX_LANES}, is {getattr(self, name)}")


_SHARES = ("max_longest_by_mean", "max_scattered_share", "max_local_mean", "min_local_share")
#: Numbers that lanes, or the columns of a work-item, are made of: a sub-group's at most.
_POWERS, _MAX_LANES = ("max_lanes", "max_core_vectors", "max_core_columns", "cached_columns"), 32


def made(values: Mapping[str, float]) -> Thresholds:
    """Return thresholds by their names.

    Raises
    ------
    ValueError
        There is no such threshold, or one is missing, or out of its bounds.
    """
    names = {each.name for each in fields(Thresholds)}
    if values.keys() != names:
        raise ValueError(f"{min(values.keys() ^ names)} is {'missing' if values.keys() < names else 'no threshold'}")
    return Thresholds(**values)


def thresholds_of(device: Device) -> Thresholds:
    """Return the thresholds of the profiles for a device."""
    return profiles.thresholds(device, "spmm", "any", made)


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

    def are_alike(self, longest: int) -> bool:
        """Return whether no row is longer than that, or much longer than others: with a team to each, none waits for long."""
        return self.longest is not None and self.longest <= min(longest, _LONGEST_BY_MEAN * self.nnz / max(self.n_rows, 1))

    @property
    def work(self) -> int:
        """Rows and entries."""
        return self.n_rows + self.nnz

    def is_scattered(self, limits: Thresholds) -> bool:
        """Whether rows are alike and neighbouring entries are not neighbours in X."""
        if self.longest is None:
            return False
        are_alike = self.longest * self.n_rows <= limits.max_longest_by_mean * self.nnz
        return are_alike and self.adjacent <= limits.max_scattered_share * self.nnz

    def is_local(self, limits: Thresholds) -> bool:
        """Whether rows are short and neighbouring entries are neighbours in X, as of grids."""
        return self.nnz <= limits.max_local_mean * self.n_rows and self.adjacent >= limits.min_local_share * self.nnz


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
    rows : int
        As of the record; `step` is 0 if this is not.
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
    rows: int = 0

    def __str__(self) -> str:
        columns = f"{self.vectors * self.width} column{'s' * (self.vectors * self.width > 1)} a work-item"
        team = f", {self.lanes} lanes" if self.lanes > 1 else ""
        parts = f"parts of {self.step} rows and entries" if self.step else "a part for each row"
        if self.rows:
            parts = f"{self.rows} rows together" if self.rows > 1 else "a team for each row"
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
    if device.is_plain:
        return Shape(work_group=1), "plain kernels"
    decide = _for_cores if device.lanes_are_loops else _for_lanes
    return decide(thresholds_of(device), device, arithmetic, n_columns, pattern, layout)


def _for_lanes(
    limits: Thresholds, device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout
) -> tuple[Shape, str]:
    """Return the shape for devices whose neighbouring work-items share accesses."""
    item = arithmetic.result.itemsize
    packed = not layout.adjacent and n_columns > limits.max_direct_columns
    width = 1
    if arithmetic.vector_operations is not None and (packed or layout.adjacent):
        # Rows of an X that is packed begin at multiples of n_columns.
        width = min(_GPU_VECTOR // item, n_columns & -n_columns if packed else layout.divides)
    needed = -(-n_columns // width)
    lanes = min(int(limits.max_lanes), _power_of_two_from(needed))
    vectors = min(int(limits.max_vectors), -(-needed // lanes))
    why = f"{n_columns} columns in vectors of {width}"
    outer = False
    cached = int(limits.cached_columns)
    if n_columns > cached and pattern.n_cols * n_columns * item > device.cache_bytes > 0 and pattern.is_scattered(limits):
        lanes, vectors, outer = min(int(limits.max_lanes), max(cached // width, 1)), 1, True
        why += ", in blocks as X exceeds the cache and A's columns are scattered"
    by_rows = (width * item == _GPU_VECTOR or needed == 1) and _by_rows(limits, pattern, needed)
    if by_rows and (not outer or lanes <= _ROWS_LANES):
        unroll = int(limits.unroll)
        if not outer:
            vectors = 1 if needed <= _ROWS_LANES else 2
            lanes = min(int(limits.max_lanes), _power_of_two_from(-(-needed // vectors)))
            unroll = _ROWS_UNROLL if lanes == 2 * _ROWS_LANES else unroll
        why += f"{'; they are apart in X' if packed else ''}; rows are alike"
        return Shape(lanes, vectors, width, True, unroll, outer, _ROWS_GROUP, packed=packed, rows=1), why
    step, of_rows = _step(limits, pattern, lanes)
    if packed:
        why += "; they are apart in X"
    unroll = int(limits.unroll_of_few if lanes <= limits.few_lanes and layout.adjacent else limits.unroll)
    shape = Shape(lanes, vectors, width, True, unroll, outer, 128, step, True, packed)
    return shape, f"{why}; {of_rows}"


def together(shape: Shape, rows: int) -> Shape:
    """Return the shape that takes so many rows together, at most, in place of one."""
    unroll = _TOGETHER_UNROLL_OF_FEW if shape.lanes <= _TOGETHER_FEW else _TOGETHER_UNROLL
    return replace(shape, rows=rows, unroll=unroll)


def _by_rows(limits: Thresholds, pattern: Pattern, needed: int) -> bool:
    """Return whether a GPU's teams take rows, for rows of Y of so many vectors: not few lanes long ones, nor many short ones."""
    # A team of a power of two lanes, with two vectors each, has no lane to spare.
    fills = needed.bit_count() == 1
    if needed > _ROWS_LANES and pattern.nnz < (_ROWS_SHORT if fills else _ROWS_FEW) * pattern.n_rows:
        return False
    return pattern.are_alike(_LONGEST if needed > limits.few_lanes else _ROWS_FEW)


def _step(limits: Thresholds, pattern: Pattern, lanes: int) -> tuple[int, str]:
    """Return the rows and entries of a part on a GPU, and the reason."""
    some = limits.part_of_some if lanes <= limits.some_lanes else limits.part_of_many
    step, larger = (limits.part_of_few, limits.larger_of_few) if lanes <= limits.few_lanes else (some, limits.larger)
    if pattern.longest is not None and pattern.longest > step:
        whole = _power_of_two_from(pattern.longest)
        if whole <= min(step * larger, limits.max_part):
            return whole, "parts that cut no row"
    return int(step), f"parts for {lanes} lanes"


def _for_cores(
    limits: Thresholds, device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout
) -> tuple[Shape, str]:
    """Return the shape for devices whose work-items are the iterations of a core's loop."""
    step = max(int(limits.min_core_part), -(-pattern.work // (device.compute_units * int(limits.max_core_parts))))
    packed = not layout.adjacent and n_columns > limits.max_direct_columns and not pattern.is_local(limits)
    width = 1
    if arithmetic.vector_operations is not None and (packed or layout.adjacent):
        width = min(_CPU_VECTOR // arithmetic.result.itemsize, n_columns & -n_columns)
    vectors = min(
        _power_of_two_from(-(-n_columns // width)), int(limits.max_core_vectors if width > 1 else limits.max_core_columns)
    )
    why = f"{n_columns} columns in vectors of {width}, by a core{'; they are apart in X' if packed else ''}"
    return Shape(vectors=vectors, width=width, work_group=1, step=step, packed=packed), why
