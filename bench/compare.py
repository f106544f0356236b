"""``python -m bench compare``: what changed from one file of samples to another, or from one source folder to another."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse as sp
from rich.console import Console

from bench import gallery, problems, results
from bench.problems import Problem, Task
from bench.problems.spgemm import Spgemm
from bench.report import Sheet
from bench.results import Document
from bench.runner import progress_bar
from bench.summaries import tables
from bench.times import PLAIN, POOLED, Budget, geometric_mean
from bench.turns import ProcessError, Trio
from bench.verdicts import Judged, Pair, Run

# Operations that cost the host alone, and have no result to check.
OF_HOST = ("wrap", "allocate")
# Operations with a result to check.
DEFAULT = ("spmv", "sptrans", "spgemm")
# Operations that source folders are compared by.
OPERATIONS = (*DEFAULT, *OF_HOST)
# Runs of a comparison, each of new processes; of files of samples, the parts that rounds are divided into.
RUNS = 2
# Ways of timing that are shown beside the one that decides.
_BESIDE = ("wall", "host", "cpu")
# Fields of a problem's result beside its samples.
_RESULTS = ("ratio", "by_run", "noise", "verdict", "reason")


def tasks(names: Sequence[str], operations: Sequence[str], dtypes: Sequence[str]) -> list[Task]:
    """Return what to measure, everything on one matrix together.

    Raises
    ------
    ValueError
        If there is no such operation or dtype.
    """
    for option, given, known in (("ops", operations, OPERATIONS), ("dtypes", dtypes, problems.DTYPES)):
        if unknown := [name for name in given if name not in known]:
            raise ValueError(f"--{option}: got {', '.join(unknown)}, needs some of {', '.join(known)}")
    return [(name, operation, dtype) for name in names for operation in operations for dtype in dtypes]


def of_folders(
    old: Path, new: Path, tasks: Sequence[Task], device: cl.Device, *, rounds: int, budget: float | None, console: Console
) -> list[Pair]:
    """Measure two source folders in processes that take turns.

    Parameters
    ----------
    tasks
        Input, operation and dtype of each problem.
    rounds
        Samples of each process on each problem.
    budget
        Seconds for all together, see `bench.times.Budget`.
    """
    time = Budget(budget, len(tasks))
    outcomes = []
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(progress_bar(console))
        bar = progress.add_task("", total=len(tasks))
        trios = [stack.enter_context(Trio(old, new, device)) for _ in range(RUNS)]
        for task in tasks:
            progress.update(bar, description=" ".join((gallery.title(task[0]), *task[1:])))
            outcomes.append(_measure(task, trios, time.deadlines(RUNS), rounds))
            progress.advance(bar)
    return outcomes


def _measure(task: Task, trios: Sequence[Trio], deadlines: Sequence[float], rounds: int) -> Pair:
    name, operation, dtype = task
    key = (gallery.title(name), operation, dtype)
    # Calls of the host alone are timed on the operands of a product.
    problem = problems.make(name, "spmv" if operation in OF_HOST else operation, dtype)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        write_operands(problem, Path(folder))
        checked = None if operation in OF_HOST else problem
        try:
            runs = [
                trio.measure(checked, Path(folder), operation, rounds=rounds, deadline=deadline)
                for trio, deadline in zip(trios, deadlines, strict=True)
            ]
        except ProcessError as error:
            return Pair(key, failed=error.side, reason=str(error))
    return Pair(key, tuple(runs))


def write_operands(problem: Problem, folder: Path) -> None:
    """Write a problem's operands for the processes that compute it."""
    sp.save_npz(folder / "A.npz", problem.matrix, compressed=False)
    if isinstance(problem, Spgemm):
        if problem.right is not problem.matrix:
            sp.save_npz(folder / "B.npz", problem.right, compressed=False)
    elif hasattr(problem, "x"):
        np.save(folder / "x.npy", problem.x)


def of_files(old: Document, new: Document, contestant: str | None) -> list[Pair]:
    """Compare what two files of samples hold of the same problems.

    The odd and the even rounds of each file count as its two runs, and the old file's are compared with each other: that is the
    noise within one process, which is less than that between processes.

    Parameters
    ----------
    contestant
        Who is compared; None for ours by default, as both files have it.

    Raises
    ------
    ValueError
        If a file holds summaries, whose rounds are lost, or the files have no problem in common that this contestant solved.
    """
    for side, document in (("OLD", old), ("NEW", new)):
        if document["schema"] == results.SUMMARY:
            raise ValueError(f"compare: {side} holds summaries, without rounds; needs files that run --samples wrote")
    pairs = []
    for entry in old["entries"]:
        key = entry["input"], entry["operation"], entry["dtype"]
        other = results.find(new, *key)
        sides = [
            {contestant["name"]: contestant for contestant in of["contestants"]} for of in (entry, other or {"contestants": []})
        ]
        names = [contestant] if contestant else [PLAIN, POOLED]
        name = next((name for name in names if "samples" in sides[0].get(name, {}) and name in sides[1]), None)
        if name is not None:
            pairs.append(_of_records(key, *(side[name] for side in sides)))
    if not pairs:
        raise ValueError(f"compare: the files have no entry in common with times of {contestant or f'{PLAIN} or {POOLED}'}")
    return pairs


def _of_records(key: tuple[str, str, str], old: Document, new: Document) -> Pair:
    if "samples" not in new:
        return Pair(key, failed="new", reason=new.get("failure") or new.get("declined", "no times"))
    halves = [
        [{way: seconds[part::RUNS] for way, seconds in side["samples"].items()} for part in range(RUNS)] for side in (old, new)
    ]
    if any(not half["back_to_back"] for side in halves for half in side):
        raise ValueError(f"compare: {' '.join(key)} has fewer than {RUNS} rounds")
    return Pair(key, tuple(Run(halves[0][part], halves[0][1 - part], halves[1][part]) for part in range(RUNS)))


def sheets(result: Sequence[Judged]) -> list[Sheet]:
    """Return the table of all problems, and the one of geometric means."""
    header = ("problem", "old µs", "new µs", "new / old", "by run", *_BESIDE, "noise", "verdict")
    rows = tuple((" ".join(judgement.pair.key), *_cells(judgement)) for judgement in result)
    return [Sheet("back_to_back; slower or faster is what is beyond the noise in both runs", header, rows), _means(result)]


def _cells(judgement: Judged) -> tuple[str, ...]:
    pair = judgement.pair
    if pair.failed:
        return ("",) * (5 + len(_BESIDE)) + (f"{judgement.verdict}: {pair.failed}: {pair.reason}",)
    times = (f"{1e6 * pair.seconds(side):,.1f}" for side in ("old", "new"))
    runs = ", ".join(_ratio(run.ratio("back_to_back")) for run in pair.runs)
    beside = (_ratio(pair.ratio(way)) for way in _BESIDE)
    return (*times, _ratio(pair.ratio()), runs, *beside, f"{judgement.noise:.3f}", judgement.verdict)


def _means(result: Sequence[Judged]) -> Sheet:
    measured = [judgement for judgement in result if judgement.pair.runs]
    operations = list(dict.fromkeys(judgement.pair.key[1] for judgement in measured))
    groups = {operation: [judgement for judgement in measured if judgement.pair.key[1] == operation] for operation in operations}
    if len(groups) > 1:
        groups["all"] = measured
    header = ("operation", "problems", "new / old", *_BESIDE, "old / old", "slower", "faster")
    return Sheet("geometric means", header, tuple(_mean(operation, group) for operation, group in groups.items()))


def _mean(operation: str, result: Sequence[Judged]) -> tuple[str, ...]:
    pairs = [judgement.pair for judgement in result]
    ratios = ([ratio for pair in pairs if (ratio := pair.ratio(way)) is not None] for way in ("back_to_back", *_BESIDE))
    means = (geometric_mean(ratio) if ratio else None for ratio in ratios)
    noise = geometric_mean(run.noise for pair in pairs for run in pair.runs)
    counts = (str(sum(judgement.verdict == verdict for judgement in result)) for verdict in ("slower", "faster"))
    return (operation, str(len(result)), *map(_ratio, means), _ratio(noise), *counts)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def summary(result: Sequence[Judged]) -> dict[str, Any]:
    """Return what samples come to, and summaries of the samples of both runs together."""
    entries = []
    for judgement in result:
        sides = {
            name: [getattr(run, name) for run in judgement.pair.runs] for name in ("old", "again", "new") if judgement.pair.runs
        }
        contestants = [
            {"name": name, "samples": {way: [sample for side in runs for sample in side[way]] for way in runs[0]}}
            for name, runs in sides.items()
        ]
        entries.append({**_result(judgement), "contestants": contestants})
    return {"operations": tables(entries, ("input", *_RESULTS))}


def samples(result: Sequence[Judged]) -> dict[str, Any]:
    """Return what samples come to, and all samples of each run."""
    return {"problems": [{**_result(judgement), "runs": [asdict(run) for run in judgement.pair.runs]} for judgement in result]}


def _result(judgement: Judged) -> dict[str, Any]:
    ratios = [round(run.ratio("back_to_back"), 4) for run in judgement.pair.runs]
    told = (
        judgement.pair.ratio() if ratios else None,
        ratios,
        round(judgement.noise, 4),
        judgement.verdict,
        judgement.pair.reason,
    )
    return dict(zip(("input", "operation", "dtype", *_RESULTS), (*judgement.pair.key, *told), strict=True))
