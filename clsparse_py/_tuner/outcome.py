"""The outcome of the measurements of a device: trees, how well they do, and the profile that holds them."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import itertools
import logging
import math
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import clsparse_py
from clsparse_py._decisions import profiles
from clsparse_py._decisions.tree import Leaf, Tree, bare, features_of, from_json, leaf_of
from clsparse_py._device.device import Device
from clsparse_py._ground.errors import ProfileError
from clsparse_py._ground.records import dataclass
from clsparse_py._tuner import descent, training
from clsparse_py._tuner.checkpoint import Checkpoint, Observation
from clsparse_py._tuner.corpus import TEST, TRAIN
from clsparse_py._tuner.training import Answer, Losses
from clsparse_py._tuner.tunable import Tunable

__all__ = ["Outcome", "Whole", "changes_decisions", "describe_origin", "existing", "profile_of", "train"]

_log = logging.getLogger(__name__)

#: Cases of evidence for a question in a profile; few, as every process that multiplies reads the profile.
_EVIDENCE = 20


@dataclass(frozen=True)
class Outcome:
    """The outcome of training on the measurements of an operation and dtype.

    Attributes
    ----------
    answers : dict of str to Answer
        By question.
    whole : list of Whole
        What they lead to together, by matrix.
    scores : dict of str to Losses
        Of that, against the best of all that was measured.
    observations : list of Observation
        That it was made of.
    descents : tuple of str
        The questions that are answered by numbers.
    """

    answers: dict[str, Answer]
    whole: list[Whole]
    scores: dict[str, Losses]
    observations: list[Observation]
    descents: tuple[str, ...] = ()

    @property
    def trees(self) -> dict[str, Any]:
        """The trees as JSON has them, by question."""
        return {question: answer.tree.to_json() for question, answer in self.answers.items() if question not in self.descents}

    @property
    def numbers(self) -> dict[str, Any]:
        """The thresholds that are better than the untuned ones, with their evidence, as JSON has them, by name."""
        thresholds: dict[str, Any] = {}
        for question in self.descents:
            observations, label = (
                [observation for observation in self.observations if observation.question == question],
                self.answers[question].tree,
            )
            assert isinstance(label, Leaf)  # a descent gives no others
            thresholds |= descent.evidence(observations, label.label)
        return thresholds


def train(device: Device, checkpoint: Checkpoint, tunables: Mapping[str, Tunable[Any]]) -> dict[tuple[str, str], Outcome]:
    """Return the trained trees and thresholds of all measurements, by operation and dtype.

    What this version of the operation does not know any more, such as labels of earlier ones, is left out.
    """
    outcomes: dict[tuple[str, str], Outcome] = {}
    for operation, tunable in tunables.items():
        for dtype in tunable.dtypes(device):
            rules = {question: _shipped_tree(device, operation, dtype, question) for question in tunable.questions}
            observations = [
                _as_decided_now(observation, rules[observation.question])
                for observation in checkpoint.of(operation, dtype)
                if observation.question in tunable.questions and observation.times
            ]
            answers: dict[str, Answer] = {}
            for question in tunable.questions:
                of_question = [
                    _drop_unknown_labels(tunable, observation) for observation in observations if observation.question == question
                ]
                of_question = [observation for observation in of_question if observation.times]
                by_descent = question in tunable.descents
                learned = descent.answer(of_question) if by_descent else training.answer(of_question, rules[question])
                if learned is not None:
                    answers[question] = learned
            if answers:
                by_trees = {question: answer for question, answer in answers.items() if question not in tunable.descents}
                # A question may have no subject, such as bins if one kernel makes all rows.
                complete = (
                    {observation.question for observation in observations} - {*tunable.descents} == by_trees.keys() != set()
                )
                wholes = whole(observations, by_trees) if complete else []
                descents = tuple(question for question in answers if question in tunable.descents)
                outcomes[operation, dtype] = Outcome(answers, wholes, scores_of(wholes), observations, descents)
    return outcomes


def _drop_unknown_labels(tunable: Tunable[Any], observation: Observation) -> Observation:
    """Return an observation without the labels that the operation does not parse."""

    def parses(label: str) -> bool:
        try:
            tunable.parse(observation.question, label)
        except ValueError:
            return False
        return True

    times = {label: seconds for label, seconds in observation.times.items() if parses(label)}
    return observation if len(times) == len(observation.times) else replace(observation, times=times)


def _as_decided_now(observation: Observation, untuned: Tree | None) -> Observation:
    """Return an observation with what is chosen untuned by now: it may come from an earlier version."""
    if untuned is None or not features_of(untuned) <= observation.features.keys():
        return observation
    return replace(observation, default=leaf_of(untuned, observation.features).label)


def _shipped_tree(device: Device, operation: str, dtype: str, question: str) -> Tree | None:
    """Return the tree that decides without a profile of the user's own: what is shipped for a device is not to get worse."""
    for profile in profiles.find(device):
        if profile.shipped:
            with contextlib.suppress(ValueError):
                tree = profile.tree(operation, dtype, question)
                if tree is not None:
                    return tree
    return None


@dataclass(frozen=True)
class Whole:
    """All measurements of an operation on one matrix, with the labels that all answers together choose there.

    Attributes
    ----------
    observation : Observation
        Of the last question, which decides, with the times of the others that it may refer to, as "QUESTION: LABEL".
    tuned, untuned : str
        The labels that the trees lead to, and the untuned rules.
    """

    observation: Observation
    tuned: str
    untuned: str


def whole(observations: Sequence[Observation], answers: Mapping[str, Answer]) -> list[Whole]:
    """Return for each matrix the labels that all answers together, tuned and untuned, choose.

    The last question decides. Where its label is the name of a question before it, that one's answer is what runs.
    """
    *earlier, last = answers
    parts = {
        (observation.question, observation.case): observation
        for observation in observations
        if observation.subject == 0 and observation.question in earlier
    }

    def choose_label(observation: Observation, answer: Callable[[Observation], str]) -> str:
        label = answer(observation)
        part = parts.get((label, observation.case))
        return label if part is None else f"{label}: {answer(part)}"

    def tuned(observation: Observation) -> str:
        found_answer = answers[observation.question]
        return leaf_of(found_answer.tree, observation.features).label if found_answer.tuned else observation.default

    wholes = []
    for observation in observations:
        if observation.question == last and observation.subject == 0 and observation.times:
            times = dict(observation.times)
            for question in earlier:
                part = parts.get((question, observation.case))
                if part is not None and question in times:
                    # The label of reference was measured twice: the second time tells how the other labels compare with it.
                    change = part.best / times.pop(question)
                    times = {label: seconds * change for label, seconds in times.items()}
                    times |= {f"{question}: {label}": seconds for label, seconds in part.times.items()}
            wholes.append(
                Whole(
                    replace(observation, times=times),
                    choose_label(observation, tuned),
                    choose_label(observation, lambda of: of.default),
                )
            )
    return wholes


def _look_up(labels: Mapping[Any, str]) -> Callable[[Observation], str]:
    """Return a function that chooses the label of an observation by its key."""
    return lambda observation: labels[observation.key]


def scores_of(wholes: Sequence[Whole]) -> dict[str, Losses]:
    """Return how well the answers to all questions together did, and the untuned rules, on both sides of the split."""
    scores = {}
    for split, name in itertools.product((TRAIN, TEST), ("tuned", "untuned")):
        of_split = [observed for observed in wholes if observed.observation.split == split]
        labels: dict[Any, str] = {observed.observation.key: getattr(observed, name) for observed in of_split}
        scores[f"{name} {split}"] = training.losses([observed.observation for observed in of_split], _look_up(labels))
    return scores


def profile_of(
    device: Device, outcomes: Mapping[tuple[str, str], Outcome], base: Mapping[str, Any] | None, head: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a profile as JSON has it.

    Parameters
    ----------
    device : Device
    outcomes : mapping
        Of `train`.
    base : mapping or None
        The profile that it replaces: answers to questions that were not asked now are taken from there.
    head : mapping
        Its name, and what made it, see `describe_origin`.
    """
    operations: dict[str, dict[str, Any]] = {}
    evidence: list[dict[str, Any]] = []
    scores: dict[str, dict[str, Any]] = {}
    thresholds: dict[str, dict[str, Any]] = {}
    for (operation, dtype), outcome in outcomes.items():
        operations.setdefault(operation, {})[dtype] = outcome.trees
        if outcome.descents:
            thresholds.setdefault(operation, {})[dtype] = outcome.numbers
        of_all = {name.replace(" ", "_"): lost.to_json() for name, lost in outcome.scores.items() if lost.cases}
        by_question = {question: answer.to_json() for question, answer in outcome.answers.items()}
        scores.setdefault(operation, {})[dtype] = {**by_question, "all": of_all}
        for question in outcome.answers:
            times = _evidence([each for each in outcome.observations if each.question == question])
            evidence.append({"operation": operation, "dtype": dtype, "question": question, "times": times})
    if base is not None:
        replaced = {(*key, question) for key, outcome in outcomes.items() for question in outcome.answers}
        evidence += [
            each for each in base.get("evidence", []) if tuple(map(each.get, ("operation", "dtype", "question"))) not in replaced
        ]
        for part, of_base in ((operations, "operations"), (thresholds, "thresholds"), (scores, "scores")):
            for operation, by_dtype in base.get(of_base, {}).items():
                for dtype, answers in by_dtype.items():
                    if part is thresholds and dtype in part.get(operation, {}):
                        continue  # a descent asks for all numbers
                    of_dtype = part.setdefault(operation, {}).setdefault(dtype, {})
                    of_dtype.update({name: each for name, each in answers.items() if name not in of_dtype})
    return {
        "schema": profiles.SCHEMA,
        "name": head["name"],
        "device": profiles.identity(device),
        "versions": _versions(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "made": head["made"],
        "operations": operations,
        "thresholds": thresholds,
        "evidence": evidence,
        "scores": scores,
    }


def changes_decisions(device: Device, content: Mapping[str, Any]) -> bool:
    """Return whether the trees and thresholds of a profile decide anything otherwise than is decided on a device now."""
    other_profiles = [each for each in profiles.find(device) if each.shipped or each.name != content["name"]]
    by_trees = any(
        _current_tree(device, operation, dtype, question) != bare(from_json(tree))
        for operation, by_dtype in content["operations"].items()
        for dtype, by_question in by_dtype.items()
        for question, tree in by_question.items()
    )
    return by_trees or any(
        _numbers(profiles.find(device), operation, dtype) != {**_numbers(other_profiles, operation, dtype), **of_dtype}
        for operation, by_dtype in content.get("thresholds", {}).items()
        for dtype, by_name in by_dtype.items()
        for of_dtype in ({name: each["value"] for name, each in by_name.items()},)
    )


def _numbers(near: Sequence[profiles.Profile], operation: str, dtype: str) -> dict[str, float]:
    """Return the thresholds that profiles have, the closest of which comes first."""
    thresholds: dict[str, float] = {}
    for profile in reversed(near):
        thresholds |= profile.thresholds(operation, dtype)
    return thresholds


def _current_tree(device: Device, operation: str, dtype: str, question: str) -> Tree | None:
    """Return the tree that decides, without what training knew of it; None if none does."""
    for profile in profiles.find(device):
        with contextlib.suppress(ValueError):
            tree = profile.tree(operation, dtype, question)
            if tree is not None:
                return bare(tree)
    return None


def describe_origin(command: str, checkpoint: Checkpoint, minutes: float, earlier: int = 0, commit: str = "") -> dict[str, Any]:
    """Return the "made by" entry of a profile: command, corpus, minutes, commit.

    Parameters
    ----------
    command : str
    checkpoint : Checkpoint
        The names of its matrices are the corpus, whose generated ones are functions of their names.
    minutes : float
        Of measuring.
    earlier : int
        Measurements that were there before.
    commit : str
        Of the package, if it does not run from a checkout that tells.
    """
    names = "\n".join(sorted({observation.case for observation in checkpoint.observations.values()}))
    origin = {"command": command, "corpus": hashlib.sha256(names.encode()).hexdigest()[:16], "minutes": round(minutes, 2)}
    commit = commit or _commit()
    if commit:
        origin["commit"] = commit
    if earlier:
        origin["note"] = f"went on from {earlier:,} measurements of earlier runs"
    return origin


def _commit() -> str:
    """Return the commit of the checkout that the package runs from; "" if it is none."""
    git = ["git", "-C", str(Path(clsparse_py.__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return ""


def _versions() -> dict[str, str]:
    """Return the versions of what measured and trained; of packages that run without being installed nothing is known."""
    versions = {"python": platform.python_version(), "clsparse_py": clsparse_py.__version__}
    for name in ("pyopencl", "numpy", "scikit-learn"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _evidence(observations: Sequence[Observation]) -> dict[str, dict[str, float]]:
    """Return the evidence of a question for a profile: the longest measurements, with the times of winner and default."""
    times: dict[str, dict[str, float]] = {}
    for observation in sorted(observations, key=lambda case: -case.best)[:_EVIDENCE]:
        labels = dict.fromkeys((min(observation.times, key=observation.times.__getitem__), observation.default))
        times.setdefault(
            observation.case, {label: _short(observation.times[label]) for label in labels if label in observation.times}
        )
    return times


def _short(value: float) -> float:
    """Return a number rounded to four significant digits, an integer where it is whole, for a profile."""
    short = float(np.format_float_positional(value, precision=4, fractional=False)) if math.isfinite(value) else 0.0
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def existing(device: Device) -> Mapping[str, Any] | None:
    """Return the user's profile of a device as JSON has it, None where there is none that can be read."""
    path = profiles.folder() / f"{profiles.name_for(device)}.json"
    try:
        return profiles.read(path).content if path.exists() else None
    except (ProfileError, OSError) as error:
        _log.warning("profile %s is replaced: %s", path, error)
        return None
