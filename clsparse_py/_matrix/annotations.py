"""Types of arguments and results, for signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
import pyopencl as cl
from pyopencl import array as cl_array

__all__ = [
    "Extreme", "HasPairType", "HasVectorType", "NumPyScalar", "Number", "OfAxis", "Pair", "Scalar", "SciPySparse", "Solver",
    "Values", "of_axis", "of_extreme", "solver",
]  # fmt: skip

_Options = ParamSpec("_Options")
_Class = TypeVar("_Class", covariant=True)

#: A number: Python's, NumPy's, or an array without dimensions.
Scalar: TypeAlias = complex | np.number[Any] | np.bool_ | npt.NDArray[Any]
#: A number: Python's or NumPy's.
Number: TypeAlias = complex | np.number[Any] | np.bool_
#: The number that a reduction of an array returns, as NumPy's; of booleans it is `numpy.bool_`, whose methods are alike.
NumPyScalar: TypeAlias = np.number[Any]
#: Two device arrays of one length: sorted keys, and the value of each key.
Pair: TypeAlias = tuple[cl_array.Array, cl_array.Array]
#: Values on the device, or an object that NumPy converts to an array.
Values: TypeAlias = cl_array.Array | npt.ArrayLike


class SciPySparse(Protocol):
    """A sparse matrix or array of SciPy, which has no types of its own unless its stubs are installed."""

    @property
    def ndim(self) -> int:
        """The number of dimensions of SciPy's matrix or array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns of SciPy's matrix or array."""

    def tocsr(self) -> Any:
        """Return SciPy's matrix or array in CSR form."""


class HasPairType(Protocol[_Class]):
    """A sparse array that declares the class of its sums and products with sparse arrays."""

    @property
    def _pair_type(self) -> _Class:
        """The class of the sum or product of two sparse arrays."""


class HasVectorType(Protocol[_Class]):
    """A sparse array that declares the class of its single rows and columns, which are one-dimensional."""

    @property
    def _vector_type(self) -> _Class:
        """The class of a single row or column of the sparse array."""


class OfAxis(Protocol):
    """The type of the reductions ``A.sum`` and ``A.mean``."""

    @overload
    def __call__(self, axis: None = None, dtype: Any = None, out: None = None, *, like: None = None) -> NumPyScalar: ...

    @overload
    def __call__(self, axis: int, dtype: Any = None, out: None = None, *, like: None = None) -> npt.NDArray[Any]: ...

    @overload
    def __call__(
        self, axis: int | None = None, dtype: Any = None, out: None = None, *, like: cl_array.Array | cl.CommandQueue
    ) -> cl_array.Array: ...

    @overload
    def __call__(self, axis: Any = None, dtype: Any = None, out: Any = None, *, like: Any = None) -> Any: ...


class Extreme(Protocol[_Class]):
    """The type of the reductions ``A.max``, ``A.min``, ``A.nanmax`` and ``A.nanmin``."""

    @overload
    def __call__(self, axis: None = None, out: None = None, *, explicit: bool = False) -> NumPyScalar: ...

    @overload
    def __call__(self, axis: int, out: None = None, *, explicit: bool = False) -> _Class: ...

    @overload
    def __call__(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any: ...


class Solver(Protocol[_Options]):
    """A function that solves ``A x = b``; x is an array of the same library as b."""

    @overload
    def __call__(
        self, A: Any, b: cl_array.Array, *options: _Options.args, **keywords: _Options.kwargs
    ) -> tuple[cl_array.Array, int]: ...

    @overload
    def __call__(
        self, A: Any, b: npt.NDArray[Any], *options: _Options.args, **keywords: _Options.kwargs
    ) -> tuple[npt.NDArray[Any], int]: ...

    @overload
    def __call__(self, A: Any, b: Any, *options: _Options.args, **keywords: _Options.kwargs) -> tuple[Any, int]: ...

    # By PEP 612, A and b have no names in signatures with a ParamSpec; mypy takes them for names all the same.
    @overload
    def __call__(self, *, A: Any, b: Any, **keywords: Any) -> tuple[Any, int]: ...


def of_axis(method: Callable[..., Any]) -> OfAxis:
    """Return the given method, ``A.sum`` or ``A.mean``, with the type `OfAxis`, by which type checkers know its results."""
    return cast("OfAxis", method)


def of_extreme(method: Callable[..., Any]) -> Extreme[Any]:
    """Return the given method, ``A.max``, say, with the type `Extreme`, by which type checkers know its results."""
    return cast("Extreme[Any]", method)


def solver(function: Callable[Concatenate[Any, Any, _Options], tuple[Any, int]]) -> Solver[_Options]:
    """Return the given function, which solves ``A x = b``, with the type `Solver`, by which type checkers know its results."""
    return cast("Solver[_Options]", function)
