"""How a device stands among others, as the heads of profiles tell: whether it was tuned here, and its rank.

`device` asks, which `_decisions.profiles` needs: so the files are found, and what stands before their trees is read, here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs

__all__ = ["folder", "head", "list_shipped", "members", "standing"]

#: Characters in which `_decisions.profiles.save` writes what stands before the trees.
_HEAD = 2048


def folder() -> Path:
    """Where the user's profiles are kept: ``CLSPARSE_PROFILES``, or a folder of the user's data."""
    named = os.environ.get("CLSPARSE_PROFILES")
    return Path(named) if named else platformdirs.user_data_path("clsparse_py") / "profiles"


def list_shipped() -> list[Path]:
    """Return the files of the profiles that came with the package."""
    return sorted((Path(__file__).parents[1] / "_decisions" / "profiles").glob("*.json"))


def members(text: str, *names: str) -> dict[str, Any]:
    """Return members of a shipped profile that are there; tests check it. Much of it is evidence, and never parsed."""
    decoder = json.JSONDecoder()
    values: dict[str, Any] = {}
    for name in names:
        # How `save` writes what lies at the top.
        member = f'\n "{name}": '
        position = text.find(member)
        if position >= 0:
            values[name] = decoder.raw_decode(text, position + len(member))[0]
    return values


def head(path: Path) -> dict[str, Any]:
    """Return the name, the device, the date and the rank of a profile.

    Raises
    ------
    ValueError
        The first two are not where they belong.
    OSError
        It cannot be read.
    """
    with path.open(encoding="utf-8") as file:
        values = members(file.read(_HEAD), "name", "device", "date", "rank")
    if not {"name", "device"} <= values.keys():
        raise ValueError("its name or device is not where it belongs")
    return values


def standing(name: str, platform: str, kind: str) -> tuple[bool, float | None]:
    """Return whether the user has a profile of a device, and its rank by a shipped one; None if none says it.

    Of a CPU the runtime is ranked: a profile made on another processor tells its rank, too.

    Parameters
    ----------
    name, platform : str
        As the driver reports them.
    kind : str
        "gpu", "accelerator", "cpu" or "custom".
    """
    try:
        own_profiles = sorted(folder().glob("*.json"))
    except OSError:  # `_decisions.profiles` says so
        own_profiles = []
    tuned = any((made_for.get("name"), made_for.get("platform")) == (name, platform) for made_for, _ in _read_heads(own_profiles))
    ranks = {
        made_for["name"] == name: rank["value"]
        for made_for, rank in _read_heads(list_shipped())
        if rank and made_for["platform"] == platform and made_for["type"] == kind and (kind == "cpu" or made_for["name"] == name)
    }
    return tuned, ranks.get(True, ranks.get(False))


def _read_heads(paths: list[Path]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the device and the rank of each profile of a device; damaged ones are passed over, as `_decisions.profiles` says."""
    for path in paths:
        try:
            content = head(path)
        except (OSError, ValueError):
            continue
        if isinstance(content["device"], dict) and "name" in content["device"]:
            yield content["device"], content.get("rank", {})
