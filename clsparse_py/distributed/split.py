"""A rank's rows cut, on the host, into what its own entries of x multiply and what those of others do; and put together again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

__all__ = ["Parts", "joined", "split"]


class Parts(NamedTuple):
    """The parts of a rank's rows.

    Attributes
    ----------
    local : scipy.sparse.csr_array
        Entries in the rank's own columns, numbered from 0.
    remote : scipy.sparse.csr_array
        Entries in others' columns, numbered in the order of `halo`.
    halo : numpy.ndarray of int64
        The columns of others that have entries, ascending.
    """

    local: Any
    remote: Any
    halo: np.ndarray[Any, np.dtype[np.int64]]


def split(rows: Any, begin: int, end: int) -> Parts:
    """Return the parts of rows whose own columns are those from ``begin`` to ``end``; entries keep their order."""
    columns = rows.indices.astype(np.int64, copy=False)
    own = (columns >= begin) & (columns < end)
    before = np.concatenate([[0], np.cumsum(own)])[rows.indptr]
    halo, places = np.unique(columns[~own], return_inverse=True)
    local = (rows.data[own], columns[own] - begin, before)
    remote = (rows.data[~own], places.reshape(-1), rows.indptr - before)
    m = rows.shape[0]
    return Parts(
        scipy.sparse.csr_array(local, shape=(m, end - begin)),
        scipy.sparse.csr_array(remote, shape=(m, halo.size)),
        halo.astype(np.int64, copy=False),
    )


def joined(parts: Parts, begin: int, n_columns: int) -> Any:
    """Return the rows that were cut, the columns of each in ascending order."""
    local, remote, halo = parts
    lengths = np.diff(local.indptr) + np.diff(remote.indptr)
    rows = [np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)) for each in (local, remote)]
    columns = np.concatenate([local.indices.astype(np.int64) + begin, halo[remote.indices]])
    order = np.lexsort((columns, np.concatenate(rows)))
    values = np.concatenate([local.data, remote.data])[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return scipy.sparse.csr_array((values, columns[order], indptr), shape=(local.shape[0], n_columns))
