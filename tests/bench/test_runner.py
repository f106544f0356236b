"""Runs: what is measured, what is found wrong, and what a stopped run still has to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from rich.console import Console

from bench import __main__ as command_line
from bench import machine, opencl, problems, results, runner, times
from bench.contestants import BACK_TO_BACK, Contestant, DeclinedError, HostPrepared, calls_a_sample
from bench.peers import scipy as scipy_peer
from bench.problems.base import Result
from bench.problems.spmv import Spmv

CONSOLE = Console(quiet=True)


def new_document(**changes: Any) -> results.Document:
    document = {
        "schema": results.VERSION,
        "machine": {"device": {"name": "d", "driver": "1", "platform": "p", "type": "CPU"}, "host": machine.host()},
        "versions": machine.versions(),
        "commit": {"revision": "abc", "dirty": False, "changes": ""},
        "date": runner.now(),
        "copies": [],
        "first_product": [],
        "unavailable": {},
        "entries": [],
    }
    return {**document, **changes}


def run(
    document: results.Document,
    path: Path,
    *contestants: Contestant,
    tasks: list[tuple[str, str, str]],
    rounds: int = 2,
    budget: float | None = None,
    samples: Sequence[results.Output] = (),
    in_pieces: bool = False,
) -> int:
    return runner.run(
        [results.Output(path, document), *samples],
        tasks=tasks,
        contestants=lambda _: list(contestants),
        bandwidth=1e10,
        resident_copy=None,
        rounds=rounds,
        budget=budget,
        in_pieces=in_pieces,
        console=CONSOLE,
    )


def counting(calls: list[str]) -> Contestant:
    def prepare(task: Spmv) -> HostPrepared:
        calls.append(task.input)
        return HostPrepared(task, lambda: (task.matrix @ task.x,))

    return Contestant("counting", prepare)


@pytest.mark.parametrize("dtype", problems.DTYPES)
def test_a_run_writes_what_the_schema_says(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "results.json"
    samples = results.Output(tmp_path / "samples.json", new_document(), samples=True)
    peers = scipy_peer.contestants("spmv", None)
    assert run(new_document(), path, *peers, tasks=[("qcd4", "spmv", dtype)], samples=[samples]) == 0
    (summary,), (entry,) = (results.read(file)["entries"] for file in (path, samples.path))
    assert (entry["input"], entry["dtype"], entry["shape"], entry["nnz"]) == ("qcd4", dtype, [1024, 1024], 36_864)
    assert {name: summary[name] for name in ("input", "dtype", "shape", "nnz", "bytes")}.items() <= entry.items()
    assert entry["row_lengths"] == [36, 36.0, 36]
    value = np.dtype(dtype).itemsize
    assert entry["bytes"] == 1025 * 4 + 36_864 * (4 + value) + 2 * 1024 * value
    assert entry["floor"] == entry["bytes"] / 1e10
    (record,) = entry["contestants"]
    assert record["name"] == "scipy"
    assert len(record["samples"]["back_to_back"]) == 2
    assert summary["contestants"][0]["count"] == 2
    assert times.times_of(summary, "back_to_back") == pytest.approx(times.times_of(entry, "back_to_back"), rel=1e-6)
    assert 0 <= record["error"] <= 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results.json", "samples.json"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda task: np.full_like(task.x, np.nan), "rows are off"),
        (lambda task: (task.matrix @ task.x) * (1 + 1e-12), "rows are off"),
        (lambda task: (task.matrix @ task.x)[:-1], "needs float64"),
        (lambda task: (task.matrix @ task.x).astype(np.float32), "got float32"),
        (lambda task: task.nothing, "AttributeError"),
    ],
)
def test_a_wrong_result_leaves_no_times(tmp_path: Path, wrong: Any, reason: str) -> None:
    path = tmp_path / "results.json"
    bad = Contestant("bad", lambda task: HostPrepared(task, lambda: (wrong(task),)))
    good = scipy_peer.contestants("spmv", None)
    assert run(new_document(), path, bad, *good, tasks=[("qcd4", "spmv", "float64")]) == 1
    records = results.read(path)["entries"][0]["contestants"]
    assert reason in records[0]["failure"]
    assert "samples" not in records[0]
    assert "failure" not in records[1]


def test_a_product_that_goes_wrong_later_is_found(tmp_path: Path) -> None:
    calls = []

    def prepare(task: Spmv) -> HostPrepared:
        def product() -> Result:
            calls.append(1)
            return (task.matrix @ task.x if len(calls) < 2 * BACK_TO_BACK else np.zeros_like(task.x),)

        return HostPrepared(task, product)

    assert run(new_document(), tmp_path / "r.json", Contestant("late", prepare), tasks=[("qcd4", "spmv", "float64")]) == 1


def test_who_declines_has_not_failed(tmp_path: Path) -> None:
    def prepare(_: problems.Problem) -> HostPrepared:
        raise DeclinedError("too much")

    path = tmp_path / "results.json"
    assert run(new_document(), path, Contestant("shy", prepare), tasks=[("qcd4", "spmv", "float64")]) == 0
    assert results.read(path)["entries"][0]["contestants"] == [{"name": "shy", "declined": "too much"}]


def test_primitives_have_inputs_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    task = ("skewed_1e4", "segmented_merge", "uint32-uint32")
    right = Contestant("right", lambda problem: HostPrepared(problem, lambda: tuple(map(np.copy, problem.reference))))
    assert run(new_document(), path, right, tasks=[task]) == 0
    (entry,) = results.read(path)["entries"]
    assert (entry["input"], entry["operation"], entry["dtype"]) == task
    assert entry["sizes"] == {"elements": 10_000, "segments": 2, "subsegments": 10, "rounds": 3.0}
    assert entry["bytes"] == 2 * 3 * 8 * 10_000
    assert "nnz" not in entry


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    calls: list[str] = []
    first, second = ("qcd4", "spmv", "float64"), ("cantilever_26", "spmv", "float64")
    run(new_document(), path, counting(calls), tasks=[first])
    document = results.load_or_start(path, new_document(date="later"))
    assert document["date"] != "later"
    run(document, path, counting(calls), tasks=[first, second])
    assert calls == ["qcd4", "cantilever_26"]
    # Somebody who was not there yet has the matrix measured again, with everybody in turn.
    run(results.load_or_start(path, new_document()), path, counting(calls), *scipy_peer.contestants("spmv", None), tasks=[first])
    assert calls[2:] == ["qcd4"]
    assert len(results.read(path)["entries"]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"commit": {"revision": "def", "dirty": False, "changes": ""}},
        {"machine": {"device": {"name": "e", "driver": "1", "platform": "p", "type": "CPU"}, "host": machine.host()}},
        {"versions": {**machine.versions(), "numpy": "0.1"}},
    ],
)
def test_another_run_is_not_continued(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "results.json"
    results.write(path, new_document())
    with pytest.raises(results.CannotContinueError, match=next(iter(change))):
        results.load_or_start(path, new_document(**change))
    # A peer that only one of them has is no reason to stop.
    results.load_or_start(path, new_document(versions={**machine.versions(), "mkl": "1"}))


def test_samples_are_not_added_to_a_summary(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results.write(path, new_document())
    with pytest.raises(results.CannotContinueError, match="summaries, no samples"):
        results.load_or_start(path, new_document(), samples=True)


def test_a_file_that_is_no_results_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps({"schema": 1}))
    with pytest.raises(ValueError, match=r"broken\.json"):
        results.read(path)


def test_a_budget_cuts_rounds_and_no_problems(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    tasks = [(name, "spmv", "float64") for name in ("qcd4", "rmat12")]
    assert run(new_document(), path, *scipy_peer.contestants("spmv", None), tasks=tasks, rounds=20, budget=0) == 0
    entries = results.read(path)["entries"]
    assert [len(entry["contestants"][0]["samples"]["back_to_back"]) for entry in entries] == [times.FEWEST_ROUNDS] * 2


def test_problems_share_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(times.time, "monotonic", lambda: clock[0])
    budget = times.Budget(60.0, 3)
    assert budget.deadlines(2) == [110.0, 120.0]
    clock[0] = 150.0
    # The first problem took longer than its share.
    assert budget.deadlines() == [155.0]
    clock[0] = 200.0
    assert list(times.rounds_until(budget.deadlines()[0], 9)) == [0, 1, 2]
    assert len(list(times.rounds_until(times.Budget(None, 1).deadlines()[0], 9))) == 9


def test_samples_are_neither_too_short_nor_too_long() -> None:
    assert calls_a_sample(1e-5) == BACK_TO_BACK
    assert calls_a_sample(0.1) == 4
    assert calls_a_sample(10.0) == 1


def test_the_command_line_measures_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "LARGEST_COPY", 1 << 20)
    path = tmp_path / "results.json"
    samples = tmp_path / "samples.json"
    arguments = ["run", "--matrices", "qcd4", "--peers", "scipy", "--variants", "", "--rounds", "2", "--out", str(path)]
    arguments += ["--samples", str(samples)]
    assert command_line.main(arguments) == 0
    assert command_line.main(arguments) == 0
    assert "1 of 1 are in" in capsys.readouterr().out
    document = results.read(path)
    assert {copy["how"] for copy in document["copies"]} == {"buffer copy", "kernel"}
    assert len(document["copies"]) == len(results.read(samples)["copies"]) == 2
    assert results.read(samples)["entries"][0]["contestants"][0]["repeat"] >= 1
    assert command_line.main(["report", str(path)]) == 0
    assert "qcd4" in path.with_suffix(".md").read_text()


@pytest.mark.parametrize(
    "change",
    [
        ["--ops", "dance"],
        ["--ops", "primitives"],
        ["--methods", "magic", "--ops", "sptrans"],
        ["--dtypes", "float8"],
        ["--peers", "nobody"],
        ["--device", "abacus"],
    ],
)
def test_the_command_line_names_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str]
) -> None:
    assert command_line.main(["run", "--matrices", "qcd4", "--out", str(tmp_path / "r.json"), *change]) == 2
    assert change[1] in capsys.readouterr().out


def test_copies_are_timed(queue: cl.CommandQueue) -> None:
    for n_bytes in (0, 1000, 1 << 20):
        assert 0 < opencl.copy_of_size(queue, n_bytes).bandwidth < 1e14
