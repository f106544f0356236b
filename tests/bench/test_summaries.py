"""Summaries of samples: what is kept of them, and what files in ``bench/results/`` may take."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from bench import machine, results, summaries

RESULTS = machine.ROOT / "bench" / "results"
#: Not in the order of their size.
SECONDS = [2.34567891e-5, 3.1e-5, 1.2e-6, 0.5, 2.9e-5, 7.77e-4, 3.3e-5, 0.25, 1.0]


@pytest.mark.parametrize("count", range(1, len(SECONDS) + 1))
def test_five_numbers_have_the_median_and_the_quartiles_of_all_samples(count: int) -> None:
    samples = SECONDS[:count]
    kept = summaries.microseconds(samples)
    assert len(kept) == min(count, 5)
    assert kept == sorted(kept)
    assert statistics.median(kept) == pytest.approx(1e6 * statistics.median(samples), rel=1e-6)
    assert (kept[0], kept[-1]) == pytest.approx((1e6 * min(samples), 1e6 * max(samples)), rel=5e-3)
    if count > 1:
        quartiles = (1e6 * quantile for quantile in statistics.quantiles(samples, n=4, method="inclusive"))
        assert statistics.quantiles(kept, n=4, method="inclusive") == pytest.approx(list(quartiles), rel=5e-3)


def test_rounding_leaves_the_median_in_the_middle() -> None:
    assert summaries.microseconds([1.00049e-3, 1.0004e-3, 1.0006e-3]) == [1000, 1000.49, 1000.49]
    assert summaries.microseconds([1.0049e-4, 1.0048e-4, 1.0047e-4]) == [100, 100.48, 100.48]


def test_a_summary_of_a_summary_is_the_same(tmp_path: Path) -> None:
    for name in ("h100-spgemm-methods", "cpu-intel-sptrans", "h200-elementwise"):
        again = tmp_path / "again.json"
        results.write(again, results.read(RESULTS / f"{name}.json"))
        assert again.read_text() == (RESULTS / f"{name}.json").read_text()


def test_long_lines_are_broken_in_outer_levels_alone() -> None:
    problems = [{"input": "m" * 200, "times": [[1, [2.5]], None]}] * 2
    lines = summaries.as_text({"date": "today", "problems": problems}, 2).splitlines()
    assert lines[:3] == ["{", '"date": "today",', '"problems": [']
    assert [line.startswith('{"input":"mmm') for line in lines] == [False] * 3 + [True] * 2 + [False] * 2
    assert json.loads(summaries.as_text({"what": "m" * 2000})) == {"what": "m" * 2000}


def test_results_take_less_than_a_megabyte() -> None:
    sizes = {path.name: path.stat().st_size for path in RESULTS.rglob("*") if path.suffix in (".json", ".md")}
    assert len(sizes) > 50
    assert sum(sizes.values()) < 1_000_000


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_says_where_of_what_and_when_it_is(path: Path) -> None:
    text = path.read_text()
    assert all(f'"{part}"' in text for part in ("device", "driver", "commit", "date"))


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_is_of_its_schema_or_says_what_it_has(path: Path) -> None:
    document = json.loads(path.read_text())
    if "schema" in document:
        results.read(path)
    else:  # of another command of `bench`, or of a script, which says what it measured
        tables = {"columns", "matrix", "operations", "products", "tables"}
        assert tables & set(document) or isinstance(document["what"], str)
