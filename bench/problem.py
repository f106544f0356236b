"""What is measured: one product of one matrix in one precision, with its reference, its error bound and its floor."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bench import gallery

Array = npt.NDArray[Any]

OPERATIONS = ("spmv",)
DTYPES = ("float64", "float32")


class WrongResultError(Exception):
    """A contestant's result is further from the reference than rounding explains."""


@dataclass(frozen=True, eq=False)
class Problem:
    """y = A @ x, and what is known about it before anybody computes it.

    Attributes
    ----------
    matrix
        A in the precision that is measured.
    x
        The operand, in the same precision.
    reference
        A @ x by SciPy in float64, from the rounded values.
    bound
        How far each element of a result may be from the reference.
    """

    name: str
    operation: str
    matrix: sp.csr_array
    x: Array
    reference: Array
    bound: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that is measured."""
        return self.x.dtype

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, x and y, each array once: no product moves less."""
        a = self.matrix
        return int(a.indptr.nbytes + a.indices.nbytes + a.data.nbytes + self.x.nbytes + self.reference.size * self.x.itemsize)

    @property
    def row_lengths(self) -> tuple[int, float, int]:
        """The shortest, mean and longest row."""
        lengths = np.diff(self.matrix.indptr)
        return (int(lengths.min()), float(lengths.mean()), int(lengths.max())) if lengths.size else (0, 0.0, 0)

    def error(self, result: Array) -> float:
        """Return the largest error of a result in units of its bound, so that 1 is the most that rounding explains.

        Raises
        ------
        WrongResultError
            If it is more than 1, or the result has another shape or precision.
        """
        if result.shape != self.reference.shape or result.dtype != self.dtype:
            raise WrongResultError(f"got {result.dtype} {result.shape}, needs {self.dtype} {self.reference.shape}")
        # An empty row has a bound of zero and must come out as zero; NaN compares false with everything, hence "not <=".
        distance = np.abs(result - self.reference)
        wrong = np.flatnonzero(~(distance <= self.bound))
        if wrong.size:
            row = int(wrong[0])
            raise WrongResultError(
                f"{wrong.size} of {distance.size} rows are off; row {row} is {result[row]!r}, needs {self.reference[row]!r} "
                f"within {self.bound[row]:.3g}"
            )
        return float(np.max(distance / np.maximum(self.bound, np.finfo(np.float64).tiny), initial=0.0))


# A matrix is measured in one precision right after the other, and some take seconds to build.
_load = functools.lru_cache(maxsize=1)(gallery.load)


def make(name: str, operation: str, dtype: str) -> Problem:
    """Load a matrix and compute what its product must be.

    The bound is that of any order of summation: (row length + 1) roundings in the precision of the result, and as many in
    the float64 of the reference, each relative to the sum of the absolute products.
    """
    exact = _load(name)
    matrix = exact.astype(dtype, copy=False)
    seed = np.random.default_rng([exact.shape[1], exact.nnz])
    x = (seed.random(exact.shape[1]) + 0.5).astype(dtype)
    # Signs so that sums cancel: a product left out or taken twice then shows against the bound in every row.
    x[seed.random(x.size) < 0.5] *= -1
    in_float64 = matrix.astype(np.float64)
    wide_x = x.astype(np.float64)
    reference = in_float64 @ wide_x
    roundings = np.diff(matrix.indptr) + 1
    in_float64.data = np.abs(in_float64.data)
    unit = float(np.finfo(dtype).eps + np.finfo(np.float64).eps) / 2
    bound = 2 * roundings * unit * (in_float64 @ np.abs(wide_x))
    return Problem(name, operation, matrix, x, reference, bound)
