"""Operators and methods of a matrix that apply entry by entry, with all kinds of operands, against SciPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array
from scipy.sparse import linalg
from test_union import matrix

from clsparse_py import csr_array
from clsparse_py._device.device import describe

SHAPE = (40, 30)
DTYPES = ["float32", "complex64", "int8", "bool", "uint16", "float64"]

#: Of matrices A and B, SciPy's S, which is B, and D, which is dense.
EXPRESSIONS = (
    "A + B",
    "A - S",
    "S + A",
    "S - A",
    "S.tocsc() - A",
    "iadd(A, B)",
    "A * B",
    "S * A",
    "A.multiply(S)",
    "A.maximum(B)",
    "A.minimum(S)",
    "A + D",
    "D + A",
    "A - D",
    "D - A",
    "A + D[:1]",
    "A + D[0, :7]",
    "A + 0",
    "0 + A",
    "0 - A",
    "A + 1",
    "1 - A",
    "A + None",
    'A + "text"',
    "A + S.T.tocsr()",
    "-A",
    "abs(A)",
    "2 * A",
    "A * 2.5",
    "A * np.float32(3)",
    "np.float64(2) * A",
    "A * np.array(3)",
    "A * 2j",
    "A * True",
    "A * 300",
    "A / 2",
    "A / 2j",
    "A / 0",
    "A.conj()",
    "A.real",
    "A.imag",
)


def outcome(expression: str, **operands: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return eval(expression, {"np": np, "iadd": operator.iadd, **operands})
    except (TypeError, ValueError, ArithmeticError, NotImplementedError) as error:
        return error


def assert_agrees(result: Any, wanted: Any) -> None:
    if isinstance(wanted, Exception):
        assert type(result) is type(wanted), (result, wanted)
        return
    assert not isinstance(result, Exception), result
    assert getattr(result, "format", None) == getattr(wanted, "format", None)
    assert result.dtype == wanted.dtype
    dense = [operand.toarray() if hasattr(operand, "toarray") else np.asarray(operand) for operand in (result, wanted)]
    np.testing.assert_allclose(*dense, rtol=1e-6)


@pytest.mark.parametrize("form", ["canonical", "unsorted with duplicates"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_expressions(queue: cl.CommandQueue, dtype: str, form: str) -> None:
    fp64 = describe(queue.device).fp64
    if dtype == "float64" and not fp64:
        pytest.skip("no double precision")
    other = "float32" if dtype == "bool" else dtype
    host, second = matrix(dtype, SHAPE, form, 1), matrix(other, SHAPE, "canonical", 2)
    dense = np.random.default_rng(3).integers(0, 4, SHAPE).astype(other)
    for name in EXPRESSIONS:
        # SciPy adds the duplicates of its operands up in place.
        wanted = outcome(name, A=host.copy(), B=second, S=second, D=dense)
        result = outcome(name, A=csr_array(host, queue=queue), B=csr_array(second, queue=queue), S=second, D=dense)
        if not fp64 and getattr(wanted, "dtype", None) in (np.float64, np.complex128):
            assert isinstance(result, TypeError), name
            assert "double precision" in str(result)
            continue
        try:
            assert_agrees(result, wanted)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_dense_operands_on_the_device(queue: cl.CommandQueue) -> None:
    host, dense = matrix("float32", SHAPE, "unsorted with duplicates", 1), np.arange(1200, dtype=np.float32).reshape(SHAPE)
    A, given = csr_array(host, queue=queue), cl_array.to_device(queue, dense)
    for result, wanted in (
        (A + given, host + dense),
        (A - given, host - dense),
        (given - A, dense - host),
        (given + A, dense + host),
    ):
        assert isinstance(result, cl_array.Array)
        np.testing.assert_array_equal(result.get(), wanted)
    strided = cl_array.to_device(queue, np.asfortranarray(dense))
    np.testing.assert_array_equal((A + strided).get(), host + dense)
    np.testing.assert_array_equal(given.get(), dense)
    np.testing.assert_array_equal((A + given[0]).get(), host + dense[0])
    with pytest.raises(ValueError, match=r"^other: must have shape \(40, 30\) or one that gives it, has \(40,\)"):
        A + given.T[0]


@pytest.mark.any_platform
def test_dense_operands_in_another_byte_order(queue: cl.CommandQueue) -> None:
    host, dense = matrix("float32", SHAPE, "canonical", 1), np.arange(1200, dtype=np.float32).reshape(SHAPE) % 5
    A, swapped = csr_array(host, queue=queue), dense.astype(dense.dtype.newbyteorder())
    np.testing.assert_array_equal(A + swapped, host + dense)
    np.testing.assert_array_equal(A != swapped, host != dense)


@pytest.mark.any_platform
def test_what_shares_a_structure(queue: cl.CommandQueue) -> None:
    A = csr_array(matrix("float32", SHAPE, "canonical", 1), queue=queue)
    for result in (-A, abs(A), A * np.float32(2), A + 0, A.conj()):
        assert result.indices is A.indices
        assert result.structure is A.structure
        assert result.data is not A.data
    assert A.real.data is not A.data
    # SpMV's plan is made for one dtype.
    assert (A * 1j).structure is A.structure
    assert (A * 1j).spmv_plan() is not A.spmv_plan()
    assert A.conjugate(copy=False) is A


@pytest.mark.any_platform
def test_operands_are_checked(queue: cl.CommandQueue) -> None:
    A = csr_array(matrix("float32", SHAPE, "canonical", 1), queue=queue)
    context = cl.Context([queue.device])
    elsewhere = csr_array(A.get(), queue=cl.CommandQueue(context))
    for operation in (A.__add__, A.multiply, A.maximum):
        with pytest.raises(ValueError, match=r"^other: lives in another context than A"):
            operation(elsewhere)
    with pytest.raises(NotImplementedError, match=r"^other: must be a sparse or dense array or a scalar, is NoneType"):
        A.maximum(None)
    with pytest.raises(TypeError, match=r"^other: must be a number, is 'x'"):
        A.multiply("x")
    with pytest.raises(TypeError, match=r"^other: dtype object is not supported"):
        A + np.full(SHAPE, None)
    broken = csr_array((A.data, A.indices, A.indptr), shape=A.shape, queue=queue)
    broken.indptr = cl_array.to_device(queue, np.arange(41, dtype=np.int32)[::-1].copy())
    for operation in (lambda: A + broken, lambda: -broken, lambda: broken * 2, lambda: broken + A.toarray()):
        with pytest.raises(ValueError, match=r"^indptr: must start with 0"):
            operation()


@pytest.mark.any_platform
def test_solvers_of_scipy_take_the_matrix(queue: cl.CommandQueue) -> None:
    host = sp.csr_array(sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(50, 50)).astype(np.float32))
    A, b = csr_array(host, queue=queue), np.arange(50, dtype=np.float32)
    for solve in (linalg.cg, linalg.bicg, linalg.gmres, linalg.lsqr):
        np.testing.assert_allclose(solve(A, b)[0], solve(host, b)[0], rtol=1e-3)
    np.testing.assert_allclose(linalg.eigsh(A, k=2)[0], linalg.eigsh(host, k=2)[0], rtol=1e-4)
    skew = matrix("complex64", SHAPE, "canonical", 4)
    result, wanted = (linalg.aslinearoperator(operand) for operand in (csr_array(skew, queue=queue), skew))
    y = np.arange(40, dtype=np.complex64) * (1 + 2j)
    np.testing.assert_allclose(result.rmatvec(y), wanted.rmatvec(y), rtol=1e-5)
    np.testing.assert_allclose(result.H @ np.stack([y, -y], 1), wanted.H @ np.stack([y, -y], 1), rtol=1e-5)
    on_device = cl_array.to_device(queue, y)
    np.testing.assert_allclose(csr_array(skew, queue=queue).rmatvec(on_device).get(), wanted.rmatvec(y), rtol=1e-5)


@pytest.mark.any_platform
def test_names_of_scipy(queue: cl.CommandQueue) -> None:
    host = matrix("float32", SHAPE, "unsorted with duplicates", 5)
    A = csr_array(host, queue=queue)
    assert (A.format, A.size) == ("csr", host.size)
    assert A.tocsr() is A
    assert A.tocsr(copy=True).data is not A.data
    result = A.sorted_indices()
    assert result.has_sorted_indices
    assert not A.has_sorted_indices
    np.testing.assert_array_equal(result.todense(), host.toarray())
    np.testing.assert_array_equal(A.dot(np.float32(2)).toarray(), host.toarray() * 2)
    np.testing.assert_allclose(A.dot(np.ones(30, np.float32)), host.toarray().sum(axis=1), rtol=1e-5)


@pytest.mark.any_platform
def test_zeros_have_the_signs_of_scipys(queue: cl.CommandQueue) -> None:
    A, D = np.float32([[1, 0, -0.0, 0], [0, 0, 3, -2]]), np.float32([[0, -0.0, -0.0, 2], [0, 5, 3, -2]])
    # Zeros are stored, too.
    stored = sp.coo_array((np.float32([1, -0.0, 0.0, 3, -2]), ([0, 0, 1, 1, 1], [0, 2, 0, 2, 3])), shape=A.shape).tocsr()
    over = sp.coo_array((np.float32([-0.0, 0.0, -0.0, -0.0, 4]), ([0, 0, 0, 1, 1], [0, 1, 3, 3, 2])), shape=A.shape).tocsr()
    for dtype in (np.float32, np.complex64):
        S, B, dense = stored.astype(dtype), over.astype(dtype), D.astype(dtype)
        ours = csr_array(S, queue=queue)
        for M in (ours, ours.tocsc(), ours.tocoo()):
            there = cl_array.to_device(queue, dense)
            for result, wanted in (
                (M - dense, S - dense),
                ((M - there).get(), S - dense),
                (dense - M, dense - S),
                ((there - M).get(), dense - S),
            ):
                for part in ("real", "imag"):
                    np.testing.assert_array_equal(np.signbit(getattr(result, part)), np.signbit(getattr(wanted, part)))
        if dtype == np.float32 and describe(queue.device).fp64:
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(ours / csr_array(B, queue=queue), S / B)


@pytest.mark.any_platform
@pytest.mark.parametrize("signed", ["int64", "int32", "int16", "int8"])
def test_signed_and_unsigned_integers_are_compared_exactly(queue: cl.CommandQueue, signed: str) -> None:
    low, high = np.iinfo(signed).min, np.iinfo(signed).max
    values = np.array([[low, high - 1, high, -1, 0, 5, min(high, 2**53 + 1)]], signed)
    others = np.array([[0, high - 1, high, 2**64 - 1, 0, 2**63, min(high, 2**53)]], "uint64")
    for one in (values, np.roll(values, 1)):
        for a, b in ((one, others), (others, one)):
            A = csr_array(a, queue=queue)
            for name in ("eq", "ne", "lt", "le", "gt", "ge"):
                compare = getattr(operator, name)
                wanted = [[compare(int(x), int(y)) for x, y in zip(a[0], b[0], strict=True)]]
                np.testing.assert_array_equal(compare(A, b), wanted, err_msg=name)
                np.testing.assert_array_equal(compare(A, cl_array.to_device(queue, b)).get(), wanted, err_msg=name)
                np.testing.assert_array_equal(compare(A, b[None]), [wanted], err_msg=name)


@pytest.mark.any_platform
def test_integers_are_compared_exactly(queue: cl.CommandQueue) -> None:
    beyond = (0, 5, -7, 2**63 - 1, 2**63, 2**63 + 1, 2**64, 2**70, -(2**63), -(2**63) - 1)
    for dtype in (np.int64, np.uint64, np.int8, np.uint32, bool):
        low, high = (0, 1) if dtype is bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        host = np.array([[high, high - 1, low, 0, min(high, 5), 0]], dtype)
        A = csr_array(host, queue=queue)
        for scalar in (*beyond, np.uint64(2**63), np.uint64(2**64 - 1), np.int64(-1)):
            for name in ("eq", "ne", "lt", "le", "gt", "ge"):
                compare = getattr(operator, name)
                result = compare(A, scalar).toarray()
                wanted = [[compare(int(value), int(scalar)) for value in host[0]]]
                np.testing.assert_array_equal(result, wanted, err_msg=f"{dtype.__name__} {name} {scalar!r}")
