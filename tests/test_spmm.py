"""SpMM: columns, orders, views, alpha and beta, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import check, expected, host, random_structure, random_values
from pyopencl import array as cl_array

from clsparse_py import csr_array, or_and, spmm
from clsparse_py.device import describe
from clsparse_py.semiring import SEMIRINGS


def random_csr(rows: int, n_cols: int, seed: int, dtype: Any = np.float32) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    indices, indptr = random_structure(rng.integers(0, 12, rows), n_cols, rng)
    return sp.csr_array((random_values(dtype, indices.size, rng), indices, indptr), shape=(rows, n_cols))


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 256])
def test_columns_and_orders(queue: cl.CommandQueue, columns: int) -> None:
    matrix = random_csr(70, 50, 0)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, (50, columns), np.random.default_rng(1))
    # Not `abs(matrix)`, which sums duplicates first: an entry of each sign would count as their difference.
    magnitudes = sp.csr_array((np.abs(matrix.data).astype(np.float64), matrix.indices, matrix.indptr), shape=matrix.shape)
    bound = 14 * np.finfo(np.float32).eps * (magnitudes @ np.abs(x).astype(np.float64))
    for layout in (x, np.asfortranarray(x)):
        for operand in (layout, cl_array.to_device(queue, layout)):
            found = A @ operand
            assert isinstance(found, type(operand))
            values = found if isinstance(found, np.ndarray) else found.get()
            assert values.dtype == np.float32
            assert values.shape == (70, columns)
            assert (np.abs(values - matrix.astype(np.float64) @ x) <= bound).all()


@pytest.mark.parametrize(
    "view",
    [lambda x: x[3:53, 2:7], lambda x: x[:100:2, ::3], lambda x: x[49::-1, ::-1], lambda x: x.T[:50, 4:9]],
    ids=["offset", "strided", "reversed", "transposed"],
)
def test_views(queue: cl.CommandQueue, view: Any) -> None:
    matrix = random_csr(70, 50, 2)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, (120, 120), np.random.default_rng(1))
    wanted = expected(host(matrix), view(x))
    check(A @ view(x), wanted)
    check(A @ view(cl_array.to_device(queue, x)), wanted)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 300), (300, 1)])
def test_shapes(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    x = np.ones((shape[1], 3), np.float32)
    for matrix in (sp.csr_array(shape, dtype=np.float32), sp.csr_array(np.ones(shape, np.float32))):
        A = csr_array(matrix, queue=queue)
        out = np.full((shape[0], 3), np.nan, np.float32)
        assert spmm(A, x, out=out) is out
        np.testing.assert_array_equal(out, matrix @ x)
        np.testing.assert_array_equal((A @ cl_array.to_device(queue, x)).get(), matrix @ x)


def test_many_rows_of_a_wide_operand(queue: cl.CommandQueue) -> None:
    matrix = sp.csr_array(sp.eye_array(70_000, dtype=np.int32))
    matrix.data[:] = np.arange(70_000)
    found = csr_array(matrix, queue=queue) @ np.tile(np.arange(20, dtype=np.int32), (70_000, 1))
    np.testing.assert_array_equal(found, np.outer(np.arange(70_000), np.arange(20)))


def test_alpha_and_beta(queue: cl.CommandQueue) -> None:
    matrix = random_csr(70, 50, 3)
    A = csr_array(matrix, queue=queue)
    rng = np.random.default_rng(9)
    x, y = random_values(np.float32, (50, 3), rng), random_values(np.float32, (70, 3), rng)
    for alpha in (None, 0, -0.5, -99):
        for beta in (None, 0, 1, 2):
            before = np.full_like(y, np.nan) if not beta else y
            for out in (before.copy(), cl_array.to_device(queue, before)):
                operand = x if isinstance(out, np.ndarray) else cl_array.to_device(queue, x)
                assert spmm(A, operand, alpha=alpha, beta=beta, out=out) is out
                check(out, expected(host(matrix), x, alpha=alpha, beta=beta, y=before))


@pytest.mark.parametrize("semiring", list(SEMIRINGS.values())[1:], ids=repr)
def test_semirings(queue: cl.CommandQueue, semiring: Any) -> None:
    matrix = random_csr(70, 50, 4, np.int32)
    matrix.data[:] = np.abs(matrix.data)
    x = np.abs(random_values(np.int32, (50, 3), np.random.default_rng(1)))
    check(spmm(csr_array(matrix, queue=queue), x, semiring=semiring), expected(host(matrix), x, semiring))


def test_queue_of_the_operand(queue: cl.CommandQueue) -> None:
    other = cl.CommandQueue(queue.context, queue.device, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    A = csr_array(sp.eye_array(5000, format="csr", dtype=np.float32), queue=queue)
    x = cl_array.to_device(other, np.ones((5000, 2), np.float32))
    for _ in range(20):
        x = A @ x
    assert x.queue is other
    np.testing.assert_array_equal(x.get(), 1)


def test_bad_input(queue: cl.CommandQueue) -> None:
    A = csr_array(random_csr(70, 50, 5), queue=queue)
    x = np.ones((50, 3), np.float32)
    for operand, options, error, message in (
        (np.ones((49, 3), np.float32), {}, ValueError, r"^X: must have 50 rows, as A is 70 x 50, has shape \(49, 3\)"),
        (x[:, 0], {}, ValueError, r"^X: must have 2 dimensions, has 1 \(shape \(50,\)\)"),
        (x.astype(object), {}, TypeError, r"^X: dtype object is not supported"),
        (x, {"out": np.zeros((70, 2), np.float32)}, ValueError, r"^out: must have shape \(70, 3\), has \(70, 2\)"),
        (x, {"out": np.zeros((3, 70), np.float32).T}, ValueError, r"^out: must be C-contiguous, has strides \(4, 280\)"),
        (x, {"beta": 1}, ValueError, r"^beta: needs out"),
        (x, {"alpha": 1, "semiring": or_and}, ValueError, r"^alpha: belongs to plus_times, not to or_and"),
    ):
        with pytest.raises(error, match=message):
            spmm(A, operand, **options)
    square = csr_array(random_csr(50, 50, 5), queue=queue)
    for both in (x, cl_array.to_device(queue, x)):
        with pytest.raises(ValueError, match=r"^out: overlaps X"):
            spmm(square, both, out=both)
    with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array"):
        spmm(x, x)
    context = cl.Context([queue.device])
    with pytest.raises(ValueError, match=r"^X: lives in another context than A"):
        spmm(A, cl_array.to_device(cl.CommandQueue(context, queue.device), x))


def test_work_group_asked_for_is_bounded_by_the_device(queue: cl.CommandQueue) -> None:
    from clsparse_py import programs

    A = csr_array(random_csr(70, 50, 6), queue=queue)
    for asked in (1, 1 << 20):
        with programs.recording() as built:
            spmm(A, np.ones((50, 3), np.float32), work_group=asked)
        assert 1 <= built[-1].parameters.work_group <= min(asked, describe(queue.device).max_work_group)
