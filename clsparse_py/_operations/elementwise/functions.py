"""The methods of SciPy's arrays that apply a function to each stored value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self

from clsparse_py._matrix.convert import convert, copied
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._operations.elementwise.operands import is_scalar, scalar_of
from clsparse_py._operations.elementwise.operators import UFUNCS
from clsparse_py._operations.elementwise.union import canonical_of
from clsparse_py._operations.elementwise.values import map_values, map_with_scalar, require_results

__all__ = ["Functions"]


def _define_method(name: str) -> Callable[[Any], Any]:
    """Return a method, such as ``sin``, that applies a function of `UFUNCS` to a matrix's stored values, duplicates added up."""

    def method(self: Any) -> Any:
        """Return the matrix of a function of `UFUNCS`, such as the sine, of each stored value; ``__doc__`` is replaced below."""
        return self._map_summed_values(name)

    method.__name__, method.__qualname__ = name, f"Functions.{name}"
    whose = f"`{name}`" if UFUNCS[name].of_numpy else f"`numpy.{name}`"
    method.__doc__ = (
        f"Return the matrix of {whose} of each stored value; duplicates are added up before.\n\n"
        "Raises\n------\nTypeError\n"
        "    There is no such function for the dtype, or its results are of one that is not supported or that the device\n"
        "    lacks: those of integers are float64, without which ``A.astype(np.float32)`` helps.\n"
    )
    return method


class Functions(Matrix):
    """Base of matrices with functions of stored values. Results share the structure, if it has no duplicates."""

    sin = _define_method("sin")
    tan = _define_method("tan")
    arcsin = _define_method("arcsin")
    arctan = _define_method("arctan")
    sinh = _define_method("sinh")
    tanh = _define_method("tanh")
    arcsinh = _define_method("arcsinh")
    arctanh = _define_method("arctanh")
    rint = _define_method("rint")
    sign = _define_method("sign")
    expm1 = _define_method("expm1")
    log1p = _define_method("log1p")
    deg2rad = _define_method("deg2rad")
    rad2deg = _define_method("rad2deg")
    floor = _define_method("floor")
    ceil = _define_method("ceil")
    trunc = _define_method("trunc")
    sqrt = _define_method("sqrt")

    def __neg__(self) -> Self:
        """Return ``-A``.

        Raises
        ------
        NotImplementedError
            The values are booleans, as in SciPy.
        """
        if self.dtype.kind == "b":
            raise NotImplementedError("A: booleans have no negative; use A.astype(int)")
        return self._map_values("negative")

    def __abs__(self) -> Self:
        """Return the matrix of absolute values; duplicates are added up before, as in SciPy 1.17."""
        return self._map_summed_values("positive" if self.dtype.kind in "bu" else "absolute")

    def __round__(self, ndigits: int = 0) -> Self:
        """Return the matrix of values rounded to so many decimal places, as by `numpy.around`; duplicates are added up before."""
        summed = canonical_of(self, self.dtype)
        result = np.around(np.zeros(0, self.dtype), ndigits).dtype
        require_results(self.queue, f"rounding {self.dtype}", result)
        if result.kind in "iu" and ndigits >= 0:
            return summed.with_values(summed._own_values())
        inner = np.dtype(np.float64) if result.kind in "iu" else result
        require_results(self.queue, f"rounding {self.dtype}", inner)
        scaling, unscaling = ("multiply", "divide") if ndigits >= 0 else ("divide", "multiply")
        values = map_with_scalar(self.queue, summed.data, scaling, inner, 10.0 ** abs(ndigits))
        values = map_values(self.queue, values, "rint")
        values = map_with_scalar(self.queue, values, unscaling, inner, 10.0 ** abs(ndigits))
        return summed.with_values(values if result == inner else convert(self.queue, "values", values, result))

    def power(self, n: Any, dtype: Any = None) -> Self:
        """Return the matrix of the n-th power of each stored value; duplicates are added up before.

        Parameters
        ----------
        n : scalar
            Not 0: the result would be dense.
        dtype : dtype, optional
            The dtype that values are converted to before.

        Raises
        ------
        NotImplementedError
            ``n`` is 0, or no scalar, as in SciPy.
        ValueError
            Values are integers, and ``n`` is a negative one.
        """
        if not is_scalar(n):
            raise NotImplementedError(f"n: must be a scalar, is {type(n).__name__} (input is not scalar)")
        n = scalar_of("n", n)
        if not n:
            raise NotImplementedError(
                "n: must not be 0, as the result is dense (zero power is not supported); use np.ones(A.shape)"
            )
        summed = canonical_of(self, self.dtype)
        data, base_dtype = summed.data, self.dtype if dtype is None else np.dtype(dtype)
        if base_dtype != self.dtype:
            require_results(self.queue, "dtype", base_dtype)
            data = convert(self.queue, "values", data, base_dtype)
        result = (np.ones(1, base_dtype) ** n).dtype
        require_results(self.queue, f"{base_dtype} to the power of {n!r}", result)
        return summed.with_values(_power(self.queue, data, n, np.dtype(result)))

    def __pow__(self, n: Any, modulo: None = None) -> Self:
        """Return `power`."""
        return NotImplemented if modulo is not None else self.power(n)

    def conjugate(self, copy: bool = True) -> Self:
        """Return the matrix of the complex conjugates of the stored values.

        Parameters
        ----------
        copy : bool
            False: a matrix that is not complex is returned as it is.
        """
        if self.dtype.kind == "c":
            return self._map_values("conjugate")
        return self.with_values(self._own_values()) if copy else self

    conj = conjugate

    @property
    def real(self) -> Self:
        """The matrix of the real parts of the stored values, in an array of its own."""
        return self._map_values("real" if self.dtype.kind == "c" else "positive")

    @property
    def imag(self) -> Self:
        """The matrix of the imaginary parts of the stored values: stored zeros if A is not complex."""
        return self._map_values("imag")

    def _map_values(self, operation: str) -> Self:
        """Return the matrix of a unary operation's results on the stored values, on each duplicate by itself."""
        self.require_valid()
        return self.with_values(map_values(self.queue, self.data, operation))

    def _map_summed_values(self, operation: str) -> Self:
        """Return the matrix of a unary operation's results on the stored values, after duplicates were added up."""
        summed = canonical_of(self, self.dtype)
        return summed.with_values(map_values(self.queue, summed.data, operation))

    def _own_values(self) -> cl_array.Array:
        """Return a copy of the device array of the matrix's stored values."""
        self.require_valid()
        return copied(self.queue, "values of the result", self.data)


def _power(queue: cl.CommandQueue, values: cl_array.Array, n: Any, result: np.dtype[Any]) -> cl_array.Array:
    """Return the n-th powers of values, of dtype ``result``: by square, reciprocal or square root where NumPy takes these."""
    is_same_dtype = values.dtype == result
    if n == 2 and is_same_dtype:
        return map_values(queue, values, "square")
    if n == -1 and is_same_dtype and result.kind in "fc":
        return map_values(queue, values, "reciprocal")
    if n == 0.5 and is_same_dtype and result.kind in "fc":
        return map_values(queue, values, "sqrt")
    return map_with_scalar(queue, values, "power", result, n)
