"""Rows without products: they are not sorted out where one rule takes all others."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from problems import assert_product, device_matrix, rows_of

from clsparse_py.spgemm import METHODS, spgemm_plan


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_rows_without_products(queue: cl.CommandQueue, method: str) -> None:
    rng = np.random.default_rng(0)
    A = rows_of(rng.integers(0, 2, 70) * 2, 40, rng, np.float32)
    B = rows_of(np.full(40, 3), 50, rng, np.float32)
    plan = spgemm_plan(device_matrix(queue, A), device_matrix(queue, B), method=method)
    assert_product(plan(), A, B)
    assert sum(each.n_rows for each in plan.explain().bins) == np.count_nonzero(np.diff(A.indptr))
