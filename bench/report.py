"""Reports of a results file: tables for the terminal, the same in Markdown, and plots."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import published, results
from bench.plots import ratio_plot, share_plot
from bench.results import Document
from bench.times import NUMERIC_ONLY, OURS_KEPT, POOLED, best_peer, geometric_mean, ours_of, times_of
from clsparse_py._ground.files import replacing, write_text


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

    def as_markdown(self, *, title: bool = True) -> str:
        """Return the table in Markdown, under its title or alone."""
        rule = " | ".join("---:" if index else "---" for index in range(len(self.header)))
        lines = [" | ".join(self.header), rule, *(" | ".join(cell.replace("|", "\\|") for cell in row) for row in self.rows)]
        heading = [f"### {self.title}", ""] if title else []
        return "\n".join([*heading, *(f"| {line} |" for line in lines), ""])


def report(document: Document, path: Path, console: Console, *, way: str = "back_to_back") -> list[Path]:
    """Print a results file's tables, write them and the plots beside it, and return the files written.

    The table of all contestants is long, and is written only.

    Parameters
    ----------
    way
        The way of timing to compare by; contestants timed in one way only are compared by that.
    """
    shown = [run_sheet(document), primitives_sheet(document, way)]
    details, written = [], []
    for operation, dtype in sorted({(e["operation"], e["dtype"]) for e in document["entries"]}):
        shown += [sheet(document, kind, operation, dtype, way) for kind in _MAKERS if kind != "details"]
        details.append(sheet(document, "details", operation, dtype, way))
    for what, entries in _group_by_plot(document).items():
        for kind, figure in (("share", share_plot(entries, way, what)), ("ratio", ratio_plot(entries, way, what))):
            if figure is not None:
                plot = path.with_name(f"{path.stem}-{what.replace(' ', '-')}-{kind}.png")
                with replacing(plot) as file:
                    figure.savefig(file, format="png", dpi=120)
                written.append(plot)
    for page_table in shown:
        if page_table.rows:
            console.print(page_table.as_rich())
    markdown = path.with_suffix(".md")
    write_text(markdown, "\n".join(page_table.as_markdown() for page_table in shown + details if page_table.rows))
    return [markdown, *written]


def sheet(document: Document, kind: str, operation: str, dtype: str, way: str = "back_to_back") -> Sheet:
    """Return a table of an operation in a dtype.

    Parameters
    ----------
    kind
        ``summary``, ours and the best peer on each input; ``rounds``, of merges; ``comparison``, geometric means;
        ``values``, the same of those who compute values alone, our kept plan first; ``published``, of squares, ours and
        implementations that are not run here, by way of cuSPARSE; ``registers``, accumulators in local memory over those in
        registers; ``methods``, each of ours over what is chosen; or ``details``.

    Raises
    ------
    ValueError
        If there is no such kind, or no such entry.
    """
    if kind not in _MAKERS:
        raise ValueError(f"table: got {kind!r}, needs one of {', '.join(_MAKERS)}")
    entries = [e for e in document["entries"] if (e["operation"], e["dtype"]) == (operation, dtype)]
    if not entries:
        raise ValueError(f"table: the results hold no {operation} {dtype}")
    return _MAKERS[kind](entries, way, f"{operation} {dtype}")


def primitives_sheet(document: Document, way: str = "back_to_back") -> Sheet:
    """Return the table of all primitives: ours, and how many times as long each other contestant takes."""
    entries = [entry for entry in document["entries"] if "sizes" in entry]
    others = sorted({name for entry in entries for name in times_of(entry, way)} - {POOLED})
    columns = ("input", "floor µs", "ours µs", "ns an element", "share", *(f"{name} / ours" for name in others))
    rows = []
    for entry in entries:
        times = times_of(entry, way)
        ours = times.get(POOLED)
        rows.append(
            (
                entry["operation"],
                entry["dtype"],
                entry["input"],
                _microseconds(entry["floor"]),
                _microseconds(ours),
                f"{1e9 * ours / entry['sizes']['elements']:.4f}" if ours else "",
                f"{entry['floor'] / ours:.2f}" if ours else "",
                *(f"{times[name] / ours:.2f}" if ours and name in times else "" for name in others),
            )
        )
    return Sheet(f"primitives: ours is {POOLED}, {way}; share is floor / time", ("primitive", "dtypes", *columns), tuple(rows))


def _group_by_plot(document: Document) -> dict[str, list[Document]]:
    """Return the entries that share a plot, by its title: those of an operation on matrices in a dtype, and all primitives."""
    plots: dict[str, list[Document]] = {}
    for entry in document["entries"]:
        what = f"{entry['operation']} {entry['dtype']}" if "shape" in entry else "primitives"
        plots.setdefault(what, []).append(entry)
    return plots


def history_sheet(folder: Path) -> Sheet:
    """Return the table of all results files of a folder, by date: commit, device, and what was measured with whom."""
    documents = sorted(
        ((path, document) for path in folder.glob("*.json") if (document := _results(path))), key=lambda pair: pair[1]["date"]
    )
    rows = []
    for path, document in documents:
        entries, commit = document["entries"], document["commit"]
        device = document["machine"]["device"]
        peers = {record["name"].partition("/")[0] for entry in entries for record in entry["contestants"]} - {"clsparse"}
        rows.append(
            (
                f"`{path.name}`",
                document["date"][:10],
                commit["revision"][:7] + (" with changes" if commit["dirty"] else ""),
                f"{device['name'].strip()}, {device['platform'].strip()}",
                ", ".join(_beside_best(entries)),
                ", ".join(sorted(peers)) or "no one",
            )
        )
    header = ("file", "date", "commit", "device, platform", "operations, and the best of the others / ours", "beside")
    return Sheet("Results files", header, tuple(rows))


def _beside_best(entries: Sequence[Document]) -> list[str]:
    """Return each operation and dtype, with the geometric mean of the best peer's time / ours where there are peers."""
    outcomes = []
    for operation, dtype in sorted({(entry["operation"], entry["dtype"]) for entry in entries}):
        own = [entry for entry in entries if (entry["operation"], entry["dtype"]) == (operation, dtype)]
        ours = ours_of(own)
        tables = [times for times in (times_of(entry, "back_to_back") for entry in own) if ours in times]
        ratios = [times[peer] / times[ours] for times in tables if (peer := best_peer(times)) is not None]
        outcomes.append(f"{operation} {dtype}" + (f" {geometric_mean(ratios):.2f}" if ratios else ""))
    return outcomes


def _results(path: Path) -> Document | None:
    """Return a file's document, or None if it holds something other than results of contestants."""
    try:
        return results.read(path)
    except ValueError:
        return None


def run_sheet(document: Document) -> Sheet:
    """Return the table of what ran where."""
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
    sizes = [_sizes(entry) for entry in entries]
    columns = list(dict.fromkeys(name for size in sizes for name in size))
    header = ("input", *columns, "floor µs", "ours µs", "GB/s", "share", "resident", "best peer", "µs", "ratio", "host µs")
    name = ours_of(entries)
    rows = []
    for entry, size in zip(entries, sizes, strict=True):
        times = times_of(entry, way)
        ours, peer = times.get(name), best_peer(times)
        resident = entry.get("resident_copy")
        rows.append(
            (
                entry["input"],
                *(f"{size[column]:,}" if column in size else "" for column in columns),
                _microseconds(entry["floor"]),
                _microseconds(ours),
                f"{entry['bytes'] / ours / 1e9:.1f}" if ours else "",
                f"{entry['floor'] / ours:.2f}" if ours else "",
                f"{_resident_floor(entry) / ours:.2f}" if ours and resident else "",
                peer or "",
                _microseconds(times[peer]) if peer else "",
                f"{times[peer] / ours:.2f}" if peer and ours else "",
                _microseconds(_beyond_device(entry, name)),
            )
        )
    title = f"{what}: ours is {name}; share is floor / time, ratio is best peer / ours, host is a waiting call beyond the device"
    return Sheet(title, header, tuple(rows))


def _sizes(entry: Document) -> dict[str, float]:
    """Return the sizes that a summary shows: of a matrix, or of a primitive's input."""
    if "sizes" in entry:
        sizes: dict[str, float] = entry["sizes"]
        return sizes
    more = {name: entry[name] for name in ("products", "entries") if name in entry}
    return {"rows": entry["shape"][0], "nnz": entry["nnz"], **more}


def _rounds(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Tell what merges take an element and round, and how much more that is on skewed inputs than on uniform ones."""
    merges = {entry["input"]: entry for entry in entries if "rounds" in entry.get("sizes", {})}
    seconds = {
        (name, contestant): time / (entry["sizes"]["elements"] * entry["sizes"]["rounds"])
        for name, entry in merges.items()
        for contestant, time in times_of(entry, way).items()
    }
    rows = []
    for (name, contestant), duration in seconds.items():
        uniform = seconds.get((name.replace("skewed", "uniform"), contestant))
        share = merges[name]["floor"] / times_of(merges[name], way)[contestant]
        more = f"{duration / uniform:.2f}" if uniform and name.startswith("skewed") else ""
        rows.append((name, contestant, f"{merges[name]['sizes']['rounds']:.2f}", f"{1e9 * duration:.4f}", f"{share:.2f}", more))
    header = ("input", "contestant", "rounds", "ns", "share of copy bandwidth", "skewed / uniform")
    return Sheet(f"{what}: time an element and round, each element being read and written once", header, tuple(rows))


def _comparison(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Compare ours with each other contestant over the inputs that both computed."""
    ours = ours_of(entries)
    tables = {entry["input"]: times for entry in entries if ours in (times := times_of(entry, way))}
    ratios = _ratios(tables, ours)
    best = {key: times[peer] / times[ours] for key, times in tables.items() if (peer := best_peer(times)) is not None}
    if best:
        ratios["best peer"] = best
    return _of_ratios(ratios, f"{what}: time of each contestant / time of {ours}, {way}")


def _values(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Compare our kept plan with those who compute values alone too."""
    tables = {
        entry["input"]: {name: seconds for name, seconds in times.items() if name == OURS_KEPT or name.endswith(NUMERIC_ONLY)}
        for entry in entries
        if OURS_KEPT in (times := times_of(entry, way))
    }
    return _of_ratios(_ratios(tables, OURS_KEPT), f"{what}: values alone, time of each contestant / time of {OURS_KEPT}, {way}")


def _compare_published(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Hold ours against the best of the implementations that `bench.published` knows, by way of cuSPARSE."""
    ours = ours_of(entries)
    rows, ratios = [], []
    for entry in entries:
        times = times_of(entry, way)
        if (entry["operation"], entry["dtype"]) != ("spgemm", "float64") or not {ours, published.CUSPARSE} <= times.keys():
            continue
        peers = published.scale(entry["input"], times[published.CUSPARSE])
        if peers:
            best = min(peers, key=peers.__getitem__)
            ratios.append(peers[best] / times[ours])
            shown = (_microseconds(seconds) for seconds in (times[ours], times[published.CUSPARSE], peers[best]))
            rows.append((entry["input"], *shown, best, f"{ratios[-1]:.2f}"))
    if rows:
        rows.append(("geometric mean", "", "", "", "", f"{geometric_mean(ratios):.2f}"))
    header = ("input", "ours µs", "cuSPARSE µs", "best of all µs", "which", "best of all / ours")
    return Sheet(
        f"{what}: {ours} and implementations that were measured elsewhere, by way of cuSPARSE, {way}", header, tuple(rows)
    )


def _registers(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Hold the accumulators in registers against their originals in local memory."""
    pairs = [(f"clsparse/{original}", f"clsparse/reg-{original}") for original in ("sort", "merge", "hash")]
    tables = {entry["input"]: times_of(entry, way) for entry in entries}
    ratios = {
        name: [times[pair[0]] / times[pair[1]] if times.keys() >= set(pair) else None for pair in pairs]
        for name, times in tables.items()
    }
    rows = [(name, *("" if ratio is None else f"{ratio:.2f}" for ratio in row)) for name, row in ratios.items() if any(row)]
    if rows:
        columns = ([ratio for ratio in column if ratio] for column in zip(*ratios.values(), strict=True))
        rows.append(("geometric mean", *(f"{geometric_mean(column):.2f}" if column else "" for column in columns)))
    header = ("input", *(f"{original.split('/')[1]} / {own.split('/')[1]}" for original, own in pairs))
    return Sheet(f"{what}: accumulators in local memory / in registers, {way}", header, tuple(rows))


def _methods(entries: Sequence[Document], way: str, what: str) -> Sheet:
    """Hold each of our methods against what is chosen."""
    tables = {entry["input"]: times for entry in entries if POOLED in (times := times_of(entry, way))}
    names = sorted({name for times in tables.values() for name in times if name.split("/")[0] == POOLED.split("/")[0]} - {POOLED})
    rows = [
        (key, _microseconds(times[POOLED]), *(f"{times[name] / times[POOLED]:.2f}" if name in times else "" for name in names))
        for key, times in tables.items()
    ]
    header = ("input", "auto µs", *(name.split("/")[1] for name in names))
    return Sheet(f"{what}: time of each method / time of {POOLED}, {way}", header, tuple(rows))


def _ratios(tables: dict[str, dict[str, float]], ours: str) -> dict[str, dict[str, float]]:
    """Return each contestant's times over ours, by contestant and input."""
    names = sorted({name for times in tables.values() for name in times} - {ours})
    return {name: {key: times[name] / times[ours] for key, times in tables.items() if name in times} for name in names}


def _of_ratios(ratios: dict[str, dict[str, float]], title: str) -> Sheet:
    rows = []
    for name, by_input in ratios.items():
        worst, best_of = (extreme(by_input, key=by_input.__getitem__) for extreme in (min, max))
        faster = sum(ratio >= 1 for ratio in by_input.values())
        ends = (f"{by_input[worst]:.2f}", worst, f"{by_input[best_of]:.2f}", best_of)
        rows.append((name, f"{geometric_mean(by_input.values()):.2f}", *ends, f"{faster} of {len(by_input)}"))
    header = ("contestant", "geometric mean", "smallest", "on", "largest", "on", "ours at least as fast")
    return Sheet(title, header, tuple(rows))


def _details(entries: Sequence[Document], way: str, what: str) -> Sheet:
    ways = ("single", "busy", "host")
    columns = ("µs", "spread", "share", *(f"{way} µs" for way in ways), "plan ms", "first ms", "error")
    header = ("input", "contestant", *columns, "detail")
    rows = []
    for entry in entries:
        times = times_of(entry, way)
        for record in entry["contestants"]:
            if "samples" not in record:
                rows.append((entry["input"], record["name"], *[""] * len(columns), record.get("failure") or record["declined"]))
                continue
            samples, once, seconds = record["samples"], record.get("once", {}), times[record["name"]]
            rows.append(
                (
                    entry["input"],
                    record["name"],
                    _microseconds(seconds),
                    f"{_spread(samples.get(way) or samples['back_to_back']):.0%}",
                    f"{entry['floor'] / seconds:.2f}",
                    *(_microseconds(_median(samples.get(way))) for way in ways),
                    _milliseconds(once.get("plan")),
                    _milliseconds(once.get("first_call")),
                    f"{record['error']:.2f}" if "error" in record else "",
                    record.get("detail", ""),
                )
            )
    title = f"{what}: all contestants; spread is the middle half of the samples, error is in bounds of rounding"
    return Sheet(title, header, tuple(rows))


def _beyond_device(entry: Document, ours: str) -> float | None:
    """Return what a call of ours that waits takes beyond the device's own time."""
    samples: dict[str, list[float]] = next((r.get("samples", {}) for r in entry["contestants"] if r["name"] == ours), {})
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


# By kind, in the order of a report.
_MAKERS: dict[str, Callable[[Sequence[Document], str, str], Sheet]] = {
    "summary": _summary,
    "rounds": _rounds,
    "comparison": _comparison,
    "values": _values,
    "published": _compare_published,
    "registers": _registers,
    "methods": _methods,
    "details": _details,
}
