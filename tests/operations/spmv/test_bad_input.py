"""What `spmv` and ``A @ x`` refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pyopencl import array as cl_array

from clsparse_py import csr_array, min_plus, spmv
from clsparse_py._device.device import describe
from clsparse_py._precision.semiring import SEMIRINGS

pytestmark = pytest.mark.any_platform


class TestBadInput:
    """Each error names the argument, what came, and what is needed."""

    @pytest.mark.parametrize(
        ("x", "error", "message"),
        [
            (np.ones(299, np.float32), ValueError, r"^x: must have 300 rows, as A is 300 x 300, has shape \(299,\)"),
            (np.array([None] * 300), TypeError, r"^x: dtype object is not supported; use one of"),
            (["a"] * 300, TypeError, r"^x: dtype <U1 is not supported; use one of"),
            (np.ones(300, np.float16), TypeError, r"^x: dtype float16 is not supported; use one of .*float32"),
            (np.ones((299, 2), np.float32), ValueError, r"^X: must have 300 rows, as A is 300 x 300, has shape \(299, 2\)"),
        ],
        ids=str,
    )
    def test_operand(self, square: tuple[sp.csr_array, csr_array], x: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            square[1] @ x

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"alpha": "2"}, TypeError, r"^alpha: must be a number, is '2'"),
            ({"alpha": [1, 2]}, TypeError, r"^alpha: must be a scalar, is list"),
            ({"alpha": 1j}, TypeError, r"^alpha: 1j does not fit the result's dtype, float32"),
            ({"beta": 2}, ValueError, r"^beta: needs out"),
            ({"beta": None, "alpha": 2, "semiring": min_plus}, ValueError, r"^alpha: belongs to plus_times, not to min_plus"),
            ({"semiring": "min_plus"}, TypeError, r"^semiring: must be one of clsparse_py._precision.semiring, is str"),
            ({"plan": "merge"}, TypeError, r"^plan: must be an SpmvPlan, is str"),
            ({"out": [0] * 300}, TypeError, r"^out: must be a numpy.ndarray, as x is, is list"),
            ({"out": np.zeros(299, np.float32)}, ValueError, r"^out: must have shape \(300,\), has \(299,\)"),
            ({"out": np.zeros(300, np.int32)}, TypeError, r"^out: must have the result's dtype float32, has int32"),
            ({"out": np.zeros(600, np.float32)[::2]}, ValueError, r"^out: must be C-contiguous, has strides \(8,\)"),
        ],
        ids=str,
    )
    def test_options(self, square: tuple[sp.csr_array, csr_array], options: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            spmv(square[1], np.ones(300, np.float32), **options)

    @pytest.mark.parametrize(
        ("dtype", "alpha", "fits"),
        [("uint8", 2, True), ("uint8", -1, False), ("uint8", 256, False), ("int8", -128, True), ("int32", 1 << 31, False),
         ("int32", 0.5, False), ("bool", 2, False), ("bool", True, True), ("complex64", 1j, True),
         ("float32", np.float64(2), True)],
    )  # fmt: skip
    def test_alpha_fits_the_result(self, queue: cl.CommandQueue, dtype: str, alpha: Any, fits: bool) -> None:
        A, x = csr_array(sp.csr_array(np.ones((2, 2), dtype)), queue=queue), np.ones(2, dtype)
        if fits:
            np.testing.assert_array_equal(spmv(A, x, alpha=alpha), np.full(2, (A.get() @ x)[0] * np.array(alpha, dtype), dtype))
        else:
            with pytest.raises(TypeError, match=rf"^alpha: .* does not fit the result's dtype, {dtype}"):
                spmv(A, x, alpha=alpha)

    def test_out_beside_another_kind_of_x(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        x, on_device = np.ones(300, np.float32), cl_array.zeros(A.queue, 300, np.float32)
        with pytest.raises(TypeError, match=r"^out: must be a numpy.ndarray, as x is, is Array"):
            spmv(A, x, out=on_device)
        with pytest.raises(TypeError, match=r"^out: must be a pyopencl.array.Array, as x is, is ndarray"):
            spmv(A, on_device, out=x)

    @pytest.mark.parametrize("semiring", [semiring for semiring in SEMIRINGS.values() if semiring.ordered], ids=repr)
    def test_complex_values_have_no_order(self, queue: cl.CommandQueue, semiring: Any) -> None:
        A = csr_array(sp.csr_array(np.ones((2, 2), np.complex64)), queue=queue)
        with pytest.raises(
            TypeError, match=rf"^semiring: {semiring.name} orders its values, which complex ones \(complex64, float32\)"
        ):
            spmv(A, np.ones(2, np.float32), semiring=semiring)

    def test_matrix_of_another_library(self) -> None:
        with pytest.raises(TypeError, match=r"^A: must be a clsparse_py.csr_array, is "):
            spmv(sp.eye_array(3, format="csr"), np.ones(3))

    def test_another_context(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        context = cl.Context([A.queue.device])
        other = cl.CommandQueue(context, A.queue.device)
        foreign = cl_array.zeros(other, 300, np.float32)
        own = cl_array.zeros(A.queue, 300, np.float32)
        with pytest.raises(ValueError, match=r"^x: lives in another context than A"):
            A @ foreign
        with pytest.raises(ValueError, match=r"^out: lives in another context than A"):
            spmv(A, own, out=foreign)
        with pytest.raises(ValueError, match=r"^data: lives in another context than the queue of the matrix"):
            csr_array(A, queue=other)

    def test_byte_order_on_the_device(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        with pytest.raises(TypeError, match=r"^x: must be in the host's byte order, is >f4"):
            A @ cl_array.to_device(A.queue, np.ones(300, ">f4"))

    def test_double_precision_on_a_device_without_it(self, square: tuple[sp.csr_array, csr_array]) -> None:
        _, A = square
        if describe(A.queue.device).fp64:
            pytest.skip("the device has double precision")
        for x in (np.ones(300), np.ones(300, np.complex128)):
            with pytest.raises(TypeError, match=rf"^x: {x.dtype} needs double precision, which .* lacks; use single precision"):
                A @ x
        with pytest.raises(TypeError, match=r"^dtype: float64 needs double precision, which .* lacks; use dtype=float32"):
            csr_array(sp.eye_array(3, format="csr"), queue=A.queue)
        with pytest.raises(TypeError, match=r"^x: float64 needs double precision"):
            A @ np.ones(300, np.int32)  # float32 times int32 is float64, as in SciPy
