"""Code blocks of README and of the pages in docs/ run, page by page, on the default device.

`make examples` runs this file in the site's environment, which has PyAMG; it uses no fixture of `conftest`.
"""

from __future__ import annotations

import ast
import importlib.util
import re

import pytest
from pages import DOCS, ROOT

import clsparse_py
from clsparse_py._device.device import describe

PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if "generated" not in path.parts
}
#: What the code of a page is about, if it does not say so itself.
GIVEN = {
    "docs/spgemm.md": """
import clsparse_py
A, B = (clsparse_py.random_array((30, 30), density=0.1, format="csr") for _ in range(2))
a_data, b_data = A.data, B.data
"""
}


def blocks(page: str) -> list[str]:
    """Return the Python code of a page."""
    return re.findall(r"^```python\n(.*?)^```", PAGES[page].read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def lacks(code: str) -> list[str]:
    """Return the packages that code imports and that are not installed."""
    named = [
        name
        for node in ast.walk(ast.parse(code))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    return [name for name in named if name and importlib.util.find_spec(name.partition(".")[0]) is None]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_code_of_a_page_runs(page: str) -> None:
    if not describe(clsparse_py.default_queue().device).fp64:
        pytest.skip("pages have values of double precision")
    names: dict[str, object] = {"__name__": "page"}
    exec(GIVEN.get(page, ""), names)
    missing: set[str] = set()
    for number, code in enumerate(blocks(page), 1):
        if lacks(code):
            missing.update(lacks(code))
            continue
        try:
            exec(compile(code, f"{page}, block {number}", "exec"), names)
        except NameError:
            # What a block that was left out would have defined.
            if not missing:
                raise
    if missing:
        pytest.skip(f"without {', '.join(sorted(missing))} blocks of the page are not run")


def test_most_pages_for_users_have_code() -> None:
    assert len([page for page in PAGES if blocks(page)]) > 15
