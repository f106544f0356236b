"""The transposed of a matrix over ranks: a view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._distributed.shared import Distributed, collective, describe, extend_history
from clsparse_py._distributed.split import SentRows
from clsparse_py._distributed.vectors import multiply, vector

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["Transposed"]


class Transposed(Distributed):
    """The transposed of a `csr_array` over ranks, over the same arrays: its columns are divided as the matrix's rows.

    Attributes
    ----------
    T : csr_array
        The matrix itself, the transposed of its transposed.
    """

    format = "csc"

    def __init__(self, A: csr_array) -> None:
        self.T, self.comm, self.queue = A, A.comm, A.queue
        self.rows, self.columns = A.columns, A.rows
        self.shape = A.shape[1], A.shape[0]
        self.history = extend_history("T", A)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the transposed matrix's values."""
        return self.T.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of the transposed matrix, 2."""
        return 2

    @property
    def nnz(self) -> int:
        """The number of stored entries of the transposed matrix, of all ranks together."""
        return self.T.nnz

    def __repr__(self) -> str:
        return f"<the transposed of {self.T!r}>"

    @collective
    def __matmul__(self, other: Any) -> Any:
        """Return the product of the transposed with a vector, a dense matrix or a matrix over ranks, as `csr_array` does."""
        if isinstance(other, Distributed) and not isinstance(other, vector):
            return self.tocsr() @ other
        return multiply(self, other, self.columns, self.rows, self.T._multiply_transposed)

    def diagonal(self, k: int = 0) -> vector:
        """Return the k-th diagonal of the transposed matrix, a vector divided as the columns of its entries."""
        return self.T.diagonal(-k)

    def norm(self, ord: Any = "fro") -> float:  # noqa: A002 - SciPy's name for it
        """Return the Frobenius, 1- or infinity norm of the transposed matrix, as `csr_array.norm` does."""
        return self.T.norm({1: np.inf, np.inf: 1}.get(ord, ord))

    @collective
    def tocsr(self) -> csr_array:
        """Return the transposed as a `csr_array` over the same ranks; entries are sent to the ranks of their rows.

        A rank transposes its parts on its device; messages go through the host.
        """
        A, comm = self.T, self.comm
        remote, halo = _place_received(A, comm.alltoall(_select_sent_rows(A), f"tocsr({describe(self)})"))
        local: device_array = A.local.T.tocsr()
        return A.assembled(comm, self.rows, self.columns, local, device_array(remote, queue=A.queue), halo)

    def gather(self, root: int = 0) -> Any:
        """Return the whole transposed as a `scipy.sparse.csc_array` on the rank ``root``, and None on other ranks."""
        whole = self.T.gather(root)
        return None if whole is None else whole.T


def _select_sent_rows(A: csr_array) -> list[SentRows]:
    """Return the rows of A.T that this rank sends to each rank: A's entries in the receiver's columns."""
    rows = A.remote.T.tocsr().get()
    begin = A.rows.part(A.comm.rank).start
    return [SentRows.of(rows, A.halo.sources.get(rank, slice(0, 0)), begin) for rank in range(A.comm.size)]


def _place_received(A: csr_array, received: list[SentRows]) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return the remote part of the transposed as a SciPy array, made of received rows, and the ascending columns of its halo."""
    # The halo's columns ascend: they are rows of A, which the ranks have in their order.
    halo, places, lengths, values = SentRows.concatenated(received)
    # Several ranks may send entries of one row of the transposed; each rank sends rows in the order in which it asks for x.
    requested = np.concatenate([A.halo.sent[A.halo.targets.get(rank, slice(0, 0))] for rank in range(len(received))])
    rows = np.repeat(requested, lengths)
    order = np.argsort(rows, kind="stable")
    n = A.halo.n_own
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return scipy.sparse.csr_array((values[order], places[order], indptr), shape=(n, halo.size)), halo
