"""Processes of source folders that take turns: each imports one folder's clsparse_py and calls it when told."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyopencl as cl

from bench.problems import Problem
from bench.problems.base import WrongResultError
from bench.times import rounds_until
from bench.verdicts import Run, Samples

# The script that the processes run.
_SCRIPT = Path(__file__).with_name("timed_calls.py")
# Seconds that an answer may take: the first one builds kernels.
_PATIENCE = 600.0


class ProcessError(Exception):
    """A process ended, does not answer, a command failed in it, or its result is wrong.

    Attributes
    ----------
    side
        ``old`` or ``new``: whose process it is.
    """

    side = ""


class TimedProcess:
    """A process that times calls of one source folder's clsparse_py on a device; started by the first command.

    Parameters
    ----------
    folder
        The source folder: it holds ``clsparse_py``.
    """

    def __init__(self, folder: Path, device: cl.Device) -> None:
        self._folder = folder
        self._device = {"platform": device.platform.name.strip(), "name": device.name.strip()}
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._awaited = False

    def ask(self, command: str, **arguments: Any) -> None:
        """Start a command, in a new process if the last one ended.

        Raises
        ------
        ProcessError
            If the process does not take it.
        """
        if self._process is None:
            command_line = [sys.executable, str(_SCRIPT), str(self._folder)]
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process is
            self._process = subprocess.Popen(command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
            environment = {name: value for name, value in os.environ.items() if name.startswith(("OCL_", "PYOPENCL_"))}
            self.result_of("device", **self._device, environment=environment)
        self._awaited = True
        try:
            self._process.stdin.write(json.dumps([command, arguments]).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ProcessError(self._ended()) from None

    def answer(self) -> Any:
        """Return the result of the command that was started last.

        Raises
        ------
        ProcessError
            If it failed, or the process ended or did not answer.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(_PATIENCE):
                self.close()
                raise ProcessError(f"no answer within {_PATIENCE:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise ProcessError(self._ended())
        self._awaited = False
        answer = json.loads(line)
        if "error" in answer:
            raise ProcessError(answer["error"])
        return answer["result"]

    def result_of(self, command: str, **arguments: Any) -> Any:
        """Carry out a command and return its result; see `ask` and `answer`."""
        self.ask(command, **arguments)
        return self.answer()

    def release(self) -> None:
        """Have the process let go of a problem; end it if it is not known to be idle."""
        if self._awaited:
            self.close()
        elif self._process is not None:
            self.result_of("release")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._log.close()
        self._process, self._awaited = None, False

    def _ended(self) -> str:
        """Return how the process ended by itself, and the last line that it wrote."""
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        self.close()
        return f"the process of {self._folder} ended with status {code}" + (f": {lines[-1]}" if lines else "")


class Trio:
    """The processes of one run: two of the old folder, whose difference is noise, and one of the new folder."""

    def __init__(self, old: Path, new: Path, device: cl.Device) -> None:
        self._processes = {"old": TimedProcess(old, device), "new": TimedProcess(new, device), "again": TimedProcess(old, device)}

    def __enter__(self) -> Trio:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def measure(self, problem: Problem | None, inputs: Path, operation: str, *, rounds: int, deadline: float) -> Run:
        """Let the processes take turns on a problem, and return their samples.

        Parameters
        ----------
        problem
            Checks the results; None where there is nothing to check.
        inputs
            The folder of the operands.
        deadline
            See `bench.times.rounds_until`.

        Raises
        ------
        ProcessError
            If a process fails or its result is wrong; it has a side.
        """
        try:
            seconds = self._prepared(inputs=str(inputs), operation=operation)
            samples: dict[str, Samples] = {name: {} for name in self._processes}
            # Every order as often as any other: each process finds caches and clocks as the one before it leaves them.
            orders = itertools.cycle(itertools.permutations(self._processes))
            for _, order in zip(rounds_until(deadline, rounds), orders, strict=False):
                for name in order:
                    for way, value in self._request(name, "sample", seconds=seconds).items():
                        samples[name].setdefault(way, []).append(value)
            if problem is not None:
                for name in self._processes:
                    self._check(name, problem)
        finally:
            for process in self._processes.values():
                # The first error is told already; one here ends the process.
                with contextlib.suppress(ProcessError):
                    process.release()
        return Run(**samples)

    def _prepared(self, **arguments: str) -> float:
        """Have each process build what it needs, and return the seconds of a call of the old one."""
        # The first two build at the same time; the third then finds what the first built.
        for name in ("old", "new"):
            with _of_side(name):
                self._processes[name].ask("prepare", **arguments)
        seconds = {}
        for name in ("old", "new"):
            with _of_side(name):
                seconds[name] = self._processes[name].answer()
        self._request("again", "prepare", **arguments)
        return float(seconds["old"])

    def _check(self, name: str, problem: Problem) -> None:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            count = self._request(name, "result", folder=folder)
            result = tuple(np.load(Path(folder) / f"{number}.npy") for number in range(count))
        with _of_side(name):
            try:
                problem.error(result)
            except WrongResultError as error:
                raise ProcessError(f"wrong result: {error}") from None

    def _request(self, name: str, command: str, **arguments: Any) -> Any:
        with _of_side(name):
            return self._processes[name].result_of(command, **arguments)


@contextlib.contextmanager
def _of_side(name: str) -> Iterator[None]:
    try:
        yield
    except ProcessError as error:
        error.side = "new" if name == "new" else "old"
        raise
