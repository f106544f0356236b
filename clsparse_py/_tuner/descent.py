"""Coordinate descent over thresholds that are the same for all matrices.

A label names the thresholds that differ from the untuned ones, as in "merge_items=4 sort_items=8"; "untuned" names none. A case
without a time for a label was not measured with it, because these thresholds make no difference there.
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

__all__ = ["UNTUNED", "answer", "changes_of", "current_label", "evidence", "gain", "label_of", "neighbours"]

#: Label that stands for the untuned values of all thresholds.
UNTUNED = "untuned"


def label_of(changes: Mapping[str, float]) -> str:
    """Return the label that names changed thresholds with their values, as "merge_items=4"; "untuned" without changes."""
    return " ".join(f"{name}={value:.15g}" for name, value in sorted(changes.items())) or UNTUNED


def changes_of(label: str) -> dict[str, float]:
    """Return the values of the thresholds that a label changes, such as "merge_items=4", by name.

    Raises
    ------
    ValueError
        The label is malformed.
    """
    if label == UNTUNED:
        return {}
    try:
        pairs = [change.split("=") for change in label.split(" ")]
        changes = {name: float(value) for name, value in pairs}
    except ValueError:
        raise ValueError(f"{label[:80]!r} tells no changes, as 'name=number' would") from None
    if len(changes) < len(pairs) or not all(map(math.isfinite, changes.values())):
        raise ValueError(f"{label[:80]!r} changes a number twice, or to none")
    return changes


def neighbours(label: str, untuned: Mapping[str, float], candidates: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Iterate over the labels of thresholds one step from a label: one threshold takes its next lower or next higher candidate.

    A threshold outside of its candidates stays, as such a number switches something off.
    """
    changes = changes_of(label)
    for name, values in candidates.items():
        current = changes.get(name, untuned[name])
        if not values[0] <= current <= values[-1]:
            continue
        below, above = [value for value in values if value < current], [value for value in values if value > current]
        for value in (*below[-1:], *above[:1]):
            changed = {**changes, name: value}
            yield label_of({threshold: number for threshold, number in changed.items() if number != untuned[threshold]})


def _differences(observations: Sequence[Observation], old_label: str, new_label: str) -> list[float]:
    """Return the logarithm of the speed-up of a new label of thresholds over an old one, for each matrix with both times."""
    both = (
        observation.times for observation in observations if old_label in observation.times and new_label in observation.times
    )
    return [math.log(times[old_label] / times[new_label]) for times in both]


def gain(observations: Sequence[Observation], old_label: str, new_label: str) -> float:
    """Return the speed-up of a new label of thresholds over an old one: the geometric mean over matrices; 1 for no matrix."""
    differences = _differences(observations, old_label, new_label)
    return math.exp(math.fsum(differences) / len(differences)) if differences else 1.0


def current_label(observations: Sequence[Observation]) -> str:
    """Return the label of thresholds at which a coordinate descent from "untuned" has arrived, by its measurements so far."""
    train = [observation for observation in observations if observation.split == TRAIN]
    failed = {label for observation in observations for label in observation.failed}
    labels = dict.fromkeys(label for observation in train for label in observation.times if label not in failed)
    current, visited = UNTUNED, {UNTUNED}
    while True:
        gains = {
            label: gain(train, current, label)
            for label in labels
            if label not in visited
            and _is_step(current, label)
            and len(_differences(train, current, label)) >= TUNER.min_cases_of_step
        }
        best = max(gains, key=gains.__getitem__, default=current)
        if gains.get(best, 0.0) < TUNER.min_gain_of_step:
            return current
        visited.add(best)
        current = best


def _is_step(old_label: str, new_label: str) -> bool:
    """Return whether two labels of thresholds differ in one threshold, as before and after a step of the descent."""
    return len({name for name, _ in changes_of(old_label).items() ^ changes_of(new_label).items()}) == 1


def answer(observations: Sequence[Observation]) -> Answer | None:
    """Return the answer, a tree of one leaf: the descent's thresholds, or the untuned if faster in tests; None without matrices.

    The untuned thresholds take its place if they are faster on the matrices kept aside.
    """
    measured = [observation for observation in observations if observation.times]
    train, test = ([observation for observation in measured if observation.split == split] for split in (TRAIN, TEST))
    if not train:
        return None
    arrival = current_label(train)
    tuned = arrival != UNTUNED and gain(test, UNTUNED, arrival) >= 1.0
    label = arrival if tuned else UNTUNED
    scores = {}
    for split, of_split in ((TRAIN, train), (TEST, test)):
        filled = [_fill(observation, label) for observation in of_split]
        scores[split] = training.losses(filled, lambda _: label)
        scores[f"untuned {split}"] = training.losses(filled, lambda _: UNTUNED)
    return Answer(Leaf(label), tuned, Leaf(arrival), scores)


def evidence(observations: Sequence[Observation], label: str) -> dict[str, dict[str, Any]]:
    """Return a profile's evidence for each threshold that a label changes: its value, number of measured cases, and speed-up.

    Parameters
    ----------
    observations : sequence of Observation
    label : str
        The label of `answer`.
    """
    changes = changes_of(label)
    entries: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        cases = sum(any(name in changes_of(measured) for measured in case.times) for case in observations)
        without = label_of({other: number for other, number in changes.items() if other != name})
        entries[name] = {"value": value, "cases": cases, "gain": round(gain(observations, without, label), 4)}
    return entries


def _fill(observation: Observation, label: str) -> Observation:
    """Return a matrix's observation in which a label that was not measured, as it changes nothing there, has the untuned time."""
    times = observation.times
    if label in times or label in observation.failed or UNTUNED not in times:
        return observation
    return replace(observation, times={**times, label: times[UNTUNED]})
