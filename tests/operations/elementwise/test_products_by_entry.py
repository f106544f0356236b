"""Products, quotients, larger and smaller values with dense operands, scalars, rows and columns, against SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from expressions import check, to_device_array
from pyopencl import array as cl_array

from clsparse_py import csr_array
from clsparse_py._device.device import describe

#: A and B are sparse, R and K a row and a column of B, P a place of it; D is dense.
EXPRESSIONS = (
    "A * D", "A * D[0]", "A * D[:, :1]", "D * A", "A * [1, 2, 3, 4, 5]", "A.multiply(D[:1, :1])",
    "A * np.ones((3, 7, 5), np.float32)", "A * D[:3]", "A * None", "A.multiply('a')", "A / D", "A / D[0]", "A / None",
    "A / B", "D / A", "2 / A", "A / np.array(2)", "A / 0.5", "A * R", "A * K", "A * P", "R * A", "K * A", "P * A", "R * K",
    "K * R", "R * D", "K * D", "R * D[:, :1]", "K * D[:1]", "P * D", "A * B[:3]", "A.maximum(D)", "A.minimum(D[0])",
    "R.maximum(D)", "A.maximum([1, 2, 3, 4, 5])", "A.maximum(1)", "A.maximum(0)", "A.maximum(-1)", "A.minimum(1)",
    "A.minimum(-1)", "A.maximum(B[:3])", "A.maximum(None)", "R < D", "A >= D[0]", "K == D",
)  # fmt: skip
#: Of one dimension: v is sparse, D is dense.
OF_VECTORS = ("v * D[0]", "v * D", "v / D[0]", "v * v", "v.maximum(1)", "v.minimum(D[0])", "A * v", "v * 2", "v / v")


def matrix(dtype: str, shape: tuple[int, int] = (7, 5), seed: int = 1) -> scipy.sparse.csr_array:
    """Return a matrix of small whole numbers, about half of them 0."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, shape) * (rng.random(shape) < 0.6) + (1j * rng.integers(-3, 4, shape) if dtype[0] == "c" else 0)
    return scipy.sparse.csr_array(values.astype(dtype))


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8", "bool", "float64"])
def test_products_quotients_and_extremes(queue: cl.CommandQueue, dtype: str) -> None:
    if not describe(queue.device).fp64:
        pytest.skip("quotients are float64")
    A, B = matrix(dtype), matrix(dtype, seed=2)
    D = np.random.default_rng(3).integers(1, 4, A.shape).astype(dtype)
    for form in ("csr", "csc", "coo") if dtype == "float32" else ("csr",):
        names: dict[str, Any] = {"R": B[:1], "K": B[:, [0]], "P": B[:1, :1]}
        for expression in EXPRESSIONS:
            if "B[" in expression:
                check(queue, expression.replace("B[:3]", "C"), A=A.asformat(form), C=B[:3])
            else:
                used = {name: value.asformat(form) for name, value in names.items() if name in expression}
                check(queue, expression, A=A.asformat(form), B=B, D=D, **used)
        with warnings.catch_warnings():
            # In SciPy 1.17 a sparse row that is multiplied is one of COO form.
            warnings.simplefilter("ignore")
            for expression in OF_VECTORS:
                check(queue, expression, v=scipy.sparse.coo_array(A.toarray()[1]), A=A, D=D)


def test_duplicates_are_added_up_where_scipy_does(queue: cl.CommandQueue) -> None:
    A = scipy.sparse.csr_array((np.array([1, -2, 3, 4], np.float32), [2, 0, 2, 1], [0, 3, 3, 4]), shape=(3, 4))
    D = np.arange(12, dtype=np.float32).reshape(3, 4)
    for expression in ("A * D", "abs(A)", "A.sqrt()", "A**2", "A * 3", "A.maximum(-3.5)", "A.maximum(D)", "A * R"):
        check(queue, expression, A=A, D=D, R=scipy.sparse.csr_array(D[1:2]))


@pytest.mark.parametrize("of", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_duplicates_are_added_up_in_the_dtype_of_products_and_quotients(queue: cl.CommandQueue, of: Any) -> None:
    """Sums of int8 would be those modulo 256."""
    host = of((np.array([100, 100, 3, -100, -100], np.int8), [0, 0, 1, 2, 2], [0, 2, 3, 5]), shape=(3, 3))
    B = scipy.sparse.csr_array(np.array([[2, 1, 4], [4, 8, 2], [1, 2, 16]], np.float32))
    for expression in ("A * R", "R * A", "A * C", "A * B", *(("A / B",) if describe(queue.device).fp64 else ())):
        check(queue, expression, A=host.copy(), B=B, R=B[:1], C=B[:, [0]])


def test_dense_operands_on_the_device_may_have_any_strides(queue: cl.CommandQueue) -> None:
    A, D = matrix("float32"), np.arange(70, dtype=np.float32).reshape(7, 10) + 1
    ours, dense = csr_array(A, queue=queue), cl_array.to_device(queue, D)
    np.testing.assert_array_equal((ours * dense[:, ::-2]).toarray(), (A * D[:, ::-2]).toarray())
    np.testing.assert_array_equal((ours * dense[0, 3:8]).toarray(), (A * D[0, 3:8]).toarray())
    np.testing.assert_allclose((ours / dense[:, :5]).toarray(), (A / D[:, :5]).toarray(), rtol=1e-6)
    result = ours.maximum(dense[:, 1::2])
    assert isinstance(result, cl_array.Array)
    np.testing.assert_array_equal(result.get(), A.maximum(D[:, 1::2]))
    assert isinstance(csr_array(A[:1, :1], queue=queue) * dense, cl_array.Array)
    with pytest.raises(ValueError, match="other: must go with shape"):
        ours * dense


def test_nan_is_the_larger_and_the_smaller_one(queue: cl.CommandQueue) -> None:
    A = scipy.sparse.csr_array(np.array([[np.nan, 1, 0, -1]], np.float32))
    D = np.array([[0, np.nan, np.nan, 2]], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
        for expression in ("A.maximum(D)", "A.minimum(D)", "A.maximum(0)", "A.maximum(np.nan)", "A.minimum(2)"):
            check(queue, expression, A=A, D=D)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4, 3)], ids=str)
def test_matrices_without_entries(queue: cl.CommandQueue, shape: tuple[int, int]) -> None:
    A = scipy.sparse.csr_array(shape, dtype=np.float32)
    D = np.ones(shape, np.float32)
    for expression in ("A * D", "A / D", "A.maximum(D)", "A.sqrt()", "A**2", "A.maximum(0)", "A * A"):
        check(queue, expression, A=A, D=D)


def test_values_change_in_place(queue: cl.CommandQueue) -> None:
    for form in ("csr", "csc", "coo"):
        host = matrix("float32").asformat(form)
        A = to_device_array(queue, host)
        itself, values = A, A.data
        A *= 3
        A /= 2
        assert A is itself
        np.testing.assert_allclose(A.toarray(), host.toarray() * 1.5)
        # Who shared the values keeps them.
        np.testing.assert_array_equal(values.get(), host.data)
        A *= host
        assert A is not itself
        with pytest.raises(NotImplementedError):
            A += 1
    A = to_device_array(queue, matrix("int8"))
    with pytest.raises(TypeError, match="cannot be cast"):
        A *= 2.5
    A *= 2
    assert A.dtype == np.int8


def test_duplicates_are_added_up_in_their_own_dtype(queue: cl.CommandQueue) -> None:
    host = scipy.sparse.csr_array((np.array([100, 100, 3], np.int8), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    A, D = csr_array(host, queue=queue), np.array([[-60, 0], [-60, 9]])
    solid = np.stack([D, -D])
    for operate in (
        lambda A: A.maximum(D), lambda A: A.minimum(D), lambda A: A < D, lambda A: A < solid, lambda A: A.minimum(solid),
    ):  # fmt: skip
        for operand in (A, A.T.T):
            np.testing.assert_array_equal(operate(operand), operate(host.copy()))
    with pytest.raises(TypeError, match=r"^other: must be a sparse or dense array of numbers"):
        A.multiply(np.array([None, 2]))
