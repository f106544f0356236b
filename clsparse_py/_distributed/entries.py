"""Entries of a matrix, by their coordinates, sent to the ranks that have their rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse

from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division

__all__ = ["collect"]


def collect(comm: Communicator, rows: Division, n_columns: int, entries: scipy.sparse.coo_array) -> Any:
    """Send entries to the ranks of their rows, and return this rank's own rows.

    Parameters
    ----------
    comm : Communicator
    rows : Division
    n_columns : int
    entries : scipy.sparse.coo_array
        Any entries of the matrix; duplicates are summed, in the order of ranks.

    Returns
    -------
    scipy.sparse.csr_array
        With all columns, each row's ascending.
    """
    owners = rows.owner(entries.row)
    order = np.argsort(owners, kind="stable")
    cuts = np.searchsorted(owners[order], np.arange(comm.size + 1))
    parts = (order[begin:end] for begin, end in itertools.pairwise(cuts))
    received = comm.alltoall([(entries.row[part], entries.col[part], entries.data[part]) for part in parts])
    row, col, data = (np.concatenate(pieces) for pieces in zip(*received, strict=True))
    own_rows = rows.part(comm.rank)
    shape = own_rows.stop - own_rows.start, n_columns
    return scipy.sparse.coo_array((data, (row - own_rows.start, col)), shape=shape).tocsr()
