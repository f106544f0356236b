"""`csr_array` over ranks: rows are divided, and a rank's rows are in a local and a remote part, as in PETSc."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._arrays.base import SparseArray
from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._arrays.csr import make_canonical
from clsparse_py._distributed.border import Border
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.costs import Explanation, Sent
from clsparse_py._distributed.division import Division, by_boundaries, by_entries, by_rows, join_shares, require_division
from clsparse_py._distributed.halo import Halo
from clsparse_py._distributed.multigrid import Hierarchy, set_up
from clsparse_py._distributed.products import combine_entries, multiply_matrices
from clsparse_py._distributed.shared import Distributed, collective, describe, extend_history, spell
from clsparse_py._distributed.split import Parts, join, split
from clsparse_py._distributed.structures import DividedStructure
from clsparse_py._distributed.systems import DividedProblem, by_blocks
from clsparse_py._distributed.transposed import Transposed
from clsparse_py._distributed.vectors import compute_norm_share, multiply, on_device, vector
from clsparse_py._ground.errors import class_of
from clsparse_py._matrix.placement import queue_for
from clsparse_py._solvers.krylov.sweep import AllSum
from clsparse_py._solvers.linalg.options import Options
from clsparse_py._solvers.linalg.problem import Divided

__all__ = ["csr_array"]


class csr_array(Distributed, Divided):  # noqa: N801 - the name of the class on one device
    """A sparse matrix whose rows are divided among ranks.

    Every rank has a part of its own, and all call the same methods in the same order.

    Parameters
    ----------
    own_rows : scipy.sparse array or clsparse_py array
        This rank's rows, with all columns. Duplicates stay as they are.
    comm : Communicator
    rows : tuple of int or Division, optional
        Which rows these are, (begin, end), the same for all if a division; by default rows are numbered in the order of ranks.
    columns : Division, optional
        How the entries of x are divided. By default as the rows of a square matrix, else into equal shares.
    shape : tuple of int, optional
        Of the whole, to be checked.
    queue : pyopencl.CommandQueue, optional
        Where this rank's part lives; by default ``comm.queue``.

    Attributes
    ----------
    comm : Communicator
    queue : pyopencl.CommandQueue
    rows, columns : Division
        Of the rows of the matrix and the entries of ``A @ x``, and of the columns and the entries of x.
    local : clsparse_py.csr_array
        The own rows in the own columns, numbered from 0.
    remote : clsparse_py.csr_array
        The own rows in other ranks' columns, numbered as in ``halo.columns``.
    halo : Halo
        The other ranks' columns in which this rank has entries, and the messages with their values.

    Raises
    ------
    ValueError
        On all ranks: shares overlap or leave a gap, or versions, dtypes, shapes or divisions differ.
    TypeError
        The rows are no sparse matrix.
    RankError
        Another rank failed.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> S = scipy.sparse.eye_array(6, k=2, format="csr")
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     A = team.csr_array(S)
    ...     A @ np.arange(6.0)
    array([2., 3., 4., 5., 0., 0.])
    """

    format = "csr"
    local: device_array

    def __init__(
        self,
        own_rows: Any,
        comm: Communicator,
        *,
        rows: tuple[int, int] | Division | None = None,
        columns: Division | None = None,
        shape: tuple[int, int] | None = None,
        queue: cl.CommandQueue | None = None,
    ) -> None:
        with comm.agreeing(shape=shape, division=columns) as facts:
            S = _convert_to_scipy(own_rows)
            target_queue = queue_for((), comm.queue if queue is None else queue)
            require_division("columns", columns)
            _require_rows(rows)
            facts.update(columns=S.shape[1], dtype=S.dtype, **{"rows as a division": isinstance(rows, Division)})
        of_rows = _agree_on_rows(comm, S.shape[0], rows)
        shape_of_ranks = of_rows.n, int(S.shape[1])
        if shape is not None and tuple(shape) != shape_of_ranks:
            raise ValueError(
                f"shape: is {tuple(shape)}, but the ranks have {shape_of_ranks[0]} rows of {shape_of_ranks[1]} columns"
            )
        if columns is None:
            columns = of_rows if shape_of_ranks[0] == shape_of_ranks[1] else by_rows(shape_of_ranks[1], comm.size)
        elif columns.n != shape_of_ranks[1] or columns.size != comm.size:
            raise ValueError(f"columns: must divide {shape_of_ranks[1]} among {comm.size} ranks, are {columns}")
        with comm.together():
            own_columns = columns.part(comm.rank)
            local, remote, halo = split(S, own_columns.start, own_columns.stop)
            of_others = Halo(comm, columns, halo, target_queue)
            self._set_parts(
                comm,
                of_rows,
                columns,
                device_array(local, queue=target_queue),
                device_array(remote, queue=target_queue),
                of_others,
            )

    @classmethod
    def scattered(
        cls,
        S: Any,
        comm: Communicator,
        *,
        root: int = 0,
        division: Any = "entries",
        columns: Division | None = None,
        queue: cl.CommandQueue | None = None,
    ) -> Self:
        """Divide the matrix S, which only the rank ``root`` has, among all ranks, and return the matrix over ranks.

        Parameters
        ----------
        S : scipy.sparse array or clsparse_py array
            On the root; what other ranks give is not looked at.
        comm : Communicator
        root : int
            The rank that has the matrix.
        division : {"entries", "rows"}, array_like of int or Division
            Into shares of nearly equal numbers of entries, or of rows; or the boundaries, one more than ranks.
        columns, queue
            As for the class.

        Raises
        ------
        ValueError, TypeError
            On the root: the matrix or the boundaries are none. Other ranks raise a `RankError`.
        """
        shares = None
        with comm.agreeing():
            if comm.rank == root:
                rows = _convert_to_scipy(S)
                cuts = _read_division(division, rows, comm.size)
                shares = [(rows[cuts.part(rank)], cuts) for rank in range(comm.size)]
        with comm.together():
            own_rows, cuts = comm.scatter(shares, root)
        return cls(own_rows, comm, rows=cuts, columns=columns, queue=queue)

    @classmethod
    def assembled(
        cls,
        comm: Communicator,
        rows: Division,
        columns: Division,
        local: device_array,
        remote: device_array,
        halo: np.ndarray[Any, Any] | Halo,
    ) -> Self:
        """Return the matrix over ranks made of each rank's local and remote part, which are not checked.

        Parameters
        ----------
        comm : Communicator
        rows, columns : Division
        local, remote : clsparse_py.csr_array
        halo : numpy.ndarray of int64 or Halo
            The column of each column of ``remote``, ascending; or a halo of these columns, which needs no message.
        """
        matrix = object.__new__(cls)
        with comm.together():
            made = halo if isinstance(halo, Halo) else Halo(comm, columns, halo, local.queue)
        matrix._set_parts(comm, rows, columns, local, remote, made)
        return matrix

    def _set_parts(
        self, comm: Communicator, rows: Division, columns: Division, local: device_array, remote: device_array, halo: Halo
    ) -> None:
        """Set this rank's local part, remote part and halo of the matrix, and the attributes that follow from these."""
        self.comm, self.rows, self.columns = comm, rows, columns
        self.local, self.remote, self.halo = local, remote, halo
        self.queue: cl.CommandQueue = local.queue
        self.shape = rows.n, columns.n
        self._nnz: int | None = None
        self._border: Border | None = None
        self._structure: DividedStructure | None = None

    @property
    def structure(self) -> DividedStructure:
        """The structure of this rank's parts, which keeps products; matrices that differ in values alone share the structure."""
        structure = self._structure
        if structure is None or structure.local is not self.local.structure or structure.remote is not self.remote.structure:
            structure = self._structure = DividedStructure(self)
        return structure

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the matrix's values."""
        return self.local.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of the matrix, 2."""
        return 2

    @property
    @collective
    def nnz(self) -> int:
        """The number of stored entries of the matrix, of all ranks together."""
        if self._nnz is None:
            self._nnz = int(self.comm.sum(np.int64(self.local.nnz + self.remote.nnz)))
        return self._nnz

    def __repr__(self) -> str:
        m, n = self.shape
        share, halo = self.rows.part(self.comm.rank), self.halo
        return (
            f"<distributed csr_array of {m} x {n}, {self.dtype}: rank {self.comm.rank} of {self.comm.size} "
            f"has rows {share.start} to {share.stop}, and needs {halo.columns.size} entries of x of {len(halo.sources)} ranks>"
        )

    @collective
    def explain(self) -> Explanation:
        """Return the bytes that each rank receives and reads for ``A @ x``, and the time by a model beside one device's: a table.

        Graphs of a power law need nearly all of x on each rank: one device is faster, which the explanation then says.
        """
        halo, local, remote = self.halo, self.local, self.remote
        numbers = halo.columns.size, len(halo.sources), local.nnz + remote.nnz, local.shape[0]
        bytes_of_entry = self.dtype.itemsize, max(local.indices.dtype.itemsize, remote.indices.dtype.itemsize)
        ranks = self.comm.stacked(np.array([*numbers, *bytes_of_entry], np.int64), f"explain({describe(self)})")
        return Explanation(tuple(Sent(*numbers) for numbers in ranks.tolist()))

    # ---- for solvers

    @override
    def problem(self, b: Any, x0: Any, M: Any, read: Callable[[], Options]) -> DividedProblem:
        """Return the system ``A x = b`` over ranks for a solver, with guess x0, preconditioner M and the options ``read()``."""
        return DividedProblem(self, b, x0, M, read)

    @override
    def together(self) -> AbstractContextManager[object]:
        """Return a context in which an exception of one rank ends the waits of all ranks."""
        return self.comm.together()

    @property
    @override
    def begin(self) -> int:
        """The number, in the whole matrix, of this rank's first row."""
        return int(self.rows.part(self.comm.rank).start)

    @property
    @override
    def all_sum(self) -> AllSum | None:
        """The function that sums numbers over ranks; None if there is a single rank."""
        return self.comm.sum if self.comm.size > 1 else None

    @override
    def around(
        self, queue: cl.CommandQueue, x: cl_array.Array, y: cl_array.Array, alpha: float | None = None
    ) -> tuple[Callable[[], object], ...]:
        """Return two functions: one sends entries of x to ranks, the other adds to y the remote part times received entries."""
        fetching, border = self.halo.get_fetch(x), self._get_border()

        def end() -> None:
            """Wait for other ranks' entries of x, and add to y the product of this rank's remote part with these, times alpha."""
            # The remote part's product runs on the solver's queue, as the solver's passes over vectors wait for no events.
            border.add(self.remote, fetching.finish().with_queue(queue), y, alpha)

        return functools.partial(fetching.start, x), end

    @override
    def raise_alike(self, error: Exception) -> NoReturn:
        """Raise an error that every rank has, on all ranks, which stay in step and may go on."""
        self.comm.agree(error)
        raise error

    @override
    @collective
    def whole(self) -> Any:
        """Return the whole matrix on every rank, as a `scipy.sparse.csr_array`."""
        return self.comm.broadcast(self.gather())

    def by_root(self, function: Callable[[Any], Any]) -> Self:
        """Call a function of the whole SciPy matrix on rank 0, and return its result, of the same shape, divided among ranks."""
        whole = self.gather()
        with self.comm.agreeing():
            matrix = None if whole is None else function(whole)
        return self.scattered(matrix, self.comm, division=self.rows, columns=self.columns, queue=self.queue)

    @override
    def by_blocks(self, preconditioner: Callable[[Any], Any]) -> Any:
        """Return the block Jacobi preconditioner, made by ``preconditioner`` of each rank's diagonal block; for solvers."""
        return by_blocks(self, preconditioner)

    @override
    def multigrid(self, B: Any, read: Callable[[], Any], on_one_device: Callable[..., Any]) -> Hierarchy:
        """Return the matrix's multigrid hierarchy over ranks, for `clsparse_py.amg.smoothed_aggregation_solver`."""
        return set_up(self, B, read)

    # ---- products

    @collective
    def __matmul__(self, other: Any) -> Any:
        """Return the product with a vector, ``A @ x``, a dense matrix, ``A @ X``, or a matrix over the same ranks, ``A @ B``.

        Parameters
        ----------
        other : vector, numpy.ndarray, pyopencl.array.Array or csr_array
            A `vector`; or NumPy's whole, the same on every rank; or this rank's entries on its device. Of one or two dimensions.
            Or a matrix over the same ranks.

        Returns
        -------
        vector, numpy.ndarray, pyopencl.array.Array or csr_array
            As ``other``, whole if that is.

        Raises
        ------
        ValueError
            It has another length, or is divided otherwise than the columns.
        """
        if isinstance(other, csr_array | Transposed):
            return multiply_matrices(self, _convert_to_csr(other))
        return multiply(self, other, self.columns, self.rows, self._multiply_own)

    def _multiply_own(self, x: cl_array.Array) -> cl_array.Array:
        """Return this rank's entries of ``A @ x``: the local part is multiplied while other ranks' entries of x are under way."""
        if self.halo.silent:
            return self.local @ x
        fetching = self.halo.get_fetch(x)
        fetching.start(x)
        y = self.local @ x
        (y.queue or self.queue).flush()
        self._get_border().add(self.remote, fetching.finish(), y)
        return y

    def _get_border(self) -> Border:
        """Return the `Border` of the remote part, its rows that have entries; made at the first call."""
        if self._border is None:
            self._border = Border(self.remote)
        return self._border

    def _multiply_transposed(self, x: cl_array.Array) -> cl_array.Array:
        """Return this rank's entries of ``A.T @ x``: sums for other ranks' columns are sent there, received sums are added."""
        if self.halo.silent:
            return self.local.T @ x
        sums = self.remote.T @ x
        returning = self.halo.get_return(sums.dtype, sums.shape[1:])
        returning.start(sums)
        y = self.local.T @ x
        (y.queue or self.queue).flush()
        self.halo.add(returning.finish(), y)
        return y

    def __rmatmul__(self, other: Any) -> Any:
        """Return ``x @ A``, by the transposed matrix: x is a `vector` of one dimension, or a whole NumPy array of one or two.

        NotImplemented for a `vector` of two dimensions and for a sparse matrix.
        """
        if (isinstance(other, vector) and other.ndim == 2) or scipy.sparse.issparse(other) or isinstance(other, SparseArray):
            return NotImplemented
        product = self.T @ (other.T if getattr(other, "ndim", 1) == 2 else other)
        return product.T if isinstance(product, np.ndarray) else product

    # ---- matrices of the same structure

    @override
    def mapped(self, of_local: Callable[[Any], Any], of_others: Callable[[Any], Any]) -> Self:
        """Return the matrix over ranks with the parts ``of_local(local)`` and ``of_others(remote)``, divided as this one."""
        matrix = object.__new__(type(self))
        matrix._set_parts(self.comm, self.rows, self.columns, of_local(self.local), of_others(self.remote), self.halo)
        matrix.history = self.history
        if matrix.remote.structure is self.remote.structure:
            matrix._border = self._border
            if matrix.local.structure is self.local.structure:
                matrix._structure = self.structure
        return matrix

    def _map_values(self, step: str, apply: Callable[[device_array], Any]) -> Self:
        """Return the matrix with ``apply`` applied to both parts; ``step`` begins its history, a text that ranks compare."""
        matrix = self.mapped(apply, apply)
        matrix.history = extend_history(step, self)
        return matrix

    def __add__(self, other: Any) -> Any:
        return self._combine(other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, operator.sub)

    @collective
    def _combine(self, other: Any, apply: Callable[[Any, Any], Any]) -> Any:
        """Return ``apply`` (the sum or difference) of this matrix and another over ranks; for other operands NotImplemented."""
        return (
            combine_entries(self, _convert_to_csr(other), apply) if isinstance(other, csr_array | Transposed) else NotImplemented
        )

    def __mul__(self, other: Any) -> Any:
        return self._map_values(f"* {spell(other)}", lambda part: part * other) if np.isscalar(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._map_values(f"/ {spell(other)}", lambda part: part / other) if np.isscalar(other) else NotImplemented

    def __neg__(self) -> Self:
        return self._map_values("neg", lambda part: -part)

    def __abs__(self) -> Self:
        return self._map_values("abs", abs)

    def conj(self) -> Self:
        """Return the complex conjugate of the matrix. Not collective."""
        return self._map_values("conj", lambda part: part.conj())

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Return the matrix with values of a dtype; itself if it has the dtype and ``copy`` is false. Not collective."""
        if self.dtype == dtype and not copy:
            return self
        return self._map_values(f"astype {np.dtype(dtype)}", lambda part: part.astype(dtype, copy=copy))

    def copy(self) -> Self:
        """Return a copy of the matrix with memory of its own. Not collective."""
        return self._map_values("copy", lambda part: part.copy())

    @property
    def T(self) -> Transposed:  # noqa: N802 - SciPy's name for it
        """The transposed matrix, a view of the same arrays; its products send sums to the ranks that own the result's entries."""
        return Transposed(self)

    def transpose(self) -> Transposed:
        """Return the transposed matrix, a view of the same arrays, as `T` does."""
        return self.T

    @collective
    def diagonal(self, k: int = 0) -> vector:
        """Return the matrix's k-th diagonal as a vector divided as the rows of its entries; duplicates are added up.

        Parameters
        ----------
        k : int
            As SciPy's.
        """
        first, last = max(0, -k), max(0, -k, min(self.shape[0], self.shape[1] - k))
        cuts = np.clip(self.rows.boundaries, first, last) - first
        if k == 0 and self.rows == self.columns:
            own_entries = self.local.diagonal()
        else:
            own_entries = self.own_rows().diagonal(self.rows.part(self.comm.rank).start + k)
        diagonal = vector.over(on_device(self.queue, own_entries), self.comm, Division(cuts))
        diagonal.history = extend_history(f"diagonal {k}", self)
        return diagonal

    @collective
    def norm(self, ord: Any = "fro") -> float:  # noqa: A002 - SciPy's name for it
        """Return the Frobenius, 1- or infinity norm of the matrix, as `scipy.sparse.linalg.norm`.

        Parameters
        ----------
        ord : {"fro", 1, inf}
            The root of the sum of squares, the largest sum of sizes in a column, or in a row.

        Raises
        ------
        ValueError
            It is another.
        """
        if ord not in ("fro", 1, np.inf):
            raise ValueError(f'ord: must be "fro", 1 or inf, is {ord!r}')
        if 0 in self.shape:
            return 0.0
        note = f"norm({describe(self)}, {ord})"
        if ord == "fro":
            parts = [make_canonical(part).data for part in (self.local, self.remote)]
            return float(np.sqrt(self.comm.sum(sum(compute_norm_share(data, 2) for data in parts), note)))
        sizes = abs(self.mapped(make_canonical, make_canonical))
        if ord == 1:
            ones = on_device(self.queue, np.ones(self.rows.length(self.comm.rank), np.zeros(0, self.dtype).real.sum().dtype))
            return float((sizes.T @ vector.over(ones, self.comm, self.rows)).norm(np.inf))
        sums = sizes.local.sum(axis=1) + sizes.remote.sum(axis=1)
        return float(self.comm.max(np.float64(sums.max(initial=0)), note))

    # ---- copies on the host

    def own_rows(self) -> Any:
        """Return this rank's rows as a `scipy.sparse.csr_array` with all columns, which ascend in each row. Not collective."""
        part = self.columns.part(self.comm.rank)
        return join(Parts(self.local.get(), self.remote.get(), self.halo.columns), part.start, self.shape[1])

    @collective
    def gather(self, root: int = 0) -> Any:
        """Return the whole matrix as a `scipy.sparse.csr_array` on the rank ``root``, and None on other ranks."""
        shares = self.comm.gather(self.own_rows(), root, f"gather({describe(self)})")
        return None if shares is None else scipy.sparse.vstack(shares, format="csr")


def _convert_to_csr(A: csr_array | Transposed) -> csr_array:
    """Return a matrix over ranks as a `csr_array`, also if it is a transposed view."""
    return A.tocsr() if isinstance(A, Transposed) else A


def _convert_to_scipy(S: Any) -> Any:
    """Return a sparse matrix of SciPy or of this package as a `scipy.sparse.csr_array` whose structure is checked."""
    if isinstance(S, SparseArray):
        S = S.get()
    if not scipy.sparse.issparse(S) or S.ndim != 2:
        raise TypeError(f"rows: must be a sparse matrix of two dimensions, are {class_of(S)}")
    rows = scipy.sparse.csr_array(S)
    try:
        rows.check_format()
    except ValueError as error:
        raise ValueError(f"rows: {error}") from None
    return rows


def _read_division(division: Any, rows: Any, size: int) -> Division:
    """Return the division of a matrix's rows that a user says: equal shares of "entries" or "rows", or boundaries."""
    if isinstance(division, str):
        if division not in ("entries", "rows"):
            raise ValueError(f'division: must be "entries", "rows" or boundaries, is {division!r}')
        return by_entries(rows.indptr, size) if division == "entries" else by_rows(rows.shape[0], size)
    cuts = division.boundaries if isinstance(division, Division) else division
    return by_boundaries(cuts, rows.shape[0], size)


def _require_rows(rows: Any) -> None:
    """Raise a TypeError if a user's ``rows`` are neither a `Division`, nor two integers, nor None."""
    try:
        if not isinstance(rows, Division | None):
            _, _ = (operator.index(row) for row in rows)
    except (TypeError, ValueError):
        raise TypeError(f"rows: must be a Division or two integers, are {rows!r}") from None


def _agree_on_rows(comm: Communicator, m: int, rows: tuple[int, int] | Division | None) -> Division:
    """Return the division of all rows from each rank's number of rows, m, and its ``rows``: a range, a division or None."""
    if isinstance(rows, Division):
        lengths = comm.allgather((rows, m))
        for rank, (division, length) in enumerate(lengths):
            if division != rows or division.size != comm.size:
                raise ValueError(f"rows: rank {comm.rank} says {rows}, rank {rank} says {division}, for {comm.size} ranks")
            if division.length(rank) != length:
                raise ValueError(f"rows: rank {rank} gave {length} rows, the division says {division.length(rank)}")
        return rows
    shares = comm.allgather((m, rows))
    has_share = [(share is not None) for _, share in shares]
    if not any(has_share):
        return Division(np.cumsum([0, *(length for length, _ in shares)]))
    if not all(has_share):
        raise ValueError(f"rows: rank {has_share.index(False)} does not say which rows it has, and others do")
    for rank, (length, share) in enumerate(shares):
        if share[1] - share[0] != length:
            raise ValueError(f"rows: rank {rank} gave {length} rows, and says that they are {share[0]} to {share[1]}")
    return join_shares([(int(first), int(last)) for _, (first, last) in shares])
