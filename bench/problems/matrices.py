"""The common part of problems on one sparse matrix."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench import gallery
from bench.problems.base import Problem

DTYPES = ("float64", "float32")

# A matrix is measured with one operation and precision right after the other, and some take seconds to build.
load = functools.lru_cache(maxsize=1)(gallery.load)


@dataclass(frozen=True, eq=False)
class MatrixProblem(Problem):
    """A problem on a sparse matrix.

    Attributes
    ----------
    matrix
        A in the precision that is measured.
    """

    matrix: sp.csr_array

    def described(self) -> dict[str, Any]:
        """Return A's shape, entries, and shortest, mean and longest row."""
        lengths = np.diff(self.matrix.indptr)
        rows = [int(lengths.min()), float(lengths.mean()), int(lengths.max())] if lengths.size else [0, 0.0, 0]
        return {"shape": list(self.matrix.shape), "nnz": self.matrix.nnz, "row_lengths": rows}


def bytes_of(matrix: Any) -> int:
    """Return the bytes of a matrix in CSR or CSC form, each array once."""
    return int(matrix.indptr.nbytes + matrix.indices.nbytes + matrix.data.nbytes)
