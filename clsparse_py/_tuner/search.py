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

#: Errors of configurations (kernels or methods) that do not build or run, or do not suit a problem.
_UNFIT = (BuildError, cl.Error, MemoryError, ValueError, TypeError)


class OutOfTimeError(Exception):
    """The time budget of measuring is used up; the unfinished measurement is dropped."""


class _WrongError(Exception):
    """A configuration gave a wrong result."""


@dataclass(frozen=True)
class _Round:
    """The limits of one round of a race.

    Attributes
    ----------
    seconds : float
        Time of all runs of a configuration, as far as ``least`` and ``most`` allow.
    least, most : int
        Limits of the number of runs.
    within : float
        Longest time of a configuration that stays in the race after the round, in times of the best one.
    """

    seconds: float
    least: int
    most: int
    within: float


#: Rounds of a race between configurations: many rounds of few runs, so that a short disturbance of the device does not decide.
_ROUNDS = (
    _Round(0.003, 2, 7, 3.0),
    _Round(0.003, 2, 7, 1.6),
    _Round(0.006, 2, 9, 1.25),
    _Round(0.02, 2, 15, 1.12),
    _Round(0.02, 2, 15, 1.0),
)

#: Least noise of a race between configurations, as a share of a time: two whose times differ by less are equally fast.
_LEAST_NOISE = 0.01


@dataclass
class Race:
    """The result of a race: the times of labels on a subject.

    Attributes
    ----------
    times : dict of str to float
        Seconds by label: the median of the runs of a round, in the round with the least median.
    rough : set of str
        Labels that were stopped early: their times come from few runs.
    failed : dict of str to str
        The reason by label, if the configuration could not be built or run, or gave a wrong result.
    overheads : dict of str to float
        The host's seconds to prepare a configuration by label, with the build of its kernels if they were new.
    noise : float
        Least difference of two times, as a share, that is more than noise.
    """

    times: dict[str, float] = field(default_factory=dict)
    rough: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    overheads: dict[str, float] = field(default_factory=dict)
    noise: float = _LEAST_NOISE

    @property
    def best(self) -> str | None:
        """The label of the fastest configuration of the race; None if none was timed."""
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
    """Measure configurations (kernels or methods) in rounds, and drop slow ones, until the fastest one is clear.

    Parameters
    ----------
    labels : iterable of str
        Labels in the order of the first round; likely winners come first, so that others stop early.
    prepare : callable
        Returns the function that runs a label's configuration once.
    verify : callable
        Returns whether the last run gave the right result.
    clock : Clock
    keep : collection of str
        Labels that are measured to the end however slow.
    by_host : bool
        Whether the host's clock times the runs, as they wait for the device themselves.
    deadline : float
        The end of measuring, by `time.monotonic`.
    tried : callable
        Takes each label before its first run.

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
        track.measure_again(stage)
    return track.finish()


class _Track:
    """A race in progress: the configurations that are still measured, and the samples of their runs by round."""

    def __init__(
        self, prepare: Callable[[str], Run], verify: Callable[[], bool], clock: Clock, keep: Collection[str], by_host: bool
    ) -> None:
        self._prepare, self._verify, self._clock, self._keep = prepare, verify, clock, keep
        self._by_host = by_host
        self.runs: dict[str, Run] = {}
        self._race = Race()
        self._samples: dict[str, list[list[float]]] = {}
        self._unverified: set[str] = set()
        self._quickly_verified = True

    def enter(self, label: str) -> None:
        """Build a configuration and measure its first round; unless it is to be kept, it leaves the race if far slower."""
        self._attempt(label, self._measure_first)
        times = self._race.times
        if label in times and (label in self._keep or times[label] <= _ROUNDS[0].within * min(times.values())):
            return
        # A configuration that leaves the race is dropped, which frees its memory on the device.
        self.runs.pop(label, None)

    def _measure_first(self, label: str) -> None:
        """Prepare a configuration, verify its first run (later, if that takes long), and measure its first round of runs."""
        begin = time.perf_counter()
        run = self._prepare(label)
        self._race.overheads[label] = time.perf_counter() - begin
        first = self._clock.time_once(run)
        if self._quickly_verified:
            begin = time.perf_counter()
            self._confirm(label)
            self._quickly_verified = time.perf_counter() - begin < TUNER.quickly_verified
        else:
            self._unverified.add(label)
        # A configuration whose first run takes very long is measured once.
        long = first > 0.1 and first > 10 * min(self._race.times.values(), default=math.inf)
        times = self._clock.time_runs(run, 1, by_host=self._by_host) if long else self._measure_round(run, _ROUNDS[0])
        self._samples[label] = [times]
        self.runs[label] = run

    def _measure_round(self, run: Run, stage: _Round) -> list[float]:
        """Return the seconds of each run of one configuration in one round of the race between configurations."""
        times = self._clock.time_runs(run, stage.least, by_host=self._by_host)
        n_more = min(stage.most, int(stage.seconds / max(min(times), 1e-7))) - len(times)
        return times + (self._clock.time_runs(run, n_more, by_host=self._by_host) if n_more > 0 else [])

    def narrow(self, within: float) -> None:
        """Drop from the race the configurations, but those to keep, that took longer than ``within`` times the best one."""
        limit = within * min(self._race.times.values(), default=math.inf)
        self.runs = {label: run for label, run in self.runs.items() if label in self._keep or self._race.times[label] <= limit}

    def measure_again(self, stage: _Round) -> None:
        """Measure another round of runs of all configurations that are left in the race."""
        for label in list(self.runs):
            self._attempt(label, lambda label: self._samples[label].append(self._measure_round(self.runs[label], stage)))

    def finish(self) -> Race:
        """Verify the unverified configurations that could win the race, and return the result of the race."""
        race = self._race
        for label in sorted(self._unverified & self.runs.keys()):
            self._attempt(label, self._run_and_confirm)
        # If the fastest configuration gave a wrong result, the next fastest is verified, though it may have left the race.
        while race.best in self._unverified:
            self._attempt(race.best, self._run_and_confirm)
        race.rough = set(race.times) - set(self.runs)
        errors = sorted(_relative_error(self._samples[label]) for label in self.runs)
        race.noise = max(_LEAST_NOISE, errors[len(errors) // 2] if errors else 0.0)
        return race

    def _run_and_confirm(self, label: str) -> None:
        """Run a configuration once, and raise `_WrongError` if its result is wrong."""
        self._unverified.remove(label)
        self._clock.time_once(self.runs[label] if label in self.runs else self._prepare(label))
        self._confirm(label)

    def _confirm(self, label: str) -> None:
        """Raise `_WrongError` if the last run of a configuration gave a wrong result."""
        if not self._verify():
            raise _WrongError(label)

    def _attempt(self, label: str, action: Callable[[str], None]) -> None:
        """Measure or verify a configuration by an action; a configuration whose action fails leaves the race."""
        try:
            action(label)
        except (*_UNFIT, _WrongError) as error:
            if not isinstance(error, _WrongError):
                self._clock.check(label)
            self._race.failed[label] = "wrong result" if isinstance(error, _WrongError) else _first_line(error)
            _log.info("%s: left out: %s", label, self._race.failed[label])
            self.runs.pop(label, None)
            self._race.times.pop(label, None)
        else:
            self._race.times[label] = _median_time(self._samples[label])


def _median_time(rounds: list[list[float]]) -> float:
    """Return the time of a configuration in seconds: the median of the round with the least median."""
    return min(map(statistics.median, rounds))


def _relative_error(rounds: list[list[float]]) -> float:
    """Return a time's relative error: twice the median's standard error or half the two best rounds' distance, if larger."""
    best, *further = sorted(rounds, key=statistics.median)
    middle = statistics.median(best)
    deviation = statistics.median(abs(time - middle) for time in best)
    # The standard deviation of normal noise is 1.4826 times the median deviation, a median's error 1.2533 times a mean's.
    error = 2 * 1.2533 * 1.4826 * deviation / math.sqrt(len(best))
    spread = statistics.median(further[0]) - middle if further else 0.0
    return max(error, spread / 2) / max(middle, 1e-12)


def _first_line(error: Exception) -> str:
    """Return the class and the first line of an error, as the reason for which a configuration failed."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]
