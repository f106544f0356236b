"""docs/promises.md names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promises.md"


def sections() -> dict[str, list[tuple[str, str]]]:
    """Return the rows of each table of the page."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            found[line[3:]] = []
        elif line.startswith("| ") and not line.startswith(("| --- ", "| promise ", "| what ")):
            left, right = line.strip("| ").split(" | ")
            found[list(found)[-1]].append((left, right))
    return found


SHOWN = [row for name, rows in sections().items() if name != "Not promised" for row in rows]


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row[0][:50])
def test_each_promise_has_its_test(row: tuple[str, str]) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row[1])
    assert named, "no test is named"
    assert re.sub(r"`[\w/]+\.py::\w+`", "", row[1]).strip(" ,") == "", "what is beside a promise is tests alone"
    for path, name in named:
        assert name in functions(ROOT / "tests" / path), f"{path} has no {name}"


def test_what_is_not_promised_says_by_whom() -> None:
    assert all(what and by_whom for what, by_whom in sections()["Not promised"])
    assert len(SHOWN) > 20
