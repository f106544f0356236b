"""Decision trees as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from clsparse_py._decisions import tree as trees

TREE: list[Any] = [
    "mean", 12,
    ["longest", 30, {"take": "a", "cases": 7, "lost": 1.01}, {"take": "b"}],
    ["mean", 99.5, {"take": "a", "note": "long rows"}, {"take": "c"}],
]  # fmt: skip
#: As earlier profiles have it.
NAMED: dict[str, Any] = {
    "feature": "mean", "at_most": 12,
    "then": {"feature": "longest", "at_most": 30, "then": {"take": "a", "cases": 7, "lost": 1.01}, "else": {"take": "b"}},
    "else": {"feature": "mean", "at_most": 99.5, "then": {"take": "a", "note": "long rows"}, "else": {"take": "c"}},
}  # fmt: skip


def test_to_json_and_back() -> None:
    tree = trees.from_json(TREE)
    assert tree.to_json() == trees.from_json(NAMED).to_json() == TREE
    assert [leaf.label for leaf in trees.leaves(tree)] == ["a", "b", "a", "c"]
    assert trees.features_of(tree) == {"mean", "longest"}
    assert trees.from_json({"take": "x"}).to_json() == {"take": "x"}


@pytest.mark.parametrize(
    ("mean", "longest", "label", "path"),
    [(12, 30, "a", "mean <= 12 and longest <= 30"), (5, 31, "b", "mean <= 12 and longest > 30"),
     (12.5, 0, "a", "12 < mean <= 99.5"), (100, 0, "c", "mean > 99.5")],
)  # fmt: skip
def test_evaluation_and_its_path(mean: float, longest: int, label: str, path: str) -> None:
    tree = trees.from_json(TREE)
    leaf, steps = trees.evaluate(tree, {"mean": mean, "longest": longest, "other": 3})
    assert leaf.label == label
    assert trees.words(steps) == path


def test_what_is_known_is_decided_beforehand() -> None:
    tree = trees.from_json(TREE)
    assert trees.restrict(tree, {"mean": 50}) == trees.Leaf("a", note="long rows")
    assert trees.restrict(tree, {"mean": 5}).to_json() == TREE[2]
    left = trees.restrict(tree, {"longest": 50})
    assert trees.features_of(left) == {"mean"}
    for mean in (3, 50, 500):
        assert trees.evaluate(left, {"mean": mean})[0] == trees.evaluate(tree, {"mean": mean, "longest": 50})[0]


def test_the_tightest_comparisons_are_told() -> None:
    steps = (trees.Step("x", 9, True), trees.Step("y", 2, False), trees.Step("x", 5, True), trees.Step("x", 1.25, False))
    assert trees.words(steps) == "1.25 < x <= 5 and y > 2"
    assert trees.words((trees.Step("x", 1 << 24, True),)) == "x <= 16,777,216"
    assert trees.words(()) == ""


def test_a_missing_feature_is_an_error() -> None:
    with pytest.raises(KeyError, match="longest"):
        trees.evaluate(trees.from_json(TREE), {"mean": 1})


@pytest.mark.parametrize(
    "content",
    [None, 3, "a", {}, [], ["a", 3, {"take": "a"}], ["a", "3", {"take": "a"}, {"take": "a"}], {"take": 3},
     {"feature": "a", "at_most": 3, "then": {"take": "a"}},
     {"feature": "a", "at_most": "3", "then": {"take": "a"}, "else": {"take": "a"}},
     {"feature": "a", "at_most": True, "then": {"take": "a"}, "else": {"take": "a"}},
     {"feature": 1, "at_most": 3, "then": {"take": "a"}, "else": {"take": "a"}},
     {"feature": "a", "at_most": 3, "then": {"take": "a"}, "else": []}],
)  # fmt: skip
def test_what_is_no_tree(content: Any) -> None:
    with pytest.raises(ValueError, match=r"^no decision tree: "):
        trees.from_json(content)


def test_evaluation_looks_at_one_feature_a_level() -> None:
    tree: dict[str, Any] = {"take": "leaf"}
    for depth in range(12):
        tree = {"feature": f"f{depth}", "at_most": depth, "then": tree, "else": tree}
    looked: list[str] = []

    class Watched(dict[str, float]):
        def __getitem__(self, name: str) -> float:
            looked.append(name)
            return super().__getitem__(name)

    result, _ = trees.evaluate(trees.from_json(tree), Watched({f"f{depth}": float(depth) for depth in range(12)}))
    assert result.label == "leaf"
    assert looked == [f"f{depth}" for depth in reversed(range(12))]
