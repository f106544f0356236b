"""Templates filled in, and OpenCL C with what it includes put in place.

Rendered sources are kept on disk under the template's text and arguments: rendering takes milliseconds, and importing Mako takes
longer than everything else that a later process does before its first product.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clsparse_py import cache

if TYPE_CHECKING:
    from mako.template import Template

__all__ = ["INCLUDES", "TEMPLATES", "expand", "fill"]


def _folder(name: str) -> Path:
    """Return a folder of sources: within the package once that is installed, beside it in a checkout."""
    package = Path(__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name


#: The folders of templates and of what they include.
TEMPLATES, INCLUDES = _folder("templates"), _folder("cl")

_INCLUDE = re.compile(r'^#include "([\w.]+)"$', flags=re.MULTILINE)
# Of another template, whose defs are used.
_NAMESPACE = re.compile(r'<%namespace[^>]*\bfile="([\w/]+)"')


def fill(template: str, arguments: Mapping[str, object]) -> str:
    """Return what a template becomes.

    Parameters
    ----------
    template : str
        Its name, such as "spmv/subvector".
    arguments : mapping of str to object
        Numbers, strings, booleans and tuples of them, which tell themselves apart as text.
    """
    key = cache.key_of("template", *_texts(template), repr(sorted(arguments.items())))
    kept = cache.load(key, bytes.decode)
    if kept is None:
        kept = str(_template(template).render(**arguments))
        cache.write(key, kept.encode())
    return kept


def expand(text: str) -> str:
    """Return OpenCL C with the files of ``cl/`` that it includes put in place, each once."""
    seen: set[str] = set()

    def put(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return f"// ---- cl/{name}\n{_INCLUDE.sub(put, _included(name))}\n// ---- end of cl/{name}"

    return _INCLUDE.sub(put, text)


@functools.cache
def _text(name: str) -> str:
    return (TEMPLATES / f"{name}.mako").read_text(encoding="utf-8")


@functools.cache
def _texts(name: str) -> tuple[str, ...]:
    """Return the text of a template and of all whose defs it uses, directly or not."""
    return _text(name), *(text for used in _NAMESPACE.findall(_text(name)) for text in _texts(used))


@functools.cache
def _included(name: str) -> str:
    return (INCLUDES / name).read_text(encoding="utf-8")


class _Templates:
    """Where a template finds others whose defs it uses, by their names."""

    def get_template(self, uri: str) -> Template:
        return _template(uri)

    def adjust_uri(self, uri: str, _relative_to: str) -> str:
        return uri


@functools.cache
def _template(name: str) -> Template:
    # Imported here, as its import takes longer than all others; sources that are kept on disk do not need Mako.
    from mako.template import Template

    return Template(text=_text(name), strict_undefined=True, uri=name, lookup=_Templates())
