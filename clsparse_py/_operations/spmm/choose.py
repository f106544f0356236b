"""Decide the shape of the kernel of a product with several columns, by the product's numbers, the device and its profile."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["Layout", "Pattern", "Shape", "Thresholds", "choose", "shape_of_groups"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds that the shape of SpMM's kernel is chosen by. A part is of rows and entries of A, a team its lanes."""

    operation = "spmm"

    #: Bytes of the widest vector that a work-item loads at once; OpenCL functions take none above 32 bytes (quirk 3).
    vector_bytes: int = number(16, "bytes", on_cores=32, least=1, most=32, power=True)
    #: Most columns of an X, whose columns are not adjacent in memory, that kernels read as it is; a wider X is copied first, so
    #: that columns are adjacent, but on CPU devices not if A counts as a grid.
    max_direct_columns: int = number(4, "columns", on_cores=8, least=1)
    #: Most lanes of a team: work-items that share a part of A, or a row, each with columns of X of its own.
    max_lanes: int = number(32, "lanes", least=1, most=32, power=True)
    #: On GPUs, most vectors of columns of X to a lane; a team leaves further columns to other teams.
    max_vectors: int = number(2, "vectors", least=1)
    #: Most lanes of a part of A for the part to count as one of few lanes.
    few_lanes: int = number(2, "lanes", least=1)
    #: Most lanes of a part of A for the part to count as one of some lanes; with more, it is one of many.
    some_lanes: int = number(8, "lanes", least=1)
    #: Number of rows plus entries in a part of A of few lanes, on GPUs: larger parts push rows of X out of the first-level cache,
    #: smaller ones cut more rows.
    part_of_few: int = number(16, "rows and entries", least=1)
    #: Number of rows plus entries in a part of A of some lanes, on GPUs.
    part_of_some: int = number(32, "rows and entries", least=1)
    #: Number of rows plus entries in a part of A of many lanes, on GPUs.
    part_of_many: int = number(64, "rows and entries", least=1)
    #: Greatest factor by which a part of A of few lanes may grow so that no row is cut.
    larger_of_few: int = number(2, "times", least=1)
    #: Greatest factor by which a part of A of more lanes may grow so that no row is cut.
    larger: int = number(4, "times", least=1)
    #: Most rows plus entries to which a part of A may grow so that no row is cut.
    max_part: int = number(128, "rows and entries", least=1)
    #: Entries of A whose loads a lane has in flight at a time; thresholds below have other numbers for some teams.
    unroll: int = number(4, "entries", least=1)
    #: Entries of A whose loads a lane has in flight at a time in a team of few lanes, which has registers to spare.
    unroll_of_few: int = number(8, "entries", least=1)
    #: Work-group size of kernels that take parts of A, on GPUs.
    part_group: int = number(128, "work-items", least=1)
    #: Least number of rows plus entries in a part of A on CPU devices.
    min_core_part: int = number(512, "rows and entries", least=1)
    #: Most parts of A to a core of CPU devices.
    max_core_parts: int = number(32, "parts", least=1)
    #: On CPU devices, most vectors of columns of X to a work-item.
    max_core_vectors: int = number(4, "vectors", least=1, most=32, power=True)
    #: On CPU devices, most columns of X to a work-item without vectors.
    max_core_columns: int = number(8, "columns", least=1, most=32, power=True)
    #: Number of columns in a block of X, if X exceeds the cache and A's columns are scattered.
    cached_columns: int = number(32, "columns", least=1, most=32, power=True)
    #: Greatest ratio of A's longest row to its mean row for X to be cut into blocks of columns; in less even matrices, rows of X
    #: that many rows of A share stay cached.
    max_longest_by_mean: float = number(2.0, "mean rows")
    #: Greatest share of A's entries that lie beside the entry before, in the next column, for A's columns to count as scattered.
    max_scattered_share: float = number(0.1, "share of entries")
    #: Greatest mean row length for A to count as a grid, for which a core reads X as it is in less time than it copies X.
    max_local_mean: float = number(16.0, "entries")
    #: Least share of A's entries that lie beside the entry before, in the next column, for A to count as a grid.
    min_local_share: float = number(0.25, "share of entries")
    #: Greatest length of a row for A's rows to count as alike, so that each row has a team of lanes of its own.
    max_alike: int = number(512, "entries")
    #: Greatest ratio of A's longest row to its mean row for A's rows to count as alike.
    max_alike_by_mean: float = number(2.0, "mean rows")
    #: Work-group size of kernels for rows that are alike.
    rows_group: int = number(256, "work-items", least=1)
    #: Most vectors of columns of X for which a lane of a team that takes a row has one vector; of more vectors it has two.
    row_lanes: int = number(8, "lanes", least=1, most=32, power=True)
    #: Least mean row length, in entries, for rows to have teams of many lanes; and greatest length of a row for rows to have
    #: teams of few lanes. Else A is cut into parts.
    few_entries: int = number(16, "entries")
    #: Least mean row length of A for a row to have a team of many lanes, if none of them is idle.
    few_entries_of_full: int = number(6, "entries")
    #: Entries of A whose loads a lane has in flight at a time in a team of twice `row_lanes` lanes that takes a row.
    unroll_of_row: int = number(2, "entries", least=1)
    #: Number of products after which a plan looks for groups of rows with equal columns: loading the kernels takes the host
    #: milliseconds, once a process.
    together_after: int = number(16, "products", least=1, most=1 << 31)
    #: Most rows of a group of rows with equal columns, which a team takes together.
    max_together: int = number(4, "rows", least=1)
    #: Cost of each row of a group of rows with equal columns, relative to the cost of reading the group's columns.
    cost_together: float = number(0.25, "times that of its columns")
    #: Most lanes of a team that takes a group of rows, for the team to count as one of few lanes.
    few_lanes_together: int = number(4, "lanes", least=1)
    #: Entries of A whose loads a lane has in flight at a time in a team of few lanes that takes a group of rows.
    unroll_together_of_few: int = number(8, "entries", least=1)
    #: Entries of A whose loads a lane has in flight at a time in a team of more lanes that takes a group of rows.
    unroll_together: int = number(4, "entries", least=1)
    #: Most later pieces of a cut row whose sums one work-item adds up for a column; more are added up by a work-group.
    many_pieces: int = number(16, "pieces", least=1)
    #: Most kinds of products whose launches a plan keeps, the latest ones: a kind has memory of its own for pieces of rows.
    max_kinds: int = number(64, "kinds", least=1)


class Layout(NamedTuple):
    """The layout of X and Y in memory, as far as the choice of kernels depends on it.

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
    """Features of A's structure that the choice of SpMM's kernel depends on.

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

    def are_alike(self, limits: Thresholds, longest: int) -> bool:
        """Return whether no row of A exceeds ``longest`` entries or ``max_alike_by_mean`` times the mean; False if unknown."""
        if self.longest is None:
            return False
        return self.longest <= min(longest, limits.max_alike_by_mean * self.nnz / max(self.n_rows, 1))

    @property
    def work(self) -> int:
        """The number of A's rows plus the number of its entries, the work that is shared among parts of A."""
        return self.n_rows + self.nnz

    def is_scattered(self, limits: Thresholds) -> bool:
        """Return whether A's rows are of like length and few entries lie one column after the one before; False if unknown."""
        if self.longest is None:
            return False
        are_alike = self.longest * self.n_rows <= limits.max_longest_by_mean * self.nnz
        return are_alike and self.adjacent <= limits.max_scattered_share * self.nnz

    def is_local(self, limits: Thresholds) -> bool:
        """Return whether A's rows are short and many entries lie one column after the entry before, as in grids."""
        return self.nnz <= limits.max_local_mean * self.n_rows and self.adjacent >= limits.min_local_share * self.nnz


@dataclass(frozen=True)
class Shape:
    """The shape of SpMM's kernel: fields of `kernels.Parts`, the size of A's parts, and whether X is copied before.

    Attributes
    ----------
    lanes, vectors, width, aligned, unroll, outer, work_group
        The fields of `kernels.Parts`.
    step : int
        Rows and entries of a part; 0 if each row is a part.
    staged : bool
        Whether a work-group stages its entries in local memory.
    packed : bool
        Whether X is copied first, so that the columns of a row are adjacent.
    rows : int
        The field of `kernels.Parts`; `step` is 0 unless `rows` is 0.
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
    """Return the least power of two that is not below ``n``."""
    return 1 << (n - 1).bit_length()


def choose(device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout) -> tuple[Shape, str]:
    """Return the shape of SpMM's kernel (lanes, vectors of columns, parts of A, whether X is copied first), and the reason.

    Parameters
    ----------
    device : Device
    arithmetic : Arithmetic
        The arithmetic of the product.
    n_columns : int
        Columns of X, at least 1.
    pattern : Pattern
        Features of A.
    layout : Layout
        The layout of X and Y.

    Returns
    -------
    Shape
    str
        The reason.
    """
    if device.is_plain:
        return Shape(work_group=1), "plain kernels"
    decide = _choose_for_cores if device.lanes_are_loops else _choose_for_lanes
    return decide(Thresholds.of(device), device, arithmetic, n_columns, pattern, layout)


def _choose_for_lanes(
    limits: Thresholds, device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout
) -> tuple[Shape, str]:
    """Return the shape of SpMM's kernel, and the reason, for GPUs, whose neighbouring work-items share memory accesses."""
    item = arithmetic.result.itemsize
    packed = not layout.adjacent and n_columns > limits.max_direct_columns
    width = 1
    if arithmetic.vector_operations is not None and (packed or layout.adjacent):
        # Rows of a packed X, a copy with adjacent columns, begin at multiples of n_columns values.
        width = min(limits.vector_bytes // item, n_columns & -n_columns if packed else layout.divides)
    n_vectors = -(-n_columns // width)
    lanes = min(limits.max_lanes, _power_of_two_from(n_vectors))
    vectors = min(limits.max_vectors, -(-n_vectors // lanes))
    why = f"{n_columns} columns in vectors of {width}"
    outer = False
    cached = limits.cached_columns
    if n_columns > cached and pattern.n_cols * n_columns * item > device.cache_bytes > 0 and pattern.is_scattered(limits):
        lanes, vectors, outer = min(limits.max_lanes, max(cached // width, 1)), 1, True
        why += ", in blocks as X exceeds the cache and A's columns are scattered"
    by_rows = (width * item == limits.vector_bytes or n_vectors == 1) and _suits_teams(limits, pattern, n_vectors)
    if by_rows and (not outer or lanes <= limits.row_lanes):
        unroll = limits.unroll
        if not outer:
            vectors = 1 if n_vectors <= limits.row_lanes else 2
            lanes = min(limits.max_lanes, _power_of_two_from(-(-n_vectors // vectors)))
            unroll = limits.unroll_of_row if lanes == 2 * limits.row_lanes else unroll
        why += f"{'; they are apart in X' if packed else ''}; rows are alike"
        return Shape(lanes, vectors, width, True, unroll, outer, limits.rows_group, packed=packed, rows=1), why
    step, why_step = _choose_step(limits, pattern, lanes)
    if packed:
        why += "; they are apart in X"
    unroll = limits.unroll_of_few if lanes <= limits.few_lanes and layout.adjacent else limits.unroll
    shape = Shape(lanes, vectors, width, True, unroll, outer, limits.part_group, step, True, packed)
    return shape, f"{why}; {why_step}"


def shape_of_groups(limits: Thresholds, shape: Shape, rows: int) -> Shape:
    """Return a kernel's shape, changed so that a team of lanes takes a group of at most ``rows`` rows with equal columns."""
    unroll = limits.unroll_together_of_few if shape.lanes <= limits.few_lanes_together else limits.unroll_together
    return replace(shape, rows=rows, unroll=unroll)


def _suits_teams(limits: Thresholds, pattern: Pattern, n_vectors: int) -> bool:
    """Return whether, on GPUs, each row should have a team of lanes: rows are alike, not short for many lanes or long for few."""
    # If the number of vectors of columns of X is a power of two, no lane (work-item) of a team is idle.
    fills = n_vectors.bit_count() == 1
    if (
        n_vectors > limits.row_lanes
        and pattern.nnz < (limits.few_entries_of_full if fills else limits.few_entries) * pattern.n_rows
    ):
        return False
    return pattern.are_alike(limits, limits.max_alike if n_vectors > limits.few_lanes else limits.few_entries)


def _choose_step(limits: Thresholds, pattern: Pattern, lanes: int) -> tuple[int, str]:
    """Return the number of rows plus entries in a part of A for SpMM on GPUs, and the reason."""
    medium_step = limits.part_of_some if lanes <= limits.some_lanes else limits.part_of_many
    step, larger = (limits.part_of_few, limits.larger_of_few) if lanes <= limits.few_lanes else (medium_step, limits.larger)
    if pattern.longest is not None and pattern.longest > step:
        uncut_step = _power_of_two_from(pattern.longest)
        if uncut_step <= min(step * larger, limits.max_part):
            return uncut_step, "parts that cut no row"
    return step, f"parts for {lanes} lanes"


def _choose_for_cores(
    limits: Thresholds, device: Device, arithmetic: Arithmetic, n_columns: int, pattern: Pattern, layout: Layout
) -> tuple[Shape, str]:
    """Return the shape of SpMM's kernel, and the reason, for CPU devices, whose work-items are iterations of a core's loop."""
    step = max(limits.min_core_part, -(-pattern.work // (device.compute_units * limits.max_core_parts)))
    packed = not layout.adjacent and n_columns > limits.max_direct_columns and not pattern.is_local(limits)
    width = 1
    if arithmetic.vector_operations is not None and (packed or layout.adjacent):
        width = min(limits.vector_bytes // arithmetic.result.itemsize, n_columns & -n_columns)
    vectors = min(_power_of_two_from(-(-n_columns // width)), limits.max_core_vectors if width > 1 else limits.max_core_columns)
    why = f"{n_columns} columns in vectors of {width}, by a core{'; they are apart in X' if packed else ''}"
    return Shape(vectors=vectors, width=width, work_group=1, step=step, packed=packed), why
