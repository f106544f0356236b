"""Plans of products and of transposed matrices over ranks: for new values, ranks move and send nothing but values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._distributed.border import copy_positions
from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.division import Division
from clsparse_py._distributed.halo import Halo
from clsparse_py._distributed.products import require_fitting
from clsparse_py._distributed.shared import Distributed, describe, require_same_ranks
from clsparse_py._distributed.structures import Product, gather_values, number_entries
from clsparse_py._ground.errors import class_of
from clsparse_py._ground.records import SetOnce
from clsparse_py._memory.memory import allocate
from clsparse_py._operations import spgemm as _spgemm
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_host
from clsparse_py._solvers.linalg.problem import Divided

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = ["SpgemmPlan", "TransposePlan", "have_one_structure", "spgemm_plan"]


class SpgemmPlan(Distributed, SetOnce):
    """The plan of a product of two matrices over ranks, for any values of their structures. Made by `spgemm_plan`.

    Attributes
    ----------
    comm : Communicator
    shape : tuple of int
        Of the product.

    Examples
    --------
    >>> import scipy.sparse
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> S = scipy.sparse.eye_array(6, k=2, format="csr")
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     A = team.csr_array(S)
    ...     plan = team.run(distributed.spgemm_plan, A, A)
    ...     C = plan(A, 3 * A)
    ...     bool(abs(C.gather() - 3 * (S @ S)).max() == 0)
    True
    """

    def __init__(self, A: csr_array, B: csr_array) -> None:
        self.comm, self.shape = A.comm, (A.shape[0], B.shape[1])
        self._A, self._B, self._product = A, B, Product(A, B)
        # Plans of the products on this rank's device: of its own columns, and of other ranks' columns.
        self._plans: dict[str, _spgemm.SpgemmPlan[device_array]] = {}
        # The product finds the entries in other ranks' columns, which are planned then.
        self._product.multiply(A, B, self._multiply_by_plan, self._plan_on_device)

    def __call__(self, A: csr_array | None = None, B: csr_array | None = None) -> csr_array:
        """Return the product of matrices of the planned structures; ranks send one another only the values of B that each needs.

        Parameters
        ----------
        A, B : csr_array, optional
            By default the matrices that the plan was made with.

        Raises
        ------
        ValueError, TypeError
            On all ranks: an operand of a rank has another structure, division or dtype.
        """
        with self.comm.agreeing(A=describe(A), B=describe(B)):
            for name, matrix, planned in (("A", A, self._A), ("B", B, self._B)):
                if matrix is not None:
                    _require_structure(name, matrix, planned)
        with self.comm.together():
            return self.product(self._A if A is None else A, self._B if B is None else B)

    def product(self, A: csr_array, B: csr_array) -> csr_array:
        """Return the product over ranks of two matrices of the planned structures, which are not checked."""
        return self._product.multiply(A, B, self._multiply_by_plan)

    def _multiply_by_plan(self, name: str, left: device_array, right: device_array) -> device_array:
        """Return a product on this rank's device, by the plan that is kept under ``name``."""
        return self._plan_on_device(name, left, right)(left.data, right.data)

    def _plan_on_device(self, name: str, left: device_array, right: device_array) -> _spgemm.SpgemmPlan[device_array]:
        """Return the plan that is kept under ``name``, of a product on this rank's device; made at the first call."""
        if name not in self._plans:
            self._plans[name] = _spgemm.spgemm_plan(left, right)
        return self._plans[name]

    def __repr__(self) -> str:
        return f"<plan of a product of {self.shape[0]} x {self.shape[1]} on rank {self.comm.rank} of {self.comm.size}>"


def spgemm_plan(A: csr_array, B: csr_array) -> SpgemmPlan:
    """Return a plan of the product ``A @ B`` of matrices over ranks, for any values. All ranks call the function together.

    Parameters
    ----------
    A, B : csr_array
        Over the same ranks; B's rows are divided as A's columns.

    Returns
    -------
    SpgemmPlan
        ``plan(A, B)`` is the product of other values: nothing is counted, and ranks send each other values alone.

    Raises
    ------
    ValueError, TypeError
        B's rows are divided otherwise; an operand is no `csr_array` over ranks.

    Examples
    --------
    >>> import scipy.sparse
    >>> import clsparse_py as sp
    >>> from clsparse_py import distributed
    >>> S = scipy.sparse.eye_array(6, k=2, format="csr")
    >>> with distributed.over([sp.default_queue()] * 2) as team:
    ...     A = team.csr_array(S)
    ...     plan = team.run(distributed.spgemm_plan, A, A)
    ...     C = plan(-A, A)
    ...     int(abs(C.gather() + S @ S).nnz)
    0
    """
    _require_over_ranks("A", A)
    with A.comm.together():
        _require_over_ranks("B", B)
        require_fitting(A, B)
        return SpgemmPlan(A, B)


def _require_over_ranks(name: str, matrix: Any) -> None:
    """Raise a TypeError, whose message has the name, if an operand is no `csr_array` over ranks."""
    if not isinstance(matrix, Divided):
        raise TypeError(f"{name}: must be a csr_array over ranks, is {class_of(matrix)}")


class TransposePlan:
    """The plan of a matrix's transposed over ranks, as a `csr_array`, for any values of the same structure."""

    def __init__(self, A: csr_array) -> None:
        numbered, division = _number_entries(A)
        transposed = numbered.T.tocsr()
        self._values_in_order = _Rearranged(A.comm, A.queue, division, transposed.local.data, transposed.remote.data)
        self._transposed = _replace_values(transposed, self._values_in_order(A))

    def __call__(self, A: csr_array) -> csr_array:
        """Return the transposed of a matrix of the planned structure, which is not checked."""
        return _replace_values(self._transposed, self._values_in_order(A))


def _replace_values(A: csr_array, values: list[Any]) -> csr_array:
    """Return a matrix over ranks of A's structure with ``values[0]`` in its local part, and ``values[1]`` in its remote part."""
    return A.mapped(lambda part: part.with_values(values[0]), lambda part: part.with_values(values[1]))


def _require_structure(name: str, matrix: Any, A: csr_array) -> None:
    """Check, on one rank, that a matrix differs from the planned one in its values alone.

    Raises
    ------
    ValueError, TypeError
        The operand is no matrix over ranks, or has another structure, division or dtype.
    """
    if not isinstance(matrix, type(A)):
        raise TypeError(f"{name}: must be a matrix over the same ranks, is {type(matrix).__name__}")
    require_same_ranks(name, matrix, A.comm)
    if matrix.dtype != A.dtype:
        raise TypeError(f"{name}: must have the dtype that the plan was made with, {A.dtype}, has {matrix.dtype}")
    if not have_one_structure(matrix, A):
        raise ValueError(f"{name}: has another structure than the matrix that the plan was made with")


def have_one_structure(A: csr_array, B: csr_array) -> bool:
    """Return whether a rank's parts of two matrices have one structure, in the same order, and are divided alike."""
    return bool(
        (A.rows, A.columns) == (B.rows, B.columns)
        and np.array_equal(A.halo.columns, B.halo.columns)
        and _have_equal_arrays(A.local, B.local)
        and _have_equal_arrays(A.remote, B.remote)
    )


def _have_equal_arrays(a: device_array, b: device_array) -> bool:
    """Return whether two matrices on one device have the same structure."""
    return a.structure is b.structure or (
        np.array_equal(a.indptr.get(), b.indptr.get()) and np.array_equal(a.indices.get(), b.indices.get())
    )


def _number_entries(A: csr_array) -> tuple[csr_array, Division]:
    """Return A with its entries' numbers as values, rank after rank, a rank's local part first; and the entries' division."""
    counts = A.comm.stacked(np.array(A.local.nnz + A.remote.nnz))
    division = Division(np.concatenate([[0], np.cumsum(counts)]))
    begin, end = division.part(A.comm.rank).start, division.part(A.comm.rank).stop
    middle = begin + A.local.nnz
    numbered = A.mapped(lambda part: _with_numbers(part, begin, middle), lambda part: _with_numbers(part, middle, end))
    return numbered, division


def _with_numbers(A: device_array, begin: int, end: int) -> device_array:
    """Return a matrix on one device with the numbers from ``begin`` to ``end`` as the values of its entries."""
    return A.with_values(number_entries(A.queue, end - begin, begin, np.dtype(np.int64)))


class _Rearranged:
    """The gathering of the values of a matrix's numbered entries, with the messages that fetch values of other ranks.

    Parameters
    ----------
    comm : Communicator
    queue : pyopencl.CommandQueue
    division : Division
        Of the entries of the matrix.
    *numbers : pyopencl.array.Array
        Numbers of entries: an array of values is gathered for each.
    """

    def __init__(self, comm: Communicator, queue: cl.CommandQueue, division: Division, *numbers: cl_array.Array) -> None:
        own_range = division.part(comm.rank)
        host_numbers = [copy_to_host(array, queue) for array in numbers]
        all_numbers = np.concatenate(host_numbers)
        self._halo = Halo(
            comm, division, np.unique(all_numbers[(all_numbers < own_range.start) | (all_numbers >= own_range.stop)]), queue
        )
        self._places = [self._locate(queue, array, own_range) for array in host_numbers]
        self._queue = queue

    def _locate(self, queue: cl.CommandQueue, numbers: np.ndarray[Any, Any], own_range: slice) -> cl_array.Array:
        """Return the positions of numbered entries' values in an array of this rank's own values followed by received values."""
        outside = (numbers < own_range.start) | (numbers >= own_range.stop)
        n_own = own_range.stop - own_range.start
        positions = np.where(outside, n_own + np.searchsorted(self._halo.columns, numbers), numbers - own_range.start)
        return copy_positions(queue, "places of values", positions)

    def __call__(self, A: csr_array) -> list[cl_array.Array]:
        """Return, for each array of entries' numbers, A's values of these entries; values of other ranks are fetched."""
        values = _concatenate(self._queue, [A.local.data, A.remote.data])
        fetched = None if self._halo.silent else self._halo.fetch(values)
        return [gather_values(self._queue, places, values, fetched) for places in self._places]


def _concatenate(queue: cl.CommandQueue, arrays: list[cl_array.Array]) -> cl_array.Array:
    """Return the concatenation of device arrays of one dtype; an array itself, uncopied, if no other array has entries."""
    filled = [array for array in arrays if array.size]
    if len(filled) < 2:
        return filled[0] if filled else arrays[0]
    joined = allocate(queue, "values", sum(array.size for array in filled), filled[0].dtype)
    chain, begin = Chain(queue, *filled, writes=(joined,)), 0
    for array in filled:
        chain.copy(joined, array, array.size, begin)
        begin += array.size
    chain.finish(joined)
    return joined
