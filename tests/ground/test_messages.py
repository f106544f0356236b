"""Errors name the argument, what came and what is needed; operands that know how to answer are left to answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py import csr_array, primitives, spgemm, spmm, spmv, transpose

S = sp.csr_array(np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0]], np.float32))
X = np.ones(3, np.float32)


def read_only_array(queue: cl.CommandQueue) -> cl_array.Array:
    return cl_array.Array(queue, (3,), np.float32, data=cl.Buffer(queue.context, cl.mem_flags.READ_ONLY, 12))


def on_device(queue: cl.CommandQueue, *shape: int) -> cl_array.Array:
    return cl_array.zeros(queue, shape, np.float32)


Use = Callable[[csr_array, cl.CommandQueue], Any]

CASES: dict[str, tuple[Use, type[Exception], str]] = {
    "axes": (lambda A, _: A.transpose(0), ValueError, r"^axes: must be None or \(1, 0\), are 0"),
    "one length": (lambda _, q: csr_array((-5,), queue=q), ValueError, r"^shape: must not be negative, is \(1, -5\)"),
    "three lengths": (lambda _, q: csr_array((3, 4, 5), queue=q), ValueError, r"^shape: must be two integers, is \(3, 4, 5\)"),
    "no length": (lambda _, q: csr_array((), queue=q), ValueError, r"^arg1: a tuple must be .* or a shape, has 0 parts"),
    "negative length": (lambda _, q: csr_array((-1, 2), queue=q), ValueError, r"^shape: must not be negative, is \(-1, 2\)"),
    "broken length": (lambda _, q: csr_array(S, shape=(3.0, 3.7), queue=q), TypeError, r"^shape: must be two integers, is \(3.0"),
    "huge length": (lambda _, q: csr_array((3, 1 << 70), queue=q), ValueError, r"^shape: must fit 64-bit indices, is \(3, 1180"),
    "other shape": (lambda _, q: csr_array(S, shape=(4, 4), queue=q), ValueError, r"^shape: \(4, 4\) differs from that of arg1"),
    "no dtype": (lambda _, q: csr_array(S, dtype="junk", queue=q), TypeError, r"^dtype: 'junk' is no dtype"),
    "astype": (lambda A, _: A.astype(np.float16), ValueError, r"^dtype: dtype float16 is not supported; use one of bool,"),
    "scalar": (lambda A, _: A @ 3, ValueError, r"^x: must be an array of one or two dimensions, is a scalar of type int"),
    "text": (lambda A, _: A @ "abc", ValueError, r"^x: must be an array of one or two dimensions, is a scalar of type str"),
    "no dimension": (lambda A, _: A @ np.array(2.0), ValueError, r"^x: must be an array of .*, is a scalar of type ndarray"),
    "none on the device": (lambda A, q: A @ on_device(q), ValueError, r"^x: must be .*, is a scalar of type Array"),
    "three": (lambda A, _: A @ np.ones((3, 2, 2)), ValueError, r"^x: must be an array of .* dimensions, has shape \(3, 2, 2\)"),
    "three on the device": (lambda A, q: A @ on_device(q, 3, 2, 2), ValueError, r"^x: must be .*, has shape \(3, 2, 2\)"),
    "sparse vector": (lambda A, _: spgemm(A, sp.coo_array([1.0, 0, 2])), ValueError, r"^B: must have two dimensions, has 1"),
    "nothing": (lambda A, _: A @ None, TypeError, "unsupported operand type"),
    "scalar before": (lambda A, _: 3 @ A, ValueError, r"^x: must be an array of one or two dimensions, is a scalar of type int"),
    "nothing before": (lambda A, _: None @ A, TypeError, "unsupported operand type"),
    "three before": (lambda A, _: np.ones((2, 2, 3)) @ A, ValueError, r"^x: must be an array of .*, has shape \(2, 2, 3\)"),
    "rows before": (lambda A, _: np.ones((2, 4)) @ A, ValueError, r"^x: must have 3 columns, as A is 3 x 3, has shape \(2, 4\)"),
    "objects": (lambda A, _: A @ np.array([1, 2, None]), ValueError, r"^x: dtype object is not supported; use one of bool,"),
    "SciPy's A": (lambda A, _: spgemm(S, A), TypeError, r"^A: must be a clsparse_py.csr_array, is scipy.sparse._csr"),
    "SciPy's A of spmv": (lambda *_: spmv(S, X), TypeError, r"^A: must be a clsparse_py.csr_array, is scipy.sparse._csr"),
    "method": (lambda A, _: transpose(A, method=[]), ValueError, r"^method: must be one of auto, .*, is \[\]"),
    "work-group": (lambda A, _: spmm(A, np.eye(3), work_group=1.5), TypeError, r"^work_group: must be an integer, is float"),
    "alpha": (lambda A, _: spmv(A, X, alpha=1e300), TypeError, r"^alpha: 1e\+300 does not fit the result's dtype, float32"),
    "read-only out": (lambda A, q: spmv(A, on_device(q, 3), out=read_only_array(q)), ValueError, r"^out: is read-only"),
    "read-only sums": (
        lambda _, q: primitives.inclusive_scan(on_device(q, 3), out=read_only_array(q)),
        ValueError,
        r"^out: is read",
    ),
    "queue": (lambda _, q: csr_array(S, queue=q.context), TypeError, r"^queue: must be a pyopencl.CommandQueue, is Context"),
    "queue of warmup": (lambda *_: clsparse_py.warmup("gpu"), TypeError, r"^queue: must be a pyopencl.CommandQueue, is str"),
    "device": (lambda *_: clsparse_py.describe("gpu"), TypeError, r"^device: must be a pyopencl.Device, is str"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_what_is_wrong_is_named(queue: cl.CommandQueue, case: str) -> None:
    use, error, message = CASES[case]
    with pytest.raises(error, match=message):
        use(csr_array(S, queue=queue), queue)


def test_an_unsupported_dtype_is_an_error_of_both_kinds(queue: cl.CommandQueue) -> None:
    for error in (TypeError, ValueError):
        with pytest.raises(error, match=r"^data: dtype float128|^data: dtype float16"):
            csr_array(sp.csr_array(np.eye(3, dtype=np.longdouble)), queue=queue)


def test_a_shape_is_a_matrix_without_entries(queue: cl.CommandQueue) -> None:
    for shape, options in (((3, 4), {"dtype": np.float32}), ((0, 0), {"dtype": bool}), ((2, 1 << 40), {"dtype": np.int8})):
        A, wanted = csr_array(shape, **options, queue=queue), sp.csr_array(shape, **options)
        assert (A.shape, A.dtype, A.nnz, A.indices.dtype) == (wanted.shape, wanted.dtype, 0, wanted.indices.dtype)
    if clsparse_py.describe(queue.device).fp64:
        assert csr_array((3, 4), queue=queue).dtype == sp.csr_array((3, 4)).dtype


class Answers:
    """An operand that knows how to multiply by a matrix."""

    def __matmul__(self, other: object) -> str:
        return f"before a {type(other).__name__}"

    def __rmatmul__(self, other: object) -> str:
        return f"behind a {type(other).__name__}"


def test_products_with_other_classes_are_theirs(queue: cl.CommandQueue) -> None:
    A = csr_array(S, queue=queue)
    assert (A @ Answers(), Answers() @ A) == ("behind a csr_array", "before a csr_array")


def test_arrays_that_reach_past_their_buffers_are_refused(queue: cl.CommandQueue) -> None:
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 16)

    def past(n: int, dtype: type = np.float32, **options: Any) -> cl_array.Array:
        return cl_array.Array(queue, (n,), dtype, data=buffer, **options)

    A, message = csr_array(S, queue=queue), "needs bytes .* of its buffer, which has 16"
    wide = csr_array((3, 5), dtype=np.float32, queue=queue)
    uses: dict[str, Callable[[], Any]] = {
        "x": lambda: wide @ past(5),
        "out": lambda: spmv(csr_array((5, 3), dtype=np.float32, queue=queue), on_device(queue, 3), out=past(5)),
        "data": lambda: csr_array((past(5), np.zeros(5, int), [0, 5]), shape=(1, 1)),
        "indices": lambda: csr_array((np.zeros(5), past(5, np.int32), [0, 5]), shape=(1, 1), dtype=np.float32),
        "a": lambda: primitives.inclusive_scan(past(5)),
    }
    for name, use in uses.items():
        with pytest.raises(ValueError, match=rf"^{name}: {message}"):
            use()
    with pytest.raises(ValueError, match=rf"^data: {message}"):
        clsparse_py.transpose_plan(A)(past(4, offset=4))
    fits = past(4)
    fits.fill(0)
    np.testing.assert_array_equal((A @ fits[1:]).get(), 0)


def test_without_double_precision_errors_say_what_to_ask_for(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(fp64=False)
    host = sp.csr_array(np.array([[1, 0, 2], [0, 3, 0]], np.int32))
    A = csr_array(host, queue=queue)
    for operate in (lambda M: M / 2, lambda M: M.mean(), lambda M: M.T.mean(axis=0), lambda M: M.sqrt(), lambda M: M * 0.5):
        with pytest.raises(TypeError, match=r"^dtype: .*float64.*dtype=np.float32"):
            operate(A)
    np.testing.assert_allclose((A.astype(dtype=np.float32) * (1 / 2)).toarray(), host.toarray() / 2)
    for axis in (None, 0, 1):
        result = A.mean(axis=axis, dtype=np.float32)
        np.testing.assert_allclose(result, host.mean(axis=axis), rtol=1e-6)
        assert result.dtype == np.float32
