"""Checks of pages of docs/: the tests that they name, and tables."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

__all__ = ["DOCS", "ROOT", "check_tests", "definitions", "rows"]

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_NAMED = r"`([\w/]+\.py)::(\w+)`"


@functools.cache
def definitions(path: Path) -> set[str]:
    """Return the names of the functions, methods and classes of a file."""
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def check_tests(text: str) -> str:
    """Check that tests are named, and that each is there; return what stands beside them."""
    named = re.findall(_NAMED, text)
    assert named, f"no test is named in {text!r}"
    for path, name in named:
        assert name in definitions(ROOT / "tests" / path), f"{path} has no {name}"
    return re.sub(_NAMED, "", text).strip(" ,")


def rows(text: str) -> list[list[str]]:
    """Return the cells of each row of a page's tables, their heads left out."""
    lines = text.splitlines()
    ruled = [number for number, line in enumerate(lines) if line.startswith("| ---")]
    heads = {line for number in ruled for line in (number - 1, number)}
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for number, line in enumerate(lines)
        if line.startswith("|") and number not in heads
    ]
