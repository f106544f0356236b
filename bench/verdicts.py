"""Which differences between an old and a new side are more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.times import geometric_mean

# Least noise, as a share of a time: it makes as much where arrays and code happen to lie in memory.
LEAST_NOISE = 0.02
# Quantile of the differences between the old side and itself that counts as noise.
_QUANTILE = 0.9

# A problem: input, operation and dtype.
Key = tuple[str, str, str]
# Samples of one side: seconds of each round, by way of timing.
Samples = dict[str, list[float]]


@dataclass(frozen=True)
class Run:
    """Samples of one run on a problem: of the old side, of the old side once more, and of the new side.

    Samples of one round were taken right after each other, so that a busy neighbour or another clock touched all of them alike:
    ratios are taken within rounds.
    """

    old: Samples
    again: Samples
    new: Samples

    def ratio(self, way: str) -> float:
        """Return new over old: the median over rounds, in each of which both samples of the old side count alike."""
        rounds = zip(self.old[way], self.again[way], self.new[way], strict=False)
        return statistics.median(new / math.sqrt(old * again) for old, again, new in rounds)

    @property
    def noise(self) -> float:
        """The ratio of the old side's second samples to its first: the median over rounds."""
        rounds = zip(self.old["back_to_back"], self.again["back_to_back"], strict=False)
        return statistics.median(again / old for old, again in rounds)


@dataclass(frozen=True)
class Pair:
    """Both sides on a problem.

    Attributes
    ----------
    runs
        What was measured.
    failed, reason
        Which side gave no right result, ``old`` or ``new``, and why; there are no runs then.
    """

    key: Key
    runs: tuple[Run, ...] = ()
    failed: str = ""
    reason: str = ""

    def seconds(self, side: str) -> float:
        """Return the median ``back_to_back`` of ``old`` or ``new``."""
        return statistics.median(sample for run in self.runs for sample in getattr(run, side)["back_to_back"])

    def ratio(self, way: str = "back_to_back") -> float | None:
        """Return new over old over all runs; None if one of the sides was not timed in that way."""
        if not all(way in samples for run in self.runs for samples in (run.old, run.again, run.new)):
            return None
        return geometric_mean(run.ratio(way) for run in self.runs)


@dataclass(frozen=True)
class Judged:
    """A pair with its noise, a factor over 1, and its verdict: ``slower``, ``faster``, ``failed``, ``not compared`` or none."""

    pair: Pair
    noise: float
    verdict: str


def judge(pairs: Sequence[Pair]) -> list[Judged]:
    """Return each pair with its verdict: slower or faster is what is so by more than the noise in every run.

    The noise of a problem is the largest difference between the old side and itself on that problem, and at least what nine
    tenths of all such differences of the operation stay within: with one number a run, chance alone makes some of them small.
    """
    spreads: dict[str, list[float]] = {}
    for pair in pairs:
        spreads.setdefault(pair.key[1], []).extend(_spread(run.noise) for run in pair.runs)
    common = {operation: float(np.quantile(spread, _QUANTILE)) if spread else 1.0 for operation, spread in spreads.items()}
    return [_judge(pair, max(common[pair.key[1]], 1 + LEAST_NOISE)) for pair in pairs]


def _judge(pair: Pair, common: float) -> Judged:
    if pair.failed:
        return Judged(pair, common, "failed" if pair.failed == "new" else "not compared")
    noise = max(common, *(_spread(run.noise) for run in pair.runs))
    ratios = [run.ratio("back_to_back") for run in pair.runs]
    slower, faster = min(ratios) > noise, max(ratios) < 1 / noise
    return Judged(pair, noise, "slower" if slower else "faster" if faster else "")


def _spread(ratio: float) -> float:
    return max(ratio, 1 / ratio)
