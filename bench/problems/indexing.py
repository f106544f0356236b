"""Arrays made of one matrix: rows, columns and a mask of rows, half of them at random; other formats; stacks and products."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.problems.base import Array, ExactProblem, Result
from bench.problems.matrices import MatrixProblem, bytes_of, load


@dataclass(frozen=True, eq=False)
class Indexing(MatrixProblem, ExactProblem):
    """What SciPy makes of A, its arrays in SciPy's order.

    Attributes
    ----------
    positions
        The rows or columns that are taken, or the mask; of no elements where all are.
    """

    positions: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of the result, written once, of as many values and columns of A, and of what says which these are."""
        result = sum(part.nbytes for part in self.reference)
        if self.operation == "tocoo_shared":
            return self.matrix.indptr.nbytes + self.reference[0].nbytes
        if self.operation in OF_ALL:
            return bytes_of(self.matrix) + result
        indptr, indices, data = self.reference
        if self.operation == "columns":
            return self.matrix.indptr.nbytes + self.matrix.indices.nbytes + data.nbytes + self.positions.nbytes + result
        # Of each row, where it begins and where it ends.
        return 2 * indptr.nbytes + indices.nbytes + data.nbytes + self.positions.nbytes + result


def _half(n: int) -> Array:
    """Return half of n positions, at random and in no order."""
    return np.random.default_rng(n).permutation(n)[: n // 2]


def _mask(n: int) -> Array:
    return np.random.default_rng(n).random(n) < 0.5


def _nothing(_n: int) -> Array:
    return np.zeros(0, np.int64)


def parts(matrix: Any) -> Result:
    """Return the arrays of a matrix, of any library: structure first."""
    if hasattr(matrix, "indptr"):
        return matrix.indptr, matrix.indices, matrix.data
    return matrix.row, matrix.col, matrix.data


def library_of(matrix: Any) -> Any:
    """Return the module that has the functions around a matrix: of the library, of CuPy, or of SciPy."""
    top = type(matrix).__module__.partition(".")[0]
    return importlib.import_module({"clsparse_py": top, "cupyx": "cupyx.scipy.sparse"}.get(top, "scipy.sparse"))


def _kron(A: Any, eye: Any) -> Any:
    return library_of(A).kron(A, eye)


def second_of(matrix: Any, positions: Any, operation: str) -> Any:
    """Return the second operand of a call: the positions or, of a Kronecker product, the identity in the matrix's library."""
    if operation != "kron":
        return positions
    library = library_of(matrix)
    if "cupyx" in library.__name__:
        return library.eye(3, dtype=matrix.dtype, format="csr")
    on = {} if library.__name__ == "scipy.sparse" else {"queue": matrix.queue}
    return library.eye_array(3, dtype=matrix.dtype, format="csr", **on)


#: Operations that take all entries of a matrix, and no positions.
OF_ALL = ("tocsc", "tocoo", "tocoo_shared", "hstack", "vstack", "kron")
#: Most entries of a Kronecker product: of a larger matrix the first rows are taken.
_MAX_PRODUCT = 10**7

# Operations by name: a function that makes the positions, their axis, and the call as users write it.
OPERATIONS: dict[str, tuple[Callable[[int], Array], int, Callable[[Any, Any], Any]]] = {
    "rows": (_half, 0, lambda A, rows: A[rows]),
    "columns": (_half, 1, lambda A, columns: A[:, columns]),
    "mask": (_mask, 0, lambda A, mask: A[mask]),
    "tocsc": (_nothing, 0, lambda A, _: A.tocsc()),
    "tocoo": (_nothing, 0, lambda A, _: A.tocoo()),
    "tocoo_shared": (_nothing, 0, lambda A, _: A.tocoo(copy=False)),
    "hstack": (_nothing, 0, lambda A, _: library_of(A).hstack([A, A])),
    "vstack": (_nothing, 0, lambda A, _: library_of(A).vstack([A, A])),
    "kron": (_nothing, 0, _kron),
}


def make(name: str, operation: str, dtype: str) -> Indexing:
    """Load a matrix and index it with SciPy."""
    matrix: sp.csr_array = load(name).astype(dtype, copy=False)
    choose, axis, call = OPERATIONS[operation]
    positions = choose(matrix.shape[axis])
    if operation == "kron":
        matrix = matrix[: np.searchsorted(matrix.indptr, _MAX_PRODUCT // 3, side="right") - 1]
    made = call(matrix, second_of(matrix, positions, operation))
    # Row by row, as the library has them.
    result = parts(made.tocsr().tocoo() if operation == "kron" else made)
    return Indexing(name, operation, dtype, result, matrix, positions)
