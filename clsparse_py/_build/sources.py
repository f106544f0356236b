"""Render templates, and resolve includes of OpenCL C.

Rendered sources are kept on disk under the template's text and arguments: rendering takes milliseconds, and importing Mako takes
longer than everything else that a later process does before its first product.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clsparse_py._ground import cache

if TYPE_CHECKING:
    from mako.template import Template

__all__ = ["expand", "fill", "paths", "text"]

#: The folder of `templates/` and `cl/`: the package where it is installed, else the checkout.
_ROOT = next(place for place in Path(__file__).parents[1:3] if (place / "templates").is_dir())

# A line that includes a file of ``cl/``.
_INCLUDE = re.compile(r'^#include "([\w.]+)"$', flags=re.MULTILINE)
# A tag that names another template whose defs are used.
_NAMESPACE = re.compile(r'<%namespace[^>]*\bfile="([\w/]+)"')


def paths(folder: str) -> tuple[str, ...]:
    """Return the paths of all sources in a folder, such as "templates/spmv/subvector.mako" of "templates"."""
    return tuple(sorted(path.relative_to(_ROOT).as_posix() for path in (_ROOT / folder).rglob("*.*")))


@functools.cache
def text(path: str) -> str:
    """Return a source by its path."""
    return (_ROOT / path).read_text(encoding="utf-8")


def fill(template: str, arguments: Mapping[str, object]) -> str:
    """Return a template's text, rendered with some arguments.

    Parameters
    ----------
    template : str
        Its name, such as "spmv/subvector".
    arguments : mapping of str to object
        Numbers, strings, booleans and tuples of them, which tell themselves apart as text.
    """
    key = cache.key_of("template", *_texts(template), repr(sorted(arguments.items())))
    text = cache.load(key, bytes.decode)
    if text is None:
        text = str(_template(template).render(**arguments))
        cache.write(key, text.encode())
    return text


def expand(source: str) -> str:
    """Return OpenCL C with the files of ``cl/`` that it includes put in place, each once."""
    included: set[str] = set()

    def put(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in included:
            return ""
        included.add(name)
        path = f"cl/{name}"
        return f"// ---- {path}\n{_INCLUDE.sub(put, text(path))}\n// ---- end of {path}"

    return _INCLUDE.sub(put, source)


def _text(name: str) -> str:
    return text(f"templates/{name}.mako")


def _texts(name: str) -> tuple[str, ...]:
    """Return the text of a template and of all whose defs it uses, directly or not."""
    return _text(name), *(text for used_name in _NAMESPACE.findall(_text(name)) for text in _texts(used_name))


class _Templates:
    """The lookup of the templates whose defs a template uses, by name."""

    def get_template(self, uri: str) -> Template:
        return _template(uri)

    def adjust_uri(self, uri: str, _relative_to: str) -> str:
        return uri


@functools.cache
def _template(name: str) -> Template:
    # Imported here, as its import takes longer than all others; sources that are kept on disk do not need Mako.
    from mako.template import Template

    return Template(text=_text(name), strict_undefined=True, uri=name, lookup=_Templates())
