"""The demo: its samples are what they say they are, wrong results are found, and a bad file stops nothing else."""

from __future__ import annotations

import functools
import importlib.resources
import io
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from rich.console import Console

from clsparse_py import BuildError
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.matrix_files import read_matrix
from clsparse_py._command import demo
from clsparse_py._ground.console import make_console

pytestmark = pytest.mark.any_platform

SAMPLES = {case.name: case for case in demo.samples()}


MULTIPLIED = demo.Result("single: chunked", 6.82e-3, 6.2e-3, 10**8, 0.1)


def case_of(matrix: Any, name: str = "a") -> demo.Case:
    return demo.Case(name, "files", name, lambda: sp.csr_array(matrix))


def consoles(width: int = 100) -> tuple[Console, Console]:
    return make_console(file=io.StringIO(), width=width), make_console(file=io.StringIO(), width=width)


def text(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_half_a_dozen_samples_of_less_than_100_kb_with_source_and_licence() -> None:
    folder = importlib.resources.files("clsparse_py") / "samples"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert len(SAMPLES) >= 6
    assert "licence" in readme
    for name, case in SAMPLES.items():
        assert f"| `{name}` |" in readme
        assert len((folder / case.source).read_bytes()) < 100_000


def test_samples_are_varied() -> None:
    lengths = {name: np.diff(case.load().indptr) for name, case in SAMPLES.items()}
    shapes = [case.load().shape for case in SAMPLES.values()]
    assert any(rows != cols for rows, cols in shapes)
    assert any((length == 0).sum() > 100 for length in lengths.values())
    assert any(length.max() > 100 * length.mean() for length in lengths.values())
    assert any(length.min() == length.max() for length in lengths.values())


def test_the_readme_says_what_the_samples_are() -> None:
    readme = (importlib.resources.files("clsparse_py") / "samples" / "README.md").read_text(encoding="utf-8")
    for name, case in SAMPLES.items():
        result = case.load()
        rows, cols, entries, row = re.findall(rf"\| `{name}` \| (\d+) x (\d+) \| (\d+) \| ([^|]*) \|", readme)[0]
        lengths = np.diff(result.indptr)
        assert (int(rows), int(cols), int(entries)) == (*result.shape, result.nnz)
        assert {int(bound) for bound in row.split(" to ")} == {int(lengths.min()), int(lengths.max())}


def test_samples_are_what_their_definitions_give() -> None:
    script = Path(str(importlib.resources.files("clsparse_py") / "samples" / "make.py"))
    if not script.exists():
        pytest.skip("the definitions are not installed with the package")
    for name, (make, *_) in runpy.run_path(str(script))["SAMPLES"].items():
        expected, result = sp.csr_array(make()), SAMPLES[name].load()
        assert result.shape == expected.shape
        assert abs(result - expected).max() == 0


@functools.cache
def small_generated() -> list[demo.Case]:
    return [demo.Case("grid", "generated here", "grid", lambda: demo._grid(20))]


def test_all_samples_are_verified_and_shown(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "generate", small_generated)
    monkeypatch.setattr(demo, "EFFORT", demo.Effort(seconds=0))
    sp.save_npz(tmp_path / "mine.npz", sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(0)))
    out, errors = consoles()
    assert demo.run(queue, [str(tmp_path / "mine.npz")], out, errors) == 0
    shown = text(out)
    for name in (*SAMPLES, "mine", "grid"):
        # A line for its product with a vector, one for its transposed, and one for its square.
        assert len(re.findall(rf"^{name} .*(?: \d\S* \S?s| ns) +[\d.]+\s*$", shown, flags=re.MULTILINE)) == 3
    last = shown.strip().splitlines()[-1]
    assert last.startswith(f"{len(SAMPLES) + 2} of {len(SAMPLES) + 2} results verified")
    assert queue.device.name.strip() in last
    assert text(errors) == ""


@pytest.mark.parametrize("width", [100, 160])
def test_the_table_fits(width: int) -> None:
    results = [
        demo.Measurement(matrix, (1_048_576, 1_048_576), 5_238_784, {"A @ A": None if i == 1 else MULTIPLIED})
        for i, matrix in enumerate((*demo.samples(), *demo.generate()))
    ]
    out, _ = consoles(width)
    out.print(demo._table("A @ A", results))
    shown = text(out)
    assert "…" not in shown
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= width
    # A line each, and those of the head, the two sections and the one between them.
    assert len(shown.strip().splitlines()) == len(results) + 5


def test_a_bad_file_is_named_in_one_line_and_the_others_run(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "samples", list)
    monkeypatch.setattr(demo, "generate", small_generated)
    missing, damaged = tmp_path / "[red]none.mtx", tmp_path / "damaged.mtx"
    damaged.write_text("no matrix\nat all\n")
    out, errors = consoles(60)
    assert demo.run(queue, [str(missing), str(damaged)], out, errors) == 1
    lines = text(errors).splitlines()
    assert [line.startswith(f"error: {path}: ") for line, path in zip(lines, (missing, damaged), strict=True)] == [True, True]
    assert "1 of 1 results verified" in text(out)


def test_a_wrong_result_is_found(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "samples", list)
    monkeypatch.setattr(demo, "generate", small_generated)

    def spoiled(matrix: sp.csr_array, **options: Any) -> csr_array:
        less = matrix.copy()
        less.data[less.nnz // 2] = 0
        return csr_array(less, **options)

    monkeypatch.setattr(demo, "csr_array", spoiled)
    out, errors = consoles()
    assert demo.run(queue, [], out, errors) == 1
    assert "0 of 1" in text(out)
    assert "WRONG" in text(out)


@pytest.mark.parametrize(("broken", "operation"), [("spmv_plan", "A @ x"), ("transpose_plan", "A.T"), ("spgemm", "A @ A")])
def test_an_operation_that_fails_leaves_the_others(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, broken: str, operation: str
) -> None:
    monkeypatch.setattr(demo, "samples", list)
    monkeypatch.setattr(demo, "generate", small_generated)

    def fail(*_: Any) -> None:
        raise BuildError("kernel k does not build\nas its log says", log="", parameters=None, source=None)

    monkeypatch.setattr(demo, broken, fail)
    out, errors = consoles()
    assert demo.run(queue, [], out, errors) == 1
    assert text(errors) == f"error: {operation} of grid: kernel k does not build\n"
    shown = text(out)
    assert len(re.findall(r"^grid .*(?: \d\S* \S?s| ns) +[\d.]+\s*$", shown, flags=re.MULTILINE)) == 2
    assert "0 of 1 results verified" in shown
    assert "operations that failed: 1" in shown


def test_a_kernel_that_writes_nothing_is_found() -> None:
    A = sp.csr_array(np.eye(3))
    assert np.isnan(demo._product_error(A, np.ones(3), np.full(3, np.nan)))
    assert demo._product_error(A, np.ones(3), np.ones(3)) == 0
    assert demo._product_error(A, np.ones(3), np.array([1, 1, 1 + 1e-12])) > 1


def test_nan_and_inf_of_the_matrix_are_right_where_scipy_has_them() -> None:
    A = sp.csr_array(np.diag([np.nan, np.inf, 1]))
    assert demo._product_error(A, np.ones(3), np.array([np.nan, np.inf, 1])) == 0
    assert not demo._product_error(A, np.ones(3), np.array([0, np.inf, 1])) <= 1


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 3)])
def test_empty_matrices_are_measured(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    result = demo.measure(queue, case_of(sp.csr_array(shape)))
    assert result.right
    assert result.nnz == 0


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "complex128"])
def test_any_values_are_measured(queue: cl.CommandQueue, dtype: str) -> None:
    assert demo.measure(queue, case_of(sp.csr_array(np.array([[0, 1], [1, 1]], dtype)))).right


def test_generated_matrices_are_large(tmp_path: Path) -> None:
    for case in demo.generate():
        matrix = case.load()
        assert matrix.nnz > 1_000_000
        matrix.check_format(full_check=True)
    sp.save_npz(tmp_path / "a.b.npz", sp.csr_array((2, 2)))
    assert demo.read_case(str(tmp_path / "a.b.npz")).name == "a.b"
    assert read_matrix(tmp_path / "a.b.npz").shape == (2, 2)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(2.5, "2.50 s"), (6.82e-3, "6.82 ms"), (123.4e-6, "123 µs"), (5e-9, "5.00 ns"), (0.0, "0.00 ns")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert demo.duration(seconds) == shown


def square(queue: cl.CommandQueue, matrix: sp.csr_array) -> demo.Result | None:
    return demo._square(csr_array(matrix, queue=queue), matrix)


def test_squares_are_checked(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    A = sp.random_array((60, 40), density=0.1, format="csr", rng=np.random.default_rng(0)).astype(np.float32)
    result = square(queue, A)
    assert result is not None
    assert result.right
    assert 0 <= result.error <= 1
    right = demo.spgemm
    for spoil in (lambda C: C.data.__imul__(1.001), lambda C: C.data.__setitem__(slice(None), np.float32(np.nan))):

        def spoiled(A: csr_array, B: csr_array, spoil: Any = spoil) -> csr_array:
            C = right(A, B)
            spoil(C)
            return C

        monkeypatch.setattr(demo, "spgemm", spoiled)
        wrong = square(queue, A)
        assert wrong is not None
        assert not wrong.right
    monkeypatch.setattr(demo, "spgemm", lambda A, _B: A)
    wrong = square(queue, A)
    assert wrong is not None
    assert not wrong.right


def test_squares_with_nan_and_what_cancels_are_right(queue: cl.CommandQueue) -> None:
    A = sp.csr_array(np.array([[1, 1, 0], [1, -1, 0], [0, 0, np.nan]], np.float32))
    result = square(queue, A)
    assert result is not None
    assert result.error == 0


def test_squares_of_too_many_products_are_left_out(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EFFORT", demo.Effort(max_products=10))
    assert square(queue, sp.csr_array(np.ones((3, 3), np.float32))) is None
    out, _ = consoles()
    out.print(demo._table("A @ A", [demo.measure(queue, case_of(np.ones((3, 3), np.float32)))]))
    assert "too large here" in text(out)
