"""Products and quotients of a sparse matrix, entry by entry, with rows, columns, dense and sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._formats.canonical import without_zeros
from clsparse_py._formats.coordinates import rows_of
from clsparse_py._matrix.matrix import Matrix, MatrixT
from clsparse_py._matrix.placement import index_dtype
from clsparse_py._operations.elementwise.dense import combine_at_entries, combine_dense, combine_outer, make_dense
from clsparse_py._operations.elementwise.operands import broadcast, place_dense
from clsparse_py._operations.elementwise.union import assemble_canonical, canonical_of, canonical_parts
from clsparse_py._operations.elementwise.values import dense_values, require_results
from clsparse_py._run.transfer import copy_to_host

__all__ = ["divide_by_dense", "divide_by_sparse", "format_of_product", "times_dense", "times_vector"]


def times_vector(A: MatrixT, vector: Matrix) -> MatrixT:
    """Return the product, entry by entry, of a matrix and a sparse row or column that is repeated for all rows or columns.

    As in SciPy, which multiplies by a diagonal matrix, the result has no entry that is 0 and duplicates are summed in its dtype.
    """
    queue, dtype = A.queue, np.result_type(A.dtype, vector.dtype)
    require_results(queue, f"{A.dtype} times {vector.dtype}", dtype)
    data, indices, indptr = canonical_parts(A, dtype)
    dense = broadcast(make_dense(vector, vector.dtype), A.structure.shape)
    values = combine_at_entries(queue, "multiply", data, (rows_of(queue, indptr, indices.size), indices), dense)
    return assemble_canonical(A, without_zeros(queue, (values, indices, indptr)))


def format_of_product(formats: tuple[str, str], a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> str:
    """Return SciPy's format, such as "csr", of the elementwise product of two sparse matrices, one of which is repeated."""
    of_a, of_b = ("csr" if name == "coo" else name for name in formats)
    if b_shape in ((1, 1), (1,)):
        return formats[0]
    if a_shape == (1, 1):
        return formats[1]
    if a_shape[0] == b_shape[-1] == 1:
        return of_b
    if a_shape[1] == 1 and (len(b_shape) == 1 or b_shape[0] == 1):
        return of_a
    if len(b_shape) == 1 or b_shape[0] == 1:
        return of_a
    return of_b if a_shape[0] == 1 else "csr"


def times_dense(A: Any, other: Any) -> Any:
    """Return the product, entry by entry, of a sparse and a dense matrix: a `coo_array`, or a dense array if A is 1 x 1.

    Parameters
    ----------
    A : csr_array
        Of two dimensions. A single row or column is repeated for the rows or columns of ``other``.
    other : numpy.ndarray or pyopencl.array.Array
        Of one or two dimensions; a single row or column is repeated.

    Raises
    ------
    ValueError
        The shapes do not go together.
    """
    shape = np.broadcast_shapes(A.shape, other.shape)
    dense = broadcast(place_dense(A.queue, other), shape)
    if A.shape == (1, 1):
        return _scale_dense(A, dense, isinstance(other, np.ndarray))
    require_results(A.queue, f"{A.dtype} times {other.dtype}", np.result_type(A.dtype, other.dtype))
    entries = A.tocoo(copy=False)
    if shape == A.shape:
        return entries._with_values(combine_at_entries(A.queue, "multiply", entries.data, entries.coords, dense))
    of_row = A.shape[0] == 1
    n = entries.data.size * shape[0 if of_row else 1]
    index = index_dtype(entries.coords, (*shape, n))
    values, *coordinates = combine_outer(A.queue, "multiply", entries.data, entries.coords[int(of_row)], dense, index, of_row)
    return entries.over(A.queue, shape, tuple(coordinates), values)


def _scale_dense(A: Matrix, dense: cl_array.Array, on_host: bool) -> Any:
    """Return a dense matrix times the sum of a 1 x 1 matrix's values, in NumPy's dtype of sums; a NumPy array if ``on_host``."""
    dtype = np.result_type(np.zeros(0, A.dtype).sum(), dense.dtype)
    require_results(A.queue, f"{A.dtype} times {dense.dtype}", dtype)
    value = broadcast(make_dense(A, dtype), dense.shape)
    results = combine_dense(A.queue, "multiply", dense_values(A.queue, dense, "positive", dtype), value)
    return copy_to_host(results, A.queue) if on_host else results


def divide_by_dense(A: Any, other: Any) -> Any:
    """Return the elementwise product of A and the inverses of a dense array's values: a `coo_array`, or dense if A is 1 x 1."""
    result = np.divide(1, np.ones(1, other.dtype)).dtype
    require_results(A.queue, f"1 / {other.dtype}", result)
    quotients = times_dense(A, dense_values(A.queue, place_dense(A.queue, other), "reciprocal", result))
    return (
        copy_to_host(quotients, A.queue) if isinstance(quotients, cl_array.Array) and isinstance(other, np.ndarray) else quotients
    )


def divide_by_sparse(A: Matrix, B: Matrix) -> np.ndarray[Any, Any]:
    """Return the quotients of two sparse matrices of one shape as a dense NumPy array: NaN where both are 0.

    As in SciPy quotients are float64 if A is real.
    """
    result = np.dtype(np.float64) if np.can_cast(A.dtype, np.float64) else A.dtype
    inner = np.result_type(result, B.dtype)
    require_results(A.queue, f"{A.dtype} / {B.dtype}", inner)
    # As in SciPy duplicates are summed in the dtype of the division. The sign of a divisor 0 says which infinity it gives.
    dense = (make_dense(canonical_of(matrix, inner), inner, operator="second") for matrix in (A, B))
    quotients = copy_to_host(combine_dense(A.queue, "divide", *dense), A.queue)
    return quotients if quotients.dtype == result else quotients.real
