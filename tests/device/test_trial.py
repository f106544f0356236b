"""Compilers that end or stop the process that uses them: tried in a child, once, and passed over."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyopencl as cl
import pytest

from clsparse_py import NoDeviceError
from clsparse_py._build import programs, refusals
from clsparse_py._command import cli
from clsparse_py._device import capabilities, device, trial

pytestmark = [pytest.mark.any_platform]


@pytest.mark.parametrize(
    ("output", "code", "reason", "certain"),
    [
        ("", 1, None, None),
        ("", None, None, None),
        ("", -signal.SIGSEGV, None, None),
        ("none the device is not there\n", 0, None, None),
        ("begins\ngood \n", 0, None, None),
        ("begins\ngood \n", -signal.SIGABRT, None, None),
        ("begins\nnone no memory\n", 0, None, None),
        ("begins\n", -signal.SIGKILL, None, None),
        ("begins\n", -signal.SIGSEGV, "ends the process that uses it .SIGSEGV", True),
        ("begins\nLLVM ERROR: no\n", -signal.SIGABRT, "ends the process that uses it .SIGABRT", True),
        ("begins\n", 1, "ends the process that uses it .exit code 1", True),
        ("begins\n", None, "takes more than 120 s", False),
        ("begins\nwrong probe_vectors\n", 0, "gets a small kernel wrong: probe_vectors", True),
        ("begins\nrefused error: unknown target\n", 0, "builds nothing: error: unknown target", False),
    ],
)
def test_what_a_child_shows(output: str, code: int | None, reason: str | None, certain: bool | None) -> None:
    verdict = trial.judge(output, code)
    if reason is None:
        assert verdict is None
    else:
        assert verdict is not None
        assert verdict.certain == certain
        with pytest.raises(trial.UnfitError, match=reason):
            raise verdict


def test_a_good_compiler_passes(queue: cl.CommandQueue, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "clsparse_py")
    assert trial._run_child(programs.identity(queue.device)) is None
    assert rf"ended with 0: b'{trial.BEGINS}\n{trial.GOOD} \n'b''" in caplog.text


def test_another_device_is_no_verdict() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "clsparse_py._device.probe", "no device"], capture_output=True, check=True, timeout=120
    )
    assert trial.judge(ended.stdout.decode(), ended.returncode) is None


@pytest.fixture
def tried(
    queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[cl.Device, Callable[[], int]]]:
    """Give the device, of which nothing is known, a child that runs a shell script; and a count of the times that it ran."""
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYOPENCL_CTX", raising=False)
    monkeypatch.setattr(device, "devices", lambda: [queue.device])
    monkeypatch.setattr(cli, "devices", lambda: [queue.device])
    monkeypatch.setattr(capabilities, "type_of", lambda _: "cpu")
    device.unusable.cache_clear()
    device._describe.cache_clear()
    programs.forget_refused()

    def plant(script: str) -> tuple[cl.Device, Callable[[], int]]:
        counter = tmp_path / "count"
        child = tmp_path / "python"
        child.write_text(f"#!/bin/sh\necho >> {counter}\n{script}\n")
        child.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(child))
        return queue.device, lambda: len(counter.read_text()) if counter.exists() else 0

    yield plant
    monkeypatch.undo()
    device.unusable.cache_clear()
    device._describe.cache_clear()
    programs.forget_refused()


def later_process() -> None:
    """Forget what a process knows by itself."""
    refusals.clear()
    refusals._PROCESS = os.urandom(8).hex()
    device.unusable.cache_clear()


def test_a_child_that_dies_has_its_device_passed_over(tried: Callable, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "clsparse_py")
    there, count = tried("echo begins; kill -SEGV $$")
    for _ in range(3):
        with pytest.raises(NoDeviceError, match=r"no OpenCL device can be used .*ends the process that uses it \(SIGSEGV\)"):
            device.choose_device()
        with pytest.raises(NoDeviceError, match=r"cannot be used.*SIGSEGV.*warmup --retry"):
            device.describe(there)
        later_process()
    assert count() == 1
    assert any("is passed over" in record.message and record.levelno == logging.INFO for record in caplog.records)


def test_a_child_that_hangs_is_ended_and_believed_the_second_time(tried: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LIMIT", 1.0)
    there, count = tried("echo begins; exec sleep 60")
    for _ in range(3):
        assert "takes more than 1 s" in (device.unusable(there) or "")
        later_process()
    assert count() == 2


@pytest.mark.parametrize("script", ["exit 1", "kill -KILL $$", "echo begins; kill -KILL $$", "echo begins; echo good"])
def test_no_verdict_is_none_and_a_good_one_is_kept(tried: Callable, script: str) -> None:
    there, count = tried(script)
    for _ in range(3):
        assert device.unusable(there) is None
        later_process()
    assert count() == 1  # what probes found in the process itself is kept


def test_a_child_that_cannot_start_is_no_verdict(tried: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    there, _ = tried("")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert device.unusable(there) is None
    for executable in ("", None):
        monkeypatch.setattr(sys, "executable", executable)
        assert trial._run_child("a device") is None


def test_a_child_starts_none(tried: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    there, count = tried("echo begins; kill -SEGV $$")
    monkeypatch.setenv(trial.GUARD, "1")
    assert device.unusable(there) is None
    assert count() == 0


def test_devices_of_other_kinds_have_no_child(tried: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    there, count = tried("echo begins; kill -SEGV $$")
    monkeypatch.setattr(capabilities, "type_of", lambda _: "gpu")
    assert device.unusable(there) is None
    assert count() == 0


def test_retry_has_it_tried_again(tried: Callable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    there, count = tried("echo begins; kill -ABRT $$")
    assert "SIGABRT" in (device.unusable(there) or "")
    tried("echo begins; echo good")
    monkeypatch.setattr(cli.clsparse_py, "warmup", lambda *_: 0)
    device.unusable.cache_clear()
    assert cli.main(["warmup", "--retry"]) == 0
    assert "1 refusals forgotten" in capsys.readouterr().out
    assert device.unusable(there) is None
    assert count() == 2
