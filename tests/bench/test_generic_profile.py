"""A generic profile is made of several devices' measurements, and keeps the rules that were not beaten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import generic_profile
from clsparse_py._decisions import profiles
from clsparse_py._primitives.segments import Shape
from clsparse_py._tuner.checkpoint import Checkpoint, Observation
from clsparse_py._tuner.corpus import TRAIN

pytestmark = pytest.mark.any_platform

RULE = str(Shape.chunks(1))
BETTER = str(Shape.chunks(1, block=48))


def write_checkpoint(path: Path, better: float) -> Path:
    """Write a checkpoint in which one shape of segmented sort is better than the rule, in every family."""
    checkpoint = Checkpoint(path)
    for number in range(40):
        features = {"n": 1000.0 * number, "segments": 10.0, "mean": 100.0, "key_bytes": 4.0, "value_bytes": 0.0}
        seconds = 1e-3 * (1 + number)
        times = {RULE: seconds, BETTER: seconds * better}
        checkpoint.add(
            Observation(
                "segmented_sort", "any", "shape", f"made-{number}", 0, f"family-{number % 5}", TRAIN, features, RULE, times, 0.01
            )
        )
    return path


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A generic profile of the device's type, with a rule, in place of those that are shipped."""
    tree = {"segmented_sort": {"any": {"shape": {"take": RULE}}}, "transpose": {"any": {"method": {"take": "binned"}}}}
    content = {"schema": profiles.SCHEMA, "name": "generic", "device": {"type": "cpu"}, "operations": tree}
    path = profiles.save(content, tmp_path / "generic.json")
    monkeypatch.setattr(profiles, "list_shipped", lambda: [path])
    profiles.forget()
    yield path
    monkeypatch.undo()
    profiles.forget()


def test_what_gains_on_all_devices_is_taken(base: Path, tmp_path: Path) -> None:
    files = [str(write_checkpoint(tmp_path / f"{name}.jsonl", 0.5)) for name in ("one", "other")]
    assert generic_profile.main(["--type", "cpu", "--out", str(base), *files]) == 0
    result = json.loads(base.read_text())
    tree = result["operations"]["segmented_sort"]["any"]["shape"]
    # Larger problems than those measured are left to the rule.
    assert tuple(tree[:2]) == ("n", 39_000)
    assert (tree[2]["take"], tree[3]["take"]) == (BETTER, RULE)
    assert result["operations"]["transpose"] == {"any": {"method": {"take": "binned"}}}
    assert result["device"] == {"type": "cpu"}
    assert {case.split()[1] for record in result["evidence"] for case in record["times"]} == {"(one)", "(other)"}


def test_what_one_device_loses_by_is_not(base: Path, tmp_path: Path) -> None:
    files = [str(write_checkpoint(tmp_path / "one.jsonl", 0.9)), str(write_checkpoint(tmp_path / "other.jsonl", 1.5))]
    assert generic_profile.main(["--type", "cpu", "--out", str(base), *files]) == 0
    assert json.loads(base.read_text())["operations"]["segmented_sort"]["any"]["shape"] == {"take": RULE}


def test_another_type_is_refused(base: Path, tmp_path: Path) -> None:
    content = json.loads(base.read_text()) | {"device": {"type": "custom"}}
    profiles.save(content, base)
    with pytest.raises(SystemExit):
        generic_profile.main(["--type", "cpu", "--out", str(base), str(write_checkpoint(tmp_path / "a.jsonl", 0.5))])
