"""The wall: main operations by matrices, ours beside the best peer and the floor, in one results file made in pieces.

``python -m bench wall`` measures; `sheet` is the table of a page, of whose means `bench.glance` makes README's picture.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable

from bench import results
from bench.report import Sheet
from bench.results import Document
from bench.times import NUMERIC_ONLY, OURS_KEPT, PLAIN, best_peer, geometric_mean, times_of
from clsparse_py._ground.records import dataclass

#: Peers that the wall is measured with by default, by the kind of device.
CPU_PEERS = ["scipy", "mkl", "numba", "graphblas"]
GPU_PEERS = ["cusparse", "cupy"]
# Matrices whose product with 64 columns, or references of it, take too much of the host's memory and time.
_TOO_LARGE_FOR_COLUMNS = frozenset({"fe2d9_1024", "road", "fd2d5_2048", "fd3d7_160"})
# Matrices whose squares take SciPy minutes.
_TOO_LARGE_FOR_SQUARES = frozenset({"rmat16", "rmat18", "fd2d5_2048", "fd3d7_160"})
# End of the names of peers that analyse a triangle at each call.
_ANALYSED = "-plain"


@dataclass(frozen=True)
class Column:
    """An operation in a dtype: a column of the table.

    Attributes
    ----------
    title
        The column's heading.
    ours
        The contestant that counts as ours.
    left_out
        Matrices of the suite ``wall`` that are not measured.
    """

    title: str
    operation: str
    dtype: str = "float64"
    ours: str = PLAIN
    left_out: frozenset[str] = frozenset()

    def cell(self, document: Document, matrix: str) -> Cell | None:
        """Return the column's cell of a matrix, None if it was not measured."""
        entry = results.find(document, matrix, self.operation, self.dtype)
        return None if entry is None else Cell.of(entry, self.ours)

    def cells(self, document: Document) -> list[Cell]:
        """Return all cells in which both ours and a peer have times."""
        found = (self.cell(document, matrix) for matrix in _matrices(document))
        return [cell for cell in found if cell is not None and not math.isnan(cell.ratio)]

    def ratios(self, document: Document) -> list[float]:
        """Return the best peer's time / ours, of each matrix on which both have one."""
        return [cell.ratio for cell in self.cells(document)]


@dataclass(frozen=True)
class Cell:
    """Seconds of ours, of the best peer and of the floor, NaN where there are none; and which contestants have no times."""

    ours: float
    peer: str
    theirs: float
    floor: float
    failed: tuple[str, ...]

    @classmethod
    def of(cls, entry: Document, ours: str) -> Cell:
        """Return the cell of an entry; beside our kept plan count peers that keep an analysis, else those that do not."""
        times = times_of(entry, "back_to_back")
        analysed = {name for name in times if name.endswith(_ANALYSED)}
        peers = {name: time for name, time in times.items() if not analysed or (name in analysed) == (ours != OURS_KEPT)}
        peer = best_peer(peers) or ""
        failed = tuple(record["name"] for record in entry["contestants"] if "samples" not in record)
        return cls(times.get(ours, math.nan), peer, peers.get(peer, math.nan), entry["floor"], failed)

    @property
    def ratio(self) -> float:
        """The best peer's time / ours."""
        return self.theirs / self.ours

    @property
    def multiple(self) -> float:
        """Our time / the floor's."""
        return self.ours / self.floor

    def text(self) -> str:
        """Return the cell as two lines of Markdown: ratio and peer; our time and the peer's, and the multiple of the floor."""
        if math.isnan(self.ours):
            return "failed"
        if not self.peer:
            return f"no peer<br>{_microseconds(self.ours)}; {_short(self.multiple)}"
        times = f"{_microseconds(self.ours)}, {_microseconds(self.theirs)}"
        return f"**{self.ratio:.2f}** {_short_name(self.peer)}<br>{times}; {_short(self.multiple)}"


COLUMNS = (
    Column("A @ x", "spmv"),
    Column("A @ x, float32", "spmv", "float32"),
    Column("transpose(A)", "sptrans"),
    Column("A @ A", "spgemm", left_out=_TOO_LARGE_FOR_SQUARES),
    Column("A + B", "add"),
    Column("A @ X", "spmm_64_rows", left_out=_TOO_LARGE_FOR_COLUMNS),
    Column("sddmm", "sddmm_64", left_out=_TOO_LARGE_FOR_COLUMNS),
    Column("L x = b", "sptrsv"),
    Column("L x = b, kept", "sptrsv", ours=OURS_KEPT),
)


def tasks(matrices: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return what to measure, all operations of a matrix together: it is made once, and early pieces have every operation."""
    cells = ((matrix, column) for matrix in matrices for column in COLUMNS if matrix not in column.left_out)
    return list(dict.fromkeys((matrix, column.operation, column.dtype) for matrix, column in cells))


def takes_part(name: str) -> bool:
    """Return whether a contestant is of the wall: no column is about new values of a known structure."""
    return not name.endswith(NUMERIC_ONLY)


def sheet(document: Document) -> Sheet:
    """Return the table of all cells, with the geometric means, and how often a peer failed or declined."""
    rows = []
    for matrix in _matrices(document):
        cells = (column.cell(document, matrix) for column in COLUMNS)
        rows.append((matrix, *("" if cell is None else cell.text() for cell in cells)))
    rows.append(("geometric mean", *(_means(column.cells(document)) for column in COLUMNS)))
    if any(failed := [_failures(document, column) for column in COLUMNS]):
        rows.append(("no times", *failed))
    return Sheet("The wall", ("matrix", *(column.title for column in COLUMNS)), tuple(rows))


def means_sheet(document: Document) -> Sheet:
    """Return the table of means: a row for each column that has cells."""
    rows = []
    for column in COLUMNS:
        if cells := column.cells(document):
            ratios, multiples = ([getattr(cell, name) for cell in cells] for name in ("ratio", "multiple"))
            spans = (geometric_mean(ratios), min(ratios), max(ratios), geometric_mean(multiples))
            rows.append((column.title, *(f"{number:.2f}" for number in spans), str(len(cells))))
    header = ("operation", "best peer / ours, geometric mean", "least", "greatest", "ours / floor", "matrices")
    return Sheet("The wall's means", header, tuple(rows))


def _matrices(document: Document) -> list[str]:
    """Return the matrices of a file in the order of their measurement."""
    return list(dict.fromkeys(entry["input"] for entry in document["entries"]))


def _means(cells: list[Cell]) -> str:
    if not cells:
        return ""
    ratio, multiple = (geometric_mean(getattr(cell, name) for cell in cells) for name in ("ratio", "multiple"))
    return f"**{ratio:.2f}**<br>{_short(multiple)}"


def _failures(document: Document, column: Column) -> str:
    cells = (column.cell(document, matrix) for matrix in _matrices(document))
    names = collections.Counter(_short_name(name) for cell in cells if cell is not None for name in cell.failed)
    return ", ".join(f"{name}: {count}" for name, count in names.items())


def _short_name(name: str) -> str:
    """Return a contestant's name, of cuSPARSE's the algorithm alone."""
    return name.removeprefix("cusparse/")


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f}" if seconds >= 1e-4 else f"{1e6 * seconds:.1f}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"
