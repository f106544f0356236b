"""Sphinx's configuration: `make docs` builds the site from the pages of this folder, the docstrings and `examples/`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import clsparse_py  # noqa: E402 - the folder has to be known first

project = "clsparse_py"
author = "the clsparse_py authors"
project_copyright = f"2026, {author}"
release = version = clsparse_py.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["generated/**/*.ipynb"]
templates_path = ["_templates"]
html_static_path: list[str] = []

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Names of parameters' types link to nothing: SciPy's pages are not read here.
numpydoc_xref_param_type = False

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


def setup(app: object) -> None:
    """Have links of pages that GitHub shows, too, turned into links within the site."""
    app.connect("source-read", links_within_the_site)  # type: ignore[attr-defined]
