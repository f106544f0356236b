"""Decision trees as JSON: evaluation, and the path in words.

A tree is a leaf, ``{"take": LABEL}``, or a split, ``[FEATURE, NUMBER, TREE, TREE]``: the first tree follows if the feature is at
most the number, else the second. In earlier profiles a split is ``{"feature": NAME, "at_most": NUMBER, "then": TREE, "else":
TREE}``. A leaf may hold the number of its training ``cases``, their mean time relative to the best as ``lost``, and a ``note`` in
words.
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
    """A leaf of a decision tree: the answer to a question.

    Attributes
    ----------
    label : str
        The label of the choice.
    cases : int or None
        Number of training cases at the leaf.
    lost : float or None
        Time with the label relative to the best label, as a geometric mean over these cases.
    note : str
        The reason in words; "" without one.
    """

    label: str
    cases: int | None = None
    lost: float | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the leaf of a decision tree as a value for JSON."""
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
        """Return the split of a decision tree, with its subtrees, as a value for JSON."""
        return [self.feature, self.at_most, self.then.to_json(), self.otherwise.to_json()]


Tree = Leaf | Split
#: Keys of a split (comparison) of a decision tree in earlier profiles.
_MEMBERS = ("feature", "at_most", "then", "else")
#: Most comparisons on the way to a leaf of a decision tree, as recursive functions walk over trees.
MAX_DEPTH = 64


def from_json(content: Any, depth: int = MAX_DEPTH) -> Tree:
    """Return the decision tree that a value read from JSON describes.

    Parameters
    ----------
    content : object
    depth : int
        Most comparisons on the way to a leaf.

    Raises
    ------
    ValueError
        The value is no tree, or a deeper one; the message says where.
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
    """Return the leaf of a decision tree that features lead to, and the comparisons on the way.

    Raises
    ------
    KeyError
        The tree compares a feature that is missing.
    """
    path: list[Step] = []
    while isinstance(tree, Split):
        holds = features[tree.feature] <= tree.at_most
        path.append(Step(tree.feature, tree.at_most, holds))
        tree = tree.then if holds else tree.otherwise
    return tree, tuple(path)


def leaf_of(tree: Tree, features: Mapping[str, float]) -> Leaf:
    """Return the leaf of a decision tree that features lead to; raises as `evaluate`, which returns the comparisons, too."""
    while isinstance(tree, Split):
        tree = tree.then if features[tree.feature] <= tree.at_most else tree.otherwise
    return tree


def restrict(tree: Tree, features: Mapping[str, float]) -> Tree:
    """Return a decision tree after its comparisons of the given features: only comparisons of other features remain."""
    while isinstance(tree, Split) and tree.feature in features:
        tree = tree.then if features[tree.feature] <= tree.at_most else tree.otherwise
    if isinstance(tree, Leaf):
        return tree
    lower, upper = restrict(tree.then, features), restrict(tree.otherwise, features)
    return lower if lower == upper else Split(tree.feature, tree.at_most, lower, upper)


def bare(tree: Tree) -> Tree:
    """Return a decision tree without statistics of training: trees with the same comparisons and labels then compare equal."""
    if isinstance(tree, Leaf):
        return Leaf(tree.label)
    return Split(tree.feature, tree.at_most, bare(tree.then), bare(tree.otherwise))


def words(path: tuple[Step, ...]) -> str:
    """Return the comparisons on a path through a decision tree in words: the range that is left of each feature.

    Features stand in the order of their first comparisons. An empty path gives "".
    """
    ranges: dict[str, list[float | None]] = {}
    for step in path:
        low, high = ranges.setdefault(step.feature, [None, None])
        if step.at_most:
            ranges[step.feature][1] = step.limit if high is None else min(high, step.limit)
        else:
            ranges[step.feature][0] = step.limit if low is None else max(low, step.limit)
    texts = []
    for feature, (low, high) in ranges.items():
        if low is not None and high is not None:
            texts.append(f"{_number(low)} < {feature} <= {_number(high)}")
        else:
            texts.append(f"{feature} <= {_number(high)}" if high is not None else f"{feature} > {_number(low)}")
    return " and ".join(texts)


def _number(value: float | None) -> str:
    """Return the limit of a comparison in a decision tree as text."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Iterate over the leaves of a decision tree."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        yield from leaves(tree.then)
        yield from leaves(tree.otherwise)


def features_of(tree: Tree) -> frozenset[str]:
    """Return the names of the features that a decision tree compares."""
    if isinstance(tree, Leaf):
        return frozenset()
    return frozenset({tree.feature}) | features_of(tree.then) | features_of(tree.otherwise)
