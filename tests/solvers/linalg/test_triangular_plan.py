"""Plans of triangular systems: methods, new values, transposed triangles, right-hand sides of any strides, singular diagonals."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import linalg
from clsparse_py._device.device import describe
from clsparse_py._operations.triangular import METHODS, level_sets

pytestmark = pytest.mark.any_platform


def structure(n: int, rng: np.random.Generator, index: Any = np.int32) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and indptr of a square matrix: unsorted rows, duplicates, entries on both sides of the diagonal."""
    rows = [rng.permutation(np.r_[rng.integers(0, n, rng.integers(0, 6)), i, i]) for i in range(n)]
    return np.concatenate(rows).astype(index), np.r_[0, np.cumsum([row.size for row in rows])].astype(index)


def backward_error(T: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """Return the componentwise backward error of a solution of ``T x = b``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.abs(b - T @ x) / (np.abs(T) @ np.abs(x) + np.abs(b))
    return float(np.nan_to_num(errors).max(initial=0))


def dtypes_of(queue: cl.CommandQueue) -> tuple[Any, ...]:
    """Return inexact dtypes of a queue's device."""
    wide = (np.float64, np.complex128) if describe(queue.device).fp64 else ()
    return np.float32, np.complex64, *wide


def methods_of(queue: cl.CommandQueue) -> tuple[str, ...]:
    """Return the methods of triangular systems that a queue's device has for any triangle."""
    return tuple(name for name in METHODS if name != "tiles" and (name != "sync-free" or describe(queue.device).forward_progress))


def test_methods_give_the_same_bits_and_small_backward_errors(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_sets, "_WIDE_ON_CPU", 5)  # levels with a launch of their own, and runs of narrow ones
    rng = np.random.default_rng(0)
    for dtype, index, n in itertools.product(dtypes_of(queue), (np.int32, np.int64), (1, 77)):
        indices, indptr = structure(n, rng, index)
        values = rng.standard_normal(indices.size).astype(dtype)
        rows = np.repeat(np.arange(n), np.diff(indptr))
        values[rows == indices] += 4
        whole = scipy.sparse.csr_array((values, indices, indptr), shape=(n, n))
        sorted_triangle = scipy.sparse.csr_array(scipy.sparse.tril(whole))
        sorted_triangle.sum_duplicates()
        for host, lower, unit, transposed in itertools.product((whole, sorted_triangle), *((True, False),) * 3):
            dense = host.toarray().astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
            T = np.tril(dense) if lower else np.triu(dense)
            if unit:
                np.fill_diagonal(T, 1)
            T = T.T if transposed else T
            for form in ("csr", "csc", "coo"):
                A = clsparse_py.csr_array(host, queue=queue).asformat(form)
                options: dict[str, Any] = {"lower": lower, "unit_diagonal": unit, "transposed": transposed}
                plans = [linalg.triangular_plan(A, method=method, **options) for method in ("serial", "auto", *methods_of(queue))]
                # 11 columns are a group of eight and three of one.
                b = rng.standard_normal((n, 11)).astype(dtype)
                results = [plan(b) for plan in plans]
                assert all(plan(b).tobytes() == result.tobytes() for plan, result in zip(plans, results, strict=True))
                single = plans[0](np.ascontiguousarray(b[:, 2]))
                assert single.tobytes() == np.ascontiguousarray(results[0][:, 2]).tobytes()
                bound = (max(np.diff(indptr)) + 2) * float(np.finfo(dtype).eps) * (4 if T.dtype.kind == "c" else 2)
                for result in results:
                    assert result.dtype == dtype
                    assert backward_error(T, result.astype(T.dtype), b) <= bound


def test_values_may_change(queue: cl.CommandQueue) -> None:
    rng, n = np.random.default_rng(1), 50
    indices, indptr = structure(n, rng)
    b = rng.standard_normal(n).astype(np.float32)
    on_diagonal = np.repeat(np.arange(n), np.diff(indptr)) == indices
    first, second = ((rng.standard_normal(indices.size) + 4 * on_diagonal).astype(np.float32) for _ in range(2))
    for form, transposed in itertools.product(("csr", "csc"), (False, True)):
        # The three arrays as they are: unsorted, with duplicates.
        A, B = (getattr(clsparse_py, f"{form}_array")((v, indices, indptr), shape=(n, n), queue=queue) for v in (first, second))
        plan, other = (linalg.triangular_plan(of, transposed=transposed) for of in (A, B))
        wanted = other(b)
        assert plan(b).tobytes() != wanted.tobytes()
        for data in (second, list(map(float, second)), B.data, cl_array.to_device(queue, np.r_[np.float32(0), second])[1:]):
            np.testing.assert_allclose(plan(b, data), wanted, rtol=1e-5)
        assert plan(b, B.data).tobytes() == wanted.tobytes()
        for message, data in (("data: must have the", second[1:]), ("data: .*not supported", second.astype("U"))):
            with pytest.raises((ValueError, TypeError), match=message):
                plan(b, data)
        A.data, A.indices = B.data, A.indices.copy()
        if form == "csr":
            with pytest.raises(ValueError, match="data: the matrix has other indices"):
                plan(b, A.data)
    with pytest.raises(ValueError, match="data: belongs to a csr_array or csc_array"):
        linalg.triangular_plan(A.tocoo())(b, second)


def test_values_may_change_in_place(queue: cl.CommandQueue) -> None:
    b = np.ones(3, np.complex64)
    for dtype, method in itertools.product((np.int32, np.float32, np.complex64), methods_of(queue)):
        A = clsparse_py.csr_array(np.array([[1, 0, 0], [1, 2, 0], [0, 1, 2]], dtype), queue=queue)
        plan = linalg.triangular_plan(A, method=method)
        np.testing.assert_array_equal(plan(b), [1, 0, 0.5])
        plan(cl_array.to_device(queue, b), A.data)
        A.data[:] = 4
        for options in ({}, {"data": A.data}):
            for right in (b, cl_array.to_device(queue, b)):
                result = plan(right, **options)
                np.testing.assert_array_equal(result if right is b else result.get(), [0.25, 0, 0.25])
        A.data[2:3] = 0
        with pytest.raises(np.linalg.LinAlgError, match="zero in row 1"):
            plan(b)
        # The zero is gone when the solution with it is checked.
        other = linalg.triangular_plan(A, method=method)
        other(cl_array.to_device(queue, b))
        A.data[:] = 4
        with pytest.raises(np.linalg.LinAlgError, match="diagonal had a zero, before its values were changed in place"):
            other.check()
        np.testing.assert_array_equal(other(b), [0.25, 0, 0.25])


class Queue(cl.CommandQueue):
    """A queue that can have weak references."""


def test_a_plan_keeps_no_queue_of_right_hand_sides(queue: cl.CommandQueue) -> None:
    A = clsparse_py.csr_array(np.tril(np.ones((5, 5), np.float32)), queue=queue)
    for method in methods_of(queue):
        plan = linalg.triangular_plan(A, method=method)
        for shape, dtype in itertools.product(((5,), (5, 3)), (np.float32, np.complex64)):
            other = Queue(queue.context, queue.device)
            b = cl_array.to_device(other, np.ones(shape, dtype))
            for _ in range(3):
                x = plan(b)
            np.testing.assert_array_equal(x.get().real.sum(axis=0), np.ones(shape[1:]))
            kept = weakref.ref(other)
            plan.check()
            del other, b, x
            gc.collect()
            assert kept() is None


def test_right_hand_sides_of_any_strides(queue: cl.CommandQueue) -> None:
    rng, n = np.random.default_rng(2), 40
    dtype = dtypes_of(queue)[-1]
    A = clsparse_py.csr_array(
        scipy.sparse.random_array((n, n), density=0.1, rng=rng) + 4 * scipy.sparse.eye_array(n), queue=queue
    )
    A = A.astype(dtype)
    for method in methods_of(queue):
        plan = linalg.triangular_plan(A, lower=False, method=method)
        for source in (dtype, np.float32, np.int32):
            whole = rng.integers(-9, 9, (2 * n, 12)).astype(source)
            on_device = cl_array.to_device(queue, whole)
            turned = cl_array.to_device(queue, np.asfortranarray(whole))
            for part in (np.s_[:n], np.s_[n:], np.s_[n:, 3:7], np.s_[::2, 5], np.s_[::2, ::3], np.s_[:n, 4], np.s_[:n, 4:5]):
                wanted = plan(whole[part])
                for view in (on_device[part], turned[part]):
                    result = plan(view)
                    assert isinstance(result, cl_array.Array)
                    assert result.shape == wanted.shape
                    np.testing.assert_array_equal(result.get(), wanted)
                    np.testing.assert_array_equal(on_device.get(), whole)
    # Without rows, and without columns.
    for method in ("auto", *methods_of(queue)):
        nothing = linalg.triangular_plan(clsparse_py.csr_array((0, 0), queue=queue), method=method)
        assert nothing(np.zeros((0, 2))).shape == (0, 2)
        assert nothing.explain().rows == 0
    assert plan(np.zeros((n, 0), dtype)).shape == (n, 0)
    assert plan(cl_array.zeros(queue, (n, 0), dtype)).shape == (n, 0)


def test_a_zero_on_the_diagonal_is_named(queue: cl.CommandQueue) -> None:
    n = 30
    host = scipy.sparse.csr_array(np.tril(np.ones((n, n), np.float32)))
    missing = host.tolil()
    missing[7, 7] = missing[20, 20] = 0
    stored = host.copy()
    stored.data[stored.indptr[8] - 1] = -0.0
    for matrix, method in itertools.product((missing.tocsr(), stored), methods_of(queue)):
        A = clsparse_py.csr_array(matrix, queue=queue)
        plan, b = linalg.triangular_plan(A, method=method), np.ones(n, np.float32)
        with pytest.raises(np.linalg.LinAlgError, match="zero in row 7"):
            plan(b)
        with pytest.raises(np.linalg.LinAlgError, match="zero in row 7"):
            linalg.spsolve_triangular(A, cl_array.to_device(queue, b))
        x = plan(cl_array.to_device(queue, b))
        assert not np.isfinite(x.get()[7])
        with pytest.raises(np.linalg.LinAlgError, match="zero in row 7"):
            plan.check()
        plan.check()  # said once
        plan(cl_array.to_device(queue, b))
        with pytest.raises(np.linalg.LinAlgError, match="zero in row 7"):
            plan(b, np.ones(A.nnz))
        if matrix is stored:
            np.testing.assert_array_equal(plan(b, np.ones(A.nnz, np.float32)), np.eye(n)[0])
        np.testing.assert_array_equal(linalg.triangular_plan(A, unit_diagonal=True)(b), np.eye(n)[0])
    # NaN is not zero.
    A = clsparse_py.csr_array(np.array([[np.nan]], np.complex64), queue=queue)
    assert np.isnan(linalg.triangular_plan(A)(np.ones(1, np.complex64))).all()


def test_wrong_arguments_are_named(queue: cl.CommandQueue) -> None:
    A = clsparse_py.csr_array(np.eye(3, dtype=np.float32), queue=queue)
    for message, call in (
        ("A: must be square", lambda: linalg.triangular_plan(A[:2])),
        ("A: must be a sparse array, is ndarray", lambda: linalg.triangular_plan(np.eye(3))),
        ("method: must be", lambda: linalg.triangular_plan(A, method="fast")),
        ("b: must have 3 entries or rows", lambda: linalg.triangular_plan(A)(np.ones(4))),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_plans_explain_themselves(queue: cl.CommandQueue) -> None:
    A = clsparse_py.diags_array([1.0, 2.0], offsets=[-1, 0], shape=(9, 9), dtype=np.float32, queue=queue)
    explanation = linalg.triangular_plan(A, method="levels").explain()
    assert (explanation.method, explanation.rows) == ("levels", 9)
    assert "9 level sets, of at most 1 rows" in str(explanation)
    plan = linalg.triangular_plan(A)
    device = describe(queue.device)
    by_waiting = "sync-free" if device.forward_progress else "levels"
    assert plan.explain().method == ("serial" if device.lanes_are_loops else by_waiting)
    assert "TriangularPlan of a 9 x 9 matrix with 17 entries" in repr(plan)
