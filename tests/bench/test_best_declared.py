"""The comparison of ``A @ x`` with the best that was declared: what is compared, and a small run."""

from __future__ import annotations

import json
from pathlib import Path

import pyopencl as cl
import pytest

from bench import oracle
from clsparse_py.tuning.checkpoint import Observation
from clsparse_py.tuning.corpus import TEST

pytestmark = pytest.mark.any_platform


def observation(case: str, **times: float) -> Observation:
    spelt = {label.replace("_", "/") if "single" in label else label: seconds for label, seconds in times.items()}
    return Observation("spmv", "float64", "whole", case, 0, "suite-table2", TEST, {}, "auto", spelt, 0.02)


def test_choices_are_the_best_of_their_kind() -> None:
    single = {"single:serial_64_2": 3.0, "single:serial_16_4": 2.0, "single:adaptive_128_5": 5.0}
    assert oracle.choices(observation("a", auto=4.0, fine=1.5, **single)) == {
        "the best of all (oracle)": 1.5,
        "the best kernel for all rows": 2.0,
        "the best scheme with bins": 1.5,
        "serial": 2.0,
        "adaptive": 5.0,
    }


def test_ratios_count_as_equal_within_the_noise() -> None:
    cases = [
        observation("a", auto=1.0, **{"single:serial_64_2": 0.99}),
        observation("b", auto=2.0, **{"single:serial_64_2": 1.0}),
    ]
    of_serial = next(each for each in oracle.comparisons(cases) if each.name == "serial")
    assert of_serial.ratios == (0.99, 0.5)
    assert of_serial.row()[1:] == ["0.704", "0.50", "b", "1.95", "1 of 2"]


def test_a_run_measures_all_and_forgets_nothing_on_its_way(queue: cl.CommandQueue, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    given = ["--device", queue.device.platform.name, "--kept-aside", "2", "--largest", "100", "--dtypes", "float32"]
    assert oracle.main([*given, "--budget", "0.00001", "--out", str(out)]) == 1
    assert json.loads(out.read_text())["matrices"] == []
    assert oracle.main([*given, "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert [each["family"] for each in found["matrices"]] != []
    for each in found["matrices"]:
        assert {"auto", "fine", "hybrid-10"} <= each["microseconds"].keys()
        assert any(label.startswith("single:") for label in each["microseconds"])
    assert found["device"]["platform"] == queue.device.platform.name.strip()
    assert "the best of all (oracle)" in out.with_suffix(".md").read_text()
    assert not out.with_suffix(".jsonl").exists()


def test_an_unknown_suite_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        oracle.main(["--suite", "nothing", "--out", "x.json"])
    assert "nothing" in capsys.readouterr().err
