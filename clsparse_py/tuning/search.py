"""The search: which configuration of an operation is fastest on a subject, with hopeless ones stopped early."""

from __future__ import annotations

import itertools
import logging
import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import pyopencl as cl

from clsparse_py.errors import BuildError
from clsparse_py.tuning.clock import Clock, Run

__all__ = ["OutOfTimeError", "Race", "race"]

_log = logging.getLogger(__name__)

#: What a configuration may raise that a device cannot build or run, or that doesn't suit a subject.
_UNFIT = (BuildError, cl.Error, MemoryError, ValueError, TypeError, NotImplementedError)


class OutOfTimeError(Exception):
    """The time budget is used up; what was not measured to the end is left out."""


@dataclass(frozen=True)
class _Round:
    """Part of a race.

    Attributes
    ----------
    seconds : float
        That each configuration may run, as far as ``least`` and ``most`` runs allow.
    least, most : int
    within : float
        Configurations that took longer than this times the best are out.
    """

    seconds: float
    least: int
    most: int
    within: float


# Several rounds of few runs rather than few of many: what disturbs the device for a while should not decide.
_ROUNDS = (
    _Round(0.003, 2, 7, 3.0),
    _Round(0.003, 2, 7, 1.6),
    _Round(0.006, 2, 9, 1.25),
    _Round(0.02, 2, 15, 1.12),
    _Round(0.02, 2, 15, 1.0),
)

#: Differences below are never more than noise.
_LEAST_NOISE = 0.01


@dataclass
class Race:
    """What a race found.

    Attributes
    ----------
    times : dict of str to float
        Seconds by label: the median over the runs of a round, of the round in which that was least.
    rough : set of str
        Labels that were stopped early: their times come from few runs.
    failed : dict of str to str
        Labels that could not be built or run, or gave a wrong result, and why.
    overheads : dict of str to float
        Seconds on the host to prepare, by label, and to build where that wasn't done before.
    noise : float
        Times that differ by less than this, as a share, are the same.
    """

    times: dict[str, float] = field(default_factory=dict)
    rough: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    overheads: dict[str, float] = field(default_factory=dict)
    noise: float = _LEAST_NOISE

    @property
    def best(self) -> str | None:
        """The fastest label so far."""
        return min(self.times, key=self.times.__getitem__, default=None)


def race(
    labels: Iterable[str],
    prepare: Callable[[str], Run],
    verify: Callable[[], bool],
    clock: Clock,
    *,
    keep: Collection[str] = (),
    deadline: float = math.inf,
    tried: Callable[[str], None] = lambda _label: None,
) -> Race:
    """Measure configurations until it is clear which is fastest.

    Parameters
    ----------
    labels : iterable of str
        In the order of the first round; what is likely to be good comes first, so that others stop early.
    prepare : callable
        From a label to what runs it once.
    verify : callable
        Whether the last run gave the right result.
    clock : Clock
    keep : collection of str
        Labels that are measured to the end however slow.
    deadline : float
        By `time.monotonic`.
    tried : callable
        Is told each label before it first runs.

    Raises
    ------
    OutOfTimeError
        The deadline came before every label had run once.
    DeviceLostError
        The device stopped to answer.
    """
    found = Race()
    samples: dict[str, list[list[float]]] = {}
    runs: dict[str, Run] = {}
    for label in dict.fromkeys(labels):
        if time.monotonic() > deadline:
            raise OutOfTimeError
        tried(label)
        try:
            begin = time.perf_counter()
            run = prepare(label)
            found.overheads[label] = time.perf_counter() - begin
            first = clock.once(run)
            best = min(found.times.values(), default=math.inf)
            if not verify():
                found.failed[label] = "wrong result"
                continue
            # The first run of all may take long for what isn't its own; one that runs long counts as it is.
            samples[label] = [clock.samples(run, 1) if first > 10 * best and first > 0.1 else _run(clock, run, _ROUNDS[0])]
        except _UNFIT as error:
            clock.check(label)
            found.failed[label] = _words(error)
            _log.info("%s: left out: %s", label, found.failed[label])
            continue
        found.times[label] = _seconds(samples[label])
        if label in keep or found.times[label] <= _ROUNDS[0].within * min(best, found.times[label]):
            runs[label] = run
    for before, stage in itertools.pairwise(_ROUNDS):
        best = min(found.times.values(), default=math.inf)
        runs = {label: run for label, run in runs.items() if label in keep or found.times[label] <= before.within * best}
        if len(runs) < 2 or time.monotonic() > deadline:
            break
        for label, run in list(runs.items()):
            try:
                samples[label].append(_run(clock, run, stage))
            except _UNFIT as error:
                clock.check(label)
                found.failed[label] = _words(error)
                del runs[label], found.times[label]
                continue
            found.times[label] = _seconds(samples[label])
    found.rough = set(found.times) - set(runs)
    found.noise = max([_LEAST_NOISE, *sorted(map(_error_of, (samples[label] for label in runs)))[len(runs) // 2 :][:1]])
    return found


def _run(clock: Clock, run: Run, stage: _Round) -> list[float]:
    """Run as often as a round asks for."""
    times = clock.samples(run, stage.least)
    more = min(stage.most, int(stage.seconds / max(min(times), 1e-7))) - len(times)
    return times + (clock.samples(run, more) if more > 0 else [])


def _seconds(rounds: list[list[float]]) -> float:
    return min(map(statistics.median, rounds))


def _error_of(rounds: list[list[float]]) -> float:
    """Return what a time may be wrong by, as a share: twice the median's standard error, or half of how far rounds differ."""
    best, *others = sorted(rounds, key=statistics.median)
    middle = statistics.median(best)
    deviation = statistics.median(abs(each - middle) for each in best)
    # For normal noise the standard deviation is 1.4826 times this one, and the median's error 1.2533 times the mean's.
    error = 2 * 1.2533 * 1.4826 * deviation / math.sqrt(len(best))
    apart = statistics.median(others[0]) - middle if others else 0.0
    return max(error, apart / 2) / max(middle, 1e-12)


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]
