"""Coordinate descent on made-up measurements: which steps are tried and taken, and what a profile tells of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from made_up import make_observation

from clsparse_py._tuner import descent
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST, TRAIN

pytestmark = pytest.mark.any_platform

NUMBERS = {"few": 4.0, "many": 100.0, "off": 0.0}
CANDIDATES = {"few": (2, 4, 8), "many": (50, 100, 200), "off": (1, 2, 4)}


def cases(times: Callable[[Mapping[str, float]], float], *labels: str, n: int = 6, split: str = TRAIN) -> list[Observation]:
    """Observations of so many cases, with the time of each label."""
    results = {label: times({**NUMBERS, **descent.changes_of(label)}) for label in (descent.UNTUNED, *labels)}
    return [make_observation(results, {}, case=f"{split}{number}", split=split) for number in range(n)]


def test_labels() -> None:
    for changes in ({}, {"few": 8.0}, {"few": 0.25, "many": float(1 << 34)}):
        assert descent.changes_of(descent.label_of(changes)) == changes
    assert descent.label_of({"many": 1, "few": 2}) == "few=2 many=1"
    for wrong in ("", "few", "few=x", "few=1 few=2", "few=inf", "few=1  many=2"):
        with pytest.raises(ValueError, match="changes"):
            descent.changes_of(wrong)


def test_neighbours_are_one_step_away_and_leave_alone_what_is_off() -> None:
    assert list(descent.neighbours("untuned", NUMBERS, CANDIDATES)) == ["few=2", "few=8", "many=50", "many=200"]
    assert list(descent.neighbours("few=8", NUMBERS, CANDIDATES)) == ["untuned", "few=8 many=50", "few=8 many=200"]


def test_it_goes_down_one_number_at_a_time() -> None:
    def seconds(numbers: Mapping[str, float]) -> float:
        return 1 + abs(numbers["few"] - 8) / 4 + abs(numbers["many"] - 200) / 1000

    measured: list[Observation] = []
    reached = [descent.current_label(measured)]
    for _ in range(4):
        measured += cases(seconds, reached[-1], *descent.neighbours(reached[-1], NUMBERS, CANDIDATES))
        reached.append(descent.current_label(measured))
    assert reached == ["untuned", "few=8", "few=8 many=200", "few=8 many=200", "few=8 many=200"]
    result = descent.answer([*measured, *cases(seconds, reached[-1], split=TEST)])
    assert result is not None
    assert result.tuned
    assert result.scores[TEST].mean == 1
    assert result.scores[f"untuned {TEST}"].mean == pytest.approx(2.1)
    told = descent.evidence(measured, "few=8 many=200")
    assert {name: threshold["value"] for name, threshold in told.items()} == {"few": 8, "many": 200}
    assert told["many"]["gain"] > 1.01
    assert told["few"]["cases"] > 0


@pytest.mark.parametrize("why", ["few cases", "little gain", "failed", "kept aside"])
def test_steps_that_are_not_taken(why: str) -> None:
    ratio = 0.995 if why == "little gain" else 0.5
    measured = cases(lambda numbers: ratio if numbers["few"] == 8 else 1, "few=8", n=2 if why == "few cases" else 6)
    if why == "failed":
        measured.append(make_observation({"untuned": 1.0}, {}, case="failed", failed={"few=8": "wrong result"}))
    if why == "kept aside":
        measured += cases(lambda numbers: 2 if numbers["few"] == 8 else 1, "few=8", split=TEST)
    result = descent.answer(measured)
    assert result is not None
    assert (result.tuned, result.tree.to_json()) == (False, {"take": "untuned"})
    assert descent.answer([]) is None
