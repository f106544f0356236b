"""Measurements on disk, line by line, from which a stopped run continues."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import clsparse_py
from clsparse_py._device.device import Device
from clsparse_py._ground import cache
from clsparse_py._ground.files import make_private
from clsparse_py._ground.records import dataclass
from clsparse_py._tuner.corpus import TEST, TRAIN

__all__ = ["BusyError", "Checkpoint", "Observation", "lock_measurements", "path_for"]

try:
    import fcntl
except ImportError:  # on Windows, Python's standard library has no locks that end with their process
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
#: Bound on the magnitudes of times and features in a file of measurements: above any measured, below any that could overflow.
_MANY = 10**30


@dataclass(frozen=True)
class Observation:
    """The measured times of the kernels or methods that may answer a question of the tuner, on a matrix or on a part of it.

    Attributes
    ----------
    operation, dtype, question, case : str
        The measured operation, its dtype, the question, and the name of the matrix.
    subject : int
        Number of the subject among the case's subjects.
    family, split : str
        Family and split of the matrix, see `clsparse_py._tuner.corpus`.
    features : dict of str to float
        Features that a decision tree may compare.
    default : str
        The label that is chosen untuned.
    times : dict of str to float
        Seconds by label.
    noise : float
        Least difference of two times, as a share, that is more than noise.
    rough : tuple of str
        Labels whose times come from few runs, as there were clearly better ones.
    failed : dict of str to str
        The reason by label, for labels that could not be measured.
    overheads : dict of str to float
        Seconds to prepare a configuration, by label.
    kernels : str
        Hash of the measured kernels, see `clsparse_py._decisions.kernel_hashes`; "" in files from before it was recorded.
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
    kernels: str = ""

    def __post_init__(self) -> None:
        """Raise a TypeError or ValueError if a field has a wrong type or value, as a file of measurements may hold anything."""
        described = self.operation, self.dtype, self.question, self.case, self.family, self.split
        named = (*described, self.default, self.kernels, *self.rough)
        if not all(isinstance(entry, str) for entry in named):
            raise TypeError("names and labels must be strings")
        if self.split not in (TRAIN, TEST):
            raise ValueError(f"split: must be {TRAIN} or {TEST}, is {self.split[:40]!r}")
        if type(self.subject) is not int or not 0 <= self.subject < _MANY:
            raise ValueError(f"subject: must be a number from 0, is {str(self.subject)[:40]}")
        numbers = {"times": (self.times, 0.0), "overheads": (self.overheads, -math.inf), "features": (self.features, -math.inf)}
        for member, (by_name, above) in {**numbers, "noise": ({"noise": self.noise}, -1.0)}.items():
            if not isinstance(by_name, dict):
                raise TypeError(f"{member}: must be an object")
            wrong = [name for name, value in by_name.items() if not _is_number(value) or not above < value]
            if wrong:
                raise ValueError(f"{member}: must be numbers{' above 0' if above == 0 else ''}, but {wrong[0][:40]} is not")
        if not isinstance(self.failed, dict) or not all(isinstance(entry, str) for entry in self.failed.values()):
            raise TypeError("failed: must be an object of strings")

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """The key of the observation: operation, dtype, the tuner's question, matrix, and number of the part of the matrix."""
        return self.operation, self.dtype, self.question, self.case, self.subject

    @property
    def best(self) -> float:
        """Seconds of the fastest kernel or method of the observation."""
        return min(self.times.values())


def _is_number(value: object) -> bool:
    """Return whether a value from a file of measurements is a number of a magnitude below `_MANY`, as all measured ones are."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_MANY < value < _MANY


class BusyError(RuntimeError):
    """Another process measures the same device."""


@contextlib.contextmanager
def lock_measurements(path: Path) -> Iterator[None]:
    """Lock the measurements of a device against other processes in a ``with`` block; no effect where files cannot be locked.

    Parameters
    ----------
    path : pathlib.Path
        The file of the measurements.

    Raises
    ------
    BusyError
        Another process holds the lock.
    """
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            try:
                make_private(path.parent)
                # The lock of the measurements belongs to an open file, and ends with this process.
                file = stack.enter_context(path.with_suffix(".lock").open("a+"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise BusyError(f"process {file.read(20).strip() or 'of unknown number'} measures this device") from None
            except OSError as error:
                _log.info("%s cannot be locked: %s", path, error)  # writing measurements warns of such a folder
            else:
                file.truncate(0)
                file.write(str(os.getpid()))
                file.flush()
        yield


def path_for(device: Device) -> Path:
    """Return the path of the file of a device's measurements by this version of the package, in the user's cache folder."""
    name, driver = (re.sub(r"\W+", "-", text).strip("-")[:40] for text in device.fingerprint)
    digest = cache.key_of(*device.fingerprint, device.platform, clsparse_py.__version__)[:8]
    return cache.folder() / "tuning" / f"{name}-{driver}-{clsparse_py.__version__}-{digest}.jsonl"


class Checkpoint:
    """The measurements of a device: earlier ones from a file, and new ones, which are written to the file one by one.

    If the file cannot be written, a warning says so once, and the run goes on.

    Parameters
    ----------
    path : pathlib.Path or None
        Path of the file; None keeps all measurements in memory.
    fresh : bool
        Whether to forget earlier measurements.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self.path = path
        self.observations: dict[tuple[str, str, str, str, int], Observation] = {}
        #: Finished cases by operation, dtype and name: "", or why the operation leaves the matrix out.
        self.done: dict[tuple[str, str, str], str] = {}
        #: Operation, dtype, question and label of configurations that ended a process.
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
        """Read earlier measurements from a file, except damaged lines; note as fatal a kernel that the last run died of."""
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
                kind, entry = self._parse_line(line)
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
            # A kernel or method on trial that the file's last line names ended the process, as a run that goes on adds a line.
            _log.warning("%s %s: the process ended while %s ran: it is left out from now on", *trying[:2], trying[3])
            self.note_fatal(*trying)

    @staticmethod
    def _parse_line(line: bytes) -> tuple[str, Any]:
        """Return the kind, such as "observation", and the content of a line of a file of measurements."""
        content = json.loads(line)
        if not isinstance(content, dict) or len(content) != 1:
            raise ValueError("not an object of one entry")
        ((kind, value),) = content.items()
        if kind == "observation":
            if not isinstance(value, dict):
                raise ValueError("not what was measured")
            return kind, Observation(**{**value, "rough": tuple(value["rough"])})
        lengths = {"done": 4, "trying": 4, "fatal": 4, "stopped": 0}
        if not isinstance(value, list) or len(value) != lengths[kind] or not all(isinstance(entry, str) for entry in value):
            raise ValueError(f"not what a line of kind {kind} holds")
        return kind, tuple(value)

    def _write(self, kind: str, value: Any) -> None:
        """Append a line to the file of measurements, if one is written: its kind, such as "observation", and its content."""
        if self.path is None or self._complained:
            return
        line = json.dumps({kind: value}, separators=(",", ":")) + "\n"
        try:
            make_private(self.path.parent)
            with self.path.open("a") as file:
                # If an earlier process left the last line of the file unfinished, a line break comes before the new line.
                file.write(line if self._ends_whole else "\n" + line)
            self._ends_whole = True
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        """Warn that measurements cannot be written to the file, and stop writing measurements."""
        self._complained = True
        _log.warning("measurements cannot be kept in %s (%s): this run goes on, but can't be continued later", self.path, error)

    def add(self, observation: Observation) -> None:
        """Add an observation, the times of one question on one matrix, to the measurements in memory and in the file."""
        self.observations[observation.key] = observation
        self._write("observation", dataclasses.asdict(observation))

    def finish(self, operation: str, dtype: str, case: str, why: str = "") -> None:
        """Note that a matrix is finished for an operation and dtype: all was measured, or the matrix is left out for a reason."""
        self.done[operation, dtype, case] = why
        self._write("done", [operation, dtype, case, why])

    def note_trial(self, operation: str, dtype: str, question: str, label: str) -> None:
        """Note the kernel or method about to run for the first time: if this process dies of it, later processes leave it out."""
        self._write("trying", [operation, dtype, question, label])

    def note_fatal(self, operation: str, dtype: str, question: str, label: str) -> None:
        """Note that the configuration (kernel or method) that a label names must not run any more."""
        self.fatal.add((operation, dtype, question, label))
        self._write("fatal", [operation, dtype, question, label])

    def note_stop(self) -> None:
        """Note that the tuning run ended in order, so that no kernel or method is blamed for its end."""
        self._write("stopped", [])

    def select(self, operation: str, dtype: str, case: str | None = None) -> Iterator[Observation]:
        """Iterate over the observations (measured questions) of an operation and dtype, on one matrix or on all."""
        for observation in self.observations.values():
            if (observation.operation, observation.dtype) == (operation, dtype) and case in (None, observation.case):
                yield observation
