"""``clsparse tune`` with the library's own operations: the next product uses what it found."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

import clsparse_py
from clsparse_py._command import cli
from clsparse_py._decisions import profiles
from clsparse_py._device.device import describe
from clsparse_py._operations.spmv import speed
from clsparse_py._tuner import search, session

pytestmark = pytest.mark.any_platform

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setattr("clsparse_py._tuner.checkpoint.cache.folder", lambda: tmp_path / "kept")
    profiles.forget()
    # The speed of the device, with a smaller matrix.
    monkeypatch.setattr(speed, "_ENTRIES", 1 << 14)


@pytest.fixture
def seconds_by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second of the budget pass with each look at the clock: how much is measured does not depend on the host's load."""
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(looks)), perf_counter=time.perf_counter)
    for module in (session, search):
        monkeypatch.setattr(module, "time", clock)


@pytest.mark.usefixtures("seconds_by_steps")
def test_after_tuning_products_say_so(queue: cl.CommandQueue, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    platform = queue.device.platform.name.strip()
    given = ["tune", "--device", platform, "--operations", "spmv", "--dtypes", "float32", "--largest", "1000", "--budget", "1.5"]
    assert cli.main([*given, "--report", str(tmp_path / "report")]) == 0
    said = capsys.readouterr().out
    assert "spmv: alike-0" in said
    assert "float32" in said
    # What products are divided between devices by is kept.
    result = speed.read_speed(queue.device)
    assert result is not None
    assert f"Speed, for products that it shares with other devices: {result / 1e9:.3g} GB/s" in said
    assert (tmp_path / "report" / "report.md").exists()
    name = profiles.name_for(describe(queue.device))
    A = clsparse_py.csr_array(sp.csr_array(np.eye(50, dtype=np.float32)), queue=queue)
    np.testing.assert_array_equal(A @ np.arange(50, dtype=np.float32), np.arange(50))
    assert f"profile {name}" in str(A.spmv_plan().explain())
    # What is there is gone on with.
    assert cli.main(given) == 0
    assert "are there" in capsys.readouterr().out
    profiles.remove(name)
    assert f"profile {name}" not in str(clsparse_py.spmv_plan(A).explain())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--operations", "flying"], "operations: flying cannot be tuned; there are spmv,"),
        (["--corpus", "no-such-folder"], "corpus: no-such-folder is no folder"),
        (["--report", __file__], "is no folder"),
        (["--device", "no such card"], "no such card"),
        (["--dtypes", "float16"], "dtypes: float16"),
    ],
)
def test_what_cannot_be_tuned_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "--operations", "spmv", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--largest", "0"], "--largest: must be positive, is 0"),
        (["--largest", "many"], "--largest: invalid"),
        (["--budget", "-1"], "--budget: must be positive"),
        (["--budget", "nan"], "--budget: must be positive"),
        (["--budget", "inf"], "--budget: must be positive, and less than a year"),
        (["--operations", ","], "--operations: must name something"),
        (["--dtypes", ""], "--dtypes: must name something"),
    ],
)
def test_what_is_no_number_and_no_name_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["tune", *arguments])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_matrices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "--operations", "spmv", "--corpus", str(tmp_path)]) == 2
    assert "holds no file whose name ends with .mtx" in capsys.readouterr().err


def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("clsparse_py._tuner.run.importlib.util.find_spec", lambda name: None if name == "sklearn" else name)
    assert cli.main(["tune", "--operations", "spmv"]) == 2
    assert 'pip install "clsparse_py[tune]"' in capsys.readouterr().err
