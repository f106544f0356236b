"""The demo's part on SpGEMM: a matrix times itself, or times its transposed, checked against SciPy and timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._spgemm import spgemm, spgemm_estimate, spgemm_plan
from clsparse_py._transpose import transpose
from clsparse_py.csr import csr_array
from clsparse_py.records import dataclass
from clsparse_py.rounding import max_share, rounding_bound

__all__ = ["MOST_PRODUCTS", "Square", "squared"]

#: Products beyond these are left to the benchmarks.
MOST_PRODUCTS = 40_000_000


@dataclass(frozen=True)
class Square:
    """Findings on a product of sparse matrices.

    Attributes
    ----------
    product : str
        "A @ A", or "A @ A.T" where A is not square.
    methods : str
        Those that made rows of it.
    n_products, nnz : int
        Intermediate products, and entries of the result.
    seconds, scipy_seconds : float
        Of one product, the median, by the host's clock: waits and the allocation of the result included.
    minimal_bytes : int
        Each array of both operands and of the result, once.
    error : float
        Of the worst entry, as a share of what rounding explains; above 1, or NaN, the result is wrong. NaN where the structure is
        wrong.
    """

    product: str
    methods: str
    n_products: int
    nnz: int
    seconds: float
    scipy_seconds: float
    minimal_bytes: int
    error: float

    @property
    def right(self) -> bool:
        """Whether it is SciPy's up to rounding, with the structure of the product of the patterns."""
        return self.error <= 1


def squared(A: csr_array, host: scipy.sparse.csr_array, seconds: Callable[[Callable[[], object]], float]) -> Square | None:
    """Multiply a matrix by itself, compare with SciPy, and time both; None where it has more than `MOST_PRODUCTS`.

    Parameters
    ----------
    A : csr_array
    host : scipy.sparse.csr_array
        The same.
    seconds : callable
        Returns what an action takes.
    """
    square = host.shape[0] == host.shape[1]
    B, right = (A, host) if square else (transpose(A), host.T.tocsr())
    if spgemm_estimate(A, B).n_products > MOST_PRODUCTS:
        return None
    plan = spgemm_plan(A, B)
    C = spgemm(A, B).get()

    def once() -> None:
        spgemm(A, B)
        A.queue.finish()

    return Square(
        "A @ A" if square else "A @ A.T",
        ", ".join(dict.fromkeys(each.method for each in plan.explain().bins)),
        plan.n_products,
        plan.nnz,
        seconds(once),
        seconds(lambda: host @ right),
        sum(part.nbytes for matrix in (host, right, C) for part in (matrix.indptr, matrix.indices, matrix.data)),
        _error(host, right, C),
    )


def _error(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array, C: scipy.sparse.csr_array) -> float:
    """Return the largest distance of a value of C from SciPy's A @ B, in units of its bound; see `rounding_bound`.

    An entry of C is the sum of as many products as the row of A has entries, at most.
    """
    patterns = (scipy.sparse.csr_array((np.ones(each.nnz), each.indices, each.indptr), shape=each.shape) for each in (A, B))
    left, right = patterns
    structure = scipy.sparse.csr_array(left @ right)
    structure.sort_indices()
    if not (np.array_equal(C.indptr, structure.indptr) and np.array_equal(C.indices, structure.indices)):
        return float("nan")
    wide = np.result_type(A.dtype, np.float64)
    reference = _values(A.astype(wide) @ B.astype(wide), structure)
    magnitude = _values(abs(A.astype(wide)) @ abs(B.astype(wide)), structure)
    bound = rounding_bound(np.repeat(np.diff(A.indptr), np.diff(C.indptr)), magnitude, C.dtype, wide)
    return max_share(C.data, reference, bound)


def _values(matrix: Any, structure: scipy.sparse.csr_array) -> np.ndarray[Any, Any]:
    """Return a product's values by a structure that has all its entries: SciPy leaves out those that cancel."""
    found = scipy.sparse.csr_array(matrix)
    keys = [
        np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)) * each.shape[1] + each.indices for each in (found, structure)
    ]
    values = np.zeros(structure.nnz, found.dtype)
    values[np.searchsorted(keys[1], keys[0])] = found.data
    return values
