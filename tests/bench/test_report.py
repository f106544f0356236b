"""Reports: medians, the best of several algorithms, tables and plots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from bench import first_product, glance, machine, pages, report, results, times
from bench.__main__ import main
from bench.results import Document


def record(name: str, seconds: float, **ways: float) -> Document:
    samples = {"back_to_back": [seconds, seconds * 3, seconds / 2], **{way: [value] for way, value in ways.items()}}
    return {"name": name, "detail": "d|d", "repeat": 20, "once": {"plan": 1e-3}, "samples": samples, "error": 0.1}


def entry(matrix: str, *records: Document, **more: object) -> Document:
    return {
        "input": matrix,
        "operation": "spmv",
        "dtype": "float64",
        "shape": [10, 10],
        "nnz": 50,
        "row_lengths": [5, 5.0, 5],
        "bytes": 1000,
        "floor": 1e-6,
        "date": "today",
        "contestants": list(records),
        **more,
    }


def document(*entries: Document) -> Document:
    return {
        "schema": 2,
        "machine": {
            "device": {"name": "d", "driver": "1", "platform": "p", "type": "GPU"},
            "host": {"system": "s", "processor": "x", "threads": 2},
        },
        "versions": {"python": "3", "numpy": "2", "scipy": "1"},
        "commit": {"revision": "abc", "dirty": True, "changes": "123"},
        "date": "today",
        "copies": [{"how": "kernel", "bytes": 2_000_000_000, "samples": [1.0]}],
        "first_product": [0.5, 0.1],
        "unavailable": {"mkl": "not installed"},
        "entries": list(entries),
    }


def test_times_are_medians_and_the_best_algorithm_counts() -> None:
    result = times.times_of(
        entry("m", record("cusparse/alg1", 4.0, single=1.0), record("cusparse/alg2", 3.0), {"name": "x", "failure": "f"}),
        "back_to_back",
    )
    assert result == {"cusparse/alg1": 4.0, "cusparse/alg2": 3.0, "cusparse/best": 3.0}
    assert times.best_peer(result) == "cusparse/alg2"
    assert times.best_peer({"clsparse/auto": 1.0}) is None
    assert times.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_a_report_renders(tmp_path: Path) -> None:
    console = Console(width=200, record=True, quiet=True)
    ours = record("clsparse/auto", 2e-6, single=1.5e-6, host=1e-5, wall=2.5e-5)
    results = document(
        entry("first", ours, record("scipy", 8e-6), record("cusparse/alg1", 4e-6)),
        entry("second", ours, record("scipy", 1e-6), {"name": "mkl/handle", "failure": "WrongResultError: off"}),
        entry("third", record("scipy", 1e-6), resident_copy={"how": "kernel", "bytes": 1000, "samples": [1e-6]}),
    )
    written = report.report(results, tmp_path / "results.json", console)
    assert [path.name for path in written] == ["results.md", "results-spmv-float64-share.png", "results-spmv-float64-ratio.png"]
    assert all(path.stat().st_size for path in written)
    markdown = written[0].read_text()
    # Floor, ours, its bandwidth and share, then the best peer: twice as slow; the host's part is wall less single.
    assert "| first | 10 | 50 | 1.0 | 2.0 | 0.5 | 0.50 |  | cusparse/alg1 | 4.0 | 2.00 | 23.5 |" in markdown
    # Over both matrices SciPy takes 4 times and half as long.
    assert "| scipy | 1.41 | 0.50 | second | 4.00 | first | 1 of 2 |" in markdown
    assert "WrongResultError: off" in markdown
    assert "d\\|d" in markdown


def test_a_report_without_ours_renders(tmp_path: Path) -> None:
    console = Console(width=200, record=True, quiet=True)
    written = report.report(document(entry("m", record("scipy", 1.0))), tmp_path / "r.json", console)
    assert [path.suffix for path in written] == [".md", ".png"]
    assert report.report(document(), tmp_path / "empty.json", console)


def test_values_alone_are_compared_with_each_other(tmp_path: Path) -> None:
    product = entry(
        "m", record("clsparse/auto", 4.0), record("clsparse/kept-plan", 1.0), record("scipy", 8.0),
        record("cusparse-reuse/numeric", 2.0), operation="spgemm", products=70, entries=60,
    )  # fmt: skip
    assert times.best_peer(times.times_of(product, "back_to_back")) == "scipy"
    report.report(document(product), tmp_path / "r.json", Console(quiet=True))
    markdown = (tmp_path / "r.md").read_text()
    assert "| m | 10 | 50 | 70 | 60 |" in markdown
    assert "values alone, time of each contestant / time of clsparse/kept-plan" in markdown
    assert "| cusparse-reuse/numeric | 2.00 | 2.00 | m | 2.00 | m | 1 of 1 |" in markdown


def test_implementations_measured_elsewhere_are_scaled_by_cusparse(tmp_path: Path) -> None:
    # There cuSPARSE took 14.9 and spECK 3.16; here cuSPARSE takes twice as long, and so would spECK.
    square = entry("fe3d27_60", record("clsparse/auto", 3.16e-3), record("cusparse/spgemm", 29.8e-3), operation="spgemm")
    other = entry("economics", record("clsparse/auto", 1e-3), record("cusparse/spgemm", 1e-3), operation="spgemm")
    report.report(document(square, other), tmp_path / "r.json", Console(quiet=True))
    markdown = (tmp_path / "r.md").read_text()
    assert "| fe3d27_60 | 3,160.0 | 29,800.0 | 6,320.0 | spECK | 2.00 |" in markdown
    assert "| geometric mean |  |  |  |  | 2.00 |" in markdown
    assert "implementations that were measured elsewhere" in markdown


def test_accumulators_in_registers_are_held_against_their_originals(tmp_path: Path) -> None:
    def records(*seconds: float) -> list[Document]:
        return [record(f"clsparse/{name}", second) for name, second in zip(("sort", "reg-sort", "hash"), seconds, strict=True)]

    first = entry("bin_2", *records(4.0, 1.0, 1.0), operation="spgemm")
    second = entry("bin_4", *records(1.0, 1.0, 1.0), record("clsparse/reg-hash", 0.5), operation="spgemm")
    report.report(document(first, second), tmp_path / "r.json", Console(quiet=True))
    markdown = (tmp_path / "r.md").read_text()
    assert "| input | sort / reg-sort | merge / reg-merge | hash / reg-hash |" in markdown
    assert "| bin_2 | 4.00 |  |  |" in markdown
    assert "| geometric mean | 2.00 |  | 2.00 |" in markdown


def merge(name: str, rounds: float, *records: Document) -> Document:
    sizes = {"elements": 1000, "segments": 2, "subsegments": 10, "rounds": rounds}
    made = entry(name, *records, operation="segmented_merge", dtype="uint32-uint32", sizes=sizes)
    return {key: value for key, value in made.items() if key not in ("shape", "nnz", "row_lengths")}


def test_a_report_of_primitives_tells_the_time_a_round(tmp_path: Path) -> None:
    document_of_merges = document(
        merge("uniform_1e3", 4.0, record("clsparse/auto", 4e-6), record("clsparse/simple", 8e-6)),
        merge("skewed_1e3", 8.0, record("clsparse/auto", 10e-6), {"name": "clsparse/simple", "declined": "too slow"}),
        entry("m", record("clsparse/auto", 1e-6)),
    )
    written = report.report(document_of_merges, tmp_path / "r.json", Console(quiet=True))
    assert [path.name for path in written] == ["r.md", "r-primitives-share.png", "r-spmv-float64-share.png"]
    markdown = written[0].read_text()
    assert "| skewed_1e3 | 1,000 | 2 | 10 | 8.0 | 1.0 | 10.0 |" in markdown
    assert "| skewed_1e3 | clsparse/auto | 8.00 | 1.2500 | 0.10 | 1.25 |" in markdown
    assert "too slow" in markdown
    assert "| segmented_merge | uint32-uint32 | uniform_1e3 | 1.0 | 4.0 | 4.0000 | 0.25 | 2.00 |" in markdown
    assert "| segmented_merge | uint32-uint32 | skewed_1e3 | 1.0 | 10.0 | 10.0000 | 0.10 |  |" in markdown


def test_pages_hold_the_tables_of_results_files(tmp_path: Path) -> None:
    page, path = tmp_path / "page.md", tmp_path / "r.json"
    end = "<!-- end of bench -->"
    page.write_text(f"Before\n<!-- bench r.json comparison spmv float64 -->\nold\n{end}\nAfter\n")
    assert pages.fill(page)
    assert page.read_text() == f"Before\n<!-- bench r.json comparison spmv float64 -->\n{end}\nAfter\n"
    results.write(path, document(entry("m", record("clsparse/auto", 1.0), record("scipy", 2.0))))
    assert pages.fill(page)
    assert "| scipy | 2.00 |" in page.read_text()
    assert "old" not in page.read_text()
    assert not pages.fill(page)
    page.write_text(page.read_text().replace("comparison spmv float64", "run"))
    assert pages.fill(page)
    assert "| device | d (p, driver 1) |" in page.read_text()
    page.write_text(page.read_text().replace("run -->", "wishes spmv float64 -->"))
    with pytest.raises(ValueError, match="wishes"):
        pages.fill(page)


def test_figures_within_lines_are_those_of_results_files(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results.write(tmp_path / "r.json", document(entry("m", record("clsparse/auto", 1.0), record("scipy", 2.0))))
    figure = "<!-- figure r.json spmv float64 scipy"
    page.write_text(f"It is {figure} mean -->?<!-- --> on {figure} count --><!-- -->.")
    assert pages.fill(page)
    assert page.read_text().replace("<!-- -->", "").endswith("count -->1.")
    assert "mean -->2.00<!-- -->" in page.read_text()
    page.write_text(page.read_text().replace("scipy mean", "no-one mean"))
    with pytest.raises(ValueError, match="no-one"):
        pages.fill(page)


def test_first_operations_are_a_table(tmp_path: Path) -> None:
    page, phases = tmp_path / "page.md", dict.fromkeys(first_product.PHASES, 0.001)
    processes = {"later process, A + A": [phases, phases, {**phases, "first": 0.0205}]}
    (tmp_path / "first.json").write_text(json.dumps({"matrix": "m", "processes": processes}))
    page.write_text("<!-- bench first.json first -->\n<!-- end of bench -->\n")
    assert pages.fill(page)
    assert "| later process, A + A | 1 (1) | 1 (1) | 1 (1) | 1 (1) | 1 (1) | 1 (20) |" in page.read_text()


def test_files_of_a_folder_are_listed_by_date(tmp_path: Path) -> None:
    results.write(tmp_path / "r.json", document(entry("m", record("clsparse/auto", 1.0), record("scipy", 2.0))))
    (tmp_path / "other.json").write_text("{}")
    ((name, *_, operations, beside),) = report.history_sheet(tmp_path).rows
    assert (name, operations, beside) == ("`r.json`", "spmv float64 2.00", "scipy")


def test_the_picture_of_the_readme_is_that_of_the_results() -> None:
    assert glance.description() in glance.PICTURE.read_text("utf-8"), "python -m bench.glance draws it anew"


@pytest.mark.parametrize(
    "page", [machine.ROOT / "README.md", *sorted((machine.ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_tables_of_pages_are_those_of_the_results(page: Path) -> None:
    assert page.read_text() == pages.filled(page), "python -m bench pages docs/*.md makes them anew"


@pytest.mark.parametrize("arguments", [["report", "no file[red]"], ["report", "."], ["pages", "no-page.md"]])
def test_files_that_are_not_there_are_told_in_a_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().out
    assert said.startswith("error: ")
    assert arguments[1] in said
    assert len(said.splitlines()) == 1
