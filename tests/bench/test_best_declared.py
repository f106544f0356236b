"""The comparison of ``A @ x`` and ``A @ A`` with the best of many ways to make them: what is compared, and small runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

from bench import oracle, oracle_spgemm
from clsparse_py._device.device import describe
from clsparse_py._operations.spgemm.registry import METHODS
from clsparse_py._operations.spgemm.strategy import parse
from clsparse_py._operations.spgemm.thresholds import Thresholds
from clsparse_py._tuner import descent
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST
from clsparse_py._tuner.spgemm_tunable import SpgemmTunable

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
    of_serial = next(comparison for comparison in oracle.comparisons(cases) if comparison.name == "serial")
    assert of_serial.ratios == (0.99, 0.5)
    assert of_serial.row()[1:] == ["0.704", "0.50", "b", "1.95", "1 of 2"]


def test_a_run_measures_all_and_forgets_nothing_on_its_way(queue: cl.CommandQueue, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    given = ["--device", queue.device.platform.name, "--kept-aside", "2", "--largest", "100", "--dtypes", "float32"]
    assert oracle.main([*given, "--budget", "0.00001", "--out", str(out)]) == 1
    assert json.loads(out.read_text())["tables"] == []
    assert oracle.main([*given, "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    (table,) = result["tables"]
    assert table["choices"][:2] == ["auto", "the best of all (oracle)"]
    assert {"the best kernel for all rows", "the best scheme with bins"} <= set(table["choices"])
    for matrix in table["matrices"]:
        assert len(matrix["microseconds"]) == len(table["choices"])
        assert matrix["microseconds"][0] >= matrix["microseconds"][1] > 0
    assert result["device"]["platform"] == queue.device.platform.name.strip()
    assert "the best of all (oracle)" in out.with_suffix(".md").read_text()
    assert not out.with_suffix(".jsonl").exists()


def test_an_unknown_suite_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        oracle.main(["--suite", "nothing", "--out", "x.json"])
    assert "nothing" in capsys.readouterr().err


def test_configurations_of_products_are_drawn_once_and_are_legal(queue: cl.CommandQueue) -> None:
    untuned = SpgemmTunable().thresholds(describe(queue.device), "float32")
    drawn = list(itertools.islice(oracle_spgemm._draws("some matrix", tuple(METHODS), untuned), 100))
    assert drawn == list(itertools.islice(oracle_spgemm._draws("some matrix", tuple(METHODS), untuned), 100))
    assert len(set(drawn)) > 90
    for label in drawn:
        strategy, thresholds = label.split(" | ")
        parse(strategy)
        Thresholds.from_values({**untuned, **descent.changes_of(thresholds)})


def test_a_run_measures_products_made_in_many_ways(
    queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle_spgemm, "_CONFIGURATIONS", 2)
    out = tmp_path / "found.json"
    given = ["--device", queue.device.platform.name, "--operation", "spgemm", "--dtypes", "float32", "--out", str(out)]
    assert oracle.main([*given, "--kept-aside", "1", "--smallest", "10000", "--largest", "10000"]) == 0
    (table,) = json.loads(out.read_text())["tables"]
    assert {"auto", "untuned", "the best of those searched", "the best of those drawn"} <= set(table["choices"])
    assert all(matrix["microseconds"][0] > 0 for matrix in table["matrices"])
    text = out.with_suffix(".md").read_text()
    assert "the best of those searched" in text
    assert "untuned" in text


def test_products_that_take_long_are_left_out(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = sp.csr_array(np.ones((40, 40), np.float32))
    monkeypatch.setattr(oracle_spgemm, "_MAX_PRODUCTS", {"cpu": 1000, "gpu": 1000})
    with pytest.raises(ValueError, match="has 64,000 products, over 1,000"):
        oracle_spgemm.AllOfSpgemm().problem(queue, "long", matrix, "float32")
