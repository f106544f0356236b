"""What a results file says: tables for the terminal, the same in Markdown, and plots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from bench.results import Document

OURS = "clsparse/auto"
# Of these families the best member counts as one contestant too.
_CUSPARSE = "cusparse/best"


@dataclass(frozen=True)
class Sheet:
    """A table as text, to be shown by rich or written as Markdown; the first column is a label, the others are numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_rich(self) -> Table:
        """Return the table for the terminal."""
        table = Table(title=self.title, title_justify="left")
        for index, heading in enumerate(self.header):
            table.add_column(heading, justify="right" if index else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self) -> str:
        """Return the table in Markdown."""
        rule = " | ".join("---:" if index else "---" for index in range(len(self.header)))
        lines = [" | ".join(self.header), rule, *(" | ".join(cell.replace("|", "\\|") for cell in row) for row in self.rows)]
        return "\n".join([f"### {self.title}", "", *(f"| {line} |" for line in lines), ""])


def report(document: Document, path: Path, console: Console, *, way: str = "back_to_back") -> list[Path]:
    """Print a results file's tables, write them and the plots beside it, and return the files written.

    The table of all contestants is long, and is written only.

    Parameters
    ----------
    way
        The way of timing to compare by; contestants timed in one way only are compared by that.
    """
    shown = [_run_sheet(document)]
    details, written = [], []
    for operation, dtype in sorted({(e["operation"], e["dtype"]) for e in document["entries"]}):
        entries = [e for e in document["entries"] if (e["operation"], e["dtype"]) == (operation, dtype)]
        what = f"{operation} {dtype}"
        shown += [_summary(entries, way, what), _comparison(entries, way, what)]
        details.append(_details(entries, way, what))
        for kind, figure in (("share", _share_plot(entries, way, what)), ("ratio", _ratio_plot(entries, way, what))):
            if figure is not None:
                plot = path.with_name(f"{path.stem}-{operation}-{dtype}-{kind}.png")
                figure.savefig(plot, dpi=120)
                written.append(plot)
    for sheet in shown:
        if sheet.rows:
            console.print(sheet.as_rich())
    markdown = path.with_suffix(".md")
    markdown.write_text("\n".join(sheet.as_markdown() for sheet in shown + details if sheet.rows))
    return [markdown, *written]


def times_of(entry: Document, way: str) -> dict[str, float]:
    """Return each contestant's median seconds, with cuSPARSE's best algorithm as one more contestant."""
    times = {}
    for record in entry["contestants"]:
        samples = record.get("samples")
        if samples:
            times[record["name"]] = statistics.median(samples.get(way) or samples["back_to_back"])
    algorithms = [seconds for name, seconds in times.items() if name.startswith("cusparse/")]
    if algorithms:
        times[_CUSPARSE] = min(algorithms)
    return times


def best_peer(times: dict[str, float]) -> str | None:
    """Return the name of the fastest contestant that is not ours."""
    peers = [name for name in times if not name.startswith("clsparse/") and name != _CUSPARSE]
    return min(peers, key=times.__getitem__, default=None)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, values)))


def _run_sheet(document: Document) -> Sheet:
    device, host, commit = document["machine"]["device"], document["machine"]["host"], document["commit"]
    rows = [
        ("device", f"{device['name']} ({device['platform']}, driver {device['driver']})"),
        ("host", f"{host['processor']}, {host['threads']} threads, {host['system']}"),
        ("commit", commit["revision"] + (f" with changes {commit['changes']}" if commit["dirty"] else "")),
        ("date", document["date"]),
        ("versions", ", ".join(f"{name} {version}" for name, version in sorted(document["versions"].items()))),
    ]
    for copy in document["copies"]:
        bandwidth = copy["bytes"] / statistics.median(copy["samples"])
        rows.append((f"copy, {copy['how']}", f"{bandwidth / 1e9:.1f} GB/s over {copy['bytes'] / 2**20:.0f} MiB"))
    if document["first_product"]:
        milliseconds = ", ".join(f"{1e3 * seconds:.0f}" for seconds in document["first_product"])
        rows.append(("first product of new processes", f"{milliseconds} ms"))
    rows += [(f"without {peer}", reason) for peer, reason in document["unavailable"].items()]
    return Sheet("The run", ("what", "value"), tuple(rows))


def _summary(entries: Sequence[Document], way: str, what: str) -> Sheet:
    header = ("matrix", "rows", "nnz", "floor µs", "ours µs", "GB/s", "share", "resident", "best peer", "µs", "ratio", "host µs")
    rows = []
    for entry in entries:
        times = times_of(entry, way)
        ours, peer = times.get(OURS), best_peer(times)
        resident = entry.get("resident_copy")
        rows.append(
            (
                entry["matrix"],
                f"{entry['shape'][0]:,}",
                f"{entry['nnz']:,}",
                _microseconds(entry["floor"]),
                _microseconds(ours),
                f"{entry['bytes'] / ours / 1e9:.1f}" if ours else "",
                f"{entry['floor'] / ours:.2f}" if ours else "",
                f"{_resident_floor(entry) / ours:.2f}" if ours and resident else "",
                peer or "",
                _microseconds(times[peer]) if peer else "",
                f"{times[peer] / ours:.2f}" if peer and ours else "",
                _microseconds(_beyond_device(entry)),
            )
        )
    title = f"{what}: ours is {OURS}; share is floor / time, ratio is best peer / ours, host is a waiting call beyond the device"
    return Sheet(title, header, tuple(rows))


def _comparison(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Compare ours with each peer over the matrices that both computed."""
    tables = [times for entry in entries if OURS in (times := times_of(entry, way))]
    matrices = [entry["matrix"] for entry in entries if OURS in times_of(entry, way)]
    names = sorted({name for times in tables for name in times} - {OURS})
    ratios = {
        name: {m: times[name] / times[OURS] for m, times in zip(matrices, tables, strict=True) if name in times} for name in names
    }
    best = {
        m: times[peer] / times[OURS] for m, times in zip(matrices, tables, strict=True) if (peer := best_peer(times)) is not None
    }
    if best:
        ratios["best peer"] = best
    rows = []
    for name, by_matrix in ratios.items():
        worst = min(by_matrix, key=by_matrix.__getitem__)
        faster = sum(ratio >= 1 for ratio in by_matrix.values())
        mean = geometric_mean(by_matrix.values())
        rows.append((name, f"{mean:.2f}", f"{by_matrix[worst]:.2f}", worst, f"{faster} of {len(by_matrix)}"))
    header = ("peer", "geometric mean", "smallest", "on", "ours at least as fast")
    return Sheet(f"{what}: time of the peer / time of {OURS}, {way}", header, tuple(rows))


def _details(entries: Sequence[Document], way: str, what: str) -> Sheet:
    header = ("matrix", "contestant", "µs", "spread", "share", "single µs", "host µs", "plan ms", "first ms", "error", "detail")
    rows = []
    for entry in entries:
        times = times_of(entry, way)
        for record in entry["contestants"]:
            if "failure" in record:
                rows.append((entry["matrix"], record["name"], *[""] * 8, record["failure"]))
                continue
            samples, once, seconds = record["samples"], record["once"], times[record["name"]]
            rows.append(
                (
                    entry["matrix"],
                    record["name"],
                    _microseconds(seconds),
                    f"{_spread(samples.get(way) or samples['back_to_back']):.0%}",
                    f"{entry['floor'] / seconds:.2f}",
                    _microseconds(_median(samples.get("single"))),
                    _microseconds(_median(samples.get("host"))),
                    _milliseconds(once.get("plan")),
                    _milliseconds(once.get("first_call")),
                    f"{record['error']:.2f}",
                    record["detail"],
                )
            )
    title = f"{what}: all contestants; spread is the middle half of the samples, error is in bounds of rounding"
    return Sheet(title, header, tuple(rows))


def _share_plot(entries: Sequence[Document], way: str, what: str) -> Figure | None:
    """Plot which share of the copy bandwidth each contestant reaches on each matrix."""
    shares = [{name: entry["floor"] / seconds for name, seconds in times_of(entry, way).items()} for entry in entries]
    names = sorted({name for share in shares for name in share} - {_CUSPARSE}, key=lambda name: (name != OURS, name))
    if not names:
        return None
    figure = Figure(figsize=(9, 1.6 + 0.28 * len(entries)), layout="constrained")
    axes = figure.subplots()
    for name in names:
        points = [(share[name], row) for row, share in enumerate(shares) if name in share]
        across, down = zip(*points, strict=True)
        ours = name == OURS
        colour = "black" if ours else None
        axes.scatter(
            across, down, label=name, marker="D" if ours else "o", s=46 if ours else 26, color=colour, zorder=3 if ours else 2
        )
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(entries)), [entry["matrix"] for entry in entries])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_xlabel("share of the copy bandwidth (minimal bytes)")
    axes.set_title(what)
    axes.legend(fontsize="small")
    return figure


def _ratio_plot(entries: Sequence[Document], way: str, what: str) -> Figure | None:
    """Plot how many times as fast as the best peer ours is on each matrix."""
    bars = []
    for entry in entries:
        times = times_of(entry, way)
        peer = best_peer(times)
        if peer is not None and OURS in times:
            bars.append((entry["matrix"], times[peer] / times[OURS], peer))
    if not bars:
        return None
    figure = Figure(figsize=(9, 1.6 + 0.28 * len(bars)), layout="constrained")
    axes = figure.subplots()
    colours = ["tab:green" if ratio >= 1 else "tab:red" for _, ratio, _ in bars]
    # Bars start at 1 on a logarithmic axis: twice as fast and half as fast are equally long.
    axes.barh([bar[0] for bar in bars], [ratio - 1 for _, ratio, _ in bars], left=1, color=colours)
    for row, (_, ratio, peer) in enumerate(bars):
        axes.annotate(
            f" {ratio:.2f}  {peer} ", (ratio, row), va="center", ha="left" if ratio >= 1 else "right", fontsize="x-small"
        )
    axes.set_xscale("log")
    for each in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        each("{x:g}")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.margins(x=0.3)
    axes.invert_yaxis()
    axes.set_xlabel(f"time of the best peer / time of {OURS}")
    axes.set_title(what)
    return figure


def _beyond_device(entry: Document) -> float | None:
    """Return what a call of ours that waits takes beyond the device's own time."""
    samples: dict[str, list[float]] = next((r.get("samples", {}) for r in entry["contestants"] if r["name"] == OURS), {})
    wall, single = _median(samples.get("wall")), _median(samples.get("single"))
    return None if wall is None or single is None else max(wall - single, 0.0)


def _resident_floor(entry: Document) -> float:
    copy = entry["resident_copy"]
    return float(entry["bytes"] * statistics.median(copy["samples"]) / copy["bytes"])


def _median(samples: Sequence[float] | None) -> float | None:
    return statistics.median(samples) if samples else None


def _spread(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    lower, middle, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return (upper - lower) / middle


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e6 * seconds:,.1f}"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:,.1f}"
