"""Profiles: decision trees and thresholds as JSON, looked up by device.

The user's own lie in a folder, others are shipped. Of those that suit a device the closest comes first: one of that very
device, then one of its kin, then that for its type, then the default; the user's before a shipped one. A question that
a profile does not decide goes to the next one. A profile that cannot be used is reported once and passed over: it is never an
error at run time.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from clsparse_py._decisions import tree as trees
from clsparse_py._device.device import Device
from clsparse_py._device.ranking import folder, head, list_shipped, members
from clsparse_py._ground.errors import ProfileError
from clsparse_py._ground.files import make_private, write_text
from clsparse_py._ground.records import dataclass

__all__ = [
    "SCHEMA",
    "Profile",
    "Rules",
    "Ruling",
    "check",
    "decide",
    "default",
    "find",
    "folder",
    "forget",
    "identity",
    "kept",
    "list_shipped",
    "load",
    "name_for",
    "own",
    "read",
    "remove",
    "rules",
    "save",
    "thresholds",
]

_log = logging.getLogger(__name__)

#: The version of the schema that is written and read.
SCHEMA = 2
#: The shipped profile for devices of a type that none is for: most kinds of them hide latency as GPUs do.
_DEFAULT = "generic-gpu"

#: Characters of a line of a profile, where members are no longer.
_WIDTH = 130

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Profile:
    """Decision trees and thresholds of a device or of all devices of a type, and their evidence.

    Attributes
    ----------
    path : pathlib.Path
        Where it was read from.
    shipped : bool
        Whether it came with the package.
    head : mapping
        Its name, device, date and rank: what tells whether it is asked at all.
    """

    path: Path
    shipped: bool
    head: Mapping[str, Any] = field(repr=False)
    _decisions: Callable[[], Mapping[str, Any]] = field(repr=False)
    _content: Callable[[], Mapping[str, Any]] = field(repr=False)
    _trees: dict[tuple[str, str, str], trees.Tree] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def content(self) -> Mapping[str, Any]:
        """The whole profile, as JSON has it; see ``profile.schema.json``."""
        return self._content()

    @property
    def name(self) -> str:
        """The profile's name, by which the user exports or removes it."""
        return str(self.head["name"])

    @property
    def device(self) -> Mapping[str, Any]:
        """The description of the device that the profile is for."""
        device: Mapping[str, Any] = self.head["device"]
        return device

    @property
    def date(self) -> str:
        """The day when the profile was made; "" if it does not say."""
        return str(self.head.get("date", ""))[:10]

    @functools.cached_property
    def _decides(self) -> Mapping[str, Any]:
        """Trees and thresholds, as JSON has them."""
        return self._decisions()

    @property
    def operations(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Trees as JSON has them, by operation, dtype and question."""
        operations: Mapping[str, Mapping[str, Mapping[str, Any]]] = self._decides["operations"]
        return operations

    def thresholds(self, operation: str, dtype: str) -> dict[str, float]:
        """Return the thresholds of an operation by name, those for a dtype before those for any."""
        of_operation = self._decides.get("thresholds", {}).get(operation, {})
        named = (of_operation.get(key, {}) for key in reversed(_stand_ins(dtype)))
        return {name: threshold["value"] for by_name in named for name, threshold in by_name.items()}

    def tree(self, operation: str, dtype: str, question: str) -> trees.Tree | None:
        """Return the tree for a question; None where there is none.

        Raises
        ------
        ValueError
            It is no tree.
        """
        for key in _stand_ins(dtype):
            cached = self._trees.get((operation, key, question))
            if cached is not None:
                return cached
            content = self.operations.get(operation, {}).get(key, {}).get(question)
            if content is not None:
                return self._trees.setdefault((operation, key, question), trees.from_json(content))
        return None

    def __str__(self) -> str:
        return f"profile {self.name} ({self.date})" if self.date and "name" in self.device else f"profile {self.name}"


def _stand_ins(dtype: str) -> tuple[str, ...]:
    """Return the keys under which trees for a dtype are sought: its own, the real one of its size, and that for any."""
    if dtype == "any":
        return ("any",)
    real = "float32" if np.dtype(dtype).itemsize <= 4 else "float64"
    return tuple(dict.fromkeys((dtype, real, "any")))


@functools.cache
def _validate() -> Callable[[Any], Any]:
    # Here, as few users have profiles of their own.
    import fastjsonschema

    schema = json.loads((Path(__file__).parent / "profile.schema.json").read_text(encoding="utf-8"))
    compiled: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return compiled


def check(content: Any) -> None:
    """Check what JSON has of a profile.

    Raises
    ------
    ProfileError
        It is none, or one of another version; the message says why.
    """
    version = content.get("schema") if isinstance(content, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise ProfileError(f"it has version {version} of the schema, and this package reads {SCHEMA}: a newer one made it")
    if version in range(SCHEMA):
        raise ProfileError(
            f"it has version {version} of the schema, and this package reads {SCHEMA}: an older one made it; "
            "`clsparse tune` makes a new one"
        )
    try:
        _validate()(content)
    except ValueError as error:  # fastjsonschema's, with the message alone
        raise ProfileError(f"it is no profile: {str(error).replace('data', 'profile', 1)}") from None
    except RecursionError:
        raise ProfileError("it is no profile: its trees are too deep") from None


def read(path: Path, *, shipped: bool = False) -> Profile:
    """Return the profile in a file.

    Raises
    ------
    ProfileError
        It cannot be read, or is damaged, or of another version; the message says why.
    """
    try:
        if shipped:
            return Profile(path, shipped, head(path), lambda: _decisions_in(path), lambda: json.loads(path.read_bytes()))
        content = json.loads(path.read_bytes(), parse_constant=_no_number)
    except OSError as error:
        raise ProfileError(f"it cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError, too
        raise ProfileError(f"it is damaged: {error}") from None
    check(content)
    return Profile(path, shipped, content, lambda: content, lambda: content)


def _decisions_in(path: Path) -> Mapping[str, Any]:
    """Return the trees and thresholds in a profile's file, without parsing the evidence."""
    return members(path.read_text(encoding="utf-8"), "operations", "thresholds")


def _no_number(text: str) -> Any:
    """Refuse NaN and infinities, which are no JSON and which no bound of the schema would find."""
    raise ValueError(f"{text} is no number")


def load(name: str) -> Profile:
    """Return the profile of a name: the user's own, else the shipped one.

    Raises
    ------
    ProfileError
        There is none, or it cannot be used.
    """
    for path, is_shipped in _files():
        if path.stem == name:
            try:
                return read(path, shipped=is_shipped)
            except ProfileError as error:
                raise ProfileError(f"profile {path}: {error}") from None
    raise ProfileError(f"no profile is named {name!r}; there are {', '.join(path.stem for path, _ in _files())}")


def own() -> list[Path]:
    """Return the files of the user's profiles, damaged ones too."""
    try:
        return sorted(path for path in folder().iterdir() if path.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _report(folder(), f"its profiles cannot be listed: {error.strerror or error}")
        return []


def _files() -> Iterator[tuple[Path, bool]]:
    """Iterate over the files of all profiles, and whether each is shipped."""
    yield from ((path, False) for path in own())
    yield from ((path, True) for path in list_shipped())


#: Files of profiles that were reported as ignored, with the reason.
_reported: set[tuple[Path, str]] = set()


def _report(path: Path, why: str) -> None:
    """Say once that a profile is not used."""
    if (path, why) not in _reported:
        _reported.add((path, why))
        _log.warning("profile %s is ignored: %s", path, why)


def _distance(profile: Profile, device: Device) -> tuple[float, ...] | None:
    """Return how far a profile is from a device, nearest first: the same, kin by how their sizes compare, type, default."""
    made_for = profile.device
    if made_for["type"] != device.type:
        return (3,) if profile.shipped and profile.name == _DEFAULT else None
    if made_for.get("name") == device.name and made_for.get("platform") == device.platform:
        return (0,)
    if "name" not in made_for:
        return (2,)
    # Devices of one maker are kin, but a CPU is what its runtime's compiler makes of it.
    kin = made_for["platform"] == device.platform if device.lanes_are_loops else made_for["vendor"] == device.vendor
    return (1, abs(math.log(made_for["compute_units"] / device.compute_units))) if kin else None


def _usable(path: Path, is_shipped: bool) -> Profile | None:
    try:
        return read(path, shipped=is_shipped)
    except ProfileError as error:
        _report(path, str(error))
        return None


@functools.cache
def _all() -> tuple[Profile, ...]:
    """Return all profiles that can be used, the user's first."""
    return tuple(profile for path, is_shipped in _files() if (profile := _usable(path, is_shipped)) is not None)


@functools.lru_cache(maxsize=64)
def find(device: Device) -> tuple[Profile, ...]:
    """Return the profiles that suit a device, in the order in which they are asked."""
    near = [(distance, profile.shipped, profile.name, profile) for profile in _all() if (distance := _distance(profile, device))]
    return tuple(profile for *_, profile in sorted(near, key=lambda ranked: ranked[:3]))


def forget() -> None:
    """Forget what was read: the next decision reads the files anew, and reports anew."""
    global forgotten
    forgotten += 1
    _reported.clear()
    _unusable.clear()
    _rules.clear()
    kept.clear()
    _all.cache_clear()
    find.cache_clear()


@dataclass(frozen=True)
class Ruling(Generic[T]):
    """A decision by a profile's tree. Most callers do not ask for its reasons, which take longer to put into words than to find.

    Attributes
    ----------
    rules : Rules
        The tree that decided, and its profile.
    features : mapping of str to float
        What it compared.
    leaf : Leaf
        Where that led.
    """

    rules: Rules[T]
    features: Mapping[str, float]
    leaf: trees.Leaf

    @property
    def label(self) -> str:
        """The label of the choice."""
        return self.leaf.label

    @property
    def value(self) -> T:
        """The label, parsed by the operation."""
        return self.rules.values[self.leaf.label]

    @property
    def profile(self) -> str:
        """The profile that decided, and its date if it was measured."""
        return str(self.rules.profile)

    @property
    def path(self) -> str:
        """The comparisons that led to the choice, in words; "" if the tree has none."""
        return trees.words(trees.evaluate(self.rules.tree, self.features)[1])

    @property
    def why(self) -> str:
        """The profile and the path through its tree, in words."""
        return f"{self.profile}: {self.path or 'always'}{self._noted}"

    def __str__(self) -> str:
        path = self.path
        return f"{self.label} {f'where {path}' if path else 'always'}{self._noted}"

    @property
    def _noted(self) -> str:
        """The note at the leaf, in parentheses; "" if it has none."""
        return f" ({self.leaf.note})" if self.leaf.note else ""


@dataclass(frozen=True)
class Rules(Generic[T]):
    """The tree that answers a question on a device, its labels parsed."""

    profile: Profile
    tree: trees.Tree
    values: Mapping[str, T]

    def decide(self, features: Mapping[str, float]) -> Ruling[T]:
        """Return the decision for some features: the leaf that the tree leads to, with the reasons at hand."""
        return Ruling(self, features, trees.leaf_of(self.tree, features))

    def restrict(self, features: Mapping[str, float]) -> Rules[T]:
        """Return the rules with the known features substituted."""
        return Rules(self.profile, trees.restrict(self.tree, features), self.values)

    def take(self, features: Mapping[str, float]) -> T:
        """Return the parsed label that the tree chooses for some features."""
        return self.values[trees.leaf_of(self.tree, features).label]


#: Rules by device, operation, dtype and question.
_rules: dict[tuple[Device, str, str, str], Rules[Any]] = {}
#: Files and operations of profiles whose labels do not parse, which was reported.
_unusable: set[tuple[Path, str]] = set()


def rules(
    device: Device, operation: str, dtype: str, question: str, features: Mapping[str, float], parse: Callable[[str], T]
) -> Rules[T]:
    """Return the rules of the first profile that decides a question on a device; see `decide`."""
    key = (device, operation, dtype, question)
    cached = _rules.get(key)
    if cached is None:
        cached = _rules[key] = _first(find(device), operation, dtype, question, features, parse)
    return cached


def _first(
    profiles: tuple[Profile, ...],
    operation: str,
    dtype: str,
    question: str,
    features: Mapping[str, float],
    parse: Callable[[str], T],
) -> Rules[T]:
    for profile in profiles:
        if (profile.path, operation) in _unusable:
            continue
        try:
            tree = profile.tree(operation, dtype, question)
            if tree is None:
                continue
            values = {leaf.label: parse(leaf.label) for leaf in trees.leaves(tree)}
            unknown = trees.features_of(tree) - features.keys()
            if not unknown:
                return Rules(profile, tree, values)
            why = f"{', '.join(sorted(unknown))} is no feature"
        except ValueError as error:
            why = str(error)
        except Exception as error:  # a file from anywhere never ends a product, whatever a parser makes of it
            why = f"{type(error).__name__}: {error}"
        _unusable.add((profile.path, operation))
        _report(profile.path, f"{operation}, {question}: {why}")
    raise LookupError(f"no profile decides {question} of {operation} for {dtype}")


def decide(
    device: Device, operation: str, dtype: str, question: str, features: Mapping[str, float], parse: Callable[[str], T]
) -> Ruling[T]:
    """Decide by the closest profile that answers a question.

    Parameters
    ----------
    device : Device
        That it is to run on.
    operation, question : str
        As the operation declares them; see `clsparse_py._tuner.tunable.Tunable`.
    dtype : str
        Of values; where a profile has no trees for it, those for the real one of its size are taken. "any" where it is the same.
    features : mapping of str to float
        What trees compare.
    parse : callable
        From a label to what it means. A `ValueError` says that it is none: the profile, a newer one, is reported and ignored.
    """
    return rules(device, operation, dtype, question, features, parse).decide(features)


#: Generation of the profiles, part of the keys of caches: it grows by each `forget`.
forgotten = 0

#: Choices that operations derived from profiles, by keys of their own: emptied when files are read anew.
kept: dict[Any, Any] = {}


def thresholds(
    near: Sequence[Profile],
    operation: str,
    dtype: str,
    defaults: Mapping[str, float],
    make: Callable[[Mapping[str, float]], T],
) -> T:
    """Return the thresholds of an operation: each from the closest profile that has it, else its default.

    Parameters
    ----------
    near : sequence of Profile
        Of `find`, the closest first.
    operation, dtype
        As for `decide`.
    defaults : mapping of str to float
        All numbers by name.
    make : callable
        From numbers by name to the operation's own record. A `ValueError` says that a number is none: the profile is reported and
        ignored.
    """
    values, record = dict(defaults), make(defaults)
    for profile in reversed(near):
        named = {} if (profile.path, operation) in _unusable else profile.thresholds(operation, dtype)
        try:
            record = make({**values, **named}) if named else record
        except ValueError as error:
            _unusable.add((profile.path, operation))
            _report(profile.path, f"{operation}, thresholds: {error}")
        else:
            values |= named
    return record


def _of_package(device: Device) -> tuple[Profile, ...]:
    """Return the shipped profiles, which decide on a device that was never tuned."""
    return tuple(profile for profile in find(device) if profile.shipped)


def default(
    device: Device,
    operation: str,
    dtype: str,
    question: str,
    features: Mapping[str, float],
    parse: Callable[[str], Any] = str,
) -> Ruling[Any]:
    """Decide as on a device that was never tuned: by the closest shipped profile that answers a question."""
    return _first(_of_package(device), operation, dtype, question, features, parse).decide(features)


def name_for(device: Device) -> str:
    """Return the name of the profile of a device that is tuned here."""
    return re.sub(r"[^a-z0-9]+", "-", f"{device.name} {device.platform}".lower()).strip("-")[:120] or "device"


def identity(device: Device) -> dict[str, Any]:
    """Return the description, in a profile, of the measured device."""
    return {
        "name": device.name,
        "platform": device.platform,
        "vendor": device.vendor,
        "type": device.type,
        "driver": device.driver_version,
        "compute_units": device.compute_units,
    }


def _text(content: Mapping[str, Any]) -> str:
    """Return a profile as text, to be read by people: a line for each of its members, and more for what holds others."""
    members = (f" {json.dumps(key)}: {_value(value, 1)}" for key, value in content.items())
    return "{\n" + ",\n".join(members) + "\n}\n"


def _value(value: Any, depth: int) -> str:
    """Return a value as text: in a line, or in one for each of its members, of a list without those at its head."""
    text, indent = json.dumps(value), "\n" + " " * (depth + 1)
    if len(text) + depth <= _WIDTH or not isinstance(value, (dict, list)):
        return text
    if isinstance(value, dict):
        members = (f"{indent}{json.dumps(name)}: {_value(member, depth + 1)}" for name, member in value.items())
        return f"{{{','.join(members)}{indent[:-1]}}}"
    lines = [
        indent + _value(member, depth + 1) if isinstance(member, (dict, list)) else f" {json.dumps(member)}" for member in value
    ]
    return f"[{','.join(lines).lstrip()}]"


def save(content: Mapping[str, Any], target: Path | None = None) -> Path:
    """Write a profile to the user's folder, or to a file, and return where it is: all of it, or nothing.

    Raises
    ------
    ProfileError
        It is none, or it cannot be written; the message says where and why.
    """
    check(content)
    path = target if target is not None else folder() / f"{content['name']}.json"
    try:
        if target is None:
            make_private(folder())
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, _text(content))
    except OSError as error:
        raise ProfileError(f"profile {path}: it cannot be written: {error.strerror or error}") from error
    forget()
    return path


def remove(name: str) -> Path:
    """Remove one of the user's profiles, a damaged one too, and return where it was.

    Raises
    ------
    ProfileError
        The user has none of that name, or it cannot be removed.
    """
    path = next((path for path in own() if path.stem == name), None)
    if path is None:
        names = ", ".join(path.stem for path in own()) or "none"
        raise ProfileError(f"no profile of yours is named {name!r}; there are: {names}")
    try:
        path.unlink()
    except OSError as error:
        raise ProfileError(f"profile {path}: it cannot be removed: {error.strerror or error}") from error
    forget()
    return path
