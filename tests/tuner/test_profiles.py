"""Profiles: which one decides, and what happens to those that cannot be used."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground import files
from clsparse_py._ground.errors import ProfileError
from clsparse_py._operations.spgemm.thresholds import Thresholds
from clsparse_py._operations.spmv.features import Features

GPU = Device(
    name="Fast 9", platform="Maker's OpenCL", driver_version="1.2", type="gpu", compute_units=80, max_work_group=1024,
    local_memory=48 << 10, max_allocation=1 << 32, global_memory=1 << 34, preferred_multiple=32, sub_group_sizes=(), fp64=True,
    fp16=False, int64_atomics=True, float_atomics=False, unified_memory=False, aliases_host=False, forward_progress=False, svm=(),
    portability=Portability("ptx", 32, "ptx"), vendor="Maker",
)  # fmt: skip
CPU = replace(GPU, name="Core", type="cpu", platform="Runtime", compute_units=2, vendor="Cores")
#: Of a matrix so large and uneven that CPU devices cut it into chunks of equal work.
FEATURES = Features(10**6, 10**6, 5 * 10**6, 0, 500, 1.0, ()).numbers(2, 8)


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, empty."""
    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path / "mine"))
    profiles.forget()
    yield tmp_path / "mine"
    monkeypatch.undo()
    profiles.forget()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What is shipped: the two generic profiles, and others that a test puts there."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    for path in profiles.list_shipped():
        if path.stem.startswith("generic-"):
            (folder / path.name).write_text(path.read_text())
    monkeypatch.setattr(profiles, "list_shipped", lambda: sorted(folder.glob("*.json")))
    return folder


def make_profile(name: str, device: Device | str, label: str = "serial/64/2", **operations: Any) -> dict[str, Any]:
    """Return a profile for a device, or for a type of them."""
    of = {"type": device} if isinstance(device, str) else profiles.identity(device)
    trees = operations or {"spmv": {"any": {"single": {"take": label}}}}
    return {"schema": profiles.SCHEMA, "name": name, "device": of, "date": "2026-02-03T04:05:06", "operations": trees}


def decide(device: Device, question: str = "single", dtype: str = "float64", parse: Callable[[str], Any] = str) -> str:
    """Return the profile and the label."""
    ruling = profiles.decide(device, "spmv", dtype, question, {**FEATURES, "bin": 0, "granularity": 1}, parse)
    return f"{ruling.profile.removeprefix('profile ')}: {ruling.label}"


def no_gpus(label: str) -> str:
    """Parse labels of a test: those that begin with "new" are unknown."""
    if label.startswith("new"):
        raise ValueError(f"kernel: there is no {label}")
    return label


def test_order_of_lookup(mine: Path, alone: Path) -> None:
    other, kin, larger = (replace(GPU, name=name) for name in ("Fast 3", "Fast 8", "Fast 99"))
    assert decide(CPU) == "generic-cpu: chunked/1/4"
    assert decide(replace(GPU, type="accelerator"), "scheme") == "generic-gpu: single"
    profiles.save(make_profile("kin", kin), alone / "kin.json")
    assert decide(GPU).startswith("kin (2026-02-03)")
    profiles.save(make_profile("larger", replace(larger, compute_units=800)), alone / "larger.json")
    assert decide(GPU).startswith("kin")
    assert decide(replace(GPU, compute_units=700)).startswith("larger")
    profiles.save(make_profile("exact", GPU), alone / "exact.json")
    assert decide(GPU).startswith("exact")
    assert decide(other).startswith("exact")
    profiles.save(make_profile("my-kin", kin))
    assert decide(GPU).startswith("exact")
    assert decide(kin).startswith("my-kin")
    profiles.save(make_profile("my-type", "gpu"))
    assert decide(GPU).startswith("exact")
    profiles.save(make_profile("mine", GPU))
    assert decide(GPU).startswith("mine")
    stranger = replace(GPU, name="Other 1", vendor="Other", platform="Other's OpenCL")
    assert decide(stranger) == "my-type: serial/64/2"
    assert mine.is_dir()


def test_cpus_are_kin_by_their_runtime(alone: Path) -> None:
    profiles.save(make_profile("runtime", CPU), alone / "runtime.json")
    assert decide(replace(CPU, name="Other", vendor="Other")).startswith("runtime")
    assert decide(replace(CPU, platform="Other")).startswith("generic-cpu")
    assert decide(replace(CPU, type="gpu"), "scheme").startswith("generic-gpu")


def test_what_a_profile_lacks_the_next_one_decides(alone: Path) -> None:
    profiles.save(make_profile("mine", CPU, spmv={"float64": {"single": {"take": "serial/64/2"}}}))
    assert alone
    assert decide(CPU).startswith("mine")
    assert decide(CPU, dtype="complex64").startswith("mine")
    assert decide(CPU, dtype="float32").startswith("generic-cpu")
    assert decide(CPU, "scheme").startswith("generic-cpu")
    assert profiles.decide(CPU, "transpose", "any", "method", {"nnz": 10, "mean": 1}, str).profile == "profile generic-cpu"
    with pytest.raises(LookupError, match=r"^no profile decides colour of spmv for int8"):
        profiles.decide(CPU, "spmv", "int8", "colour", {}, str)


def test_dtypes_have_stand_ins() -> None:
    trees = {"int32": {"single": {"take": "a"}}, "float32": {"single": {"take": "b"}}, "float64": {"single": {"take": "c"}}}
    profiles.save(make_profile("mine", CPU, spmv={**trees, "any": {"single": {"take": "d"}, "bin": {"take": "e"}}}))
    labels = {dtype: decide(CPU, dtype=dtype)[-1] for dtype in ("int32", "int8", "bool", "float32", "int64", "complex128", "any")}
    assert labels == {"int32": "a", "int8": "b", "bool": "b", "float32": "b", "int64": "c", "complex128": "c", "any": "d"}
    assert decide(CPU, "bin", "float32").endswith(": e")


def test_a_ruling_tells_profile_path_and_note() -> None:
    split = {"feature": "mean", "at_most": 4, "then": {"take": "a"}, "else": {"take": "b", "note": "as it is long"}}
    profiles.save(make_profile("mine", CPU, spmv={"any": {"single": split}}))
    ruling = profiles.decide(CPU, "spmv", "float32", "single", FEATURES, str.upper)
    assert (ruling.label, ruling.value) == ("b", "B")
    assert ruling.why == "profile mine (2026-02-03): mean > 4 (as it is long)"
    assert str(ruling) == "b where mean > 4 (as it is long)"


def test_untuned_is_what_the_closest_shipped_profile_says(alone: Path) -> None:
    profiles.save(make_profile("mine", CPU))
    assert profiles.default(CPU, "spmv", "float64", "single", FEATURES).label == "chunked/1/4"
    assert profiles.default(replace(GPU, type="custom"), "spmv", "float64", "scheme", FEATURES).profile == "profile generic-gpu"
    thresholds = {"spgemm": {"any": {"sort_items": {"value": 2}}}}
    profiles.save({**make_profile("core", CPU, "serial/16/4"), "thresholds": thresholds}, alone / "core.json")
    assert profiles.default(CPU, "spmv", "float64", "single", FEATURES).label == "serial/16/4"
    before, now = (Thresholds.untuned(device, "float64").items() for device in (replace(CPU, name="x", platform="y"), CPU))
    assert now == {**before, "sort_items": 2} != before


SPLIT = {"feature": "mean", "at_most": 1, "then": {"take": "a"}, "else": {"take": "b"}}
DAMAGED: dict[str, tuple[Any, str]] = {
    "empty": (b"", "damaged"),
    "cut": (b'{"schema": 1, "name": "x', "damaged"),
    "bytes": (bytes(range(200, 256)), "damaged"),
    "deep": (b'{"a":' * 100_000, "damaged"),
    "list": ([], "no profile: profile must be object"),
    "newer": ({"schema": 3}, "version 3 of the schema, .*: a newer one"),
    "older": ({"schema": 1}, "version 1 of the schema, .*: an older one made it; `clsparse tune` makes a new one"),
    "nameless": ({"name": None}, r"profile\.name must be string"),
    "path": ({"name": "../../x"}, r"profile\.name must match"),
    "no device": ({"device": {}}, r"profile\.device must contain"),
    "half a device": ({"device": {"type": "cpu", "name": "Core"}}, "device missing dependency"),
    "no tree": ({"operations": {"spmv": {"any": {"single": {"take": 3}}}}}, "take must be string"),
    "half a split": ({"operations": {"spmv": {"any": {"single": {"feature": "mean", "at_most": 3}}}}}, "single must be valid"),
    "deep tree": ("deep tree", "too deep|damaged"),
    "many units": ({"device": {**profiles.identity(CPU), "compute_units": 10**400}}, "compute_units must be smaller"),
    "no units": ({"device": {**profiles.identity(CPU), "compute_units": 0}}, "compute_units must be bigger"),
    "infinity": (b'{"schema": Infinity}', "damaged: Infinity is no number"),
    "overflow": (
        json.dumps(make_profile("mine", CPU, spmv={"any": {"single": {**SPLIT, "at_most": 7}}}))
        .replace(": 7,", ": 1e999,")
        .encode(),
        r"single must be valid|at_most must be smaller",
    ),
    "not a number": (
        json.dumps(make_profile("mine", CPU, spmv={"any": {"single": {**SPLIT, "at_most": 7}}}))
        .replace(": 7,", ": NaN,")
        .encode(),
        "damaged: NaN is no number",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_profiles_are_reported_once_and_ignored(damage: str, mine: Path, caplog: pytest.LogCaptureFixture) -> None:
    content, message = DAMAGED[damage]
    if content == "deep tree":
        content = json.dumps(make_profile("mine", CPU, spmv={"any": {"single": "TREE"}})).replace('"TREE"', _nest(5000)).encode()
    elif isinstance(content, (dict, list)):
        content = json.dumps({**make_profile("mine", CPU), **content} if isinstance(content, dict) else content).encode()
    mine.mkdir()
    (mine / "mine.json").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert decide(CPU) == "generic-cpu: chunked/1/4"
        profiles.find.cache_clear()
        assert decide(CPU, "bin").startswith("generic-cpu")
    (record,) = [record for record in caplog.records if "mine.json is ignored" in record.getMessage()]
    assert record.levelno == logging.WARNING
    with pytest.raises(ProfileError, match=rf"^profile .*mine\.json: it .*({message})"):
        profiles.load("mine")


def _nest(depth: int) -> str:
    return '{"feature": "mean", "at_most": 1, "then": {"take": "a"}, "else": ' * depth + '{"take": "a"}' + "}" * depth


def test_trees_that_are_too_deep_and_parsers_that_break_are_reported_once_and_ignored(
    mine: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(label: str) -> str:
        if label == "serial/64/2":
            raise OverflowError("too large")
        return label

    profiles.save(make_profile("mine", CPU))
    with caplog.at_level(logging.WARNING):
        assert decide(CPU, parse=broken).startswith("generic-cpu")
        assert decide(CPU, dtype="float32", parse=broken).startswith("generic-cpu")
        assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == ["spmv, single: OverflowError: too large"]
        caplog.clear()
        profiles.save(make_profile("mine", CPU, spmv={"any": {"single": json.loads(_nest(64))}}))
        assert decide(CPU).startswith("mine")
        profiles.save(make_profile("mine", CPU, spmv={"any": {"single": json.loads(_nest(65))}}))
        assert decide(CPU).startswith("generic-cpu")
    assert "more than 64 comparisons" in caplog.text
    assert mine.is_dir()


def test_unknown_labels_and_features_are_reported_once_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    trees = {"take": "new/1", "note": "of a newer version"}
    unknown = {"feature": "colour", "at_most": 1, "then": {"take": "a"}, "else": {"take": "b"}}
    profiles.save(
        make_profile("mine", CPU, spmv={"any": {"single": trees, "scheme": {"take": "fine"}}}, spmm={"any": {"x": {"take": "y"}}})
    )
    with caplog.at_level(logging.WARNING):
        assert decide(CPU, parse=no_gpus).startswith("generic-cpu")
        assert decide(CPU, "scheme", parse=no_gpus).startswith("generic-cpu")
        # Another operation's trees are not in doubt.
        assert profiles.decide(CPU, "spmm", "int8", "x", {}, no_gpus).label == "y"
        assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == ["spmv, single: kernel: there is no new/1"]
        profiles.save(make_profile("mine", CPU, spmv={"any": {"single": unknown}}))
        assert decide(CPU).startswith("generic-cpu")
        assert decide(CPU, dtype="int8").startswith("generic-cpu")
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records[1:]] == ["spmv, single: colour is no feature"]


def test_what_is_saved_is_whole_and_read_at_once(mine: Path) -> None:
    content = make_profile("mine", CPU)
    times = {f"case-{n}": {"serial/64/2": 1e-3, "chunked/1/4": 2e-3} for n in range(3)}
    content["evidence"] = [{"operation": "spmv", "dtype": "float64", "question": "single", "times": times}]
    content["operations"] = {"spmv": {"any": {"single": ["mean", 1, {"take": "a" * 60}, ["mean", 2, *[{"take": "b" * 60}] * 2]]}}}
    path = profiles.save(content)
    assert path == mine / "mine.json"
    assert json.loads(path.read_text()) == content
    assert len([line for line in path.read_text().splitlines() if '"case-' in line]) == 3
    assert max(map(len, path.read_text().splitlines())) < 200
    assert [path.name for path in mine.iterdir()] == ["mine.json"]
    assert decide(CPU).endswith("): " + "b" * 60)
    profiles.save({**content, "operations": {"spmv": {"any": {"single": {"take": "other"}}}}})
    assert decide(CPU).endswith(": other")
    assert profiles.load("mine").content["evidence"] == content["evidence"]
    assert profiles.remove("mine") == path
    assert decide(CPU).startswith("generic-cpu")
    with pytest.raises(ProfileError, match=r"^no profile of yours is named 'mine'; there are: none"):
        profiles.remove("mine")
    with pytest.raises(ProfileError, match=r"^no profile is named 'mine'; there are .*generic-gpu"):
        profiles.load("mine")


def test_what_is_no_profile_is_not_saved(mine: Path) -> None:
    with pytest.raises(ProfileError, match="it is no profile"):
        profiles.save({"schema": profiles.SCHEMA})
    assert not mine.exists()


def test_a_folder_that_cannot_be_written(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine.parent.joinpath("file").write_text("")
    monkeypatch.setenv("CLSPARSE_PROFILES", str(mine.parent / "file" / "below"))
    with pytest.raises(ProfileError, match=r"^profile .*file/below/x\.json: it cannot be written: Not a directory"):
        profiles.save(make_profile("x", CPU))
    assert decide(CPU).startswith("generic-cpu")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_leaves_what_was_there(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = profiles.save(make_profile("mine", CPU)).read_text()

    real = files.replacing

    @contextlib.contextmanager
    def full(path: Path) -> Iterator[Any]:
        with real(path), Path("/dev/full").open("wb") as file:
            yield file

    monkeypatch.setattr(files, "replacing", full)
    with pytest.raises(ProfileError, match=r"mine\.json: it cannot be written: No space left on device"):
        profiles.save(make_profile("mine", CPU, "other"))
    assert (mine / "mine.json").read_text() == before
    assert [path.name for path in mine.iterdir()] == ["mine.json"]


def test_a_folder_that_cannot_be_listed(mine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    profiles.save(make_profile("mine", CPU))

    def refuse(_path: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with caplog.at_level(logging.WARNING):
        assert decide(CPU).startswith("generic-cpu")
    assert f"{mine} is ignored: its profiles cannot be listed: Permission denied" in caplog.text


def test_names_and_devices() -> None:
    assert profiles.name_for(GPU) == "fast-9-maker-s-opencl"
    assert profiles.name_for(replace(GPU, name="é", platform="ü")) == "device"
    profiles.check(make_profile(profiles.name_for(replace(GPU, name="x" * 300)), GPU))


def test_shipped_profiles_are_whole(tmp_path: Path) -> None:
    names = {path.stem for path in profiles.list_shipped()}
    assert {"generic-gpu", "generic-cpu"} <= names
    for path in profiles.list_shipped():
        profile = profiles.read(path, shipped=True)
        profiles.check(profile.content)
        assert profile.head.items() <= profile.content.items()
        assert profile.operations == profile.content["operations"]
        assert profiles.save(profile.content, tmp_path / path.name).read_bytes() == path.read_bytes()
        assert path.stat().st_size < 60_000


@pytest.mark.parametrize(("faster", "other"), [("intel-cpu", "pocl-cpu"), ("nvidia-h200", "nvidia-h100")])
def test_ranks_are_what_the_evidence_says(faster: str, other: str) -> None:
    def least(of: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
        keys = ("operation", "dtype", "question")
        asked = {tuple(record[key] for key in keys): record["times"] for record in of["evidence"]}
        return {(*key, case): min(times.values()) for key, by_case in asked.items() for case, times in by_case.items()}

    contents = [profiles.load(name).content for name in (faster, other)]
    times = [least(content) for content in contents]
    ratios = [times[1][case] / times[0][case] for case in times[0].keys() & times[1].keys()]
    ranks = [content["rank"]["value"] for content in contents]
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(ranks[0] / ranks[1], abs=0.005)
    for content in contents:
        assert f"{len(ratios)} cases" in content["rank"]["note"]


def test_the_schema_is_one(mine: Path) -> None:
    assert mine
    content = make_profile("mine", CPU)
    profiles.check(content)
    for key in ("schema", "name", "device", "operations"):
        without = copy.deepcopy(content)
        del without[key]
        with pytest.raises(ProfileError, match="it is no profile"):
            profiles.check(without)


def test_what_searches_and_trains_is_not_imported() -> None:
    script = "import sys, clsparse_py; print([n for n in sys.modules if n.split('.')[0] in ('sklearn', 'matplotlib')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ.copy())
    assert done.stdout.strip() == "[]"
