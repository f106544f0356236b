"""Pages of docs/ that name what is in the code: quirks by number, and the words of the glossary."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pages import DOCS, ROOT, check_tests, definitions, rows

#: Where quirks are cited and words used.
CODE = ("clsparse_py", "cl", "templates")
#: What an entry says, in this order.
FIELDS = ("Seen", "Does", "We", "Test")


def entries() -> dict[int, dict[str, str]]:
    """Return the entries of docs/quirks.md by their numbers."""
    _, *parts = re.split(r"^### ", (DOCS / "quirks.md").read_text(), flags=re.M)
    results: dict[int, dict[str, str]] = {}
    for part in parts:
        number, _, body = part.partition(". ")
        assert int(number) not in results, f"{number} is given twice"
        said = re.split(rf"^- ({'|'.join(FIELDS)}): ", body.partition("\n## ")[0], flags=re.M)
        results[int(number)] = {name: " ".join(text.split()) for name, text in zip(said[1::2], said[2::2], strict=True)}
    return results


def cited_numbers() -> dict[int, str]:
    """Return the numbers that are cited, with a file that does."""
    results: dict[int, str] = {}
    for path in files(*CODE, "tests", "bench", "docs", "Makefile", ".ci", "README.md"):
        if path.name not in ("quirks.md", Path(__file__).name):
            for numbers in re.findall(r"[Qq]uirks? (\d+(?:(?:, | and )\d+)*)", path.read_text()):
                results.update((int(number), str(path)) for number in re.findall(r"\d+", numbers))
    return results


def files(*below: str) -> list[Path]:
    """Return the text files of the project's folders."""
    suffixes = (".py", ".cl", ".mako", ".md", ".toml", "")
    all_files = (path for name in below for path in ((ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name]))
    return [
        path for path in all_files if path.is_file() and path.suffix in suffixes and "results" not in path.relative_to(ROOT).parts
    ]


@pytest.mark.parametrize("number", list(entries()))
def test_each_quirk_is_told_whole_and_names_tests(number: int) -> None:
    entry = entries()[number]
    assert tuple(entry) == FIELDS
    assert all(entry.values())
    assert re.search(r"20\d\d-\d\d-\d\d", entry["Seen"]), "has no date"
    if not re.match("none: .", entry["Test"]):
        check_tests(entry["Test"])


def test_quirks_are_numbered_upwards_and_cited_by_number() -> None:
    told, by = entries(), cited_numbers()
    assert list(told) == sorted(told)
    assert not by.keys() - told.keys(), {number: by[number] for number in by.keys() - told.keys()}
    assert not told.keys() - by.keys(), "no one cites these"


def test_words_of_the_glossary_are_in_the_code() -> None:
    text = "".join(path.read_text() for path in files(*CODE))
    words = [word for ours, *_ in rows((DOCS / "glossary.md").read_text()) for word in re.findall(r"`([^`]+)`", ours)]
    assert len(words) > 50
    assert [word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)] == []


def test_rows_of_the_glossary_are_whole() -> None:
    assert all(len(row) == 4 and row[0] and row[1] for row in rows((DOCS / "glossary.md").read_text()))


def test_the_way_of_a_product_names_functions_and_templates_that_are_there() -> None:
    text = (DOCS / "follow-a-product.md").read_text()
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if name not in definitions(ROOT / "clsparse_py" / path)] == []
    templates = re.findall(r"`(templates/[\w/]+\.mako)`", text)
    assert len(templates) > 5
    assert [name for name in templates if not (ROOT / name).is_file()] == []
    assert text.count("::") == len(named), "something looks like a function and is none"


def test_files_that_contributors_are_sent_to_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"(?<![\w/<])((?:clsparse_py|tests|templates|cl|docs)/[\w/.-]+\.\w+)", text))
    assert len(named) > 20
    assert [name for name in sorted(named) if "NAME" not in name and not (ROOT / name).is_file()] == []


def test_the_rooms_of_the_page_are_those_of_the_package() -> None:
    """In the order of the import contract, each with its docstring."""
    shown = dict(re.findall(r"^\| `(_[a-z]+)` \| ([A-Z].*) \|$", (DOCS / "architecture.md").read_text(), re.MULTILINE))
    rooms = [path.parent for path in (ROOT / "clsparse_py").glob("_*/__init__.py")]
    assert shown == {room.name: ast.get_docstring(ast.parse((room / "__init__.py").read_text())) for room in rooms}
    contract = re.search(r'name = "Rooms.*?layers = \[(.*?)\n\]', (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert contract is not None
    assert re.findall(r'^    "clsparse_py\.(_\w+)",', contract[1], re.MULTILINE) == list(shown)
