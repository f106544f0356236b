"""Trees from measurements: rules that are there are found, and nothing is lost where nothing is to be gained."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import make_observation, separable

from clsparse_py._decisions.tree import Leaf, Split, evaluate, leaves
from clsparse_py._tuner import training
from clsparse_py._tuner.corpus import TEST

pytest.importorskip("sklearn")

MIDDLE = Leaf("middle")


def test_a_rule_is_found_and_loses_no_time() -> None:
    result = training.answer(separable(), MIDDLE)
    assert result is not None
    assert result.tuned
    assert isinstance(result.tree, Split)
    assert result.tree.feature == "mean"
    assert 11 < result.tree.at_most < 13
    assert [leaf.label for leaf in leaves(result.tree)] == ["short", "long"]
    for name in ("train", "test", "folds"):
        assert result.scores[name].mean == pytest.approx(1, abs=0.01), name
    assert result.scores["untuned test"].mean == pytest.approx(1.5)
    assert result.scores["untuned test"].errors == 1


def test_ties_make_no_splits_and_no_errors() -> None:
    rng = np.random.default_rng(1)
    made = [
        make_observation(
            {"middle": 2e-3, "a": 1e-3 * (1 + rng.normal() * 0.004), "b": 1e-3 * (1 + rng.normal() * 0.004)},
            {"mean": float(rng.integers(1, 500))}, case=f"case{n}", family=f"f{n % 5}", noise=0.03,
        )
        for n in range(100)
    ]  # fmt: skip
    result = training.answer(made, MIDDLE)
    assert result is not None
    assert isinstance(result.tree, Leaf)
    assert result.scores["train"].errors == 0


def test_what_gains_nothing_keeps_the_untuned_rule() -> None:
    rng = np.random.default_rng(2)
    times = [{"middle": 1e-3, "a": rng.uniform(0.9e-3, 1.4e-3)} for _ in range(120)]
    made = [
        make_observation(observation, {"mean": float(n % 37)}, case=f"c{n}", family=f"f{n % 6}")
        for n, observation in enumerate(times)
    ]
    result = training.answer(made, MIDDLE)
    assert result is not None
    assert not result.tuned
    assert result.tree is MIDDLE
    assert result.scores["train"] == result.scores["untuned train"]


def test_few_cases_make_a_leaf_that_is_best_over_all() -> None:
    made = [make_observation({"middle": 3e-3, "a": a, "b": 2e-3}, {"mean": 1.0 + a}, case=str(a)) for a in (1e-3, 1.1e-3, 9e-3)]
    result = training.answer(made, None)
    assert result is not None
    assert isinstance(result.tree, Leaf)
    assert result.tree.cases == 3


def test_nothing_to_train_with_is_no_answer() -> None:
    assert training.answer([], MIDDLE) is None
    assert training.answer([make_observation({"a": 1.0}, {}, split=TEST)], MIDDLE) is None
    assert training.answer([make_observation({}, {}, default="a")], MIDDLE) is None


def test_failures_and_what_was_not_measured_are_not_chosen() -> None:
    made = []
    for n in range(60):
        where = {"case": str(n), "family": str(n % 4)}
        if n % 2:
            made.append(make_observation({"middle": 1.2e-3, "a": 1e-3}, {"mean": float(n)}, **where))
        else:
            made.append(make_observation({"middle": 1.2e-3}, {"mean": float(n)}, failed={"a": "does not build"}, **where))
    result = training.answer(made, MIDDLE)
    assert result is not None
    assert {leaf.label for leaf in leaves(result.tree)} == {"middle"}


def test_the_costs_decide_and_not_the_count() -> None:
    # "often" is a little faster in nine cases of ten, and many times slower in the tenth, which no feature tells.
    made = [
        make_observation({"often": 1e-3 if n % 10 else 9e-3, "safe": 1.05e-3}, {"mean": 5.0}, case=str(n), family=str(n % 5))
        for n in range(100)
    ]  # fmt: skip
    result = training.answer(made, None)
    assert result is not None
    assert [leaf.label for leaf in leaves(result.tree)] == ["safe"]


def test_small_parts_of_a_matrix_count_for_little() -> None:
    made = []
    for n in range(40):
        made.append(make_observation({"a": 1e-2, "b": 2e-2}, {"mean": 5.0}, case=str(n), family=str(n % 5)))
        made += [
            make_observation({"a": 2e-5, "b": 1e-5}, {"mean": 5.0}, case=str(n), family=str(n % 5), subject=part)
            for part in range(1, 6)
        ]
    result = training.answer(made, None)
    assert result is not None
    assert [leaf.label for leaf in leaves(result.tree)] == ["a"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (3.0, 4.0), (1e6, 1e6 + 1), (-4.0, -2.0), (12.25, 12.5), (1e-9, 1.0)])
def test_limits_are_short_numbers_between_their_neighbours(low: float, high: float) -> None:
    limit = training._short_number(low, high)
    assert low <= limit < high
    assert len(f"{limit:g}") <= 6 or low >= 1e6


def test_trees_choose_as_scikit_learn_does_on_all_that_they_were_made_of() -> None:
    made = separable(100, seed=5)
    result = training.answer(made, None)
    assert result is not None
    for actual in made:
        assert evaluate(result.tree, actual.features)[0].label == min(actual.times, key=actual.times.__getitem__)


def test_a_tree_corrects_the_rule_where_it_gains_and_leaves_the_rest() -> None:
    # The rule is right above 100 rows; below, "a" is twice as fast, whatever the mean.
    rule = Split("mean", 8, Leaf("x"), Leaf("y"))
    rng = np.random.default_rng(7)
    made = []
    for n in range(200):
        rows, mean = float(rng.integers(1, 10_000)), float(rng.integers(1, 17))
        taken, other = ("x", "y") if mean <= 8 else ("y", "x")
        times = {"a": 0.5e-3 if rows <= 100 * 50 else 2e-3, taken: 1e-3, other: 1.6e-3}
        made.append(make_observation(times, {"mean": mean, "rows": rows}, case=str(n), family=str(n % 6), default=taken))
    result = training.answer(made, rule)
    assert result is not None
    assert result.tuned
    assert isinstance(result.tree, Split)
    assert result.tree.feature == "rows"
    assert isinstance(result.tree.then, Leaf)
    assert result.tree.then.label == "a"
    assert result.tree.otherwise == rule


def test_what_is_grafted_says_nothing_twice() -> None:
    rule = Split("mean", 8, Leaf("x"), Split("rows", 5, Leaf("y"), Leaf("z")))
    tree = Split("mean", 4, Leaf("a"), Split("mean", 9, Leaf(""), Leaf("")))
    grafted = training._graft(tree, rule)
    assert grafted == Split("mean", 4, Leaf("a"), Split("mean", 9, rule, rule.otherwise))
    assert training._graft(Split("rows", 7, Leaf(""), Leaf("")), Leaf("x")) == Leaf("x")


def test_what_is_larger_than_all_that_was_seen_is_left_to_the_rule() -> None:
    made = [
        make_observation({"middle": 2e-3, "a": 1e-3}, {"nnz": float(10 * n), "mean": 3.0}, case=f"case{n}", family=f"f{n % 5}")
        for n in range(100)
    ]
    result = training.answer(made, MIDDLE)
    assert result is not None
    assert result.tuned
    assert evaluate(result.tree, {"nnz": 990.0, "mean": 3.0})[0].label == "a"
    assert evaluate(result.tree, {"nnz": 991.0, "mean": 3.0})[0] is MIDDLE


def test_a_tree_may_lose_in_the_tail_what_it_gains_in_the_mean_but_no_more() -> None:
    def answered(seldom: float) -> training.Answer:
        # One case in ten, which no feature tells from the others, loses with what is best for the rest.
        times = [{"middle": 2e-3, "a": seldom if n % 10 == 0 else 1e-3} for n in range(200)]
        result = training.answer(
            [
                make_observation(observation, {"mean": float(n % 7)}, case=f"c{n}", family=f"f{n % 5}")
                for n, observation in enumerate(times)
            ],
            MIDDLE,
        )
        assert result is not None
        return result

    assert answered(2.5e-3).tuned
    assert not answered(60e-3).tuned
