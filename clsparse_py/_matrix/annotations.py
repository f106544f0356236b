"""Types of arguments, for signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
import pyopencl as cl
from pyopencl import array as cl_array

__all__ = [
    "Extreme", "Found", "Gives", "GivesRows", "Number", "OfAxis", "Pair", "Scalar", "SciPySparse", "Solver", "Values",
    "of_axis", "of_extreme", "solver",
]  # fmt: skip

_Options = ParamSpec("_Options")
_Given = TypeVar("_Given", covariant=True)

#: A number: Python's, NumPy's, or an array without dimensions.
Scalar: TypeAlias = complex | np.number[Any] | np.bool_ | npt.NDArray[Any]
#: A number: Python's or NumPy's.
Number: TypeAlias = complex | np.number[Any] | np.bool_
#: A number that an operation gives: NumPy's, of an array of booleans `numpy.bool_`, whose methods are nearly these.
Found: TypeAlias = np.number[Any]
#: Keys, and the values that moved with them.
Pair: TypeAlias = tuple[cl_array.Array, cl_array.Array]
#: Values on the device, or what NumPy makes an array of.
Values: TypeAlias = cl_array.Array | npt.ArrayLike


class SciPySparse(Protocol):
    """A sparse matrix or array of SciPy, which has no types of its own unless its stubs are installed."""

    @property
    def ndim(self) -> int:
        """Dimensions."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """Return it in CSR form."""


class Gives(Protocol[_Given]):
    """A sparse array whose sums and products with others are of a class."""

    @property
    def _of_two(self) -> _Given: ...


class GivesRows(Protocol[_Given]):
    """A sparse array whose single rows and columns are one-dimensional arrays of a class."""

    @property
    def _of_one(self) -> _Given: ...


class OfAxis(Protocol):
    """``A.sum`` and ``A.mean``."""

    @overload
    def __call__(self, axis: None = None, dtype: Any = None, out: None = None, *, like: None = None) -> Found: ...

    @overload
    def __call__(self, axis: int, dtype: Any = None, out: None = None, *, like: None = None) -> npt.NDArray[Any]: ...

    @overload
    def __call__(
        self, axis: int | None = None, dtype: Any = None, out: None = None, *, like: cl_array.Array | cl.CommandQueue
    ) -> cl_array.Array: ...

    @overload
    def __call__(self, axis: Any = None, dtype: Any = None, out: Any = None, *, like: Any = None) -> Any: ...


class Extreme(Protocol[_Given]):
    """``A.max`` and ``A.min``, and those without NaN."""

    @overload
    def __call__(self, axis: None = None, out: None = None, *, explicit: bool = False) -> Found: ...

    @overload
    def __call__(self, axis: int, out: None = None, *, explicit: bool = False) -> _Given: ...

    @overload
    def __call__(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any: ...


class Solver(Protocol[_Options]):
    """A function that solves ``A x = b``: x is as b is."""

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

    # By PEP 612 these two have no names where the others follow; mypy takes them for names all the same.
    @overload
    def __call__(self, *, A: Any, b: Any, **keywords: Any) -> tuple[Any, int]: ...


def of_axis(method: Callable[..., Any]) -> OfAxis:
    """Return a method as it is, for type checkers as an `OfAxis`."""
    return cast("OfAxis", method)


def of_extreme(method: Callable[..., Any]) -> Extreme[Any]:
    """Return a method as it is, for type checkers as an `Extreme`."""
    return cast("Extreme[Any]", method)


def solver(function: Callable[Concatenate[Any, Any, _Options], tuple[Any, int]]) -> Solver[_Options]:
    """Return a function as it is, for type checkers as a `Solver`."""
    return cast("Solver[_Options]", function)
