"""Render templates, and resolve includes of OpenCL C.

Rendered sources are kept on disk under the template's text and arguments: rendering takes milliseconds, and the import of Mako
takes longer than everything else before the first product of a later process.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from clsparse_py._ground import cache

if TYPE_CHECKING:
    from mako.template import Template

__all__ = ["expand", "fill", "paths", "strip_comments", "text", "with_included"]

#: The folder of `templates/` and `cl/`: the package where it is installed, else the checkout.
_ROOT = next(place for place in Path(__file__).parents[1:3] if (place / "templates").is_dir())

#: Pattern of a line of OpenCL C that includes a file of ``cl/``.
_INCLUDE = re.compile(r'^#include "([\w.]+)"$', flags=re.MULTILINE)
#: Pattern of such a line in a template, where the name may be an expression.
_INCLUDE_LINE = re.compile(r"^#include .*", flags=re.MULTILINE)
#: Pattern of the name of a file of ``cl/``.
_FILE = re.compile(r"\w+\.cl")
#: Pattern of Mako's tag in a template that names another template, whose defs (functions of a template) are used.
_NAMESPACE = re.compile(r'<%namespace[^>]*\bfile="([\w/]+)"')
#: Pattern of a comment of OpenCL C or Mako or, as its group, of what may hold the like: Mako's code, expressions and control lines,
#: and strings of OpenCL C.
_COMMENT = re.compile(
    r"""<%doc>.*?</%doc>|^[ \t]*\#\#[^\n]*|[ \t]*/\*.*?\*/|//[^\n]*
    |(<%[\s!].*?%>|\$\{(?:"[^"\n]*"|'[^'\n]*'|\{[^{}]*\}|[^{}"'])*\}|^[ \t]*%[^\n]*|"(?:\\.|[^"\\\n])*")""",
    flags=re.DOTALL | re.MULTILINE | re.VERBOSE,
)
#: Pattern of a comment of Python or, as its group, of a string.
_PYTHON_COMMENT = re.compile(r"""#[^\n]*|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""")


def paths(folder: str) -> tuple[str, ...]:
    """Return the paths of all templates or OpenCL C files in a folder, such as "templates/spmv/subvector.mako"."""
    return tuple(sorted(path.relative_to(_ROOT).as_posix() for path in (_ROOT / folder).rglob("*.*")))


@functools.cache
def text(path: str) -> str:
    """Return the text of a template or a file of ``cl/`` by its path."""
    return (_ROOT / path).read_text(encoding="utf-8")


def strip_comments(text: str) -> str:
    """Return the text of a template or of OpenCL C without comments, blank lines and, outside of Mako's code, indentation."""

    def keep(match: re.Match[str]) -> str:
        """Return "" for a comment; for other matches their text on one line, in Mako's code without Python's comments."""
        kept = match.group(1)
        if kept is None:
            return ""
        if kept.startswith("<%"):
            kept = _PYTHON_COMMENT.sub(lambda python: python.group(1) or "", kept)
        return repr("\n".join(filter(None, (line.rstrip() for line in kept.splitlines()))).strip())

    return re.sub(r"\s*\n\s*", "\n", _COMMENT.sub(keep, text)).strip()


def with_included(roots: Iterable[str]) -> set[str]:
    """Return paths of templates or files of ``cl/``, and the paths of all files that these include, directly or not."""
    found: set[str] = set()
    waiting = [*roots]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            # A template may choose among included files: the line then names all of them.
            waiting += (f"cl/{name}" for line in _INCLUDE_LINE.findall(text(path)) for name in _FILE.findall(line))
            waiting += (f"templates/{name}.mako" for name in _NAMESPACE.findall(text(path)))
    return found


def fill(template: str, arguments: Mapping[str, object]) -> str:
    """Return the text of a template rendered with its arguments; a text that was rendered before is read from the cache.

    Parameters
    ----------
    template : str
        The template's name, such as "spmv/subvector".
    arguments : mapping of str to object
        Numbers, strings, booleans and tuples, whose texts are part of the cache key.
    """
    key = cache.key_of("template", *_texts(template), repr(sorted(arguments.items())))
    text = cache.load(key, bytes.decode)
    if text is None:
        text = str(_template(template).render(**arguments))
        cache.write(key, text.encode())
    return text


def expand(source: str) -> str:
    """Return OpenCL C with each included file of ``cl/`` in place of its first include line; later such lines are dropped."""
    included: set[str] = set()

    def put(match: re.Match[str]) -> str:
        """Return the text of the file that an include line names, or "" if the file was included before."""
        name = match.group(1)
        if name in included:
            return ""
        included.add(name)
        path = f"cl/{name}"
        return f"// ---- {path}\n{_INCLUDE.sub(put, text(path))}\n// ---- end of {path}"

    return _INCLUDE.sub(put, source)


def _text(name: str) -> str:
    """Return the text of a template by its name."""
    return text(f"templates/{name}.mako")


def _texts(name: str) -> tuple[str, ...]:
    """Return the texts of a template and of all templates whose defs it uses, directly or not."""
    return _text(name), *(text for used_name in _NAMESPACE.findall(_text(name)) for text in _texts(used_name))


@functools.cache
def _template(name: str) -> Template:
    """Return the Mako template of a name; it looks up the templates whose defs (functions) it uses by this function too."""
    # Mako is imported here, as its import takes longer than all others, and sources that are kept on disk do not need it.
    from mako.template import Template

    lookup = SimpleNamespace(get_template=_template, adjust_uri=lambda uri, _relative_to: uri)
    return Template(text=_text(name), strict_undefined=True, uri=name, lookup=lookup)
