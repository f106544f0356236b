"""Tables of profiles: the profiles that serve a device, all profiles, and the content of one profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branch

from clsparse_py._decisions import profiles
from clsparse_py._decisions import tree as trees
from clsparse_py._decisions.profiles import Profile
from clsparse_py._device.device import Device
from clsparse_py._ground.console import plain_table
from clsparse_py._ground.errors import ProfileError
from clsparse_py._tuner.tunable import Tunable

__all__ = ["contents", "overview", "unknown_labels"]

#: Headings of the entries of a profile that tell how the profile was made, if other than the entries' keys.
_MADE = {"command": "made by", "commit": "at commit", "corpus": "digest of the corpus", "minutes": "minutes of measuring"}


def unknown_labels(profile: Profile, tunables: Mapping[str, Tunable[Any]]) -> dict[str, str]:
    """Return the operations for which a profile is ignored, with the reason: an unknown operation, kernel or method."""
    reasons: dict[str, str] = {}
    for operation, dtype, question in _questions(profile):
        tunable = tunables.get(operation)
        if tunable is None:
            reasons[operation] = "there is no such operation"
            continue
        try:
            tree = profile.tree(operation, dtype, question)
            for leaf in trees.leaves(tree) if tree is not None else ():
                tunable.parse(question, leaf.label)
        except ValueError as error:
            reasons.setdefault(operation, str(error))
    return reasons


def overview(device: Device, tunables: Mapping[str, Tunable[Any]]) -> RenderableType:
    """Return two tables to print: the profiles that serve a device by operation and dtype, and all profiles."""
    near = profiles.find(device)
    unknown = {profile: unknown_labels(profile, tunables) for profile in near}
    serving = _table("operation", "dtype", "profile", "where from")
    used: set[Profile] = set()
    for operation in tunables:
        able = [profile for profile in near if operation in profile.operations and operation not in unknown[profile]]
        for dtype in _dtypes(able, operation):
            questions = dict.fromkeys(q for candidate in able for q in candidate.operations[operation].get(dtype, {}))
            server = {
                q: next(candidate for candidate in able if candidate.tree(operation, dtype, q) is not None) for q in questions
            }
            servers = dict.fromkeys(server.values())
            for profile in servers:
                used.add(profile)
                suffix = "" if len(servers) == 1 else f" ({', '.join(q for q in server if server[q] is profile)})"
                serving.add_row(operation, dtype, f"{_name(profile)}{suffix}", _origin(profile))
    listed = _table("profile", "made for", "driver", "note")
    for path, shipped in profiles.list_files():
        try:
            profile = profiles.read(path, shipped=shipped)
        except ProfileError as error:
            listed.add_row(path.stem, "", "", f"ignored: {error}")
            continue
        notes = [_origin(profile)]
        loaded = next((candidate for candidate in near if candidate.path == path), None)
        if loaded in used:
            notes.append("in use")
        notes += [f"ignored for {operation}: {why}" for operation, why in (unknown.get(loaded, {}) if loaded else {}).items()]
        driver = str(profile.device.get("driver", ""))
        if loaded is not None and driver and profile.device.get("name") == device.name and driver != device.driver_version:
            notes.append(f"measured with another driver than {device.driver_version}")
        listed.add_row(_name(profile), _made_for(profile), driver, "; ".join(notes))
    title = Text(f"{device.name} ({device.platform}) is served by", style="bold")
    where = Text(f"Yours are kept in {profiles.folder()}", style="dim", overflow="fold")
    return Group(title, serving, "", Text("There are", style="bold"), listed, where)


def contents(profile: Profile) -> RenderableType:
    """Return the content of a device's profile to print: its origin, its decision trees and its thresholds."""
    head = _table("", "")
    head.show_header = False
    head.add_row("made for", _made_for(profile))
    for key in ("platform", "vendor", "driver"):
        if key in profile.device:
            head.add_row(key, str(profile.device[key]))
    head.add_row(
        "made with", ", ".join(f"{name} {version}" for name, version in profile.content.get("versions", {}).items()) or "-"
    )
    for key, value in profile.content.get("made", {}).items():
        head.add_row(_MADE.get(key, key), Text(str(value)))
    head.add_row("evidence", f"{len(profile.content.get('evidence', ())):,} cases")
    head.add_row("where from", f"{_origin(profile)}, {profile.path}")
    branches = []
    for operation, dtype, question in _questions(profile):
        tree = profile.tree(operation, dtype, question)
        if tree is not None:
            branch = Branch(Text(f"{operation}, {dtype}: {question}", style="bold"))
            _add_tree(branch, tree)
            branches.append(branch)
    for operation, by_dtype in profile.content.get("thresholds", {}).items():
        for dtype, by_name in by_dtype.items():
            branch = Branch(Text(f"{operation}, {dtype}: thresholds", style="bold"))
            for name, threshold in by_name.items():
                cases = f"{threshold['cases']} cases" if "cases" in threshold else ""
                gain = f"gain {threshold['gain']:.3g}" if "gain" in threshold else ""
                notes = ", ".join(filter(None, (cases, gain, threshold.get("note", ""))))
                branch.add(Text.assemble(f"{name} ", (f"{threshold['value']:.15g}", "green"), f"  {notes}" if notes else ""))
            branches.append(branch)
    return Group(Text(str(profile), style="bold"), head, *branches)


def _dtypes(able: Sequence[Profile], operation: str) -> list[str]:
    """Return the dtypes for which profiles, in order up to one that serves any dtype, have decision trees of an operation."""
    names: dict[str, None] = {}
    questions = {question for profile in able for trees in profile.operations[operation].values() for question in trees}
    for profile in able:
        names.update(dict.fromkeys(profile.operations[operation]))
        if questions <= profile.operations[operation].get("any", {}).keys():
            break
    return list(names)


def _add_tree(branch: Branch, tree: trees.Tree) -> None:
    """Add a decision tree to a printed branch: comparisons as branches, chosen kernels or methods as leaves."""
    if isinstance(tree, trees.Leaf):
        evidence = (f"{tree.cases} cases" if tree.cases is not None else "", f"time {tree.lost:.3g}" if tree.lost else "")
        notes = ", ".join(filter(None, (*evidence, tree.note)))
        branch.add(Text.assemble((tree.label, "green"), f"  {notes}" if notes else ""))
        return
    for holds, below in ((True, tree.then), (False, tree.otherwise)):
        step = trees.words((trees.Step(tree.feature, tree.at_most, holds),))
        _add_tree(branch.add(Text(step)), below)


def _questions(profile: Profile) -> Iterator[tuple[str, str, str]]:
    """Iterate over the operation, the dtype and the question of every decision tree of a profile."""
    for operation, by_dtype in profile.operations.items():
        for dtype, by_question in by_dtype.items():
            yield from ((operation, dtype, question) for question in by_question)


def _name(profile: Profile) -> str:
    """Return the name of a profile, with its date if it has one."""
    return f"{profile.name} ({profile.date})" if profile.date else profile.name


def _made_for(profile: Profile) -> str:
    """Return the device or the type of devices that a profile is for, in words."""
    device = profile.device
    return f"{device['name']} ({device['compute_units']} compute units)" if "name" in device else f"any {device['type']}"


def _origin(profile: Profile) -> str:
    """Return whether a profile came with the package or is the user's own: "shipped", or "yours"."""
    return "shipped" if profile.shipped else "yours"


def _table(*columns: str) -> Table:
    """Return an empty table to list profiles in, with a column for each of the given headings."""
    table = plain_table()
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
