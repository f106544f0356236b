"""Functions of stored values against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse
from expressions import check

import clsparse_py as sp
from clsparse_py._device.device import describe
from clsparse_py._operations.elementwise import operators
from clsparse_py._operations.elementwise.operators import UFUNCS, Unary

POWERS = ("A**2", "A**3", "A**-1", "A**0", "A**1", "A.power(2.5)", "A.power(2, dtype=np.float32)", "A.power(A)", "np.power(A, 2)")
OTHERS = (
    "abs(A)",
    "-A",
    "round(A)",
    "round(A, 1)",
    "round(A, -1)",
    "A.conj()",
    "A.real",
    "A.imag",
    "np.abs(A)",
    "np.square(A)",
    "np.exp(A)",
    "np.sign(A)",
    "np.floor(A)",
)


def matrix(dtype: str) -> scipy.sparse.csr_array:
    """Return a matrix of values for which most functions are defined, and some for which they are not."""
    values = np.array([[0.25, 0, -0.75, 0.5], [0, 0, 0, 0], [-1.5, 2, 0, 3.25]])
    if dtype[0] == "c":
        values = values + 1j * np.array([[0.5, 0, -0.25, 0], [0, 0, 0, 0], [2, -1.25, 0, -3]])
    return scipy.sparse.csr_array((values * 4 if np.dtype(dtype).kind in "iu" else values).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_functions(queue: cl.CommandQueue, dtype: str) -> None:
    for form in ("csr", "csc"):
        A = matrix(dtype).asformat(form)
        for name, function in UFUNCS.items():
            if hasattr(A, name):
                check(queue, f"np.{name}(A)" if name in ("sin", "sqrt", "rint") else f"A.{name}()", A=A)
            elif function.expression(A.dtype):
                result = getattr(sp.csr_array(A, queue=queue).asformat(form), name)()
                np.testing.assert_allclose(result.toarray(), function.on_arrays(A.toarray()), rtol=1e-5)
        for expression in (*POWERS, *OTHERS):
            check(queue, expression, A=A)


@pytest.mark.parametrize("dtype", ["int8", "bool", "int32", "uint16"])
def test_functions_of_integers(queue: cl.CommandQueue, dtype: str) -> None:
    if not describe(queue.device).fp64:
        pytest.skip("functions of integers are float64")
    A = matrix(dtype)
    for expression in (*POWERS, *OTHERS, *(f"A.{name}()" for name in ("sqrt", "sign", "floor", "rint", "deg2rad"))):
        # In SciPy what NumPy gives as float16 is an error.
        check(queue, expression, A=A)


def test_special_values(queue: cl.CommandQueue) -> None:
    A = scipy.sparse.csr_array(np.array([[np.nan, np.inf, -np.inf, -0.0, 1e-30, 1e30]], np.float32))
    for name in ("sign", "floor", "rint", "sqrt", "log1p", "tanh"):
        check(queue, f"A.{name}()", A=A)


def test_complex_infinities(queue: cl.CommandQueue) -> None:
    parts = np.float32([-np.inf, -100, -0.0, 0.0, 0.5, 3, 1e25, np.inf])
    # No parts are multiplied: an infinity times 0 is NaN.
    values = np.stack(np.meshgrid(parts, parts), -1).view(np.complex64).ravel()
    A = scipy.sparse.csr_array((values, np.arange(values.size), [0, values.size]), shape=(1, values.size))
    for name in ("sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "expm1", "log1p", "sqrt"):
        result = getattr(sp.csr_array(A, queue=queue), name)().data.get()
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(values)
        finite = np.isfinite(wanted)
        np.testing.assert_allclose(result[finite], wanted[finite], rtol=1e-5, atol=1e-6, err_msg=name)
        assert not np.isfinite(result[~finite]).any(), name


def test_what_is_finite_though_its_factors_are_not(queue: cl.CommandQueue) -> None:
    single = np.complex64([1 + 88j, 1 + 89.2j, -2 + 89.4j, 1 - 89.3j, 0.5 + 89.41j, 1.5 - 89.4j, 3 + 79j, 3 - 81j])
    for values in (single, np.complex128([1 + 709j, 2 - 710.4j, 1.5 + 710.4j, 1 + 699j, 1 - 701j])):
        if values.dtype == np.complex64 or describe(queue.device).fp64:
            A = scipy.sparse.csr_array(values[None])
            check(queue, "A.sin()", A=A)
            check(queue, "A.sinh()", A=scipy.sparse.csr_array((values * 1j)[None]))


def test_a_function_of_ours_is_refused_where_it_has_no_expression(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(operators.UNARY, "sin", Unary("sin", "", "", "sin(a)", "", lambda values: np.sin(values)))
    check(queue, "A.sin()", A=matrix("float32"))
    with pytest.raises(TypeError, match="sin is not defined for complex64"):
        sp.csr_array(matrix("complex64"), queue=queue).sin()
