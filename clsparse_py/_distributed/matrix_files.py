"""Read Matrix Market files in slices: each rank parses an equal part and sends entries to the ranks that own their rows."""

from __future__ import annotations

import io
import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.io
import scipy.sparse

from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.csr import csr_array
from clsparse_py._distributed.division import Division, by_boundaries, by_rows

__all__ = ["mmread"]


@dataclass(frozen=True)
class _Head:
    """The header of a Matrix Market file, and the byte range of its entries, an entry in a line."""

    title: bytes
    shape: tuple[int, int]
    n_lines: int
    begin: int
    end: int


def mmread(
    path: str | os.PathLike[str],
    comm: Communicator,
    *,
    division: Any = "entries",
    columns: Division | None = None,
    queue: cl.CommandQueue | None = None,
) -> csr_array:
    """Read a Matrix Market file of a sparse matrix in slices: no rank has the whole matrix at any time.

    Parameters
    ----------
    path : path-like
        A file that is not compressed, at the same path on all ranks' hosts. Entries in any order; symmetric, skew-symmetric and
        Hermitian files, and patterns, give what `scipy.io.mmread` makes of them.
    comm : Communicator
    division : {"entries", "rows"}, array_like of int or Division
        As of `csr_array.scattered`.
    columns, queue
        As of `csr_array`.

    Returns
    -------
    csr_array
        Duplicates are summed.

    Raises
    ------
    OSError
        The file is not there or may not be read.
    ValueError
        It is compressed or no sparse matrix, has more or fewer entries than it says, or differs from the other ranks'; or the
        division is none.
    RankError
        Another rank failed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import scipy.io, scipy.sparse
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> with tempfile.TemporaryDirectory() as folder, distributed.over([sp.default_queue()] * 2) as team:
    ...     path = pathlib.Path(folder) / "a.mtx"
    ...     scipy.io.mmwrite(path, scipy.sparse.eye_array(4, k=1), symmetry="general")
    ...     A = team.run_with(distributed.mmread, path)
    ...     A @ [1.0, 2.0, 3.0, 4.0]
    array([2., 3., 4., 0.])
    """
    with comm.agreeing() as facts:
        facts["file"] = head = _read_head(Path(path))
        asked_division = None
        if not isinstance(division, str):
            cuts = division.boundaries if isinstance(division, Division) else division
            asked_division = by_boundaries(cuts, head.shape[0], comm.size)
        elif division not in ("entries", "rows"):
            raise ValueError(f'division: must be "entries", "rows" or boundaries, is {division!r}')
        facts["division"] = division if asked_division is None else asked_division
    with comm.together():
        entries, n_lines = _read_slice(Path(path), head, comm.rank, comm.size)
        n_entries = int(comm.sum(np.int64(n_lines)))
        if n_entries != head.n_lines:
            raise ValueError(f"{path}: has {n_entries} entries, its head says {head.n_lines}")
        rows = by_rows(head.shape[0], comm.size) if asked_division is None else asked_division
        own_rows = _send_to_owners(comm, rows, head.shape[1], entries)
        if isinstance(division, str) and division == "entries":
            rows, own_rows = _balance(comm, rows, own_rows)
    return csr_array(own_rows, comm, rows=rows, columns=columns, queue=queue)


def _read_head(path: Path) -> _Head:
    """Return the header of a Matrix Market file.

    Raises
    ------
    OSError, ValueError
        The file is not there, is compressed, or holds no sparse matrix.
    """
    with path.open("rb") as file:
        if file.read(2) in (b"\x1f\x8b", b"BZ"):
            raise ValueError(f"{path}: is compressed, and slices of it cannot be read: unpack it before")
        file.seek(0)
        try:
            m, n, n_lines, form, *_ = scipy.io.mminfo(path)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{path}: is no Matrix Market file: {error}") from error
        if form != "coordinate":
            raise ValueError(f"{path}: holds a dense matrix")
        title = file.readline()
        # The file's comments, empty lines and line of sizes are skipped: `mminfo` has read the sizes.
        while (line := file.readline().strip()).startswith(b"%") or not line:
            pass
        return _Head(title.rstrip(), (int(m), int(n)), int(n_lines), file.tell(), path.stat().st_size)


def _read_slice(path: Path, head: _Head, rank: int, size: int) -> tuple[Any, int]:
    """Return the entries in the lines that begin in one of ``size`` equal parts of a file, as a SciPy array, and how many lines.

    Raises
    ------
    ValueError
        A line is no entry of the matrix.
    """
    with path.open("rb") as file:

        def find_first_line(share: int) -> int:
            """Return the byte offset of the first line of the file that begins at or after the beginning of a share."""
            offset = head.begin + (head.end - head.begin) * share // size
            if offset > head.begin:
                file.seek(offset - 1)
                file.readline()
                return file.tell()
            return offset

        begin, end = find_first_line(rank), find_first_line(rank + 1)
        file.seek(begin)
        text = file.read(end - begin)
    # SciPy's reader takes the number of lines from the header, so empty lines are removed.
    text = re.sub(rb"\n\s+", b"\n", text.strip())
    n_lines = text.count(b"\n") + 1 if text else 0
    sizes = b"%d %d %d" % (*head.shape, n_lines)
    try:
        return scipy.io.mmread(io.BytesIO(b"\n".join([head.title, sizes, text, b""])), spmatrix=False), n_lines
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: bytes {begin} to {end} are no entries of the matrix: {error}") from error


def _balance(comm: Communicator, rows: Division, own_rows: Any) -> tuple[Division, Any]:
    """Divide rows into shares of nearly equal entries, send rows to their ranks, and return the division and this rank's rows."""
    entries_before = np.concatenate([[0], np.cumsum(comm.allgather(own_rows.nnz))])
    targets = int(entries_before[-1]) * np.arange(1, comm.size) / comm.size
    begins = entries_before[comm.rank] + own_rows.indptr.astype(np.int64)
    # A rank places the ends of shares that fall among its own entries: at the row boundary nearest to an equal number of entries.
    cuts = np.zeros(comm.size - 1, np.int64)
    if own_rows.nnz:
        own_targets = np.flatnonzero((targets > entries_before[comm.rank]) & (targets <= entries_before[comm.rank + 1]))
        above = np.searchsorted(begins, targets[own_targets])
        is_above = begins[above] - targets[own_targets] <= targets[own_targets] - begins[above - 1]
        cuts[own_targets] = rows.part(comm.rank).start + above - 1 + is_above
    if not entries_before[-1]:
        return rows, own_rows
    cuts = comm.max(cuts) if cuts.size else cuts
    balanced = Division([0, *cuts.tolist(), rows.n])
    entries = own_rows.tocoo()
    entries.coords = (entries.row.astype(np.int64) + rows.part(comm.rank).start, entries.col)
    return balanced, _send_to_owners(comm, balanced, own_rows.shape[1], entries)


def _send_to_owners(comm: Communicator, rows: Division, n_columns: int, entries: scipy.sparse.coo_array) -> Any:
    """Send a matrix's entries to the ranks that own the entries' rows, and return this rank's own rows.

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
