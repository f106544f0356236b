"""Tuning as a batch job: suites are kept out of training, mistakes are said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from bench import tune_device
from clsparse_py._tuner.corpus import TEST

pytestmark = pytest.mark.any_platform


def test_matrices_of_a_suite_are_for_testing_alone() -> None:
    cases = tune_device.hold_out("small", cpu=True)
    assert {(case.split, case.family) for case in cases} == {(TEST, "suite-small")}
    made = cases[0].make()
    assert made.shape == (10, 10)
    assert made.dtype == np.float32


def test_the_options_are_those_of_the_command(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def tune(device: cl.Device, _console: Any, **options: Any) -> int:
        asked.update(options, device=device)
        return 7

    monkeypatch.setattr(tune_device, "tune", tune)
    platform = queue.device.platform.name
    given = [
        "--device",
        platform,
        "--operations",
        "spmv,spgemm",
        "--budget",
        "3",
        "--suite",
        "small",
        "--suite",
        "table2",
        "--fresh",
    ]
    assert tune_device.main(given) == 7
    assert asked["device"].platform.name == platform
    assert asked["operations"] == ("spmv", "spgemm")
    assert asked["minutes"] == 3
    assert asked["fresh"] is True
    assert asked["exhaustive"] is False
    assert len(asked["held_out"]) == 26


def test_mistakes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune_device.main(["--device", "no such card"]) == 2
    assert "no such card" in capsys.readouterr().out
    assert tune_device.main(["--operations", "flying"]) == 2
    assert "flying cannot be tuned" in capsys.readouterr().out
