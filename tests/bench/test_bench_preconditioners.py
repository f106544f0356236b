"""Preconditioners and smoothers, timed: all of them solve a small system."""

from __future__ import annotations

import pytest

from bench.preconditioners import PRECONDITIONERS, SMOOTHERS, main


def test_every_method_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--grid", "6", "--rounds", "1", "--matrices", "fd2d5_256"])
    said = capsys.readouterr().out
    for name in PRECONDITIONERS:
        assert f"| {name} |" in said
    for name in SMOOTHERS:
        assert f"| fd2d5_256, {name} |" in said
        assert f"| geometric mean, {name} |" in said
