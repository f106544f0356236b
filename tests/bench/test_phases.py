"""Factors and phases of products: brute force on a small one, and a small run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

from bench import phases

pytestmark = pytest.mark.any_platform


def test_factors_are_those_of_the_rows() -> None:
    A = sp.csr_array(np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1]], float))
    B = sp.csr_array(np.array([[1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0]], float))
    # Six products of two entries make four; a row without entries, and one without products.
    result = phases.factors(A, B, np.array([4, 0, 0]))
    assert result["expansion"] == [0.0, 3.0, 1.5, 1.5]
    assert result["contraction"] == [1.5, 1.5, 1.5, 0.0]
    assert (result["products"], result["entries"], result["rows"]) == (6, 4, [3, 0, 0])


def test_the_matrix_of_table_9_has_its_factors() -> None:
    tall, flat = phases._of_table_9()
    outer = (tall @ flat).nnz
    lengths = np.diff(flat.indptr)[tall.indices]
    assert 73 - 20 < lengths.min() < lengths.max() < 140 + 20
    assert lengths.mean() == pytest.approx(105.99, abs=2)
    assert outer < lengths.sum() <= 1.01 * outer


def test_a_run_tells_all(queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_TALL", (500, 20))
    monkeypatch.setattr(phases, "_DENSITY", 0.02)
    out = tmp_path / "found.json"
    given = ["--device", queue.device.platform.name, "--suite", "small", "--rounds", "1", "--out", str(out)]
    assert phases.main([*given, "--exclude", *(f"small_{n}" for n in range(20, 101, 10)), "outer"]) == 0
    products = json.loads(out.read_text())["products"]
    assert [product["input"] for product in products] == ["small_10", "inner"]
    for product in products:
        assert product["seconds"].keys() == set(phases.METHODS)
        assert all(seconds > 0 for times in product["seconds"].values() for seconds in times.values())
        assert product["sort"]["keys"] == product["products"]
    text = out.with_suffix(".md").read_text()
    assert all(f"| {name} |" in text for name in ("small_10", "inner"))
