"""Profiles: decision trees and thresholds as JSON, looked up by device.

The user's profiles lie in a folder, others are shipped. Of the profiles that suit a device the closest comes first: a profile of
the very device, then of a similar device, then the one for the device's type, then the default; the user's before a shipped one.
A question that a profile does not decide goes to the next profile. A profile that cannot be used is reported once and passed
over: it is never an error at run time.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from clsparse_py._decisions import kernel_hashes
from clsparse_py._decisions import tree as trees
from clsparse_py._device.device import Device
from clsparse_py._device.ranking import folder, list_shipped, parse_members, read_head
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
    "describe_older",
    "find",
    "find_shipped",
    "folder",
    "forget",
    "identity",
    "is_usable",
    "kept",
    "list_files",
    "list_own",
    "list_shipped",
    "load",
    "name_for",
    "read",
    "reject",
    "remark_older",
    "remove",
    "rules",
    "save",
]

_log = logging.getLogger(__name__)

#: Version of the JSON schema of profiles that this package writes and reads.
SCHEMA = 2
#: Name of the shipped profile for devices of a type without a profile: most such devices hide latency as GPUs do.
_DEFAULT = "generic-gpu"

#: Most characters of a line in a profile's file: a JSON value that needs more is written member by member.
_WIDTH = 130

#: Type of a label (name of a configuration in a profile) once an operation has parsed it, for type checkers.
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Profile:
    """Decision trees and thresholds of a device or of all devices of a type, and their evidence.

    Attributes
    ----------
    path : pathlib.Path
        The profile's file.
    shipped : bool
        Whether the profile came with the package.
    head : mapping
        The profile's name, device, date and rank, by which it is chosen for a device.
    """

    path: Path
    shipped: bool
    head: Mapping[str, Any] = field(repr=False)
    _decisions: Callable[[], Mapping[str, Any]] = field(repr=False)
    _content: Callable[[], Mapping[str, Any]] = field(repr=False)
    _trees: dict[tuple[str, str, str], trees.Tree] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def content(self) -> Mapping[str, Any]:
        """The whole tuning profile as parsed JSON; see ``profile.schema.json``."""
        return self._content()

    @property
    def name(self) -> str:
        """The name of the tuning profile, by which the user exports or removes it."""
        return str(self.head["name"])

    @property
    def device(self) -> Mapping[str, Any]:
        """The description of the device that the tuning profile is for."""
        device: Mapping[str, Any] = self.head["device"]
        return device

    @property
    def date(self) -> str:
        """The day when the tuning profile was made; "" if the profile names no day."""
        return str(self.head.get("date", ""))[:10]

    @functools.cached_property
    def _decides(self) -> Mapping[str, Any]:
        """The profile's decision trees and thresholds as parsed JSON."""
        return self._decisions()

    @property
    def operations(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """The profile's decision trees as parsed JSON, by operation, dtype and question."""
        operations: Mapping[str, Mapping[str, Mapping[str, Any]]] = self._decides["operations"]
        return operations

    def thresholds(self, operation: str, dtype: str) -> dict[str, float]:
        """Return the profile's thresholds of an operation, by name; a threshold for the dtype comes before one for any dtype."""
        of_operation = self._decides.get("thresholds", {}).get(operation, {})
        named = (of_operation.get(key, {}) for key in reversed(_dtype_keys(dtype)))
        return {name: threshold["value"] for by_name in named for name, threshold in by_name.items()}

    def tree(self, operation: str, dtype: str, question: str) -> trees.Tree | None:
        """Return the decision tree that answers a question of an operation, such as which kernel to take; None without a tree.

        Raises
        ------
        ValueError
            The tree is malformed.
        """
        for key in _dtype_keys(dtype):
            cached = self._trees.get((operation, key, question))
            if cached is not None:
                return cached
            content = self.operations.get(operation, {}).get(key, {}).get(question)
            if content is not None:
                return self._trees.setdefault((operation, key, question), trees.from_json(content))
        return None

    def age(self, operation: str) -> str:
        """Return how the profile's choices for an operation were made, if not for its present kernels, in words; else ""."""
        recorded = self._decides.get("kernels", {}).get(operation)
        if recorded == kernel_hashes.hash_of(operation):
            return ""
        return "made for older kernels" if recorded else "made before kernels were recorded"

    def __str__(self) -> str:
        return f"profile {self.name} ({self.date})" if self.date and "name" in self.device else f"profile {self.name}"


def _dtype_keys(dtype: str) -> tuple[str, ...]:
    """Return the keys under which trees for a dtype are sought, in order: the dtype; float32 (to 4 bytes) or float64; "any"."""
    if dtype == "any":
        return ("any",)
    real = "float32" if np.dtype(dtype).itemsize <= 4 else "float64"
    return tuple(dict.fromkeys((dtype, real, "any")))


@functools.cache
def _validator() -> Callable[[Any], Any]:
    """Return the compiled function that checks a profile, as parsed JSON, against the schema."""
    # fastjsonschema is imported here, as few users have profiles of their own.
    import fastjsonschema

    schema = json.loads((Path(__file__).parent / "profile.schema.json").read_text(encoding="utf-8"))
    compiled: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return compiled


def check(content: Any) -> None:
    """Raise `ProfileError` unless a value read from JSON is a tuning profile of this version of the schema."""
    version = content.get("schema") if isinstance(content, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise ProfileError(f"it has version {version} of the schema, and this package reads {SCHEMA}: a newer one made it")
    if version in range(SCHEMA):
        raise ProfileError(
            f"it has version {version} of the schema, and this package reads {SCHEMA}: an older one made it; "
            "`clsparse tune` makes a new one"
        )
    try:
        _validator()(content)
    except ValueError as error:  # fastjsonschema's error
        raise ProfileError(f"it is no profile: {str(error).replace('data', 'profile', 1)}") from None
    except RecursionError:
        raise ProfileError("it is no profile: its trees are too deep") from None


def read(path: Path, *, shipped: bool = False) -> Profile:
    """Return the tuning profile (decision trees and thresholds of a device) that a JSON file holds.

    Raises
    ------
    ProfileError
        The file cannot be read, or is damaged, or of another version; the message says why.
    """
    try:
        if shipped:
            return Profile(path, shipped, read_head(path), lambda: _decisions_in(path), lambda: json.loads(path.read_bytes()))
        content = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise ProfileError(f"it cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError, too
        raise ProfileError(f"it is damaged: {error}") from None
    check(content)
    return Profile(path, shipped, content, lambda: content, lambda: content)


def _decisions_in(path: Path) -> Mapping[str, Any]:
    """Return trees, thresholds and hashes of kernels in the file of a shipped profile, without parsing the evidence."""
    return parse_members(path.read_text(encoding="utf-8"), "kernels", "operations", "thresholds")


def _refuse_constant(text: str) -> Any:
    """Raise a `ValueError` for NaN or an infinity in a profile: they are no JSON, and no bound of the schema would find them."""
    raise ValueError(f"{text} is no number")


def load(name: str) -> Profile:
    """Return the tuning profile of a name: the user's own profile, else the shipped profile.

    Raises
    ------
    ProfileError
        No profile has the name, or it cannot be used.
    """
    for path, is_shipped in list_files():
        if path.stem == name:
            try:
                return read(path, shipped=is_shipped)
            except ProfileError as error:
                raise ProfileError(f"profile {path}: {error}") from None
    raise ProfileError(f"no profile is named {name!r}; there are {', '.join(path.stem for path, _ in list_files())}")


def list_own() -> list[Path]:
    """Return the files of the user's tuning profiles, including damaged ones."""
    try:
        return sorted(path for path in folder().iterdir() if path.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _report(folder(), f"its profiles cannot be listed: {error.strerror or error}")
        return []


def list_files() -> Iterator[tuple[Path, bool]]:
    """Iterate over pairs of the file of a tuning profile, the user's first, and whether the profile came with the package."""
    yield from ((path, False) for path in list_own())
    yield from ((path, True) for path in list_shipped())


#: Files of tuning profiles that were reported as ignored, each with the reason.
_reported: set[tuple[Path, str]] = set()


def _report(path: Path, why: str) -> None:
    """Warn once that the tuning profile in a file is ignored, and why."""
    if (path, why) not in _reported:
        _reported.add((path, why))
        _log.warning("profile %s is ignored: %s", path, why)


def _distance(profile: Profile, device: Device) -> tuple[float, ...] | None:
    """Return a key to sort profiles for a device: 0 its own, 1 a similar one (by size), 2 its type, 3 default; None if unfit."""
    made_for = profile.device
    if made_for["type"] != device.type:
        return (3,) if profile.shipped and profile.name == _DEFAULT else None
    if made_for.get("name") == device.name and made_for.get("platform") == device.platform:
        return (0,)
    if "name" not in made_for:
        return (2,)
    # Devices of one vendor are kindred, but CPU devices those of one OpenCL platform, as its compiler decides their speed.
    kin = made_for["platform"] == device.platform if device.lanes_are_loops else made_for["vendor"] == device.vendor
    return (1, abs(math.log(made_for["compute_units"] / device.compute_units))) if kin else None


@functools.cache
def _read_all() -> tuple[Profile, ...]:
    """Return all tuning profiles that can be used, the user's first."""
    profiles = []
    for path, is_shipped in list_files():
        try:
            profiles.append(read(path, shipped=is_shipped))
        except ProfileError as error:  # noqa: PERF203 - a damaged file hides no other one
            _report(path, str(error))
    return tuple(profiles)


@functools.lru_cache(maxsize=64)
def find(device: Device) -> tuple[Profile, ...]:
    """Return the tuning profiles that suit a device, the closest first."""
    distances = ((_distance(profile, device), profile.shipped, profile.name, profile) for profile in _read_all())
    near = sorted((entry for entry in distances if entry[0] is not None), key=lambda entry: entry[:3])
    return tuple(profile for *_, profile in near)


def find_shipped(device: Device) -> tuple[Profile, ...]:
    """Return the shipped profiles that suit a device, the closest first; they alone decide on a device that was never tuned."""
    return tuple(profile for profile in find(device) if profile.shipped)


def remark_older(operation: str, deciding: Iterable[Profile]) -> str:
    """Return what an explanation adds for the profiles that decided: which were not made for the present kernels; "" if none."""
    ages = {profile.name: profile.age(operation) for profile in deciding}
    return "".join(f"; profile {name} was {age}" for name, age in ages.items() if age)


def describe_older(near: Sequence[Profile]) -> list[str]:
    """Return a sentence for each of some profiles, the closest first, that decides but was not made for the present kernels."""
    operations: dict[tuple[Profile, str], list[str]] = {}
    for operation in kernel_hashes.OPERATIONS:
        profile = next((closest for closest in near if operation in closest.operations and is_usable(closest, operation)), None)
        if profile is not None and (age := profile.age(operation)):
            operations.setdefault((profile, age), []).append(operation)
    return [f"{profile}: its choices for {', '.join(names)} were {age}." for (profile, age), names in operations.items()]


def forget() -> None:
    """Empty the caches of all profiles and of the decisions by profiles, so that the next decision reads the files again."""
    global forgotten
    forgotten += 1
    _reported.clear()
    _unusable.clear()
    _rules.clear()
    kept.clear()
    _read_all.cache_clear()
    find.cache_clear()


@dataclass(frozen=True)
class Ruling(Generic[T]):
    """A decision by a profile's tree. Its reasons are put into words on demand, as that takes longer than to decide.

    Attributes
    ----------
    rules : Rules
        The tree that decided, and its profile.
    features : mapping of str to float
        The features that the tree compared.
    leaf : Leaf
        The leaf of the tree to which the comparisons led.
    """

    rules: Rules[T]
    features: Mapping[str, float]
    leaf: trees.Leaf

    @property
    def label(self) -> str:
        """The label of the decision: the name of the configuration that was chosen."""
        return self.leaf.label

    @property
    def value(self) -> T:
        """The configuration that was chosen: the label of the decision, parsed by the operation."""
        return self.rules.values[self.leaf.label]

    @property
    def profile(self) -> str:
        """The name of the profile that decided, with its date if the profile was measured."""
        return str(self.rules.profile)

    @property
    def path(self) -> str:
        """The comparisons of the tree that led to the decision, in words; "" if the tree compares nothing."""
        return trees.words(trees.evaluate(self.rules.tree, self.features)[1])

    @property
    def why(self) -> str:
        """The reason of the decision in words: the profile, and the path through its tree."""
        return f"{self.profile}: {self.path or 'always'}{self._noted}"

    def __str__(self) -> str:
        path = self.path
        return f"{self.label} {f'where {path}' if path else 'always'}{self._noted}"

    @property
    def _noted(self) -> str:
        """The note of the decision tree's leaf, in parentheses; "" if the leaf has no note."""
        return f" ({self.leaf.note})" if self.leaf.note else ""


@dataclass(frozen=True)
class Rules(Generic[T]):
    """The decision tree that answers a question on a device, and the configurations that its labels name, by label."""

    profile: Profile
    tree: trees.Tree
    values: Mapping[str, T]

    def decide(self, features: Mapping[str, float]) -> Ruling[T]:
        """Return the decision of the tree for features, the numbers that the tree compares."""
        return Ruling(self, features, trees.leaf_of(self.tree, features))

    def restrict(self, features: Mapping[str, float]) -> Rules[T]:
        """Return the rules with a smaller tree: only comparisons of other features than the given ones remain."""
        return Rules(self.profile, trees.restrict(self.tree, features), self.values)

    def take(self, features: Mapping[str, float]) -> T:
        """Return the configuration that the tree chooses for features, the numbers that the tree compares."""
        return self.values[trees.leaf_of(self.tree, features).label]


#: Cached rules (a decision tree and its parsed labels), by device, operation, dtype and question.
_rules: dict[tuple[Device, str, str, str], Rules[Any]] = {}
#: Pairs of a profile's file and an operation for which the profile is ignored, as a warning has reported.
_unusable: set[tuple[Path, str]] = set()


def is_usable(profile: Profile, operation: str) -> bool:
    """Return whether a tuning profile may decide for an operation: it was not rejected before."""
    return (profile.path, operation) not in _unusable


def reject(profile: Profile, operation: str, subject: str, why: str) -> None:
    """Ignore a profile for an operation from now on, and warn why its tree for a question, or its thresholds, are unusable."""
    _unusable.add((profile.path, operation))
    _report(profile.path, f"{operation}, {subject}: {why}")


def rules(
    device: Device, operation: str, dtype: str, question: str, features: Mapping[str, float], parse: Callable[[str], T]
) -> Rules[T]:
    """Return the rules (a decision tree and its parsed labels) of the closest profile that answers a question on a device.

    The parameters are those of `decide`.
    """
    key = (device, operation, dtype, question)
    cached = _rules.get(key)
    if cached is None:
        cached = _rules[key] = _first_rules(find(device), operation, dtype, question, features, parse)
    return cached


def _first_rules(
    profiles: tuple[Profile, ...],
    operation: str,
    dtype: str,
    question: str,
    features: Mapping[str, float],
    parse: Callable[[str], T],
) -> Rules[T]:
    """Return the rules of the first of some profiles with a usable tree for a question; unusable trees are rejected."""
    for profile in profiles:
        if not is_usable(profile, operation):
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
        reject(profile, operation, question, why)
    raise LookupError(f"no profile decides {question} of {operation} for {dtype}")


def decide(
    device: Device, operation: str, dtype: str, question: str, features: Mapping[str, float], parse: Callable[[str], T]
) -> Ruling[T]:
    """Decide a question of an operation, such as which kernel to take, by the closest profile that answers the question.

    Parameters
    ----------
    device : Device
        The device of the operation.
    operation, question : str
        Names as the operation declares them; see `clsparse_py._tuner.tunable.Tunable`.
    dtype : str
        The dtype of values, or "any" if it makes no difference. If a profile has no tree for the dtype, the tree for the real
        dtype of the same size decides.
    features : mapping of str to float
        The features that trees compare.
    parse : callable
        Returns the configuration that a label names, or raises `ValueError`: then the profile, a newer one, is reported and
        ignored.
    """
    return rules(device, operation, dtype, question, features, parse).decide(features)


#: Generation of the profiles, a part of the keys of caches: the number of calls of `forget`.
forgotten = 0

#: Cache of the choices that operations derived from profiles, by keys of the operations; `forget` empties the cache.
kept: dict[Any, Any] = {}


def default(device: Device, operation: str, dtype: str, question: str, features: Mapping[str, float]) -> Ruling[str]:
    """Decide a question of an operation as on a device that was never tuned, by the closest shipped profile with an answer."""
    return _first_rules(find_shipped(device), operation, dtype, question, features, str).decide(features)


def name_for(device: Device) -> str:
    """Return the name of the profile that tuning a device writes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{device.name} {device.platform}".lower()).strip("-")[:120] or "device"


def identity(device: Device) -> dict[str, Any]:
    """Return the description of a tuned device that the device's profile holds."""
    return {
        "name": device.name,
        "platform": device.platform,
        "vendor": device.vendor,
        "type": device.type,
        "driver": device.driver_version,
        "compute_units": device.compute_units,
    }


def _format(content: Mapping[str, Any]) -> str:
    """Return the text of a profile's file: a line for each member, and several lines for a member that is too long."""
    members = (f" {json.dumps(key)}: {_format_value(value, 1)}" for key, value in content.items())
    return "{\n" + ",\n".join(members) + "\n}\n"


def _format_value(value: Any, depth: int) -> str:
    """Return a profile value's JSON text: one line, or a line for each member; scalars of a long list share its first line."""
    text, indent = json.dumps(value), "\n" + " " * (depth + 1)
    if len(text) + depth <= _WIDTH or not isinstance(value, (dict, list)):
        return text
    if isinstance(value, dict):
        members = (f"{indent}{json.dumps(name)}: {_format_value(member, depth + 1)}" for name, member in value.items())
        return f"{{{','.join(members)}{indent[:-1]}}}"
    lines = [
        indent + _format_value(member, depth + 1) if isinstance(member, (dict, list)) else f" {json.dumps(member)}"
        for member in value
    ]
    return f"[{','.join(lines).lstrip()}]"


def save(content: Mapping[str, Any], target: Path | None = None) -> Path:
    """Write a tuning profile to the user's folder or to a file, as a whole or not at all, and return the file's path.

    Raises
    ------
    ProfileError
        The content is no profile, or it cannot be written; the message says where and why.
    """
    check(content)
    path = target if target is not None else folder() / f"{content['name']}.json"
    try:
        if target is None:
            make_private(folder())
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, _format(content))
    except OSError as error:
        raise ProfileError(f"profile {path}: it cannot be written: {error.strerror or error}") from error
    forget()
    return path


def remove(name: str) -> Path:
    """Remove one of the user's tuning profiles, damaged or not, and return the path of its file.

    Raises
    ------
    ProfileError
        The user has no profile of that name, or it cannot be removed.
    """
    path = next((path for path in list_own() if path.stem == name), None)
    if path is None:
        names = ", ".join(path.stem for path in list_own()) or "none"
        raise ProfileError(f"no profile of yours is named {name!r}; there are: {names}")
    try:
        path.unlink()
    except OSError as error:
        raise ProfileError(f"profile {path}: it cannot be removed: {error.strerror or error}") from error
    forget()
    return path
