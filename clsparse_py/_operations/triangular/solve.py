"""Solve a triangular system by the method of its structure: `serial`, `sync-free`, `levels` or `tiles`."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Structure
from clsparse_py._memory.memory import allocate, layout
from clsparse_py._operations.triangular.choose import Thresholds, choose_method, work_group_of_tasks
from clsparse_py._operations.triangular.grids import Grid
from clsparse_py._operations.triangular.kernels import GROUPS, Solve, State, SupernodePlaces, SyncFree, work_group_of
from clsparse_py._operations.triangular.level_sets import LevelSets, get_level_sets
from clsparse_py._operations.triangular.supernodes import Triangle, inspect_triangle
from clsparse_py._operations.triangular.tiles import TileSet, choose_kernel, choose_tile, make_tiles
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.permute import enqueue_invert, enqueue_permute
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording, record, run
from clsparse_py._run.transfer import copy_to_device

__all__ = ["RightSide", "Solver", "get_solver"]

#: Number of adjacent right-hand sides (columns of b) that a work-item solves together by the method "serial".
_WIDTH = 8


class RightSide(NamedTuple):
    """Right-hand sides of a triangular system: `columns` of them in an array of any strides.

    Attributes
    ----------
    values : pyopencl.array.Array
    columns : int
    begin, row_step, column_step : int
        Entries from the beginning of the buffer to the first value, between rows, and between columns.
    """

    values: cl_array.Array
    columns: int = 1
    begin: int = 0
    row_step: int = 1
    column_step: int = 1


@dataclass(frozen=True)
class Tasks:
    """The tasks of a launch of the method "sync-free": rows of one level that the teams of a work-group solve at once.

    Attributes
    ----------
    bounds : pyopencl.array.Array
        Pairs of a task's first place and the logarithm to base 2 of the number of teams that share a row; with the end.
    count, in_a_level : int
        Numbers of tasks, and of those of a level in the mean.
    """

    bounds: cl_array.Array
    count: int
    in_a_level: int


class Solver:
    """The launches that solve triangular systems of one structure and dtype, for any values and right-hand sides.

    Attributes
    ----------
    method : str
        "serial", "sync-free", "levels" or "tiles".
    diagonal_at_end : bool
        Whether each row ends (upper: begins) with its diagonal entry, and has none beyond it.
    levels : LevelSets or None
        Of the methods `sync-free` and `levels`.
    tiles : TileSet or None
        Of the method `tiles`.
    """

    def __init__(
        self, queue: cl.CommandQueue, structure: Structure, dtype: np.dtype[Any], upper: bool, unit: bool, method: str
    ) -> None:
        chain = Chain(queue)
        # Arrays that are kept belong to the structure's queue, so that they keep no other queue and its memory.
        self._queue = structure.queue
        triangle = get_triangle(structure, upper)
        self.method = method
        self.diagonal_at_end = triangle.diagonal_at_end
        self._supernodes = triangle.supernodes if method == "sync-free" else None
        levels: LevelSets | None = None if method in ("serial", "tiles") else get_level_sets(structure, upper, self._supernodes)
        self.levels = levels
        self._fields = name_of(structure.indptr.dtype), dtype.name, upper, unit, self.diagonal_at_end
        self._indptr, self._indices = structure.indptr, structure.indices
        self._max_groups = chain.device.compute_units * GROUPS
        # By the logarithm to base 2 of the number of columns that a team solves.
        self._tasks: dict[int, Tasks] = {}
        self._kernels: dict[int, Built] = {}
        # The kind of the last call of `solve`, its recorded commands, and the form of x.
        self._recorded: tuple[Hashable, Recording, tuple[Any, ...]] | None = None
        self.tiles: TileSet | None = None
        self._waiting: Built | None = None
        if method == "tiles":
            if triangle.grid is None:
                raise ValueError("method: 'tiles' needs a stencil on a grid, and A has other entries")
            self._grid = triangle.grid
            self._prepare_tiles(chain, structure, triangle.grid.grid)
        elif levels is not None and method == "sync-free":
            self._sync_free = chain.build(SyncFree(work_group_of_tasks(chain.device), *self._fields, triangle.rows))[0]
            self._n_places = levels.rows * triangle.rows
            self._places = structure.get_plan((_find_places, upper), lambda: _find_places(structure, levels, triangle, upper))
            self._get_tasks(levels, 0)
        else:
            self._build(chain, 1)

    def _prepare_tiles(self, chain: Chain, structure: Structure, grid: Grid) -> None:
        """Make the tiles of a grid, and build the kernel of the one launch whose work-groups wait, or of a launch a level."""
        device, (index, dtype, upper, unit, _) = chain.device, self._fields
        record = choose_kernel(device, grid, index, dtype, upper=upper, unit=unit)
        if record is None:
            self._build(chain, 1)
            extents = choose_tile(device, grid)
        else:
            self._waiting = chain.build(record)[0]
            extents = record.tile.extents
        self.tiles = structure.get_plan((TileSet, upper, extents), lambda: make_tiles(structure.queue, grid, extents))

    @property
    def launches(self) -> int:
        """The number of launches of a solution with one right-hand side."""
        if self.tiles is not None and self._waiting is None:
            return len(self.tiles.starts) - 1
        return len(self.levels.launches) if self.levels is not None and self.method == "levels" else 1

    def _get_tasks(self, levels: LevelSets, column_shift: int) -> Tasks:
        """Return the tasks of the method "sync-free" for teams that solve 2^column_shift columns; the first call makes them."""
        tasks = self._tasks.get(column_shift)
        if tasks is None:
            teams = self._sync_free.parameters.work_group >> column_shift
            tasks = self._tasks[column_shift] = _make_tasks(self._queue, levels, teams)
        return tasks

    def _build(self, chain: Chain, width: int) -> Built:
        """Return the kernel of the method: "levels", or "serial" or "tiles" with ``width`` right-hand sides to a work-item."""
        built = self._kernels.get(width)
        if built is None:
            work_group = work_group_of(chain.device)
            is_tiled = self.method == "tiles"
            record = Solve(work_group if self.levels else 1, *self._fields, 0 if self.levels else width, is_tiled)
            built = self._kernels[width] = chain.build(record)[0]
        return built

    def solve(self, queue: cl.CommandQueue, values: cl_array.Array, b: RightSide, shape: tuple[int, ...]) -> cl_array.Array:
        """Return ``x = T^-1 b`` of a shape, by recorded commands; nothing is noted of the diagonal."""
        kind, recorded = (shape, b[1:]), self._recorded
        if recorded is None or recorded[0] != kind:

            def enqueue(chain: Chain, values: cl_array.Array, right: cl_array.Array, x: cl_array.Array) -> None:
                """Enqueue a solution, to be recorded."""
                self.enqueue(chain, values, b._replace(values=right), x, is_noted=False)

            form = queue.context, values.dtype, *layout(shape, values.dtype.itemsize)
            recorded = self._recorded = kind, record(Chain(queue), enqueue, (values.dtype,) * 3), form
        _, recording, form = recorded
        (x,) = recording.make(queue, "x", (values, b.values), (form,), None)
        return x

    def enqueue(
        self, chain: Chain, values: cl_array.Array, b: RightSide, x: cl_array.Array, *, is_noted: bool = True
    ) -> cl_array.Array:
        """Enqueue ``x = T^-1 b``, T triangular, for a row-major x of n x columns; return the `State`.

        If not ``is_noted``, `State.singular` has no meaning.
        """
        if self.levels is not None and self.method == "sync-free":
            return self._enqueue_tasks(chain, self.levels, values, b, x)
        if self.tiles is not None and self._waiting is not None:
            return self._enqueue_waiting(chain, self._waiting, self.tiles, values, b, x)
        state = chain.scratch(len(State._fields), np.int32)
        if is_noted:
            chain.fill(state, 0, len(State._fields))
        steps = np.int64(b.begin), np.int64(b.row_step), np.int64(b.column_step)
        structure, vectors = (self._indptr, self._indices), (values, b.values, *steps, x, state)
        n, columns = self._indptr.dtype.type(self._indptr.size - 1), np.uint64(b.columns)
        if self.tiles is not None:
            grid = self._grid.grid
            sides = map(np.int32, (grid.n, grid.nx, grid.plane, *self.tiles.extents, *grid.stencil.skew))
            numbers = *sides, self.tiles.bounds
            groups = b.columns // _WIDTH
            for first, last in itertools.pairwise(self.tiles.starts.tolist()):
                for width, count, begin in ((_WIDTH, groups, 0), (1, b.columns % _WIDTH, groups * _WIDTH)):
                    if count:
                        of_columns = np.uint32(first), np.uint32(count), columns, np.uint64(begin)
                        chain.launch(
                            self._build(chain, width), (last - first) * count, *numbers, *of_columns, *structure, *vectors
                        )
        elif self.levels is None:
            groups = b.columns // _WIDTH
            if groups:
                chain.launch(self._build(chain, _WIDTH), groups, n, columns, np.uint64(0), *structure, *vectors)
            chain.launch(self._build(chain, 1), b.columns % _WIDTH, n, columns, np.uint64(groups * _WIDTH), *structure, *vectors)
        else:
            built = self._build(chain, 1)
            for launched, *levels in self.levels.schedule(built.parameters.work_group, b.columns, self._max_groups):
                chain.launch(built, launched, *levels, columns, self.levels.starts, self.levels.order, *structure, *vectors)
        return state

    def _enqueue_tasks(
        self, chain: Chain, levels: LevelSets, values: cl_array.Array, b: RightSide, x: cl_array.Array
    ) -> cl_array.Array:
        """Enqueue a solution by the method "sync-free"; return the `State`."""
        limits, units, work_group = Thresholds.of(chain.device), chain.device.compute_units, self._sync_free.parameters.work_group
        column_shift = min((b.columns - 1).bit_length(), min(work_group, limits.columns_at_once).bit_length() - 1)
        tasks = self._get_tasks(levels, column_shift)
        # Tickets are numbers below 2^31; each work-group takes one more than there are. The unknowns lie in one allocation.
        most_groups, of_column = units * limits.max_groups_per_unit << column_shift, self._n_places * x.dtype.itemsize
        blocks_at_once = min((2**31 - 1 - most_groups) // tasks.count, (chain.device.max_allocation >> column_shift) // of_column)
        most = max(blocks_at_once << column_shift, 1)
        n_words = len(State._fields) + min(b.columns, most) * of_column // 4
        state = chain.scratch(n_words, np.int32)
        more = self._supernodes if self.diagonal_at_end else self._indices
        arrays = tasks.bounds, levels.order, self._indptr, more, self._places, values, b.values, x, state
        for first in range(0, b.columns, most):
            width = min(most, b.columns - first)
            blocks = (width - 1 >> column_shift) + 1
            ahead = limits.levels_ahead * tasks.in_a_level * blocks
            groups = min(max(ahead, units), most_groups, tasks.count * blocks)
            sizes = tasks.count, groups, limits.max_polls, n_words
            run(chain, _enqueue_sync_free, arrays, self._sync_free, sizes, column_shift, first, width, *b[1:])
        return state

    def _enqueue_waiting(
        self, chain: Chain, built: Built, tiles: TileSet, values: cl_array.Array, b: RightSide, x: cl_array.Array
    ) -> cl_array.Array:
        """Enqueue a solution by the method "tiles" in one launch, whose work-groups wait for each other; return the `State`."""
        limits, grid = Thresholds.of(chain.device), self._grid.grid
        per_unit = limits.tiles_per_unit_in_space if grid.extents[2] > 1 else limits.tiles_per_unit
        most_groups, of_column = chain.device.compute_units * per_unit, grid.n * x.dtype.itemsize
        most = max(min((2**31 - 1 - most_groups) // tiles.count, chain.device.max_allocation // of_column), 1)
        n_words = len(State._fields) + min(b.columns, most) * of_column // 4
        state = chain.scratch(n_words, np.int32)
        arrays = tiles.bounds, self._indptr, self._grid.masks, values, b.values, x, state
        for first in range(0, b.columns, most):
            width = min(most, b.columns - first)
            # Columns that share the entries of a tile, as far as others keep all work-groups busy.
            at_once = max(width * tiles.count // ((len(tiles.starts) - 1) * most_groups), 1)
            groups = min(tiles.count * (-(-width // at_once)), most_groups)
            sizes = tiles.count, groups, limits.max_polls, n_words, at_once
            run(chain, _enqueue_tiles, arrays, built, sizes, (grid.n, grid.nx, grid.plane), first, width, *b[1:])
        return state


def get_triangle(structure: Structure, upper: bool) -> Triangle:
    """Return what the rows of a triangular structure are, which keeps it; the first call waits for the device."""
    return structure.get_plan((Triangle, upper), lambda: inspect_triangle(structure.queue, structure, upper))


def get_solver(
    queue: cl.CommandQueue,
    structure: Structure,
    dtype: np.dtype[Any],
    *,
    upper: bool,
    unit: bool,
    method: str = "auto",
    columns: int = 1,
) -> Solver:
    """Return the solver of triangular systems that a structure keeps; the first call builds it.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Of the device that solves.
    structure : Structure
        It has the triangle; entries on the other side of the diagonal are passed over. In any order, and with duplicates.
    dtype : numpy.dtype
        Of the values, b and x.
    upper, unit : bool
        Whether the triangle is upper, and whether its diagonal is 1, whatever is stored.
    method : {"auto", "serial", "sync-free", "levels", "tiles"}
        "auto" chooses by the profile of the device.
    columns : int
        The number of right-hand sides, by which "auto" chooses, too.

    Raises
    ------
    BuildError
        The kernel is refused.
    ValueError
        The method is "tiles", and the structure is no stencil on a grid.
    """
    if method == "auto":
        rows = get_triangle(structure, upper).grid
        method = choose_method(queue, structure, None if rows is None else rows.grid, columns)
    key = Solver, dtype, upper, unit, method
    return structure.get_plan(key, lambda: Solver(queue, structure, dtype, upper, unit, method))


def _enqueue_sync_free(
    chain: Chain,
    bounds: cl_array.Array,
    order: cl_array.Array,
    indptr: cl_array.Array,
    indices_or_supernodes: cl_array.Array | None,
    places: cl_array.Array,
    values: cl_array.Array,
    b: cl_array.Array,
    x: cl_array.Array,
    state: cl_array.Array,
    built: Built,
    sizes: tuple[int, int, int, int],
    column_shift: int,
    first: int,
    width: int,
    columns: int,
    *steps: int,
) -> None:
    """Enqueue a solution by the method "sync-free" for ``width`` right-hand sides from ``first`` on, to be recorded."""
    tasks, groups, max_polls, n_words = sizes
    # Of several launches each notes a zero on the diagonal.
    chain.fill(state, 0, n_words)
    numbers = *map(np.uint32, (tasks, width, column_shift)), np.uint64(columns), np.uint64(first), np.uint32(max_polls)
    structure = (order, indptr) if indices_or_supernodes is None else (order, indptr, indices_or_supernodes)
    vectors = values, b, *map(np.int64, steps), x, state
    chain.launch(built, groups, *numbers, np.int32(groups), bounds, *structure, places, *vectors)


def _enqueue_tiles(
    chain: Chain,
    bounds: cl_array.Array,
    indptr: cl_array.Array,
    masks: cl_array.Array,
    values: cl_array.Array,
    b: cl_array.Array,
    x: cl_array.Array,
    state: cl_array.Array,
    built: Built,
    sizes: tuple[int, int, int, int, int],
    grid: tuple[int, int, int],
    first: int,
    width: int,
    columns: int,
    *steps: int,
) -> None:
    """Enqueue a solution by the method "tiles" for ``width`` right-hand sides from ``first`` on, to be recorded."""
    tiles, groups, max_polls, n_words, at_once = sizes
    # Of several launches each notes a zero on the diagonal.
    chain.fill(state, 0, n_words)
    of_columns = np.uint32(width), np.uint32(at_once)
    numbers = np.uint32(tiles), *of_columns, np.uint64(columns), np.uint64(first), np.uint32(max_polls), np.int32(groups)
    structure = *map(np.int32, grid), bounds, indptr, masks
    chain.launch(built, groups, *numbers, *structure, values, b, *map(np.int64, steps), x, state)


def _make_tasks(queue: cl.CommandQueue, levels: LevelSets, teams: int) -> Tasks:
    """Return the tasks of the method "sync-free" for work-groups of so many ``teams``."""
    starts, n = levels.shift_starts.ravel(), levels.rows
    shifts = np.minimum(np.arange(levels.shift_starts.shape[1]), teams.bit_length() - 1)
    rows_at_once = np.tile(teams >> shifts, levels.count)
    counts = -(-np.diff(starts, append=n) // rows_at_once)
    ends = np.cumsum(counts)
    number = np.arange(ends[-1]) - np.repeat(ends - counts, counts)  # of a task among those of its level and shift
    bounds = np.zeros((number.size + 1, 2), np.int32)
    bounds[:-1, 0] = np.repeat(starts, counts) + number * np.repeat(rows_at_once, counts)
    bounds[:-1, 1] = np.repeat(np.tile(shifts, levels.count), counts)
    bounds[-1, 0] = n
    on_device = copy_to_device(queue, "tasks", bounds.ravel())
    queue.finish()  # solutions on other queues read the tasks
    return Tasks(on_device, number.size, -(-number.size // levels.count))


def _find_places(structure: Structure, levels: LevelSets, triangle: Triangle, upper: bool) -> cl_array.Array:
    """Return, for each entry of a matrix, the place of the unknown that its column names, in the order by level."""
    queue, n = structure.queue, structure.shape[0]
    chain = Chain(queue, structure.indices, levels.order)
    place_of = chain.scratch(n, np.int32)
    enqueue_invert(chain, levels.order, place_of)
    if triangle.supernodes is not None:
        index, place_of_first, place_of = structure.indptr.dtype, place_of, chain.scratch(n, np.int32)
        built, record = chain.build(SupernodePlaces(work_group_of(chain.device), name_of(index), upper, triangle.rows))
        groups = min(-(-n // record.work_group), chain.device.compute_units * GROUPS)
        chain.launch(built, groups, index.type(n), triangle.supernodes, place_of_first, place_of)
    places = allocate(queue, "places of unknowns", structure.indices.size, np.dtype(np.int32))
    enqueue_permute(chain, structure.indices, place_of, places, places.size)
    chain.finish(places)
    queue.finish()  # solutions on other queues read the places
    return places
