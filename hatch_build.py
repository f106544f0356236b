"""Build hook: README in the metadata of a distribution, with its relative links rewritten to the project's address."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


def absolute_links(text: str, address: str) -> str:
    """Return Markdown whose relative links and pictures start with an address; code blocks and fragments stay."""

    def link(match: re.Match[str]) -> str:
        bang, label, target = match.groups()
        return f"{bang}[{label}]({address.rstrip('/')}/{'raw' if bang else 'blob'}/main/{target})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    relative = r"(!?)\[([^\]]*)\]\((?![a-z]+:|/|#)([^)\s]+)\)"
    return "".join(part if part.startswith("```") else re.sub(relative, link, part) for part in parts)


class ReadmeHook(MetadataHookInterface):
    """Sets ``readme``; ``address`` is that of a repository as GitHub serves it, empty: links stay relative."""

    def update(self, metadata: dict[str, object]) -> None:
        """Put README into the metadata."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        address = str(self.config.get("address", ""))
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, address) if address else text,
        }
