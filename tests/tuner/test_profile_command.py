"""The command ``clsparse profile``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse

from clsparse_py import csr_array, warmup
from clsparse_py._build import programs
from clsparse_py._command import cli
from clsparse_py._decisions import profiles
from clsparse_py._decisions.kernel_hashes import hash_of
from clsparse_py._device.device import choose_device, describe

pytestmark = pytest.mark.any_platform

DEVICE = describe(choose_device())


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, empty."""
    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path / "mine"))
    monkeypatch.setenv("COLUMNS", "200")
    profiles.forget()
    yield tmp_path / "mine"
    monkeypatch.undo()
    profiles.forget()


def make_profile(name: str = "mine", **others: Any) -> dict[str, Any]:
    split = {
        "feature": "mean",
        "at_most": 4,
        "then": {"take": "serial/64/2", "cases": 7, "lost": 1.02},
        "else": {"take": "adaptive/64/4"},
    }
    return {
        "schema": profiles.SCHEMA, "name": name, "device": profiles.identity(DEVICE), "date": "2026-02-03",
        "versions": {"numpy": "2.0"}, "kernels": {"spmv": hash_of("spmv")},
        "operations": {"spmv": {"float64": {"single": split}}}, **others,
    }  # fmt: skip


def run(*arguments: str) -> int:
    return cli.main(["profile", *arguments])


def line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the line of what was printed that has these words."""
    shown = capsys.readouterr().out
    results = [line for line in shown.splitlines() if all(word in line for word in words)]
    assert results, f"{words} are not in\n{shown}"
    return results[0]


def test_show_tells_what_serves_the_device(capsys: pytest.CaptureFixture[str], mine: Path) -> None:
    assert run("show") == 0
    shown = capsys.readouterr().out
    assert DEVICE.name in shown
    assert all(word in shown for word in ("spmv", "transpose", "generic-cpu", "generic-gpu", "shipped", "in use", str(mine)))
    profiles.save(make_profile())
    assert run("show") == 0
    assert "yours" in line(capsys, "spmv", "float64", "mine (2026-02-03) (single)")


def test_show_has_a_row_for_each_profile_that_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """One that answers a question for any dtype leaves the others to the profiles after it, which may have trees for a dtype."""
    leaf = {"take": "serial/64/2"}
    profiles.save(make_profile("other", operations={"spmv": {"float64": {"single": leaf, "scheme": {"take": "single"}}}}))
    profiles.save(make_profile("mine", operations={"spmv": {"any": {"single": leaf}}}, date="2026-02-04"))
    assert [profile.name for profile in profiles.find(DEVICE)][:2] == ["mine", "other"]
    assert run("show") == 0
    shown = capsys.readouterr().out
    assert any(all(word in row for word in ("spmv", "float64", "other", "scheme")) for row in shown.splitlines()), shown
    # Without another profile for any dtype, the row names no question.
    assert any(all(word in row for word in ("spmv", "any", "mine")) for row in shown.splitlines()), shown


def test_show_tells_what_is_ignored_and_why(capsys: pytest.CaptureFixture[str], mine: Path) -> None:
    odd = make_profile(
        "odd", operations={"spmv": {"any": {"single": {"take": "csr5/1/1"}}}, "spsv": {"any": {"x": {"take": "y"}}}}
    )
    profiles.save({**odd, "device": {**odd["device"], "driver": "of old"}})
    (mine / "bad.json").write_text("{")
    assert run("show") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "ignored: it is damaged" in shown
    assert "ignored for spmv: kernel: must be one of" in shown
    assert "ignored for spsv: there is no such operation" in shown
    assert "measured with another driver" in shown


def test_show_prints_trees_and_thresholds(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {"sort_items": {"value": 8, "cases": 12, "gain": 1.034}, "merge_items": {"value": 4, "note": "by [hand]"}}
    by = {"command": "clsparse tune --budget 3", "commit": "abc1234", "corpus": "0123abcd", "minutes": 2.9}
    profiles.save(make_profile(thresholds={"spgemm": {"float64": numbers}}, made=by))
    assert run("show", "mine") == 0
    shown = capsys.readouterr().out
    for word in (
        DEVICE.driver_version,
        "numpy 2.0",
        "spmv, float64: single",
        "mean <= 4",
        "mean > 4",
        "serial/64/2  7 cases, time 1.02",
        "spgemm, float64: thresholds",
        "sort_items 8  12 cases, gain 1.03",
        "merge_items 4  by [hand]",
        "clsparse tune --budget 3",
        "abc1234",
    ):
        assert word in shown
    assert run("show", "none") == 2
    assert "no profile is named 'none'" in capsys.readouterr().err


def test_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whatever looks like markup of rich's or like an emoji is a part of the name."""
    odd = "[/red] :warning: [bold]x[/bold] [link=file]"
    named = {**profiles.identity(DEVICE), "platform": odd, "driver": odd, "vendor": odd}
    split = {"feature": "mean", "at_most": 4, "then": {"take": "serial/64/2", "note": odd}, "else": {"take": "adaptive/64/4"}}
    content = make_profile(device=named, date=odd, versions={odd: odd}, operations={"spmv": {"float64": {"single": split}}})
    file = profiles.save(content, tmp_path / "odd.json")
    assert run("import", str(file)) == 0
    for arguments in (("show",), ("show", "mine")):
        capsys.readouterr()
        assert run(*arguments) == 0
        assert odd in " ".join(capsys.readouterr().out.split())


def test_export_and_import(capsys: pytest.CaptureFixture[str], tmp_path: Path, mine: Path) -> None:
    profiles.save(make_profile())
    file = tmp_path / "out.json"
    assert run("export", str(file)) == 0
    assert str(file) in capsys.readouterr().out
    assert run("export", str(tmp_path / "generic.json"), "generic-gpu") == 0
    assert json.loads((tmp_path / "generic.json").read_text())["name"] == "generic-gpu"
    assert run("import", str(file)) == 2
    assert "--replace" in capsys.readouterr().err
    assert run("import", str(file), "--replace") == 0
    assert run("remove", "mine") == 0
    assert not list(mine.iterdir())
    capsys.readouterr()
    assert run("import", str(file)) == 0
    shown = capsys.readouterr().out
    assert str(mine / "mine.json") in shown
    assert "it serves " in shown
    assert DEVICE.name in shown
    assert (mine / "mine.json").read_bytes() == file.read_bytes()


def test_import_says_what_it_will_not_use(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trees = {"spsv": {"any": {"x": {"take": "y"}}}, "spmv": {"any": {"single": {"take": "serial/64/2"}}}}
    other = {**profiles.identity(DEVICE), "name": "Elsewhere", "platform": "None", "vendor": "Nobody"}
    file = profiles.save(make_profile("far", device=other, operations=trees), tmp_path / "far.json")
    assert run("import", str(file)) == 0
    shown = capsys.readouterr().out
    assert "it serves no device that is present" in shown
    assert "it is ignored for spsv: there is no such operation" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device": {**profiles.identity(DEVICE), "compute_units": 10**400}}, "compute_units must be smaller"),
        ({"operations": {}}, "it has no trees"),
        ({"operations": {"spsv": {"any": {"x": {"take": "y"}}}}}, "spsv: there is no such operation"),
        ({"operations": {"spmv": {"any": {"single": {"take": "serial/256/1000000"}}}}}, "unroll must be from 1 to 64"),
        ({"operations": {"transpose": {"any": {"method": {"take": f"gather:{10**19} binned"}}}}}, "from 0 to 1024"),
    ],
)
def test_what_cannot_be_used_is_not_imported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, mine: Path, change: dict[str, Any], message: str
) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps({**make_profile(), **change}))
    assert run("import", str(file)) == 2
    assert message in capsys.readouterr().err
    assert not mine.exists()


def test_errors_are_told_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.json").write_text('{"schema": 7}')
    (tmp_path / "file").write_text("")
    (tmp_path / "made").mkdir()
    profiles.save(make_profile())
    monkeypatch.setattr(Path, "unlink", _refuse)
    for arguments, message in (
        (("import", str(tmp_path / "bad.json")), "version 7 of the schema"),
        (("import", str(tmp_path / "none.json")), "cannot be read: No such file"),
        (("export", str(tmp_path / "file" / "below" / "x.json")), f"there is no folder {tmp_path}/file/below"),
        (("export", str(tmp_path / "none" / "below" / "x.json")), f"there is no folder {tmp_path}/none/below"),
        (("export", str(tmp_path / "made")), "cannot be written: Is a directory"),
        (("remove", "mine"), "cannot be removed: Permission denied"),
        (("remove", "none"), "no profile of yours is named 'none'"),
    ):
        assert run(*arguments) == 2
        told = capsys.readouterr()
        assert told.err.count("\n") == 1
        assert told.err.startswith("clsparse: ")
        assert message in told.err
        assert not told.out
    assert not (tmp_path / "none").exists()


def _refuse(_path: Path, missing_ok: bool = False) -> None:
    if not missing_ok:
        raise PermissionError(13, "Permission denied")


def test_the_next_product_uses_it_and_says_so(queue: cl.CommandQueue, mine: Path) -> None:
    device = describe(queue.device)
    host = scipy.sparse.random_array((300, 300), density=0.05, dtype=np.float32, rng=np.random.default_rng(0)).tocsr()
    tree = {"feature": "mean", "at_most": 12, "then": {"take": "adaptive/64/3"}, "else": {"take": "subvector4/64/2"}}
    for scheme, kernels in (("single", "subvector4"), ("coarse-10", "serial"), ("hybrid-20", "vector")):
        trees = {
            "scheme": {"take": scheme},
            "single": tree,
            "bin": {"take": f"{kernels}/64/2" if scheme != "single" else "serial/64/1"},
        }
        profiles.save({**make_profile(), "device": profiles.identity(device), "operations": {"spmv": {"float32": trees}}})
        A = csr_array(host, queue=queue)
        np.testing.assert_allclose(A @ np.ones(300, np.float32), host @ np.ones(300, np.float32), rtol=1e-4)
        explained = A.spmv_plan().explain()
        assert explained.scheme == scheme
        assert explained.rule.startswith(f"profile mine (2026-02-03): {scheme} always; ")
        assert explained.rule.endswith("subvector4/64/2 where mean > 12" if scheme == "single" else "kernels by bin")
        assert "profile mine (2026-02-03)" in " ".join(str(explained).split())
    assert mine.is_dir()


def test_warming_up_builds_what_a_profile_may_choose(queue: cl.CommandQueue, mine: Path) -> None:
    split = {"feature": "mean", "at_most": 3, "then": {"take": "hybrid-20"}, "else": {"take": "single"}}
    trees = {"scheme": split, "single": {"take": "adaptive/64/3"}, "bin": {"take": "subvector4/64/1"}}
    profiles.save(
        {**make_profile(), "device": profiles.identity(describe(queue.device)), "operations": {"spmv": {"float32": trees}}}
    )
    warmup(queue, [np.float32])
    built = set(programs.built())
    for density in (0.001, 0.05):
        host = scipy.sparse.random_array((500, 500), density=density, dtype=np.float32, rng=np.random.default_rng(1)).tocsr()
        A = csr_array(host, queue=queue)
        np.testing.assert_allclose(A @ np.ones(500, np.float32), host @ np.ones(500, np.float32), rtol=1e-4)
        assert A.spmv_plan().explain().rule.startswith("profile mine")
    assert set(programs.built()) == built
    assert mine.is_dir()
