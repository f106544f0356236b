"""The outcome of tuning a device: trees trained on its measurements, their losses, and the profile that holds the trees."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import logging
import math
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import clsparse_py
from clsparse_py._decisions import profiles
from clsparse_py._decisions.kernel_hashes import hash_of
from clsparse_py._decisions.tree import Leaf, Tree, bare, features_of, from_json, leaf_of
from clsparse_py._device.device import Device
from clsparse_py._ground.errors import ProfileError
from clsparse_py._ground.records import dataclass
from clsparse_py._tuner import descent, training
from clsparse_py._tuner.checkpoint import Checkpoint, Observation
from clsparse_py._tuner.corpus import TEST, TRAIN
from clsparse_py._tuner.training import Answer, Losses
from clsparse_py._tuner.tunable import Tunable

__all__ = ["Outcome", "Whole", "changes_decisions", "describe_origin", "profile_of", "read_existing", "train"]

_log = logging.getLogger(__name__)

#: Most matrices whose times a profile holds as evidence for a tree; few, as every process that multiplies reads the profile.
_EVIDENCE = 20


@dataclass(frozen=True)
class Outcome:
    """The outcome of training on the measurements of an operation and dtype.

    Attributes
    ----------
    answers : dict of str to Answer
        Answers by question.
    whole : list of Whole
        The labels that all answers together choose, for each matrix.
    scores : dict of str to Losses
        Losses of these labels, relative to the best measured ones.
    observations : list of Observation
        The observations of training.
    descents : tuple of str
        The questions that are answered by thresholds.
    """

    answers: dict[str, Answer]
    whole: list[Whole]
    scores: dict[str, Losses]
    observations: list[Observation]
    descents: tuple[str, ...] = ()

    @property
    def trees(self) -> dict[str, Any]:
        """The trained decision trees as JSON has them, by the question of the tuner that each answers."""
        return {question: answer.tree.to_json() for question, answer in self.answers.items() if question not in self.descents}

    @property
    def numbers(self) -> dict[str, Any]:
        """The thresholds by which the operation is faster than untuned, with evidence, as JSON has them, by name."""
        thresholds: dict[str, Any] = {}
        for question in self.descents:
            leaf = self.answers[question].tree
            assert isinstance(leaf, Leaf)  # a descent answers by a tree of one leaf
            observations = [observation for observation in self.observations if observation.question == question]
            thresholds |= descent.evidence(observations, leaf.label)
        return thresholds


def train(device: Device, checkpoint: Checkpoint, tunables: Mapping[str, Tunable[Any]]) -> dict[tuple[str, str], Outcome]:
    """Train decision trees and choose thresholds by all measurements of a device; return them by operation and dtype.

    Labels of earlier versions that this version of an operation does not know are left out.
    """
    outcomes: dict[tuple[str, str], Outcome] = {}
    for operation, tunable in tunables.items():
        for dtype in tunable.dtypes(device):
            shipped = profiles.find_shipped(device)
            rules = {question: _first_tree(shipped, operation, dtype, question) for question in tunable.questions}
            observations = [
                _update_default(observation, rules[observation.question])
                for observation in checkpoint.select(operation, dtype)
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
                # The tuner's question about bins (classes of rows) has no answer if one kernel computes all rows of every matrix.
                complete = (
                    {observation.question for observation in observations} - {*tunable.descents} == by_trees.keys() != set()
                )
                wholes = join_answers(observations, by_trees) if complete else []
                descents = tuple(question for question in answers if question in tunable.descents)
                outcomes[operation, dtype] = Outcome(answers, wholes, score_answers(wholes), observations, descents)
    return outcomes


def _drop_unknown_labels(tunable: Tunable[Any], observation: Observation) -> Observation:
    """Return an observation without the times of kernels or methods whose labels the operation does not parse."""

    def parses(label: str) -> bool:
        """Return whether the operation knows the method or kernel that a label names."""
        try:
            tunable.parse(observation.question, label)
        except ValueError:
            return False
        return True

    times = {label: seconds for label, seconds in observation.times.items() if parses(label)}
    return observation if len(times) == len(observation.times) else replace(observation, times=times)


def _update_default(observation: Observation, untuned: Tree | None) -> Observation:
    """Return an observation whose default is the present untuned tree's choice; unchanged without such a tree or its features."""
    if untuned is None or not features_of(untuned) <= observation.features.keys():
        return observation
    return replace(observation, default=leaf_of(untuned, observation.features).label)


def _first_tree(near: Sequence[profiles.Profile], operation: str, dtype: str, question: str) -> Tree | None:
    """Return the decision tree for a question of the tuner from the first profile that has one; None if no profile has."""
    for profile in near:
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
        The observation of the last question, with the times of earlier questions that it refers to, as "QUESTION: LABEL".
    tuned, untuned : str
        The labels that the trees choose, and the untuned rules.
    """

    observation: Observation
    tuned: str
    untuned: str


def join_answers(observations: Sequence[Observation], answers: Mapping[str, Answer]) -> list[Whole]:
    """Return for each matrix the kernel or method that all decision trees together choose, tuned and by untuned rules.

    The last question decides. If its label is the name of an earlier question, the answer to that question runs.
    """
    *earlier, last = answers
    parts = {
        (observation.question, observation.case): observation
        for observation in observations
        if observation.subject == 0 and observation.question in earlier
    }

    def choose_label(observation: Observation, decide: Callable[[Observation], str]) -> str:
        """Return the label that ``decide`` picks for a matrix; if it names an earlier question, "QUESTION: LABEL" there."""
        label = decide(observation)
        part = parts.get((label, observation.case))
        return label if part is None else f"{label}: {decide(part)}"

    def decide_tuned(observation: Observation) -> str:
        """Return the label for an observation: the choice of the tuned tree or, if that was no better, the untuned default."""
        answer = answers[observation.question]
        return leaf_of(answer.tree, observation.features).label if answer.tuned else observation.default

    wholes = []
    for observation in observations:
        if observation.question == last and observation.subject == 0 and observation.times:
            times = dict(observation.times)
            for question in earlier:
                part = parts.get((question, observation.case))
                if part is not None and question in times:
                    # The best kernel was timed for two questions: the ratio of the two scales the times of the later question.
                    change = part.best / times.pop(question)
                    times = {label: seconds * change for label, seconds in times.items()}
                    times |= {f"{question}: {label}": seconds for label, seconds in part.times.items()}
            tuned, untuned = choose_label(observation, decide_tuned), choose_label(observation, lambda part: part.default)
            wholes.append(Whole(replace(observation, times=times), tuned, untuned))
    return wholes


def score_answers(wholes: Sequence[Whole]) -> dict[str, Losses]:
    """Return the losses of time by all answers together, under names such as "tuned train" and "untuned test"."""
    by_key = {case.observation.key: case for case in wholes}
    scores = {}
    for split in (TRAIN, TEST):
        of_split = [case.observation for case in wholes if case.observation.split == split]
        scores[f"tuned {split}"] = training.losses(of_split, lambda case: by_key[case.key].tuned)
        scores[f"untuned {split}"] = training.losses(of_split, lambda case: by_key[case.key].untuned)
    return scores


def profile_of(
    device: Device, outcomes: Mapping[tuple[str, str], Outcome], base: Mapping[str, Any] | None, head: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the profile of a device that the outcomes of tuning make, as JSON has it.

    Parameters
    ----------
    device : Device
    outcomes : mapping
        The outcomes of `train`.
    base : mapping or None
        The replaced profile, whose answers to other questions are kept.
    head : mapping
        The profile's name as "name", and its origin as "made", see `describe_origin`.
    """
    operations: dict[str, dict[str, Any]] = {}
    evidence: list[dict[str, Any]] = []
    scores: dict[str, dict[str, Any]] = {}
    thresholds: dict[str, dict[str, Any]] = {}
    hashes: dict[str, set[str]] = {}
    for (operation, dtype), outcome in outcomes.items():
        hashes.setdefault(operation, set()).update(observation.kernels for observation in outcome.observations)
        operations.setdefault(operation, {})[dtype] = outcome.trees
        if outcome.descents:
            thresholds.setdefault(operation, {})[dtype] = outcome.numbers
        of_all = {name.replace(" ", "_"): lost.to_json() for name, lost in outcome.scores.items() if lost.cases}
        by_question = {question: answer.to_json() for question, answer in outcome.answers.items()}
        scores.setdefault(operation, {})[dtype] = {**by_question, "all": of_all}
        for question in outcome.answers:
            times = _evidence([observation for observation in outcome.observations if observation.question == question])
            evidence.append({"operation": operation, "dtype": dtype, "question": question, "times": times})
    decisions = {"operations": operations, "thresholds": thresholds, "evidence": evidence, "scores": scores}
    if base is not None:
        _keep_answers(decisions, hashes, base)
    return {
        "schema": profiles.SCHEMA,
        "name": head["name"],
        "device": profiles.identity(device),
        "versions": _versions(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "made": head["made"],
        "kernels": {operation: kernels for operation in hashes if (kernels := _pick_hash(operation, hashes[operation]))},
        **decisions,
    }


def _pick_hash(operation: str, hashes: Set[str]) -> str:
    """Return the hash of the present kernels if an operation's answers are all about these; else one that is not, or ""."""
    return min(hashes - {hash_of(operation)}, default=hash_of(operation))


def _keep_answers(decisions: Mapping[str, Any], hashes: dict[str, set[str]], base: Mapping[str, Any]) -> None:
    """Add to a new profile the trees, thresholds, scores and evidence that the replaced profile alone has, and their hashes."""

    def question_of(item: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the operation, the dtype and the question that an item of a profile's evidence is about."""
        return item["operation"], item["dtype"], item["question"]

    answered = {question_of(item) for item in decisions["evidence"]}
    decisions["evidence"].extend(item for item in base.get("evidence", []) if question_of(item) not in answered)
    for member in ("operations", "thresholds", "scores"):
        for operation, by_dtype in base.get(member, {}).items():
            for dtype, answers in by_dtype.items():
                by_new_dtype = decisions[member].setdefault(operation, {})
                if member == "thresholds" and dtype in by_new_dtype:
                    continue  # a descent answers for all thresholds
                new_answers = by_new_dtype.setdefault(dtype, {})
                kept = {name: answer for name, answer in answers.items() if name not in new_answers}
                new_answers.update(kept)
                if kept and member != "scores":
                    hashes.setdefault(operation, set()).add(base.get("kernels", {}).get(operation, ""))


def changes_decisions(device: Device, content: Mapping[str, Any]) -> bool:
    """Return whether a profile's trees and thresholds decide otherwise than the present profiles of a device."""
    near = profiles.find(device)
    for operation, by_dtype in content["operations"].items():
        for dtype, by_question in by_dtype.items():
            for question, tree in by_question.items():
                present = _first_tree(near, operation, dtype, question)
                if present is None or bare(present) != bare(from_json(tree)):
                    return True
    others = [profile for profile in near if profile.shipped or profile.name != content["name"]]
    return any(
        _merge_thresholds(near, operation, dtype)
        != {**_merge_thresholds(others, operation, dtype), **{name: threshold["value"] for name, threshold in by_name.items()}}
        for operation, by_dtype in content.get("thresholds", {}).items()
        for dtype, by_name in by_dtype.items()
    )


def _merge_thresholds(near: Sequence[profiles.Profile], operation: str, dtype: str) -> dict[str, float]:
    """Return the thresholds of an operation by name, each from the first (closest) of the profiles that has it."""
    thresholds: dict[str, float] = {}
    for profile in reversed(near):
        thresholds |= profile.thresholds(operation, dtype)
    return thresholds


def describe_origin(command: str, checkpoint: Checkpoint, minutes: float, earlier: int = 0, commit: str = "") -> dict[str, Any]:
    """Return the "made" entry of a profile: the command, the digest of the corpus, the minutes and the commit.

    Parameters
    ----------
    command : str
    checkpoint : Checkpoint
        Measurements whose matrices are the corpus: the digest is that of their names.
    minutes : float
        Minutes of measuring.
    earlier : int
        Number of measurements by earlier runs.
    commit : str
        Commit of the package, if it does not run from a checkout.
    """
    names = "\n".join(sorted({observation.case for observation in checkpoint.observations.values()}))
    origin = {"command": command, "corpus": hashlib.sha256(names.encode()).hexdigest()[:16], "minutes": round(minutes, 2)}
    commit = commit or _find_commit()
    if commit:
        origin["commit"] = commit
    if earlier:
        origin["note"] = f"went on from {earlier:,} measurements of earlier runs"
    return origin


def _find_commit() -> str:
    """Return the commit of the checkout that the package runs from; "" if it runs from no checkout."""
    git = ["git", "-C", str(Path(clsparse_py.__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return ""


def _versions() -> dict[str, str]:
    """Return the versions of Python, this package, and the installed packages that the tuner uses, by name."""
    versions = {"python": platform.python_version(), "clsparse_py": clsparse_py.__version__}
    for name in ("pyopencl", "numpy", "scikit-learn"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _evidence(observations: Sequence[Observation]) -> dict[str, dict[str, float]]:
    """Return a profile's evidence for a tree: seconds of the best and default label on matrices with the longest best time."""
    times: dict[str, dict[str, float]] = {}
    for observation in sorted(observations, key=lambda case: -case.best)[:_EVIDENCE]:
        labels = dict.fromkeys((min(observation.times, key=observation.times.__getitem__), observation.default))
        times.setdefault(
            observation.case, {label: _round_short(observation.times[label]) for label in labels if label in observation.times}
        )
    return times


def _round_short(value: float) -> float:
    """Return a number for a profile's evidence, rounded to four significant digits, an integer if whole; 0 if not finite."""
    short = float(np.format_float_positional(value, precision=4, fractional=False)) if math.isfinite(value) else 0.0
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def read_existing(device: Device) -> Mapping[str, Any] | None:
    """Return the user's profile of a device as JSON has it; None if none can be read."""
    path = profiles.folder() / f"{profiles.name_for(device)}.json"
    try:
        return profiles.read(path).content if path.exists() else None
    except (ProfileError, OSError) as error:
        _log.warning("profile %s is replaced: %s", path, error)
        return None
