"""Products whose kernel begins the inner products of the result with x and with itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from oracle import random_values
from products import random_csr
from pyopencl import array as cl_array
from supposed import describe_as, suppose

from clsparse_py import csr_array, spmv_plan
from clsparse_py._operations.spmv.choose import KernelChoice, Thresholds

pytestmark = pytest.mark.any_platform
KERNELS = [
    KernelChoice("narrow", 48, items=6), KernelChoice("narrow", 32, items=8),
    KernelChoice("adaptive", 64, items=4), KernelChoice("serial", 16), KernelChoice("subvector8", 64), KernelChoice("vector", 32),
]  # fmt: skip
CASES = [(k, dtype) for i, k in enumerate(KERNELS) for dtype in ("float32", "float64", "complex64", "complex128")[i % 2 :: 2]]


@pytest.fixture(autouse=True)
def kind(queue: cl.CommandQueue) -> Iterator[str]:
    """Take devices for GPUs, as CPU devices' kernels begin no inner products; PoCL's stay CPUs (quirk 4)."""
    kind = "cpu" if "portable" in queue.device.platform.name.lower() else "gpu"
    with describe_as(type=kind):
        yield kind


def multiply(A: csr_array, kernel: KernelChoice, x: np.ndarray, alpha: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of partial sums, the product, and the partial sums of both inner products."""
    plan = spmv_plan(A, kernel=kernel)
    n = plan.count_sums(A, A.dtype)
    y, dots = (cl_array.to_device(A.queue, np.full(size, np.nan, A.dtype)) for size in (A.shape[0], 2 * n))
    plan.execute(A, cl_array.to_device(A.queue, x), y, alpha=alpha, dots=dots)
    return n, y.get(), dots.get().reshape(2, n)


@pytest.mark.parametrize(("kernel", "dtype"), CASES)
def test_inner_products_are_numpys(queue: cl.CommandQueue, kind: str, kernel: KernelChoice, dtype: str) -> None:
    if np.dtype(dtype).itemsize // (1 + (dtype[0] == "c")) == 8 and "cl_khr_fp64" not in queue.device.extensions:
        pytest.skip("no double precision")
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 9, 3000)
    lengths[::7] = 0
    # Columns in any order, with duplicates.
    matrix = random_csr(lengths, 3000, 4, dtype, (np.int32, np.int64)[kernel.number % 2])
    A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)
    x = random_values(dtype, 3000, rng)
    if kind == "cpu":
        assert spmv_plan(A, kernel=kernel).count_sums(A, A.dtype) == 0
        return
    n, y, dots = multiply(A, kernel, x, 0.5)
    assert 0 < n < 3000
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(y, 0.5 * (matrix @ x), rtol=0, atol=100 * eps * np.abs(y).max())
    for sums, wanted in zip(dots, (np.vdot(x, y), np.vdot(y, y)), strict=True):
        np.testing.assert_allclose(
            sums.sum(), wanted, rtol=0, atol=100 * eps * np.linalg.norm(y) * max(np.linalg.norm(x), np.linalg.norm(y))
        )
    # A fixed tree: bit by bit the same, from a new plan, too.
    for other in (multiply(A, kernel, x, 0.5)[2] for _ in range(2)):
        np.testing.assert_array_equal(dots.view(np.uint8), other.view(np.uint8))


def test_sums_stay_the_same_behind_many_products(queue: cl.CommandQueue, kind: str) -> None:
    if kind == "cpu":
        pytest.skip("CPU devices' kernels begin no inner products")
    matrix = random_csr(np.full(2000, 5), 2000, 1, "float32")
    A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)
    plan = spmv_plan(A, kernel=KernelChoice("narrow", 64, items=6))
    x, y, dots = (cl_array.to_device(queue, np.ones(size, np.float32)) for size in (2000, 2000, 2 * plan.count_sums(A, A.dtype)))
    results = []
    for _ in range(40):
        plan.execute(A, x, y, alpha=1, dots=dots)
        results.append(dots.get())
    np.testing.assert_array_equal(results, [results[0]] * 40)


def test_rows_may_be_read_by_patterns(queue: cl.CommandQueue, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "cpu":
        pytest.skip("CPU devices read no row patterns")
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, min_patterned_rows=1, max_patterned_row=64))
    matrix = scipy.sparse.diags_array([1.0, 2, 3, 4], offsets=[-40, -1, 0, 7], shape=(5000, 5000), dtype=np.float32).tocsr()
    A, x = csr_array(matrix, queue=queue), np.linspace(-1, 1, 5000).astype(np.float32)
    for kernel in (KernelChoice("narrow", 64, items=6), KernelChoice("serial", 64)):
        _, y, dots = multiply(A, kernel, x, 1)
        np.testing.assert_allclose(y, matrix @ x, atol=1e-5)
        np.testing.assert_allclose(dots.sum(axis=1), [x @ y, y @ y], rtol=1e-4)


def test_products_of_several_launches_begin_none(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(1)
    lengths = np.full(300, 3)
    matrix = random_csr(lengths, 300, 2, "float32")
    A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)
    for kernel in ("merge", "nonzero_split", "vector_long"):
        assert spmv_plan(A, kernel=kernel).count_sums(A, A.dtype) == 0
    assert spmv_plan(A, scheme="fine").count_sums(A, A.dtype) == 0
    lengths[100] = 100_000  # cut into pieces
    matrix = random_csr(lengths, 300, 2, "float32")
    A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, queue=queue)
    for kernel in ("chunked", "adaptive"):
        assert spmv_plan(A, kernel=kernel).count_sums(A, A.dtype) == 0
    for shape in ((300, 301), (0, 0)):
        matrix = random_csr(rng.integers(0, 3, shape[0]), shape[1], 2, "float32")
        A = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape, queue=queue)
        assert spmv_plan(A, kernel="serial").count_sums(A, A.dtype) == 0
