"""The site and the files for a release: links lead somewhere, every public name has a page, and what was not run says so."""

from __future__ import annotations

import ast
import fnmatch
import re
from pathlib import Path
from types import ModuleType

import pytest
from pages import DOCS, ROOT

import clsparse_py
from clsparse_py import amg, distributed, graph, linalg, primitives
from clsparse_py._precision.semiring import SEMIRINGS

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the tests do not run from a checkout")

TEXTS = sorted(
    path
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "bench").glob("*.md"), *(ROOT / "examples").glob("*.rst"))
    if "generated" not in path.parts
)
#: Names that need no page of their own: modules, SciPy's names, and instances that stand on their class's page.
WITHOUT_PAGE = re.compile(
    rf"isspmatrix|Sparse\w*Warning|(dia|dok|lil)_array|{'|'.join(SEMIRINGS)}|amg|csgraph|distributed|graph|io|linalg|primitives"
)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's titles."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?\n```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        result = (page.parent / path).resolve() if path else page
        assert result.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(result), f"{path} has no title for #{anchor}"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_page_is_in_a_list_of_pages(page: Path) -> None:
    if "generated" in page.parts or (page.name == "index.md" and page.parent == DOCS):
        return
    lists = "".join(path.read_text("utf-8") for path in DOCS.rglob("*.md") if "```{toctree}" in path.read_text("utf-8"))
    name = page.relative_to(DOCS).with_suffix("").as_posix()
    assert name in lists.split() or page.stem in lists.split() or page.parent.name == "decisions"


def test_every_public_name_has_a_page() -> None:
    listed = set(
        re.findall(
            r"^   (?:\w+\.)*(\w+)$", "".join(path.read_text() for path in (DOCS / "api").glob("*.rst")), flags=re.MULTILINE
        )
    )
    told = "".join(path.read_text() for path in (DOCS / "api").glob("*.rst"))
    modules: tuple[ModuleType, ...] = (clsparse_py, amg, distributed, graph, linalg, primitives)
    names = {name for module in modules for name in module.__all__}
    ours = {name for name in linalg.__all__ if getattr(linalg, name).__module__.startswith("clsparse_py")}
    assert not ours - listed, "docs/api/linalg.rst lists functions of ours"
    assert not {name for name in names - listed if not WITHOUT_PAGE.match(name) and f"``{name}``" not in told}


def code(page: Path) -> str:
    """Return the Python of a page, whose blocks `test_code_blocks` runs."""
    return "".join(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE))


def test_every_method_of_the_arrays_has_an_example() -> None:
    shown = set(re.findall(r"\w+", (DOCS / "methods.md").read_text("utf-8")))
    for cls in (clsparse_py.csr_array, clsparse_py.csc_array, clsparse_py.coo_array):
        without = [name for name in dir(cls) if not name.startswith("_") and ">>>" not in (getattr(cls, name).__doc__ or "")]
        # Conversions stand there as to{name}.
        assert [name for name in without if name not in shown and name.removeprefix("to") not in shown] == [], cls.__name__


def test_pages_that_teach_have_code() -> None:
    teaching = [*DOCS.glob("howto/*.md"), *DOCS.glob("concepts/*.md")]
    teaching += [DOCS / f"{name}.md" for name in ("arrays", "index", "linalg", "methods", "spgemm", "start")]
    assert [page.name for page in teaching if page.parent == DOCS or page.name != "index.md" if not code(page)] == []


def test_results_files_that_pages_name_are_there() -> None:
    there = {path.name for path in (ROOT / "bench" / "results").iterdir()}
    pattern = r"`(?:bench/results/)?((?:cpu|h100|h200|intel|oracle)-[\w*-]+\.(?:json|md|png))`"
    named = {(page.name, name) for page in TEXTS for name in re.findall(pattern, page.read_text("utf-8"))}
    assert len(named) > 20
    assert [name for name in sorted(named) if not fnmatch.filter(there, name[1])] == []


def test_figures_that_pages_show_are_there_and_are_drawn() -> None:
    shown = {
        Path(name).stem
        for page in TEXTS
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text("utf-8"))
        if "figures" in name
    }
    drawn = {path.stem for path in (DOCS / "figures").glob("*.svg")}
    assert shown == drawn
    program = (DOCS / "figures" / "draw.py").read_text("utf-8")
    assert all(f'"{name}"' in program for name in drawn - {"speed"})


def test_the_version_is_said_in_one_place() -> None:
    for name in ("CITATION.cff", "conda/recipe.yaml"):
        said = re.search(r'^ *version: "?([\d.]+)"?$', (ROOT / name).read_text("utf-8"), flags=re.MULTILINE)
        assert said is not None
        assert said[1] == clsparse_py.__version__
    assert f"## {clsparse_py.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_recipe_asks_for_what_the_package_needs() -> None:
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    needed = re.search(
        r"^dependencies = (\[\n.*?^\])$", (ROOT / "pyproject.toml").read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    assert needed is not None
    listed = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, flags=re.MULTILINE)
    assert listed is not None
    asked = {line.removeprefix("    - ").replace(" ", "") for line in listed[1].splitlines()}
    assert asked == set(ast.literal_eval(needed[1])) | {"python>=3.10"}


def test_every_package_is_installed() -> None:
    folders = {path.parent for path in (ROOT / "clsparse_py").rglob("*.py")} - {ROOT / "clsparse_py" / "samples"}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_what_was_not_run_says_so() -> None:
    for path in (*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "conda" / "recipe.yaml"):
        assert re.search(r"\bnot (run|built)\b", path.read_text("utf-8").splitlines()[0]), path.name
