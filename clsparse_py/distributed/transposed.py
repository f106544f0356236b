"""The transposed of a matrix over ranks: a view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clsparse_py.distributed.shared import Distributed
from clsparse_py.distributed.split import from_entries, rows_of
from clsparse_py.distributed.vectors import multiplied, vector

if TYPE_CHECKING:
    from clsparse_py.distributed.csr import csr_array

__all__ = ["Transposed"]


class Transposed(Distributed):
    """The transposed of a `csr_array` over ranks, over the same arrays: its columns are divided, as the rows of that are.

    Attributes
    ----------
    T : csr_array
        The matrix that it is the transposed of.
    """

    format = "csc"

    def __init__(self, A: csr_array) -> None:
        self.T, self.comm, self.queue = A, A.comm, A.queue
        self.rows, self.columns = A.columns, A.rows
        self.shape = A.shape[1], A.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.T.dtype

    @property
    def ndim(self) -> int:
        """Dimensions: 2."""
        return 2

    @property
    def nnz(self) -> int:
        """Stored entries of all ranks."""
        return self.T.nnz

    def __repr__(self) -> str:
        return f"<the transposed of {self.T!r}>"

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a dense operand, as of `csr_array`."""
        if isinstance(other, Distributed) and not isinstance(other, vector):
            return self.tocsr() @ other
        return multiplied(self, other, self.columns, self.rows, self.T._transposed_times)

    def diagonal(self, k: int = 0) -> vector:
        """Return a diagonal, divided as the columns that its entries are in."""
        return self.T.diagonal(-k)

    def norm(self, ord: Any = "fro") -> float:  # noqa: A002 - SciPy's name for it
        """Return a norm, as of `csr_array`."""
        return self.T.norm({1: np.inf, np.inf: 1}.get(ord, ord))

    def tocsr(self) -> csr_array:
        """Return it as a `csr_array`, whose rows are divided as the columns were: entries are sent to the ranks of their rows."""
        A, comm = self.T, self.comm
        with comm.together():
            own = A.own_rows()
            columns = rows_of(own) + A.rows.part(comm.rank).start
            owners = self.rows.owner(own.indices)
            leaving = []
            for rank in range(comm.size):
                of_rank = owners == rank
                leaving.append((own.indices[of_rank], columns[of_rank], own.data[of_rank]))
            rows, columns, values = map(np.concatenate, zip(*comm.alltoall(leaving), strict=True))
            part = self.rows.part(comm.rank)
            found = from_entries(rows - part.start, columns, values, (part.stop - part.start, self.shape[1]))
        return type(A)(found, comm, rows=self.rows, columns=self.columns, queue=self.queue)

    def gather(self, root: int = 0) -> Any:
        """Return the whole matrix on one rank, a `scipy.sparse.csc_array`, and None on the others."""
        found = self.T.gather(root)
        return None if found is None else found.T
