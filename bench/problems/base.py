"""Base of all problems: their part of the results file, and the check of a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clsparse_py._ground.rounding import max_share

Array = npt.NDArray[Any]
# The result of a contestant: one array or several, in the order of the problem's reference.
Result = tuple[Array, ...]
# Elements of a result that are compared at a time: they stay in the processor's cache.
_PART = 1 << 16


class WrongResultError(Exception):
    """A contestant's result is not what it has to be."""


@dataclass(frozen=True, eq=False)
class Problem(ABC):
    """Something to compute, and what is known about it before anybody computes it.

    Attributes
    ----------
    input
        The name of what it is computed from: a matrix of the gallery, a file, or a primitive's input.
    operation
        What is computed.
    dtype
        NumPy's name of the precision that is measured.
    reference
        The arrays that it must come out as.
    """

    input: str
    operation: str
    dtype: str
    reference: Result

    @property
    @abstractmethod
    def minimal_bytes(self) -> int:
        """The bytes that the operation has to move: those of its floor."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return what the results file says of the input's size."""

    @abstractmethod
    def error(self, result: Result) -> float:
        """Return the largest error of a result in units of what rounding explains, so that 1 is the most that is right.

        Raises
        ------
        WrongResultError
            If it is more than 1, or an array has another shape or dtype.
        """


@dataclass(frozen=True, eq=False)
class ExactProblem(Problem):
    """A problem with one right result, bit by bit."""

    def error(self, result: Result) -> float:
        """Return 0 for the right result; see the base class."""
        require_kinds(result, self.reference)
        for number, (part, expected) in enumerate(zip(result, self.reference, strict=True)):
            wrong = np.flatnonzero(bits(part) != bits(expected))
            if wrong.size:
                first = int(wrong[0])
                raise WrongResultError(
                    f"{wrong.size} of {part.size} elements of array {number} are wrong; element {first} is {part[first]!r}, "
                    f"needs {expected[first]!r}"
                )
        return 0.0


def bits(array: Array) -> Array:
    """Return an array's elements as unsigned words, by which equality is exact for NaN and zeros of either sign too."""
    words: Array = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return words


def require_kinds(result: Result, like: Result) -> None:
    """Check the number of arrays, their dtypes and their shapes.

    Raises
    ------
    WrongResultError
        If they are not those of ``like``.
    """
    got, needs = (", ".join(f"{part.dtype} {part.shape}" for part in parts) for parts in (result, like))
    if got != needs:
        raise WrongResultError(f"got {got}, needs {needs}")


def largest_error(result: Array, expected: Array, bound: Array, what: str) -> float:
    """Return the largest distance of an element from what it has to be, in units of its bound.

    Parameters
    ----------
    what
        What a message calls an element.

    Raises
    ------
    WrongResultError
        If one is off by more than its bound.
    """
    share, wrong = 0.0, []
    for start in range(0, result.size, _PART):
        part = slice(start, start + _PART)
        parts = result[part], expected[part], bound[part]
        # A result of nothing but zeros has a bound of zero; NaN compares false with everything, hence "not <=".
        wrong.append(start + np.flatnonzero(~(np.abs(parts[0] - parts[1]) <= parts[2])))
        share = max(share, max_share(*parts))
    if n_wrong := sum(places.size for places in wrong):
        first = next(int(places[0]) for places in wrong if places.size)
        raise WrongResultError(
            f"{n_wrong} of {result.size} {what}s are off; {what} {first} is {result[first]!r}, needs {expected[first]!r} "
            f"within {bound[first]:.3g}"
        )
    return share
