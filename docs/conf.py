"""Sphinx's configuration: `make docs` builds the site from the pages of this folder, the docstrings and `examples/`."""

from __future__ import annotations

import importlib
import os
import re
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402 - the folder has to be known first

import clsparse_py  # noqa: E402

project = "clsparse_py"
author = "the clsparse_py authors"
project_copyright = f"2026, {author}"
release = version = clsparse_py.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["generated/**/*.ipynb"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

default_role = "py:obj"  # names between single backticks are links where this site has them

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

#: Pages of other projects, and names of theirs in types of parameters: a page's place follows from the name, without a network.
OTHER_PROJECTS = {
    "https://numpy.org/doc/stable/reference/generated/": {
        "{}.html": ["numpy.dtype", "numpy.ndarray", "numpy.random.Generator"],
    },
    "https://docs.scipy.org/doc/scipy/reference/generated/": {
        "{}.html": [
            *(f"scipy.sparse.{name}_array" for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")),
            "scipy.sparse.sparray",
            "scipy.sparse.linalg.LinearOperator",
        ],
    },
    "https://documen.tician.de/pyopencl/": {
        "array.html": ["pyopencl.array.Array"],
        "runtime_platform.html": ["pyopencl.Context", "pyopencl.Device"],
        "runtime_queue.html": ["pyopencl.CommandQueue", "pyopencl.Event"],
    },
}


def inventory(pages: dict[str, list[str]]) -> str:
    """Write an inventory of Sphinx, which says on which page a name stands, and return its path."""
    rows = [f"{name} py:class 1 {page.format(name)}#{name} -\n" for page, names in pages.items() for name in names]
    project_name = rows[0].split(".")[0]
    path = HERE / "generated" / f"{project_name}.inv"
    path.parent.mkdir(exist_ok=True)
    lines = (
        "Sphinx inventory version 2",
        f"Project: {project_name}",
        "Version: ",
        "The remainder of this file is compressed using zlib.",
    )
    path.write_bytes("".join(f"# {line}\n" for line in lines).encode() + zlib.compress("".join(rows).encode()))
    return str(path)


intersphinx_mapping = {address.split("/")[2]: (address, inventory(pages)) for address, pages in OTHER_PROJECTS.items()}
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    **{word: word for word in DEFAULT_LINKS},  # Python's own words, such as bool, stay words
    # A dot in front: a target that differs from its title, which numpydoc needs to make a link.
    **{name: f".{name}" for pages in OTHER_PROJECTS.values() for names in pages.values() for name in names},
    **{name: f"clsparse_py.{name}" for name in ("bsr_array", "coo_array", "csc_array", "csr_array", "sparray")},
}

html_theme = "pydata_sphinx_theme"
html_title = f"clsparse_py {release}"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "use_edit_page_button": False,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
}
html_show_sourcelink = False

# Titles and descriptions of pages where a link to one is shown; the address of the site comes from whoever serves it.
ogp_site_name = "clsparse_py"
ogp_site_url = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
ogp_social_cards = {"enable": False}  # pictures of pages; they would be made by matplotlib
ogp_enable_meta_description = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "generated/examples",
    "write_computation_times": False,
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": os.environ.get("CLSPARSE_EXAMPLES", "1") == "1",
    "show_memory": False,
    "abort_on_example_error": True,
}

#: Files of the repository that pages link to, and the page of this site that holds each.
PAGES_OF = {
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "bench/README.md": "measuring.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/README.rst": "generated/examples/index.rst",
}


def links_within_the_site(_app: object, page: str, source: list[str]) -> None:
    """Turn links to files of the repository into links to pages, or into plain text if the site has no such page."""
    here = HERE / page
    # A page that only includes a file of the repository has that file's links.
    base = here.parent
    included = re.match(r"```\{include\} (\S+)", source[0])
    if included:
        base = (base / included[1]).resolve().parent
        source[0] = (here.parent / included[1]).read_text("utf-8")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        path = Path(os.path.normpath(base / target))
        if path.is_relative_to(HERE) and path.is_file():
            return f"[{text}](/{path.relative_to(HERE).as_posix()}{anchor})"
        name = path.relative_to(HERE.parent).as_posix() if path.is_relative_to(HERE.parent) else target
        return f"[{text}](/{PAGES_OF[name]}{anchor})" if name in PAGES_OF else text

    parts = re.split(r"(```.*?\n```)", source[0], flags=re.DOTALL)
    plain = r"(?<!!)\[([^\]]*)\]\((?!https?:|/|#)([^)#\s]+)(#[^)]*)?\)"
    source[0] = "".join(part if part.startswith("```") else re.sub(plain, link, part) for part in parts)


def module_of_source(_app: object, module: str, name: str) -> str | None:
    """Return the module itself for a name of another project, whose source has no page here; None for all others."""
    value = getattr(importlib.import_module(module), name.split(".")[0], None)
    return None if getattr(value, "__module__", "clsparse_py").startswith("clsparse_py") else module


def setup(app: object) -> None:
    """Have links of pages that GitHub shows, too, turned into links within the site."""
    app.connect("source-read", links_within_the_site)  # type: ignore[attr-defined]
    app.connect("viewcode-follow-imported", module_of_source)  # type: ignore[attr-defined]
