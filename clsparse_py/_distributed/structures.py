"""Structures of matrices over ranks, and of their products: which values are sent, and where received values go."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.csr import csr_array as device_array
from clsparse_py._arrays.functions import hstack, vstack
from clsparse_py._build.plain import door
from clsparse_py._distributed.halo import Halo, Staged, split_ranges
from clsparse_py._distributed.shared import describe
from clsparse_py._distributed.split import split
from clsparse_py._ground.index_types import index_for
from clsparse_py._matrix.matrix import Structure
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate
from clsparse_py._primitives.permute import enqueue_number, enqueue_permute, enqueue_permute_two
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import copy_to_device, copy_to_host

if TYPE_CHECKING:
    from clsparse_py._distributed.csr import csr_array

__all__ = [
    "DividedStructure",
    "Joined",
    "Product",
    "check",
    "gather_values",
    "number_entries",
    "number_parts",
    "renumber",
    "without_unused",
]

#: A function that multiplies two matrices on one device: of a rank's own columns ("own"), or of other ranks' ("others").
Multiply = Callable[[str, device_array, device_array], device_array]


class DividedStructure:
    """The structure of a rank's part of a matrix, which keeps the products that were made of it. All ranks share it alike.

    Attributes
    ----------
    local, remote : Structure
        Of the parts of the matrix.
    products : weakref.WeakKeyDictionary
        The `Product` of this matrix by the structure of the other operand.
    """

    def __init__(self, A: csr_array) -> None:
        self.local, self.remote = A.local.structure, A.remote.structure
        self.products: weakref.WeakKeyDictionary[DividedStructure, Product] = weakref.WeakKeyDictionary()
        self._joined: Joined | None = None

    def join(self, A: csr_array) -> Joined:
        """Return the gathering of values for a rank's rows of A as one matrix: own columns first, then the halo's; cached."""
        if self._joined is None:
            self._joined = Joined(hstack([check(part) for part in number_parts(A)], format="csr"))
        return self._joined


class Joined:
    """The gathering of the values of a matrix whose entries come from two arrays.

    Parameters
    ----------
    numbered : clsparse_py.csr_array
        Its values are places of entries: in a first array of values, or behind its end in a second.
    """

    def __init__(self, numbered: device_array) -> None:
        self.numbered = numbered

    def __call__(self, first: cl_array.Array, second: cl_array.Array) -> device_array:
        """Return the matrix with values of two arrays of one dtype."""
        return self.numbered.with_values(gather_values(self.numbered.queue, self.numbered.data, first, second))


class Product:
    """The product of two matrices over ranks, for all values of their structures: values of B are all that is sent.

    The constructor is collective: ranks send one another the columns of the rows of B that each needs. A rank's product has two
    parts: in its own columns, and in other ranks' columns, which few rows have.

    Parameters
    ----------
    A, B : csr_array
        B's rows are divided as A's columns.
    """

    def __init__(self, A: csr_array, B: csr_array) -> None:
        self._queue, self._needs_rows = A.queue, bool(A.halo.columns.size)
        own = B.columns.part(A.comm.rank)
        numbered = number_parts(B)
        self._sent, columns = self._exchange_columns(A, B, numbered)
        self._exchanges: dict[np.dtype[Any], Staged] = {}
        # The rows that this rank receives stand below its own rows of B; their values follow on the rank's own values.
        rows_received = scipy.sparse.csr_array(columns, shape=(A.halo.columns.size, B.shape[1]))
        received, remote, outside = split(rows_received, own.start, own.stop)
        self._names = np.union1d(B.halo.columns, outside)
        self._own, self._others = None, None
        if self._needs_rows:
            self._own = Joined(vstack([check(numbered[0]), self._place_received(received, B.local.nnz)], format="csr"))
        if self._names.size:
            remote = scipy.sparse.csr_array(
                (remote.data, np.searchsorted(self._names, outside)[remote.indices], remote.indptr),
                shape=(remote.shape[0], self._names.size),
            )
            blocks = [check(renumber(_number(B.remote, 0), np.searchsorted(self._names, B.halo.columns), self._names.size))]
            if self._needs_rows:
                blocks.append(self._place_received(remote, B.remote.nnz))
            self._others = Joined(vstack(blocks, format="csr"))
        # Of the product's entries in other ranks' columns, found with the first product: rows of A, structure and halo.
        self._border: Joined | None = None
        self._remote: device_array | None = None
        self._halo: Halo | None = None

    def _exchange_columns(
        self, A: csr_array, B: csr_array, numbered: tuple[device_array, device_array]
    ) -> tuple[cl_array.Array | None, tuple[np.ndarray[Any, Any], ...]]:
        """Send other ranks the columns of the rows of B that they need, and set the ranges of entries that go to and fro.

        Returns
        -------
        sent : pyopencl.array.Array or None
            The places of the sent entries in B's values, local part first.
        received : tuple of numpy.ndarray
            Numbers, columns and row pointers of the received entries.
        """
        comm, begin, n_own = A.comm, B.columns.part(A.comm.rank).start, B.local.shape[1]
        sent, packets, n_sent = None, [None] * comm.size, np.zeros(comm.size, np.int64)
        index = index_for(B.shape[1])
        if A.halo.sent.size:
            rows = hstack([check(part[A.halo.sent]) for part in numbered], format="csr")
            sent, indptr, indices = rows.data, copy_to_host(rows.indptr, self._queue), copy_to_host(rows.indices, self._queue)
            columns = (indices + begin).astype(index)
            is_other = indices >= n_own
            columns[is_other] = B.halo.columns[indices[is_other] - n_own]
            for rank, part in A.halo.targets.items():
                bounds = indptr[part.start : part.stop + 1]
                packets[rank] = columns[bounds[0] : bounds[-1]], np.diff(bounds)  # type: ignore[call-overload]
                n_sent[rank] = bounds[-1] - bounds[0]
        came = [
            (np.zeros(0, index), np.zeros(0, np.int64)) if packet is None else packet
            for packet in comm.alltoall(packets, f"rows of a product({describe(A, B)})")
        ]
        columns, lengths = (np.concatenate(arrays) for arrays in zip(*came, strict=True))
        self._leaving, self._coming = split_ranges(n_sent), split_ranges(np.array([packet[0].size for packet in came]))
        self._sizes = int(n_sent.sum()), columns.size
        return sent, (np.arange(columns.size), columns, np.concatenate([[0], np.cumsum(lengths)]))

    def _place_received(self, rows: Any, n_own: int) -> device_array:
        """Return received rows, a SciPy array with numbers of entries, on the device; the numbers follow on the own entries."""
        rows.sort_indices()
        rows.data = (rows.data + n_own).astype(index_for(n_own + self._sizes[1]))
        return check(device_array(rows, queue=self._queue))

    def multiply(
        self, A: csr_array, B: csr_array, multiply_on_device: Multiply, plan_on_device: Callable[..., object] | None = None
    ) -> csr_array:
        """Return the product of matrices of the structures, by ``multiply_on_device`` on this rank's device. Collective.

        ``plan_on_device``: the first product calls it with what ``multiply_on_device`` takes for other ranks' columns later.
        """
        exchange = self._start_exchange(B)
        left = A.structure.join(A)(A.local.data, A.remote.data) if self._needs_rows else A.local
        received = B.local.data[:0] if exchange is None else exchange.finish()
        C = multiply_on_device("own", left, B.local if self._own is None else self._own(B.local.data, received))
        others = None if self._others is None else self._others(B.remote.data, received)
        if self._remote is None or self._halo is None:
            remote, used = self._find_border(A, left, others, C.dtype)
            self._remote, self._halo = remote, Halo(A.comm, B.columns, used, self._queue)
            if plan_on_device is not None and others is not None and self._border is not None:
                plan_on_device("others", self._border(A.local.data, A.remote.data), others)
        elif others is None or self._border is None:
            remote = self._remote.with_values(allocate(self._queue, "values", 0, C.dtype))
        else:
            rows = self._border(A.local.data, A.remote.data)
            remote = self._remote.with_values(multiply_on_device("others", rows, others).data)
        return A.assembled(A.comm, A.rows, B.columns, C, remote, self._halo)

    def _start_exchange(self, B: csr_array) -> Staged | None:
        """Begin to send the values of the rows of B that other ranks need; None if nothing is sent or received."""
        if not (self._leaving or self._coming):
            return None
        exchange = self._exchanges.get(B.dtype)
        if exchange is None:
            ranges = self._leaving, self._coming, self._sizes
            exchange = self._exchanges[B.dtype] = Staged(B.comm, self._queue, *ranges, B.dtype, (), "values of rows")
        nothing = B.local.data[:0]
        sent = nothing if self._sent is None else gather_values(self._queue, self._sent, B.local.data, B.remote.data)
        exchange.start(sent)
        return exchange

    def _find_border(
        self, A: csr_array, left: device_array, others: device_array | None, dtype: np.dtype[Any]
    ) -> tuple[device_array, np.ndarray[Any, Any]]:
        """Return the first product's part in other ranks' columns, and these columns; set the rows of A that have such a part."""
        product = device_array((left.shape[0], 0), dtype=dtype, queue=self._queue) if others is None else left @ others
        if product.nnz:
            rows = np.flatnonzero(np.diff(copy_to_host(product.indptr, self._queue)))
            numbered = A.structure.join(A).numbered if self._needs_rows else _number(A.local, 0)
            self._border = Joined(check(numbered[rows]))
        return without_unused(product, self._names)


def check(A: device_array) -> device_array:
    """Return a matrix after a check of its structure, so that results made of the matrix need no check."""
    A.structure.checked()
    return A


def number_parts(A: csr_array) -> tuple[device_array, device_array]:
    """Return the local and the remote part of A with their entries' numbers as values, the local part first."""
    return _number(A.local, 0, A.remote.nnz), _number(A.remote, A.local.nnz)


def _number(A: device_array, begin: int, behind: int = 0) -> device_array:
    """Return a matrix on one device with the numbers of its entries, from ``begin`` on, as values; ``behind`` numbers follow."""
    return A.with_values(number_entries(A.queue, A.nnz, begin, index_for(begin + A.nnz + behind)))


@door()
def number_entries(queue: cl.CommandQueue, n: int, begin: int, dtype: np.dtype[Any]) -> cl_array.Array:
    """Return the n numbers from ``begin`` on as a new device array."""
    numbers = allocate(queue, "numbers of entries", n, dtype)
    if n:
        chain = Chain(queue, writes=(numbers,))
        enqueue_number(chain, numbers, begin)
        chain.finish(numbers)
    return numbers


@door()
def gather_values(queue: cl.CommandQueue, places: cl_array.Array, first: cl_array.Array, second: Any = None) -> cl_array.Array:
    """Return the values at given places of an array, or of two arrays, the second behind the first, as a new device array."""
    gathered = allocate(queue, "values", places.size, first.dtype)
    if not places.size:
        return gathered
    arrays = [array for array in (first, second) if array is not None and array.size]
    chain = Chain(queue, places, *arrays, writes=(gathered,))
    if len(arrays) == 2:
        enqueue_permute_two(chain, places, arrays[0], arrays[1], gathered)
    else:
        enqueue_permute(chain, places, arrays[0], gathered, places.size)
    chain.finish(gathered)
    return gathered


@door()
def renumber(A: device_array, numbers: np.ndarray[Any, Any], n: int) -> device_array:
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


def without_unused(A: device_array, names: np.ndarray[Any, Any]) -> tuple[device_array, np.ndarray[Any, Any]]:
    """Return a matrix without its empty columns, and the names (numbers over all ranks) of the others; wait for the device."""
    used = np.zeros(names.size, np.bool_)
    used[copy_to_host(A.indices, A.queue)] = True
    if used.all():
        return A, names
    return renumber(A, np.cumsum(used) - 1, int(np.count_nonzero(used))), names[used]
