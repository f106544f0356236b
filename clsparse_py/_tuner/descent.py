"""Coordinate descent over thresholds that are the same for all matrices.

A label tells the numbers that differ from the untuned ones, as in "merge_items=4 sort_items=8"; "untuned" if none does. A label
makes no difference on a case that has no time for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from clsparse_py._decisions.tree import Leaf
from clsparse_py._tuner import training
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST, TRAIN
from clsparse_py._tuner.limits import TUNER
from clsparse_py._tuner.training import Answer

__all__ = ["UNTUNED", "answer", "changes_of", "evidence", "gain", "label_of", "neighbours", "reached"]

#: The label of no change.
UNTUNED = "untuned"


def label_of(changes: Mapping[str, float]) -> str:
    """Return the label of some changes."""
    return " ".join(f"{name}={value:.15g}" for name, value in sorted(changes.items())) or UNTUNED


def changes_of(label: str) -> dict[str, float]:
    """Return the changes that a label tells.

    Raises
    ------
    ValueError
        It is no such label.
    """
    if label == UNTUNED:
        return {}
    try:
        pairs = [each.split("=") for each in label.split(" ")]
        changes = {name: float(value) for name, value in pairs}
    except ValueError:
        raise ValueError(f"{label[:80]!r} tells no changes, as 'name=number' would") from None
    if len(changes) < len(pairs) or not all(map(math.isfinite, changes.values())):
        raise ValueError(f"{label[:80]!r} changes a number twice, or to none")
    return changes


def neighbours(label: str, untuned: Mapping[str, float], candidates: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Iterate over the labels that change one number more: to the next candidate below, and to the next above.

    Numbers outside of their candidates stay: they switch something off.
    """
    changes = changes_of(label)
    for name, values in candidates.items():
        now = changes.get(name, untuned[name])
        if not values[0] <= now <= values[-1]:
            continue
        below, above = [value for value in values if value < now], [value for value in values if value > now]
        for value in (*below[-1:], *above[:1]):
            others = {**changes, name: value}
            yield label_of({each: number for each, number in others.items() if number != untuned[each]})


def _differences(observations: Sequence[Observation], before: str, after: str) -> list[float]:
    """Return the logarithms of the time with one label by that with another, where both were measured."""
    both = (each.times for each in observations if before in each.times and after in each.times)
    return [math.log(times[before] / times[after]) for times in both]


def gain(observations: Sequence[Observation], before: str, after: str) -> float:
    """Return the time with one label by that with another, in geometric mean over the cases on which they differ; 1 for none."""
    found = _differences(observations, before, after)
    return math.exp(math.fsum(found) / len(found)) if found else 1.0


def reached(observations: Sequence[Observation]) -> str:
    """Return the label at which the descent has arrived, by what was measured of it so far: it begins at "untuned"."""
    train = [each for each in observations if each.split == TRAIN]
    failed = {label for each in observations for label in each.failed}
    labels = dict.fromkeys(label for each in train for label in each.times if label not in failed)
    here, visited = UNTUNED, {UNTUNED}
    while True:
        gains = {
            label: gain(train, here, label)
            for label in labels
            if label not in visited and _is_step(here, label) and len(_differences(train, here, label)) >= TUNER.min_cases_of_step
        }
        best = max(gains, key=gains.__getitem__, default=here)
        if gains.get(best, 0.0) < TUNER.min_gain_of_step:
            return here
        visited.add(best)
        here = best


def _is_step(before: str, after: str) -> bool:
    """Return whether two labels differ in one number."""
    return len({name for name, _ in changes_of(before).items() ^ changes_of(after).items()}) == 1


def answer(observations: Sequence[Observation]) -> Answer | None:
    """Return the label that the descent arrived at, as a tree that always takes it; None if nothing was measured.

    It is dropped for the untuned numbers if it loses to them on the matrices kept aside.
    """
    measured = [each for each in observations if each.times]
    train, test = ([each for each in measured if each.split == split] for split in (TRAIN, TEST))
    if not train:
        return None
    found = reached(train)
    tuned = found != UNTUNED and gain(test, UNTUNED, found) >= 1.0
    label = found if tuned else UNTUNED
    scores = {}
    for split, of_split in ((TRAIN, train), (TEST, test)):
        filled = [_fill(each, label) for each in of_split]
        scores[split] = training.losses(filled, lambda _: label)
        scores[f"untuned {split}"] = training.losses(filled, lambda _: UNTUNED)
    return Answer(Leaf(label), tuned, Leaf(found), scores)


def evidence(observations: Sequence[Observation], label: str) -> dict[str, dict[str, Any]]:
    """Return the numbers that a label changes as a profile holds them: each with the cases on which another made a difference.

    Parameters
    ----------
    observations : sequence of Observation
    label : str
        Of `answer`.
    """
    changes = changes_of(label)
    found: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        cases = sum(any(name in changes_of(each) for each in case.times) for case in observations)
        without = label_of({each: number for each, number in changes.items() if each != name})
        found[name] = {"value": value, "cases": cases, "gain": round(gain(observations, without, label), 4)}
    return found


def _fill(observation: Observation, label: str) -> Observation:
    """Return an observation with the untuned time for a label that makes no difference."""
    times = observation.times
    if label in times or label in observation.failed or UNTUNED not in times:
        return observation
    return replace(observation, times={**times, label: times[UNTUNED]})
