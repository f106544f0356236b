"""The results file: one JSON document, checked against ``schema.json``, written whole or not at all."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema

from clsparse_py.files import write_text

Document = dict[str, Any]

SCHEMA = Path(__file__).with_name("schema.json")
VERSION = 2
# Parts of a file that must be the same for a run to continue it.
_IDENTITY = ("machine", "versions", "commit")


class CannotContinueError(Exception):
    """A results file holds another run."""


@functools.cache
def _validator() -> Callable[[Document], Document]:
    compiled: Callable[[Document], Document] = fastjsonschema.compile(json.loads(SCHEMA.read_text()))
    return compiled


def read(path: Path) -> Document:
    """Return a results file's document.

    Raises
    ------
    ValueError
        If it is not one.
    """
    try:
        return _validator()(_in_todays_terms(json.loads(path.read_text())))
    except (json.JSONDecodeError, fastjsonschema.JsonSchemaValueException) as error:
        raise ValueError(f"{path}: not a results file: {error}") from error


def _in_todays_terms(document: Any) -> Any:
    """Return a document of schema 1, whose inputs were all matrices and were called so, as one of schema 2."""
    if isinstance(document, dict) and document.get("schema") == 1:
        document["schema"] = VERSION
        for entry in document.get("entries", []):
            entry["input"] = entry.pop("matrix", None)
    return document


def write(path: Path, document: Document) -> None:
    """Check a document and put it in its place in one step, so that a run that is stopped leaves the last whole one."""
    _validator()(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def continued(path: Path, new: Document) -> Document:
    """Return the document to add entries to: the file's where it holds the same run as ``new``, else ``new``.

    Raises
    ------
    CannotContinueError
        If the file holds a run on another machine, of another commit or with other versions.
    """
    if not path.exists():
        return new
    old = read(path)
    for part in _IDENTITY:
        # A peer that only one of the two runs uses does not set them apart.
        changed = sorted(key for key in old[part].keys() & new[part].keys() if old[part][key] != new[part][key])
        if changed:
            was, now = ({key: side[part][key] for key in changed} for side in (old, new))
            raise CannotContinueError(
                f"{path} holds a run with another {part}: {was}, now {now}; name another file, or start it anew with --fresh"
            )
    # Times are held against the bandwidth of the process that measured them; entries keep the floor that was theirs.
    return {
        **new,
        "versions": {**old["versions"], **new["versions"]},
        "date": old["date"],
        "copies": old["copies"] + new["copies"],
        "first_product": old["first_product"],
        "entries": old["entries"],
    }


def find(document: Document, name: str, operation: str, dtype: str) -> Document | None:
    """Return the entry of an input, an operation and a dtype, or None."""
    wanted = (name, operation, dtype)
    return next((e for e in document["entries"] if (e["input"], e["operation"], e["dtype"]) == wanted), None)


def put(document: Document, entry: Document) -> None:
    """Add an entry, in place of an older one of the same problem."""
    old = find(document, entry["input"], entry["operation"], entry["dtype"])
    if old is not None:
        document["entries"].remove(old)
    document["entries"].append(entry)
