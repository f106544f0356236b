"""SpGEMM: the square of a matrix, and the two products of a Galerkin operator of algebraic multigrid."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench import gallery
from bench.problems.base import Array, Result, WrongResultError, largest_error, require_kinds
from bench.problems.matrices import MatrixProblem, bytes_of, load
from clsparse_py._ground.rounding import rounding_bound

# The products of algebraic multigrid, by what their inputs are called: with A = name, P = P(name).
AMG = ("AP", "PTAP")
# Values above this have products that are no zeros.
_SMALLEST = 1e-150


@dataclass(frozen=True, eq=False)
class Spgemm(MatrixProblem):
    """C = A @ B in CSR form, rows sorted; the reference is SciPy's, in float64, from the rounded values.

    Its structure is that of the product of the patterns: what cancels stays.

    Attributes
    ----------
    right
        B, in the precision that is measured; of a square, A itself.
    products
        Intermediate products.
    bound
        How far each value of a result may be from the reference.
    """

    right: sp.csr_array
    products: int
    bound: Array

    @property
    def minimal_bytes(self) -> int:
        """The bytes of A, B and C, each array once, also where B is A."""
        indptr, indices, values = self.reference
        return (
            bytes_of(self.matrix)
            + bytes_of(self.right)
            + indptr.nbytes
            + indices.nbytes
            + values.size * self.right.dtype.itemsize
        )

    @property
    def like(self) -> Result:
        """Arrays of the dtypes and shapes of a right result, whose elements are not there."""
        indptr, indices, values = self.reference
        return indptr, indices, np.broadcast_to(np.zeros((), self.dtype), values.shape)

    def described(self) -> dict[str, Any]:
        """Return what there is to tell of A, and the numbers of products and of entries of C."""
        return {**super().described(), "products": self.products, "entries": self.reference[1].size}

    def error(self, result: Result) -> float:
        """Return the largest error of a value in units of its bound; see the base class."""
        require_kinds(result, self.like)
        for name, part, expected in zip(("indptr", "indices"), result, self.reference, strict=False):
            wrong = np.flatnonzero(part != expected)
            if wrong.size:
                first = int(wrong[0])
                raise WrongResultError(
                    f"{name}: {wrong.size} of {part.size} are wrong; element {first} is {part[first]}, needs {expected[first]}"
                )
        return largest_error(result[2], self.reference[2], self.bound, "value")

    def with_cancelled(self, result: Result) -> Result:
        """Return a result with its rows sorted, and with zeros where a peer leaves out what cancels."""
        indptr, indices, values = result
        rows = sp.csr_array((values, indices, indptr), shape=(self.matrix.shape[0], self.right.shape[1]))
        rows.sort_indices()
        full, columns = self.reference[:2]
        rows = _extend_to_structure(rows, full, columns)
        return rows.indptr.astype(full.dtype, copy=False), rows.indices.astype(columns.dtype, copy=False), rows.data


def inputs(name: str) -> list[str]:
    """Return the names of the products of algebraic multigrid with a matrix."""
    return [f"{product}({name})" for product in AMG]


def make(name: str, dtype: str) -> Spgemm:
    """Load a matrix and square it with SciPy; A A^T where it is not square."""
    left, right = square(name)
    matrix = left.astype(dtype, copy=False)
    return of_operands(name, "spgemm", matrix, matrix if right is left else right.astype(dtype, copy=False))


def make_amg(name: str, dtype: str) -> Spgemm:
    """Load the operands of a product of algebraic multigrid, ``AP(name)`` or ``PTAP(name)``, and multiply them with SciPy.

    Raises
    ------
    ValueError
        If the name is neither.
    """
    return of_operands(name, "amg", *(matrix.astype(dtype, copy=False) for matrix in galerkin(name)))


def square(name: str) -> tuple[sp.csr_array, sp.csr_array]:
    """Load a matrix, and return it twice; with its transpose where it is not square."""
    matrix = load(name)
    return matrix, matrix if matrix.shape[0] == matrix.shape[1] else sp.csr_array(matrix.T.tocsr())


def galerkin(name: str) -> tuple[sp.csr_array, sp.csr_array]:
    """Load the operands of a product of algebraic multigrid.

    Raises
    ------
    ValueError
        If the name is none.
    """
    result = re.fullmatch(rf"({'|'.join(AMG)})\((.+)\)", name)
    if not result:
        raise ValueError(f"input: got {name!r}, amg needs one of {', '.join(f'{product}(matrix)' for product in AMG)}")
    matrix, prolongator = _multigrid(result[2])
    return (matrix, prolongator) if result[1] == "AP" else (_sort_rows(prolongator.T), _sort_rows(matrix @ prolongator))


@functools.lru_cache(maxsize=1)
def _multigrid(name: str) -> tuple[sp.csr_array, sp.csr_array]:
    return load(name), gallery.load(f"P({name})")


def of_operands(name: str, operation: str, left: sp.csr_array, right: sp.csr_array) -> Spgemm:
    """Return the problem of two operands of one dtype, canonical but for explicit zeros.

    The bound of an entry is `rounding_bound`'s for as many products as the row of A has entries; the reference is computed in
    float64.
    """
    wide = [matrix.astype(np.float64) for matrix in (left, right)]
    sizes = [abs(matrix) for matrix in wide]
    if all(matrix.data.min(initial=1.0) > _SMALLEST for matrix in sizes):
        # No product of them underflows: SciPy leaves out no entry.
        structure = magnitude = _sort_rows(sizes[0] @ sizes[1])
    else:
        patterns = [sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape) for matrix in wide]
        structure = _sort_rows(patterns[0] @ patterns[1])
        magnitude = _extend_to_structure(_sort_rows(sizes[0] @ sizes[1]), structure.indptr, structure.indices)
    exact = _extend_to_structure(_sort_rows(wide[0] @ wide[1]), structure.indptr, structure.indices)
    n_terms = np.repeat(np.diff(left.indptr), np.diff(structure.indptr))
    products = int(np.diff(right.indptr)[left.indices].sum(dtype=np.int64))
    index = np.int32 if max(*structure.shape, structure.nnz) < 2**31 else np.int64
    reference = (structure.indptr.astype(index, copy=False), structure.indices.astype(index, copy=False), exact.data)
    bound = rounding_bound(n_terms, magnitude.data, left.dtype, np.float64)
    return Spgemm(name, operation, left.dtype.name, reference, left, right, products, bound)


def _sort_rows(matrix: Any) -> sp.csr_array:
    made = sp.csr_array(matrix)
    made.sort_indices()
    return made


def _extend_to_structure(matrix: sp.csr_array, indptr: Array, indices: Array) -> sp.csr_array:
    """Return a matrix with sorted rows on a structure that has all its entries, and more, which become zeros."""
    if matrix.nnz == indices.size:
        return matrix
    keys = [
        np.repeat(np.arange(pointer.size - 1, dtype=np.int64), np.diff(pointer)) * matrix.shape[1] + columns
        for pointer, columns in ((matrix.indptr, matrix.indices), (indptr, indices))
    ]
    data = np.zeros(indices.size, matrix.dtype)
    places = np.searchsorted(keys[1], keys[0])
    if not np.array_equal(keys[1][np.minimum(places, indices.size - 1)], keys[0]):
        raise WrongResultError("there are entries that the product of the patterns does not have")
    data[places] = matrix.data
    return sp.csr_array((data, indices, indptr), shape=matrix.shape)
