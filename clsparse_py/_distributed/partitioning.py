"""Rows divided by a graph partitioner: related ones come to the same rank, so that halos are small."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.base import SparseArray
from clsparse_py._distributed.division import Division
from clsparse_py._ground.errors import class_of

__all__ = ["by_graph"]


def by_graph(S: Any, size: int) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Division]:
    """Return an order of the rows, and its division, by the METIS graph partitioner: few columns of others, as many entries each.

    Parameters
    ----------
    S : scipy.sparse array or clsparse_py array
        Square and whole, on the rank that calls; its graph is the pattern of ``S + S.T``.
    size : int
        Ranks.

    Returns
    -------
    order : numpy.ndarray of int64
        The matrix to scatter is ``S[order][:, order]``, and x ``x[order]``: then ``y[order] = A @ x[order]``. Rows of a rank
        keep their order.
    division : Division
        Of its rows.

    Raises
    ------
    ImportError
        pymetis is not installed.
    ValueError, TypeError
        S is not square, or no sparse matrix; there is no rank.

    Notes
    -----
    Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs". METIS makes few the edges
    that are cut, which is not quite the same as a small halo.

    Examples
    --------
    >>> import scipy.sparse
    >>> from clsparse_py import distributed
    >>> S = scipy.sparse.block_diag([scipy.sparse.csr_array([[1, 1], [1, 1]])] * 4, format="csr")
    >>> order, division = distributed.by_graph(S[[0, 2, 4, 6, 1, 3, 5, 7]][:, [0, 2, 4, 6, 1, 3, 5, 7]], 2)
    >>> [order[division.part(rank)].size for rank in (0, 1)]
    [4, 4]
    """
    try:
        import pymetis
    except ImportError:
        raise ImportError("division by a graph needs the partitioner METIS: pip install pymetis") from None
    if isinstance(S, SparseArray):
        S = S.get()
    if not scipy.sparse.issparse(S):
        raise TypeError(f"S: must be a sparse matrix, is {class_of(S)}")
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise ValueError(f"S: must be square, has shape {S.shape}")
    if size < 1:
        raise ValueError(f"size: must be at least 1, is {size}")
    pattern = scipy.sparse.csr_array(S, dtype=np.bool_)
    weights = np.maximum(np.diff(pattern.indptr), 1)
    pattern = pattern + pattern.T
    pattern.setdiag(False)
    pattern.eliminate_zeros()
    parts = np.zeros(pattern.shape[0], np.int64)
    if size > 1 and parts.size:
        partition = pymetis.part_graph(size, pymetis.CSRAdjacency(pattern.indptr, pattern.indices), vweights=weights)
        parts[:] = partition.vertex_part
    order = np.argsort(parts, kind="stable")
    return order, Division(np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=size))]))
