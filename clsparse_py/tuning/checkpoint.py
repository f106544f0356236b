"""What was measured, kept line by line, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import clsparse_py
from clsparse_py import cache
from clsparse_py.device import Device
from clsparse_py.records import dataclass

__all__ = ["Checkpoint", "Observation", "path_for"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Observation:
    """What was measured of a question on one subject.

    Attributes
    ----------
    operation, dtype, question, case : str
        What was asked, and of which matrix.
    subject : int
        Which of the case's subjects.
    family, split : str
        Of the matrix, see `clsparse_py.tuning.corpus`.
    features : dict of str to float
        What a decision tree may compare.
    default : str
        The label that is chosen untuned.
    times : dict of str to float
        Seconds by label.
    noise : float
        Times that differ by less than this, as a share, are the same.
    rough : tuple of str
        Labels whose times come from few runs, as there were clearly better ones.
    failed : dict of str to str
        Labels that could not be measured, and why.
    overheads : dict of str to float
        Seconds to prepare, by label.
    """

    operation: str
    dtype: str
    question: str
    case: str
    subject: int
    family: str
    split: str
    features: dict[str, float]
    default: str
    times: dict[str, float]
    noise: float
    rough: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    overheads: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(isinstance(each, (int, float)) and 0 < each < math.inf for each in self.times.values()):
            raise ValueError(f"times: must be positive numbers of seconds, are {self.times}")
        if not isinstance(self.features, dict) or not isinstance(self.noise, (int, float)):
            raise TypeError("features: must be an object, and noise a number")

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What tells it from all others."""
        return self.operation, self.dtype, self.question, self.case, self.subject

    @property
    def best(self) -> float:
        """Seconds of the fastest label."""
        return min(self.times.values())


def path_for(device: Device) -> Path:
    """Return where the measurements of a device with this version are kept, below the user's cache folder."""
    name, driver = (re.sub(r"\W+", "-", text).strip("-")[:40] for text in device.fingerprint)
    digest = cache.key_of(*device.fingerprint, device.platform, clsparse_py.__version__)[:8]
    return cache.folder() / "tuning" / f"{name}-{driver}-{clsparse_py.__version__}-{digest}.jsonl"


class Checkpoint:
    """The measurements of a device: those of earlier runs, and new ones, which are written as they come.

    A file that can't be written costs the chance to go on later, not the run: it is said once.

    Parameters
    ----------
    path : pathlib.Path or None
        Of the file; None keeps all in memory.
    fresh : bool
        Whether to forget what earlier runs measured.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self.path = path
        self.observations: dict[tuple[str, str, str, str, int], Observation] = {}
        #: Cases by operation, dtype and name that are done; where the operation does not take a matrix, why.
        self.done: dict[tuple[str, str, str], str] = {}
        #: Configurations by operation, dtype, question and label that a process did not survive.
        self.fatal: set[tuple[str, str, str, str]] = set()
        self._complained = False
        self._ends_whole = True
        if path is None:
            return
        if fresh:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._complain(error)
        self._read(path)

    def _read(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("what was measured before cannot be read (%s): all is measured anew", error)
            return
        trying: tuple[str, str, str, str] | None = None
        self._ends_whole = not content or content.endswith(b"\n")
        for number, line in enumerate(content.splitlines(), 1):
            try:
                kind, entry = self._parsed(line)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                _log.warning("%s, line %d is damaged and left out: %s", path, number, error)
                continue
            if kind == "trying":
                trying = entry
                continue
            trying = None
            if kind == "done":
                operation, dtype, case, why = entry
                self.done[operation, dtype, case] = why
            elif kind == "fatal":
                self.fatal.add(entry)
            elif kind == "observation":
                self.observations[entry.key] = entry
        if trying is not None:
            # Nothing came after it, not even that the run was stopped.
            _log.warning("%s %s: the process ended while %s ran: it is left out from now on", *trying[:2], trying[3])
            self.give_up(*trying)

    @staticmethod
    def _parsed(line: bytes) -> tuple[str, Any]:
        """Return what a line holds: what it is, and its content."""
        content = json.loads(line)
        if not isinstance(content, dict) or len(content) != 1:
            raise ValueError("not an object of one entry")
        ((kind, value),) = content.items()
        if kind == "observation":
            if not isinstance(value, dict):
                raise ValueError("not what was measured")
            return kind, Observation(**{**value, "rough": tuple(value["rough"])})
        lengths = {"done": 4, "trying": 4, "fatal": 4, "stopped": 0}
        if not isinstance(value, list) or len(value) != lengths[kind] or not all(isinstance(each, str) for each in value):
            raise ValueError(f"not what a line of kind {kind} holds")
        return kind, tuple(value)

    def _write(self, kind: str, value: Any) -> None:
        if self.path is None or self._complained:
            return
        line = json.dumps({kind: value}, separators=(",", ":")) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                # A line that an earlier process did not write to its end stays a line of its own.
                file.write(line if self._ends_whole else "\n" + line)
            self._ends_whole = True
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        self._complained = True
        _log.warning("measurements cannot be kept in %s (%s): this run goes on, but can't be continued later", self.path, error)

    def add(self, observation: Observation) -> None:
        """Keep a measurement."""
        self.observations[observation.key] = observation
        self._write("observation", dataclasses.asdict(observation))

    def finish(self, operation: str, dtype: str, case: str, why: str = "") -> None:
        """Keep that a case is done, or why the operation does not take it."""
        self.done[operation, dtype, case] = why
        self._write("done", [operation, dtype, case, why])

    def trying(self, operation: str, dtype: str, question: str, label: str) -> None:
        """Keep what is about to run for the first time: should the process not survive it, the next one leaves it out."""
        self._write("trying", [operation, dtype, question, label])

    def give_up(self, operation: str, dtype: str, question: str, label: str) -> None:
        """Keep that a configuration is not to be run any more."""
        self.fatal.add((operation, dtype, question, label))
        self._write("fatal", [operation, dtype, question, label])

    def stopped(self) -> None:
        """Keep that the run ended in order, whatever was running."""
        self._write("stopped", [])

    def of(self, operation: str, dtype: str, case: str | None = None) -> Iterator[Observation]:
        """Iterate over what was measured of an operation and dtype, of one case or of all."""
        for observation in self.observations.values():
            if (observation.operation, observation.dtype) == (operation, dtype) and case in (None, observation.case):
                yield observation
