"""The run: problem by problem, all contestants in turn, every result checked."""

from __future__ import annotations

import contextlib
import datetime
import math
import statistics
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import gallery, problems, results
from bench.contestants import Contestant, DeclinedError, Prepared, calls_a_sample
from bench.opencl import Copy
from bench.problems import Problem, Task
from bench.results import Document
from bench.times import Budget, Piece, rounds_until

# A function that copies as many bytes as an operation moves, where a device's caches may hold them; None if they never matter.
ResidentCopy = Callable[[int], Copy]


def now() -> str:
    """Return the date and time as the results file holds them."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def run(
    outputs: Sequence[results.Output],
    *,
    tasks: Sequence[Task],
    contestants: Callable[[str], list[Contestant]],
    bandwidth: float,
    resident_copy: ResidentCopy | None,
    rounds: int,
    budget: float | None,
    in_pieces: bool = False,
    console: Console,
) -> int:
    """Measure what is not yet measured and return how many contestants failed.

    Parameters
    ----------
    outputs
        The files that receive each problem after it was measured; what the first one has is measured.
    tasks
        Input, operation and dtype of each entry to be.
    contestants
        Who takes part in an operation.
    bandwidth
        The copy bandwidth that gives the floors, in bytes a second.
    resident_copy
        Where given, measures a copy of the size of each problem besides.
    rounds
        How many samples each contestant gives of each problem.
    budget
        Seconds for all problems, see `bench.times.Budget`.
    in_pieces
        Leave problems for a later run once the budget might not hold them, see `bench.times.Piece`.
    """
    first = outputs[0]
    pending = [task for task in tasks if not _is_done(first.document, task, contestants(task[1]))]
    if len(pending) < len(tasks):
        console.print(f"{len(tasks) - len(pending)} of {len(tasks)} are in {first.path} already")
    failures = 0
    time = Piece(budget) if in_pieces else Budget(budget, len(pending))
    with progress_bar(console) as progress:
        bar = progress.add_task("", total=len(pending))
        for number, (name, operation, dtype) in enumerate(pending):
            if not time.holds(operation):
                console.print(f"{len(pending) - number} of {len(tasks)} are left for the next run")
                break
            progress.update(bar, description=f"{gallery.title(name)} {operation} {dtype}")
            task = problems.make(name, operation, dtype)
            (deadline,) = time.deadlines()
            entry = _entry(task, bandwidth)
            if resident_copy is not None:
                entry["resident_copy"] = resident_copy(task.minimal_bytes).as_json()
            entry["contestants"] = measure(task, contestants(operation), rounds, deadline)
            console.print(_line(entry), soft_wrap=True)
            for record in entry["contestants"]:
                if "failure" in record:
                    failures += 1
                    console.print(f"  {record['name']}: {record['failure']}", style="red")
            for output in outputs:
                output.add(entry)
            progress.advance(bar)
    return failures


def progress_bar(console: Console) -> Progress:
    """Return the bar that runs show: the problem, and how many are done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console)


def measure(task: Problem, contestants: Sequence[Contestant], rounds: int, deadline: float = math.inf) -> list[Document]:
    """Let all contestants compute a problem in turn, ``rounds`` times unless the deadline passes, and return a record of each.

    In turn: what changes over time, a clock or a busy neighbour, then touches all of them alike. A contestant that declines,
    fails, or whose result is wrong once, is out and leaves no samples.
    """
    records: list[Document] = [{"name": contestant.name} for contestant in contestants]
    running: list[tuple[Prepared, Document]] = []
    for contestant, record in zip(contestants, records, strict=True):
        with _failure_noted(record):
            prepared = contestant.prepare(task)
            # One round unrecorded: it warms up, and says how many calls make a sample.
            seconds, error = _sample_checked(prepared, repeat=1)
            record |= {"detail": prepared.detail, "once": prepared.once, "error": error}
            record |= {"repeat": calls_a_sample(seconds["back_to_back"]), "samples": {way: [] for way in seconds}}
            running.append((prepared, record))
    for _ in rounds_until(deadline, rounds):
        for prepared, record in running:
            if "failure" in record:
                continue
            with _failure_noted(record):
                seconds, error = _sample_checked(prepared, record["repeat"])
                record["error"] = max(record["error"], error)
                for way, value in seconds.items():
                    record["samples"][way].append(value)
    return records


def _sample_checked(prepared: Prepared, repeat: int) -> tuple[dict[str, float], float]:
    prepared.poison()
    seconds = prepared.sample(repeat)
    return seconds, prepared.error()


@contextlib.contextmanager
def _failure_noted(record: Document) -> Iterator[None]:
    # Whatever goes wrong inside a contestant is a result of the benchmark, not the end of it.
    try:
        yield
    except DeclinedError as reason:
        record["declined"] = str(reason)
    except Exception as error:
        record.pop("samples", None)
        record["failure"] = f"{type(error).__name__}: {error}"


def _line(entry: Document) -> str:
    """Return an entry in one line: its floor and everybody's median, in microseconds."""
    timed = [(record["name"], record["samples"]["back_to_back"]) for record in entry["contestants"] if "samples" in record]
    times = [f"{name} {1e6 * statistics.median(samples):.1f}" for name, samples in timed if samples]
    listed = ", ".join([f"floor {1e6 * entry['floor']:.1f}", *times])
    return f"{entry['input']} {entry['operation']} {entry['dtype']}, µs: {listed}"


def _is_done(document: Document, task: Task, contestants: Sequence[Contestant]) -> bool:
    entry = results.find(document, gallery.title(task[0]), *task[1:])
    return entry is not None and {c.name for c in contestants} <= {record["name"] for record in entry["contestants"]}


def _entry(task: Problem, bandwidth: float) -> Document:
    return {
        "input": gallery.title(task.input),
        "operation": task.operation,
        "dtype": task.dtype,
        **task.described(),
        "bytes": task.minimal_bytes,
        "floor": task.minimal_bytes / bandwidth,
        "date": now(),
    }
