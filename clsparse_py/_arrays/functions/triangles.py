"""`tril` and `triu`, the triangles of sparse arrays; and `find`, entries as NumPy arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.csr import csr_array
from clsparse_py._arrays.doors import on_scipy
from clsparse_py._arrays.functions.operands import as_rows, queue_of
from clsparse_py._build.plain import door
from clsparse_py._formats.canonical import with_marked
from clsparse_py._matrix.convert import copied
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._operations.construct.triangle import mark_triangle
from clsparse_py._operations.elementwise.union import canonical_parts
from clsparse_py._run.transfer import copy_to_host

__all__ = ["find", "tril", "triu"]


@door(on_scipy(scipy.sparse.tril))
def tril(A: Any, k: float = 0, format: str | None = None) -> Any:
    """Return the lower triangle of an array: the entries on or below its k-th diagonal.

    Parameters
    ----------
    A : sparse or dense array
        Of two dimensions.
    k : int
        The diagonal: above the main one if positive, below it if negative.
    format : str, optional
        Of the result; "coo" by default.

    Returns
    -------
    coo_array, or as ``format`` says
        Of A's shape. The host waits once, to learn how many entries there are.

    Raises
    ------
    ValueError
        A has another number of dimensions.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [3, 4]])
    >>> sp.tril(A).toarray()
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(A, math.floor(k), format, upper=False)


@door(on_scipy(scipy.sparse.triu))
def triu(A: Any, k: float = 0, format: str | None = None) -> Any:
    """Return the upper triangle of an array: the entries on or above its k-th diagonal.

    Parameters
    ----------
    A, k, format
        As for `tril`.

    Returns
    -------
    coo_array, or as ``format`` says
        As for `tril`.

    Raises
    ------
    ValueError
        A has another number of dimensions.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [3, 4]])
    >>> sp.triu(A, k=1).toarray()
    array([[0, 2],
           [0, 0]])
    """
    return _triangle(A, math.ceil(k), format, upper=True)


def _triangle(A: Any, k: int, format: str | None, *, upper: bool) -> Any:
    """Return the upper triangle of an array, from its k-th diagonal on, or the lower triangle, up to that diagonal."""
    if np.ndim(A) != 2:
        raise ValueError(f"A: must have two dimensions, has {np.ndim(A)}")
    rows = as_rows("A", A, queue_of((A,)))
    rows.require_valid()
    parts = rows.parts
    marks = mark_triangle(rows.queue, rows.indices, rows.indptr, k, upper=upper)
    data, indices, indptr = remaining = with_marked(rows.queue, parts, marks)
    if remaining is parts:
        data = copied(rows.queue, "data", data)
    facts = rows.facts and Facts(int(indices.size), sorted=rows.facts.sorted, canonical=rows.facts.canonical)
    array = csr_array.assembled(Structure(rows.queue, rows.shape, indices, indptr, facts), data)
    if format not in (None, "coo"):
        array.sum_duplicates()
    return array.asformat(format or "coo")


@door(on_scipy(scipy.sparse.find))
def find(A: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the rows, the columns and the values of an array's entries that are not 0, duplicates added up.

    Parameters
    ----------
    A : sparse or dense array
        Of one dimension, which is a row, or two.

    Returns
    -------
    tuple of numpy.ndarray
        Three of one length; entries are sorted by row, then by column.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> [part.tolist() for part in sp.find(sp.csr_array([[0, 7], [8, 0]]))]
    [[0, 1], [1, 0], [7, 8]]
    """
    rows = as_rows("A", A, queue_of((A,)))
    data, indices, indptr = (copy_to_host(part, rows.queue) for part in canonical_parts(rows, rows.dtype))
    is_nonzero = data != 0
    row = np.repeat(np.arange(rows.shape[0], dtype=indices.dtype), np.diff(indptr))
    return row[is_nonzero], indices[is_nonzero], data[is_nonzero]
