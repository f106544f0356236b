"""Group segments by length on the device, and cut long segments into tiles.

The host waits once, for the numbers that later launches need. Kernels that sort segments of similar lengths are launched before
that, for the largest possible number of work-groups, and read the number of segments from a plan on the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._primitives.scan import enqueue_scan
from clsparse_py._primitives.segments import OfRuns, Runs, Segments, Shape
from clsparse_py._primitives.thresholds import Thresholds
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = [
    "Inspection",
    "SegmentClasses",
    "SegmentTiles",
    "Tiles",
    "Totals",
    "cut_into_tiles",
    "inspect_segments",
]

#: Names of the totals that are counted besides the segments of each length class, by whether runs are given (a merge) or not.
_TOTALS = {
    True: ("merged_tiles", "cut_tiles", "rounds", "decreasing", "runs_decrease", "max_rounds"),
    False: ("merged_tiles", "cut_tiles", "rounds", "decreasing"),
}
#: Names of the totals (numbers of merge rounds) that are the greatest of the work-groups' counts, where others are their sum.
_MAXIMA = ("rounds", "max_rounds")
#: Names of the pointer arrays whose first and last entries the host reads from the plan, an array of numbers on the device.
_ENDS = ("bounds", "segment_ptr", "run_ptr")


@dataclass(frozen=True)
class SegmentClasses(OfRuns):
    """Parameters of ``templates/primitives/segment_classes.mako``.

    Attributes
    ----------
    step : str
        "count" or "place".
    bins : tuple of int
        The longest segments of the bins of segments that are not long.
    teams : tuple of int
        The numbers of segments of the bins that a work-group sorts at once.
    first_bins : int
        The number of bins that the first kernel sorts; the second kernel sorts the others.
    """

    template = "primitives/segment_classes"

    step: str
    bins: tuple[int, ...]
    teams: tuple[int, ...]
    first_bins: int

    @functools.cached_property
    def n_classes(self) -> int:
        """The number of length classes of segments: the bins, long segments to cut and, with given runs, long ones to merge."""
        return len(self.bins) + 1 + self.runs.given

    @functools.cached_property
    def n_rows(self) -> int:
        """The number of rows of the table of counts: a row for each length class of segments, and a row for each total."""
        return self.n_classes + len(self.totals)

    @property
    def totals(self) -> tuple[str, ...]:
        """Names of the totals in the table of counts (tiles, merge rounds, decreasing pointers), which are fields of `Totals`."""
        return _TOTALS[self.runs.given]

    @functools.cached_property
    def lists_at(self) -> int:
        """Index, in the plan (the device's numbers about segments), of the first of the offsets where the classes' lists begin.

        The host reads the entries before that one.
        """
        return self.n_rows + 2 * len(_ENDS)

    @functools.cached_property
    def groups_at(self) -> int:
        """Index, in the plan (the device's numbers about segments), of the first of the bins' first work-groups."""
        return self.lists_at + self.n_classes + 1

    @property
    @override
    def shape_name(self) -> str:
        """Part of the kernel's name for the step, the segments of each bin to a work-group, and the first kernel's bins."""
        return f"{self.step}_{'_'.join(map(str, (*self.teams, self.first_bins)))}_"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: those of `OfRuns`, the step, the classes, and where counts and lists stand."""
        shape = {"step": self.step, "bins": self.bins, "n_classes": self.n_classes, "n_rows": self.n_rows}
        shape |= {"totals": self.totals, "maxima": tuple(maximum for maximum in _MAXIMA if maximum in self.totals)}
        plan = {"lists_at": self.lists_at, "groups_at": self.groups_at, "teams": self.teams, "first_bins": self.first_bins}
        return {**super().arguments(), **shape, **plan, "columns": max(1, self.work_group // self.n_classes)}


@dataclass(frozen=True)
class SegmentTiles(OfRuns):
    """Parameters of ``templates/primitives/segment_tiles.mako``."""

    template = "primitives/segment_tiles"


@dataclass(frozen=True)
class Totals:
    """The numbers about segments that the host has to know.

    Attributes
    ----------
    counts : tuple of int
        The numbers of segments of the bins; then of long segments whose given runs are merged, and of long segments that are cut.
    merged_tiles, cut_tiles : int
        Tiles of long segments whose given runs are merged, and of long segments that are cut.
    rounds : int
        Most merge rounds of a long segment.
    decreasing, runs_decrease : int
        Decreases of the bounds, or of the pointers to runs if these are given; decreases of the first elements of runs.
    max_rounds : int
        Most merge rounds of the given runs of any segment.
    bounds, segment_ptr, run_ptr : tuple of int
        The first and the last entry of the array.
    """

    counts: tuple[int, ...]
    merged_tiles: int
    cut_tiles: int
    rounds: int
    decreasing: int
    bounds: tuple[int, int]
    segment_ptr: tuple[int, int]
    run_ptr: tuple[int, int]
    runs_decrease: int = 0
    max_rounds: int = 0


@dataclass(frozen=True)
class Inspection:
    """Segments by length, on the device.

    Attributes
    ----------
    lists : pyopencl.array.Array
        The indices of segments, class by class.
    tiles_of : pyopencl.array.Array
        The numbers of tiles of long segments.
    plan : pyopencl.array.Array
        Numbers of segments and tiles, for kernels on the device, in the order that `record` says.
    record : SegmentClasses
    """

    lists: cl_array.Array
    tiles_of: cl_array.Array
    plan: cl_array.Array
    record: SegmentClasses
    _read: Callable[[], np.ndarray[Any, Any]]

    def wait(self) -> Totals:
        """Wait for the device; return counts of segments by length, tiles, merge rounds and decreases, and the pointers' ends."""
        numbers, record = self._read().tolist(), self.record
        merged_tiles, cut_tiles, rounds, decreasing, *of_runs = numbers[record.n_classes : record.n_rows]
        ends = numbers[record.n_rows :]
        pairs: Any = zip(ends[::2], ends[1::2], strict=True)
        return Totals(tuple(numbers[: record.n_classes]), merged_tiles, cut_tiles, rounds, decreasing, *pairs, *of_runs)


def inspect_segments(
    chain: Chain, segments: Segments, n: int, shape: Shape, runs: Runs, teams: tuple[int, ...] = ()
) -> Inspection:
    """Enqueue the grouping of segments by length; return groups' counts and lists, empty lists if pointers are invalid.

    Kernels read nothing outside of arrays, whatever the pointers: valid ones begin with 0, never decrease and end with ``n``.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    segments : Segments
        Segments, with their runs if ``runs`` are given: then the kernels write the bounds, and else read them.
    n : int
        Elements.
    shape, runs : Shape, Runs
        Legal on the device.
    teams : tuple of int
        The numbers of segments of the shape's bins that a work-group sorts at once.
    """
    group, bins = min(128, chain.device.max_work_group), shape.bins[: len(teams)]
    record = SegmentClasses(group, segments.index, runs, "count", bins, teams, len(shape.short_bins))
    plan = chain.scratch(record.groups_at + len(bins), np.int64)
    lists, tiles_of = (chain.scratch(segments.n, segments.bounds.dtype) for _ in range(2))
    first_runs, run_ptr = segments.given if runs.given else (None, None)
    n_runs = 0 if run_ptr is None else run_ptr.size - 1
    arrays = first_runs, run_ptr, segments.bounds, lists, tiles_of, plan
    run(chain, _enqueue_inspection, arrays, segments.n, n, n_runs, record)
    # A blocking read of numbers about segments is faster than a wait for an event, but runs after all commands enqueued before.
    read_plan = (
        functools.partial(chain.read, plan, record.lists_at)
        if n <= Thresholds.of(chain.device).max_read_at_once
        else chain.read_later(plan, record.lists_at)
    )
    return Inspection(lists, tiles_of, plan, record, read_plan)


def _enqueue_inspection(
    chain: Chain,
    first_runs: cl_array.Array | None,
    run_ptr: cl_array.Array | None,
    bounds: cl_array.Array,
    lists: cl_array.Array,
    tiles_of: cl_array.Array,
    plan: cl_array.Array,
    n_segments: int,
    n: int,
    n_runs: int,
    classes: SegmentClasses,
) -> None:
    """Enqueue the two kernels that group segments by length: counts of the length classes, and lists of segments by class."""
    counting, record = chain.build(classes)
    placing, _ = chain.build(replace(record, step="place"))
    groups = max(1, min(-(-n_segments // record.work_group), 2 * chain.device.compute_units))
    counts = chain.scratch(record.n_rows * groups, np.int64)
    runs = () if run_ptr is None else (np.int64(n_runs), first_runs, run_ptr)
    chain.launch(counting, groups, np.uint64(n_segments), *runs, bounds, counts)
    chain.launch(placing, groups, np.uint64(n_segments), np.uint64(n), *runs, bounds, counts, lists, tiles_of, plan)


@dataclass(frozen=True)
class Tiles:
    """The tiles of long segments: first of segments whose given runs are merged, then of segments that are cut.

    Attributes
    ----------
    n, n_merged : int
        The number of tiles, and of tiles of segments that are not cut.
    segment, first : pyopencl.array.Array
        The tiles' segments, and the first tiles of these segments.
    run : tuple of pyopencl.array.Array
        The runs that hold the first elements of tiles, if runs are given.
    """

    n: int
    n_merged: int
    segment: cl_array.Array
    first: cl_array.Array
    run: tuple[cl_array.Array, ...]


def cut_into_tiles(chain: Chain, segments: Segments, inspection: Inspection, totals: Totals) -> Tiles:
    """Enqueue the cut of long segments into tiles, and return the tiles."""
    record, index = inspection.record, segments.bounds.dtype
    n_bins, n = len(record.bins), totals.merged_tiles + totals.cut_tiles
    n_short, n_long = sum(totals.counts[:n_bins]), sum(totals.counts[n_bins:])
    tile_ptr = chain.scratch(n_long + 1, index)
    enqueue_scan(chain, inspection.tiles_of, tile_ptr, n_long, kind="pointers")
    segment, first = (chain.scratch(n, index) for _ in range(2))
    run = (chain.scratch(n, index),) if record.runs.given else ()
    built, tiling = chain.build(SegmentTiles(min(64, chain.device.max_work_group), segments.index, record.runs))
    listed = np.uint64(n_long), tile_ptr, np.uint64(n_short), inspection.lists
    segment_bounds = *segments.given, segments.bounds
    chain.launch(built, -(-n // tiling.work_group), np.uint64(n), *listed, *segment_bounds, segment, first, *run)
    return Tiles(n, totals.merged_tiles, segment, first, run)
