"""Comparisons: which differences are more than noise, and processes that take turns with the packages of their own folders."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command_line
from bench import compare, machine, opencl, problems, results, times, turns
from bench.verdicts import LEAST_NOISE, Pair, Run, judge

# A package whose products are SciPy's.
PACKAGE = """
import time
import pyopencl.array as cla
from types import SimpleNamespace

class csr_array:
    def __init__(self, matrix, queue):
        self.matrix, self.queue = matrix, queue

    def __matmul__(self, x):
        {body}

def transpose(a):
    made = a.matrix.tocsc()
    return SimpleNamespace(**{{name: cla.to_device(a.queue, getattr(made, name)) for name in ("indptr", "indices", "data")}})
"""
RIGHT = "return cla.to_device(self.queue, self.matrix @ x.get())"


def samples(*seconds: float) -> dict[str, list[float]]:
    return {"back_to_back": list(seconds)}


def pair(new: tuple[float, float], again: tuple[float, float] = (1.0, 1.0), name: str = "m") -> Pair:
    """A problem whose two runs took the old side 1 s and these times the new side, and the old side once more."""
    runs = (Run(samples(1.0), samples(b), samples(a)) for a, b in zip(new, again, strict=True))
    return Pair((name, "spmv", "float64"), tuple(runs))


@pytest.mark.parametrize(
    ("new", "again", "verdict"),
    [
        ((1.0, 1.0), (1.0, 1.0), ""),
        ((1.1, 1.1), (1.0, 1.0), "slower"),
        ((0.9, 0.9), (1.0, 1.0), "faster"),
        # In one run alone.
        ((1.1, 1.0), (1.0, 1.0), ""),
        ((1.1, 0.9), (1.0, 1.0), ""),
        # Less than what is never told apart.
        ((1 + LEAST_NOISE / 2, 1 + LEAST_NOISE / 2), (1.0, 1.0), ""),
        # The old side differs from itself by as much in one run, whichever of the two is slower.
        ((1.1, 1.1), (1.2, 1.0), ""),
        ((1.1, 1.1), (1.0, 0.8), ""),
        ((1.5, 1.5), (1.2, 1.0), "slower"),
    ],
)
def test_slower_is_what_is_beyond_the_noise_in_both_runs(
    new: tuple[float, float], again: tuple[float, float], verdict: str
) -> None:
    assert judge([pair(new, again)])[0].verdict == verdict


def test_noise_is_that_of_the_operation() -> None:
    # Half of all differences between the old side and itself are 1.3; a problem that shows none by chance is no exception.
    calm, loud = pair((1.2, 1.2), name="calm"), pair((1.2, 1.2), (1.3, 1.3), name="loud")
    assert [judgement.verdict for judgement in judge([calm, loud])] == ["", ""]
    # One in twenty is too rare to count.
    rare = pair((1.2, 1.2), (1.3, 1.0), name="rare")
    verdicts = {judgement.pair.key[0]: judgement.verdict for judgement in judge([rare, *[calm] * 9])}
    assert verdicts == {"calm": "slower", "rare": ""}
    # Other operations have noise of their own.
    other = replace(loud, key=("m", "sptrans", "float64"))
    assert [judgement.verdict for judgement in judge([calm, other])] == ["slower", ""]


def test_ratios_are_taken_within_rounds() -> None:
    # From one round to the next the host becomes ten times as slow, and so do all.
    old, new = samples(1.0, 10.0, 100.0), samples(1.1, 11.0, 110.0)
    run = Run(old, old, new)
    assert run.ratio("back_to_back") == pytest.approx(1.1)
    assert run.noise == 1.0


def test_what_fails_on_the_old_side_alone_is_not_compared() -> None:
    key = ("m", "spmv", "float64")
    result = judge([Pair(key, failed="old", reason="no such thing"), Pair(key, failed="new", reason="wrong")])
    assert [judgement.verdict for judgement in result] == ["not compared", "failed"]
    rows = compare.sheets(result)[0].rows
    assert rows[0][-1] == "not compared: old: no such thing"


def package(folder: Path, body: str) -> Path:
    """Write a source folder whose product is made so."""
    for name in ("clsparse_py", "cl", "templates"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
    (folder / "clsparse_py" / "__init__.py").write_text(PACKAGE.format(body=body))
    return folder


def run_compare(old: Path, new: Path, *arguments: str) -> int:
    options = ["--matrices", "qcd4", "--ops", "spmv", "--dtypes", "float32", "--rounds", "4", *arguments]
    return command_line.main(["compare", str(old), str(new), *options])


def test_source_folders_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = package(tmp_path / "old", RIGHT)
    new = package(tmp_path / "new", f"time.sleep(0.005); {RIGHT}")
    files = ["--out", str(tmp_path / "out.json"), "--samples", str(tmp_path / "all.json")]
    assert run_compare(old, new, "--check", *files, "--budget", "0") == 1
    assert "slower" in capsys.readouterr().out
    (problem,) = json.loads((tmp_path / "all.json").read_text())["problems"]
    assert problem["verdict"] == "slower"
    assert problem["ratio"] > 5
    assert [[len(side["back_to_back"]) for side in run.values()] for run in problem["runs"]] == [[times.FEWEST_ROUNDS] * 3] * 2
    (table,) = json.loads((tmp_path / "out.json").read_text())["operations"]
    assert (table["operation"], table["contestants"]) == ("spmv", ["old", "again", "new"])
    assert table["problems"][0]["by_run"] == problem["by_run"]
    assert [[count, len(back_to_back)] for count, back_to_back, *_ in table["problems"][0]["times"]] == [
        [2 * times.FEWEST_ROUNDS, 5]
    ] * 3


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return cla.to_device(self.queue, 2 * (self.matrix @ x.get()))", "wrong result"),
        ("raise ZeroDivisionError('seven')", "ZeroDivisionError: seven"),
        ("import os; print('last words', flush=True); os._exit(7)", "ended with status 7: last words"),
    ],
)
def test_a_new_side_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, told: str) -> None:
    old, new = package(tmp_path / "old", RIGHT), package(tmp_path / "new", body)
    assert run_compare(old, new, "--check") == 1
    assert told in " ".join(capsys.readouterr().out.replace("│", " ").split())


def prepare(folder: Path, inputs: Path) -> float:
    """Have a process of a folder prepare a product."""
    inputs.mkdir()
    compare.write_operands(problems.make("qcd4", "spmv", "float32"), inputs)
    with contextlib.closing(turns.TimedProcess(folder, opencl.choose())) as process:
        return process.result_of("prepare", inputs=str(inputs), operation="spmv")


def test_every_operation_is_timed(tmp_path: Path) -> None:
    for operation in compare.DEFAULT:
        (tmp_path / operation).mkdir()
        compare.write_operands(problems.make("qcd4", operation, "float32"), tmp_path / operation)
    with contextlib.closing(turns.TimedProcess(machine.ROOT, opencl.choose())) as process:
        for operation in compare.OPERATIONS:
            inputs = tmp_path / (operation if operation in compare.DEFAULT else "spmv")
            seconds = process.result_of("prepare", inputs=str(inputs), operation=operation)
            result = process.result_of("sample", seconds=seconds)
            assert set(result) == {"back_to_back", "wall", "host", "cpu"}
            assert all(result.values())


def test_a_process_uses_the_kernels_of_its_folder(tmp_path: Path) -> None:
    for name in ("clsparse_py", "cl", "templates"):
        shutil.copytree(machine.ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for template in (tmp_path / "templates").rglob("*.mako"):
        # No refusal of a driver's, which SciPy would make good.
        template.write_text("<% raise ValueError('of this folder') %>\n")
    with pytest.raises(turns.ProcessError, match="of this folder"):
        prepare(tmp_path, tmp_path / "inputs")


def test_a_process_uses_the_kernels_of_an_older_folder(tmp_path: Path) -> None:
    # There they are packages, which may be installed as well.
    body = "import importlib.resources as r; raise ValueError((r.files('clsparse_py.templates') / 'text').read_text())"
    (package(tmp_path, body) / "templates" / "text").write_text("of this folder")
    with pytest.raises(turns.ProcessError, match="of this folder"):
        prepare(tmp_path, tmp_path / "inputs")


@pytest.mark.parametrize(("lacks", "told"), [("templates", "no folder templates"), ("clsparse_py", "not that of")])
def test_a_folder_that_lacks_something_is_refused(tmp_path: Path, lacks: str, told: str) -> None:
    folder = package(tmp_path, RIGHT)
    shutil.rmtree(folder / lacks)
    process = turns.TimedProcess(folder, opencl.choose())
    with contextlib.closing(process), pytest.raises(turns.ProcessError, match=told):
        process.result_of("release")


def write_samples(path: Path, seconds: float) -> Path:
    """Write a file of samples of ours."""
    record = {"name": times.PLAIN, "samples": samples(*(seconds * factor for factor in (1.0, 1.01, 0.99, 1.0)))}
    problem = {"input": "m", "operation": "spmv", "dtype": "float64", "bytes": 1000, "floor": 1e-6, "date": "today"}
    document = {
        "schema": results.VERSION,
        "machine": {"device": {"name": "d", "driver": "1", "platform": "p", "type": "GPU"}, "host": machine.host()},
        "versions": machine.versions(),
        "commit": {"revision": "abc", "dirty": False, "changes": ""},
        "date": "today",
        "copies": [],
        "first_product": [],
        "unavailable": {},
        "entries": [{**problem, "contestants": [record]}],
    }
    results.write(path, document, samples=True)
    return path


def test_files_of_samples_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write_samples(tmp_path / f"{name}.json", seconds) for name, seconds in (("old", 1.0), ("new", 3.0))]
    assert command_line.main(["compare", *map(str, paths)]) == 0
    assert command_line.main(["compare", *map(str, paths), "--check"]) == 1
    assert command_line.main(["compare", *map(str, paths[::-1]), "--check"]) == 0
    assert command_line.main(["compare", str(paths[0]), str(paths[0]), "--check"]) == 0
    assert "3.000" in capsys.readouterr().out


def test_summaries_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_samples(tmp_path / "samples.json", 1.0)
    assert command_line.main(["compare", str(path), str(machine.ROOT / "bench/results/h100-sptrans.json")]) == 2
    assert "NEW holds summaries, without rounds; needs files that run --samples wrote" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--ops", "dance"], ["--dtypes", "float8"], ["--rounds", "0"], ["--contestant", "nobody"]])
def test_the_command_names_what_it_does_not_know(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(machine.ROOT if arguments[0] != "--contestant" else write_samples(tmp_path / "samples.json", 1.0))
    assert command_line.main(["compare", path, path, "--matrices", "qcd4", *arguments]) == 2
    assert arguments[1] in capsys.readouterr().out


def test_a_file_and_a_folder_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["compare", str(machine.ROOT), str(machine.ROOT / "README.md")]) == 2
    assert "two files of samples or two source folders" in capsys.readouterr().out
