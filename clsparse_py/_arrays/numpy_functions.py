"""The functions of NumPy that take sparse arrays, and the operators and methods that implement them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from clsparse_py._operations.elementwise.operators import UFUNCS

__all__ = ["METHODS", "OPERATORS", "REFUSED", "UNARY_FUNCTIONS"]

#: Names of the methods of the left and of the right operand that implement a NumPy ufunc of two operands, by the ufunc.
OPERATORS: Mapping[np.ufunc, tuple[str, str]] = {
    np.add: ("__add__", "__radd__"),
    np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"),
    np.true_divide: ("__truediv__", "__rtruediv__"),
    np.power: ("__pow__", "__rpow__"),
    np.matmul: ("__matmul__", "__rmatmul__"),
    np.maximum: ("maximum", "maximum"),
    np.minimum: ("minimum", "minimum"),
    np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"),
    np.less: ("__lt__", "__gt__"),
    np.less_equal: ("__le__", "__ge__"),
    np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"),
}
#: Functions that call the method or operator of a sparse array that implements a NumPy ufunc of one operand, by the ufunc.
UNARY_FUNCTIONS: Mapping[np.ufunc, Callable[[Any], Any]] = {
    np.negative: operator.neg,
    np.absolute: abs,
    np.conjugate: operator.methodcaller("conjugate"),
    np.square: lambda A: A * A,
    **{
        getattr(np, name): operator.methodcaller(name)
        for name, function in UFUNCS.items()
        if function.of_numpy is None and name not in ("sign", "floor", "ceil", "trunc")
    },
}
#: Names of the methods or attributes of sparse arrays that implement NumPy functions that are no ufuncs, by function name.
METHODS: Mapping[str, str] = {
    **{name: name for name in ("argmax", "argmin", "astype", "copy", "count_nonzero", "diagonal", "dot", "imag", "max", "mean")},
    **{name: name for name in ("min", "nanmax", "nanmin", "nonzero", "real", "reshape", "sum", "trace", "transpose")},
    **dict(zip(("amax", "amin", "around", "round"), ("max", "min", "__round__", "__round__"), strict=True)),
}
#: Classes of errors, by the NumPy ufunc that sparse arrays refuse, as SciPy's do, though they have a method of its name.
REFUSED = {np.sign: ValueError, np.floor: TypeError, np.ceil: TypeError, np.trunc: TypeError}
