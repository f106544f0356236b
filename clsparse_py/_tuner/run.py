"""A tuning run from beginning to end: measure, train, write the profile, report. The command and the batch script call it."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyopencl as cl
from rich.console import Console
from rich.table import Table

from clsparse_py._decisions import profiles
from clsparse_py._decisions.profiles import name_for
from clsparse_py._decisions.tree import leaves
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.console import plain_table
from clsparse_py._ground.errors import ProfileError
from clsparse_py._tuner.checkpoint import BusyError, Checkpoint, lock_measurements, path_for
from clsparse_py._tuner.clock import DeviceLostError, profiling_queue
from clsparse_py._tuner.corpus import Case, from_folder
from clsparse_py._tuner.outcome import Outcome, changes_decisions, describe_origin, profile_of, read_existing, train
from clsparse_py._tuner.progress import Progress, duration
from clsparse_py._tuner.session import Options, Session, default_budget
from clsparse_py._tuner.training import Losses
from clsparse_py._tuner.tunable import OPERATIONS, Tunable, tunables

__all__ = ["INTERRUPTED", "tune"]

#: Exit code of a tuning run that Ctrl-C stopped, as shells have it.
INTERRUPTED = 130


def tune(
    device: cl.Device,
    console: Console,
    *,
    operations: Sequence[str] = (),
    questions: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    minutes: float | None = None,
    corpus: Path | None = None,
    held_out: Sequence[Case] = (),
    largest: int | None = None,
    exhaustive: bool = False,
    report: Path | None = None,
    out: Path | None = None,
    fresh: bool = False,
    command: str = "clsparse tune",
    commit: str = "",
    name: str = "",
) -> int:
    """Tune a device, and return the exit code: 0, 1 after a failure, or `INTERRUPTED`.

    Parameters
    ----------
    device : pyopencl.Device
    console : rich.console.Console
        The console of messages and tables.
    operations, questions, dtypes : sequence of str
        The operations, questions and dtypes to tune; empty: all.
    minutes : float, optional
        Time limit of measuring.
    corpus : pathlib.Path, optional
        A folder of matrices to measure with besides the generated ones.
    held_out : sequence of Case
        Further matrices, such as a suite to be scored on.
    largest : int, optional
        Most entries of a generated matrix.
    exhaustive : bool
        Whether to measure every label that could win.
    report : pathlib.Path, optional
        A folder for tables and plots.
    out : pathlib.Path, optional
        A file for the profile; by default the profile is one of the user's, where the next decision finds it.
    fresh : bool
        Whether to forget earlier measurements.
    command, commit : str
        The command, and the commit of a package that runs from no checkout, as the profile tells them.
    name : str
        The profile's name, by default that of the device.

    Raises
    ------
    ValueError
        An unknown operation, question or dtype, a folder without matrices, or a budget that is no time.
    """
    tunables_by_name = _choose(operations)
    _require(["sklearn"] + (["matplotlib"] if report is not None else []))
    described = describe(device)
    seconds = default_budget(described) if minutes is None else minutes * 60
    if not seconds > 0:
        raise ValueError(f"budget: must be positive, is {minutes} minutes")
    asked = {question for tunable in tunables_by_name.values() for question in tunable.questions}
    unknown = [question for question in questions if question not in asked]
    if unknown:
        raise ValueError(f"questions: {', '.join(unknown)} is not what any of {', '.join(tunables_by_name)} asks")
    able = {dtype for tunable in tunables_by_name.values() for dtype in tunable.dtypes(described)}
    unknown = [dtype for dtype in dtypes if dtype not in able]
    if unknown:
        raise ValueError(
            f"dtypes: {', '.join(unknown)} is not what any of {', '.join(tunables_by_name)} is tuned for on this device"
        )
    if corpus is not None and not corpus.is_dir():
        raise ValueError(f"corpus: {corpus} is no folder")
    if report is not None and report.exists() and not report.is_dir():
        raise ValueError(f"report: {report} is no folder")
    further = (*held_out, *(from_folder(corpus) if corpus is not None else ()))
    options = Options(seconds, tuple(dtypes), further, exhaustive, largest, tuple(questions))
    named = {
        "--operations": ",".join(operations),
        "--questions": ",".join(questions),
        "--dtypes": ",".join(dtypes),
        "--corpus": corpus.name if corpus else "",
        "--budget": f"{minutes:g}" if minutes is not None else "",
        "--largest": str(largest or ""),
    }
    words = (command, *(f"{option} {value}" for option, value in named.items() if value), "--exhaustive" if exhaustive else "")
    command = " ".join(filter(None, words))
    path = path_for(described)
    try:
        with lock_measurements(path):
            checkpoint = Checkpoint(path, fresh=fresh)
            earlier = len(checkpoint.observations)

            def head(minutes: float) -> dict[str, Any]:
                """Return the head of the profile that tuning writes: its name, and its origin after some minutes of measuring."""
                origin = describe_origin(command, checkpoint, minutes, earlier, commit)
                return {"name": name or name_for(described), "made": origin}

            return _tune(device, console, tunables_by_name, options, checkpoint, report, out, head)
    except BusyError as error:
        console.print(f"{error} already: two would disturb each other's times. Try again when that one is done.")
        return 1


def _tune(
    device: cl.Device,
    console: Console,
    tunables_by_name: Mapping[str, Tunable[Any]],
    options: Options,
    checkpoint: Checkpoint,
    report: Path | None,
    out: Path | None,
    head: Callable[[float], dict[str, Any]],
) -> int:
    """Measure a device, train trees, write the profile and the report, and return the exit code."""
    described, seconds = describe(device), options.seconds
    console.print(
        f"Tuning {', '.join(tunables_by_name)} on {described.name} ({described.platform}, driver {described.driver_version}) "
        f"for at most {duration(seconds)}.\nMeasurements are kept in {checkpoint.path}"
        + (f"; {len(checkpoint.observations):,} are there." if checkpoint.observations else "."),
        soft_wrap=True,
    )  # fmt: skip
    context = cl.Context([device])
    begin = time.monotonic()
    try:
        with Progress(console, seconds) as progress:
            session = Session(profiling_queue(context, device), tunables_by_name, options, checkpoint, progress)
            complete = session.measure()
    except KeyboardInterrupt:
        console.print(f"Stopped. {_say_where_kept(checkpoint)}", soft_wrap=True)
        return INTERRUPTED
    except DeviceLostError as error:
        advice = f" {error.label} is left out from now on." if error.label else ""
        console.print(f"{error}\n{_say_where_kept(checkpoint)}{advice}", soft_wrap=True)
        return 1
    measured = time.monotonic() - begin
    # Measurements of other operations by earlier runs are part of the profile, too.
    in_profile = {*tunables_by_name, *(operation for operation, *_ in checkpoint.observations)}
    outcomes = train(described, checkpoint, tunables(operation for operation in OPERATIONS if operation in in_profile))
    new_outcomes = {key: outcome for key, outcome in outcomes.items() if key[0] in tunables_by_name}
    if not new_outcomes:
        console.print("Nothing could be measured to train with: give it more time by --budget.")
        return 1
    content = profile_of(described, outcomes, read_existing(described), head(measured / 60))
    console.print(summary(new_outcomes))
    all_of_it = "all of the corpus" if complete else "as much of the corpus as there was time for"
    console.print(f"Measured {all_of_it} in {duration(measured)}, trained in {duration(time.monotonic() - begin - measured)}.")
    changes = changes_decisions(described, content)
    is_saved = _save(content, out, console, changes)
    is_reported = report is None or _report(report, described, new_outcomes, console)
    return 0 if is_saved and is_reported else 1


def _report(folder: Path, device: Device, outcomes: Mapping[tuple[str, str], Outcome], console: Console) -> bool:
    """Write a device's tuning report into a folder, print its path or an error, and return whether it is written."""
    # The module of the tuning report is imported here, as it needs Matplotlib.
    from clsparse_py._tuner.report import write

    try:
        console.print(f"Report: {write(folder, device, outcomes)}", soft_wrap=True)
    except OSError as error:
        console.print(f"report: {folder} cannot be written: {error.strerror or error}")
        return False
    return True


def _choose(operations: Sequence[str]) -> dict[str, Tunable[Any]]:
    """Return the `Tunable` of each operation to tune by the operation's name: of all operations if none is named."""
    unknown = [operation for operation in operations if operation not in OPERATIONS]
    if unknown:
        raise ValueError(f"operations: {', '.join(unknown)} cannot be tuned; there are {', '.join(OPERATIONS)}")
    return tunables(dict.fromkeys(operations) or OPERATIONS)


def _say_where_kept(checkpoint: Checkpoint) -> str:
    """Return the message that names the file in which the measurements of a tuning run are kept."""
    return f"What was measured is kept in {checkpoint.path}: the same command goes on from there."


def _require(modules: Sequence[str]) -> None:
    """Raise `ValueError` if a module of the extra "tune" is not installed, before anything is measured."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise ValueError(f'{", ".join(missing)} is needed for tuning: pip install "clsparse_py[tune]"')


def _save(content: Mapping[str, Any], out: Path | None, console: Console, changes: bool) -> bool:
    """Write a profile, and return whether that worked; if not, write the profile to a temporary file, or print it."""
    try:
        path = profiles.save(content, out)
    except ProfileError as error:
        console.print(str(error), soft_wrap=True)
    else:
        effect = "The next product uses it." if out is None else "`clsparse profile import` makes products use it."
        if not changes:
            effect = "It decides as is decided without it: nothing else was found to be faster."
        console.print(f"Profile: {path}\n{effect}", soft_wrap=True)
        return True
    rescued = _rescue(content)
    if rescued is not None:
        console.print(f"The profile is in {rescued} instead.", soft_wrap=True)
        return False
    console.print("This is the profile, to be put where there is room:")
    console.print(json.dumps({**content, "evidence": []}), soft_wrap=True)
    return False


def _rescue(content: Mapping[str, Any]) -> Path | None:
    """Write a profile to a temporary file of a new name, and return its path; None if that file cannot be written either."""
    try:
        handle, name = tempfile.mkstemp(prefix=f"{content['name']}-", suffix=".json")
    except OSError:
        return None
    os.close(handle)
    try:
        return profiles.save(content, Path(name))
    except ProfileError:
        Path(name).unlink()
        return None


def summary(outcomes: Mapping[tuple[str, str], Outcome]) -> Table:
    """Return the table of the trained decision trees' sizes, losses of time and error rates, to print in 80 columns."""
    table = plain_table(
        title="Time relative to the best measured: geometric mean (95th percentile)",
        caption="On matrices trained on, and on families kept aside, tuned and untuned. Errors, in %: another choice was faster.",
    )
    for column in ("operation", "question", "leaves", "trained on", "kept aside", "untuned", "errors", "rule"):
        is_text = column in ("operation", "question", "rule")
        table.add_column(column, justify="left" if is_text else "right", no_wrap=column != "operation", overflow="fold")
    for (operation, dtype), outcome in outcomes.items():
        title = operation if dtype == "any" else f"{operation} {dtype}"
        for question, answer in outcome.answers.items():
            size = str(sum(1 for _ in leaves(answer.tree)))
            cells = _cells(answer.scores, ("train", "test", "untuned test"))
            table.add_row(title, question, size, *cells, "new" if answer.tuned else "old")
        if len(outcome.answers) > 1:
            table.add_row(title, "together", "", *_cells(outcome.scores, ("tuned train", "tuned test", "untuned test")), "")
    return table


def _cells(scores: Mapping[str, Losses], names: tuple[str, str, str]) -> list[str]:
    """Return cells of a row of the tuning run's summary: the losses of time of three scores, and the first two's error rates."""
    losses_shown = [scores[name] if name in scores and scores[name].cases else None for name in names]
    lost = [f"{losses.mean:.2f} ({losses.p95:.3g})" if losses else "" for losses in losses_shown]
    return [*lost, ", ".join(f"{100 * losses.errors:.0f}" for losses in losses_shown[:2] if losses)]
