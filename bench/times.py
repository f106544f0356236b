"""Statistics of an entry's samples, and who is compared with whom."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Iterator

from bench.results import Document

# The contestant that is ours as users write it: no allocator, no plan. Files of earlier runs have none.
PLAIN = "clsparse/plain"
# The contestant that is ours with results in memory of the caller's pool.
POOLED = "clsparse/auto"
# End of the names of peers that compute new values alone, for a structure that is there.
NUMERIC_ONLY = "/numeric"
# The contestant of ours that computes new values alone: only those peers are compared with it.
OURS_KEPT = "clsparse/kept-plan"
# The name under which the best algorithm of cuSPARSE counts as one contestant more.
BEST_OF_CUSPARSE = "cusparse/best"


def times_of(entry: Document, way: str) -> dict[str, float]:
    """Return each contestant's median seconds, with cuSPARSE's best algorithm, where it has several, as one more contestant."""
    times = {}
    for record in entry["contestants"]:
        samples = record.get("samples")
        if samples:
            times[record["name"]] = statistics.median(samples.get(way) or samples["back_to_back"])
    algorithms = [seconds for name, seconds in times.items() if name.startswith("cusparse/")]
    if len(algorithms) > 1:
        times[BEST_OF_CUSPARSE] = min(algorithms)
    return times


def ours_of(entries: Iterable[Document]) -> str:
    """Return who counts as ours in entries: the plain contestant, if it took part in any."""
    return PLAIN if any(record["name"] == PLAIN for entry in entries for record in entry["contestants"]) else POOLED


def best_peer(times: dict[str, float]) -> str | None:
    """Return the name of the fastest contestant that is not ours."""
    peers = [
        name
        for name in times
        if not name.startswith("clsparse/") and not name.endswith(NUMERIC_ONLY) and name != BEST_OF_CUSPARSE
    ]
    return min(peers, key=times.__getitem__, default=None)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, values)))


# Least rounds of each problem, however little time is left.
FEWEST_ROUNDS = 3


class Budget:
    """Time for several problems, of which each has an equal share of what is left; it cuts rounds, never problems.

    Parameters
    ----------
    seconds
        For all problems; None for no limit.
    problems
        How many there are.
    """

    def __init__(self, seconds: float | None, problems: int) -> None:
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._left = problems

    def holds(self, _operation: str) -> bool:
        """Return True: every problem is begun."""
        return True

    def deadlines(self, parts: int = 1) -> list[float]:
        """Return when the parts of the next problem shall end, by the clock of `time.monotonic`."""
        now = time.monotonic()
        share = (self._end - now) / self._left
        self._left -= 1
        return [now + share * (part + 1) / parts for part in range(parts)]


# Most seconds of the rounds of a problem that is measured in a piece.
PIECE_ROUNDS = 2.5
# The longest problem of an operation so far, times this, is what the next one may take.
_GROWTH = 1.5


class Piece:
    """Time for as many problems as surely end within it; each has `PIECE_ROUNDS` for its rounds.

    Parameters
    ----------
    seconds
        Of the piece; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._begun: tuple[str, float] | None = None
        self._longest: dict[str, float] = {}

    def holds(self, operation: str) -> bool:
        """Return whether a problem of an operation, begun now, will end in time; the problem before it has ended."""
        now = time.monotonic()
        if self._begun is not None:
            before, start = self._begun
            self._longest[before] = max(self._longest.get(before, 0.0), now - start)
        self._begun = operation, now
        return now + _GROWTH * self._longest.get(operation, 0.0) <= self._end

    def deadlines(self) -> list[float]:
        """Return when the rounds of a problem that is ready shall end, by the clock of `time.monotonic`."""
        return [time.monotonic() + PIECE_ROUNDS]


def rounds_until(deadline: float, rounds: int) -> Iterator[int]:
    """Count rounds until the deadline or their number is reached; the first `FEWEST_ROUNDS` take place in any case."""
    for done in range(rounds):
        if done >= FEWEST_ROUNDS and time.monotonic() > deadline:
            return
        yield done
