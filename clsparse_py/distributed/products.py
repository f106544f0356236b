"""Sums and products of matrices over ranks: each rank makes its own rows, on its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from clsparse_py.csr import csr_array as device_array
from clsparse_py.distributed.columns import renumbered, without_unused
from clsparse_py.distributed.split import Parts, joined
from clsparse_py.functions import hstack, vstack

if TYPE_CHECKING:
    from clsparse_py.distributed.csr import csr_array

__all__ = ["entry_by_entry", "needed_rows", "of_product", "product", "require_fitting", "side_by_side"]


def product(A: csr_array, B: csr_array) -> csr_array:
    """Return ``A @ B``: the rows of B that a rank's rows refer to are fetched, and one product is made on its device.

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
    Columns are numbered anew meanwhile: the rank's own come first, and behind them those of others that the rows of B have.
    """
    require_fitting(A, B)
    with A.comm.together():
        rows, halo = needed_rows(A, B)
        return of_product(A, B, side_by_side(A) @ rows, halo)


def require_fitting(A: csr_array, B: csr_array) -> None:
    """Raise a ValueError if B's rows are divided otherwise than A's columns."""
    if A.columns != B.rows:
        raise ValueError(f"B: its rows must be divided as A's columns, {A.columns}, are as {B.rows}")


def side_by_side(A: csr_array) -> device_array:
    """Return a rank's rows as one matrix: its own columns first, then those of the halo."""
    rows: device_array = hstack([A.local, A.remote], format="csr")
    return rows


def needed_rows(A: csr_array, B: csr_array) -> tuple[device_array, np.ndarray[Any, Any]]:
    """Return the rows of B that a rank's rows of A refer to, and the columns of others that stand behind its own."""
    own = B.columns.part(A.comm.rank)
    n_own = own.stop - own.start
    of_others = _fetched_rows(A, B)
    outside = (of_others.indices < own.start) | (of_others.indices >= own.stop)
    halo = np.union1d(B.halo.columns, of_others.indices[outside])
    columns = np.where(outside, n_own + np.searchsorted(halo, of_others.indices), of_others.indices - own.start)
    n = n_own + halo.size
    of_others = scipy.sparse.csr_array((of_others.data, columns, of_others.indptr), shape=(of_others.shape[0], n))
    of_others.sort_indices()
    remote = renumbered(B.remote, np.searchsorted(halo, B.halo.columns), halo.size)
    return vstack([hstack([B.local, remote], format="csr"), device_array(of_others, queue=A.queue)], format="csr"), halo


def of_product(A: csr_array, B: csr_array, C: device_array, halo: np.ndarray[Any, Any]) -> csr_array:
    """Return a product over ranks, of a rank's rows with its own columns first, and the numbers of the others."""
    n_own = B.columns.length(B.comm.rank)
    local, (remote, used) = C[:, :n_own], without_unused(C[:, n_own:], halo)
    return A.assembled(A.comm, A.rows, B.columns, local, remote, used)


def _fetched_rows(A: csr_array, B: csr_array) -> Any:
    """Return the rows of B that A's halo names, on the host, with all columns."""
    sent, begin = A.halo.sent, B.columns.part(B.comm.rank).start
    leaving = joined(Parts(B.local[sent].get(), B.remote[sent].get(), B.halo.columns), begin, B.shape[1])
    parts = [leaving[A.halo.targets.get(rank, slice(0, 0))] for rank in range(A.comm.size)]
    return scipy.sparse.vstack(A.comm.alltoall(parts), format="csr")


def entry_by_entry(A: csr_array, B: csr_array, apply: Callable[[Any, Any], Any]) -> csr_array:
    """Return what an operation that gives 0 for two zeros makes of the entries of two matrices: ``A + B``, or ``A - B``.

    Parameters
    ----------
    A, B : csr_array
        Divided alike.
    apply : callable
        Takes two matrices on one device.

    Raises
    ------
    ValueError
        They have other shapes, or are divided otherwise.
    """
    if A.shape != B.shape:
        raise ValueError(f"inconsistent shapes: {A.shape} and {B.shape}")
    for name, ours, others in (("rows", A.rows, B.rows), ("columns", A.columns, B.columns)):
        if ours != others:
            raise ValueError(f"B: its {name} must be divided as A's, {ours}, are as {others}")
    with A.comm.together():
        halo = np.union1d(A.halo.columns, B.halo.columns)
        parts = (renumbered(each.remote, np.searchsorted(halo, each.halo.columns), halo.size) for each in (A, B))
        local, (remote, halo) = apply(A.local, B.local), without_unused(apply(*parts), halo)
    return A.assembled(A.comm, A.rows, A.columns, local, remote, halo)
