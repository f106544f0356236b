"""From a multigrid level over ranks to the next one, which each rank has whole, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._arrays.functions import hstack
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._distributed.border import Border
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.halo import Halo
from clsparse_py._distributed.structures import Joined, check, number_parts, renumber
from clsparse_py._ground.records import dataclass
from clsparse_py._operations.elementwise.values import map_values
from clsparse_py._run.transfer import copy_to_device, copy_to_host
from clsparse_py._solvers.linalg.problem import OnOneDevice

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["Gathering", "Thresholds", "max_whole_rows"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds of multigrid over ranks."""

    operation = "multigrid"

    #: Most rows of a multigrid level below the finest that each rank has whole; levels of more rows are divided among ranks.
    max_whole_rows: int = number(
        1 << 17, "rows of a level", on_cores=1 << 14, evidence="by the model of `costs`, halved; on cores two ranks of two cores"
    )


def max_whole_rows(queue: cl.CommandQueue) -> int:
    """Return the most rows of a multigrid level below the finest of which a queue's device has all."""
    return Thresholds.of(describe(queue.device)).max_whole_rows


class Prolongation(OnOneDevice):
    """The prolongation P from a level that each rank has whole, whose products need no message: a rank's rows of P.

    Parameters
    ----------
    comm : Communicator
    local : clsparse_py.csr_array
        This rank's rows, with all columns.
    shape : tuple of int
        Of P.
    """

    def __init__(self, comm: Communicator, local: device_array, shape: tuple[int, int]) -> None:
        super().__init__(local)
        self.comm, self.shape = comm, shape

    @override
    def whole(self) -> Any:
        """Return P on every rank, as a SciPy array."""
        return scipy.sparse.vstack(self.comm.allgather(self.local.get()), format="csr")


class Restriction(OnOneDevice):
    """The restriction R to a level that each rank has whole: a rank multiplies its columns, and adds other ranks' sums.

    Parameters
    ----------
    sums : _Sums
    local : clsparse_py.csr_array
        This rank's columns, with all rows.
    shape : tuple of int
        Of R.
    """

    def __init__(self, sums: _Sums, local: device_array, shape: tuple[int, int]) -> None:
        super().__init__(local)
        self._sums, self.shape = sums, shape

    @override
    def around(
        self, queue: cl.CommandQueue, x: cl_array.Array, y: cl_array.Array, alpha: float | None = None
    ) -> tuple[Callable[[], object], ...]:
        """Return two functions: the first does nothing, the second adds other ranks' sums to this rank's, y."""
        return (lambda: None), self._sums.bind(queue, y)

    @override
    def mapped(self, of_local: Callable[[Any], Any], of_others: Callable[[Any], Any]) -> Restriction:
        """Return the restriction with the function ``of_local`` applied to this rank's columns."""
        return Restriction(self._sums, of_local(self.local), self.shape)

    @override
    def whole(self) -> Any:
        """Return R on every rank, as a SciPy array."""
        return scipy.sparse.hstack(self._sums.comm.allgather(self.local.get()), format="csr")


class _Sums:
    """The sums over ranks of vectors of n entries: a rank sends each other rank one message. The constructor is collective.

    Parameters
    ----------
    comm : Communicator
    queue : pyopencl.CommandQueue
    n : int
    own : numpy.ndarray of int64
        The entries of this rank's vector that may differ from 0.
    """

    def __init__(self, comm: Communicator, queue: cl.CommandQueue, n: int, own: np.ndarray[Any, Any]) -> None:
        self.comm, self._queue, self._n = comm, queue, n
        self._entries = comm.allgather(own)
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        # The vectors stand one rank's behind another's in a vector over ranks, of which each rank needs other ranks' entries.
        wanted = [rank * n + self._entries[rank] for rank in others]
        self._halo = Halo(comm, Division(n * np.arange(comm.size + 1)), np.concatenate([own[:0], *wanted]), queue)
        self._others = self.add_up(others)
        self._border = Border(self._others)

    def add_up(self, ranks: Sequence[int]) -> device_array:
        """Return the matrix of ones that adds up the entries of some ranks' vectors, which stand one rank's behind another's."""
        rows = np.concatenate([np.zeros(0, np.int64), *(self._entries[rank] for rank in ranks)])
        entries = np.ones(rows.size, np.bool_), (rows, np.arange(rows.size))
        return device_array(scipy.sparse.csr_array(entries, shape=(self._n, rows.size)), queue=self._queue)

    def bind(self, queue: cl.CommandQueue, y: cl_array.Array) -> Callable[[], None]:
        """Return the function that adds other ranks' vectors to this rank's, y."""
        fetching = self._halo.get_fetch(y)

        def add() -> None:
            """Send entries of y to all other ranks, and add the received ones to y."""
            fetching.start(y)
            self._border.add(self._others, fetching.finish().with_queue(queue), y)

        return add


class Gathering:
    """The gathering of a multigrid level's matrix on each rank, for any values of one structure. The constructor is collective.

    Parameters
    ----------
    P, AP : csr_array
        Over ranks: the prolongator to the level above, and its product with that level's matrix.
    """

    def __init__(self, P: csr_array, AP: csr_array) -> None:
        self._comm, self._queue = P.comm, P.queue
        self._own = _number_columns(P), _number_columns(AP)
        self._transposed = self._own[0].numbered.transpose_plan()
        self._rows = np.flatnonzero(np.diff(copy_to_host(self._transposed().indptr, self._queue)))
        self._sums = _Sums(self._comm, self._queue, P.shape[1], self._rows)
        self._ones = self._sums.add_up(range(self._comm.size))
        self._products: device_array | None = None

    def __call__(self, P: csr_array, AP: csr_array, *, is_conjugate: bool) -> tuple[Prolongation, Restriction, device_array]:
        """Return the transfers P and R, the transposed or conjugate transposed of P, and the matrix ``R (A P)``. Collective."""
        own_P, own_AP = (own(A.local.data, A.remote.data) for own, A in zip(self._own, (P, AP), strict=True))
        own_R = self._transposed(map_values(self._queue, own_P.data, "conjugate") if is_conjugate else own_P.data)
        product = (own_R @ own_AP).get()
        if self._products is None:
            rows = self._comm.allgather(product[self._rows])
            self._products = device_array(scipy.sparse.vstack(rows, format="csr"), queue=self._queue)
        else:
            values = np.concatenate(self._comm.allgather(product.data))
            self._products = self._products.with_values(copy_to_device(self._queue, "values", values))
        transfers = Prolongation(self._comm, own_P, P.shape), Restriction(self._sums, own_R, P.shape[::-1])
        return *transfers, self._ones @ self._products


def _number_columns(A: csr_array) -> Joined:
    """Return the gathering of values for this rank's rows of A as one matrix with all columns, in canonical format."""
    own, halo = A.columns.part(A.comm.rank), A.halo.columns
    first = int(np.searchsorted(halo, own.start))
    local, remote = number_parts(A)
    blocks = [check(block) for block in (remote[:, :first], local, remote[:, first:])]
    columns = np.concatenate([halo[:first], np.arange(own.start, own.stop), halo[first:]])
    return Joined(renumber(hstack(blocks, format="csr"), columns, A.shape[1]))
