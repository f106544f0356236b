"""The larger and smaller values of a sparse matrix and a scalar or a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._formats.canonical import without_zeros
from clsparse_py._ground.errors import warn
from clsparse_py._matrix.matrix import Matrix, MatrixT, Structure
from clsparse_py._operations.elementwise.comparison import full_structure
from clsparse_py._operations.elementwise.dense import dense_of, pair_with_dense
from clsparse_py._operations.elementwise.union import canonical_of, canonical_parts
from clsparse_py._operations.elementwise.values import map_with_scalar, require_results

__all__ = ["choose_with_dense", "choose_with_scalar"]


def choose_with_scalar(operator: str, A: MatrixT, scalar: Any) -> MatrixT:
    """Return the matrix of the larger or the smaller one of each value and a scalar.

    Warns, as SciPy does, if the result has an entry at each place.
    """
    of_numpy = getattr(np, operator)
    dtype = of_numpy(np.zeros(1, A.dtype), scalar).dtype
    require_results(A.queue, f"{operator} of {A.dtype} and {scalar!r}", dtype)
    if not of_numpy(0, scalar):
        data, indices, indptr = canonical_parts(A, A.dtype)
        values = map_with_scalar(A.queue, data, operator, dtype, scalar)
        data, indices, indptr = without_zeros(A.queue, (values, indices, indptr))
        return A.assembled(Structure.canonical(A.queue, A.structure.shape, indices, indptr), data)
    sign = "positive" if operator == "maximum" else "negative"
    text = f"Taking {operator} with a {sign} number results in a dense matrix."
    warn(text, scipy.sparse.SparseEfficiencyWarning)
    dense = dense_of(A, A.dtype)
    values = dense.reshape(dense.size)  # type: ignore[no-untyped-call] # PyOpenCL's
    return A.assembled(full_structure(A), map_with_scalar(A.queue, values, operator, dtype, scalar))


def choose_with_dense(operator: str, A: Matrix, other: Any) -> Any:
    """Return the dense matrix of the larger or the smaller values of a matrix and a dense operand, of its kind.

    Parameters
    ----------
    operator : str
        "maximum" or "minimum".
    A : Matrix
    other : numpy.ndarray or pyopencl.array.Array
        Of one or two dimensions; rows and columns of both are repeated, as in NumPy.

    Raises
    ------
    ValueError
        The shapes do not go together.
    """
    dtype = np.result_type(A.dtype, other.dtype)
    require_results(A.queue, f"{operator} of {A.dtype} and {other.dtype}", dtype)
    return pair_with_dense(A.queue, operator, dense_of(canonical_of(A, A.dtype), dtype), other)
