"""Columns in 16 bits: taken behind some products, with results the same bit by bit, and left where they do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from oracle import check, expected_product, host, random_values
from products import random_csr
from pyopencl import array as cl_array

from clsparse_py import csr_array, spmv, spmv_plan
from clsparse_py._operations.spmv.choose import KernelChoice
from clsparse_py._operations.spmv.kernels import Chunked
from clsparse_py._operations.spmv.plan import SpmvPlan

pytestmark = pytest.mark.any_platform
CHOICE = KernelChoice("narrow", 64, items=4)


def multiply(A: csr_array, x: cl_array.Array, plan: SpmvPlan, **options: Any) -> list[np.ndarray]:
    """Return products until the plan has made up its mind, and two more."""
    results = []
    for _ in range(50):
        results.append(spmv(A, x, plan=plan, **options).get())
        A.queue.finish()
        if len(results) > 32 and not plan._upgrades:
            break
    return [*results, spmv(A, x, plan=plan, **options).get(), spmv(A, x, plan=plan, **options).get()]


@pytest.mark.parametrize(("dtype", "index"), [("float32", np.int32), ("complex64", np.int64), ("int8", np.int32)])
def test_products_are_the_same_bit_by_bit(queue: cl.CommandQueue, dtype: str, index: type[Any]) -> None:
    rng = np.random.default_rng(5)
    matrix = random_csr(rng.integers(0, 60, 300), 70_000, 3, dtype, index)
    # A part's columns lie together, but not from 0 on.
    matrix.indices %= 5000
    matrix.indices += 65_000
    A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)
    x = cl_array.to_device(queue, random_values(dtype, 70_000, rng))
    plan = spmv_plan(A, kernel=CHOICE)
    first, *others = multiply(A, x, plan)
    assert "narrow" in plan.explain().shares[0].built
    assert "16 bits" in plan.explain().shares[0].why
    bound = plan.bind(A, x, cl_array.zeros(queue, 300, first.dtype))()
    for other in (*others, bound.get()):
        np.testing.assert_array_equal(first.view(np.uint8), other.view(np.uint8))
    y = cl_array.to_device(queue, np.ones(300, first.dtype))
    scaled = [spmv(A, x, alpha=2, beta=1, out=y.copy(), plan=plan).get() for _ in range(3)]
    np.testing.assert_allclose(scaled[-1], first * 2 + 1, rtol=1e-4)


def test_columns_that_do_not_fit_stay_as_they_are(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(6)
    matrix = random_csr(rng.integers(0, 20, 200), 70_000, 4, np.int32)
    matrix.indices[:2] = 0, 69_999
    A, x = (
        csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue),
        rng.integers(-9, 9, 70_000, np.int32),
    )
    plan = spmv_plan(A, kernel=CHOICE)
    first, *others = multiply(A, cl_array.to_device(queue, x), plan)
    assert "narrow" not in plan.explain().shares[0].built
    np.testing.assert_array_equal(first, matrix @ x)
    for other in others:
        np.testing.assert_array_equal(first, other)
    out = plan.bind(A, cl_array.to_device(queue, x), cl_array.zeros(queue, 200, np.int32))()
    np.testing.assert_array_equal(out.get(), first)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
@pytest.mark.parametrize("rows", ["short", "of one length", "one very long"])
def test_chunks_take_them_too(queue: cl.CommandQueue, rows: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entries are enough here; a long row is cut, so that a second launch follows."""
    monkeypatch.setattr(Chunked, "NARROW_FROM", 0)
    rng = np.random.default_rng(8)
    lengths = {"short": rng.integers(5, 8, 3000), "of one length": np.full(3000, 30), "one very long": np.full(3000, 4)}[rows]
    if rows == "one very long":
        lengths[1500] = 50_000
    matrix = random_csr(lengths, 140_000, 9, dtype)
    matrix.indices %= 60_000
    matrix.indices += 70_000
    A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)
    x = random_values(dtype, 140_000, rng)
    on_device, plan = cl_array.to_device(queue, x), spmv_plan(A, kernel="chunked")
    first, *others = multiply(A, on_device, plan)
    assert "narrow" in plan.explain().shares[0].built
    check(first, expected_product(host(matrix), x))
    for other in (*others, plan.bind(A, on_device, cl_array.zeros(queue, 3000, first.dtype))().get()):
        np.testing.assert_array_equal(first.view(np.uint8), other.view(np.uint8))
