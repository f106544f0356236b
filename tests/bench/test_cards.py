"""The measurement of several devices: its matrices, and a run on one device that ranks share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import cards
from bench.generators.grids import fe3d27


def test_rows_of_grids_are_the_gallerys() -> None:
    whole = fe3d27(5)
    for first, last in ((0, 125), (0, 0), (7, 60), (60, 125)):
        own = cards.rows_of_grid((5, 5, 5), first, last)
        wanted = whole[first:last]
        assert np.array_equal(own.indptr, wanted.indptr)
        assert np.array_equal(own.indices, wanted.indices)
        assert np.array_equal(own.data, wanted.data)


def test_ranks_of_one_device(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_BATCHES", "_CALLS", "_ITERATIONS"):
        monkeypatch.setattr(cards, name, 2)
    out = tmp_path / "cards.json"
    sizes = ["--points", "6", "--weak", "4", "--multigrid", "8", "--squared", "small_10", "--graphs", "small_10"]
    cards.main(["--ranks", "1", "2", "--ways", "threads", "--out", str(out), *sizes])
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert [row["ranks"] for row in rows] == [1] * 19 + [2] * 19
    assert all(row["ms"] > 0 for row in rows)
    assert capsys.readouterr().out.count("| threads | 2 |") == 19
