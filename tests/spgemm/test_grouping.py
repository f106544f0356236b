"""Rows without products: they are not sorted out where one bin takes all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from problems import assert_product, device_matrix, rows_of

from clsparse_py import programs
from clsparse_py._spgemm import METHODS, spgemm_plan


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_rows_without_products(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(0)
    A = rows_of(rng.integers(0, 2, 70) * 2, 40, rng, np.float32)
    B = rows_of(np.full(40, 3), 50, rng, np.float32)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method=method)
    assert_product(plan(), A, B)
    assert sum(each.n_rows for each in plan.explain().bins) == np.count_nonzero(np.diff(A.indptr))


@pytest.mark.parametrize("method", ["reg-sort", "sort", "merge"])
def test_kernels_of_several_rules_are_built_together(
    queue: cl.CommandQueue, take_for: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    foreseen: list[programs.Parameters] = []

    def built_together(_context: Any, _device: Any, _what: Any, make: Callable[[], Iterable[programs.Parameters]]) -> None:
        foreseen.extend(make())

    monkeypatch.setattr(programs, "build_together", built_together)
    take_for("gpu")
    rng = np.random.default_rng(0)
    A = rows_of(rng.permutation(np.repeat([1, 2, 3], 30)), 40, rng, np.float32)
    B = rows_of(np.full(40, 1), 50, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    with programs.recording() as asked:
        plan = spgemm_plan(left, right, method=method)
        assert_product(plan(), A, B)
    assert len(plan.explain().bins) > 1
    # What is built ahead is what is asked for.
    assert len(foreseen) > 1
    assert {programs.build(queue.context, queue.device, record) for record in foreseen} <= set(asked)
