"""SpTRANS: the transpose of one matrix in CSR form, its rows sorted."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import scipy.sparse as sp

from bench.problems.base import ExactProblem
from bench.problems.matrices import MatrixProblem, bytes_of, load


@dataclass(frozen=True, eq=False)
class Sptrans(MatrixProblem, ExactProblem):
    """A^T from A: ``indptr``, ``indices`` and ``data``, which SciPy's `tocsc` gives too."""

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, each array read once, and of A^T, each array written once."""
        return bytes_of(self.matrix) + sum(part.nbytes for part in self.reference)


@functools.lru_cache(maxsize=1)
def _transpose(name: str) -> sp.csc_array:
    return load(name).tocsc()


def make(name: str, dtype: str) -> Sptrans:
    """Load a matrix and transpose it with SciPy."""
    # Values are moved and not computed with, so that rounding them before or after is the same.
    expected = _transpose(name)
    reference = (expected.indptr, expected.indices, expected.data.astype(dtype, copy=False))
    return Sptrans(name, "sptrans", dtype, reference, load(name).astype(dtype, copy=False))
