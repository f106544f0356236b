"""docs/promises.md names tests that are there."""

from __future__ import annotations

import pytest
from pages import DOCS, check_tests

PAGE = DOCS / "promises.md"


def sections() -> dict[str, list[tuple[str, str]]]:
    """Return the rows of each table of the page."""
    results: dict[str, list[tuple[str, str]]] = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            results[line[3:]] = []
        elif line.startswith("| ") and not line.startswith(("| --- ", "| promise ", "| what ")):
            left, right = line.strip("| ").split(" | ")
            results[list(results)[-1]].append((left, right))
    return results


SHOWN = [row for name, rows in sections().items() if name != "Not promised" for row in rows]


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row[0][:50])
def test_each_promise_has_its_test(row: tuple[str, str]) -> None:
    assert check_tests(row[1]) == "", "what is beside a promise is tests alone"


def test_what_is_not_promised_says_by_whom() -> None:
    assert all(what and by_whom for what, by_whom in sections()["Not promised"])
    assert len(SHOWN) > 20
