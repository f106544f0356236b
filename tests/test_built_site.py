"""The check of the built site sees links that lead nowhere, and whatever a page loads from elsewhere."""

from __future__ import annotations

from pathlib import Path

from built_site import wrong


def test_broken_links_and_foreign_scripts_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    good = '<a href="sub/other.html#there">t</a> <a href="#own" id="own">t</a> <a href="https://x.org/y">t</a> <img src="p.png">'
    (tmp_path / "index.html").write_text(good)
    (tmp_path / "sub" / "other.html").write_text('<h1 id="there">t</h1> <a href="../index.html">t</a>')
    assert wrong(tmp_path) == []
    (tmp_path / "sub" / "bad.html").write_text(
        '<a href="none.html">t</a> <a href="other.html#no">t</a> <script src="https://x.org/y.js"></script>'
    )
    assert wrong(tmp_path) == [
        "sub/bad.html: loads https://x.org/y.js",
        "sub/bad.html: none.html is not there",
        "sub/bad.html: other.html#no has no such anchor",
    ]
