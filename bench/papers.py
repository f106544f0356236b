"""Tables and figures of the papers beside ours, from files in ``bench/results/``: what `docs/papers.md` holds.

`bench.published` has the papers' numbers. A row without ours says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import gallery, published, results
from bench.report import Sheet
from bench.times import geometric_mean, times_of

#: Files with products of sparse matrices by methods, or beside cuSPARSE; the first that has both sides of a ratio gives it.
_PRODUCTS = (
    "h100-amg.json",
    "h100-spgemm-uf.json",
    "h200-amg-uf.json",
    "h100-spgemm-methods-grids.json",
    "h100-spgemm-methods.json",
    "h100-spgemm.json",
)
#: Choices that `bench.oracle` compares ``auto`` with, of the kinds in Hou et al.
_CHOICES = ("serial", "vector", "adaptive", "the best scheme with bins")


def hou(folder: Path) -> Sheet:
    """Return Hou et al., Figures 6, 7 and 9, on what stands for the matrices of Table II."""
    tables = json.loads((folder / "oracle-h100.json").read_text())["tables"]
    table = next(table for table in tables if (table["family"], table["dtype"]) == ("suite-table2", "float64"))
    cases = {case["case"]: case for case in table["matrices"]}
    rows, ratios = [], []
    for real, generated in gallery.TABLE_2:
        name = real if real in cases else generated
        case = cases[name]
        times = dict(zip(table["choices"], case["microseconds"], strict=True))
        ratios.append([times[choice] / times["auto"] for choice in _CHOICES])
        sizes = (f"{case['features'][size]:,.0f}" for size in ("rows", "nnz"))
        rows.append((real, "itself" if name == real else name, *sizes, f"{times['auto']:.1f}", *map(_ratio, ratios[-1])))
    rows.append(("geometric mean", "", "", "", "", *(_ratio(geometric_mean(column)) for column in zip(*ratios, strict=True))))
    header = (
        "Table II",
        "ours",
        "rows",
        "entries",
        "auto µs",
        *(f"{name} / auto" for name in ("serial", "vector", "adaptive", "bins")),
    )
    return Sheet("Hou et al., Figures 6, 7 and 9", header, tuple(rows))


def dalton(folder: Path) -> Sheet:
    """Return Dalton et al., Tables 11, 13 and 14: the optimised ESC, and cuSPARSE."""
    entries = [
        (name.partition("-")[0].upper(), entry)
        for name in _PRODUCTS
        if (folder / name).exists()
        for entry in results.read(folder / name)["entries"]
        if entry["dtype"] == "float64"
    ]
    rows = []
    for table, paper, ours, (reference, optimised, cusparse) in published.DALTON:
        esc = _time_ratio(entries, ours, "clsparse/esc", "clsparse/esc-local")
        chosen = _time_ratio(entries, ours, "cusparse/spgemm", "clsparse/auto")
        device = esc[1] if esc else chosen[1] if chosen else ""
        cells = (f"{ratio[0]:.1f}" if ratio else "" for ratio in (esc, chosen))
        why = published.WITHOUT.get(ours, "" if esc and chosen else published.WITHOUT_PART.get(ours, "not measured"))
        rows.append((paper, table, f"{reference / optimised:.1f}", f"{cusparse / optimised:.1f}", ours, *cells, device, why))
    theirs = ("table", "reference / optimised", "cuSPARSE / optimised")
    own = ("ours", "esc / esc-local", "cuSPARSE / auto", "on", "blank, because")
    return Sheet("Dalton et al., Tables 11, 13 and 14", ("matrix", *theirs, *own), tuple(rows))


def _time_ratio(entries: Sequence[tuple[str, Any]], name: str, numerator: str, denominator: str) -> tuple[float, str] | None:
    """Return the ratio of two contestants' times on an input, and the device."""
    for device, entry in entries:
        times = times_of(entry, "back_to_back")
        if entry["input"] == name and {numerator, denominator} <= times.keys():
            return times[numerator] / times[denominator], device
    return None


def dalton_phases(folder: Path) -> Sheet:
    """Return Dalton et al., Table 10: the phases of the optimised ESC, in milliseconds."""
    products = _phases(folder)
    rows = []
    for paper, ours, (analysis, work, reordering) in published.DALTON_PHASES:
        theirs = (*(f"{milliseconds:.1f}" for milliseconds in (analysis, work, reordering)), _share(analysis + reordering, work))
        result = products.get(ours)
        cells = ("", "", "")
        if result:
            own = {phase: 1e3 * seconds for phase, seconds in result["seconds"]["esc-local"].items()}
            rest = own["symbolic"] + own["allocation"] + own["numeric"]
            cells = (f"{own['analysis']:.2f}", f"{rest:.2f}", _share(own["analysis"], rest))
        rows.append((paper, *theirs, ours, *cells, published.WITHOUT.get(ours, "")))
    theirs_too = ("analysis", "expand, sort, contract", "reorder", "share of the first and last")
    own_too = ("analysis and reordering", "the rest", "share")
    return Sheet("Dalton et al., Table 10", ("matrix", *theirs_too, "ours", *own_too, "blank, because"), tuple(rows))


def _phases(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "h100-spgemm-phases.json").read_text())
    return {product["input"]: product for product in document["products"]}


def _share(part: float, rest: float) -> str:
    return f"{100 * part / (part + rest):.0f} %"


def dalton_factors(folder: Path) -> Sheet:
    """Return Dalton et al., Table 9 and Figures 5, 8 and 12: factors of rows, classes of rows, sorts by the bits in use."""
    rows = []
    for name, product in _phases(folder).items():
        factors = (f"{product[kind][2]:.2f} ({product[kind][3]:.2f})" for kind in ("expansion", "contraction"))
        shares = ", ".join(f"{100 * count / sum(product['rows']):.0f}" for count in product["rows"])
        sort = product["sort"]
        rows.append((name, *factors, shares, f"{sort['bits']}", f"{sort['all'] / sort['used']:.2f}"))
    of_rows = ("expansion, mean (deviation)", "contraction", "% of rows under 128 products, 1024, more")
    header = ("product", *of_rows, "bits in use", "sort by all 64 / by these")
    return Sheet("Dalton et al., Table 9, Figures 5, 8 and 12", header, tuple(rows))


def liu(folder: Path) -> Sheet:
    """Return Liu et al., Figures 9 to 11: accumulators in registers beside those in local memory."""
    documents = [results.read(folder / f"h100-spgemm-{name}.json") for name in ("bins", "methods-grids", "methods")]
    rows = []
    for figure, original, theirs in published.LIU:
        pair = (f"clsparse/{original}", f"clsparse/reg-{original}")
        for what, way, (mean, most) in zip(("kernels", "whole products"), ("busy", "back_to_back"), theirs, strict=True):
            cells = (_mean_and_most(list(_pairs(document, pair, way))) for document in documents)
            rows.append((f"Figure {figure}, reg-{original}", what, f"{mean:.1f} ({most:.1f})", *cells))
    return Sheet(
        "Liu et al., Figures 9 to 11",
        ("figure", "", "theirs, mean (most)", "ours: rows of one length", "grids", "uneven"),
        tuple(rows),
    )


def _pairs(document: results.Document, pair: tuple[str, str], way: str) -> Iterator[float]:
    for entry in document["entries"]:
        times = times_of(entry, way)
        if times.keys() >= set(pair):
            yield times[pair[0]] / times[pair[1]]


def _mean_and_most(ratios: list[float]) -> str:
    return f"{geometric_mean(ratios):.2f} ({max(ratios):.2f})"


def _ratio(number: float) -> str:
    return f"{number:.2f}"


#: Functions that make the tables of the papers, by the tables' names.
SHEETS: dict[str, Callable[[Path], Sheet]] = {
    "hou": hou,
    "dalton": dalton,
    "dalton-phases": dalton_phases,
    "dalton-factors": dalton_factors,
    "liu": liu,
}
