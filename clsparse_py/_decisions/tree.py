"""Decision trees as JSON: evaluation, and the path in words.

A tree is a leaf, ``{"take": LABEL}``, or a split, ``[FEATURE, NUMBER, TREE, TREE]``: what follows if the feature is at most that
number, and if not. In earlier profiles it is ``{"feature": NAME, "at_most": NUMBER, "then": TREE, "else": TREE}``. Leaves may
hold what the training knew: ``cases``, how many it had there, and ``lost``, their time relative to the best, as a mean; and a
``note`` in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Leaf",
    "Split",
    "Step",
    "Tree",
    "bare",
    "evaluate",
    "features_of",
    "from_json",
    "leaf_of",
    "leaves",
    "restrict",
    "words",
]


@dataclass(frozen=True)
class Step:
    """A comparison on the way to a leaf: whether ``feature`` is at most ``limit``, or above it."""

    feature: str
    limit: float
    at_most: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a decision tree: an answer.

    Attributes
    ----------
    label : str
        What to take.
    cases : int or None
        How many cases the training had here.
    lost : float or None
        Their time with this label relative to that with the best one, as a geometric mean.
    note : str
        Why, in words; "" where there is nothing to say.
    """

    label: str
    cases: int | None = None
    lost: float | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the leaf as JSON has it."""
        members = {"take": self.label, "cases": self.cases, "lost": self.lost, "note": self.note}
        return {key: value for key, value in members.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Split:
    """A comparison ``feature <= at_most`` with the subtrees for true and false."""

    feature: str
    at_most: float
    then: Tree
    otherwise: Tree

    def to_json(self) -> list[Any]:
        """Return the tree from here on as JSON has it."""
        return [self.feature, self.at_most, self.then.to_json(), self.otherwise.to_json()]


Tree = Leaf | Split
#: The members of a split in earlier profiles.
_MEMBERS = ("feature", "at_most", "then", "else")
#: Comparisons on the way to a leaf, at most: trees are walked by functions that call themselves.
MAX_DEPTH = 64


def from_json(content: Any, depth: int = MAX_DEPTH) -> Tree:
    """Return a tree from what JSON has of it.

    Parameters
    ----------
    content : object
    depth : int
        Comparisons on the way to a leaf, at most.

    Raises
    ------
    ValueError
        It is no tree, or a deeper one; the message says where.
    """
    if depth < 0:
        raise ValueError(f"the decision tree has more than {MAX_DEPTH} comparisons on the way to a leaf")
    if isinstance(content, dict) and isinstance(content.get("take"), str):
        return Leaf(content["take"], content.get("cases"), content.get("lost"), str(content.get("note", "")))
    if isinstance(content, dict) and content.keys() >= {*_MEMBERS}:
        content = [content[name] for name in _MEMBERS]
    if isinstance(content, list) and len(content) == len(_MEMBERS):
        feature, limit, lower, upper = content
        if isinstance(feature, str) and isinstance(limit, (int, float)) and not isinstance(limit, bool):
            return Split(feature, limit, from_json(lower, depth - 1), from_json(upper, depth - 1))
    text = str(content)
    raise ValueError(f"no decision tree: {text if len(text) < 80 else text[:77] + '...'}")


def evaluate(tree: Tree, features: Mapping[str, float]) -> tuple[Leaf, tuple[Step, ...]]:
    """Return the leaf that features lead to, and the comparisons on the way.

    Raises
    ------
    KeyError
        A feature that is compared is not there.
    """
    path: list[Step] = []
    while isinstance(tree, Split):
        holds = features[tree.feature] <= tree.at_most
        path.append(Step(tree.feature, tree.at_most, holds))
        tree = tree.then if holds else tree.otherwise
    return tree, tuple(path)


def leaf_of(tree: Tree, features: Mapping[str, float]) -> Leaf:
    """Return the leaf that features lead to; raises as `evaluate`, which tells the comparisons too."""
    while isinstance(tree, Split):
        tree = tree.then if features[tree.feature] <= tree.at_most else tree.otherwise
    return tree


def restrict(tree: Tree, features: Mapping[str, float]) -> Tree:
    """Return a tree with the known features substituted: comparisons of these are resolved."""
    while isinstance(tree, Split) and tree.feature in features:
        tree = tree.then if features[tree.feature] <= tree.at_most else tree.otherwise
    if isinstance(tree, Leaf):
        return tree
    lower, upper = restrict(tree.then, features), restrict(tree.otherwise, features)
    return lower if lower == upper else Split(tree.feature, tree.at_most, lower, upper)


def bare(tree: Tree) -> Tree:
    """Return a tree without the statistics of training, so that trees with the same comparisons and labels compare equal."""
    if isinstance(tree, Leaf):
        return Leaf(tree.label)
    return Split(tree.feature, tree.at_most, bare(tree.then), bare(tree.otherwise))


def words(path: tuple[Step, ...]) -> str:
    """Return a path in words: of each feature the range that its comparisons leave, in the order of their first mention.

    "" where nothing is compared.
    """
    ranges: dict[str, list[float | None]] = {}
    for step in path:
        low, high = ranges.setdefault(step.feature, [None, None])
        if step.at_most:
            ranges[step.feature][1] = step.limit if high is None else min(high, step.limit)
        else:
            ranges[step.feature][0] = step.limit if low is None else max(low, step.limit)
    said = []
    for feature, (low, high) in ranges.items():
        if low is not None and high is not None:
            said.append(f"{_number(low)} < {feature} <= {_number(high)}")
        else:
            said.append(f"{feature} <= {_number(high)}" if high is not None else f"{feature} > {_number(low)}")
    return " and ".join(said)


def _number(value: float | None) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Iterate over the leaves of a tree."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        yield from leaves(tree.then)
        yield from leaves(tree.otherwise)


def features_of(tree: Tree) -> frozenset[str]:
    """Return the names of the features that a tree compares."""
    if isinstance(tree, Leaf):
        return frozenset()
    return frozenset({tree.feature}) | features_of(tree.then) | features_of(tree.otherwise)
