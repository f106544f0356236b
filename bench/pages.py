"""Pages of documentation with tables from results files.

A table stands between two comments, and is made anew from the file that the first one names, relative to the page::

    <!-- bench ../bench/results/h100-sptrans.json comparison sptrans float64 single -->
    <!-- end of bench -->

After the kind of table come operation, dtype and way of timing (``back_to_back`` if left out), as `report.sheet` takes them;
``run`` alone tells what ran where, ``primitives`` alone lists all of them. Of a file that is not there yet, there is no table.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench import report, results
from clsparse_py.files import write_text

_TABLE = re.compile(r"(<!-- bench (\S+) (\S+)((?: (?!-->)\S+)*) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def filled(page: Path) -> str:
    """Return a page's text with its tables made anew.

    Raises
    ------
    ValueError
        If a comment names a table, an operation or a dtype that there is not.
    """

    def table(found: re.Match[str]) -> str:
        begin, file, kind, of, end = found.groups()
        path = page.parent / file
        if not path.exists():
            return begin + end
        document = results.read(path)
        whole = {"run": report.run_sheet, "primitives": report.primitives_sheet}
        sheet = whole[kind](document) if kind in whole else report.sheet(document, kind, *of.split())
        return f"{begin}\n{sheet.as_markdown(title=False)}\n{end}"

    return _TABLE.sub(table, page.read_text())


def fill(page: Path) -> bool:
    """Make a page's tables anew, and return whether that changed it."""
    text = filled(page)
    changed = text != page.read_text()
    if changed:
        write_text(page, text)
    return changed
