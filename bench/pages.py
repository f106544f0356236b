"""Pages of documentation with tables and figures from results files.

A table stands between two comments, and is made anew from the file that the first one names, relative to the page::

    <!-- bench ../bench/results/h100-sptrans.json comparison sptrans float64 single -->
    <!-- end of bench -->

After the kind of table come operation, dtype and way of timing (``back_to_back`` if left out), as `report.sheet` takes them;
``run`` alone tells what ran where, ``primitives`` alone lists all of them, ``wall`` alone is the table of `bench.wall`,
``first`` alone is the table of `bench.first_product`. Of a file that is not there yet, there is no table.
Of a folder of results files, ``glance`` is the table of `bench.glance`, ``history`` says what each file holds, and the names in
`bench.papers.SHEETS` are tables of papers beside ours.

A figure within a line stands between comments of its own: a contestant's time / ours, the ``mean`` (geometric), ``least``,
``greatest`` or ``count`` over the matrices, or ``all`` four of them in cells of a row::

    <!-- figure ../bench/results/h200-spgemm.json spgemm float64 cusparse/spgemm mean -->3.76<!-- -->
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench import first_product, glance, papers, report, results, wall
from bench.times import geometric_mean
from clsparse_py._ground.files import write_text

# A table of a page between its comments: results file, kind of table and options.
_TABLE = re.compile(r"(<!-- bench (\S+) (\S+)((?: (?!-->)\S+)*) -->\n).*?(<!-- end of bench -->)", re.DOTALL)
# A number of a page between its comments: what it is computed of, and how.
_FIGURE = re.compile(r"(<!-- figure (\S+) (\S+) (\S+) (\S+) (\S+)(?: (\S+))? -->)[^<]*(<!-- -->)")
# Statistics by which a number of a page is computed.
_STATISTICS = {"mean": geometric_mean, "least": min, "greatest": max, "count": len}


def filled(page: Path) -> str:
    """Return a page's text with its tables and figures made anew.

    Raises
    ------
    ValueError
        If a comment names a table, an operation, a dtype or a contestant that there is not.
    """

    def table(result: re.Match[str]) -> str:
        begin, file, kind, of, end = result.groups()
        path = page.parent / file
        if not path.exists():
            return begin + end
        return f"{begin}\n{_sheet(path, kind, of.split()).as_markdown(title=False)}\n{end}"

    def figure(result: re.Match[str]) -> str:
        begin, file, operation, dtype, contestant, statistic, way, end = result.groups()
        ratios = glance.ratios(results.read(page.parent / file), operation, dtype, contestant, way or "back_to_back")
        names = _STATISTICS if statistic == "all" else (statistic,)
        numbers = ((name, _STATISTICS[name](ratios)) for name in names)
        return begin + " | ".join(str(number) if name == "count" else f"{number:.2f}" for name, number in numbers) + end

    return _FIGURE.sub(figure, _TABLE.sub(table, page.read_text()))


def _sheet(path: Path, kind: str, of: list[str]) -> report.Sheet:
    """Return the table of a kind of a results file, or of a folder of them."""
    if path.is_dir():
        return {"glance": glance.sheet, "history": report.history_sheet, **papers.SHEETS}[kind](path)
    if kind == "first":
        return first_product.sheet(json.loads(path.read_text()))
    document = results.read(path)
    whole = {"run": report.run_sheet, "primitives": report.primitives_sheet, "wall": wall.sheet}
    return whole[kind](document) if kind in whole else report.sheet(document, kind, *of)


def fill(page: Path) -> bool:
    """Make a page's tables and figures anew, and return whether that changed it."""
    text = filled(page)
    changed = text != page.read_text()
    if changed:
        write_text(page, text)
    return changed
