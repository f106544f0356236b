"""The wall: the order of its cells, pieces that continue a file, floors, the table, and the picture of its means."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import scipy.sparse as sp
from test_report import document, entry, record
from test_runner import new_document, run

from bench import __main__ as command_line
from bench import gallery, glance, opencl, pages, problems, results, times, wall
from bench.peers import scipy as scipy_peer


def test_each_operation_has_some_matrices_early() -> None:
    matrices = gallery.suite("wall", cpu=False)
    tasks = wall.tasks(matrices)
    every = {(column.operation, column.dtype) for column in wall.COLUMNS}
    assert {task[1:] for task in tasks[: len(every)]} == every
    # A matrix is made once: its operations follow each other.
    assert [name for name, _ in itertools.groupby(tasks, key=lambda task: task[0])] == matrices
    assert len(set(tasks)) == len(tasks)
    for column in wall.COLUMNS:
        measured = {name for name, *kind in tasks if kind == [column.operation, column.dtype]}
        assert measured == set(matrices) - column.left_out
        assert 15 <= len(measured) <= 19


def test_a_piece_holds_what_surely_ends_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(times.time, "monotonic", lambda: clock[0])
    piece = times.Piece(60.0)
    for seconds, operation, held in ((0, "a", True), (10, "b", True), (1, "a", True), (34, "a", False), (0, "b", True)):
        clock[0] += seconds
        # The second "a" took 34 seconds: another one might end at 196, and not by 160.
        assert piece.holds(operation) is held
    assert piece.deadlines() == [145.0 + times.PIECE_ROUNDS]
    clock[0] = 161.0
    assert not piece.holds("new")


def test_a_piece_leaves_the_rest_to_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    tasks = [(name, "spmv", "float64") for name in ("qcd4", "rmat12")]
    peers = scipy_peer.contestants("spmv", None)
    assert run(new_document(), path, *peers, tasks=tasks, budget=-1.0, in_pieces=True) == 0
    assert not path.exists()
    assert run(new_document(), path, *peers, tasks=tasks[:1], in_pieces=True) == 0
    assert run(results.load_or_start(path, new_document()), path, *peers, tasks=tasks, budget=60.0, in_pieces=True) == 0
    assert [made["input"] for made in results.read(path)["entries"]] == ["qcd4", "rmat12"]


@pytest.mark.parametrize("column", wall.COLUMNS, ids=lambda column: column.title)
def test_floors_move_each_array_once(column: wall.Column) -> None:
    A = gallery.load("small_10")
    problem = problems.make("small_10", column.operation, column.dtype)
    n, value = A.shape[0], 4 if column.dtype == "float32" else 8
    entries, vector, pointers = 4 + value, 2 * n * value, 4 * (n + 1)
    moved = {
        "spmv": pointers + A.nnz * entries + vector,
        "sptrans": 2 * (pointers + A.nnz * entries),
        "spgemm": 3 * pointers + (2 * A.nnz + (abs(A) @ abs(A)).nnz) * entries,
        "add": 3 * pointers + (2 * A.nnz + (A + A[::-1]).nnz) * entries,
        "spmm_64_rows": pointers + A.nnz * entries + 64 * vector,
        "sddmm_64": pointers + A.nnz * entries + 64 * vector,
        "sptrsv": pointers + (sp.tril(A, -1).nnz + n) * entries + vector,
    }
    assert problem.minimal_bytes == moved[column.operation]


def test_the_table_has_ours_the_best_peer_and_the_floor(tmp_path: Path) -> None:
    seconds = {"clsparse/plain": 4e-6, "clsparse/kept-plan": 2e-6, "cusparse/spsv-alg2": 3e-6, "cusparse/spsv-alg2-plain": 9e-4}
    solved = entry("m", *(record(*pair) for pair in seconds.items()), operation="sptrsv")
    alone = entry("m", record("clsparse/plain", 2e-4), {"name": "cusparse/op1", "declined": "there is no SpMVOp"})
    failed = entry("n", {"name": "clsparse/plain", "failure": "off"}, record("cusparse/alg1", 1e-6))
    made = document(solved, alone, failed)
    table = wall.sheet(made)
    cells = {row[0]: dict(zip(table.header[1:], row[1:], strict=True)) for row in table.rows}
    assert cells["m"]["L x = b"] == "**225.00** spsv-alg2-plain<br>4.0, 900; 4.0"
    assert cells["m"]["L x = b, kept"] == "**1.50** spsv-alg2<br>2.0, 3.0; 2.0"
    assert (cells["m"]["A @ x"], cells["n"]["A @ x"], cells["m"]["A @ A"]) == ("no peer<br>200; 200", "failed", "")
    assert cells["geometric mean"]["L x = b, kept"] == "**1.50**<br>2.0"
    assert cells["no times"]["A @ x"] == "op1: 1, clsparse/plain: 1"
    results.write(tmp_path / "wall.json", made)
    (tmp_path / "page.md").write_text("<!-- bench wall.json wall -->\n<!-- end of bench -->\n")
    assert "| **225.00** spsv-alg2-plain<br>4.0, 900; 4.0 |" in pages.filled(tmp_path / "page.md")
    assert wall.means_sheet(made).rows[1] == ("L x = b, kept", "1.50", "1.50", "1.50", "2.00", "1")


def test_the_picture_shows_the_wall_in_place_of_older_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = glance.Line("CuPy", "A + B", "old.json", "add", "cupy", is_pictured=True)
    monkeypatch.setattr(glance, "LINES", (sums, replace(sums, operation="rows")))
    assert glance.pictured(tmp_path) == list(glance.LINES)
    for name in ("old.json", glance.WALL):
        both = record("clsparse/plain", 1.0), record("cupy", 3.0)
        results.write(tmp_path / name, document(*(entry("m", *both, operation=operation) for operation in ("add", "rows"))))
    wide, rows = glance.pictured(tmp_path)
    assert (wide.what, wide.date(tmp_path), wide.ratios(tmp_path)) == ("A + B, H200", "today", [3.0])
    assert rows == glance.LINES[1]
    assert len(glance.picture(tmp_path).axes[0].get_yticks()) == 2


def test_the_command_line_makes_a_wall(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "LARGEST_COPY", 1 << 20)
    monkeypatch.setattr(wall, "COLUMNS", wall.COLUMNS[:1])
    path = tmp_path / "wall.json"
    arguments = ["wall", "--matrices", "small_10", "small_20", "--peers", "scipy", "--rounds", "1", "--out", str(path)]
    assert command_line.main([*arguments, "--budget", "0"]) == 0
    assert "2 of 2 are left for the next run" in capsys.readouterr().out
    assert command_line.main(arguments) == 0
    assert "A @ x" in capsys.readouterr().out
    assert command_line.main([*arguments, "--budget", "0"]) == 0
    assert "2 of 2 are in" in capsys.readouterr().out
