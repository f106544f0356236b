"""Tuning from beginning to end with a made-up operation: what fails is left out, what is stopped goes on."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest
from made_up import MadeUp
from rich.console import Console

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.errors import ProfileError
from clsparse_py._tuner import clock, descent, run, search, training
from clsparse_py._tuner.checkpoint import Checkpoint, path_for

pytestmark = pytest.mark.any_platform

pytest.importorskip("sklearn")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path / "cache"))
    profiles.forget()


@pytest.fixture(autouse=True)
def corpus(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Leave of the corpus its first small matrices; return their names."""
    from clsparse_py._tuner import session
    from clsparse_py._tuner.corpus import generate

    few = list(itertools.islice(generate(1000), 16))
    monkeypatch.setattr(session, "cases", lambda *_: iter(few))
    return [case.name for case in few]


@pytest.fixture(autouse=True)
def small_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """How well trees are trained is not asked here."""
    monkeypatch.setattr(training, "_FOREST", 6)


def run_tuning(queue: cl.CommandQueue, made_up: MadeUp, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[int, str]:
    """Tune the made-up operation, and return the exit code and what was said."""
    monkeypatch.setattr(run, "OPERATIONS", ("made-up",))
    monkeypatch.setattr(run, "tunables", lambda operations: dict.fromkeys(operations, made_up))
    text = io.StringIO()
    code = run.tune(queue.device, Console(file=text, width=200), **{"minutes": 1, **options})
    return code, text.getvalue()


def test_a_run_ends_with_a_profile(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = run_tuning(queue, MadeUp(), monkeypatch)
    assert code == 0
    profile = profiles.find(describe(queue.device))[0]
    assert not profile.shipped
    assert profile.tree("made-up", "float32", "method").label == "fill/1"
    assert str(profile.path) in said
    content = profile.content
    assert content["device"]["driver"] == queue.device.driver_version.strip()
    # A busy machine may disturb one or the other.
    fastest = [min(times, key=times.get) for record in content["evidence"] for times in record["times"].values()]
    assert fastest.count("fill/1") > len(fastest) / 2
    assert content["scores"]["made-up"]["float32"]["method"]["tuned"] is True
    assert "hubs are not for this operation" in said


def test_what_cannot_be_built_or_is_wrong_is_recorded_and_never_taken(
    queue: cl.CommandQueue, corpus: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tuning(queue, MadeUp(), monkeypatch)
    kept = Checkpoint(path_for(describe(queue.device)))
    taken = [name for name in corpus if not name.startswith("hubs")]
    assert [operand.case for operand in kept.select("made-up", "float32")] == taken
    for operand in kept.select("made-up", "float32"):
        assert operand.failed == {"unbuildable": "BuildError: it does not build", "wrong": "wrong result"}
        assert set(operand.times) == {"fill/1", "fill/4", "fill/16"}
    assert {why for (_, _, case), why in kept.done.items() if case.startswith("hubs")} == {"hubs are not for this operation"}


def test_an_interrupted_run_goes_on_where_it_was(
    queue: cl.CommandQueue, corpus: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = corpus[9] if not corpus[9].startswith("hubs") else corpus[10]

    def interrupt(name: str, label: str) -> None:
        if name == there and label == "fill/16":
            raise KeyboardInterrupt

    code, said = run_tuning(queue, MadeUp(interrupt), monkeypatch)
    assert code == run.INTERRUPTED
    path = path_for(describe(queue.device))
    assert "the same command goes on" in said
    before = len(path.read_bytes().splitlines())
    assert before > 9

    second = MadeUp()
    code, said = run_tuning(queue, second, monkeypatch)
    assert code == 0
    assert "are there" in said
    again = {name for name, _ in second.prepared}
    assert not again & set(corpus[:9])
    assert set(corpus[9:]) - again == {name for name in corpus[9:] if name.startswith("hubs")}
    assert not Checkpoint(path).fatal

    third = MadeUp()
    run_tuning(queue, third, monkeypatch)
    assert third.prepared == []
    run_tuning(queue, third, monkeypatch, fresh=True)
    assert {name for name, _ in third.prepared} == {name for name in corpus if not name.startswith("hubs")}


def test_what_the_process_did_not_survive_is_left_out(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_for(describe(queue.device))
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"trying": ["made-up", "float32", "method", "fill/16"]}) + "\n")
    made_up = MadeUp()
    assert run_tuning(queue, made_up, monkeypatch)[0] == 0
    assert "while fill/16 ran" in caplog.text
    assert "fill/16" not in {label for _, label in made_up.prepared}


def test_the_budget_is_kept(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("clsparse_py._tuner.session.time.monotonic", lambda: now[0])

    def pass_time(_name: str, _label: str) -> None:
        now[0] += 1.0

    made_up = MadeUp(pass_time)
    code, said = run_tuning(queue, made_up, monkeypatch, minutes=1)
    assert code == 0
    assert "as much of the corpus as there was time for" in said
    assert not Checkpoint(path_for(describe(queue.device))).fatal
    assert 55 <= now[0] <= 61


def test_a_lost_device_ends_the_run_and_keeps_what_was_measured(
    queue: cl.CommandQueue, corpus: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[str] = []
    sixth = [name for name in corpus if not name.startswith("hubs")][5]

    def lose(name: str, _label: str) -> None:
        if name == sixth:
            lost.append(name)
            raise cl.LogicError("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES")

    real = clock.Clock.check

    def check(self: clock.Clock, label: str = "") -> None:
        if lost:
            raise clock.DeviceLostError("the device does not answer any more", label)
        real(self)

    monkeypatch.setattr(clock.Clock, "check", check)
    code, said = run_tuning(queue, MadeUp(lose), monkeypatch)
    assert code == 1
    assert "does not answer any more" in said
    assert len({operand.case for operand in Checkpoint(path_for(describe(queue.device))).select("made-up", "float32")}) == 5
    # What it was lost with does not get another chance.
    assert "fill/4 is left out from now on" in said
    assert Checkpoint(path_for(describe(queue.device))).fatal == {("made-up", "float32", "method", "fill/4")}


def test_a_profile_that_cannot_be_written_is_not_lost(
    queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profiles").write_text("no folder")
    (tmp_path / "rescued").mkdir()
    monkeypatch.setattr(run.tempfile, "tempdir", str(tmp_path / "rescued"))
    # Others write to such a folder, too: a name that they can guess is not taken, and no link is followed.
    (tmp_path / "planted").write_text("planted")
    name = profiles.name_for(describe(queue.device))
    (tmp_path / "rescued" / f"{name}.json").symlink_to(tmp_path / "planted")
    code, said = run_tuning(queue, MadeUp(), monkeypatch)
    assert code == 1
    assert "instead" in said
    assert (tmp_path / "planted").read_text() == "planted"
    (rescued,) = (path for path in (tmp_path / "rescued").iterdir() if not path.is_symlink())
    assert profiles.read(rescued).name == name
    assert str(rescued) in said
    assert rescued.stat().st_mode & 0o077 == 0

    def full(*_: Any) -> Path:
        raise ProfileError("profile: no space left on device")

    monkeypatch.setattr(profiles, "save", full)
    code, said = run_tuning(queue, MadeUp(), monkeypatch)
    assert code == 1
    assert '"take": "fill/1"' in said
    assert len(list((tmp_path / "rescued").iterdir())) == 2

    def nowhere(**_: Any) -> tuple[int, str]:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(run.tempfile, "mkstemp", nowhere)
    code, said = run_tuning(queue, MadeUp(), monkeypatch)
    assert code == 1
    assert '"take": "fill/1"' in said


@pytest.mark.skipif(os.name != "posix", reason="locks that end with their process")
def test_what_another_process_tries_is_not_judged(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_for(describe(queue.device))
    script = """
import pathlib, sys, time
from clsparse_py._tuner.checkpoint import Checkpoint, lock_measurements
path = pathlib.Path(sys.argv[1])
with lock_measurements(path):
    Checkpoint(path).note_trial("made-up", "float32", "method", "fill/16")
    print("trying", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "trying\n"
            made_up = MadeUp()
            code, said = run_tuning(queue, made_up, monkeypatch)
            assert code == 1
            assert f"process {other.pid} measures this device already" in said
            assert made_up.prepared == []
            assert not caplog.records
        finally:
            other.kill()
    # It is gone, and what it tried may be why.
    code, _ = run_tuning(queue, made_up, monkeypatch)
    assert code == 0
    assert "while fill/16 ran" in caplog.text
    assert "fill/16" not in {label for _, label in made_up.prepared}


def test_other_operations_are_not_reported_and_what_changes_nothing_says_so(
    queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = run_tuning(queue, MadeUp(), monkeypatch)
    assert (code, "The next product uses it." in said) == (0, True)
    code, said = run_tuning(queue, MadeUp(), monkeypatch)
    assert (code, "The next product uses it." in said) == (0, False)
    assert "It decides as is decided without it" in said
    code, said = run_tuning(queue, MadeUp(), monkeypatch, out=tmp_path / "out.json")
    assert (code, "makes products use it" in said) == (0, False)

    class Other(MadeUp):
        operation = "other"

    monkeypatch.setattr(run, "OPERATIONS", ("made-up", "other"))
    monkeypatch.setattr(run, "tunables", lambda names: {name: {"made-up": MadeUp(), "other": Other()}[name] for name in names})
    text = io.StringIO()
    report = tmp_path / "report"
    assert run.tune(queue.device, Console(file=text, width=200), operations=["other"], minutes=1, report=report) == 0
    table = text.getvalue().partition("Time relative")[2]
    assert "other" in table
    assert "made-up" not in table
    assert "made-up" not in (report / "report.md").read_text()
    assert set(profiles.load(profiles.name_for(describe(queue.device))).operations) == {"made-up", "other"}


def test_other_operations_of_a_profile_are_kept(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    device = describe(queue.device)
    other = {"transpose": {"any": {"method": {"take": "binned"}}}}
    made = {"schema": profiles.SCHEMA, "name": profiles.name_for(device), "device": profiles.identity(device)}
    profiles.save({**made, "operations": other})
    assert run_tuning(queue, MadeUp(), monkeypatch)[0] == 0
    assert set(profiles.load(profiles.name_for(device)).operations) == {"transpose", "made-up"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operations": ["flying"]}, "flying cannot be tuned; there are made-up"),
        ({"questions": ["why"]}, "questions: why is not what any of made-up asks"),
        ({"minutes": 0}, "budget: must be positive"),
        ({"corpus": Path("no-such-folder")}, "no-such-folder is no folder"),
    ],
)
def test_wrong_options_are_refused(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run_tuning(queue, MadeUp(), monkeypatch, **options)


class Paced(clock.Clock):
    """Takes what runs return for the seconds that they took."""

    counts: dict[str, int]

    def once(self, run: Any) -> float:
        return float(run())

    def time_runs(self, run: Any, n: int, *, by_host: bool = False) -> list[float]:
        assert not by_host
        self.counts[run.label] = self.counts.get(run.label, 0) + n
        return [run()] * n


class Pace:
    """A configuration that takes a known time."""

    last = ""

    def __init__(self, label: str) -> None:
        self.label = label

    def __call__(self) -> Any:
        Pace.last = self.label
        return {"default": 4e-3, "best": 1e-3, "close": 1.05e-3, "slow": 9e-3, "wrong": 1e-4}[self.label]


@pytest.fixture
def paced(queue: cl.CommandQueue) -> Paced:
    made = Paced(queue)
    made.counts = {}
    return made


def test_races_measure_the_default_to_the_end_and_stop_others_early(paced: Paced) -> None:
    result = search.race(["default", "slow", "best", "close", "slow"], Pace, lambda: True, paced, keep=["default"])
    assert result.best == "best"
    assert result.rough == {"slow"}
    assert paced.counts["default"] > 2 * paced.counts["slow"]
    assert paced.counts["best"] > 20
    with pytest.raises(search.OutOfTimeError):
        search.race(["best"], Pace, lambda: True, paced, deadline=0.0)


def test_where_results_take_long_to_verify_those_are_that_could_win(paced: Paced) -> None:
    verified = []

    def verify() -> bool:
        time.sleep(0.03)
        verified.append(Pace.last)
        return Pace.last != "wrong"

    labels = ["default", "slow", "best", "close", "wrong"]
    result = search.race(labels, Pace, verify, paced)
    assert verified[0] == "default"
    assert verified[1:] == ["wrong", "best"]
    assert result.failed == {"wrong": "wrong result"}
    assert result.best == "best"
    verified.clear()
    result = search.race(labels[:-1], Pace, verify, paced)
    assert sorted(verified) == ["best", "close", "default"]
    assert result.best == "best"


def test_runs_that_wait_for_the_device_are_timed_by_the_host(queue: cl.CommandQueue) -> None:
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 64)

    def run() -> list[cl.Event]:
        time.sleep(0.01)
        return [cl.enqueue_fill_buffer(profiling, buffer, b"\0", 0, 64)]

    profiling = clock.profiling_queue(queue.context, queue.device)
    timer = clock.Clock(profiling)
    assert min(timer.time_runs(run, 2, by_host=True)) > 0.01
    if timer.by_device:
        assert min(timer.time_runs(run, 2)) < 0.01
    timer.by_device = False
    assert min(timer.time_runs(run, 2)) > 0.01
    assert 0 < timer.overhead < 0.01


@pytest.mark.parametrize("passed", [0, 1, 10**12])
def test_a_clock_that_stands_still_or_runs_ahead_is_not_believed(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, passed: int
) -> None:
    event = SimpleNamespace(wait=lambda: None, profile=SimpleNamespace(start=5, end=5 + passed))
    monkeypatch.setattr(clock.Clock, "_fill", lambda _: event)
    assert not clock.Clock(clock.profiling_queue(queue.context, queue.device)).by_device


class Descending(MadeUp):
    """An operation with a number besides: how often a buffer is filled, of which few times are best."""

    questions = ("method", "numbers")
    descents = ("numbers",)

    def around(self, device: Device, dtype: str, subject: Any, question: str, label: str) -> tuple[str, ...]:  # noqa: ARG002
        candidates = {"fills": (2, 8, 24), "off": (1, 2)}
        return tuple(descent.neighbours(label, {"fills": 24, "off": 0}, candidates))

    def parse(self, question: str, label: str) -> object:
        return descent.changes_of(label) if question == "numbers" else super().parse(question, label)

    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        return descent.UNTUNED if question == "numbers" else super().default(device, dtype, question, features)

    def prepare(self, subject: Any, question: str, label: str) -> Callable[[], list[cl.Event]]:
        if question == "numbers":
            label = f"fill/{int(descent.changes_of(label).get('fills', 24))}"
        return super().prepare(subject, question, label)


def test_a_run_descends_and_its_profile_tells_what_made_it(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = run_tuning(queue, Descending(), monkeypatch, commit="abc", largest=300)
    assert code == 0, said
    profile = profiles.find(describe(queue.device))[0]
    numbers = profile.content["thresholds"]["made-up"]["float32"]
    assert numbers["fills"]["value"] == 2
    assert numbers["fills"]["gain"] > 1
    assert numbers["fills"]["cases"] >= 3
    assert profile.thresholds("made-up", "float32") == {"fills": 2}
    assert set(profile.operations["made-up"]["float32"]) == {"method"}
    made = profile.content["made"]
    assert (made["command"], made["commit"]) == ("clsparse tune --budget 1 --largest 300", "abc")
    assert len(made["corpus"]) == 16
    assert 0 < made["minutes"] <= 1.5
    measured = [record for record in profile.content["evidence"] if record["question"] == "numbers"]
    assert any("fills=2" in times for measurement in measured for times in measurement["times"].values())
    # The same again: what is there is enough, and the profile says that it comes from earlier runs.
    assert run_tuning(queue, Descending(), monkeypatch)[0] == 0
    again = profiles.find(describe(queue.device))[0]
    assert again.thresholds("made-up", "float32") == {"fills": 2}
    assert "went on from" in again.content["made"]["note"]


def test_a_question_may_be_asked_alone_and_answers_to_others_stay(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_tuning(queue, Descending(), monkeypatch, questions=["method"])[0] == 0
    profile = profiles.find(describe(queue.device))[0]
    assert profile.tree("made-up", "float32", "method").label == "fill/1"
    assert not profile.thresholds("made-up", "float32")
    # What is not asked is not done: the next run asks it of the same matrices.
    assert not [case for _, _, case in Checkpoint(path_for(describe(queue.device))).done if not case.startswith("hubs")]
    assert run_tuning(queue, Descending(), monkeypatch, questions=["numbers"], fresh=True)[0] == 0
    again = profiles.find(describe(queue.device))[0]
    assert again.content["made"]["command"] == "clsparse tune --questions numbers --budget 1"
    assert again.tree("made-up", "float32", "method") == profile.tree("made-up", "float32", "method")
    assert again.thresholds("made-up", "float32") == {"fills": 2}
    assert {record["question"] for record in again.content["evidence"]} == {"method", "numbers"}
    assert set(again.content["scores"]["made-up"]["float32"]) >= {"method", "numbers"}
