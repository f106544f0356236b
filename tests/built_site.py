"""Checks of the built site, which `make docs` runs: links within it lead somewhere, and pages load nothing from elsewhere.

``python tests/built_site.py build/site`` prints what is wrong, and exits with 1 if anything is.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself, and by which attribute.
_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Page(HTMLParser):
    """The links of a page, what it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, loads, and is called."""
        results = {name: value for name, value in attrs if value}
        self.anchors.update(results[name] for name in ("id", "name") if name in results)
        if tag == "a" and "href" in results:
            self.links.append(results["href"])
        if tag in _LOADED and _LOADED[tag] in results:
            self.loaded.append(results[_LOADED[tag]])


def wrong(site: Path) -> list[str]:
    """Return the faults of a site, a line each."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    results = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        results += [f"{here}: loads {address}" for address in page.loaded if urlsplit(address).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                results.append(f"{here}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                results.append(f"{here}: {link} has no such anchor")
    return sorted(set(results))


if __name__ == "__main__":
    lines = wrong(Path(sys.argv[1]))
    print("\n".join(lines))
    sys.exit(bool(lines))
