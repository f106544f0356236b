"""Results files: JSON documents, written whole or not at all.

A results file is a summary, checked against ``summary.json``; a samples file has every sample, and is checked against
``schema.json``. Read, both are documents with entries; those of a summary have the few samples that it keeps.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fastjsonschema

from bench import summaries
from bench.summaries import Document
from clsparse_py._ground.files import write_text

# Schema version of samples files.
VERSION = 2
# Schema version of summaries.
SUMMARY = 3
# Files of the schemas by version.
_SCHEMAS = {VERSION: "schema.json", SUMMARY: "summary.json"}
# Parts of a file that must be the same for a run to continue it.
_IDENTITY = ("machine", "versions", "commit")


class CannotContinueError(Exception):
    """A results file holds another run."""


@functools.cache
def _validator(version: int) -> Callable[[Document], Document]:
    schema = Path(__file__).with_name(_SCHEMAS[version])
    compiled: Callable[[Document], Document] = fastjsonschema.compile(json.loads(schema.read_text()))
    return compiled


def read(path: Path) -> Document:
    """Return a results file's document.

    Raises
    ------
    ValueError
        If it is not one.
    """
    try:
        document = json.loads(path.read_text())
        if isinstance(document, dict) and document.get("schema") == SUMMARY:
            return summaries.expand(_validator(SUMMARY)(document))
        return _validator(VERSION)(document)
    except (json.JSONDecodeError, fastjsonschema.JsonSchemaValueException) as error:
        raise ValueError(f"{path}: not a results file: {error}") from error


def write(path: Path, document: Document, *, samples: bool = False) -> None:
    """Check a document and put it in its place in one step, so that a run that is stopped leaves the last whole one.

    Parameters
    ----------
    samples
        Write every sample, not their summary.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if samples:
        write_text(path, json.dumps(_validator(VERSION)(document), indent=1, allow_nan=False) + "\n")
    else:
        summary = {**summaries.summarise(document), "schema": SUMMARY}
        write_text(path, summaries.as_text(_validator(SUMMARY)(summary)) + "\n")


@dataclass(frozen=True)
class Output:
    """A file that a run adds entries to, with all samples or as a summary."""

    path: Path
    document: Document
    samples: bool = False

    def add(self, entry: Document) -> None:
        """Add an entry and write the file."""
        put_entry(self.document, entry)
        write(self.path, self.document, samples=self.samples)


def load_or_start(path: Path, new: Document, *, samples: bool = False) -> Document:
    """Return the document to add entries to: the file's where it holds the same run as ``new``, else a copy of ``new``.

    Parameters
    ----------
    samples
        The file shall hold every sample.

    Raises
    ------
    CannotContinueError
        If the file holds a run on another machine, of another commit or with other versions, or lacks samples.
    """
    if not path.exists():
        return copy.deepcopy(new)
    old = read(path)
    if samples and old["schema"] == SUMMARY:
        raise CannotContinueError(f"{path} holds summaries, no samples; name another file, or start it anew with --fresh")
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
        **copy.deepcopy(new),
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


def put_entry(document: Document, entry: Document) -> None:
    """Add an entry, in place of an older one of the same problem."""
    old = find(document, entry["input"], entry["operation"], entry["dtype"])
    if old is not None:
        document["entries"].remove(old)
    document["entries"].append(entry)
