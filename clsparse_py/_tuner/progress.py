"""The display of a tuning run: a bar on a terminal, a line for each matrix elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import Case

__all__ = ["Progress", "duration"]


def duration(seconds: float) -> str:
    """Return a duration in words: minutes and seconds, or seconds, milliseconds or microseconds with three digits."""
    if seconds >= 60:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


class Progress:
    """The display of the running measurement, the time left and the best labels so far.

    Parameters
    ----------
    console : rich.console.Console
        The console of the display; if it is no terminal, a line for each matrix and operation is printed.
    seconds : float
        Time limit of measuring.
    """

    def __init__(self, console: Console, seconds: float) -> None:
        self._console, self._seconds = console, seconds
        self._bar: Bar | None = None
        self._case: tuple[str, str, float] | None = None
        self._best: list[str] = []
        self._done, self._end = 0, 0.0
        self._left_out: tuple[str, str] | None = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            description, time_left = (TextColumn(f"{{task.{part}}}", markup=False) for part in ("description", "fields[left]"))
            columns = (description, BarColumn(24), time_left, TimeElapsedColumn())
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("warming up", total=self._seconds, left="")
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif kind is None:
            self._print_best()

    def begins(self, operation: str, case: Case, n_done: int, seconds_left: float) -> None:
        """Show on a terminal the operation and matrix measured next; elsewhere print the fastest kernels on the last matrix."""
        self._print_best()
        self._case = operation, case.name, time.monotonic()
        self._done, self._end = n_done, time.monotonic() + seconds_left
        self._show(f"{operation}: {case.name}")

    def show(self, observation: Observation) -> None:
        """Show the fastest kernel or method of an observation on a matrix, its time and its gain over the default choice."""
        if not observation.times:
            return
        best = min(observation.times, key=observation.times.__getitem__)
        self._best = [line for line in self._best if not line.startswith(f"{observation.dtype} {observation.question}: ")]
        gain = observation.times.get(observation.default, observation.best) / observation.best
        self._best.append(f"{observation.dtype} {observation.question}: {best} {duration(observation.best)} ({gain:.2f}x)")
        if self._case is not None:
            self._show(f"{self._case[0]}: {self._case[1]}, {self._best[-1]}")

    def _show(self, description: str) -> None:
        """Show on a terminal a description of the running measurement, the number of measured matrices and the time left."""
        if self._bar is not None:
            seconds_left = max(self._end - time.monotonic(), 0.0)
            words = f"{self._done} matrices, {duration(seconds_left)} left"
            self._bar.update(self._task, description=description, completed=self._seconds - seconds_left, left=words)

    def skip(self, operation: str, case: Case, why: str) -> None:
        """Print, unless a terminal shows the bar, that an operation is not measured on a matrix, and why: once for all dtypes."""
        if self._bar is None and self._left_out != (operation, case.name):
            self._left_out = operation, case.name
            reason = why.removeprefix(f"{case.name}: ").splitlines() or ["it is not taken"]
            self._print(f"{operation}: {case.name} left out: {reason[0]}")

    def _print_best(self) -> None:
        """Print the fastest kernels or methods on the last matrix and the time of measuring, unless a terminal shows the bar."""
        if self._bar is None and self._case is not None and self._best:
            operation, name, begin = self._case
            self._print(f"{operation}: {name} in {duration(time.monotonic() - begin)}: {'; '.join(self._best)}")
        self._case, self._best = None, []

    def _print(self, line: str) -> None:
        """Print a line about the progress of tuning without line breaks, however long the line is."""
        self._console.print(line, soft_wrap=True)
