"""Divisions of rows among ranks: contiguous shares, in the order of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from clsparse_py._arrays.base import SparseArray
from clsparse_py._ground.errors import class_of

__all__ = ["Division", "by_boundaries", "by_entries", "by_graph", "by_rows", "join_shares", "require_division"]


class Division:
    """A partition of rows among ranks: rank p has rows ``boundaries[p]`` to ``boundaries[p + 1]``; a share may be empty.

    Parameters
    ----------
    boundaries : array_like of int
        Ascending from 0, one more than ranks.

    Attributes
    ----------
    boundaries : numpy.ndarray of int64
    n, size : int
        Rows and ranks.

    Raises
    ------
    ValueError
        The boundaries do not begin at 0, or descend.

    Examples
    --------
    >>> from clsparse_py.distributed import Division
    >>> division = Division([0, 4, 4, 10])
    >>> division.length(1), division.part(2)
    (0, slice(4, 10, None))
    >>> division.owner([3, 4])
    array([0, 2])
    """

    __slots__ = ("boundaries", "n", "size")

    def __init__(self, boundaries: npt.ArrayLike) -> None:
        bounds = np.asarray(boundaries)
        if bounds.ndim != 1 or bounds.size < 2 or bounds.dtype.kind not in "iu":
            raise ValueError(f"boundaries: must be integers, one more than ranks, are {boundaries!r}")
        bounds = bounds.astype(np.int64)
        if bounds[0] != 0:
            raise ValueError(f"boundaries: must begin at 0, begin at {bounds[0]}")
        falls = np.flatnonzero(np.diff(bounds) < 0)
        if falls.size:
            rank = int(falls[0])
            raise ValueError(f"boundaries: must not descend; rank {rank} would have rows {bounds[rank]} to {bounds[rank + 1]}")
        bounds.flags.writeable = False
        self.boundaries, self.n, self.size = bounds, int(bounds[-1]), bounds.size - 1

    def part(self, rank: int) -> slice:
        """Return the range of rows that a rank has, as a slice."""
        return slice(int(self.boundaries[rank]), int(self.boundaries[rank + 1]))

    def length(self, rank: int) -> int:
        """Return the number of rows that a rank has."""
        return int(self.boundaries[rank + 1] - self.boundaries[rank])

    def owner(self, rows: npt.ArrayLike) -> np.ndarray[Any, Any]:
        """Return the rank that has a row, for each of the given numbers of rows."""
        return np.searchsorted(self.boundaries, np.asarray(rows), side="right") - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Division):
            return NotImplemented
        return self is other or np.array_equal(self.boundaries, other.boundaries)

    def __hash__(self) -> int:
        return hash(self.boundaries.tobytes())

    def __repr__(self) -> str:
        return f"Division({self.boundaries.tolist()})"


def require_division(name: str, division: Any) -> None:
    """Raise a TypeError, whose message has the name, if a user's argument is neither a `Division` nor None."""
    if not isinstance(division, Division | None):
        raise TypeError(f"{name}: must be a Division, is {class_of(division)}")


def by_rows(n: int, size: int) -> Division:
    """Return the division of n rows into shares whose lengths differ by one at most; more ranks than rows leave some empty.

    Parameters
    ----------
    n, size : int
        Rows and ranks.

    Examples
    --------
    >>> from clsparse_py import distributed
    >>> distributed.by_rows(10, 4)
    Division([0, 3, 6, 8, 10])
    """
    share, remainder = divmod(n, size)
    return Division(np.cumsum([0, *(share + (rank < remainder) for rank in range(size))]))


def by_entries(indptr: npt.ArrayLike, size: int) -> Division:
    """Return the division of a matrix's rows into shares of nearly equal numbers of entries.

    Parameters
    ----------
    indptr : array_like of int
        Where each row begins, as in CSR form.
    size : int
        Ranks.

    Examples
    --------
    >>> from clsparse_py import distributed
    >>> distributed.by_entries([0, 9, 10, 11, 12], 2)
    Division([0, 1, 4])
    """
    begins = np.asarray(indptr, np.int64)
    n, total = begins.size - 1, int(begins[-1])
    if total == 0:
        return by_rows(n, size)
    targets = total * np.arange(1, size, dtype=np.float64) / size
    above = np.searchsorted(begins, targets)
    # A rank's share of rows ends at the row boundary nearest to its target, a number of entries in this and all earlier shares.
    below = np.maximum(above - 1, 0)
    inner = np.where(begins[above] - targets <= targets - begins[below], above, below)
    return Division([0, *inner.tolist(), n])


def by_graph(S: Any, size: int) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Division]:
    """Return an order of a matrix's rows and their division by the partitioner METIS: nearly equal entries a rank, small halos.

    Parameters
    ----------
    S : scipy.sparse array or clsparse_py array
        Square and whole, on the rank that calls; its graph is the structure of ``S + S.T``.
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
    graph = scipy.sparse.csr_array(S, dtype=np.bool_)
    weights = np.maximum(np.diff(graph.indptr), 1)
    graph = graph + graph.T
    graph.setdiag(False)
    graph.eliminate_zeros()
    parts = np.zeros(graph.shape[0], np.int64)
    if size > 1 and parts.size:
        partition = pymetis.part_graph(size, pymetis.CSRAdjacency(graph.indptr, graph.indices), vweights=weights)
        parts[:] = partition.vertex_part
    order = np.argsort(parts, kind="stable")
    return order, Division(np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=size))]))


def by_boundaries(boundaries: npt.ArrayLike, n: int, size: int) -> Division:
    """Return the division with a user's boundaries, checked to divide n rows among ``size`` ranks.

    Parameters
    ----------
    boundaries : array_like of int
        Ascending from 0 to n, one more than ranks.
    n, size : int
        Rows and ranks.

    Raises
    ------
    ValueError
        The boundaries do not ascend from 0 to n, or are not one more than ranks.
    """
    division = Division(boundaries)
    if division.size != size:
        raise ValueError(f"boundaries: must be {size + 1}, one more than ranks, are {division.size + 1}")
    if division.n != n:
        raise ValueError(f"boundaries: must end at {n}, the number of rows, end at {division.n}")
    return division


def join_shares(shares: list[tuple[int, int]]) -> Division:
    """Return the division of rows made of the ranks' ranges (begin, end), given in the order of ranks.

    Raises
    ------
    ValueError
        The shares overlap, leave a gap, or do not ascend with the ranks; the message has both ranks.
    """
    end = 0
    for rank, (first, last) in enumerate(shares):
        if last < first:
            raise ValueError(f"rows: rank {rank} says {first} to {last}, which is no range")
        if first != end:
            trouble = "overlap" if first < end else "leave a gap"
            previous = f"rank {rank - 1} ends at row {end}" if rank else "rows begin at 0"
            raise ValueError(f"rows: shares {trouble}: {previous} and rank {rank} begins at row {first}")
        end = last
    return Division([0, *(last for _, last in shares)])
