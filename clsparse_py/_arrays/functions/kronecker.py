"""Kronecker products and sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.coo import coo_array
from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._arrays.functions.diagonals import eye_array
from clsparse_py._arrays.functions.kinds import issparse
from clsparse_py._arrays.functions.operands import as_rows, queue_of
from clsparse_py._build.plain import door
from clsparse_py._device.device import describe
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.convert import convert
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.construct.kronecker import compute_kron_entries, compute_kron_pointers

__all__ = ["kron", "kronsum"]


@door(on_scipy(scipy.sparse.kron))
def kron(A: Any, B: Any, format: str | None = None) -> csr_array | coo_array | Any:
    """Return the Kronecker product of A and B: a grid of blocks, of which block (i, j) is ``A[i, j] * B``.

    Parameters
    ----------
    A, B : sparse or dense arrays
        Of one or two dimensions.
    format : str, optional
        Of the result. By default "coo" or, if half of B's places or more are stored, "csr", of which SciPy's "bsr" is made by
        another step: ``format="bsr"``, with blocks of B's shape.

    Returns
    -------
    coo_array, csr_array, or as ``format`` says
        Of shape ``(A.shape[0] * B.shape[0], A.shape[1] * B.shape[1])``; its entries are made by one kernel.

    Raises
    ------
    ValueError
        An operand is a scalar, or they live in different contexts.
    TypeError
        An operand has more than two dimensions, or the product's dtype needs double precision, which the device lacks.

    Notes
    -----
    If no operand is on a device, the default queue is taken. The host waits for nothing.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.kron(sp.csr_array([[1, 0], [0, 2]]), sp.csr_array([[3, 4]])).toarray()
    array([[3, 4, 0, 0],
           [0, 0, 6, 8]])
    """
    queue = queue_of((A, B))
    dimensions = _dimensions("A", A), _dimensions("B", B)
    ndim = max(dimensions)
    a, b = as_rows("A", A, queue), as_rows("B", B, queue)
    dense = dimensions == (2, 2) and 2 * getattr(B, "nnz", b.nnz) >= math.prod(b.shape)
    shape = a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]
    empty = not a.nnz or not b.nnz
    if ndim == 2 and not empty and (format in ("csr", "bsr") or (format is None and dense)):
        result_rows = _kron_in_csr(a, b, shape)
        return result_rows.tobsr(b.shape) if format == "bsr" else result_rows
    if empty:
        # A Kronecker product without entries has SciPy's default dtype, float64, if the device has double precision.
        dtype = np.float64 if describe(queue.device).fp64 else np.result_type(a.dtype, b.dtype)
        return coo_array(shape[-ndim:], dtype=dtype, queue=queue).asformat(format)
    data, columns, rows = compute_kron_entries(queue, *_parts_of_factors(a, b, shape), b.shape[1], coordinates=True)
    coords = (rows, columns) if ndim == 2 else (columns,)
    result = coo_array.over(queue, shape[-ndim:], coords, data)
    result.has_canonical_format = _is_canonical(a, b)
    return result.asformat(format)


@door(on_scipy(scipy.sparse.kronsum))
def kronsum(A: Any, B: Any, format: str | None = None) -> Any:
    """Return the Kronecker sum of two square matrices: ``kron(I_n, A) + kron(B, I_m)``, A being m x m and B n x n.

    Parameters
    ----------
    A, B : sparse or dense arrays
        Square.
    format : str, optional
        Of the result; "csr" by default.

    Returns
    -------
    csr_array, or as ``format`` says

    Raises
    ------
    ValueError
        A or B is not square, or they live in different contexts.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> T = sp.csr_array([[2, -1], [-1, 2]])
    >>> sp.kronsum(T, T).toarray()
    array([[ 4, -1, -1,  0],
           [-1,  4,  0, -1],
           [-1,  0,  4, -1],
           [ 0, -1, -1,  4]])
    """
    queue = queue_of((A, B))
    if not issparse(A) and not issparse(B):
        # Dense vectors as operands are matrices of one row, as in SciPy's `kronsum`.
        A, B = np.atleast_2d(A), np.atleast_2d(B)
    for name, operand in (("A", A), ("B", B)):
        if _dimensions(name, operand) != 2:
            raise ValueError(f"{name}: kronsum requires 2D inputs, is {_dimensions(name, operand)}D")
    a, b = as_rows("A", A, queue), as_rows("B", B, queue)
    for name, operand in (("A", a), ("B", b)):
        if operand.shape[0] != operand.shape[1]:
            raise ValueError(f"{name} is not square: {operand.shape[0]} x {operand.shape[1]}")
    dtype = np.result_type(a.dtype, b.dtype)
    eyes = [eye_array(n, dtype=dtype, queue=queue) for n in (b.shape[0], a.shape[0])]
    return (kron(eyes[0], a, format="csr") + kron(b, eyes[1], format="csr")).asformat(format)


def _dimensions(name: str, operand: Any) -> int:
    """Return the number of an operand's dimensions; raise a ValueError for a scalar, a TypeError for more than two dimensions."""
    ndim = np.ndim(operand)
    if not ndim:
        raise ValueError(f"{name}: must have one or two dimensions, is a scalar")
    if ndim > 2:
        raise TypeError(f"{name}: expected 2D array or matrix, or one dimension, has {ndim}")
    return ndim


def _parts_of_factors(a: csr_array, b: csr_array, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return the CSR arrays of both factors of a Kronecker product, in the index dtype of the product."""
    index = index_for(max(*shape, a.nnz * b.nnz), a.indptr.dtype, b.indptr.dtype)

    def convert_factor(matrix: csr_array) -> tuple[Any, ...]:
        """Return the values, columns and row pointers of a factor, in the index dtype of the Kronecker product."""
        names = {"indices": matrix.indices, "indptr": matrix.indptr}
        converted = (part if part.dtype == index else convert(a.queue, name, part, index) for name, part in names.items())
        return matrix.data, *converted

    return convert_factor(a), convert_factor(b)


def _kron_in_csr(a: csr_array, b: csr_array, shape: tuple[int, int]) -> csr_array:
    """Return the Kronecker product, in CSR form, of two matrices that both have entries."""
    queue, parts = a.queue, _parts_of_factors(a, b, shape)
    data, indices = compute_kron_entries(queue, *parts, b.shape[1], coordinates=False)
    indptr = compute_kron_pointers(queue, parts[0][2], parts[1][2])
    facts = None
    if a.facts is not None and b.facts is not None:
        # Duplicates in A would repeat the columns of B's rows, so that the rows of the Kronecker product are not sorted.
        is_sorted = a.facts.canonical and b.facts.sorted
        facts = Facts(int(indices.size), sorted=is_sorted, canonical=_is_canonical(a, b))
    return csr_array.assembled(Structure(queue, shape, indices, indptr, facts), data)


def _is_canonical(a: csr_array, b: csr_array) -> bool:
    """Return whether the Kronecker product of a and b is known to be in canonical format."""
    return a.facts is not None and a.facts.canonical and b.facts is not None and b.facts.canonical
