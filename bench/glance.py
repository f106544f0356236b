"""Speed at a glance: a table of all peers, and a picture of some of its rows and of a wall's means, from ``bench/results/``.

``python -m bench.glance`` draws the picture anew; ``python -m bench pages docs/benchmarks.md`` writes the table.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from bench import machine, results, wall
from bench.report import Sheet
from bench.times import geometric_mean, ours_of, times_of
from clsparse_py._ground.records import dataclass
from clsparse_py._tuner.plots import set_plain_ticks

RESULTS = machine.ROOT / "bench" / "results"
PICTURE = machine.ROOT / "docs" / "figures" / "speed.svg"
#: The wall that is pictured, once it is there.
WALL = "h200-wall.json"


@dataclass(frozen=True)
class Line:
    """An operation on a device beside a peer: where its figures are, and how it is called; or a column of a wall."""

    peer: str
    what: str
    file: str
    operation: str
    contestant: str
    is_pictured: bool = False
    column: wall.Column | None = None

    def date(self, folder: Path = RESULTS) -> str:
        """Return the day of the measurement."""
        return str(results.read(folder / self.file)["date"])[:10]

    def ratios(self, folder: Path = RESULTS) -> list[float]:
        """Return the peer's time / ours of each matrix, calls back to back, double precision."""
        document = results.read(folder / self.file)
        if self.column is not None:
            return self.column.ratios(document)
        return ratios(document, self.operation, "float64", self.contestant)


LINES = (
    Line("cuSPARSE", "A @ x, H100", "h100.json", "spmv", "cusparse/best"),
    Line("cuSPARSE", "A @ x, its fastest routine, H200", "h200-spmvop.json", "spmv", "cusparse/best", True),
    Line("cuSPARSE", "transpose(A), H200", "h200-sptrans.json", "sptrans", "cusparse/csr2csc", True),
    Line("cuSPARSE", "A @ A, H200", "h200-spgemm.json", "spgemm", "cusparse/spgemm", True),
    Line("cuSPARSE", "A @ P, Pᵀ @ AP, H100", "h100-amg.json", "amg", "cusparse/spgemm"),
    Line("CuPy", "A + B, H200", "h200-elementwise.json", "add", "cupy", True),
    Line("CuPy", "A.multiply(B), H200", "h200-elementwise.json", "multiply", "cupy"),
    Line("CuPy", "A.sum(axis=1), H200", "h200-elementwise.json", "sum_rows", "cupy"),
    Line("CuPy", "A[rows], H200", "h200-rows.json", "rows", "cupy", True),
    Line("CuPy", "A[:, columns], H200", "h200-indexing.json", "columns", "cupy"),
    Line("MKL", "A @ x, optimised, Intel's CPU", "cpu-intel.json", "spmv", "mkl/handle", True),
    Line("MKL", "A @ x, optimised, AMD's CPU", "cpu-epyc-intel-spmv.json", "spmv", "mkl/handle"),
    Line("MKL", "A @ x, one shot, Intel's CPU", "cpu-intel.json", "spmv", "mkl/one-shot"),
    Line("MKL", "transpose(A), Intel's CPU", "cpu-intel-sptrans.json", "sptrans", "mkl"),
    Line("MKL", "A @ A, Intel's CPU", "cpu-spgemm.json", "spgemm", "mkl", True),
    Line("MKL", "A @ P, Pᵀ @ AP, AMD's CPU", "cpu-epyc-intel-amg.json", "amg", "mkl"),
    Line("PyAMG", "multigrid, set-up, AMD's CPU", "cpu-epyc-intel-multigrid.json", "multigrid_setup", "pyamg"),
    Line("PyAMG", "multigrid, solution, AMD's CPU", "cpu-epyc-intel-multigrid.json", "multigrid_solve", "pyamg", True),
    Line("AMGCL", "multigrid, set-up, AMD's CPU", "cpu-epyc-intel-multigrid.json", "multigrid_setup", "amgcl", True),
    Line("AMGCL", "multigrid, solution, AMD's CPU", "cpu-epyc-intel-multigrid.json", "multigrid_solve", "amgcl"),
    Line("AMGCL", "multigrid, set-up, H200 (AMGCL: 16 host threads)", "h200-multigrid.json", "multigrid_setup", "amgcl"),
    Line("AMGCL", "multigrid, solution, H200 (AMGCL: 16 host threads)", "h200-multigrid.json", "multigrid_solve", "amgcl"),
    Line("SciPy", "A @ x, Intel's CPU", "cpu-intel.json", "spmv", "scipy", True),
    Line("SciPy", "transpose(A), Intel's CPU", "cpu-intel-sptrans.json", "sptrans", "scipy"),
    Line("SciPy", "A @ A, Intel's CPU", "cpu-spgemm.json", "spgemm", "scipy"),
    Line("SciPy", "A + B, AMD's CPU", "cpu-intel-entries.json", "add", "scipy"),
    Line("SciPy", "A[rows], AMD's CPU", "cpu-intel-entries.json", "rows", "scipy"),
)
# Peers of a column of the wall.
_BEST = "fastest of cuSPARSE, CuPy"
# Okabe and Ito's colours, and black; markers tell peers apart too.
_LOOKS = {
    "cuSPARSE": ("#0072B2", "o"),
    "CuPy": ("#009E73", "s"),
    "MKL": ("#D55E00", "D"),
    "PyAMG": ("#CC79A7", "v"),
    "AMGCL": ("#56B4E9", "P"),
    "SciPy": ("#E69F00", "^"),
    _BEST: ("#000000", "*"),
}


def ratios(document: results.Document, operation: str, dtype: str, contestant: str, way: str = "back_to_back") -> list[float]:
    """Return a contestant's time / ours, of each matrix on which both have one.

    Raises
    ------
    ValueError
        If there is no such matrix.
    """
    entries = [entry for entry in document["entries"] if (entry["operation"], entry["dtype"]) == (operation, dtype)]
    own = ours_of(entries)
    pairs = [times for times in (times_of(entry, way) for entry in entries) if own in times and contestant in times]
    if not pairs:
        raise ValueError(f"no matrix has times of {contestant} for {operation} {dtype}")
    return [times[contestant] / times[own] for times in pairs]


def sheet(folder: Path = RESULTS) -> Sheet:
    """Return the table of all lines."""
    rows = []
    for line in LINES:
        result = line.ratios(folder)
        mean, least, greatest = (f"{number:.2f}" for number in (geometric_mean(result), min(result), max(result)))
        rows.append((line.peer, line.what, mean, f"{least} to {greatest}", str(len(result)), f"`{line.file}`"))
    header = ("beside", "operation, device", "its time / ours, geometric mean", "least to greatest", "matrices", "file")
    return Sheet("Speed at a glance", header, tuple(rows))


def pictured(folder: Path = RESULTS) -> list[Line]:
    """Return the lines of the picture: columns of the wall in double precision, and lines of `LINES` that it has none for."""
    lines = [line for line in LINES if line.is_pictured]
    if not (folder / WALL).exists():
        return lines
    document = results.read(folder / WALL)
    columns = [column for column in wall.COLUMNS if column.dtype == "float64" and column.ratios(document)]
    device, operations = _device(document), {column.operation for column in columns}
    others = [line for line in lines if line.operation not in operations or _device(results.read(folder / line.file)) != device]
    return [*(Line(_BEST, f"{it.title}, H200", WALL, it.operation, "", True, it) for it in columns), *others]


def _device(document: results.Document) -> str:
    return str(document["machine"]["device"]["name"])


def description(folder: Path = RESULTS) -> str:
    """Return what the picture says, in words: it is kept in the picture's file."""
    lines = pictured(folder)
    parts = (f"{line.peer}, {line.what}, {line.date(folder)}: {geometric_mean(line.ratios(folder)):.2f}" for line in lines)
    return f"Time of the other / time of clsparse_py, above 1 clsparse_py is faster. {'; '.join(parts)}"


def picture(folder: Path = RESULTS) -> Figure:
    """Draw the geometric mean of each line, and the span from its least to its greatest ratio."""
    lines = pictured(folder)
    figure = Figure(figsize=(8, 1.0 + 0.3 * len(lines)), layout="constrained")
    spans = [line.ratios(folder) for line in lines]
    axes = figure.subplots()
    names = []
    place = 0.0
    for before, line, result in zip((None, *lines), lines, spans, strict=False):
        place += 1.0 if before is None or before.peer == line.peer else 1.4
        colour, marker = _LOOKS[line.peer]
        mean = geometric_mean(result)
        axes.plot([min(result), max(result)], [place, place], color=colour, linewidth=1.2, alpha=0.7)
        axes.plot([mean], [place], marker=marker, color=colour, markersize=8, markeredgecolor="black", linestyle="none")
        axes.annotate(f"{mean:.2f}", (1.01, place), xycoords=("axes fraction", "data"), va="center", size=9)
        names.append((place, f"{line.peer}:  {line.what}, {line.date(folder)}"))
    axes.set_yticks([place for place, _ in names], [name for _, name in names], size=9)
    axes.set_ylim(place + 0.8, 0.2)
    axes.set_xscale("log")
    axes.set_xlim(0.8 * min(map(min, spans)), 1.25 * max(map(max, spans)))
    set_plain_ticks(axes.xaxis)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.grid(axis="x", linewidth=0.4)
    figure.supxlabel(
        "time of the other / time of clsparse_py, repeated calls, float64: above 1 clsparse_py is faster\n"
        "marks: geometric means; lines: least to greatest over the test matrices",
        size=9,
    )
    return figure


def main() -> None:
    """Draw the picture."""
    with rc_context({"svg.hashsalt": "clsparse_py"}):
        picture().savefig(PICTURE, format="svg", metadata={"Date": None, "Description": description()})
    print(f"wrote {PICTURE.relative_to(machine.ROOT)}")


if __name__ == "__main__":
    main()
