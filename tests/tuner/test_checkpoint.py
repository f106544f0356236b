"""What is kept of measurements survives damage, and never costs a run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from made_up import make_observation

from clsparse_py._tuner.checkpoint import Checkpoint


def test_what_is_added_is_there_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "kept.jsonl"
    first = Checkpoint(path)
    one = make_observation(
        {"a": 1e-3, "b": 2e-3}, {"mean": 3.0}, failed={"c": "does not build"}, rough=("b",), overheads={"a": 0.5}
    )
    first.add(one)
    first.finish("made-up", "float32", "case")
    second = Checkpoint(path)
    assert list(second.select("made-up", "float32", "case")) == [one]
    assert list(second.select("made-up", "float64")) == []
    assert second.done == {("made-up", "float32", "case"): ""}
    assert Checkpoint(path, fresh=True).observations == {}
    assert not path.exists()


def change_line(**fields: Any) -> bytes:
    """Return a line of a measurement of which some fields are something else."""
    whole = dataclasses.asdict(make_observation({"a": 1e-3}, {"mean": 3.0}))
    return json.dumps({"observation": {**whole, **fields}}).encode() + b"\n"


@pytest.mark.parametrize(
    "damage",
    [
        b'{"observation": {"operation": "made-up"}}\n',
        b'{"observation": 3}\n',
        b'{"done": ["a", "b"]}\n',
        b'{"sung": []}\n',
        b"[1, 2]\n",
        b"\xff\xfe\x00\n",
        b'{"observation": {"operation": "made-up", "dtype": "float3',
        b'{"a": 1, "b": 2}\n',
        b"null\n",
        change_line(operation=[]),
        change_line(dtype={}),
        change_line(case=None),
        change_line(split=1),
        change_line(split="both"),
        change_line(default=[1]),
        change_line(rough=[1]),
        change_line(rough=3),
        change_line(subject="1"),
        change_line(subject=True),
        change_line(subject=10**400),
        change_line(times=[1]),
        change_line(times={"a": 10**400}),
        change_line(times={"a": True}),
        change_line(features=[1]),
        change_line(features={"mean": "3"}),
        change_line(features={"mean": float("nan")}),
        change_line(features={"mean": 1e300}),
        change_line(noise=None),
        change_line(noise=float("inf")),
        change_line(failed=["a"]),
        change_line(failed={"a": 1}),
        change_line(overheads={"a": None}),
        change_line(colour="red"),
    ],
)
def test_damaged_lines_are_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes) -> None:
    path = tmp_path / "kept.jsonl"
    Checkpoint(path).add(make_observation({"a": 1e-3}, {}, case="one"))
    with path.open("ab") as file:
        file.write(damage)
    second = Checkpoint(path)
    assert "line 2 is damaged" in caplog.text
    second.add(make_observation({"a": 2e-3}, {}, case="two"))
    caplog.clear()
    assert [operand.case for operand in Checkpoint(path).select("made-up", "float32")] == ["one", "two"]
    assert caplog.text.count("is damaged") == 1


@pytest.mark.parametrize("times", [{"a": -1.0}, {"a": 0}, {"a": "fast"}, {"a": float("nan")}])
def test_impossible_times_are_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture, times: dict[str, float]) -> None:
    path = tmp_path / "kept.jsonl"
    Checkpoint(path).add(make_observation({"a": 1e-3}, {}))
    content = json.loads(path.read_text())
    content["observation"]["times"] = times
    path.write_text(json.dumps(content) + "\n")
    assert Checkpoint(path).observations == {}
    assert "is damaged" in caplog.text


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    kept = Checkpoint(tmp_path / "file" / "kept.jsonl")
    for case in "abc":
        kept.add(make_observation({"a": 1e-3}, {}, case=case))
    assert len(kept.observations) == 3
    assert caplog.text.count("cannot be kept") == 1


def test_a_stop_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    first = Checkpoint(path)
    first.note_trial("made-up", "float32", "method", "a")
    first.note_stop()
    assert Checkpoint(path).fatal == set()
    first.note_trial("made-up", "float32", "method", "a")
    assert Checkpoint(path).fatal == {("made-up", "float32", "method", "a")}
    assert Checkpoint(path).fatal == {("made-up", "float32", "method", "a")}
