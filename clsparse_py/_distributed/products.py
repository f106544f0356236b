"""Sums and products of matrices over ranks: a rank makes its own rows of the result, on its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._arrays.functions import hstack, vstack
from clsparse_py._build.plain import door
from clsparse_py._distributed.shared import describe, extend_history
from clsparse_py._distributed.split import SentRows
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.permute import enqueue_permute
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["combine_entries", "divide_product", "fetch_needed_rows", "join_columns", "multiply_matrices", "require_fitting"]


def multiply_matrices(A: csr_array, B: csr_array) -> csr_array:
    """Return ``A @ B`` over ranks: a rank fetches the rows of B that its rows of A refer to, and multiplies on its device.

    Parameters
    ----------
    A, B : csr_array
        B's rows are divided as A's columns.

    Returns
    -------
    csr_array
        Its rows are divided as A's, its columns as B's.

    Raises
    ------
    ValueError
        B's rows are divided otherwise.

    Notes
    -----
    Meanwhile columns have other numbers: the rank's own columns come first, then other ranks' columns in the rows of B.
    """
    with A.comm.together():
        require_fitting(A, B)
        rows, halo = fetch_needed_rows(A, B)
        return divide_product(A, B, join_columns(A) @ rows, halo)


def require_fitting(A: csr_array, B: csr_array) -> None:
    """Raise a ValueError if B's rows are divided otherwise than A's columns."""
    if A.columns != B.rows:
        raise ValueError(f"B: its rows must be divided as A's columns, {A.columns}, are as {B.rows}")


def join_columns(A: csr_array) -> device_array:
    """Return a rank's rows of A as one matrix: the rank's own columns first, then the columns of the halo."""
    if not A.remote.shape[1]:
        return A.local
    rows: device_array = hstack([_check(A.local), _check(A.remote)], format="csr")
    return rows


def _check(A: device_array) -> device_array:
    """Return a matrix after a check of its structure, so that results made of the matrix need no check."""
    A.structure.checked()
    return A


def fetch_needed_rows(A: csr_array, B: csr_array) -> tuple[device_array, np.ndarray[Any, Any]]:
    """Return a rank's rows of B and those fetched for its rows of A, as one matrix, and its halo, other ranks' columns there."""
    own_columns = B.columns.part(A.comm.rank)
    n_own = own_columns.stop - own_columns.start
    # Received rows of B give an entry's column as a place in `columns`, the list of the columns that the sending ranks name.
    columns, places, lengths, values = SentRows.concatenated(
        A.comm.alltoall(_select_sent_rows(A, B), f"product({describe(A, B)})")
    )
    outside = (columns < own_columns.start) | (columns >= own_columns.stop)
    halo = np.union1d(B.halo.columns, columns[outside])
    numbers = np.where(outside, n_own + np.searchsorted(halo, columns), columns - own_columns.start)
    if not halo.size and not A.halo.columns.size:
        return B.local, halo
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    of_others = scipy.sparse.csr_array((values, numbers[places], indptr), shape=(A.halo.columns.size, n_own + halo.size))
    of_others.sort_indices()
    remote = _renumber(B.remote, np.searchsorted(halo, B.halo.columns), halo.size)
    rows: device_array = hstack([_check(B.local), _check(remote)], format="csr")
    if not of_others.shape[0]:
        return rows, halo
    below = device_array(of_others, queue=A.queue)
    return vstack([rows, _check(below)], format="csr"), halo


def divide_product(A: csr_array, B: csr_array, C: device_array, halo: np.ndarray[Any, Any]) -> csr_array:
    """Return the product ``A @ B`` over ranks from C, this rank's rows with its own columns first, then the halo's columns."""
    n_own = B.columns.length(B.comm.rank)
    local, (remote, used) = (C[:, :n_own] if halo.size else C), _without_unused(C[:, n_own:], halo)
    return A.assembled(A.comm, A.rows, B.columns, local, remote, used)


def _select_sent_rows(A: csr_array, B: csr_array) -> list[SentRows]:
    """Return, for each rank, the rows of B that this rank sends it for ``A @ B``: rows that the receiver's halo of A names."""
    row_numbers, begin = A.halo.sent, B.columns.part(B.comm.rank).start
    rows = hstack([B.local[row_numbers], B.remote[row_numbers]], format="csr").get()
    parts = (A.halo.targets.get(rank, slice(0, 0)) for rank in range(A.comm.size))
    return [SentRows.of(rows, part, begin, B.halo.columns) for part in parts]


def combine_entries(A: csr_array, B: csr_array, apply: Callable[[Any, Any], Any]) -> csr_array:
    """Return the matrix over ranks ``A + B``, ``A - B`` or of another elementwise operation that maps two zeros to 0.

    Parameters
    ----------
    A, B : csr_array
        Divided alike.
    apply : callable
        Takes two matrices on one device.

    Raises
    ------
    ValueError
        A and B differ in their shapes or divisions.
    """
    if A.shape != B.shape:
        raise ValueError(f"inconsistent shapes: {A.shape} and {B.shape}")
    for name, of_A, of_B in (("rows", A.rows, B.rows), ("columns", A.columns, B.columns)):
        if of_A != of_B:
            raise ValueError(f"B: its {name} must be divided as A's, {of_A}, are as {of_B}")
    halo = np.union1d(A.halo.columns, B.halo.columns)
    parts = (_renumber(operand.remote, np.searchsorted(halo, operand.halo.columns), halo.size) for operand in (A, B))
    local, (remote, halo) = apply(A.local, B.local), _without_unused(apply(*parts), halo)
    combined = A.assembled(A.comm, A.rows, A.columns, local, remote, halo)
    combined.history = extend_history(apply.__name__, A, B)
    return combined


@door()
def _renumber(A: device_array, numbers: np.ndarray[Any, Any], n: int) -> device_array:
    """Return a matrix of n columns over A's values, in which A's column c is the column ``numbers[c]``.

    Columns that have entries keep their order.
    """
    shape = A.shape[0], n
    if not A.nnz:
        return device_array(shape, dtype=A.dtype, queue=A.queue)
    chain, index = Chain(A.queue, A.indices), A.indices.dtype
    columns = allocate(A.queue, "columns", A.nnz, index)
    enqueue_permute(chain, A.indices, copy_to_device(A.queue, "columns", numbers.astype(index)), columns, A.nnz)
    chain.finish(columns)
    facts_before = A.structure.checked()
    facts = Facts(facts_before.nnz, sorted=facts_before.sorted, canonical=facts_before.canonical, longest=facts_before.longest)
    return device_array.assembled(Structure(A.queue, shape, columns, A.indptr, facts), A.data)


def _without_unused(A: device_array, names: np.ndarray[Any, Any]) -> tuple[device_array, np.ndarray[Any, Any]]:
    """Return a matrix without its empty columns, and the names (numbers over all ranks) of the others; wait for the device."""
    used = np.zeros(names.size, np.bool_)
    used[copy_to_host(A.indices, A.queue)] = True
    if used.all():
        return A, names
    return _renumber(A, np.cumsum(used) - 1, int(np.count_nonzero(used))), names[used]
