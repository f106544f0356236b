"""Search for the fastest configuration on a subject, with early stops."""

from __future__ import annotations

import itertools
import logging
import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import pyopencl as cl

from clsparse_py._ground.errors import BuildError
from clsparse_py._tuner.clock import Clock, Run
from clsparse_py._tuner.limits import TUNER

__all__ = ["OutOfTimeError", "Race", "race"]

_log = logging.getLogger(__name__)

#: Errors of configurations that do not build or run, or do not suit a subject.
_UNFIT = (BuildError, cl.Error, MemoryError, ValueError, TypeError)


class OutOfTimeError(Exception):
    """The time budget is used up; what was not measured to the end is left out."""


class _WrongError(Exception):
    """A configuration gave a wrong result."""


@dataclass(frozen=True)
class _Round:
    """The limits of one round of a race.

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


# Rounds of a race. Several rounds of few runs rather than few of many: what disturbs the device for a while should not decide.
_ROUNDS = (
    _Round(0.003, 2, 7, 3.0),
    _Round(0.003, 2, 7, 1.6),
    _Round(0.006, 2, 9, 1.25),
    _Round(0.02, 2, 15, 1.12),
    _Round(0.02, 2, 15, 1.0),
)

#: Least noise of a race, as a share of a time: smaller differences between two labels are never more than noise.
_LEAST_NOISE = 0.01


@dataclass
class Race:
    """The result of a race: the times of labels on a subject.

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
    by_host: bool = False,
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
    by_host : bool
        Whether runs wait for the device themselves, so that the host's clock is the one to ask.
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
    track = _Track(prepare, verify, clock, keep, by_host)
    for label in dict.fromkeys(labels):
        if time.monotonic() > deadline:
            raise OutOfTimeError
        tried(label)
        track.enter(label)
    for previous, stage in itertools.pairwise(_ROUNDS):
        track.narrow(previous.within)
        if len(track.runs) < 2 or time.monotonic() > deadline:
            break
        track.again(stage)
    return track.finish()


class _Track:
    """A race while it is on: what is still running, and its samples round by round."""

    def __init__(
        self, prepare: Callable[[str], Run], verify: Callable[[], bool], clock: Clock, keep: Collection[str], by_host: bool
    ) -> None:
        self._prepare, self._verify, self._clock, self._keep = prepare, verify, clock, keep
        self._by_host = by_host
        self.runs: dict[str, Run] = {}
        self._found = Race()
        self._samples: dict[str, list[list[float]]] = {}
        self._unverified: set[str] = set()
        self._quickly_verified = True

    def enter(self, label: str) -> None:
        """Build a configuration and give it its first round; one that is hopeless does not stay."""
        self._attempt(label, self._first)
        times = self._found.times
        if label in times and (label in self._keep or times[label] <= _ROUNDS[0].within * min(times.values())):
            return
        # The device's memory that it holds is free for the next one.
        self.runs.pop(label, None)

    def _first(self, label: str) -> None:
        begin = time.perf_counter()
        run = self._prepare(label)
        self._found.overheads[label] = time.perf_counter() - begin
        first = self._clock.once(run)
        if self._quickly_verified:
            begin = time.perf_counter()
            self._confirm(label)
            self._quickly_verified = time.perf_counter() - begin < TUNER.quickly_verified
        else:
            self._unverified.add(label)
        # One that takes very long the first time is not run more often than it takes to know how long.
        long = first > 0.1 and first > 10 * min(self._found.times.values(), default=math.inf)
        self._samples[label] = [self._clock.samples(run, 1, by_host=self._by_host) if long else self._round(run, _ROUNDS[0])]
        self.runs[label] = run

    def _round(self, run: Run, stage: _Round) -> list[float]:
        """Run as often as a round asks for."""
        times = self._clock.samples(run, stage.least, by_host=self._by_host)
        n_more = min(stage.most, int(stage.seconds / max(min(times), 1e-7))) - len(times)
        return times + (self._clock.samples(run, n_more, by_host=self._by_host) if n_more > 0 else [])

    def narrow(self, within: float) -> None:
        """Drop the configurations that took longer than ``within`` times the best."""
        limit = within * min(self._found.times.values(), default=math.inf)
        self.runs = {label: run for label, run in self.runs.items() if label in self._keep or self._found.times[label] <= limit}

    def again(self, stage: _Round) -> None:
        """Give all that are left another round."""
        for label in list(self.runs):
            self._attempt(label, lambda label: self._samples[label].append(self._round(self.runs[label], stage)))

    def finish(self) -> Race:
        """Verify the unverified configurations that could win, and return the race's result."""
        result = self._found
        for label in sorted(self._unverified & self.runs.keys()):
            self._attempt(label, self._run_and_confirm)
        # If the apparent winner was wrong, a dropped configuration may be the best: verify it.
        while result.best in self._unverified:
            self._attempt(result.best, self._run_and_confirm)
        result.rough = set(result.times) - set(self.runs)
        errors = sorted(_error_of(self._samples[label]) for label in self.runs)
        result.noise = max(_LEAST_NOISE, errors[len(errors) // 2] if errors else 0.0)
        return result

    def _run_and_confirm(self, label: str) -> None:
        self._unverified.remove(label)
        self._clock.once(self.runs[label] if label in self.runs else self._prepare(label))
        self._confirm(label)

    def _confirm(self, label: str) -> None:
        if not self._verify():
            raise _WrongError(label)

    def _attempt(self, label: str, action: Callable[[str], None]) -> None:
        """Do something with a configuration; where it fails, the configuration is out."""
        try:
            action(label)
        except (*_UNFIT, _WrongError) as error:
            if not isinstance(error, _WrongError):
                self._clock.check(label)
            self._found.failed[label] = "wrong result" if isinstance(error, _WrongError) else _words(error)
            _log.info("%s: left out: %s", label, self._found.failed[label])
            self.runs.pop(label, None)
            self._found.times.pop(label, None)
        else:
            self._found.times[label] = _seconds(self._samples[label])


def _seconds(rounds: list[list[float]]) -> float:
    """Return the time of a label: the median of its fastest round."""
    return min(map(statistics.median, rounds))


def _error_of(rounds: list[list[float]]) -> float:
    """Return the relative error of a time: twice the median's standard error, or half the best two rounds' distance if larger."""
    best, *further = sorted(rounds, key=statistics.median)
    middle = statistics.median(best)
    deviation = statistics.median(abs(time - middle) for time in best)
    # For normal noise the standard deviation is 1.4826 times this one, and the median's error 1.2533 times the mean's.
    error = 2 * 1.2533 * 1.4826 * deviation / math.sqrt(len(best))
    spread = statistics.median(further[0]) - middle if further else 0.0
    return max(error, spread / 2) / max(middle, 1e-12)


def _words(error: Exception) -> str:
    """Return the class and the first line of an error, for a list of labels that failed."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]
