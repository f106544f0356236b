"""A rank's rows on the host, split into a local and a remote part, joined again, and sent to other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from clsparse_py._ground.index_types import index_for

__all__ = ["Parts", "SentRows", "join", "split"]


class Parts(NamedTuple):
    """A rank's rows, split by their columns.

    Attributes
    ----------
    local : scipy.sparse.csr_array
        Entries in the rank's own columns, numbered from 0.
    remote : scipy.sparse.csr_array
        Entries in other ranks' columns, numbered in the order of `halo`.
    halo : numpy.ndarray of int64
        The other ranks' columns that have entries, ascending.
    """

    local: Any
    remote: Any
    halo: np.ndarray[Any, np.dtype[np.int64]]


class SentRows(NamedTuple):
    """Rows of a matrix on their way to another rank.

    Attributes
    ----------
    columns : numpy.ndarray of int64
        The columns that have entries.
    places : numpy.ndarray
        The column of each entry, as a place in `columns`.
    lengths : numpy.ndarray
        The number of entries of each row.
    values : numpy.ndarray
        The values of the entries.
    """

    columns: np.ndarray[Any, Any]
    places: np.ndarray[Any, Any]
    lengths: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]

    @classmethod
    def of(cls, rows: Any, part: slice, begin: int) -> SentRows:
        """Return the rows of a range of a SciPy CSR array as `SentRows`, the form in which rows are sent to another rank.

        The array's columns are the columns from ``begin`` on. Marks show the columns that have entries, in less time than sorting
        takes.
        """
        indptr = rows.indptr[part.start : part.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        columns_of_entries, n = rows.indices[entries], rows.shape[1]
        marks = np.zeros(n, np.bool_)
        marks[columns_of_entries] = True
        used = np.flatnonzero(marks)
        numbers = np.empty(n, columns_of_entries.dtype)
        numbers[used] = np.arange(used.size)
        return cls(used + begin, numbers[columns_of_entries], np.diff(indptr), rows.data[entries])

    @classmethod
    def concatenated(cls, received: Sequence[SentRows]) -> SentRows:
        """Return the matrix rows received from several ranks as one `SentRows`, in their order; columns may be named twice."""
        begins = np.cumsum([0, *(sent.columns.size for sent in received)])
        shifted = [begin + sent.places for begin, sent in zip(begins, received, strict=False)]
        columns, _, lengths, values = (np.concatenate(arrays) for arrays in zip(*received, strict=True))
        return cls(columns, np.concatenate(shifted), lengths, values)


def split(rows: Any, begin: int, end: int) -> Parts:
    """Split a rank's matrix rows into two parts: its own columns, ``begin`` to ``end``, and other ranks'; entries keep order.

    A part has indices of int32 as far as they reach, also of rows with int64: it has fewer columns than the whole matrix.
    """
    columns = rows.indices.astype(np.int64, copy=False)
    is_own = (columns >= begin) & (columns < end)
    own_before = np.concatenate([[0], np.cumsum(is_own)])[rows.indptr]
    halo, positions = np.unique(columns[~is_own], return_inverse=True)
    parts = (
        (rows.data[is_own], columns[is_own] - begin, own_before, end - begin),
        (rows.data[~is_own], positions.reshape(-1), rows.indptr - own_before, halo.size),
    )
    local, remote = (_assemble(*part) for part in parts)
    return Parts(local, remote, halo.astype(np.int64, copy=False))


def _assemble(data: Any, columns: np.ndarray[Any, Any], indptr: np.ndarray[Any, Any], n_columns: int) -> Any:
    """Return the SciPy CSR array of a part of a rank's rows, with indices of int32 as far as they reach."""
    index = index_for(max(data.size, n_columns))
    return scipy.sparse.csr_array((data, columns.astype(index), indptr.astype(index)), shape=(indptr.size - 1, n_columns))


def join(parts: Parts, begin: int, n_columns: int) -> Any:
    """Join a rank's rows from their local and remote part to one SciPy array of all columns, which ascend in each row."""
    local, remote, halo = parts
    m = local.shape[0]
    rows = np.concatenate([np.repeat(np.arange(m), np.diff(part.indptr)) for part in (local, remote)])
    columns = np.concatenate([local.indices.astype(np.int64) + begin, halo[remote.indices]])
    # Duplicate entries stay, in their order.
    order = np.lexsort((columns, rows))
    values, indptr = np.concatenate([local.data, remote.data]), local.indptr.astype(np.int64) + remote.indptr
    return scipy.sparse.csr_array((values[order], columns[order], indptr), shape=(m, n_columns))
