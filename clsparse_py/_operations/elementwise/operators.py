"""Element-wise operators: dtypes and OpenCL C."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import OPENCL_TYPES, conversion, extreme, needs_fp64, operation

__all__ = ["BINARY", "OPERATORS", "UFUNCS", "UNARY", "Operator", "Unary", "lines_of_two", "operation_lines"]

#: Comparison a < b of complex numbers in OpenCL C, in NumPy's order: by the real part, then by the imaginary part.
_LESS = "(a.x < b.x || (a.x == b.x && a.y < b.y))"
#: Comparison a > b of complex numbers, in OpenCL C.
_GREATER = "(a.x > b.x || (a.x == b.x && a.y > b.y))"
#: Comparison a <= b of complex numbers, in OpenCL C.
_NOT_GREATER = "(a.x < b.x || (a.x == b.x && a.y <= b.y))"
#: Comparison a >= b of complex numbers, in OpenCL C.
_NOT_LESS = "(a.x > b.x || (a.x == b.x && a.y >= b.y))"
#: Product of two complex numbers a and b, in OpenCL C.
_TIMES = operation("times", np.dtype("F"))


def _wrap_around(sign: str) -> str:
    """Return the OpenCL C expression of the sum, difference or product of two integers, which wraps around as in NumPy.

    C does not define overflow of signed integers: a compiler may assume that a product of nonzero numbers is nonzero, and then a
    kernel counts an entry that another kernel does not write.
    """
    return f"(T)((ulong)a {sign} (ulong)b)"


@dataclass(frozen=True)
class Operator:
    """An elementwise operator on two values, such as a sum or a comparison.

    Attributes
    ----------
    name : str
        As SciPy calls it.
    of_scipy : callable
        The operator on two of SciPy's matrices.
    number, boolean, complex : str
        The operator's value for ``a`` and ``b`` of the type T, in OpenCL C: for real numbers, booleans and complex numbers.
    compares : bool
        Whether the result is a boolean.
    opposite : str
        The name of the operator that is true if this one is false; empty if the operator is 0 for two zeros, so that the result
        has no entry where neither matrix has an entry.
    integer : str
        As ``number``, if it is another expression for integers.
    """

    name: str
    of_scipy: Callable[[Any, Any], Any]
    number: str
    boolean: str
    complex: str
    compares: bool = False
    opposite: str = ""
    integer: str = ""

    def expression(self, dtype: np.dtype[Any]) -> str:
        """Return the OpenCL C expression of an elementwise operator on two values ``a`` and ``b`` of a dtype."""
        kinds = {"b": self.boolean, "c": self.complex}
        if self.integer:
            kinds |= dict.fromkeys("iu", self.integer)
        return kinds.get(dtype.kind, self.number)

    def on_arrays(self, a: Any, b: Any) -> Any:
        """Return an elementwise operator's results on two NumPy arrays."""
        return getattr(np, self.name, self.of_scipy)(a, b)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of an elementwise operator's results on values of a dtype: bool for comparisons, else the same."""
        return np.dtype(bool) if self.compares else dtype


#: Elementwise operators on two sparse matrices, by SciPy's names.
OPERATORS: dict[str, Operator] = {
    row.name: row
    for row in (
        Operator("plus", operator.add, "a + b", "a || b", "a + b", integer=_wrap_around("+")),
        Operator("minus", operator.sub, "a - b", "a != b", "a - b", integer=_wrap_around("-")),
        Operator("multiply", lambda A, B: A.multiply(B), "a * b", "a && b", _TIMES, integer=_wrap_around("*")),
        # Maximum and minimum of two sparse values are the first value if one of both is NaN, as in SciPy.
        Operator("maximum", lambda A, B: A.maximum(B), "a < b ? b : a", "a || b", f"{_LESS} ? b : a"),
        Operator("minimum", lambda A, B: A.minimum(B), "b < a ? b : a", "a && b", f"{_GREATER} ? b : a"),
        Operator("ne", operator.ne, "a != b", "a != b", "any(a != b)", compares=True),
        Operator("lt", operator.lt, "a < b", "a < b", _LESS, compares=True),
        Operator("gt", operator.gt, "a > b", "a > b", _GREATER, compares=True),
        Operator("eq", operator.eq, "a == b", "a == b", "all(a == b)", True, "ne"),
        Operator("le", operator.le, "a <= b", "a <= b", _NOT_GREATER, True, "gt"),
        Operator("ge", operator.ge, "a >= b", "a >= b", _NOT_LESS, True, "lt"),
    )
}


def _define_extreme(name: str) -> Operator:
    """Return the elementwise operator of NumPy's function ``name`` for the larger or the smaller of two values."""
    number, boolean, pair, integer = (extreme(name, np.dtype(kind)) for kind in "f?Fi")
    return Operator(name, getattr(np, name), number, boolean, pair, integer=integer)


def _compare_signed(comparison: Operator, *, is_left: bool) -> Operator:
    """Return the operator that compares a signed (the left one if ``is_left``) and an unsigned integer, both given as uint64."""
    signed, holds = ("a", comparison.of_scipy(-1, 0)) if is_left else ("b", comparison.of_scipy(0, -1))

    def of_arrays(a: Any, b: Any) -> Any:
        """Return the comparison of two NumPy arrays of uint64, one of which holds the bits of signed integers."""
        return np.where((a if is_left else b).view(np.int64) < 0, holds, comparison.of_scipy(a, b))

    expression = f"(long){signed} < 0 ? {int(holds)} : ({comparison.number})"
    return Operator(
        f"{comparison.name}_{'signed_left' if is_left else 'signed_right'}", of_arrays, expression, "", "", compares=True
    )


#: Elementwise operators on a matrix and a scalar or dense matrix, by name: those of `OPERATORS`, with NumPy's maximum and
#: minimum in place of SciPy's, and others such as "divide".
BINARY: dict[str, Operator] = OPERATORS | {
    row.name: row
    for row in (
        *(
            _compare_signed(comparison, is_left=left)
            for comparison in OPERATORS.values()
            if comparison.compares
            for left in (True, False)
        ),
        Operator("divide", np.divide, "a / b", "", "complex_product(a, complex_inverse(b))"),
        Operator("second", lambda _, b: b, "b", "b", "b"),
        Operator("power", operator.pow, "pow(a, b)", "", "complex_power(a, b)", integer="integer_power(a, b)"),
        # Maximum and minimum with a scalar or dense matrix are NaN if one of both values is, as in NumPy.
        *(_define_extreme(name) for name in ("maximum", "minimum", "fmax", "fmin")),
    )
}


@dataclass(frozen=True)
class Unary:
    """An operation on one value ``a`` of the type T, in OpenCL C, for each kind of numbers; empty if there is none.

    Attributes
    ----------
    name : str
        NumPy's name of the function.
    signed, unsigned, real, complex : str
    of_numpy : callable, optional
        The function on NumPy's arrays, if NumPy has none of that name. Its dtypes are the results'; a TypeError is one here.
    """

    name: str
    signed: str
    unsigned: str
    real: str
    complex: str
    of_numpy: Callable[[Any], Any] | None = None

    def on_arrays(self, values: Any) -> Any:
        """Return the results of a function of one value, such as the sine, on a NumPy array."""
        return (self.of_numpy or getattr(np, self.name))(values)

    def expression(self, dtype: np.dtype[Any]) -> str:
        """Return the OpenCL C expression of a function of one value ``a`` of a dtype; "" if there is none."""
        return {"i": self.signed, "f": self.real, "c": self.complex}.get(dtype.kind, self.unsigned)


#: Functions of each stored value, by the names of matrices' methods such as "sin": all give 0 for 0, so that the pattern stays.
UFUNCS: dict[str, Unary] = {
    row.name: row
    for row in (
        *(
            Unary(name, "", "", f"{of_opencl}(a)", f"complex_{of_opencl}(a)")
            for name, of_opencl in (
                ("sin", "sin"), ("tan", "tan"), ("arcsin", "asin"), ("arctan", "atan"), ("sinh", "sinh"), ("tanh", "tanh"),
                ("arcsinh", "asinh"), ("arctanh", "atanh"), ("expm1", "expm1"), ("log1p", "log1p"), ("sqrt", "sqrt"),
            )
        ),
        Unary("rint", "", "", "rint(a)", "rint(a)"),
        Unary("sign", "(a > 0) - (a < 0)", "a != 0", "a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a", "complex_sign(a)"),
        Unary("deg2rad", "", "", "radians(a)", ""),
        Unary("rad2deg", "", "", "degrees(a)", ""),
        Unary("floor", "a", "a", "floor(a)", ""),
        Unary("ceil", "a", "a", "ceil(a)", ""),
        Unary("trunc", "a", "a", "trunc(a)", ""),
    )
}  # fmt: skip

#: Operations on one value, by NumPy's name if it has one; all functions of `UFUNCS` included.
UNARY: dict[str, Unary] = {
    row.name: row
    for row in (
        Unary("positive", "a", "a", "a", "a"),
        Unary("negative", "-a", "-a", "-a", "-a"),
        # The operation "from_zero" is 0 - a: the negative of 0 is 0, not -0.
        Unary("from_zero", "-a", "-a", "0 - a", "(T)(0) - a"),
        Unary("absolute", "(T)abs(a)", "a", "fabs(a)", "hypot(a.x, a.y)"),
        Unary("conjugate", "a", "a", "a", "(T)(a.x, -a.y)"),
        Unary("real", "a", "a", "a", "a.x"),
        Unary("imag", "0", "0", "0", "a.y"),
        Unary("square", "a * a", "a * a", "a * a", "complex_product(a, a)"),
        Unary("reciprocal", "", "", "1 / a", "complex_inverse(a)"),
    )
} | UFUNCS


def _helper_lines(expression: str, dtype: np.dtype[Any]) -> list[str]:
    """Return the OpenCL C that includes the complex functions or integer power that an expression calls; [] if it calls none."""
    if "complex_" in expression:
        real = {"complex64": "float", "complex128": "double"}[dtype.name]
        return [f"#define REAL {real}", '#include "complex_functions.cl"']
    return ['#include "integer_power.cl"'] if "integer_power" in expression else []


def operation_lines(a: str, inner: str, result: str, expression: str, parameters: str = "const T a, const T b") -> list[str]:
    """Return the OpenCL C of an elementwise operation: types of values, computation and results, and its function ``operate``."""
    dtypes = [np.dtype(name) for name in (a, inner, result)]
    return [
        *(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if needs_fp64(*dtypes) else []),
        f"typedef {OPENCL_TYPES[a]} A_VALUE;  // {a}",
        f"typedef {OPENCL_TYPES[inner]} T;  // {inner}: values are computed in it",
        f"typedef {OPENCL_TYPES[result]} C_VALUE;  // {result}",
        f"T from_a(const A_VALUE v) {{ return {conversion(dtypes[0], dtypes[1])}; }}",
        *_helper_lines(expression, dtypes[1]),
        f"C_VALUE operate({parameters}) {{ return {expression}; }}",
    ]


def lines_of_two(a: str, b: str, result: str, expression: str) -> list[str]:
    """Return the OpenCL C lines of an elementwise operation on values of two dtypes, computed in the common dtype of both."""
    inner = np.result_type(a, b)
    return [
        *operation_lines(a, inner.name, result, expression),
        f"typedef {OPENCL_TYPES[b]} B_VALUE;  // {b}",
        f"T from_b(const B_VALUE v) {{ return {conversion(np.dtype(b), inner)}; }}",
    ]
