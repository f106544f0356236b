"""The rows of bins: those without products are not sorted out where one bin takes all others. What like products share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from problems import assert_product, device_matrix, rows_of

from clsparse_py._build import programs
from clsparse_py._operations.spgemm import METHODS, spgemm_plan


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_rows_without_products(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(0)
    A = rows_of(rng.integers(0, 2, 70) * 2, 40, rng, np.float32)
    B = rows_of(np.full(40, 3), 50, rng, np.float32)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method=method)
    assert_product(plan(), A, B)
    assert sum(bin_.n_rows for bin_ in plan.explain().bins) == np.count_nonzero(np.diff(A.indptr))


def test_products_that_are_alike(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    """The same rows in another order: all numbers are the same, and the rows of each bin are others."""
    rng = np.random.default_rng(0)
    A = rows_of(np.repeat([0, 1, 9, 40, 100], 400), 10_000, rng, np.float32)
    other = sp.csr_array(A[rng.permutation(A.shape[0])])
    B = sp.csr_array(sp.kron(sp.eye_array(10_000), np.ones((1, 2))), dtype=np.float32)
    take_as(type="gpu")
    left, right = [device_matrix(queue, matrix) for matrix in (A, other)], device_matrix(queue, B)
    for values in (1, 2, 3, 4):
        for host, on_device in zip((A, other), left, strict=True):
            assert_product(on_device * np.float32(values) @ right, host * np.float32(values), B)


@pytest.mark.parametrize("method", ["reg-sort", "sort", "merge"])
def test_kernels_of_several_rules_are_built_together(
    queue: cl.CommandQueue, take_as: Callable[..., None], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    predict_record: list[programs.Parameters] = []

    def built_together(_context: Any, _device: Any, _what: Any, make: Callable[[], Iterable[programs.Parameters]]) -> None:
        predict_record.extend(make())

    monkeypatch.setattr(programs, "build_together", built_together)
    take_as(type="gpu")
    rng = np.random.default_rng(0)
    A = rows_of(rng.permutation(np.repeat([1, 2, 3], 30)), 40, rng, np.float32)
    B = rows_of(np.full(40, 1), 50, rng, np.float32)
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    with programs.recording() as asked:
        plan = spgemm_plan(left, right, method=method)
        assert_product(plan(), A, B)
    assert len(plan.explain().bins) > 1
    # What is built ahead is what is asked for.
    assert len(predict_record) > 1
    assert {programs.build(queue.context, queue.device, record) for record in predict_record} <= set(asked)
