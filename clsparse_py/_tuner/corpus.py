"""Training matrices: generated families, and files of the user's.

A generated matrix is a function of its name alone, which seeds the random numbers. A family is a kind of structure: all matrices
of a family are on one side of the split, so that trees are tested on kinds that training never saw.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.matrix_files import SUFFIXES, read_matrix
from clsparse_py._device.device import Device
from clsparse_py._ground.index_types import index_for
from clsparse_py._ground.records import dataclass
from clsparse_py._tuner.limits import TUNER

__all__ = ["TEST", "TRAIN", "Case", "cases", "from_folder", "generate", "with_values"]

#: Name of the part of the matrices on which decision trees are trained.
TRAIN = "train"
#: Name of the part of the matrices, kept aside, on which decision trees are only scored.
TEST = "test"

#: Number of entries of the chunk of a training matrix that a thread generates at a time.
_CHUNK = 1 << 21
#: Bytes of device memory assumed for each entry of a generated matrix: for the matrix, its vectors and scratch memory.
_BYTES_AN_ENTRY = 64
#: Most entries of a generated matrix on a CPU: larger products take too long to measure many of them.
_LARGEST_ON_CPU = 10**7
#: Most entries of a generated matrix on a GPU.
_LARGEST = 10**8

_Array = np.ndarray[Any, Any]
#: A law of row lengths: a function of a random generator, the number of rows and their mean length, which returns the lengths.
_Law = Callable[[np.random.Generator, int, float], _Array]


@dataclass(frozen=True)
class Case:
    """A matrix to measure with.

    Attributes
    ----------
    name : str
        The unique name of the matrix.
    family : str
        The kind of structure of the matrix, or the common beginning of the names of files.
    split : str
        `TRAIN` or `TEST`.
    nnz : int
        Approximate number of entries; 0 if only reading the file would tell.
    make : callable
        Returns the matrix, with float32 ones as values.
    """

    name: str
    family: str
    split: str
    nnz: int
    make: Callable[[], scipy.sparse.csr_array]


@dataclass(frozen=True)
class _Rows:
    """The recipe of matrices whose row lengths follow a law.

    Attributes
    ----------
    law : callable
        The law of row lengths.
    mean : float
        Mean entries of a row.
    window : float
        Width of the window around the diagonal that holds the columns of a row: 1 is the whole width, 0 means neighbours.
    aspect : float
        Number of columns by number of rows.
    skew : float
        Above 1, columns to the left are taken more often.
    symmetric : bool
        Whether the pattern is the sum of a matrix and its transposed.
    """

    law: _Law
    mean: float
    window: float = 1.0
    aspect: float = 1.0
    skew: float = 1.0
    symmetric: bool = False

    def __str__(self) -> str:
        shape = f"a{self.aspect:g}" if self.aspect != 1 else "sym" if self.symmetric else "square"
        return f"m{self.mean:g}-w{self.window:g}-{shape}" + (f"-s{self.skew:g}" if self.skew != 1 else "")

    def fits(self, nnz: int) -> bool:
        """Return whether the recipe makes a matrix of about ``nnz`` entries: not too few or many rows, small if symmetric."""
        if self.symmetric and nnz > TUNER.max_symmetric:
            return False
        return nnz >= 8 * self.mean and nnz / self.mean <= min(max(3 * nnz, TUNER.max_empty_rows), TUNER.max_rows)

    def make(self, rng: np.random.Generator, nnz: int) -> scipy.sparse.csr_array:
        """Return a random matrix of about ``nnz`` entries whose row lengths follow the recipe's law."""
        if self.symmetric:
            half = replace(self, mean=self.mean / 2, symmetric=False).make(rng, nnz // 2)
            # A matrix of few long rows is wider than high: `half` is made square, to be added to its transposed.
            half.resize(max(half.shape), max(half.shape))
            pattern = scipy.sparse.csr_array(half + half.T.tocsr())
            pattern.sort_indices()
            pattern.data = np.ones(pattern.nnz, np.float32)
            return pattern
        n_rows = max(2, round(nnz / self.mean))
        lengths = self.law(rng, n_rows, self.mean)
        n_columns = max(2, round(n_rows * self.aspect), int(self.mean) * 2)
        lengths = np.clip(np.rint(lengths).astype(np.int64), 0, n_columns)
        indptr = _row_pointer(lengths)
        seed = int(rng.integers(1 << 62))
        width = max(int(n_columns * self.window), 1)

        def fill(chunk: int, begin: int, end: int, out: _Array) -> None:
            """Write the column indices of a chunk of the random matrix's rows, ``begin`` to before ``end``, into ``out``."""
            length = lengths[begin:end]
            # The window, a range of columns around the diagonal, is widened for a row with more entries than the window holds.
            wide = np.maximum(length, width)
            first_column = np.clip(np.arange(begin, end) * n_columns // n_rows - wide // 2, 0, n_columns - wide)
            row = np.repeat(np.arange(end - begin, dtype=np.int32), length)
            position = np.arange(row.size) - (indptr[begin:end] - indptr[begin])[row]
            along = np.random.Generator(np.random.SFC64([seed, chunk])).random(row.size, dtype=np.float32)
            along = (position + along) / length[row]
            if self.skew != 1:
                along **= self.skew
            # A row's columns ascend: each adds the entry's place in the row to a random number that never falls along the row.
            out[:] = first_column[row] + np.floor((wide - length)[row] * along).astype(np.int64) + position

        return _fill_matrix(indptr, n_columns, fill)


@dataclass(frozen=True)
class _Grid:
    """The recipe of matrices of a grid: unknowns of a node are coupled with the unknowns of its neighbours.

    Attributes
    ----------
    name : str
    offsets : tuple of tuple of int
        Offsets of a node's neighbours, in lexicographic order.
    unknowns : int
        Unknowns of a node, which is the size of the matrix's dense blocks.
    kept : float
        Share of the couplings that the matrix has; below 1 the grid is a network.
    """

    name: str
    offsets: tuple[tuple[int, ...], ...]
    unknowns: int = 1
    kept: float = 1.0

    def __str__(self) -> str:
        return f"{self.name}-b{self.unknowns}" + (f"-k{self.kept:g}" if self.kept < 1 else "")

    def fits(self, nnz: int) -> bool:
        """Return whether ``nnz`` entries are enough for a grid of the recipe: for four nodes with all their neighbours."""
        return nnz >= len(self.offsets) * self.unknowns**2 * 4

    def make(self, _rng: np.random.Generator, nnz: int) -> scipy.sparse.csr_array:
        """Return the matrix of a grid with about ``nnz`` entries."""
        dimensions, block = len(self.offsets[0]), self.unknowns
        side = max(2, round((nnz / len(self.offsets) / self.kept / block**2) ** (1 / dimensions)))
        n_nodes = side**dimensions
        strides = side ** np.arange(dimensions - 1, -1, -1)
        steps = np.asarray(self.offsets)
        shifts = steps @ strides

        def inside(begin: int, end: int) -> _Array:
            """Return a mask with a row for each of a range of grid nodes: whether the node has the neighbour at each offset."""
            coordinates = np.arange(begin, end)[:, None] // strides % side
            along = [
                (coordinates[:, [axis]] + steps[:, axis] >= 0) & (coordinates[:, [axis]] + steps[:, axis] < side)
                for axis in range(dimensions)
            ]
            is_inside = np.asarray(functools.reduce(np.logical_and, along))
            return is_inside if self.kept == 1 else is_inside & _draw_couplings(np.arange(begin, end)[:, None], shifts, self.kept)

        def count(begin: int, end: int) -> _Array:
            """Return an array of the numbers of neighbours of the grid's nodes from ``begin`` to before ``end``."""
            return np.asarray(inside(begin, end).sum(axis=1))

        step = max(1, _CHUNK // len(self.offsets))
        starts = range(0, n_nodes, step)
        with ThreadPoolExecutor(_count_cores()) as pool:
            counts = pool.map(count, starts, [min(start + step, n_nodes) for start in starts])
            neighbours = np.concatenate(list(counts)).astype(np.int64)
        indptr = _row_pointer(np.repeat(neighbours * block, block))

        def fill(_chunk: int, begin: int, end: int, out: _Array) -> None:
            """Write the column indices of the grid's matrix in the rows ``begin`` to before ``end`` into ``out``."""
            # A chunk may begin and end inside a node: the rows of whole nodes are computed, and the chunk's rows copied.
            first, last = begin // block, -(-end // block)
            is_inside = inside(first, last)
            nodes = (np.arange(first, last)[:, None] + shifts)[is_inside]
            if block > 1:
                nodes = _expand_blocks(nodes, neighbours[first:last], block)
            skipped = int(indptr[begin] - indptr[first * block])
            out[:] = nodes[skipped : skipped + out.size]

        return _fill_matrix(indptr, n_nodes * block, fill)


def _draw_couplings(nodes: _Array, shifts: _Array, share: float) -> _Array:
    """Return a mask of the couplings (node, node + shift) that a random grid keeps: a share of all, alike in both directions."""
    pair = np.minimum(nodes, nodes + shifts).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.abs(shifts).astype(np.uint64)
    # A coupling's pair of nodes is hashed by the finalizer of splitmix64, a generator of random numbers.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        pair = (pair ^ pair >> np.uint64(shift)) * np.uint64(factor)
    return np.asarray((pair ^ pair >> np.uint64(31)) < np.uint64(int(share * 2**64)))


def _expand_blocks(nodes: _Array, neighbours: _Array, block: int) -> _Array:
    """Return the column indices of a grid's matrix: ``block`` rows a node, ``block`` columns for each neighbour of the node."""
    columns = (nodes[:, None] * block + np.arange(block)).ravel()
    lengths = np.repeat(neighbours * block, block)
    # The matrix rows of a grid node all have the same columns, a stretch that is repeated for each of these rows.
    begins = np.repeat(_row_pointer(neighbours * block)[:-1], block)
    position = np.arange(int(lengths.sum())) - np.repeat(_row_pointer(lengths)[:-1], lengths)
    return np.asarray(columns[np.repeat(begins, lengths) + position])


def _row_pointer(lengths: _Array) -> _Array:
    """Return the row pointers (``indptr``) of a matrix whose rows have the given lengths."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _count_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fill_matrix(indptr: _Array, n_columns: int, fill: Callable[[int, int, int, _Array], None]) -> scipy.sparse.csr_array:
    """Return the CSR matrix of a row pointer, whose column indices the function ``fill`` writes by chunks of rows, in threads."""
    n_rows, nnz = indptr.size - 1, int(indptr[-1])
    index = index_for(max(nnz, n_columns, n_rows))
    indices = np.empty(nnz, index)
    borders = np.unique(np.append(np.searchsorted(indptr, np.arange(0, nnz, _CHUNK)), n_rows))

    def fill_chunk(chunk: int, begin: int, end: int) -> None:
        """Write the column indices of a chunk of rows into the matrix."""
        fill(chunk, begin, end, indices[indptr[begin] : indptr[end]])

    with ThreadPoolExecutor(_count_cores()) as pool:
        list(pool.map(fill_chunk, range(borders.size), borders[:-1].tolist(), borders[1:].tolist()))
    matrix = scipy.sparse.csr_array((np.ones(nnz, np.float32), indices, indptr.astype(index)), shape=(n_rows, n_columns))
    matrix.has_canonical_format = True
    return matrix


# ---- laws of row lengths


def _alike(_rng: np.random.Generator, n: int, mean: float) -> _Array:
    """Return n equal row lengths for a generated matrix."""
    return np.full(n, mean)


def _poisson(rng: np.random.Generator, n: int, mean: float) -> _Array:
    """Return n row lengths for a generated matrix, of a Poisson distribution."""
    return rng.poisson(mean, n)


def _lognormal(rng: np.random.Generator, n: int, mean: float, *, variation: float) -> _Array:
    """Return n row lengths for a generated matrix, lognormally distributed with ``variation`` as the coefficient of variation."""
    spread = np.log1p(variation**2)
    return rng.lognormal(np.log(mean) - spread / 2, np.sqrt(spread), n)


def _pareto(rng: np.random.Generator, n: int, mean: float, *, exponent: float) -> _Array:
    """Return n row lengths for a generated matrix, of a Pareto distribution: the density at x falls as x to ``-exponent``."""
    lengths = (1 - rng.random(n)) ** (-1 / (exponent - 1))
    return np.asarray(lengths * (mean / lengths.mean()))


def _runs(_rng: np.random.Generator, n: int, mean: float, *, ratio: float, run: int) -> _Array:
    """Return n row lengths for a generated matrix: ``run`` short rows, then ``run`` rows ``ratio`` times as long, and so on."""
    short = mean * 2 / (1 + ratio)
    return np.where(np.arange(n) // run % 2, short * ratio, max(short, 1))


def _mix(rng: np.random.Generator, n: int, mean: float, *, ratio: float, share: float) -> _Array:
    """Return n row lengths for a generated matrix: short ones, and at a random share of the rows ``ratio`` times as long ones."""
    short = mean / (1 - share + share * ratio)
    return np.where(rng.random(n) < share, short * ratio, short) + rng.random(n) - 0.5


def _sparse(rng: np.random.Generator, n: int, mean: float, *, empty: float) -> _Array:
    """Return n row lengths for a generated matrix, of a Poisson distribution, but 0 for a random share of the rows."""
    return np.where(rng.random(n) < empty, 0, rng.poisson(mean / (1 - empty), n))


def _hubs(rng: np.random.Generator, n: int, mean: float, *, hubs: int, share: float) -> _Array:
    """Return n row lengths for a generated matrix: a few rows (hubs) hold a share of all entries, the other rows are equal."""
    lengths, hubs = np.full(n, max(1.0, mean * (1 - share))), min(hubs, max(1, n // 8))
    lengths[rng.choice(n, hubs, replace=False)] = mean * n * share / hubs
    return lengths


def _grade(_rng: np.random.Generator, n: int, mean: float) -> _Array:
    """Return n row lengths for a generated matrix, which rise from 0 to twice the mean."""
    return np.linspace(0, 2 * mean, n)


def _stars(*distances: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the sorted offsets of a grid's stencil: zero, and the given distances with either sign."""
    (dimensions,) = {len(step) for step in distances}
    near = {(0,) * dimensions}
    for distance in distances:
        near |= {tuple(sign * step for step in distance) for sign in (-1, 1)}
    return tuple(sorted(near))


def _hollow(offsets: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Return the offsets of a stencil without the offset zero, its centre."""
    return tuple(offset for offset in offsets if any(offset))


def _box(dimensions: int, reach: int) -> tuple[tuple[int, ...], ...]:
    """Return the sorted offsets of a stencil: all nodes at most ``reach`` away along each of the grid's dimensions."""
    return tuple(itertools.product(range(-reach, reach + 1), repeat=dimensions))


#: Offsets of the five-point stencil of a plane.
_five = _stars((0, 1), (1, 0))
#: Offsets of the seven-point stencil of space.
_seven = _stars((0, 0, 1), (0, 1, 0), (1, 0, 0))
#: Short name of `functools.partial`, which sets the parameters of a law.
_law = functools.partial

# fmt: off
#: Families of generated matrices by name: whether trees are trained or tested on them, and recipes, the most different first.
_KINDS: dict[str, tuple[str, tuple[_Rows | _Grid, ...]]] = {
    "alike": (TRAIN, tuple(_Rows(_alike, mean) for mean in (16, 4, 100, 1, 32, 8, 1000, 2, 64, 12, 300, 24, 3, 6, 48))),
    "lognormal": (TRAIN, tuple(
        _Rows(_law(_lognormal, variation=variation), mean, window, symmetric=window < 0.1) for mean, variation, window in (
            (10, 0.5, 1), (60, 2, 0.02), (4, 1, 0.1), (200, 0.5, 1), (16, 0.25, 0.05), (25, 4, 1), (700, 1, 0.2), (6, 3, 0.01),
            (100, 1, 1), (2, 1, 1), (40, 0.3, 0.01),
        )
    )),
    "grid": (TRAIN, (
        _Grid("5", _five), _Grid("27", _box(3, 1)), _Grid("7", _seven), _Grid("9", _box(2, 1)), _Grid("3", _stars((1,))),
        _Grid("25", _box(2, 2)), _Grid("13", _stars((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 2), (0, 2, 0), (2, 0, 0))),
        _Grid("125", _box(3, 2)),
    )),
    "power-law": (TRAIN, tuple(
        _Rows(_law(_pareto, exponent=exponent), mean, skew=2, symmetric=mean in (8, 100, 5)) for mean, exponent in (
            (8, 2.2), (30, 2.5), (3, 2.1), (100, 3), (15, 2.05), (5, 2.8), (60, 2.2), (2, 2.4), (300, 2.5),
        )
    )),
    "poisson": (TEST, tuple(
        _Rows(_poisson, mean, 0.01, symmetric=mean in (5, 50, 3, 15)) for mean in (20, 5, 150, 2, 50, 10, 500, 3, 30, 80, 1, 15)
    )),
    "hubs": (TRAIN, tuple(
        _Rows(_law(_hubs, hubs=hubs, share=share), mean, 0.05) for mean, hubs, share in (
            (5, 1, 0.02), (3, 20, 0.5), (12, 4, 0.1), (40, 2, 0.01), (8, 300, 0.3), (100, 10, 0.2), (2, 2, 0.1),
        )
    )),
    "blocks": (TEST, (
        _Grid("7", _seven, 3), _Grid("27", _box(3, 1), 3), _Grid("5", _five, 2), _Grid("9", _box(2, 1), 6),
        _Grid("7", _seven, 12), _Grid("3", _stars((1,)), 3), _Grid("125", _box(3, 2), 2), _Grid("5", _five, 5),
    )),
    "runs": (TRAIN, tuple(
        _Rows(_law(_runs, ratio=ratio, run=run), mean, 0.1) for mean, ratio, run in (
            (10, 20, 1), (30, 50, 1000), (6, 4, 30), (100, 30, 200), (20, 8, 5), (4, 20, 10_000), (300, 10, 8),
        )
    )),
    "hollow": (TRAIN, tuple(
        _Rows(_law(_sparse, empty=empty), mean) for mean, empty in (
            (0.5, 0.8), (5, 0.5), (0.05, 0.96), (20, 0.7), (1.5, 0.4), (0.2, 0.9), (60, 0.5),
        )
    )),
    "rectangle": (TRAIN, tuple(
        _Rows(_law(_lognormal, variation=0.3), mean, aspect=aspect) for mean, aspect in (
            (8, 0.01), (3, 0.1), (50, 20), (20, 0.002), (200, 5), (4, 10), (500, 0.5),
        )
    )),
    "graded": (TRAIN, tuple(_Rows(_grade, mean, 0.02) for mean in (12, 60, 4, 250, 30, 2, 120, 7))),
    "band": (TRAIN, tuple(
        _Rows(_alike, mean, 0, symmetric=mean in (5, 20, 90)) for mean in (11, 5, 40, 3, 200, 20, 7, 90, 900, 14, 30)
    )),
    "mixed": (TEST, tuple(
        _Rows(_law(_mix, ratio=ratio, share=share), mean, 0.3) for mean, ratio, share in (
            (7, 30, 0.01), (40, 10, 0.1), (3, 100, 0.001), (20, 5, 0.3), (150, 4, 0.05), (12, 200, 0.002),
        )
    )),
    "network": (TRAIN, (
        _Grid("4", _hollow(_five), kept=0.6), _Grid("6", _hollow(_seven), kept=0.5), _Grid("4", _hollow(_five), kept=0.8),
        _Grid("8", _hollow(_box(2, 1)), kept=0.35),
    )),
}
# fmt: on


def _sizes(largest: int) -> list[int]:
    """Return the numbers of entries of generated matrices in the order of measuring: large and small numbers in turns."""
    below = [100, 1000, 10_000, 100_000, 300_000]
    above = [10**6 * 10**power * factor for power in range(3) for factor in (1, 3)]
    sizes = [size for size in below + above if size <= largest]
    half = len(sizes) // 2
    pairs = itertools.zip_longest(sizes[half:], reversed(sizes[:half]))
    return [size for pair in pairs for size in pair if size is not None]


def _case_of(kind: str, recipe: _Rows | _Grid, number: int, nnz: int) -> Case:
    """Return the case (a named matrix to be generated) of a recipe of a family with about ``nnz`` entries."""
    name = f"{kind}-{number}-{recipe}-{nnz:.0e}"

    def make() -> scipy.sparse.csr_array:
        """Return the generated matrix, whose name seeds the random generator."""
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        return recipe.make(np.random.default_rng(seed), nnz)

    return Case(name, kind, _KINDS[kind][0], nnz, make)


def generate(largest: int) -> Iterator[Case]:
    """Yield the cases of the generated matrices of at most ``largest`` entries, to measure on, in the order of measuring.

    Every beginning of the order is balanced: a round takes one matrix of every family, all of different sizes, and after as many
    rounds as there are sizes every family was taken in every size once.
    """
    sizes = _sizes(largest)
    max_recipes = max(len(recipes) for _, recipes in _KINDS.values())
    for lap in range(max_recipes):
        for turn in range(len(sizes)):
            for number, (kind, (_, recipes)) in enumerate(_KINDS.items()):
                nnz = sizes[(turn + number) % len(sizes)]
                # A recipe that makes no matrix of this size gives its turn to the next recipe of the family.
                for index in range(lap + turn, lap + turn + len(recipes) if lap < len(recipes) else 0):
                    recipe = recipes[index % len(recipes)]
                    if recipe.fits(nnz):
                        yield _case_of(kind, recipe, index % len(recipes), nnz)
                        break


def from_folder(folder: Path) -> list[Case]:
    """Return the cases of the matrices in the files of a folder and its subfolders, on which the tuner measures.

    A family is the letters at the beginning of a file's name, as collections number related matrices. One family in four is on
    the side of `TEST`.

    Raises
    ------
    ValueError
        The folder has no file of a matrix.
    """
    files = sorted(path for path in folder.rglob("*") if path.name.lower().endswith(SUFFIXES) and path.is_file())
    if not files:
        raise ValueError(f"corpus: {folder} holds no file whose name ends with {', '.join(SUFFIXES)}")
    families = [_family_of(path) for path in files]
    split = {family: TEST if number % 4 == 3 else TRAIN for number, family in enumerate(dict.fromkeys(families))}
    return [
        Case(path.name.split(".")[0], family, split[family], 0, functools.partial(_from_file, path))
        for path, family in zip(files, families, strict=True)
    ]


def _family_of(path: Path) -> str:
    """Return the family of a matrix in a file: the letters at the beginning of the file's name, or the whole name without any."""
    stem = path.name.split(".")[0]
    letters = "".join(itertools.takewhile(str.isalpha, stem))
    return letters.lower() or stem


def _from_file(path: Path) -> scipy.sparse.csr_array:
    """Return the matrix in a file, with float32 ones as values."""
    matrix = read_matrix(path)
    ones = np.ones(matrix.nnz, np.float32)
    return scipy.sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def cases(device: Device, further: Sequence[Case] = (), largest: int | None = None) -> Iterator[Case]:
    """Yield the cases of the matrices to tune a device with, generated or from files, in the order of measuring.

    Parameters
    ----------
    device : Device
        Its memory and type limit the entries of a matrix.
    further : sequence of Case
        Further matrices, which take turns with the generated ones.
    largest : int, optional
        Most entries of a generated matrix.
    """
    max_entries = _LARGEST_ON_CPU if device.lanes_are_loops else _LARGEST
    limit = min(max_entries, device.global_memory // _BYTES_AN_ENTRY, device.max_allocation // 8)
    generated = generate(min(limit, largest or limit))
    names: set[str] = set()
    for pair in itertools.zip_longest(generated, further):
        for case in pair:
            if case is not None and case.name not in names:
                names.add(case.name)
                yield case


def with_values(matrix: scipy.sparse.csr_array, dtype: Any) -> scipy.sparse.csr_array:
    """Return a matrix with the structure of ``matrix`` and random values between 1/2 and 3/2, the same at every call."""
    rng = np.random.Generator(np.random.SFC64(1))
    # A stretch of random values is repeated along the entries: times do not depend on values, and to draw 10^8 takes a second.
    stretch = (rng.random(min(matrix.nnz, _CHUNK), dtype=np.float32) + np.float32(0.5)).astype(dtype)
    data = np.resize(stretch, matrix.nnz) if matrix.nnz else np.empty(0, dtype)
    valued = scipy.sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    valued.has_canonical_format = matrix.has_canonical_format
    return valued
