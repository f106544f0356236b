"""The rank of a device among others, and the heads of profiles that tell it.

The files of profiles are found and their heads are read here, as `device` needs the ranks and `_decisions.profiles` needs
`device`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs

__all__ = ["find_standing", "folder", "list_shipped", "parse_members", "read_head"]

#: Characters at the beginning of a profile's file that hold its head: name, device, date and rank (speed among devices).
_HEAD = 2048


def folder() -> Path:
    """Return the folder of the user's profiles: ``CLSPARSE_PROFILES``, or a folder of the user's data."""
    named = os.environ.get("CLSPARSE_PROFILES")
    return Path(named) if named else platformdirs.user_data_path("clsparse_py") / "profiles"


def list_shipped() -> list[Path]:
    """Return the files of the shipped profiles, which came with the package."""
    return sorted((Path(__file__).parents[1] / "_decisions" / "profiles").glob("*.json"))


def parse_members(text: str, *names: str) -> dict[str, Any]:
    """Return the named members of the text of a profile, without parsing the others: most of a profile is evidence."""
    decoder = json.JSONDecoder()
    values: dict[str, Any] = {}
    for name in names:
        # `_decisions.profiles.save` writes each top-level member of a profile with a line break, a space and its name.
        member = f'\n "{name}": '
        position = text.find(member)
        if position >= 0:
            values[name] = decoder.raw_decode(text, position + len(member))[0]
    return values


def read_head(path: Path) -> dict[str, Any]:
    """Return the head of a profile: its name, device, date and rank (speed among devices).

    Raises
    ------
    ValueError
        The name or the device is not at the beginning of the file.
    OSError
        The file cannot be read.
    """
    with path.open(encoding="utf-8") as file:
        values = parse_members(file.read(_HEAD), "name", "device", "date", "rank")
    if not {"name", "device"} <= values.keys():
        raise ValueError("its name or device is not where it belongs")
    return values


def find_standing(name: str, platform: str, kind: str) -> tuple[bool, float | None]:
    """Return whether the user has a profile of a device, and the rank (speed among devices) in a shipped profile, or None.

    The rank of a CPU is that of its runtime: a profile of another processor tells the rank, too.

    Parameters
    ----------
    name, platform : str
        Names of the device and of its platform, as the driver reports them.
    kind : str
        "gpu", "accelerator", "cpu" or "custom".
    """
    try:
        own_profiles = sorted(folder().glob("*.json"))
    except OSError:  # `_decisions.profiles` warns of such a folder
        own_profiles = []
    tuned = any((made_for.get("name"), made_for.get("platform")) == (name, platform) for made_for, _ in _read_heads(own_profiles))
    ranks = {
        made_for["name"] == name: rank["value"]
        for made_for, rank in _read_heads(list_shipped())
        if rank and made_for["platform"] == platform and made_for["type"] == kind and (kind == "cpu" or made_for["name"] == name)
    }
    return tuned, ranks.get(True, ranks.get(False))


def _read_heads(paths: list[Path]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the device and the rank in the head of each profile that names a device; damaged profiles are passed over."""
    for path in paths:
        try:
            content = read_head(path)
        except (OSError, ValueError):
            continue
        if isinstance(content["device"], dict) and "name" in content["device"]:
            yield content["device"], content.get("rank", {})
