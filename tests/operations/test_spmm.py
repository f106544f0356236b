"""SpMM: columns, orders, views, alpha and beta, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from oracle import check, expected_product, host, random_structure, random_values
from platforms import PLATFORMS, make_queue
from pyopencl import array as cl_array
from supposed import describe_as, suppose

from clsparse_py import csr_array, or_and, spmm, spmm_plan, transpose
from clsparse_py._build import programs
from clsparse_py._device.device import Device, describe
from clsparse_py._operations.spmm import SpmmPlan
from clsparse_py._operations.spmm import plan as plan_module
from clsparse_py._operations.spmm.choose import Layout, Pattern, Shape, Thresholds, choose
from clsparse_py._operations.spmm.cuts import group_rows
from clsparse_py._operations.spmm.kernels import Parts
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS


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
            result = A @ operand
            assert isinstance(result, type(operand))
            values = result if isinstance(result, np.ndarray) else result.get()
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
    wanted = expected_product(host(matrix), view(x))
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
    result = csr_array(matrix, queue=queue) @ np.tile(np.arange(20, dtype=np.int32), (70_000, 1))
    np.testing.assert_array_equal(result, np.outer(np.arange(70_000), np.arange(20)))


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
                check(out, expected_product(host(matrix), x, alpha=alpha, beta=beta, y=before))


@pytest.mark.parametrize("semiring", list(SEMIRINGS.values())[1:], ids=repr)
def test_semirings(queue: cl.CommandQueue, semiring: Any) -> None:
    matrix = random_csr(70, 50, 4, np.int32)
    matrix.data[:] = np.abs(matrix.data)
    x = np.abs(random_values(np.int32, (50, 3), np.random.default_rng(1)))
    check(spmm(csr_array(matrix, queue=queue), x, semiring=semiring), expected_product(host(matrix), x, semiring))


def test_queue_of_the_operand(queue: cl.CommandQueue) -> None:
    other = make_queue(queue, cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
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
    A = csr_array(random_csr(70, 50, 6), queue=queue)
    for asked in (1, 1 << 20):
        with programs.recording() as built:
            spmm(A, np.ones((50, 3), np.float32), work_group=asked)
        results = [program.parameters.work_group for program in built if isinstance(program.parameters, Parts)]
        assert 1 <= results[-1] <= min(asked, describe(queue.device).max_work_group)


def uneven(dtype: Any, index: Any = np.int32) -> sp.csr_array:
    """Return a matrix of empty, short and long rows: some are cut into few pieces, one into many."""
    rng = np.random.default_rng(8)
    lengths = rng.integers(0, 9, 300)
    lengths[[7, 200, 201]], lengths[100:160] = (190, 50, 3000), 0
    indices, indptr = random_structure(lengths, 70, rng, index)
    return sp.csr_array((random_values(dtype, indices.size, rng), indices, indptr), shape=(300, 70))


@pytest.fixture(params=["own", "gpu"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have plans choose as for the device or, whatever it is, as for a GPU."""

    def chosen(device: Device, *product: Any) -> tuple[Shape, str]:
        return choose(device if request.param == "own" else replace(device, type="gpu"), *product)

    monkeypatch.setattr(plan_module, "choose", chosen)
    return str(request.param)


def test_uneven_rows_in_any_layout(queue: cl.CommandQueue, kind: str) -> None:
    cases = [
        ("float32", 4, "C", np.int32),
        ("float32", 40, "C", np.int32),
        ("float32", 3, "F", np.int64),
        ("int32", 6, "F", np.int32),
    ]
    cases += [("complex64", 2, "C", np.int64)] + [("float64", 16, "F", np.int32)] * describe(queue.device).fp64
    for dtype, columns, order, index in cases:
        matrix = uneven(dtype, index)
        A = csr_array(matrix, queue=queue)
        x = np.asarray(random_values(dtype, (70, columns), np.random.default_rng(1)), order=order)
        out = random_values(dtype, (300, columns), np.random.default_rng(2))
        on_device, y = cl_array.to_device(queue, x), cl_array.to_device(queue, out)
        plan = spmm_plan(A)
        check(spmm(A, on_device, plan=plan), expected_product(host(matrix), x))
        np.testing.assert_array_equal(spmm(A, on_device).get(), spmm(A, on_device).get())
        check(spmm(A, on_device, alpha=2, beta=-1, out=y, plan=plan), expected_product(host(matrix), x, alpha=2, beta=-1, y=out))
        pieces = [product.pieces for product in plan.explain().products]
        assert len(pieces) == 2
        assert all(pieces) or kind == "own"


def test_what_lies_between_columns_is_not_read(queue: cl.CommandQueue, kind: str) -> None:  # noqa: ARG001 - of its effect
    matrix = uneven(np.float32)
    A = csr_array(matrix, queue=queue)
    x = random_values(np.float32, (70, 16), np.random.default_rng(1))
    for wide, view in (
        (np.full((90, 32), np.nan, np.float32), np.s_[5:75, 8:24]),
        (np.full((72, 19), np.nan, np.float32), np.s_[1:71, 2:18]),
        (np.full((70, 48), np.nan, np.float32), np.s_[:, ::3]),
        (np.full((70, 20), np.nan, np.float32, order="F"), np.s_[:, 1:17]),
    ):
        wide[view] = x
        check(A @ cl_array.to_device(queue, wide)[view], expected_product(host(matrix), x))


def test_infinity_reaches_its_own_rows_alone(queue: cl.CommandQueue, kind: str) -> None:  # noqa: ARG001 - of its effect
    A = csr_array(sp.csr_array(sp.eye_array(130, format="csr", dtype=np.float32)), queue=queue)
    x = np.ones((130, 8), np.float32)
    x[7, 3], x[129, 0] = np.inf, np.nan
    np.testing.assert_array_equal(A @ cl_array.to_device(queue, x).get(), x)


def test_a_plan_serves_one_structure(queue: cl.CommandQueue) -> None:
    matrix = random_csr(70, 50, 3)
    A, x = csr_array(matrix, queue=queue), np.ones((50, 4), np.float32)
    plan = spmm_plan(A)
    assert A.spmm_plan() is A.spmm_plan()
    assert A.T.T.spmm_plan() is not plan
    assert "no product yet" in repr(plan)
    spmm(A, x, plan=plan)
    explained = plan.explain()
    assert [product.columns for product in explained.products] == [4]
    assert "spmm_parts" in str(explained)
    assert "products of 4 columns" in repr(plan)
    A.data = A.data * 2
    check(spmm(A, x, plan=plan), expected_product((matrix.data * 2, matrix.indices, matrix.indptr), x))
    with pytest.raises(ValueError, match=r"^plan: was made for another structure than A's"):
        spmm(csr_array(matrix, queue=queue), x, plan=plan)
    A.indices = A.indices.copy()
    with pytest.raises(ValueError, match=r"^plan: was made for another structure than A's"):
        spmm(A, x, plan=plan)
    with pytest.raises(TypeError, match=r"^plan: must be an SpmmPlan, is int"):
        spmm(A, x, plan=3)  # type: ignore[call-overload]


def test_a_plan_keeps_the_latest_kinds(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thresholds, "of", suppose(Thresholds, max_kinds=2))
    A = csr_array(sp.eye_array(4, format="csr", dtype=np.float32), queue=queue)
    plan = spmm_plan(A)
    for k in (2, 3, 4, 2):
        X = np.arange(4 * k, dtype=np.float32).reshape(4, k)
        np.testing.assert_array_equal(spmm(A, X, plan=plan), X)
    assert [product.columns for product in plan.explain().products] == [4, 2]


def test_the_choice_is_a_function_of_numbers(queue: cl.CommandQueue) -> None:
    gpu = replace(describe(queue.device), type="gpu")
    for dtype, widest in (("float32", 4), ("float64", 2), ("complex64", 1)):
        for columns in (1, 2, 3, 5, 8, 17, 64, 100, 128, 1000):
            for layout in (Layout(True, min(columns & -columns, 16)), Layout(False, 1)):
                shape, why = choose(gpu, Arithmetic(dtype, dtype), columns, Pattern(100, 80, 900), layout)
                assert shape.width <= widest
                assert columns % shape.width == 0
                assert shape.lanes & (shape.lanes - 1) == 0
                assert not (shape.packed and layout.adjacent)
                assert why
    cpu, single = replace(gpu, type="cpu"), Arithmetic("float32", "float32")
    assert choose(cpu, single, 16, Pattern(100, 80, 900), Layout(True, 16))[0].lanes == 1
    assert choose(cpu, single, 16, Pattern(100, 100, 500), Layout(False, 1))[0].packed
    assert not choose(cpu, single, 16, Pattern(100, 100, 500, 5, 300), Layout(False, 1))[0].packed
    # Blocks of columns: X exceeds the cache, rows are alike, columns scattered.
    wide = replace(gpu, cache_bytes=1 << 20), single, 128
    assert choose(*wide, Pattern(10_000, 10_000, 160_000, 16, 10), Layout(True, 16))[0].outer
    assert not choose(*wide, Pattern(10_000, 10_000, 160_000, 900, 10), Layout(True, 16))[0].outer
    assert not choose(*wide, Pattern(10_000, 10_000, 160_000, 16, 90_000), Layout(True, 16))[0].outer
    # Parts that cut no row, if rows are not much longer than parts would be.
    assert [choose(gpu, single, 32, Pattern(100, 100, 900, longest), Layout(True, 16))[0].step for longest in (20, 100, 300)] == [
        32, 128, 32,
    ]  # fmt: skip


def test_a_profile_gives_the_numbers(decided_by: Callable[..., None], caplog: pytest.LogCaptureFixture) -> None:
    device = replace(describe(next(iter(PLATFORMS.values()))), name="made up", type="gpu")
    product = device, Arithmetic("float32", "float32"), 32, Pattern(100, 100, 900, 20), Layout(True, 16)
    usual, _ = choose(*product)
    decided_by(device, {}, {"spmm": {"any": {"unroll": {"value": 2}, "part_of_some": {"value": 64}}}})
    assert choose(*product)[0] == replace(usual, unroll=2, step=64)
    cpu = replace(device, name="made up as well", type="cpu")
    assert choose(cpu, *product[1:])[0].vectors == 4
    decided_by(cpu, {}, {"spmm": {"any": {"max_core_vectors": {"value": 2}}}})
    assert choose(cpu, *product[1:])[0].vectors == 2
    for name, value in (
        ("max_lanes", 24),
        ("max_core_columns", 3),
        ("unroll", 0),
        ("unroll", 1.5),
        ("min_local_share", -1),
        ("fastest", 1),
    ):
        decided_by(device, {}, {"spmm": {"any": {name: {"value": value}}}})
        assert choose(*product)[0] == usual
        assert name in caplog.records[-1].getMessage()


def test_known_operands(queue: cl.CommandQueue) -> None:
    # The second product with the same objects takes the short way, unless one of them has other memory or was replaced.
    S = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(3))
    A, X = csr_array(S, queue=queue), np.random.default_rng(4).random((30, 5))
    x, other, y = cl_array.to_device(queue, X), cl_array.to_device(queue, -X), cl_array.empty(queue, (40, 5), X.dtype)
    results = [A @ x for _ in range(3)]
    assert len({result.base_data.int_ptr for result in results}) == 3
    for scale in (1.0, 2.0):
        x.set(scale * X)
        for result in (
            A @ x,
            A @ x,
            spmm(A, x, out=y),
            spmm(A, x, out=y),
            spmm(A, x),
            spmm(A, x, alpha=1.0, beta=0.0, out=y),
        ):
            np.testing.assert_allclose(result.get(), S @ (scale * X))
    np.testing.assert_allclose((A @ other).get(), S @ -X)
    A.data = 3 * A.data
    for _ in range(2):
        np.testing.assert_allclose((A @ other).get(), S @ (-3 * X))
        np.testing.assert_allclose(results[0].get(), S @ X)


def test_rows_that_are_alike(queue: cl.CommandQueue) -> None:
    # As a GPU would have it: a team of lanes to each row.
    diagonals = np.arange(1.0, 401.0).reshape(5, 80) % 7 - 3
    S = sp.csr_array(sp.diags_array(diagonals, offsets=[-9, -1, 0, 1, 9], shape=(80, 80)).astype(np.float32))
    with describe_as(type="gpu"):
        A = csr_array(S, queue=queue)
        for columns in (4, 20):
            X = np.random.default_rng(columns).integers(-4, 5, (80, columns)).astype(np.float32)
            x, y = cl_array.to_device(queue, X), cl_array.to_device(queue, np.ones((80, columns), np.float32))
            np.testing.assert_array_equal((A @ x).get(), S @ X)
            np.testing.assert_array_equal(spmm(A, x, alpha=2, beta=3, out=y).get(), 2 * (S @ X) + 3)
            assert "rows are alike" in str(A.structure.find_plan(SpmmPlan).explain())


def test_no_columns(queue: cl.CommandQueue) -> None:
    matrix = random_csr(70, 50, 0)
    A, X = csr_array(matrix, queue=queue), np.ones((50, 4), np.float32)
    on_device = cl_array.to_device(queue, X)
    for _ in range(2):
        assert (A @ X[:, :0]).shape == (70, 0)
        for none in (on_device[:, :0], cl_array.empty(queue, (50, 0), np.float32)):
            result = A @ none
            assert (result.shape, result.dtype) == ((70, 0), np.float32)
            assert result.get().size == 0
            out = cl_array.empty(queue, (70, 0), np.float32)
            assert spmm(A, none, out=out) is out
    with pytest.raises(ValueError, match=r"^X: must have 50 rows, as A is 70 x 50, has shape \(49, 0\)"):
        A @ np.ones((49, 0), np.float32)


def test_values_behind_the_last_row_are_not_read(queue: cl.CommandQueue) -> None:
    matrix = random_csr(70, 50, 0)
    data = np.append(matrix.data, np.full(5, np.nan)).astype(np.float32)
    parts = data, np.append(matrix.indices, np.zeros(5)).astype(np.int32), matrix.indptr
    A, dense = csr_array(parts, shape=matrix.shape, queue=queue), matrix.toarray()
    np.testing.assert_allclose(A @ np.ones((50, 3), np.float32), dense @ np.ones((50, 3)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(A.T @ np.ones((70, 3), np.float32), dense.T @ np.ones((70, 3)), rtol=1e-5, atol=1e-5)
    A = csr_array(parts, shape=matrix.shape, queue=queue)
    np.testing.assert_array_equal(transpose(A).toarray(), dense.T)
    A = csr_array(parts, shape=matrix.shape, queue=queue)
    np.testing.assert_allclose((transpose(A) @ A).toarray(), dense.T @ dense, rtol=1e-4, atol=1e-4)


def meshlike(index: Any = np.int32) -> sp.csr_array:
    """Return a matrix of nodes of three, whose rows have the same columns; some rows are empty, and there is a row more."""
    nodes = sp.diags_array([1.0] * 9, offsets=[-10, -9, -8, -1, 0, 1, 8, 9, 10], shape=(66, 66))
    S = sp.csr_array(sp.vstack([sp.kron(nodes, np.ones((3, 3))), np.ones((1, 198)) * (np.arange(198) < 20)]))
    empty = np.isin(np.repeat(np.arange(199), np.diff(S.indptr)), [0, 4, 5, 6, 7, 100, 197])
    S.data = np.random.default_rng(5).integers(1, 5, S.nnz).astype(np.float32)
    S.data[empty] = 0
    S.eliminate_zeros()
    return sp.csr_array((S.data, S.indices.astype(index), S.indptr.astype(index)), shape=S.shape)


def repeat(A: Any, x: cl_array.Array, **options: Any) -> list[np.ndarray[Any, Any]]:
    """Return products as on a GPU, between which it is found which rows have the same columns."""
    with describe_as(type="gpu"):
        return [spmm(A, x, **options).get() for _ in range(24)]


def kernels(A: Any) -> list[str]:
    return [product.kernel for product in A.spmm_plan().explain().products]


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_computed_together(queue: cl.CommandQueue, index: Any) -> None:
    S = meshlike(index)
    A = csr_array(S, queue=queue)
    # All columns of a team, fewer and more; and rows of X that are apart.
    for columns in (32, 36, 64, 128, 260):
        X = np.random.default_rng(columns).integers(-4, 5, (198, columns)).astype(np.float32)
        wide = np.full((200, columns + 8), np.nan, np.float32)
        wide[1:199, 4:-4] = X
        for x in (cl_array.to_device(queue, X), cl_array.to_device(queue, wide)[1:199, 4:-4]):
            for result in repeat(A, x):
                np.testing.assert_array_equal(result, S @ X)
    assert all("3 rows together" in kernel for kernel in kernels(A)), kernels(A)
    # Columns that are apart, other values, and alpha and beta.
    A.data = A.data * 2
    out = cl_array.to_device(queue, np.ones((199, 260), np.float32))
    np.testing.assert_array_equal((A @ cl_array.to_device(queue, np.asfortranarray(X))).get(), 2 * (S @ X))
    np.testing.assert_array_equal(spmm(A, cl_array.to_device(queue, X), alpha=2, beta=3, out=out).get(), 4 * (S @ X) + 3)
    assert all("3 rows together" in kernel for kernel in kernels(A)), kernels(A)


def test_rows_computed_together_give_the_same_bits(queue: cl.CommandQueue) -> None:
    S, rng = meshlike(), np.random.default_rng(2)
    S.data = rng.normal(size=S.nnz).astype(np.float32)
    for columns in (24, 64):
        x = cl_array.to_device(queue, rng.normal(size=(198, columns)).astype(np.float32))
        first, *others = repeat(csr_array(S, queue=queue), x)
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_unsorted_rows_and_duplicates_computed_together(queue: cl.CommandQueue) -> None:
    # Pairs of rows with the same columns in the same order, and in another.
    rng = np.random.default_rng(7)
    columns = rng.integers(0, 30, (35, 9))
    indices = np.repeat(columns, 2, axis=0)
    indices[1::10] = indices[1::10, ::-1]
    S = sp.csr_array(
        (rng.integers(-4, 5, indices.size).astype(np.float32), indices.ravel(), np.arange(0, 631, 9)), shape=(70, 30)
    )
    A, X = csr_array(S, queue=queue), rng.integers(-4, 5, (30, 32)).astype(np.float32)
    for result in repeat(A, cl_array.to_device(queue, X)):
        np.testing.assert_array_equal(result, S @ X)
    assert "2 rows together" in kernels(A)[0]


def test_of_rows_computed_together_each_has_its_own_values(queue: cl.CommandQueue) -> None:
    # Of a group with a row less than others, and where X is NaN but not read.
    S = sp.csr_array(sp.kron(sp.eye_array(40), np.ones((3, 3))))[:119].astype(np.float32)
    S.data[3:6], S.data[-1] = np.inf, np.nan
    x = np.ones((130, 32), np.float32)
    x[120:] = np.nan
    A = csr_array(sp.csr_array((S.data, S.indices, S.indptr), shape=(119, 130)), queue=queue)
    for result in repeat(A, cl_array.to_device(queue, x)):
        assert np.isinf(result[1]).all()
        assert np.isnan(result[118]).all()
        np.testing.assert_array_equal(np.delete(result, [1, 118], axis=0), np.full((117, 32), 3))
    assert "3 rows together" in kernels(A)[0]


def test_rows_with_other_columns_stay_apart(queue: cl.CommandQueue) -> None:
    rng = np.random.default_rng(3)
    S = sp.csr_array((np.ones(1600, np.float32), rng.integers(0, 5000, 1600), np.arange(0, 1601, 8)), shape=(200, 5000))
    A, X = csr_array(S, queue=queue), rng.integers(-4, 5, (5000, 32)).astype(np.float32)
    for result in repeat(A, cl_array.to_device(queue, X)):
        np.testing.assert_array_equal(result, S @ X)
    assert "a team for each row" in kernels(A)[0]


def test_groups_of_rows() -> None:
    for lengths, wanted in (([3] * 5, 3), ([4, 4, 8], 4), ([6, 6, 3], 3), ([2, 2, 2, 1], 2), ([1] * 9, 1), ([1] * 9 + [2], 1)):
        ends = np.cumsum(lengths)
        rows, first = group_rows(Thresholds(), ends - lengths, int(ends[-1]))
        assert rows == wanted
        assert np.isin(ends, first).all()
        assert first[0] == 0
        assert 1 <= np.diff(first).min() <= np.diff(first).max() <= rows
